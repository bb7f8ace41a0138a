//! Layerwise kernels: their loads, and code for every GPU.

use super::pieces::Streams;
use super::*;
use crate::backend::gpu::{Gpu, compile, service};
use crate::backend::llvm::library::Library;
use crate::kernel::UpdateSet;
use crate::lattice::PerAxis;
use crate::layout::Layout;
use crate::scheme::{Op, Precision, Read, StageId, ZoneId};
use crate::testing::{
    Limits, Rng, add_layers, add_random_zones, maxwell, random_kernels, random_scheme,
};

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

/// A launch has up to 65535 blocks along its third axis, whatever a box has of planes.
#[test]
fn boxes_of_many_planes_take_one_launch() {
    let mut scheme = maxwell(2, Precision::F32, [1_300_000, 4, 16]);
    add_layers(&mut scheme, PerAxis([0, 0, 2]));
    let set = whole(&scheme);
    for threads in [1, 1 << 20] {
        let usual = Shape::of(&scheme);
        for shape in [
            usual,
            Shape {
                most_outer: 7,
                ..usual
            },
        ] {
            let region = scheme
                .grid
                .extent(PerAxis::splat(crate::lattice::HalfIndex::ZERO));
            let start = start(&scheme, &set, shape, region, threads).expect("a launch");
            let march = i64::from(start.params.march);
            assert!(start.blocks[2] <= shape.most_outer);
            assert!(i64::from(start.blocks[2]) * march >= region[Axis::OUTER].len());
            for kernel in ZoneKernel::all(&scheme, &set.layout, StageId(0), 0) {
                let (blocks, _) = kernel.start(&set.layout, shape).expect("a launch");
                assert_eq!(blocks[2], shape.most_outer);
            }
        }
    }
}

/// A launch has up to 65535 blocks along its second axis: where there are many rows, blocks have more of them.
#[test]
fn boxes_of_many_rows_take_one_launch() {
    let mut scheme = maxwell(2, Precision::F32, [8, 300_000, 16]);
    add_layers(&mut scheme, PerAxis([2, 0, 0]));
    let set = whole(&scheme);
    let shape = Shape::of(&scheme);
    assert_eq!(shape.threads[0] * shape.threads[1], 128);
    let region = scheme
        .grid
        .extent(PerAxis::splat(crate::lattice::HalfIndex::ZERO));
    let start = start(&scheme, &set, shape, region, 1).expect("a launch");
    let rows = i64::from(start.blocks[1] * shape.threads[1]);
    assert!(rows >= region[Axis::MIDDLE].len());
    for kernel in ZoneKernel::all(&scheme, &set.layout, StageId(0), 0) {
        let (blocks, threads) = kernel.start(&set.layout, shape).expect("a launch");
        assert!(i64::from(blocks[1] * threads[1]) >= 300_000);
    }
}

/// Old values are kept for updates whose amendments read them alone, in memory that all stages share.
#[test]
fn old_values_are_kept_where_amendments_read_them() {
    let mut scheme = maxwell(2, Precision::F32, [12, 5, 40]);
    add_layers(&mut scheme, PerAxis([3, 0, 0]));
    let layout = Layout::for_gpu(&scheme).expect("a small scheme");
    let before = |scheme: &Scheme| {
        let stages = scheme.stage_ids();
        let all = stages.map(|stage| ZoneKernel::before(scheme, &layout, stage, 0).len());
        all.collect::<Vec<usize>>()
    };
    assert_eq!(
        (before(&scheme), kept_bytes(&scheme, &layout)),
        (vec![0, 0], 0)
    );
    let mut expected = Vec::new();
    for (number, updates) in [(0, 1), (1, 2)] {
        let stage = &mut scheme.stages[number];
        let amended = stage
            .updates
            .iter_mut()
            .filter(|u| !u.amendments.is_empty());
        for update in amended.take(updates) {
            let is_read = |op: &&mut Op| matches!(op, Op::Read(_));
            let ops = &mut update.amendments[0].body.ops;
            *ops.iter_mut().find(is_read).expect("a difference") = Op::Read(Read {
                component: update.target,
                age: 0,
                offset: PerAxis::splat(0),
            });
        }
        let boxes = layout.zones[0].boxes.iter();
        let rows = boxes.map(|b| b.region[Axis::OUTER].len() * b.region[Axis::MIDDLE].len());
        // Rows of 40 or 41 values take two lines of 32.
        expected.push(rows.sum::<i64>() as u64 * updates as u64 * 2 * 128);
        let kept = expected.iter().copied().max();
        assert_eq!(kept_bytes(&scheme, &layout), kept.unwrap_or(0));
    }
    assert_eq!(before(&scheme), [2, 2]);
}

/// The amendments of each update follow each other in their order, with a kernel for each box of a zone.
#[test]
fn amendments_keep_their_order() {
    let mut disordered = 0;
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let limits = Limits {
            dimensions: 3,
            components: 5,
            stages: 2,
            ops: 6,
            length: 9,
            width: 6,
            reach: 2,
        };
        let mut scheme = random_scheme(&mut rng, &limits);
        add_random_zones(&mut rng, &limits, &mut scheme);
        let layout = Layout::for_gpu(&scheme).expect("a small scheme");
        for stage in scheme.stage_ids() {
            let kernels = ZoneKernel::after(&scheme, &layout, stage, 0);
            for update in &scheme.stages[stage.index()].updates {
                let zones: Vec<ZoneId> = update.amendments.iter().map(|a| a.zone).collect();
                disordered += usize::from(!zones.is_sorted());
            }
            let mut symbols: Vec<String> = kernels.iter().map(ZoneKernel::symbol).collect();
            symbols.sort_unstable();
            symbols.dedup();
            assert_eq!(symbols.len(), kernels.len(), "seed {seed}");
            for (number, update) in scheme.stages[stage.index()].updates.iter().enumerate() {
                let own = kernels
                    .iter()
                    .filter(|k| k.updates(&scheme).contains(number));
                let own = own.map(|k| (k.zone, k.part));
                let boxes = |zone: ZoneId| layout.zones[zone.index()].boxes.len();
                let expected = update.amendments.iter().map(|a| a.zone);
                let expected = expected.flat_map(|zone| (0..boxes(zone)).map(move |n| (zone, n)));
                assert!(own.eq(expected), "seed {seed}");
            }
        }
    }
    assert!(disordered > 20, "{disordered}");
}
