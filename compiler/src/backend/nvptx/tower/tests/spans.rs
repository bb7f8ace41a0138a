//! Lines that are cut into spans: same bits as row kernels stage by stage.

use super::*;
use crate::lattice::Offset;
use crate::scheme::{Op, Read, Value};
use crate::testing::star;
use crate::tile::residency::Place;

#[test]
fn spans_give_the_bits_of_rows() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let rings = [[Periodic; 2], [Periodic; 2], [Pmc, Pec]];
    let (f32, f64) = (Precision::F32, Precision::F64);
    let (mut ended, mut made) = (0, 0);
    for (seed, (scheme, pitch, periods, warps)) in [
        (fdtd(4, f32, [20, 23, 75], ZERO), 6, 2, 1),
        (fdtd(4, f32, [20, 23, 75], WALLS), 6, 2, 1),
        (fdtd(4, f64, [22, 24, 71], MIRRORS), 6, 3, 1),
        (fdtd(2, f32, [17, 16, 150], WALLS), 3, 3, 2),
        (fdtd(2, f64, [17, 16, 96], ZERO), 3, 5, 1),
        // Rows of more pieces than two warps copy at a time, which three warps copy and which two do.
        (fdtd(2, f64, [13, 14, 190], WALLS), 3, 2, 5),
        (fdtd(2, f64, [13, 14, 190], ZERO), 3, 2, 5),
        // One span, of which half a warp lies behind the end of the line.
        (fdtd(2, f64, [13, 14, 112], ZERO), 3, 2, 4),
        (fdtd(4, f32, [24, 27, 121], WALLS), 9, 1, 1),
        (bounded(star(1, f32, [17, 18, 70]), ZERO), 4, 2, 1),
        (bounded(star(4, f64, [30, 31, 90]), ZERO), 8, 1, 2),
        (bounded(star(4, f32, [30, 31, 131]), WALLS), 8, 2, 2),
        (fdtd(4, f32, [52, 29, 70], rings), 6, 2, 1),
        (elasticity(f32, [19, 24, 70]), 3, 2, 1),
        (elasticity(f64, [19, 24, 100]), 6, 3, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            shift: seed % 2 == 0 || seed == 5,
            beside: if seed == 5 { 200 } else { 48 },
            spans: Some(warps),
            ..Options::default()
        };
        let report = same_bits(library, (seed, &scheme, pitch, periods), options, 1);
        ended += usize::from(scheme.grid.boundary[Axis::INNER] != [Zero; 2]);
        made += usize::from(report.made);
    }
    assert!(ended == 9 && made == 9, "{made} of {ended}");
}

#[test]
fn what_has_no_spans_is_refused() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let options = Options {
        spans: Some(1),
        ..Options::default()
    };
    let pitches = [Rational::whole(3); 2];
    let of = |cells, ends| bounded(maxwell(2, Precision::F32, cells), ends);
    let differ = |scheme: &Scheme, periods, options| {
        differ(library, scheme, pitches, periods, options, 0, true).is_some()
    };
    assert!(differ(&of([9, 11, 40], ZERO), 1, options));
    // Around a ring there is no first span.
    let ring = [[Zero; 2], [Zero; 2], [Periodic; 2]];
    assert!(!differ(&of([9, 11, 40], ring), 1, options));
    // Faces lean as far as threads reach.
    assert!(!differ(&of([9, 11, 40], ZERO), 32, options));
    let both = Options {
        parts: 2,
        ..options
    };
    assert!(!differ(&of([9, 11, 80], ZERO), 1, both));
    // An update that does not need the old value.
    let mut scheme = of([9, 11, 40], ZERO);
    let target = scheme.stages[0].updates[0].target;
    for op in &mut scheme.stages[0].updates[0].body.ops {
        if matches!(op, Op::Read(read) if read.component == target) {
            *op = Op::Const(0.5);
        }
    }
    assert_eq!(crate::scheme::verify(&scheme), Ok(()));
    assert!(!differ(&scheme, 1, options));
}

/// Updates add to what they write, so that threads keep that.
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
fn spans_of_random_schemes_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let limits = Limits {
        width: 18,
        ..LIMITS
    };
    let (mut tried, mut whole, mut rings) = (0, 0, 0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        let is_short = scheme.grid.cells[Axis::INNER] < 6;
        if scheme.grid.dimensions() < 3 || is_short || scheme.grid.is_periodic(Axis::INNER) {
            continue;
        }
        adding(&mut scheme);
        let warps = rng.within(1, 2);
        let longer = 32 * warps + rng.within(4, 30);
        crate::testing::lengthen(&mut scheme, Axis::INNER, longer);
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            let ring = if scheme.grid.is_periodic(axis) { 14 } else { 0 };
            let cells = ring + rng.within(12, 18);
            let by = cells - scheme.grid.cells[axis];
            crate::testing::lengthen(&mut scheme, axis, by);
        }
        for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
            // Zones along the inner axis alone.
            let range = update.region[Axis::INNER];
            update.region = scheme
                .grid
                .live(scheme.components[update.target.index()].position);
            if !range.is_empty() {
                update.region[Axis::INNER] = range;
            }
        }
        assert_eq!(crate::scheme::verify(&scheme), Ok(()));
        let pitch = Rational::new(rng.within(4, 12), 2).unwrap_or(Rational::ONE);
        let options = Options {
            direct: rng.once_in(2),
            asynchronous: !rng.once_in(4),
            shift: rng.once_in(2),
            patient: seed % 4 < 2,
            spans: Some(warps as u32),
            room: if seed % 5 < 2 { 0 } else { u32::MAX },
            near: if seed % 3 == 0 { 64 } else { 1 << 23 },
            ..Options::default()
        };
        let periods = 1 + rng.below(2);
        if let Some(report) = differ(library, &scheme, [pitch; 2], periods, options, seed, true) {
            tried += 1;
            let ring = |axis: &Axis| scheme.grid.is_periodic(*axis);
            rings += usize::from([Axis::OUTER, Axis::MIDDLE].iter().any(ring));
            whole += report.whole;
        }
    }
    assert!(tried > 8 && whole > 5 * tried, "{whole} in {tried}");
    assert!(rings > 1, "{rings} of {tried}");
}

/// Towers of a scheme, and the spans that they run.
struct Lines {
    scheme: Scheme,
    layout: Layout,
    towers: Towers,
    spans: Spans,
    plans: Vec<Plan>,
}

impl Lines {
    fn new(scheme: &Scheme, pitch: i64, warps: u32) -> Lines {
        let layout = Layout::for_gpu(scheme).expect("a small grid");
        let (_, towers) = tiled(scheme, &layout, [Rational::whole(pitch); 2]).expect("towers");
        let plan = |sets| Plan::new(&layout, sets, towers.advance, false);
        Lines {
            plans: towers.alignments.iter().map(plan).collect(),
            spans: Spans::new(scheme, &layout, warps).expect("spans"),
            scheme: scheme.clone(),
            layout,
            towers,
        }
    }

    /// Of a period.
    fn stages(&self) -> i64 {
        self.plans[0].stages.len() as i64
    }

    fn spans(&self, periods: i64) -> Vec<Span> {
        let spans = self.spans.of((periods * self.stages()) as u64);
        spans.expect("spans")
    }

    fn tasks(&self, periods: u64) -> TaskList {
        let order = Order {
            width: 1,
            overlap: 0,
            lead: 0,
            partitions: 1,
        };
        tasks(&self.scheme, &self.layout, &self.towers, periods, order).expect("tasks")
    }

    /// What a span needs, from a stage on, of a life that begins in a period: what its indices of each stage touch.
    fn needed(&self, span: &Span, (life, period): (&Life, i64), from: i64) -> Interval {
        let [_, low, width] = span.words().map(i64::from);
        let touches = life.touches.iter().filter(|t| t.stage as i64 >= from);
        let touched = touches.map(|touch| {
            let face = low - self.spans.lean(period * self.stages() + touch.stage as i64);
            let updates = &self.scheme.stages[touch.stage % self.scheme.stages.len()].updates;
            let reads = updates.iter().flat_map(|update| update.body.reads());
            let reads = reads.filter(|_| touch.tapped);
            let by = reads.map(|read| i64::from(read.offset[Axis::INNER]));
            let at = Interval::new(face, face + width);
            by.map(|by| Interval::new(at.lo + by, at.hi + by))
                .fold(at, |all, at| all.hull(at))
        });
        touched.reduce(|a, b| a.hull(b)).expect("a touch")
    }

    /// Units of so many values that a span copies of rows that enter together: all of each that it needs of some.
    fn units(&self, span: &Span, needed: &[Interval], unit: i64) -> i64 {
        let all = needed.iter().copied().reduce(|a, b| a.hull(b));
        let base = i64::from(span.base);
        let line = self.layout.extent[Axis::INNER];
        let row = Interval::new(base, (base + self.spans.threads).min(line));
        let part = all.map_or(Interval::default(), |all| all.intersect(row));
        let units = crate::lattice::div_ceil(part.hi, unit) - part.lo.div_euclid(unit);
        assert!(needed.is_empty() || !part.is_empty());
        needed.len() as i64 * units
    }

    /// The same of all that enter in a period, in its stages from one on.
    fn entering(&self, span: &Span, alignment: usize, period: i64, from: i64, unit: i64) -> i64 {
        let lives = &self.towers.alignments[alignment].lives;
        let stages = from..self.stages();
        let of = stages.map(|stage| {
            let lives = lives.iter().filter(|life| life.is_loaded());
            let lives = lives.filter(|life| life.first() as i64 == stage);
            let needed = lives.map(|life| self.needed(span, (life, period), 0));
            self.units(span, &needed.collect::<Vec<Interval>>(), unit)
        });
        of.sum()
    }

    /// Pieces that a task copies of its part of lines.
    fn pieces(&self, span: &Span, task: &Task) -> i64 {
        let piece = (crate::layout::PIECE / self.layout.element_bytes) as i64;
        let alignment = task.alignment as usize;
        let lives = &self.towers.alignments[alignment].lives;
        let [begin, end] = task.whole.map(i64::from);
        // What enters in its first stage, copiers bring with what slots hold from before.
        let entered = (begin..end).map(|period| {
            let from = i64::from(period == begin);
            self.entering(span, alignment, period, from, piece)
        });
        let held = self.plans[alignment].held.iter();
        let held = held.map(|copy| {
            let mut found = lives.iter().flat_map(|life| {
                let last = life.last() as i64 / self.stages();
                (0..=last).map(move |periods| (life, periods))
            });
            let [x, y] = self.towers.advance;
            let same = |(life, n): &(&Life, i64)| {
                let Place { x: at, y: by, row } = life.place;
                let now = [at - n * x, by - n * y];
                let begun = (life.first() as i64) <= n * self.stages();
                begun && (now, row) == ([copy.place.x, copy.place.y], copy.place.row)
            };
            let (life, n) = found.find(same).expect("a life");
            self.needed(span, (life, begin - n), n * self.stages())
        });
        let held: Vec<Interval> = held.collect();
        match begin < end {
            true => entered.sum::<i64>() + self.units(span, &held, piece),
            false => 0,
        }
    }
}

#[test]
fn spans_copy_what_they_need() {
    let Some(library) = library() else { return };
    for (scheme, pitch, periods, warps) in [
        (maxwell(4, Precision::F32, [20, 23, 75]), 6, 2, 1),
        (star(4, Precision::F64, [30, 31, 90]), 8, 1, 1),
        // More pieces of a row than threads that copy.
        (maxwell(2, Precision::F64, [13, 14, 360]), 3, 2, 5),
    ] {
        let scheme = bounded(scheme, ZERO);
        let cut = Lines::new(&scheme, pitch, warps);
        let list = cut.tasks(periods);
        let spans = cut.spans(periods as i64);
        let pieces = |span| list.tasks.iter().map(move |task| (span, task));
        let pieces = spans.iter().flat_map(pieces);
        let pieces: i64 = pieces.map(|(span, task)| cut.pieces(span, task)).sum();
        let options = Options {
            spans: Some(warps),
            ..Options::default()
        };
        let pitches = [Rational::whole(pitch); 2];
        let report = differ(library, &scheme, pitches, periods, options, 0, true).expect("towers");
        assert!(spans.len() > 2 && report.whole > 1, "{report:?}");
        // In two time blocks.
        assert_eq!(report.copies as i64, 2 * pieces);
    }
}

impl Lines {
    /// The indices at which someone has something to do in a period: with a part in it, or with a value that is needed from its start on or that it
    /// stores, or a later one.
    fn touched(&self, span: &Span, alignment: usize, period: i64) -> Interval {
        let lives = &self.towers.alignments[alignment].lives;
        let all = lives.iter().flat_map(|life| {
            let periods = 0..=life.last() as i64 / self.stages();
            periods.map(move |before| {
                let now = before * self.stages();
                let written = life
                    .writes()
                    .next()
                    .filter(|_| life.stored() >= Some(now as usize));
                let from = written.map_or(now, |first| now.min(first as i64));
                self.needed(span, (life, period - before), from)
            })
        });
        all.reduce(|a, b| a.hull(b)).expect("lives")
    }

    /// Warps that take part in a period.
    fn busy(&self, span: &Span, alignment: usize, period: i64) -> i64 {
        let [base, low, width] = span.words().map(i64::from);
        let face = low + self.spans.lean(0) - self.spans.lean(period * self.stages());
        let [lower, upper] = self.spans.busy(&self.plans[alignment]);
        let busy = Interval::new(face - lower, face + width - upper);
        let touched = self.touched(span, alignment, period);
        assert_eq!(busy.hull(touched), busy, "{span:?} {period}");
        let warps = (0..self.spans.threads / 32).map(|warp| base + 32 * warp);
        let warps = warps.map(|first| Interval::new(first, first + 32).intersect(busy));
        warps.filter(|part| !part.is_empty()).count() as i64
    }

    /// Operations on numbers of a period.
    fn arithmetic(&self, alignment: usize) -> i64 {
        let stages = self.plans[alignment]
            .stages
            .iter()
            .zip(self.scheme.stages.iter().cycle());
        let own =
            stages.flat_map(|(plan, stage)| plan.own.iter().map(|own| &stage.updates[own.update]));
        let count = |op: &&Op| !matches!(op, Op::Const(_) | Op::Read(_) | Op::Coef(_));
        own.map(|update| update.body.ops.iter().filter(count).count() as i64)
            .sum()
    }
}

#[test]
fn warps_without_a_part_compute_nothing() {
    let Some(library) = library() else { return };
    for (order, cells, pitch, periods, warps) in
        [(4, [20, 23, 144], 6, 2, 4), (2, [17, 16, 160], 3, 3, 4)]
    {
        let ends = [[Boundary::Zero; 2]; 3];
        let scheme = bounded(maxwell(order, Precision::F32, cells), ends);
        let lines = Lines::new(&scheme, pitch, warps);
        let list = lines.tasks(periods);
        let (mut some, mut all) = (0, 0);
        for span in &lines.spans(periods as i64) {
            for task in &list.tasks {
                let alignment = task.alignment as usize;
                let each = lines.arithmetic(alignment);
                for period in task.whole[0]..task.whole[1] {
                    some += each * lines.busy(span, alignment, period.into());
                    all += each * i64::from(warps);
                }
            }
        }
        let options = Options {
            spans: Some(warps),
            ..Options::default()
        };
        let pitches = [Rational::whole(pitch); 2];
        let report = differ(library, &scheme, pitches, periods, options, 0, true).expect("towers");
        // In two time blocks. What follows a condition of threads counts for a warp on each way.
        let found = report.arithmetic as f64 / (2 * all) as f64;
        let expected = some as f64 / all as f64;
        assert!(expected < 0.9 && found >= expected, "{found} {expected}");
        assert!(found < (1.0 + expected) / 2.0, "{found} {expected}");
    }
}

/// Bytes that lines of 1000 values take per cell-step, and that they would if all threads got values, by the threads of spans.
#[test]
fn spans_load_little_twice() {
    let (sector, line) = (8, 1000);
    for (warps, least, all) in [(7, 29.5, 36.1), (8, 29.1, 34.3), (9, 28.6, 30.8)] {
        let scheme = maxwell(4, Precision::F32, [96, 96, line]);
        let cut = Lines::new(&scheme, 6, warps);
        let periods = 8 / cut.towers.steps as i64;
        let spans = cut.spans(periods);
        let lives = &cut.towers.alignments[0].lives;
        let lives = lives.iter().filter(|life| life.is_loaded()).count();
        let cell = cut.towers.cells() * (periods * line * cut.towers.steps as i64) as f64;
        let bytes = |values: i64| (values * 4) as f64 / cell;
        let of = |span| (0..periods).map(move |period| (span, period));
        let loads = spans.iter().flat_map(of);
        let units = loads.map(|(span, period)| cut.entering(span, 0, period, 0, sector));
        let copied = bytes(units.sum::<i64>() * sector);
        let ends = |span: &Span| line.min(i64::from(span.base) + cut.spans.threads);
        let whole: i64 = spans.iter().map(|s| ends(s) - i64::from(s.base)).sum();
        let rows = periods * lives as i64;
        let whole = bytes(whole * rows);
        let close = |found: f64, expected: f64| (found - expected).abs() < 0.1;
        assert!(
            close(copied, least) && close(whole, all),
            "{copied} {whole}"
        );
        // As is expected of it.
        let more = (spans.len() - 1) as f64 * cut.spans.in_common(cut.plans.iter());
        let expected = bytes(line * rows) * (1.0 + more / line as f64);
        assert!(close(copied, expected), "{copied} {expected}");
    }
}
