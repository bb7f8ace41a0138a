//! The examples as users run them, interpreted and on a real GPU.

use super::*;
use torre_compiler::backend::gpu::Gpu;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::CudaDevice;
use torre_suite::small_example;

/// The examples on small domains, by towers, too, where they fit.
fn examples(device: impl Fn() -> Box<dyn Device>, precision: Precision) {
    let Some(library) = library() else { return };
    let paths = torre_suite::examples();
    let (mut in_blocks, mut in_pyramids) = (0, 0);
    for (number, path) in paths.into_iter().enumerate() {
        // Some are optimised, as users' are. That takes most of the time.
        let effort = match (precision, number % 4) {
            (Precision::F32, 0) => Effort::Full,
            (Precision::F64, 2) => Effort::Quick,
            _ => Effort::Least,
        };
        effort.choose();
        let world = FileWorld::beside(&path);
        let source = small_example(&path);
        let options = Options {
            precision,
            overrides: vec![("steps".to_owned(), "3".to_owned())],
            ..Options::default()
        };
        let resolved = load(&world, &source, &options).expect("an example without errors");
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let cells = scheme.grid.cells.0.iter().product::<i64>();
        assert!(cells <= 1 << 17, "{}: {cells} cells", path.display());
        let files = LoadedFiles::load(&world, scheme).expect("the files of an example");
        let shape = Shape::of(scheme);
        let result = compare_any(library, &*device(), scheme, problem, &files, shape, None);
        assert!(
            result.is_ok(),
            "{}: {}",
            path.display(),
            result.unwrap_err()
        );
        let device = device();
        let large = scheme.grid.dimensions() < 3 && cells > 20_000;
        if precision != Precision::F32 || large {
            continue;
        }
        let schedule = match scheme.grid.dimensions() {
            1 => "pyramid(B = 100, TH = 2)",
            2 => "pyramid(B = 40, TH = 2, Z = 100)",
            _ => "torre(D = 1, TH = 2)",
        };
        let Some((plan, model)) = planned(&*device, scheme, problem, schedule) else {
            continue;
        };
        assert_eq!(plan.note, None);
        if plan.patches().is_some() {
            let blocks = plan.compile_blocks(library, scheme, &model);
            let blocks = blocks.expect("valid IR").expect("pyramids");
            let asked = patches::Asked {
                scheme,
                problem,
                files: &files,
            };
            let result = patches::compare_any(library, &*device, asked, shape, &blocks);
            let result = result.map_err(|error| format!("{}: {error}", path.display()));
            assert_eq!(result, Ok(()));
            in_pyramids += 1;
            continue;
        }
        let (_, towers) = plan.compile(library, scheme, &model).expect("valid IR");
        let result = compare_any(
            library,
            &*device,
            scheme,
            problem,
            &files,
            shape,
            towers.as_ref(),
        );
        let result = result.map_err(|error| format!("{}: {error}", path.display()));
        assert_eq!(result, Ok(()));
        in_blocks += 1;
    }
    let first = precision == Precision::F32;
    assert_eq!([in_blocks > 0, in_pyramids > 3], [first; 2]);
}

// Tests in two parts, so that two cores share the work.

#[test]
fn examples_in_f32_give_the_bits_of_the_reference() {
    examples(|| Box::new(Interpreted::new()), Precision::F32);
}

#[test]
fn examples_in_f64_give_the_bits_of_the_reference() {
    examples(|| Box::new(Interpreted::new()), Precision::F64);
}

/// The GPU of this machine; without one, says how many tests are skipped.
fn real(tests: usize) -> bool {
    match CudaDevice::open(0) {
        Ok(_) => true,
        Err(error) => {
            eprintln!("skipped: {tests} tests on a GPU: {error}");
            false
        }
    }
}

fn open() -> Box<dyn Device> {
    Box::new(CudaDevice::open(0).expect("the GPU that was found before"))
}

#[test]
fn runs_on_a_real_gpu_give_the_bits_of_the_reference() {
    if !real(seeds().count() + 2) {
        return;
    }
    random_runs(open, seeds());
    for precision in [Precision::F32, Precision::F64] {
        examples(open, precision);
    }
}

#[test]
fn every_gpu_is_found_by_its_name() {
    for gpu in Gpu::all() {
        assert_eq!(Gpu::named(gpu.name), Some(gpu));
    }
}
