//! States that probes and outputs name.

use crate::support::*;
use torre_compiler::problem::OutputKind;
use torre_compiler::resolve::Options;

const TEXT: &str = "
def slow(u, rate, body) {
  state lost in body
  lost@next = (1 - rate) * lost + rate * u
  lost@next
}
scheme waves {
  axes x, y
  param h = 1
  param dt = 0.5
  region disc = (x - 12)^2 + (y - 15)^2 < 9
  field p : scalar on cells
  field v : vector on faces at 1/2
  step {
    v.x -= dt * d(p, x)
    v.y -= dt * d(p, y)
    p -= dt * (d(v.x, x) + d(v.y, y) + slow(p, 0.1, disc) + slow(p, 0.2, disc))
  }
}
problem p {
  scheme waves
  domain 20 x 30
  boundary x: cpml(4), y: cpml(5) | cpml(6)
  STATEMENT
  steps 10
}
";

fn text(statement: &str) -> String {
    TEXT.replace("STATEMENT", statement)
}

fn refused(statement: &str) -> String {
    let (world, options) = (TestWorld::default(), Options::default());
    show(&refused_with(&world, &text(statement), &options))
}

#[test]
fn outputs_and_probes_name_states() {
    let outputs = |statement: &str| -> Vec<[String; 2]> {
        let resolved = resolved(&text(statement));
        let of = resolved.problem.outputs.iter();
        of.map(|o| {
            assert!(o.state.is_some() && o.needs_values());
            [o.name.clone(), o.quantity(&resolved.scheme).to_string()]
        })
        .collect()
    };
    let of_vx = ["psi of v.x", "psi of v.x in layers along x"].map(str::to_string);
    assert_eq!(outputs("output volume psi of v.x every 5"), [of_vx]);
    let of_vy = ["below", "above"].map(|side| {
        let name = format!("psi of v.y in layer {side} y");
        [format!("{name}-x3"), name]
    });
    assert_eq!(outputs("output slice psi of v.y x = 3"), of_vy);
    // Two calls in one region.
    let of_p = outputs("output volume lost of p");
    assert_eq!(of_p.len(), 2);
    assert_eq!([&of_p[0][0], &of_p[1][0]], ["lost of p 1", "lost of p 2"]);
    assert_eq!(outputs("output volume lost of p in disc"), of_p);
    // All components, or the components kept in some layers.
    assert_eq!(outputs("output volume psi of v").len(), 3);
    assert_eq!(outputs("output volume psi of v in layer(y)").len(), 2);
    let one = resolved(&text("output slice psi of v.x y = 20 in x = 0..4"));
    let output = &one.problem.outputs[0];
    assert!(matches!(output.kind, OutputKind::Slice { index: 20, .. }));
    assert_eq!(output.region.volume(), 4);

    let probes = |statement: &str| -> Vec<String> {
        let resolved = resolved(&text(statement));
        let of = resolved.problem.state_probes.iter();
        of.map(|p| p.name.clone()).collect()
    };
    let found = probes("probe psi of v at (2, 27) every 5");
    assert_eq!(
        found,
        ["psi of v.x_2_27", "psi of v.y in layer above y_2_27"]
    );
    assert_eq!(probes("probe psi of v.x at (2, 15) as kept"), ["kept"]);
    let lines = probes("probe psi of v.x in y = 15 as line");
    assert_eq!(lines.len(), 4 + 4, "{lines:?}");
    assert!(lines[0] == "line_0" && lines[7] == "line_19");
    // Layers choose states, on one side and on both, and are where these are kept.
    let both = probes("probe psi of v.x in layer(x), y = 15 as line");
    assert_eq!(both, lines);
    let chosen = probes("probe psi of v in layer(y), x = 2 as line");
    assert!(
        chosen.len() > 4 && chosen.iter().all(|name| name.contains("v.y")),
        "{chosen:?}"
    );
}

/// By its name, or by its condition as it is written; all are told apart.
#[test]
fn names_of_states_name_the_region() {
    let regions = "dt * (d(v.x, x) + d(v.y, y) + slow(p, 0.1, disc) + slow(p, 0.2, disc))";
    let several = "dt * (d(v.x, x) + d(v.y, y) + slow(p, 0.1, disc) + slow(p, 0.2, disc)
      + slow(p, 0.1, strip) + slow(p, 0.1, max(x, y) < 3 and atan2(y, x) < 1) + slow(p, 0.1, x < 4 and y > 20))";
    let text = text("region strip = x > 15 and y < 20\n  output volume lost of p")
        .replace(regions, several)
        .replace("  region disc", "  region strip = nowhere\n  region disc");
    let resolved = resolved(&text);
    let outputs = resolved.problem.outputs.iter();
    let names: Vec<&str> = outputs.map(|o| o.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "lost of p in disc 1",
            "lost of p in disc 2",
            "lost of p in strip",
            "lost of p in ((max(x, y) < 3) and (atan2(y, x) < 1))",
            "lost of p in ((x < 4) and (y > 20))",
        ]
    );
    let zones: Vec<&str> = (resolved.scheme.zones.iter())
        .map(|zone| zone.name.as_str())
        .collect();
    assert!(
        zones.contains(&"disc") && zones.contains(&"strip"),
        "{zones:?}"
    );
}

#[test]
fn what_is_no_state_or_is_not_kept_there_is_said() {
    let said = refused("probe phi of v.x at (2, 2)");
    assert!(
        said.contains("E0101") && said.contains("they keep psi"),
        "{said}"
    );
    let said = refused("output volume lost of v.x every 2");
    assert!(
        said.contains("the updates of `v.x` keep no state `lost`"),
        "{said}"
    );
    assert!(refused("output volume psi of q").contains("E0101"));
    assert!(refused("probe psi of v.x@prev at (2, 2)").contains("E0303"));
    let said = show(&checked(
        &TestWorld::default(),
        &text("probe psi of v.x at (10, 15)"),
    ));
    assert!(
        said.contains("W0502") && said.contains("psi of v.x"),
        "{said}"
    );
}

#[test]
fn a_state_without_a_next_value_is_said_where_it_is_declared() {
    let of = |text: &str| {
        let found = refused_with(&TestWorld::default(), text, &Options::default());
        assert_eq!(found.0.len(), 1, "{}", show(&found));
        let at = found.0[0].labels[0].span;
        let name = &text[at.start as usize..at.end as usize];
        (found.0[0].message.clone(), name.to_string())
    };
    let expected = |name: &str| {
        let message = format!("the state `{name}` gets no next value");
        (message, name.to_string())
    };
    let layer = "layer still(n) : pec {\n  state kept\n  d(f, a, order) - kept\n}\n";
    let with_layer = text("").replace("cpml(4)", "still(4)");
    assert_eq!(of(&format!("{layer}{with_layer}")), expected("kept"));
    let without = text("").replace(
        "  lost@next = (1 - rate) * lost + rate * u\n  lost@next",
        "  lost",
    );
    assert_eq!(of(&without), expected("lost"));
}

/// An update that reads its neighbours chooses between new and old values where it has a condition, which one in a zone
/// cannot; a condition in the value does the same.
#[test]
fn a_condition_beside_a_state_is_written_in_the_value() {
    let program = |statement: &str| {
        format!(
            "def mem(E, body) {{ state J in body; J@next = 0.9*J + 0.1*E; J@next }}
scheme s {{ axes x; region body = x > 20; field u : scalar on nodes
  step {{ allow W0301
    {statement} }} }}
problem p {{ scheme s; domain 64; steps 3 }}"
        )
    };
    let world = TestWorld::default();
    let beside = program("where x > 10 { u += 0.1*(d2(u, x) - mem(u, body)) }");
    let shown = show(&refused_with(&world, &beside, &Options::default()));
    assert!(
        shown.contains("E0417: earlier values of `u` are read"),
        "{shown}"
    );
    assert!(
        shown.contains("a `where` and a layer or a state in a region"),
        "{shown}"
    );
    assert!(
        shown.contains("`u += if x > 10 then ... else 0`"),
        "{shown}"
    );
    resolved(&program(
        "u += if x > 10 then 0.1*(d2(u, x) - mem(u, body)) else 0",
    ));
}

/// States advance with the values before their statement, and after the statements whose `@next` they read.
#[test]
fn next_values_of_states_read_next_values() {
    let program = |read: &str, value: &str| {
        format!(
            "def mem(E, v, body) {{ state J in body; J@next = 0.9*J + 0.1*{read}; {value} }}
scheme s {{ axes x; param dt = 0.1; field p : scalar on nodes; field v : scalar on nodes; field w : scalar on nodes
  step {{ allow W0301; w += dt*p; p -= mem(p, v, x > 3); v -= dt*w }} }}
problem a {{ scheme s; domain 10; steps 5 }}"
        )
    };
    let order = |read: &str, value: &str| -> Vec<String> {
        let scheme = resolved(&program(read, value)).scheme;
        let targets = scheme.stages.iter().flat_map(|stage| &stage.updates);
        targets
            .map(|update| scheme.component(update.target).name.clone())
            .collect()
    };
    // Whether or not the value of the definition reads the state.
    for value in ["J", "E"] {
        assert_eq!(order("E", value), ["w", "p", "v"]);
        assert_eq!(order("v", value), ["w", "p", "v"]);
        assert_eq!(order("v@next", value), ["w", "v", "p"]);
    }
    let (world, options) = (TestWorld::default(), Options::default());
    for own in ["E@next", "(v + E@next)", "v * E@next"] {
        let shown = show(&refused_with(&world, &program(own, "J"), &options));
        let said = "E0302: dependence cycle within a step";
        assert!(shown.contains(said), "{own}: {shown}");
        assert!(shown.contains("solve the statement"), "{shown}");
    }
}

#[test]
fn definitions_with_states_do_not_call_each_other() {
    let program = |outer: &str, statement: &str| {
        format!(
            "def inner(f, body) {{ state Q in body; Q@next = 0.8*Q + 0.1*f; Q@next }}
def outer(f, body) {{ state R in body; R@next = 0.9*R + 0.1*f; {outer} }}
scheme s {{ axes x; param dt = 0.1; field p : scalar on nodes; field v : scalar on cells at 1/2
  step {{ v -= dt*d(p, x); p -= dt*d(v, x) + {statement} }} }}
problem a {{ scheme s; domain 10; steps 5 }}"
        )
    };
    let of = |text: &str| {
        show(&refused_with(
            &TestWorld::default(),
            text,
            &Options::default(),
        ))
    };
    let nested = of(&program("R@next - inner(f, body)", "0.1*outer(p, x > 3)"));
    let message = "E0417: a definition with states calls another one with states";
    assert!(nested.contains(message), "{nested}");
    let argument = of(&program("R@next", "0.1*outer(inner(p, x > 3), x > 3)"));
    assert!(argument.contains(message), "{argument}");
    resolved(&program(
        "R@next",
        "0.1*(outer(p, x > 3) - inner(p, x > 3))",
    ));
}

/// Next values of states, and values of layers, are the same in every step and lie where the value is that takes them.
#[test]
fn states_and_layers_have_no_time_and_their_own_position() {
    let options = Options::default();
    let refused = |text: &str| show(&refused_with(&TestWorld::default(), text, &options));
    let program = |next: &str, layer: &str| {
        format!(
            "def mem(f, body) {{ state Q in body; Q@next = 0.8*Q + {next}; Q@next }}
layer own(n) : zero {{ {layer} }}
scheme s {{ axes x; param dt = 0.1; field p : scalar on nodes; field v : scalar on cells at 1/2
  step {{ v -= dt*d(p, x); p -= dt*d(v, x) + mem(p, x > 3) }} }}
problem a {{ scheme s; domain 20; boundary x: own(4); steps 5 }}"
        )
    };
    let good = "0.5 * d(f, a, order)";
    resolved(&program("0.1*f", good));
    let timed = refused(&program("t*f", good));
    assert!(
        timed.contains("E0305: the next value of a state cannot"),
        "{timed}"
    );
    let timed = refused(&program("0.1*f", "d(f, a, order) * (1 + 0.1*sin(t))"));
    assert!(
        timed.contains("E0305: the value of a layer cannot"),
        "{timed}"
    );
    let beside = refused(&program("0.1*d(f, x)", good));
    assert!(
        beside.contains("E0201") || beside.contains("E0202"),
        "{beside}"
    );
    let beside = refused(&program("0.1*f", "f"));
    assert!(
        beside.contains("E0201: the value of this layer lies at [0], and the difference at [1/2]"),
        "{beside}"
    );
}

/// A ring has as many faces as cells, so states of a body at its beginning do not go around it.
#[test]
fn states_at_the_beginning_of_a_ring_stay_there() {
    let text = text("")
        .replace("(x - 12)^2 + (y - 15)^2 < 9", "(x - 2)^2 + (y - 3)^2 < 9")
        .replace("x: cpml(4), y: cpml(5) | cpml(6)", "all: periodic");
    let resolved = resolved(&text);
    let disc = resolved.scheme.zones.iter().find(|z| z.name == "disc");
    let boxes = &disc.expect("a zone").boxes;
    assert!(!boxes.is_empty());
    for part in boxes {
        for axis in resolved.scheme.grid.present() {
            assert!((1..=7).contains(&part[axis].len()), "{boxes:?}");
        }
    }
}

/// Differences in a definition with states are others in layers, whether or not the same difference was taken before;
/// fields that have them may be given to the definition.
#[test]
fn definitions_with_states_take_no_differences_of_layers() {
    let program = |definition: &str, first: &str, call: &str| {
        format!(
            "def slow(f, body) {{ state Q in body; Q@next = 0.8*Q + 0.1*{definition}; Q@next }}
scheme s {{ axes x; param dt = 0.1; field p : scalar on nodes; field v : scalar on cells at 1/2
  field g : scalar on cells at 1/2
  step {{ {first}; v -= dt*{call}; v -= dt*d(p, x); p -= dt*d(v, x) }} }}
problem a {{ scheme s; domain 40; boundary x: cpml(5); steps 5 }}"
        )
    };
    let (world, options) = (TestWorld::default(), Options::default());
    for (definition, first, call) in [
        ("d(f, x)", "g = d(p, x)", "slow(p, x > 3)"),
        ("d(f, x)", "g = g", "slow(p, x > 3)"),
        ("f", "g = g", "slow(d(p, x), x > 3)"),
    ] {
        let text = program(definition, first, call);
        let shown = show(&refused_with(&world, &text, &options));
        let said = "E0417: a definition with states takes a difference along `x`, which is another one in a layer";
        assert!(shown.contains(said), "{shown}");
        assert!(shown.contains("`g = d(f, x)`"), "{shown}");
    }
    resolved(&program("f", "g = d(p, x)", "slow(g, x > 3)"));
}

#[test]
fn states_of_a_definition_lie_in_one_region() {
    let text = "
def slow(f, a, b) { state Q in a; state R in b; Q@next = 0.8*Q + f; R@next = 0.5*R + f; Q@next - R@next }
scheme s { axes x; param dt = 0.1; field p : scalar on nodes; field v : scalar on cells at 1/2
  step { v -= dt*d(p, x); p -= dt*d(v, x) + slow(p, x > 3, x > 4) } }
problem a { scheme s; domain 40; steps 5 }";
    let (world, options) = (TestWorld::default(), Options::default());
    let shown = show(&refused_with(&world, text, &options));
    assert!(
        shown.contains("E0417: the states of a definition lie in one region"),
        "{shown}"
    );
    assert!(
        shown.contains("a definition for the states of each region"),
        "{shown}"
    );
}
