//! Schemes made by hand. Every tap has a coefficient of its own, so that influences cannot cancel.

use torre_compiler::lattice::{Axis, HalfIndex, PerAxis};
use torre_compiler::scheme::*;

/// A component: name, halves per axis, time levels.
pub type Comp = (&'static str, [i64; 3], u8);
/// A read: component, offset, age.
pub type Tap = (u32, [i32; 3], u8);
/// An update: target and reads.
pub type Line = (u32, Vec<Tap>);

pub const CELLS: i64 = 32;

/// A scheme over the axes whose flag is set, with `CELLS` cells along each.
pub fn scheme(
    name: &str,
    axes: [bool; 3],
    boundary: Boundary,
    components: &[Comp],
    stages: Vec<Vec<Line>>,
) -> Scheme {
    let axes = PerAxis(axes);
    let grid = Grid {
        axes: PerAxis::from_fn(|a| axes[a].then(|| ["x", "y", "z"][a.index()].to_string())),
        cells: axes.map(|on| if on { CELLS } else { 1 }),
        spacing: PerAxis::splat(1.0),
        dt: 1.0,
        boundary: PerAxis::splat([boundary; 2]),
    };
    let components: Vec<Component> = components
        .iter()
        .map(|&(name, halves, time_levels)| Component {
            name: name.to_string(),
            position: PerAxis(halves.map(HalfIndex)),
            time: HalfIndex::ZERO,
            time_levels,
        })
        .collect();
    let mut taps = 0;
    let mut update = |(target, reads): Line| {
        let mut ops = vec![Op::Const(0.0)];
        let mut sum = Value(0);
        for (component, offset, age) in reads {
            taps += 1;
            let at = ops.len() as u32;
            ops.push(Op::Const(generic(taps)));
            ops.push(Op::Read(Read {
                component: ComponentId(component),
                offset: PerAxis(offset),
                age,
            }));
            ops.push(Op::Fma(Value(at), Value(at + 1), sum));
            sum = Value(at + 2);
        }
        let position = components[target as usize].position;
        Update {
            target: ComponentId(target),
            region: grid.live(position),
            mask: None,
            body: Body { ops, result: sum },
            amendments: Vec::new(),
        }
    };
    let stages = stages
        .into_iter()
        .map(|lines| Stage {
            updates: lines.into_iter().map(&mut update).collect(),
        })
        .collect();
    let scheme = Scheme {
        name: name.to_string(),
        precision: Precision::F64,
        grid,
        components,
        coefs: Vec::new(),
        files: Vec::new(),
        stages,
        zones: Vec::new(),
        states: Vec::new(),
    };
    assert_eq!(verify(&scheme), Ok(()));
    scheme
}

/// Numbers in 0.1..0.3 without relations between them.
fn generic(n: u64) -> f64 {
    let bits = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
    0.1 + 0.2 * bits as f64 / (1u64 << 52) as f64
}

/// The offsets of a staggered difference of even order onto a target at an index.
pub fn staggered(onto: HalfIndex, order: i32) -> std::ops::RangeInclusive<i32> {
    let half = order / 2;
    if onto.is_half() {
        1 - half..=half
    } else {
        -half..=half - 1
    }
}

pub fn along(axis: usize, offset: i32) -> [i32; 3] {
    let mut at = [0; 3];
    at[axis] = offset;
    at
}

/// FDTD on the Yee lattice: components Ex, Ey, Ez, Hx, Hy, Hz; stages H, E.
pub fn maxwell(order: i32, boundary: Boundary) -> Scheme {
    let components: [Comp; 6] = [
        ("E.x", [1, 0, 0], 1),
        ("E.y", [0, 1, 0], 1),
        ("E.z", [0, 0, 1], 1),
        ("H.x", [0, 1, 1], 1),
        ("H.y", [1, 0, 1], 1),
        ("H.z", [1, 1, 0], 1),
    ];
    let curl = |target: u32, source: u32, onto: HalfIndex| -> Vec<Line> {
        (0..3u32)
            .map(|a| {
                let (b, c) = ((a + 1) % 3, (a + 2) % 3);
                let mut reads = vec![(target + a, [0; 3], 0)];
                for (component, axis) in [(c, b), (b, c)] {
                    for o in staggered(onto, order) {
                        reads.push((source + component, along(axis as usize, o), 0));
                    }
                }
                (target + a, reads)
            })
            .collect()
    };
    scheme(
        &format!("maxwell{order}2"),
        [true; 3],
        boundary,
        &components,
        vec![curl(3, 0, HalfIndex::HALF), curl(0, 3, HalfIndex(0))],
    )
}

/// u at the next time level from u and the level before it, in two time levels: in place.
pub fn wave(axes: [bool; 3], order: i32) -> Scheme {
    let mut reads = vec![(0, [0; 3], 1), (0, [0; 3], 0)];
    for axis in (0..3).filter(|&a| axes[a]) {
        for o in 1..=order / 2 {
            reads.push((0, along(axis, -o), 0));
            reads.push((0, along(axis, o), 0));
        }
    }
    let components = [("u", [0; 3], 2)];
    scheme(
        "wave",
        axes,
        Boundary::Zero,
        &components,
        vec![vec![(0, reads)]],
    )
}

/// The heat equation in one dimension with two time levels.
pub fn diffusion() -> Scheme {
    let reads = (-1..=1).map(|o| (0, along(2, o), 0)).collect();
    scheme(
        "diffusion",
        [false, false, true],
        Boundary::Zero,
        &[("u", [0; 3], 2)],
        vec![vec![(0, reads)]],
    )
}

/// First-order upwind with `time_levels` time levels and the given end: reads from lower indices only.
pub fn upwind(time_levels: u8, boundary: Boundary) -> Scheme {
    let reads = vec![(0, [0; 3], 0), (0, along(2, -1), 0)];
    scheme(
        "upwind",
        [false, false, true],
        boundary,
        &[("u", [0, 0, 1], time_levels)],
        vec![vec![(0, reads)]],
    )
}

/// Velocity and stress in the plane, fourth order: stages v, S.
pub fn elastic() -> Scheme {
    let components: [Comp; 5] = [
        ("v.x", [1, 0, 0], 1),
        ("v.z", [0, 0, 1], 1),
        ("S.xx", [0, 0, 0], 1),
        ("S.zz", [0, 0, 0], 1),
        ("S.xz", [1, 0, 1], 1),
    ];
    let d = |line: &mut Line, source: u32, axis: Axis| {
        let onto = HalfIndex(components[line.0 as usize].1[axis.index()]);
        for o in staggered(onto, 4) {
            line.1.push((source, along(axis.index(), o), 0));
        }
    };
    let (x, z) = (Axis::OUTER, Axis::INNER);
    let line = |target: u32, sources: &[(u32, Axis)]| {
        let mut line = (target, vec![(target, [0; 3], 0)]);
        for &(source, axis) in sources {
            d(&mut line, source, axis);
        }
        line
    };
    let v = vec![line(0, &[(2, x), (4, z)]), line(1, &[(4, x), (3, z)])];
    let s = vec![
        line(2, &[(0, x), (1, z)]),
        line(3, &[(0, x), (1, z)]),
        line(4, &[(0, z), (1, x)]),
    ];
    scheme(
        "elastic",
        [true, false, true],
        Boundary::Zero,
        &components,
        vec![v, s],
    )
}

/// One component that two stages of a step advance, with 3 time levels, and one that reads old versions of it.
pub fn multistage() -> Scheme {
    let u = |o: i32, age: u8| (0, along(2, o), age);
    let stages = vec![
        vec![(0, vec![u(0, 0), u(1, 0), u(-2, 1)])],
        vec![(1, vec![(1, [0; 3], 0), u(-1, 2), u(0, 0)])],
        vec![(0, vec![u(0, 1), (1, along(2, -1), 0)])],
    ];
    scheme(
        "multistage",
        [false, false, true],
        Boundary::Zero,
        &[("u", [0; 3], 3), ("w", [0, 0, 1], 1)],
        stages,
    )
}

/// A wide stage, then a narrow one: their mean is narrower than the wide one.
pub fn mixed_orders() -> Scheme {
    let wide = staggered(HalfIndex::HALF, 4).map(|o| (0, along(2, o), 0));
    let narrow = staggered(HalfIndex(0), 2).map(|o| (1, along(2, o), 0));
    let stages = vec![
        vec![(1, wide.chain([(1, [0; 3], 0)]).collect())],
        vec![(0, narrow.chain([(0, [0; 3], 0)]).collect())],
    ];
    scheme(
        "mixed",
        [false, false, true],
        Boundary::Zero,
        &[("p", [0; 3], 1), ("v", [0, 0, 1], 1)],
        stages,
    )
}

/// Some scheme that follows all rules: one or two axes, up to three components, time levels and stages each.
pub fn random(seed: u64) -> Scheme {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |n: u64| {
        // Xorshift (G. Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % n
    };
    let axes = [below(2) == 1, false, true];
    let names = ["u", "v", "w"];
    let count = 1 + below(3);
    let mut components: Vec<Comp> = Vec::new();
    for name in names.iter().take(count as usize) {
        let mut half = |on: bool| if on { below(2) as i64 } else { 0 };
        let halves = axes.map(&mut half);
        components.push((name, halves, 1 + below(3) as u8));
    }
    let stages = 1 + below(3);
    let mut out: Vec<Vec<u32>> = (0..stages).map(|_| Vec::new()).collect();
    for target in 0..count as u32 {
        // At least once in a step.
        let first = below(stages) as usize;
        for (k, stage) in out.iter_mut().enumerate() {
            if k == first || below(3) == 0 {
                stage.push(target);
            }
        }
    }
    let mut lines = Vec::new();
    for targets in &out {
        let mut stage = Vec::new();
        for &target in targets {
            let mut reads: Vec<Tap> = Vec::new();
            for _ in 0..1 + below(4) {
                let component = below(count) as u32;
                let time_levels = components[component as usize].2;
                let age = below(u64::from(time_levels)) as u8;
                let mut offset = axes.map(|on| if on { below(5) as i32 - 2 } else { 0 });
                if targets.contains(&component) && age + 1 == time_levels {
                    // Overwritten in this stage: only by its own update, at its own place.
                    if component != target {
                        continue;
                    }
                    offset = [0; 3];
                }
                reads.push((component, offset, age));
            }
            stage.push((target, reads));
        }
        lines.push(stage);
    }
    let ends = [
        Boundary::Zero,
        Boundary::Pec,
        Boundary::Pmc,
        Boundary::Periodic,
    ];
    let mut scheme = scheme("random", axes, ends[below(4) as usize], &components, lines);
    for axis in Axis::ALL {
        scheme.grid.cells[axis] = if axes[axis.index()] { 9 } else { 1 };
    }
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let position = scheme.components[update.target.index()].position;
        update.region = scheme.grid.live(position);
    }
    assert_eq!(verify(&scheme), Ok(()));
    scheme
}
