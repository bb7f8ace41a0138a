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
        let options = Options {
            precision,
            ..Options::default()
        };
        let world = FileWorld::beside(std::path::Path::new("."));
        let resolved = load(&world, &Source::new("layers", &text), &options);
        let resolved = resolved.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let (plan, model) = plan_of(&device, scheme, problem, schedule);
        assert!(
            plan.towers
                .as_ref()
                .is_some_and(|plan| !plan.variants.is_empty())
        );
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
