//! Derived schemes: the replacements, their order, and the names that each text sees.

use crate::support::*;
use torre_compiler::resolve::{Options, Resolved};

const BASE: &str = "
scheme base {
  axes x
  param h     = 1
  param dt    = 0.5 * h
  const twice = 2
  coef k on nodes = 1
  field u : scalar on nodes
  field v : scalar on cells at 1/2
  step {
    let g = d(u, x)
    v += dt * g
    let s = twice * d(v, x)
    u += dt * k * s
  }
}
";

/// The scheme `name` of a text, as text, without its own name.
fn printed(world: &TestWorld, text: &str, name: &str) -> String {
    let problem = format!("problem p {{ scheme {name}; domain 12; steps 1 }}");
    let r = resolved_with(world, &format!("{text}{problem}"), &Options::default());
    r.scheme.to_string().replacen(name, "", 1)
}

/// A derived scheme is the one that is written out.
fn same(derived: &str, written: &str) {
    let text = format!(
        "{BASE}\nscheme derived : base {{\n{derived}\n}}\nscheme written {{\n{written}\n}}\n"
    );
    let world = TestWorld::default();
    let found = printed(&world, &text, "derived");
    assert_eq!(found, printed(&world, &text, "written"));
    assert_ne!(
        found,
        printed(&world, &text, "base"),
        "nothing was replaced"
    );
}

fn refused(text: &str) -> String {
    show(&checked(&TestWorld::default(), &format!("{BASE}{text}")))
}

#[test]
fn declarations_replace_those_of_the_same_name() {
    same(
        "param h = 2
         const twice = 3
         coef k = x + late
         const late = 7",
        "axes x
         param h = 2
         param dt = 0.5 * h
         const late = 7
         coef k on nodes = x + late
         field u : scalar on nodes
         field v : scalar on cells at 1/2
         step {
           v += dt * d(u, x)
           u += dt * k * (3 * d(v, x))
         }",
    );
    // A parameter may become a coefficient, and a coefficient a constant.
    same(
        "coef twice on nodes = x
         const k = 4",
        "axes x
         param dt = 0.5
         coef twice on nodes = x
         field u : scalar on nodes
         field v : scalar on cells at 1/2
         step {
           v += dt * d(u, x)
           u += dt * 4 * (twice * d(v, x))
         }",
    );
}

#[test]
fn statements_replace_those_on_the_same_components() {
    same(
        "field w : scalar on nodes
         field z : scalar on nodes
         step {
           w += u
           let s = d2(u, x)
           u -= w * s
           z = u
         }",
        "axes x
         param dt = 0.5
         coef k on nodes = 1
         field u : scalar on nodes
         field v : scalar on cells at 1/2
         field w : scalar on nodes
         field z : scalar on nodes
         step {
           v += dt * d(u, x)
           w += u
           u -= w * d2(u, x)
           z = u
         }",
    );
    // A `let` of the derived step is one of the base's, where it has the same name.
    same(
        "step { let s = d(v, x, [3]) }",
        "axes x
         param dt = 0.5
         coef k on nodes = 1
         field u : scalar on nodes
         field v : scalar on cells at 1/2
         step {
           v += dt * d(u, x)
           u += dt * k * d(v, x, [3])
         }",
    );
    // Other `let`s are not seen by the base's statements; `let`s of the base are seen by derived ones.
    same(
        "step { let k = 7; v -= k * g }",
        "axes x
         param dt = 0.5
         coef k on nodes = 1
         field u : scalar on nodes
         field v : scalar on cells at 1/2
         step {
           v -= 7 * d(u, x)
           u += dt * k * (2 * d(v, x))
         }",
    );
}

#[test]
fn parts_of_statements_are_replaced() {
    let text = "
scheme base {
  axes x, y
  field v : vector on nodes
  field w : scalar on nodes
  step {
    v += [w, 2*w]
    w -= v.x
    where x < 3 { v.x = w; w = 2 * w } else { w = 3 * w }
    v.y += w
  }
}
scheme derived : base {
  step {
    v.x += 3 * w
    w += v.y
    w *= 1
  }
}
scheme written {
  axes x, y
  field v : vector on nodes
  field w : scalar on nodes
  step {
    v.y += 2 * w
    v.x += 3 * w
    w += v.y
    w = w + w
    v.y += w
  }
}
";
    // There is no `*=`; the second statement on `w` replaces the second one of the base, which was its `where`.
    let text = text.replace("w *= 1", "w = w + w");
    let both = |name: &str| {
        let problem = format!("problem p {{ scheme {name}; domain 12 x 12; steps 1 }}");
        resolved(&format!("{text}{problem}"))
            .scheme
            .to_string()
            .replacen(name, "", 1)
    };
    assert_eq!(both("derived"), both("written"));
}

#[test]
fn lines_of_descent_and_modules_keep_their_names() {
    let world = TestWorld {
        modules: vec![(
            "lib",
            "const gain = 3
             def twice(f) = gain * f
             scheme one { axes x; param n = 2; field u : scalar on nodes; step { u += n * twice(u) } }
             scheme two : one { param n = 4; field w : scalar on nodes; step { w = gain * u } }
             schedule all for one { x: span }",
        )],
        ..TestWorld::default()
    };
    let text = "use lib::two
        def twice(f) = 2 * f
        scheme three : two { param n = 5; step { u -= twice(u) - n * w } }
        scheme four : lib::two { region r = x < 3; coef c = n }
        schedule own for two { x: span }
        schedule other for four { x: span }
        scheme written {
          axes x
          field u : scalar on nodes
          field w : scalar on nodes
          step { u -= 2 * u - 5 * w; w = 3 * u }
        }
        problem p { scheme NAME { n = 6 }; domain 12; steps 1 }";
    let of = |name: &str| -> Resolved {
        let text = match name {
            "written" => text.replace("NAME { n = 6 }", name),
            _ => text
                .replace("NAME { n = 6 }", name)
                .replace("param n = 5", "const n = 5"),
        };
        resolved_with(&world, &text, &Options::default())
    };
    let show = |name: &str| of(name).scheme.to_string().replacen(name, "", 1);
    assert_eq!(show("three"), show("written"));
    let names = |r: &Resolved| -> Vec<String> {
        r.schedules.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&of("three")), ["own", "all"]);
    assert_eq!(names(&of("four")), ["own", "other", "all"]);
    // The problem sets parameters that any scheme of the line declares.
    let set = resolved_with(&world, &text.replace("NAME", "three"), &Options::default());
    assert!(set.scheme.to_string().contains('6'), "{}", set.scheme);
}

#[test]
fn positions_are_kept_and_problems_replace_again() {
    let text = format!(
        "{BASE}
scheme derived : base {{ coef k = 2; coef e on cells = 5 }}
problem p {{ scheme derived {{ h = 3 }}; domain 12; coef k = x; steps 1 }}"
    );
    let r = resolved(&text);
    let k = r
        .scheme
        .coefs
        .iter()
        .find(|c| c.name == "k")
        .expect("k is read");
    assert_eq!(k.value.to_string(), "pos.inner");
    assert_eq!(r.scheme.grid.spacing.0[2], 3.0);
    assert_eq!(r.scheme.grid.dt, 1.5);
}

#[test]
fn what_does_not_fit_is_refused() {
    let message = refused("scheme a : b { }\nscheme b : a { }");
    assert!(
        message.contains("error E0107: scheme `a` is derived from itself")
            || message.contains("error E0107: scheme `b` is derived from itself"),
        "{message}"
    );
    let message = refused("scheme a : bass { }");
    assert!(
        message.contains("error E0101: there is no scheme `bass` here"),
        "{message}"
    );
    assert!(message.contains("did you mean `base`?"), "{message}");
    let message = refused("scheme a : base { axes x }");
    assert!(
        message.contains("error E0416: a derived scheme has the axes of its base"),
        "{message}"
    );
    let message = refused("scheme a : base { step { u += 1; v += 1 } }");
    assert!(
        message.contains("error E0416: these statements stand in another order in the base"),
        "{message}"
    );
    let message = refused("const c0 = 3\nscheme a : base { coef c0 = 1 }");
    assert!(
        message.contains("error E0416: `c0` means something else"),
        "{message}"
    );
    let message = refused("scheme a : base { coef q = 1; coef q = 2 }");
    assert!(
        message.contains("error E0103: `q` is defined twice"),
        "{message}"
    );
    let message = refused("scheme a : base { param h = 2; param h = 3 }");
    assert!(
        message.contains("error E0103: `h` is defined twice"),
        "{message}"
    );
    let message = refused("scheme a : base { field x : scalar on nodes }");
    assert!(
        message.contains("error E0103: `x` is defined twice"),
        "{message}"
    );
    let message = refused("scheme a : base { step { u += 1 }; step { u += 2 } }");
    assert!(
        message.contains("error E0411: the scheme has two steps"),
        "{message}"
    );
    // The statements of a base are checked with the declarations of the derived scheme.
    let message = refused("scheme a : base { field k : scalar on cells }");
    assert!(message.contains("error E0201"), "{message}");
}

#[test]
fn new_names_are_no_extents_of_the_base() {
    let base = "scheme base { axes x\n field u : scalar on nodes\n step { u = lx * nx } }\n";
    for name in ["lx", "nx"] {
        let text = format!("{base}scheme a : base {{ const {name} = 77 }}");
        let message = show(&checked(&TestWorld::default(), &text));
        let expected = format!("error E0416: texts of a base mean the domain by `{name}`");
        assert!(message.contains(&expected), "{message}");
    }
    let other = format!("{base}scheme a : base {{ const ly = 77 }}");
    let message = show(&checked(&TestWorld::default(), &other));
    assert!(!message.contains("E0416"), "{message}");
}
