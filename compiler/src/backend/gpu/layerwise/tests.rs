//! Layerwise kernels: their loads, and code for every GPU.

use super::pieces::Streams;
use super::*;
use crate::backend::gpu::{Gpu, compile, service};
use crate::backend::llvm::library::Library;
use crate::kernel::UpdateSet;
use crate::layout::Layout;
use crate::scheme::Precision;
use crate::testing::{Limits, Rng, maxwell, random_kernels, random_scheme};

fn whole(scheme: &Scheme) -> KernelSet {
    let kernels = scheme.stage_ids().map(|stage| RowKernel {
        stage,
        phase: 0,
        updates: UpdateSet::all(scheme.stages[stage.index()].updates.len()),
        zones: Default::default(),
    });
    KernelSet {
        layout: Layout::for_gpu(scheme).expect("a small scheme"),
        kernels: kernels.collect(),
        bands: Default::default(),
        ends: false,
        ahead: false,
    }
}

/// Each value of the six components comes from memory once per group of the march, but for neighbours along the other
/// axes.
#[test]
fn what_lies_along_the_march_is_loaded_once() {
    let scheme = maxwell(4, Precision::F32, [8, 8, 64]);
    let set = whole(&scheme);
    for kernel in &set.kernels {
        let program = RowProgram::new(&scheme, &set, kernel);
        let streams = Streams::new(&program, &set.layout, 4, 96);
        let kept: Vec<i64> = streams
            .list
            .iter()
            .filter(|s| s.kept)
            .map(pieces::Stream::span)
            .collect();
        // Two of the three components that are read have differences along the march.
        assert_eq!(kept, [3, 3]);
        let loads = streams.fresh().count();
        // Kept ones, own ones, three neighbours of one and four of the other across, and two pieces beside two vectors.
        assert_eq!(loads, 2 + 3 + 3 + 4 + 2 * 2, "{streams:?}");
    }
}

#[test]
fn every_load_finds_its_lanes() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let limits = Limits {
            dimensions: 3,
            components: 4,
            stages: 3,
            ops: 12,
            length: 24,
            width: 6,
            reach: 9,
        };
        let scheme = random_scheme(&mut rng, &limits);
        let set = KernelSet {
            layout: Layout::for_gpu(&scheme).expect("a small scheme"),
            kernels: random_kernels(&mut rng, &scheme),
            bands: Default::default(),
            ends: false,
            ahead: false,
        };
        let lanes = i64::from(lanes(&scheme));
        for kernel in &set.kernels {
            let program = RowProgram::new(&scheme, &set, kernel);
            let budget = rng.within(0, 64);
            let streams = Streams::new(&program, &set.layout, lanes, budget);
            for place in program.loads() {
                let found = streams.lanes_of(place);
                assert_eq!(found.len() as i64, lanes, "seed {seed}");
                for (i, (stream, distance, lane)) in found.into_iter().enumerate() {
                    let at = streams.displacement(streams.list[stream].piece, distance) + lane;
                    assert_eq!(at, place.displacement() + i as i64, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn every_gpu_gets_kernels() {
    let Ok(library) = Library::open().inspect_err(|error| eprintln!("skipped: {error}")) else {
        return;
    };
    for precision in [Precision::F32, Precision::F64] {
        let scheme = maxwell(4, precision, [8, 8, 64]);
        let set = whole(&scheme);
        let mut module = Module::new();
        emit(&mut module, &scheme, &set, Shape::of(&scheme));
        service::emit(&mut module, precision);
        for gpu in Gpu::all() {
            let ptx = compile(library, &module, gpu).expect("valid IR").text;
            for kernel in &set.kernels {
                assert!(ptx.contains(&format!(".visible .entry torre_{kernel}(")));
            }
            let vectors = match precision {
                Precision::F32 => "ld.global.nc.v4.b32",
                Precision::F64 => "ld.global.nc.v2.b64",
            };
            assert!(ptx.contains(vectors), "{ptx}");
        }
    }
}

#[test]
fn boxes_are_covered() {
    let scheme = maxwell(4, Precision::F32, [40, 9, 70]);
    let set = whole(&scheme);
    let shape = Shape::of(&scheme);
    for (region, threads) in [
        ([(0, 40), (0, 9), (0, 70)], 1),
        ([(0, 40), (0, 9), (0, 70)], 1 << 20),
        ([(3, 4), (2, 9), (5, 6)], 1 << 10),
    ] {
        let region = Region::from_fn(|a| {
            let (lo, hi) = region[a.index()];
            crate::lattice::Interval::new(lo, hi)
        });
        let start = start(&scheme, &set, shape, region, threads).expect("a small box");
        let params = start.params;
        let [lo, hi, march] = [params.lo, params.hi, params.march].map(i64::from);
        let [outer, middle] = [params.outer, params.middle].map(i64::from);
        let [x, y, z] = start.blocks.map(i64::from);
        assert_eq!(
            (outer, middle),
            (region[Axis::OUTER].len(), region[Axis::MIDDLE].len())
        );
        assert!(z * march >= outer && (z - 1) * march < outer);
        assert!(y * 4 >= middle && (y - 1) * 4 < middle);
        assert!(lo / 4 * 4 + x * 128 >= hi && lo / 4 * 4 + (x - 1) * 128 < hi);
        assert!(march <= 16);
    }
}
