//! Where values lie: every value has a place of its own, in both orders of rows.

use std::collections::BTreeMap;
use torre_compiler::cost::Machine;
use torre_compiler::kernel::run_axis;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::{ALIGNMENT, Layout, Lines, Order, RowId};
use torre_compiler::scheme::{Precision, Scheme};
use torre_compiler::testing::{Limits, Rng, elasticity, maxwell, random_scheme};

/// The elements of a layout by their places, ghosts included.
fn places(layout: &Layout) -> BTreeMap<i64, (RowId, [i64; 3])> {
    let mut places = BTreeMap::new();
    let [xs, ys, zs] = Axis::ALL.map(|axis| layout.visible(axis));
    for row in (0..layout.rows).map(RowId) {
        for x in xs.lo..xs.hi {
            for y in ys.lo..ys.hi {
                for z in zs.lo..zs.hi {
                    let element = layout.element(row, PerAxis([x, y, z]));
                    assert!((0..layout.elements).contains(&element), "{row} {x} {y} {z}");
                    let before = places.insert(element, (row, [x, y, z]));
                    assert_eq!(before, None, "{row} {x} {y} {z}");
                }
            }
        }
    }
    places
}

fn schemes() -> [Scheme; 3] {
    [
        maxwell(4, Precision::F32, [5, 7, 33]),
        maxwell(2, Precision::F64, [3, 12, 8]),
        elasticity(Precision::F64, [4, 5, 16]),
    ]
}

/// Schemes without a middle axis that store several rows.
fn planar() -> Vec<Scheme> {
    let limits = Limits {
        width: 9,
        ..Limits::TOWERS
    };
    let schemes = (0..60).map(|seed| random_scheme(&mut Rng::new(seed), &limits));
    let is_planar = |s: &Scheme| run_axis(s) == Axis::OUTER && s.components.len() > 1;
    let found: Vec<Scheme> = schemes.filter(is_planar).collect();
    let wide = |s: &&Scheme| s.grid.cells[Axis::OUTER] > 3;
    assert!(found.iter().filter(wide).count() > 5);
    found
}

#[test]
fn every_value_has_a_place_of_its_own() {
    let order = |scheme: &Scheme| match run_axis(scheme) {
        Axis::MIDDLE => Order::ByComponent,
        _ => Order::ByRow,
    };
    for scheme in schemes().into_iter().chain(planar()) {
        let cpu = Layout::new(&scheme).expect("a small grid");
        let gpu = Layout::for_gpu(&scheme).expect("a small grid");
        assert_eq!([cpu.order, gpu.order], [order(&scheme), Order::ByGroup]);
        assert_eq!(places(&cpu).len(), places(&gpu).len());
    }
}

#[test]
fn planes_follow_each_other_in_files() {
    for scheme in schemes().into_iter().chain(planar()) {
        let layout = Layout::for_files(&scheme).expect("a small grid");
        let groups = places(&layout).into_iter();
        let planes: Vec<i64> = groups.map(|(_, (_, [x, _, _]))| x).collect();
        assert!(planes.is_sorted());
        let first = layout.first_plane();
        let ends = (first, layout.after_planes());
        let inside = |element: &i64| (ends.0..ends.1).contains(element);
        assert!(places(&layout).keys().all(inside));
    }
}

#[test]
fn on_two_axes_each_row_is_one_piece_of_memory() {
    for scheme in planar() {
        let layout = Layout::new(&scheme).expect("a small grid");
        let line = (ALIGNMENT / layout.element_bytes) as i64;
        let planes = layout.visible(Axis::OUTER).len();
        assert_eq!(layout.stride[Axis::OUTER], layout.row_length);
        assert!((0..2 * line).contains(&(layout.row_stride - planes * layout.row_length)));
        for stride in [layout.row_length, layout.row_stride] {
            assert_eq!((stride % line, stride / line % 2), (0, 1));
        }
    }
}

#[test]
fn rows_of_a_component_follow_each_other_on_a_cpu() {
    for scheme in schemes() {
        let layout = Layout::new(&scheme).expect("a small grid");
        let line = (ALIGNMENT / layout.element_bytes) as i64;
        assert_eq!(layout.stride[Axis::MIDDLE], layout.row_length);
        // Odd numbers of cache lines: rows of a group, and those of a component, do not collide in cache sets.
        for stride in [layout.row_length, layout.row_stride] {
            assert_eq!((stride % line, stride / line % 2), (0, 1));
        }
        let plane = i64::from(layout.rows) * layout.row_stride;
        assert_eq!(layout.stride[Axis::OUTER], plane);
    }
}

/// Parts of the planes hold all values in them and no other ones, whatever the order of rows is.
#[test]
fn parts_hold_the_values_of_their_groups() {
    let inside = |lines: &Lines, element: i64| {
        let from = element - lines.first;
        let n = from.div_euclid(lines.stride.max(1));
        from >= 0 && n < lines.count && from - n * lines.stride < lines.length
    };
    for scheme in schemes().into_iter().chain(planar()) {
        let [cpu, gpu] = [Layout::new(&scheme), Layout::for_gpu(&scheme)];
        for layout in [cpu, gpu].map(|layout| layout.expect("a small grid")) {
            let (planes, rows) = (Interval::new(1, 3), Interval::new(0, 2));
            let part = layout.part(planes, rows);
            for (element, (row, [x, y, z])) in places(&layout) {
                let wanted = planes.contains(x) && rows.contains(y);
                let found = part.iter().filter(|l| inside(l, element)).count();
                assert_eq!(found, usize::from(wanted), "{row} {x} {y} {z}");
            }
        }
    }
}

#[test]
fn sweeps_use_a_shared_cache_that_is_fast() {
    let machine = |l3_rate_far: f64, threads: usize| Machine {
        threads,
        cores: 64,
        l1: 32 << 10,
        l2: 1 << 20,
        l3: 32 << 20,
        l2_rate: 117e9,
        l3_rate: 117e9,
        l3_rate_all: 64.0 * 117e9,
        l3_rate_far,
        memory_rate: 42e9,
        memory_rate_all: 85e9,
        vector_rate: 4e9,
        vector_rate_all: 64.0 * 4e9,
        vector_rate_slowest: 4e9,
        vector_bytes: 64,
    };
    assert_eq!(machine(117e9, 2).blocking().sweep, 8 << 20);
    assert_eq!(machine(117e9, 8).blocking().sweep, 2 << 20);
    // A share that is smaller than half of the core's own cache.
    assert_eq!(machine(117e9, 64).blocking().sweep, 1 << 19);
    assert_eq!(machine(50e9, 2).blocking().sweep, 1 << 19);
}
