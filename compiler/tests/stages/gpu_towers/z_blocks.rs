//! Lines that are cut into z blocks: same bits as row kernels stage by stage, and little that is copied or computed
//! twice.

use super::random::zones_along_lines_only;
use super::*;
use torre_compiler::cone::Rational;
use torre_compiler::lattice::{Axis, Interval, Offset, div_ceil};
use torre_compiler::layout::PIECE;
use torre_compiler::scheme::{Op, Read, Value};
use torre_compiler::testing::{Limits, Rng, add_random_zones, lengthen, random_scheme, star};
use torre_compiler::tower::block::{Ends, ZBlock, ZBlocks};
use torre_compiler::tower::{Group, LiveRange, Order, RowRef, Task, TaskList, tasks};

/// Options for z blocks of `warps` warps.
fn cut(warps: u32) -> Options {
    Options {
        division: Division::ZBlocks(warps),
        ..Options::default()
    }
}

#[test]
fn z_blocks_give_the_bits_of_rows() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let rings = [[Periodic; 2], [Periodic; 2], [Pmc, Pec]];
    let (f32, f64) = (Precision::F32, Precision::F64);
    let (mut with_walls, mut made) = (0, 0);
    for (number, (scheme, pitch, periods, warps)) in [
        (fdtd(4, f32, [12, 13, 75], ZERO), 3, 2, 1),
        (fdtd(4, f32, [12, 13, 75], WALLS), 3, 2, 1),
        (fdtd(4, f64, [12, 13, 71], MIRRORS), 3, 3, 1),
        (fdtd(2, f32, [12, 13, 150], WALLS), 3, 3, 2),
        (fdtd(2, f64, [12, 13, 96], ZERO), 3, 4, 1),
        // Rows of more chunks than two warps copy at a time, which three warps copy and which two do.
        (fdtd(2, f64, [13, 14, 190], WALLS), 3, 2, 5),
        (fdtd(2, f64, [13, 14, 190], ZERO), 3, 2, 5),
        // One z block, of which half a warp lies behind the end of the line.
        (fdtd(2, f64, [13, 14, 112], ZERO), 3, 2, 4),
        (fdtd(4, f32, [12, 13, 121], WALLS), 3, 1, 1),
        (bounded(star(1, f32, [17, 18, 70]), ZERO), 4, 2, 1),
        (bounded(star(4, f64, [30, 31, 90]), ZERO), 8, 1, 2),
        (bounded(star(4, f32, [30, 31, 131]), WALLS), 8, 2, 2),
        (fdtd(4, f32, [36, 15, 70], rings), 3, 2, 1),
        (elasticity(f32, [13, 14, 70]), 3, 2, 1),
        (elasticity(f64, [13, 14, 100]), 3, 2, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            abilities: Abilities {
                moves_registers: number % 2 == 0 || number == 5,
                working_registers: if number == 5 { 200 } else { 48 },
                ..Abilities::default()
            },
            ..cut(warps)
        };
        let report = Trial {
            options,
            seed: number as u64,
            ..Trial::new(library, &scheme, pitch, periods)
        }
        .succeed();
        assert!(report.with_interior > 1, "{number}: {report:?}");
        with_walls += usize::from(scheme.grid.boundary[Axis::INNER] != [Zero; 2]);
        made += usize::from(report.makes_ghosts);
    }
    assert!(with_walls == 9 && made == 9, "{made} of {with_walls}");
}

#[test]
fn lines_without_z_blocks_are_refused() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let of = |cells, ends| fdtd(2, Precision::F32, cells, ends);
    let runs = |scheme: &Scheme, periods| {
        let trial = Trial {
            options: cut(1),
            ..Trial::new(library, scheme, 3, periods)
        };
        trial.run().is_ok()
    };
    assert!(runs(&of([9, 11, 40], ZERO), 1));
    // Around a ring there is no first z block.
    let ring = [[Zero; 2], [Zero; 2], [Periodic; 2]];
    assert!(!runs(&of([9, 11, 40], ring), 1));
    // Faces lean as far as threads reach.
    assert!(!runs(&of([9, 11, 40], ZERO), 32));
    // An update that does not need the old value.
    let mut scheme = of([9, 11, 40], ZERO);
    let target = scheme.stages[0].updates[0].target;
    for op in &mut scheme.stages[0].updates[0].body.ops {
        if matches!(op, Op::Read(read) if read.component == target) {
            *op = Op::Const(0.5);
        }
    }
    assert_eq!(torre_compiler::scheme::verify(&scheme), Ok(()));
    assert!(!runs(&scheme, 1));
}

/// Updates add to the rows that they write, so that threads keep the old values.
fn adding(scheme: &mut Scheme) {
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let age = scheme.components[update.target.index()].time_levels - 1;
        let ops = &mut update.body.ops;
        ops.push(Op::Read(Read {
            component: update.target,
            offset: Offset::splat(0),
            age,
        }));
        let old = Value(ops.len() as u32 - 1);
        ops.push(Op::Add(update.body.result, old));
        update.body.result = Value(ops.len() as u32 - 1);
    }
}

#[test]
fn z_blocks_of_random_schemes_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let limits = Limits {
        width: 18,
        ..Limits::TOWERS
    };
    let (mut tried, mut with_interior, mut rings) = (0, 0, 0);
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        let is_short = scheme.grid.cells[Axis::INNER] < 6;
        if scheme.grid.dimensions() < 3 || is_short || scheme.grid.is_periodic(Axis::INNER) {
            continue;
        }
        adding(&mut scheme);
        let warps = rng.within(1, 2);
        let longer = 32 * warps + rng.within(4, 30);
        lengthen(&mut scheme, Axis::INNER, longer);
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            let ring = if scheme.grid.is_periodic(axis) { 14 } else { 0 };
            let cells = ring + rng.within(12, 18);
            let by = cells - scheme.grid.cells[axis];
            lengthen(&mut scheme, axis, by);
        }
        zones_along_lines_only(&mut scheme);
        if seed % 2 == 0 {
            add_random_zones(&mut Rng::new(seed), &limits, &mut scheme);
        }
        assert_eq!(torre_compiler::scheme::verify(&scheme), Ok(()));
        let pitch = Rational::new(rng.within(4, 12), 2).unwrap_or(Rational::ONE);
        let options = Options {
            abilities: Abilities {
                asynchronous: !rng.once_in(4),
                moves_registers: rng.once_in(2),
                suspends: seed % 4 < 2,
                shared_bytes: if seed % 5 < 2 { 0 } else { u32::MAX },
                ..Abilities::default()
            },
            ..cut(warps as u32)
        };
        let trial = Trial {
            pitches: [pitch; 2],
            options,
            near: if seed % 3 == 0 { 64 } else { NEAR },
            seed,
            // Large ones take most of the time and have the same parts.
            most_lines: 130_000,
            ..Trial::new(library, &scheme, 1, 1 + rng.below(2))
        };
        if let Ok(report) = trial.run() {
            tried += 1;
            let ring = |axis: &Axis| scheme.grid.is_periodic(*axis);
            rings += usize::from([Axis::OUTER, Axis::MIDDLE].iter().any(ring));
            with_interior += report.with_interior;
        }
    }
    assert!(
        tried > 3 && with_interior > 5 * tried,
        "{with_interior} in {tried}"
    );
    assert!(rings > 0, "{rings} of {tried}");
}

/// A tower program of z blocks, and the needs of its threads by the definition of a live range.
struct Cut {
    scheme: Scheme,
    layout: Layout,
    program: TowerProgram,
    z_blocks: ZBlocks,
}

impl Cut {
    fn new(scheme: &Scheme, pitch: i64, warps: u32) -> Option<Cut> {
        let trial = Trial {
            options: cut(warps),
            ..Trial::new(library()?, scheme, pitch, 1)
        };
        let program = trial.program(scheme).expect("towers");
        Some(Cut {
            z_blocks: program.block.lines.z_blocks().expect("z blocks").clone(),
            program,
            layout: Layout::for_gpu(scheme).expect("a small grid"),
            scheme: scheme.clone(),
        })
    }

    /// Of a period.
    fn stages(&self) -> i64 {
        self.program.per_period() as i64
    }

    fn all(&self, periods: i64) -> Vec<ZBlock> {
        let all = self.z_blocks.of((periods * self.stages()) as u64);
        all.expect("few stages")
    }

    fn tasks(&self, periods: u64) -> TaskList {
        let order = Order {
            width: 1,
            overlap: 0,
            head_start: 0,
            partitions: 1,
        };
        let towers = &self.program.towers;
        tasks(&self.scheme, &self.layout, towers, periods, order).expect("tasks")
    }

    fn live_ranges(&self, alignment: usize) -> &[LiveRange] {
        &self.program.towers.alignments[alignment].live_ranges
    }

    /// The indices that a z block needs, from a stage on, of a live range that begins in a period: the indices that it
    /// touches in each stage.
    fn needed(&self, z_block: &ZBlock, live: &LiveRange, period: i64, from: i64) -> Interval {
        let [low, width] = [z_block.low, z_block.width].map(i64::from);
        let touches = live.touches.iter().filter(|t| t.stage as i64 >= from);
        let touched = touches.map(|touch| {
            let face = low
                - self
                    .z_blocks
                    .lean(period * self.stages() + touch.stage as i64);
            let updates = &self.scheme.stages[touch.stage % self.scheme.stages.len()].updates;
            let reads = updates.iter().flat_map(|update| update.body.reads());
            let reads = reads.filter(|_| touch.cross_lane);
            let by = reads.map(|read| i64::from(read.offset[Axis::INNER]));
            let at = Interval::new(face, face + width);
            by.map(|by| Interval::new(at.lo + by, at.hi + by))
                .fold(at, |all, at| all.hull(at))
        });
        touched.reduce(|a, b| a.hull(b)).expect("a touch")
    }

    /// Units of `unit` values that a z block copies of rows that enter together: of each row the hull of the indices
    /// that it needs of any.
    fn units(&self, z_block: &ZBlock, needed: &[Interval], unit: i64) -> i64 {
        let all = needed.iter().copied().reduce(|a, b| a.hull(b));
        let base = i64::from(z_block.base);
        let line = self.layout.extent[Axis::INNER];
        let row = Interval::new(base, (base + self.z_blocks.threads).min(line));
        let part = all.map_or(Interval::default(), |all| all.intersect(row));
        let units = div_ceil(part.hi, unit) - part.lo.div_euclid(unit);
        assert!(needed.is_empty() || !part.is_empty());
        needed.len() as i64 * units
    }

    /// The same of all that enter in a period, in its stages from one on.
    fn entering(
        &self,
        z_block: &ZBlock,
        alignment: usize,
        period: i64,
        from: i64,
        unit: i64,
    ) -> i64 {
        let stages = from..self.stages();
        let of = stages.map(|stage| {
            let live_ranges = self.live_ranges(alignment).iter();
            let entering = live_ranges.filter(|l| l.is_loaded() && l.first() as i64 == stage);
            let needed = entering.map(|live| self.needed(z_block, live, period, 0));
            self.units(z_block, &needed.collect::<Vec<Interval>>(), unit)
        });
        of.sum()
    }

    /// Chunks that a task copies of its part of lines.
    fn chunks(&self, z_block: &ZBlock, task: &Task) -> i64 {
        let chunk = (PIECE / self.layout.element_bytes) as i64;
        let alignment = task.placement.alignment;
        let interior = &task.placement.interior;
        let [begin, end] = [interior.start, interior.end].map(|n| n as i64);
        // Producer warps bring the rows that enter in its first stage with the rows that shared rows hold from before.
        let entered = (begin..end).map(|period| {
            let from = i64::from(period == begin);
            self.entering(z_block, alignment, period, from, chunk)
        });
        let held = self.program.allocations[alignment].held.iter();
        let held = held.map(|copy| {
            let live_ranges = self.live_ranges(alignment).iter();
            let mut found = live_ranges.flat_map(|live| {
                let last = live.last() as i64 / self.stages();
                (0..=last).map(move |periods| (live, periods))
            });
            let advance = self.program.towers.advance;
            let same = |(live, n): &(&LiveRange, i64)| {
                let RowRef { at, row } = live.row;
                let now = at - Group::new(n * advance.x, n * advance.y);
                let begun = (live.first() as i64) <= n * self.stages();
                begun && (now, row) == (copy.row.at, copy.row.row)
            };
            let (live, n) = found.find(same).expect("a live range");
            self.needed(z_block, live, begin - n, n * self.stages())
        });
        let held: Vec<Interval> = held.collect();
        match begin < end {
            true => entered.sum::<i64>() + self.units(z_block, &held, chunk),
            false => 0,
        }
    }

    /// The indices at which some thread has something to do in a period: with a part in it, or with a value that is
    /// needed from its start on or that it stores, or a later one.
    fn touched(&self, z_block: &ZBlock, alignment: usize, period: i64) -> Interval {
        let all = self.live_ranges(alignment).iter().flat_map(|live| {
            let periods = 0..=live.last() as i64 / self.stages();
            periods.map(move |before| {
                let now = before * self.stages();
                let written = live.writes().next();
                let written = written.filter(|_| live.stored() >= Some(now as usize));
                let from = written.map_or(now, |first| now.min(first as i64));
                self.needed(z_block, live, period - before, from)
            })
        });
        all.reduce(|a, b| a.hull(b)).expect("live ranges")
    }

    /// Warps that take part in a period.
    fn busy(&self, z_block: &ZBlock, alignment: usize, period: i64) -> i64 {
        let ZBlock { base, low, width } = *z_block;
        let [base, low, width] = [base, low, width].map(i64::from);
        let face = low + self.z_blocks.lean(0) - self.z_blocks.lean(period * self.stages());
        let Ends { lower, upper } = self.z_blocks.busy(&self.program.allocations[alignment]);
        let busy = Interval::new(face - lower, face + width - upper);
        let touched = self.touched(z_block, alignment, period);
        assert_eq!(busy.hull(touched), busy, "{z_block:?} {period}");
        let warps = (0..self.z_blocks.threads / 32).map(|warp| base + 32 * warp);
        let warps = warps.map(|first| Interval::new(first, first + 32).intersect(busy));
        warps.filter(|part| !part.is_empty()).count() as i64
    }

    /// Operations on numbers of a period.
    fn arithmetic(&self, alignment: usize) -> i64 {
        let stages = self.program.allocations[alignment].stages.iter();
        let updates = stages
            .zip(self.scheme.stages.iter().cycle())
            .flat_map(|(own, stage)| own.updates.iter().map(|u| &stage.updates[u.update]));
        let is_one = |op: &&Op| !matches!(op, Op::Const(_) | Op::Read(_) | Op::Coef(_));
        updates
            .map(|update| update.body.ops.iter().filter(is_one).count() as i64)
            .sum()
    }
}

#[test]
fn z_blocks_copy_what_they_need() {
    let Some(library) = library() else { return };
    for (scheme, pitch, periods, warps) in [
        (maxwell(4, Precision::F32, [20, 23, 75]), 6, 2, 1),
        (star(4, Precision::F64, [30, 31, 90]), 8, 1, 1),
        // More chunks of a row than threads that copy.
        (maxwell(2, Precision::F64, [13, 14, 360]), 3, 2, 5),
    ] {
        let scheme = bounded(scheme, ZERO);
        let own = Cut::new(&scheme, pitch, warps).expect("LLVM");
        let list = own.tasks(periods);
        let z_blocks = own.all(periods as i64);
        let of = |z_block| list.tasks.iter().map(move |task| (z_block, task));
        let chunks = z_blocks.iter().flat_map(of);
        let chunks: i64 = chunks
            .map(|(z_block, task)| own.chunks(z_block, task))
            .sum();
        let report = Trial {
            options: cut(warps),
            ..Trial::new(library, &scheme, pitch, periods)
        }
        .succeed();
        assert!(z_blocks.len() > 2 && report.with_interior > 1, "{report:?}");
        // In two time blocks.
        assert_eq!(report.copies as i64, 2 * chunks);
    }
}

#[test]
fn warps_without_a_part_compute_nothing() {
    let Some(library) = library() else { return };
    for (order, cells, pitch, periods, warps) in
        [(4, [20, 23, 144], 6, 2, 4), (2, [17, 16, 160], 3, 3, 4)]
    {
        let scheme = fdtd(order, Precision::F32, cells, ZERO);
        let own = Cut::new(&scheme, pitch, warps).expect("LLVM");
        let list = own.tasks(periods);
        let (mut some, mut all) = (0, 0);
        for z_block in &own.all(periods as i64) {
            for task in &list.tasks {
                let alignment = task.placement.alignment;
                let each = own.arithmetic(alignment);
                for period in task.placement.interior.clone() {
                    some += each * own.busy(z_block, alignment, period as i64);
                    all += each * i64::from(warps);
                }
            }
        }
        // Instructions are counted.
        Effort::Full.choose();
        let report = Trial {
            options: cut(warps),
            ..Trial::new(library, &scheme, pitch, periods)
        }
        .succeed();
        // In two time blocks. Code behind a condition of threads counts for a warp on each way, and not where none of
        // its threads has a part in an update of the period.
        let found = report.arithmetic as f64 / (2 * all) as f64;
        let expected = some as f64 / all as f64;
        assert!(
            expected < 0.9 && found > 0.97 * expected,
            "{found} {expected}"
        );
        assert!(found < (1.0 + expected) / 2.0, "{found} {expected}");
    }
}

/// Bytes that lines of 1000 values take per cell-step, and that they would if all threads got values, by the threads of
/// z blocks.
#[test]
fn z_blocks_load_little_twice() {
    let (sector, line) = (8, 1000);
    for (warps, least, all) in [(7, 29.5, 36.1), (8, 29.1, 34.3), (9, 28.6, 30.8)] {
        let scheme = maxwell(4, Precision::F32, [96, 96, line]);
        let Some(own) = Cut::new(&scheme, 6, warps) else {
            return;
        };
        let towers = &own.program.towers;
        let periods = 8 / towers.steps as i64;
        let z_blocks = own.all(periods);
        let loaded = own.live_ranges(0).iter().filter(|live| live.is_loaded());
        let rows = periods * loaded.count() as i64;
        let cell = towers.cells() * (periods * line * towers.steps as i64) as f64;
        let bytes = |values: i64| (values * 4) as f64 / cell;
        let of = |z_block| (0..periods).map(move |period| (z_block, period));
        let loads = z_blocks.iter().flat_map(of);
        let units = loads.map(|(z_block, period)| own.entering(z_block, 0, period, 0, sector));
        let copied = bytes(units.sum::<i64>() * sector);
        let base = |z_block: &ZBlock| i64::from(z_block.base);
        let end = |z_block: &ZBlock| line.min(base(z_block) + own.z_blocks.threads);
        let whole: i64 = z_blocks.iter().map(|z| end(z) - base(z)).sum();
        let whole = bytes(whole * rows);
        let close = |found: f64, expected: f64| (found - expected).abs() < 0.1;
        assert!(
            close(copied, least) && close(whole, all),
            "{copied} {whole}"
        );
        // As is expected of it.
        let more = (z_blocks.len() - 1) as f64;
        let more = more * own.z_blocks.in_common(own.program.allocations.iter());
        let expected = bytes(line * rows) * (1.0 + more / line as f64);
        assert!(close(copied, expected), "{copied} {expected}");
    }
}
