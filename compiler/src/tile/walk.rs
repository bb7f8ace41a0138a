//! Enumerates tiles, and the rows of a tile stage by stage.

use super::sheets::{SheetSet, Side};
use super::span::Span;
use super::{Class, Plane, PlaneCut, TileProgram};
use crate::distinct::distinct;
use crate::kernel::UpdateSet;
use crate::lattice::{Axis, Interval, PerAxis, Region, div_floor};
use crate::scheme::StageId;

/// A set of classes of one stage, by index; as a stage has at most 64 updates, there are no more classes.
pub type ClassSet = u64;

/// One tile: an interval of depths per plane; `None`: not cut yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    pub depths: Vec<Option<Interval>>,
}

/// Rows that one set of classes advances in one stage, with no condition inside. Where the grid has a middle axis, the
/// region has one index along the outer axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub stage: StageId,
    /// Stages since the start of the run.
    pub number: i64,
    pub classes: ClassSet,
    pub rows: Region,
}

impl TileProgram {
    pub fn stages_per_step(&self) -> i64 {
        self.stages.len() as i64
    }

    /// Where an axis is folded and some plane cuts it: the sum of two positions that lie on each other. Positions
    /// above half of it are measured backwards.
    ///
    /// Any sum keeps distances from growing. Along the outer axis it is odd where rows follow each other along the
    /// middle axis: measured backwards, values on whole and half cells then change places, and at a face of a tile
    /// the same updates come and go together as on the other sheet. With an even sum there, twice as many rows lack
    /// some of a stage's updates.
    pub fn fold(&self, axis: Axis) -> Option<i64> {
        let cut = self.planes.iter().any(|plane| plane.form[axis] != 0);
        let odd = self.three_axes && axis == Axis::OUTER;
        self.ring[axis]
            .filter(|_| cut)
            .map(|ring| ring - i64::from(odd))
    }

    /// The updates of a set of classes of a stage.
    pub fn updates(&self, stage: StageId, classes: ClassSet) -> UpdateSet {
        let mut updates = UpdateSet::default();
        for (i, class) in self.stages[stage.index()].iter().enumerate() {
            if classes >> i & 1 == 1 {
                updates.0 |= class.updates.0;
            }
        }
        updates
    }

    /// Folded positions that a class takes along an axis.
    fn places(&self, class: &Class, axis: Axis) -> Span {
        let range = class.region[axis];
        let whole = Span {
            lo: 2 * range.lo + class.position[axis],
            hi: 2 * (range.hi - 1) + class.position[axis],
        };
        match self.fold(axis) {
            None => whole,
            Some(fold) => Span {
                lo: 0,
                hi: fold / 2,
            },
        }
    }

    /// The depths that events of stages `numbers` have along a plane; empty if there are none.
    pub fn depth_range(&self, plane: usize, numbers: Interval) -> Interval {
        let Plane { form, slope } = self.planes[plane];
        let mut range = Interval::default();
        if numbers.is_empty() {
            return range;
        }
        let time = Span {
            lo: numbers.lo,
            hi: numbers.hi - 1,
        }
        .scaled(slope);
        for class in self.stages.iter().flatten() {
            let mut along = Span { lo: 0, hi: 0 };
            for axis in Axis::ALL {
                along = along.plus(self.places(class, axis).scaled(form[axis]));
            }
            let depth = time.plus(Span::at(class.leads[plane])).minus(along);
            range = range.hull(Interval::new(depth.lo, depth.hi + 1));
        }
        range
    }

    /// The tile that is everything.
    pub fn whole(&self) -> Tile {
        Tile {
            depths: vec![None; self.planes.len()],
        }
    }

    /// The indices along a cut that tiles inside of `tile` can have in stages `numbers`.
    pub fn indices(&self, tile: &Tile, cut: PlaneCut, numbers: Interval) -> Interval {
        let mut range = self.depth_range(cut.plane, numbers);
        if let Some(own) = tile.depths[cut.plane] {
            range = range.intersect(own);
        }
        if range.is_empty() {
            return Interval::default();
        }
        Interval::new(
            div_floor(range.lo, cut.pitch),
            div_floor(range.hi - 1, cut.pitch) + 1,
        )
    }

    /// The same without some indices at which a tile has no rows, as it lies between two faces along which positions
    /// fall as they rise along the cut.
    pub(crate) fn occupied(&self, tile: &Tile, cut: PlaneCut, numbers: Interval) -> Interval {
        let mut range = self.indices(tile, cut, numbers);
        for (plane, depths) in tile.depths.iter().enumerate() {
            let (Some(depths), Some(pair)) = (depths, self.opposite([cut.plane, plane])) else {
                continue;
            };
            let [a, b] = pair.factors;
            let [first, last] = pair.sums(numbers);
            let ends = [
                first - b * i128::from(depths.hi - 1),
                last - b * i128::from(depths.lo),
            ];
            let [lo, hi] = ends.map(|end| end.div_euclid(a * i128::from(cut.pitch)));
            let within = |n: i128| n.clamp(range.lo.into(), range.hi.into()) as i64;
            range = Interval::new(within(lo), within(hi + 1));
        }
        range
    }

    /// The part of some stages beyond which a tile has no rows, as it lies between faces along which positions rise and
    /// faces along which they fall.
    pub(super) fn alive(&self, tile: &Tile, mut numbers: Interval) -> Interval {
        let cut = tile.depths.iter().enumerate();
        let cut = cut.filter_map(|(plane, depths)| Some((plane, (*depths)?)));
        for (plane, own) in cut.clone() {
            for (before, other) in cut.clone().take_while(|(before, _)| *before < plane) {
                let Some(pair) = self.opposite([plane, before]) else {
                    continue;
                };
                let [a, b] = pair.factors;
                let sum = |n: i64, m: i64| a * i128::from(n) + b * i128::from(m);
                let [lo, hi] = [sum(own.lo, other.lo), sum(own.hi - 1, other.hi - 1)];
                // lo <= slope k + lead <= hi, for some lead.
                let [least, most] = pair.leads;
                let [first, last] = match pair.slope {
                    0 if lo <= most && least <= hi => continue,
                    0 => return Interval::default(),
                    slope if slope > 0 => [
                        -(most - lo).div_euclid(slope),
                        (hi - least).div_euclid(slope),
                    ],
                    slope => [
                        -(hi - least).div_euclid(-slope),
                        (most - lo).div_euclid(-slope),
                    ],
                };
                let within = |n: i128| n.clamp(numbers.lo.into(), numbers.hi.into()) as i64;
                numbers = Interval::new(within(first), within(last + 1));
            }
        }
        numbers
    }

    /// Two planes whose forms have opposite directions.
    fn opposite(&self, planes: [usize; 2]) -> Option<Opposite> {
        let [first, second] = planes.map(|plane| self.planes[plane]);
        let (n, m) = (first.form.0, second.form.0);
        let axis = (0..n.len()).find(|&axis| n[axis].signum() * m[axis].signum() < 0)?;
        let [b, a] = [n[axis], m[axis]].map(|of| i128::from(of.abs()));
        let sum = |n: i64, m: i64| a * i128::from(n) + b * i128::from(m);
        if (0..n.len()).any(|axis| sum(n[axis], m[axis]) != 0) {
            return None;
        }
        let classes = self.stages.iter().flatten();
        let leads = classes.map(|class| sum(class.leads[planes[0]], class.leads[planes[1]]));
        let none = (i128::MAX, i128::MIN);
        let (least, most) = leads.fold(none, |(lo, hi), lead| (lo.min(lead), hi.max(lead)));
        (least <= most).then_some(Opposite {
            factors: [a, b],
            slope: sum(first.slope, second.slope),
            leads: [least, most],
        })
    }

    /// The part of a tile with an index along a cut.
    pub fn narrow(&self, tile: &mut Tile, cut: PlaneCut, index: i64) {
        let own = Interval::new(index * cut.pitch, (index + 1) * cut.pitch);
        let depths = &mut tile.depths[cut.plane];
        *depths = Some(depths.map_or(own, |d| d.intersect(own)));
    }

    /// Visits the tiles of the levels from `level` on inside of `tile`, in running order.
    pub fn tiles_inside(
        &self,
        tile: &Tile,
        level: usize,
        numbers: Interval,
        visit: &mut impl FnMut(&Tile),
    ) {
        match self.levels.get(level) {
            None => visit(tile),
            Some(cuts) => self.cuts_inside(tile, level, cuts, numbers, visit),
        }
    }

    fn cuts_inside(
        &self,
        tile: &Tile,
        level: usize,
        cuts: &[PlaneCut],
        numbers: Interval,
        visit: &mut impl FnMut(&Tile),
    ) {
        let Some((cut, others)) = cuts.split_first() else {
            self.tiles_inside(tile, level + 1, numbers, visit);
            return;
        };
        let indices = self.indices(tile, *cut, numbers);
        for index in indices.lo..indices.hi {
            let mut part = tile.clone();
            self.narrow(&mut part, *cut, index);
            self.cuts_inside(&part, level, others, numbers, visit);
        }
    }

    /// Bounds of the folded positions that events of a tile have along an axis in some stages.
    pub(super) fn span(&self, tile: &Tile, numbers: Interval, axis: Axis) -> Span {
        let other = match axis {
            Axis::OUTER => Axis::MIDDLE,
            _ => Axis::OUTER,
        };
        let ends = [numbers.lo, numbers.hi - 1];
        let ends = ends.map(|number| self.limits(tile, number).collect::<Vec<_>>());
        let [first, last] = &ends;
        let mut all = Span::NONE;
        for class in self.stages.iter().flatten() {
            let others = self.places(class, other);
            let mut own = self.places(class, axis);
            // A limit that moves evenly from the first stage to the last is bounded by its values at both.
            let mut meet = |along: [Span; 2], factor| {
                own = along[0].hull(along[1]).solve(factor, own);
            };
            for (i, pair) in first.iter().zip(last).enumerate() {
                let (a, b) = (pair.0.form[axis], pair.0.form[other]);
                if a == 0 && b == 0 {
                    continue;
                }
                let along = [pair.0, pair.1].map(|limit| limit.of(class));
                meet(along.map(|own| own.minus(others.scaled(b))), a);
                for more in first.iter().zip(last).take(i) {
                    let (c, d) = (more.0.form[axis], more.0.form[other]);
                    if b == 0 || d == 0 {
                        continue;
                    }
                    let second = [more.0, more.1].map(|limit| limit.of(class).scaled(b));
                    let combined = [0, 1].map(|n| along[n].scaled(d).minus(second[n]));
                    meet(combined, a * d - c * b);
                }
            }
            all = all.hull(own);
        }
        all
    }

    /// The limits that the planes of a tile set to a stage.
    fn limits(&self, tile: &Tile, number: i64) -> impl Iterator<Item = Limit> {
        let planes = self.planes.iter().zip(&tile.depths).enumerate();
        planes.filter_map(move |(index, (plane, depths))| {
            // lo <= slope k + lead - form < hi
            let depths = (*depths)?;
            Some(Limit {
                plane: index,
                form: plane.form,
                along: Span {
                    lo: plane.slope * number - depths.hi + 1,
                    hi: plane.slope * number - depths.lo,
                },
            })
        })
    }

    /// Visits the rows of a tile in the order of stages; in a stage, each event once.
    pub fn walk(&self, tile: &Tile, numbers: Interval, visit: &mut impl FnMut(&Segment)) {
        self.walk_on(tile, numbers, SheetSet::MAX, visit);
    }

    /// The same for events on some sheets.
    pub fn walk_on(
        &self,
        tile: &Tile,
        numbers: Interval,
        sheets: SheetSet,
        visit: &mut impl FnMut(&Segment),
    ) {
        let mut scratch = Scratch::default();
        // A stage without rows is found as fast as the stages that have some.
        let alive = match numbers.len() {
            0 | 1 => numbers,
            _ => self.alive(tile, numbers),
        };
        for number in alive.lo..alive.hi {
            self.walk_stage(tile, number, sheets, &mut scratch, visit);
        }
    }

    fn walk_stage(
        &self,
        tile: &Tile,
        number: i64,
        sheets: SheetSet,
        scratch: &mut Scratch,
        visit: &mut impl FnMut(&Segment),
    ) {
        let stage = number.rem_euclid(self.stages_per_step()) as usize;
        let classes = &self.stages[stage];
        scratch.limits.clear();
        scratch.limits.extend(self.limits(tile, number));
        let run = if self.three_axes {
            Axis::MIDDLE
        } else {
            Axis::OUTER
        };
        for side in self.sides(Axis::INNER, sheets) {
            scratch.ranges.clear();
            for class in classes {
                let mut span = self.places(class, Axis::INNER);
                for limit in &scratch.limits {
                    let form = limit.form;
                    if form[Axis::INNER] != 0 {
                        span = limit.of(class).solve(form[Axis::INNER], span);
                    } else if form.0 == [0; 3] && limit.of(class).solve(0, span).is_empty() {
                        // A cut of time alone: the update lies in another tile.
                        span = Span::NONE;
                    }
                }
                let stagger = class.position[Axis::INNER];
                let range = class.region[Axis::INNER];
                scratch.ranges.push(side.indices(span, stagger, range));
            }
            if scratch.ranges.iter().all(|r| r.is_empty()) {
                continue;
            }
            let mut rows = Rows {
                program: self,
                classes,
                run,
                stage: StageId(stage as u32),
                number,
                sheets,
            };
            if self.three_axes {
                rows.planes_of_rows(scratch, visit);
            } else {
                rows.run_segments(scratch, None, visit);
            }
        }
    }
}

/// Two planes whose forms cancel out when they are multiplied by two positive numbers: so the sum of depths along them
/// does not depend on positions.
struct Opposite {
    factors: [i128; 2],
    slope: i128,
    /// The least lead of an event, and the most.
    leads: [i128; 2],
}

impl Opposite {
    /// The least sum of depths in some stages, and the most.
    fn sums(&self, numbers: Interval) -> [i128; 2] {
        let ends = [numbers.lo, numbers.hi - 1].map(|number| self.slope * i128::from(number));
        let [least, most] = self.leads;
        [ends[0].min(ends[1]) + least, ends[0].max(ends[1]) + most]
    }
}

/// The limit that a plane sets to a stage.
#[derive(Clone, Copy)]
struct Limit {
    plane: usize,
    form: PerAxis<i64>,
    /// The values that the form may take at updates without a lead.
    along: Span,
}

impl Limit {
    /// The values that the form may take at the updates of a class.
    fn of(&self, class: &Class) -> Span {
        self.along.plus(Span::at(class.leads[self.plane]))
    }
}

/// Buffers of a walk.
#[derive(Default)]
struct Scratch {
    limits: Vec<Limit>,
    /// Per class, its range along the inner axis.
    ranges: Vec<Interval>,
    /// Per class, its groups along the run axis.
    runs: Vec<Interval>,
    cuts: Vec<i64>,
}

struct Rows<'a> {
    program: &'a TileProgram,
    classes: &'a [Class],
    run: Axis,
    stage: StageId,
    number: i64,
    sheets: SheetSet,
}

impl Rows<'_> {
    /// Three axes: goes through the outer axis, one index at a time.
    fn planes_of_rows(&mut self, scratch: &mut Scratch, visit: &mut impl FnMut(&Segment)) {
        for side in self.program.sides(Axis::OUTER, self.sheets) {
            let mut all = Interval::default();
            for (class, range) in self.classes.iter().zip(&scratch.ranges) {
                if range.is_empty() {
                    continue;
                }
                let span = self.lean_span(class, &scratch.limits);
                let stagger = class.position[Axis::OUTER];
                all = all.hull(side.indices(span, stagger, class.region[Axis::OUTER]));
            }
            for x in all.lo..all.hi {
                self.run_segments(scratch, Some((side, x)), visit);
            }
        }
    }

    /// The folded positions along the outer axis that the limits leave to a class: each limit with the whole middle
    /// axis, and each pair of limits with the middle axis eliminated.
    fn lean_span(&self, class: &Class, limits: &[Limit]) -> Span {
        let places = self.program.places(class, Axis::MIDDLE);
        let mut span = self.program.places(class, Axis::OUTER);
        for (i, limit) in limits.iter().enumerate() {
            let (a, b) = (limit.form[Axis::OUTER], limit.form[Axis::MIDDLE]);
            if a == 0 && b == 0 {
                continue;
            }
            let along = limit.of(class);
            span = along.minus(places.scaled(b)).solve(a, span);
            if span.is_empty() {
                return Span::NONE;
            }
            for other in &limits[..i] {
                let (c, d) = (other.form[Axis::OUTER], other.form[Axis::MIDDLE]);
                if b == 0 || d == 0 {
                    continue;
                }
                // d * first - b * second has no middle axis left.
                let combined = along.scaled(d).minus(other.of(class).scaled(b));
                span = combined.solve(a * d - c * b, span);
                if span.is_empty() {
                    return Span::NONE;
                }
            }
        }
        span
    }

    /// Cuts the run axis where classes come and go.
    fn run_segments(
        &mut self,
        scratch: &mut Scratch,
        lean: Option<(Side, i64)>,
        visit: &mut impl FnMut(&Segment),
    ) {
        for side in self.program.sides(self.run, self.sheets) {
            scratch.runs.clear();
            for (class, range) in self.classes.iter().zip(&scratch.ranges) {
                let groups = if range.is_empty() {
                    Interval::default()
                } else {
                    self.groups(class, &scratch.limits, lean, side)
                };
                scratch.runs.push(groups);
            }
            let Scratch {
                runs, cuts, ranges, ..
            } = scratch;
            cuts.clear();
            for r in runs.iter().filter(|r| !r.is_empty()) {
                cuts.extend([r.lo, r.hi]);
            }
            cuts.sort_unstable();
            cuts.dedup();
            for w in 1..cuts.len() {
                let groups = Interval::new(cuts[w - 1], cuts[w]);
                let mut set: ClassSet = 0;
                for (i, r) in runs.iter().enumerate() {
                    if r.contains(groups.lo) {
                        set |= 1 << i;
                    }
                }
                if set != 0 {
                    self.emit(set, lean.map(|(_, x)| x), groups, ranges, visit);
                }
            }
        }
    }

    fn groups(
        &self,
        class: &Class,
        limits: &[Limit],
        lean: Option<(Side, i64)>,
        side: Side,
    ) -> Interval {
        let mut at = 0;
        if let Some((outer, x)) = lean {
            if !class.region[Axis::OUTER].contains(x) {
                return Interval::default();
            }
            match outer.position(x, class.position[Axis::OUTER]) {
                Some(place) => at = place,
                None => return Interval::default(),
            }
        }
        let mut span = self.program.places(class, self.run);
        for limit in limits {
            let form = limit.form;
            let outer = if lean.is_some() { form[Axis::OUTER] } else { 0 };
            let own = form[self.run];
            if outer == 0 && own == 0 {
                continue;
            }
            let fixed = Span::at(outer * at);
            span = limit.of(class).minus(fixed).solve(own, span);
        }
        side.indices(span, class.position[self.run], class.region[self.run])
    }

    /// Visits the groups; where the classes' ranges along the inner axis differ, cuts these too.
    fn emit(
        &self,
        set: ClassSet,
        lean: Option<i64>,
        groups: Interval,
        ranges: &[Interval],
        visit: &mut impl FnMut(&Segment),
    ) {
        let one = Interval::new(0, 1);
        let mut call = |classes: ClassSet, range: Interval| {
            let rows = match lean {
                Some(x) => PerAxis([Interval::new(x, x + 1), groups, range]),
                None => PerAxis([groups, one, range]),
            };
            visit(&Segment {
                stage: self.stage,
                number: self.number,
                classes,
                rows,
            });
        };
        let members = || (0..ranges.len()).filter(|i| set >> i & 1 == 1);
        let mut all = members().map(|i| ranges[i]);
        let first = all.next().unwrap_or_default();
        if all.all(|r| r == first) {
            call(set, first);
            return;
        }
        let cuts = distinct(members().flat_map(|i| [ranges[i].lo, ranges[i].hi]));
        for w in cuts.windows(2) {
            let mut part: ClassSet = 0;
            for i in members() {
                if ranges[i].contains(w[0]) {
                    part |= 1 << i;
                }
            }
            if part != 0 {
                call(part, Interval::new(w[0], w[1]));
            }
        }
    }
}
