//! Where tiny values become 0 on a GPU: the threshold itself, and the numbers beside it.

use super::{compare_any, library};
use torre_compiler::driver::load;
use torre_compiler::layerwise::Shape;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::Precision;
use torre_compiler::statics::NoFiles;
use torre_grammar::source::Source;
use torre_runtime::world::FileWorld;
use torre_suite::interpreted::Interpreted;

/// Values that a step brings to a factor times the threshold, and to numbers beside it.
fn around_threshold(precision: Precision, factor: &str) -> Resolved {
    let (threshold, digits) = match precision {
        Precision::F32 => (-100, 23),
        Precision::F64 => (-960, 52),
    };
    let text = format!(
        "scheme scaled {{
           axes x
           field u : scalar on nodes
           step {{
             allow W0301
             u = {factor} * u[+1]
           }}
         }}
         problem p {{
           scheme scaled
           domain 64
           boundary x: periodic
           init u = 2^({threshold} + 4) * (if x < 32 then 1 + (x - 16) / 2^{digits} else -1 - (x - 48) / 2^{digits})
           steps 2
         }}"
    );
    let options = Options {
        precision,
        ..Options::default()
    };
    let world = FileWorld::beside("".as_ref());
    let loaded = load(&world, &Source::new("tiny", text), &options);
    loaded.expect("a right program")
}

#[test]
fn tiny_values_become_zero_where_the_reference_has_zero() {
    let Some(library) = library() else { return };
    for precision in [Precision::F32, Precision::F64] {
        for factor in ["1 / 16", "-1 / 16", "1 / 4", "-1 / 4", "1 / 32"] {
            let Resolved {
                scheme, problem, ..
            } = around_threshold(precision, factor);
            let device = Interpreted::new();
            let shape = Shape::of(&scheme);
            let result = compare_any(library, &device, &scheme, &problem, &NoFiles, shape, None);
            assert!(result.is_ok(), "{precision} {factor}: {result:?}");
        }
    }
}
