//! Absorbing layers in time blocks of towers.

use super::*;

/// With a source and a probe in layers, a time block, lower ones, and single steps that amend the values that stages
/// have stored.
#[test]
fn absorbing_layers_by_towers_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let cases = [
        (
            "maxwell42",
            "E.z",
            Precision::F32,
            "torre(D = 1, TH = 8)",
            "16 x 17 x 18",
        ),
        (
            "maxwell22",
            "E.z",
            Precision::F64,
            "torre(D = 1, TH = 8)",
            "14 x 13 x 16",
        ),
        (
            "acoustics",
            "p",
            Precision::F32,
            "torre(D = 2, TH = 8)",
            "16 x 15 x 14",
        ),
    ];
    for (name, field, precision, schedule, domain) in cases {
        let module = if name == "acoustics" { name } else { "maxwell" };
        let text = format!(
            "use std::{module}::{name}
problem p {{
  scheme {name}
  domain {domain}
  boundary x: cpml(4), y: pec | cpml(3), z: cpml(5)
  source {field} at (7, 8, 3) += exp(-((t - 5)/2)^2)
  probe {field} at (12, 3, 7)
  steps 13
}}
"
        );
        let resolved = resolved_in(&text, precision);
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let (plan, model) = plan_of(&device, scheme, problem, schedule);
        assert!(plan.towers().is_some_and(|plan| !plan.variants.is_empty()));
        let towers = &compiled(library, scheme, &plan, &model);
        assert!(runs_amendments(towers), "{name}");
        let by_towers = starts(library, &device, name, scheme, problem, Some(towers));
        let each = starts_per_step(library, &device, name, scheme, problem);
        assert!(
            by_towers < each * problem.steps / 2,
            "{name}: {by_towers} {each}"
        );
    }
}

/// A box of total fields within layers: faces and layers across all axes.
#[test]
fn boxes_within_layers_by_towers_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let text = "use std::maxwell::maxwell42
problem p {
  scheme maxwell42
  domain 18 x 17 x 12
  boundary x: cpml(3), y: cpml(2), z: cpml(1)
  incident wave {
    E = [cos(t + x + 2*y - z), sin(t - x + y), cos(t + z)]
    H = [sin(t + x - y), cos(t - 2*x + z), cos(t - y)]
  }
  total x = 7..11, y = 6..11, z = 4..7 from wave
  steps 2
}
";
    let world = FileWorld::beside(std::path::Path::new("."));
    let resolved = load(&world, &Source::new("box", text), &Options::default());
    let resolved = resolved.unwrap_or_else(|e| panic!("{e:?}"));
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
    assert_eq!(plan.note, None);
    let towers = &compiled(library, scheme, &plan, &model);
    assert!(runs_amendments(towers));
    // Both steps are one time block.
    let starts = starts(library, &device, "box", scheme, problem, Some(towers));
    assert!(starts <= 3, "{starts}");
}

/// [`LORENTZ`] as a base with these axes has it. Layers lie across the body.
fn dispersive(base: &str, update: &str, problem: &str) -> String {
    format!(
        "use std::maxwell::{base}
use std::curl::curl
{LORENTZ}
scheme dispersive : {base} {{
  region body = x > 3 and x < 11 and y > 2
  region ball = (x - 7)^2 + (y - 6)^2 < 20
  step {{ {update} }}
}}
problem p {{
  scheme dispersive
  {problem}
}}
"
    )
}

#[test]
fn media_with_memory_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let two = "Ez += dt * (d(H.y, x, order) - d(H.x, y, order) - lorentz(Ez, body, dt) - 0.5 * lorentz(Ez, ball, dt))";
    let three = "E += dt * (curl(H, order) - [
      lorentz(E.x, body, dt) + 0.5 * lorentz(E.x, ball, dt), lorentz(E.y, body, dt), lorentz(E.z, ball, dt)])";
    let in_space = "domain 16 x 17 x 18
  boundary x: cpml(4), y: pec | cpml(3), z: cpml(5)
  source E.z at (7, 8, 3) += exp(-((t - 5)/2)^2)
  source E.y at (5, 5, 9) += 0.3 * sin(t)
  probe E.z at (12, 3, 7)
  probe P of E.y at (6, 6, 9) every 8
  steps 13";
    let around = "domain 14 x 34 x 16
  boundary x: pec, y: periodic, z: pec | cpml(3)
  source E.x at (7, 8, 3) += exp(-((t - 5)/2)^2)
  steps 11";
    let plane = "domain 20 x 44
  boundary x: cpml(4), y: pec | cpml(3)
  source Ez at (7, 8) += exp(-((t - 5)/2)^2)
  probe J of Ez at (6, 6) every 4
  steps 11";
    let cases = [
        (
            "maxwell42",
            three,
            in_space,
            "torre(D = 1, TH = 8)",
            &[Precision::F32][..],
        ),
        (
            "maxwell22",
            three,
            around,
            "torre(D = 1, TH = 4)",
            &[Precision::F64],
        ),
        (
            "maxwell_tm",
            two,
            plane,
            "pyramid(B = 12, TH = 4, Z = 40)",
            &[Precision::F32, Precision::F64],
        ),
    ];
    for (base, update, problem, schedule, precisions) in cases {
        for precision in precisions.iter().copied() {
            let resolved = resolved_in(&dispersive(base, update, problem), precision);
            let (scheme, problem) = (&resolved.scheme, &resolved.problem);
            let updates = scheme.stages.iter().flat_map(|s| &s.updates);
            let old = |u: &&Update| u.amendments.iter().any(|a| scheme.needs_old(u, a));
            assert!(updates.filter(old).count() > 0, "{base}");
            let each = starts_per_step(library, &device, base, scheme, problem);
            let (plan, model) = plan_of(&device, scheme, problem, schedule);
            if plan.patches().is_some() {
                let blocks = plan.compile_blocks(library, scheme, &model);
                let blocks = blocks.expect("valid IR").expect("pyramids");
                let asked = patches::Asked {
                    scheme,
                    problem,
                    files: &NoFiles,
                };
                let shape = Shape::of(scheme);
                let result = patches::compare_any(library, &device, asked, shape, &blocks);
                assert_eq!(result, Ok(()), "{base}");
                continue;
            }
            let towers = &compiled(library, scheme, &plan, &model);
            assert!(runs_amendments(towers), "{base}");
            let by_towers = starts(library, &device, base, scheme, problem, Some(towers));
            assert!(
                by_towers < each * problem.steps / 2,
                "{base}: {by_towers} {each}"
            );
        }
    }
}
