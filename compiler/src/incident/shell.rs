//! The places near the faces of a box of total fields.

use super::fault::Fault;
use super::weigh::Weigher;
use crate::lattice::{Axis, Interval, PerAxis, Position, Region};
use crate::problem::{IncidentField, Problem, TotalBox};
use crate::scheme::{Boundary, ComponentId, Scheme, StageId, Update, ZoneId};
use crate::statics::NoFiles;
use std::collections::BTreeSet;

/// The most places at faces: numbers of them are words.
pub const MOST_PLACES: u64 = 1 << 30;

/// A box with the reads of its scheme across its faces.
#[derive(Clone, Copy, Debug)]
pub struct Shell<'a> {
    pub scheme: &'a Scheme,
    ends: PerAxis<[i64; 2]>,
    /// How far updates read along each axis.
    reach: PerAxis<i64>,
    /// The same between positions, in half cells.
    distance: PerAxis<i64>,
}

/// A component that is odd about the mirror at an end of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OddAtMirror {
    pub component: ComponentId,
    pub axis: Axis,
    /// Whether it is the upper end.
    pub upper: bool,
}

impl<'a> Shell<'a> {
    pub fn new(scheme: &'a Scheme, of: &TotalBox) -> Shell<'a> {
        Shell {
            scheme,
            ends: of.ends,
            reach: scheme.reach().map(|[lo, hi]| i64::from(lo.max(hi))),
            distance: distance(scheme),
        }
    }

    /// Whether a stored value at a position is in the box.
    pub fn has(&self, position: Position, at: PerAxis<i64>) -> bool {
        Axis::ALL.into_iter().all(|a| {
            let [lo, hi] = self.ends[a];
            let place = 2 * at[a] + position[a].0;
            2 * lo <= place && place <= 2 * hi
        })
    }

    /// Whether there are faces across an axis, at its lower and its upper end.
    fn faces(&self, axis: Axis) -> [bool; 2] {
        let grid = &self.scheme.grid;
        let [lo, hi] = self.ends[axis];
        match grid.axes[axis] {
            Some(_) => [lo > 0, hi < grid.cells[axis]],
            None => [false; 2],
        }
    }

    /// Indices along an axis of places at a position, such as which all lie farther from the faces than updates read
    /// lie outside of the first range or within the second one.
    fn ranges(&self, position: Position, axis: Axis) -> [Interval; 2] {
        let ([lo, hi], r, half) = (self.ends[axis], self.distance[axis], position[axis].0);
        let from = |place: i64| (place - half + 1).div_euclid(2);
        let after = |place: i64| from(place + 1);
        [
            Interval::new(from(2 * lo - r), after(2 * hi + r)),
            Interval::new(from(2 * lo + r), after(2 * hi - r)),
        ]
    }

    /// The same for places that read across faces and their neighbours, at any position.
    fn ranges_around(&self, axis: Axis) -> [Interval; 2] {
        let ([lo, hi], r) = (self.ends[axis], self.reach[axis] + 1);
        [
            Interval::new(lo - r, hi + r + 1),
            Interval::new(lo + r, hi - r),
        ]
    }

    /// Places of a component that read across faces lie in the first region and not in the second one.
    fn regions(&self, component: ComponentId) -> [Region; 2] {
        let position = self.scheme.component(component).position;
        self.regions_of(component, |axis| self.ranges(position, axis))
    }

    /// Regions by ranges along each axis, which faces across it limit.
    fn regions_of(
        &self,
        component: ComponentId,
        ranges: impl Fn(Axis) -> [Interval; 2],
    ) -> [Region; 2] {
        let position = self.scheme.component(component).position;
        let live = self.scheme.grid.live(position);
        let (mut outer, mut inner) = (live, live);
        for axis in Axis::ALL {
            let [wide, narrow] = ranges(axis);
            let [below, above] = self.faces(axis);
            if below {
                outer[axis].lo = live[axis].lo.max(wide.lo);
                inner[axis].lo = narrow.lo;
            }
            if above {
                outer[axis].hi = live[axis].hi.min(wide.hi);
                inner[axis].hi = narrow.hi;
            }
        }
        if inner.is_empty() {
            inner = PerAxis::splat(Interval::new(0, 0));
        }
        [outer, inner]
    }

    /// The places near faces where a component may be updated, as boxes that have no place in common.
    pub fn parts(&self, component: ComponentId) -> Vec<Region> {
        parts_between(self.regions(component))
    }

    /// The same with the neighbours of these places, of which some lie on both sides of each face.
    fn parts_around(&self, component: ComponentId) -> Vec<Region> {
        parts_between(self.regions_of(component, |axis| self.ranges_around(axis)))
    }

    /// Places near faces that are not in the box, with their neighbours, as boxes that have no place in common.
    pub fn outside(&self, component: ComponentId) -> Vec<Region> {
        let position = self.scheme.component(component).position;
        let inside = PerAxis::from_fn(|axis| {
            let ([lo, hi], half) = (self.ends[axis], position[axis].0);
            Interval::new(lo, hi - half + 1)
        });
        let mut outside = Vec::new();
        for mut rest in self.parts_around(component) {
            for axis in Axis::ALL {
                for end in [
                    Interval::new(rest[axis].lo, inside[axis].lo),
                    Interval::new(inside[axis].hi, rest[axis].hi),
                ] {
                    let mut part = rest;
                    part[axis] = end.intersect(rest[axis]);
                    outside.push(part);
                }
                rest[axis] = rest[axis].intersect(inside[axis]);
            }
        }
        outside.retain(|part| !part.is_empty());
        outside
    }

    /// Indices along the inner axis at which only rows near faces across the other axes have places near faces.
    pub fn hole(&self, component: ComponentId) -> Interval {
        let position = self.scheme.component(component).position;
        let [_, Interval { lo, hi }] = self.ranges(position, Axis::INNER);
        let [below, above] = self.faces(Axis::INNER);
        let none = self.scheme.grid.cells[Axis::INNER] + 1;
        Interval::new(if below { lo } else { 0 }, if above { hi } else { none })
    }

    /// Indices along an axis at all of which places read across the faces of the other axes in the same way: reads stay
    /// between the faces across the axis, and in the domain.
    pub fn alike(&self, axis: Axis) -> Interval {
        let ([lo, hi], r) = (self.ends[axis], self.reach[axis] + 1);
        let [below, above] = self.faces(axis);
        let n = self.scheme.grid.cells[axis];
        Interval::new(
            if below { lo } else { 0 } + r,
            if above { hi } else { n } - r,
        )
    }

    /// Rows where a component may be updated that are not near faces across the first two axes, along the outer and the
    /// middle axis.
    pub fn far(&self, component: ComponentId) -> [Interval; 2] {
        let [outer, inner] = self.regions(component);
        let rows = if self.hole(component).is_empty() {
            outer
        } else {
            inner
        };
        [rows[Axis::OUTER], rows[Axis::MIDDLE]]
    }

    /// Whether rows that are not near faces across the first two axes are corrected in the same way by the waves of a
    /// field, each at its own points of the line.
    fn far_rows(&self, field: &IncidentField, update: &Update) -> FarRows {
        let [outer, _] = self.regions(update.target);
        let alike = |axis: Axis| {
            let [below, above] = self.faces(axis);
            let whole = outer[axis].intersect(update.region[axis]) == outer[axis];
            // No wave goes around a ring.
            let ring = !below && !above && self.scheme.grid.is_periodic(axis);
            whole && (below && above || ring)
        };
        let along = [Axis::OUTER, Axis::MIDDLE].into_iter().all(alike);
        let plane = matches!(field, IncidentField::Plane(_));
        let fixed = || {
            let parts = self.parts(update.target);
            Weigher::new(self.scheme, &NoFiles, update, &parts).is_fixed()
        };
        if !along || self.hole(update.target).is_empty() {
            return FarRows::Various;
        }
        if !self.reads_along(update) {
            return FarRows::Bare;
        }
        match plane && fixed() {
            true => FarRows::Alike,
            false => FarRows::Various,
        }
    }

    /// Whether an update reads values at other places along the inner axis than its own.
    fn reads_along(&self, update: &Update) -> bool {
        let place = |component: ComponentId, by: i32| {
            let position = self.scheme.component(component).position;
            2 * i64::from(by) + position[Axis::INNER].0
        };
        let own = place(update.target, 0);
        let mut reads = update.body.reads();
        reads.any(|read| place(read.component, read.offset[Axis::INNER]) != own)
    }

    /// A box of all places that may be corrected after an update; `None` if it reads nothing across faces.
    pub fn region(&self, update: &Update) -> Option<Region> {
        let own = self.scheme.component(update.target).position;
        let elsewhere = |read: &crate::scheme::Read| {
            let there = self.scheme.component(read.component).position;
            there != own || Axis::ALL.into_iter().any(|axis| read.offset[axis] != 0)
        };
        if !update.body.reads().any(elsewhere) {
            return None;
        }
        let parts = self.parts(update.target).into_iter();
        let parts = parts.map(|part| part.intersect(update.region));
        let parts = parts.filter(|part| !part.is_empty());
        parts.reduce(|all, part| PerAxis::from_fn(|axis| all[axis].hull(part[axis])))
    }

    /// Calls `f` for the same places, the inner axis fastest.
    pub fn for_each<E>(
        &self,
        component: ComponentId,
        mut f: impl FnMut(PerAxis<i64>) -> Result<(), E>,
    ) -> Result<(), E> {
        let [xs, ys, _] = self.regions(component)[0].0;
        for x in xs.lo..xs.hi {
            for y in ys.lo..ys.hi {
                self.for_each_of_row(component, [x, y], &mut f)?;
            }
        }
        Ok(())
    }

    /// Calls `f` for the places of a row.
    pub fn for_each_of_row<E>(
        &self,
        component: ComponentId,
        [x, y]: [i64; 2],
        mut f: impl FnMut(PerAxis<i64>) -> Result<(), E>,
    ) -> Result<(), E> {
        let [outer, inner] = self.regions(component);
        let zs = outer[Axis::INNER];
        let within = inner[Axis::OUTER].contains(x) && inner[Axis::MIDDLE].contains(y);
        let hole = match within {
            true => inner[Axis::INNER],
            false => Interval::new(zs.hi, zs.hi),
        };
        for z in (zs.lo..hole.lo.min(zs.hi)).chain(hole.hi.max(zs.lo)..zs.hi) {
            f(PerAxis([x, y, z]))?;
        }
        Ok(())
    }

    /// The smallest and the largest value of `direction . I` over the cells I of all reads of places near faces.
    pub fn span(&self, direction: PerAxis<i64>) -> [i64; 2] {
        let mut span = [0; 2];
        for axis in self.scheme.grid.present() {
            let r = 2 * self.reach[axis] + 2;
            let n = self.scheme.grid.cells[axis];
            let [below, above] = self.faces(axis);
            let [lo, hi] = self.ends[axis];
            let lo = if below { (lo - r).max(-r) } else { -r };
            let hi = if above { (hi + r).min(n + r) } else { n + r };
            let ends = [direction[axis] * lo, direction[axis] * hi];
            span[0] += ends[0].min(ends[1]);
            span[1] += ends[0].max(ends[1]);
        }
        span
    }

    /// Whether the box lies where it can.
    pub fn check(&self, field: &IncidentField) -> Result<(), Fault> {
        let grid = &self.scheme.grid;
        let along = |axis: Axis| match field {
            IncidentField::Plane(wave) => wave.direction[axis],
            IncidentField::Given(_) => 0,
        };
        let mut faces = false;
        for axis in grid.present() {
            let ([lo, hi], n, r) = (self.ends[axis], grid.cells[axis], self.reach[axis]);
            let [below, above] = self.faces(axis);
            faces |= below || above;
            if grid.is_periodic(axis) {
                if below != above || below && (lo <= r || n - hi <= r) {
                    return Err(Fault::RingEnd { axis });
                }
                if !below && along(axis) != 0 {
                    return Err(Fault::AroundRing { axis });
                }
                continue;
            }
            for (side, (face, room)) in [(below, lo), (above, n - hi)].into_iter().enumerate() {
                let upper = side == 1;
                let boundary = grid.boundary[axis][side];
                if boundary == Boundary::Zero && room < r {
                    return Err(Fault::ZeroEnd { axis, upper });
                }
                if !boundary.is_mirror() {
                    continue;
                }
                if face && self.reads_ghosts(axis, boundary, room) {
                    return Err(Fault::MirrorEnd { axis, upper });
                }
                if !face && along(axis) != 0 {
                    return Err(Fault::IntoMirror { axis, upper });
                }
            }
        }
        if !faces {
            return Err(Fault::NoFaces);
        }
        let places = self.places();
        if places > MOST_PLACES {
            return Err(Fault::TooLarge { places });
        }
        self.check_zones()
    }

    /// Whether updates in a box some cells beside a mirror read ghosts behind it, or odd components on it: the sources
    /// of ghosts lie outside of the box, and lack the incident field.
    fn reads_ghosts(&self, axis: Axis, boundary: Boundary, room: i64) -> bool {
        let on_mirror = |id: ComponentId| {
            let position = self.scheme.component(id).position;
            !position[axis].is_half() && boundary.is_odd(axis, position) == Some(true)
        };
        let farthest = self.distance[axis];
        match self.scheme.component_ids().any(on_mirror) {
            true => 2 * room <= farthest,
            false => 2 * room < farthest,
        }
    }

    fn check_zones(&self) -> Result<(), Fault> {
        for update in self.scheme.stages.iter().flat_map(|s| &s.updates) {
            for part in self.parts_around(update.target) {
                let meets = |zone: ZoneId| {
                    let mut boxes = self.scheme.zone(zone).boxes.iter();
                    boxes.any(|b| !b.intersect(part).is_empty())
                };
                if let Some(zone) = update.zones().iter().find(|zone| meets(*zone)) {
                    return Err(Fault::Zone { zone });
                }
            }
        }
        Ok(())
    }

    /// Components that are odd about mirrors which the box reaches.
    pub fn odd_at_mirrors(&self) -> Vec<OddAtMirror> {
        let grid = &self.scheme.grid;
        let mut odd = Vec::new();
        for axis in grid.present().filter(|a| !grid.is_periodic(*a)) {
            for (side, face) in self.faces(axis).into_iter().enumerate() {
                for id in self.scheme.component_ids().filter(|_| !face) {
                    let position = self.scheme.component(id).position;
                    if grid.boundary[axis][side].is_odd(axis, position) == Some(true) {
                        odd.push(OddAtMirror {
                            component: id,
                            axis,
                            upper: side == 1,
                        });
                    }
                }
            }
        }
        odd
    }

    /// The places near faces over all updates.
    pub fn places(&self) -> u64 {
        let updates = self.scheme.stages.iter().flat_map(|s| &s.updates);
        let parts = updates.flat_map(|update| self.parts(update.target));
        parts.map(|p| p.volume()).fold(0, u64::saturating_add)
    }
}

/// The places of the first region that are not in the second one, as boxes that have no place in common.
fn parts_between([mut rest, inner]: [Region; 2]) -> Vec<Region> {
    let mut parts = Vec::new();
    if inner.is_empty() {
        parts.push(rest);
    } else {
        for axis in Axis::ALL {
            for end in [
                Interval::new(rest[axis].lo, inner[axis].lo),
                Interval::new(inner[axis].hi, rest[axis].hi),
            ] {
                let mut part = rest;
                part[axis] = end.intersect(rest[axis]);
                parts.push(part);
            }
            rest[axis] = rest[axis].intersect(inner[axis]);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// How far updates read along each axis, in half cells between positions.
fn distance(scheme: &Scheme) -> PerAxis<i64> {
    let mut distance = PerAxis::splat(0);
    for update in scheme.stages.iter().flat_map(|stage| &stage.updates) {
        let own = scheme.component(update.target).position;
        for read in update.reads() {
            let there = scheme.component(read.component).position;
            for axis in Axis::ALL {
                let by = 2 * i64::from(read.offset[axis]) + there[axis].0 - own[axis].0;
                distance[axis] = distance[axis].max(by.abs());
            }
        }
    }
    distance
}

/// An update that reads across the faces of a box.
#[derive(Clone, Copy, Debug)]
pub struct CorrectedUpdate {
    pub stage: StageId,
    pub component: ComponentId,
    /// All corrected places lie in it.
    pub region: Region,
    /// Indices along the inner axis at which only rows near faces across the first two axes are.
    pub hole: Interval,
    pub far_rows: FarRows,
}

/// Corrections of the rows that are not near faces across the first two axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarRows {
    /// At the same indices along the inner axis, by the same waves but for a shift that is linear in the indices of the
    /// row.
    Alike,
    Various,
    /// None.
    Bare,
}

/// The updates that a problem's incident fields may correct, in the order of the corrections.
pub fn corrected_updates(scheme: &Scheme, problem: &Problem) -> Vec<CorrectedUpdate> {
    let mut all = Vec::new();
    for incident in &problem.incidents {
        for of in &incident.boxes {
            let shell = Shell::new(scheme, of);
            for stage in scheme.stage_ids() {
                for update in &scheme.stages[stage.index()].updates {
                    all.extend(shell.region(update).map(|region| CorrectedUpdate {
                        stage,
                        component: update.target,
                        region,
                        hole: shell.hole(update.target).intersect(region[Axis::INNER]),
                        far_rows: shell.far_rows(&incident.field, update),
                    }));
                }
            }
        }
    }
    all
}

/// The indices along the inner axis at which alike rows far from faces are corrected, ascending.
pub fn alike_places(updates: &[CorrectedUpdate]) -> Vec<i64> {
    let alike = updates.iter().filter(|u| u.far_rows == FarRows::Alike);
    let places = alike.flat_map(|update| {
        let along = update.region[Axis::INNER];
        (along.lo..along.hi).filter(|z| !update.hole.contains(*z))
    });
    let places: BTreeSet<i64> = places.collect();
    places.into_iter().collect()
}

/// Where rows along the inner axis may be corrected at each place: boxes along the outer and the middle axis.
pub fn whole_rows(scheme: &Scheme, problem: &Problem) -> Vec<[Interval; 2]> {
    let mut all = Vec::new();
    for of in problem.incidents.iter().flat_map(|i| &i.boxes) {
        let shell = Shell::new(scheme, of);
        for update in scheme.stages.iter().flat_map(|stage| &stage.updates) {
            let hole = shell.hole(update.target);
            for part in shell.parts(update.target) {
                let rows = [part[Axis::OUTER], part[Axis::MIDDLE]];
                if !part[Axis::INNER].intersect(hole).is_empty() && !all.contains(&rows) {
                    all.push(rows);
                }
            }
        }
    }
    all
}

/// The boxes of places in which a problem's incident fields may correct the updates of a component.
pub fn shells<'a>(
    scheme: &'a Scheme,
    problem: &'a Problem,
) -> impl Iterator<Item = (StageId, ComponentId, Region)> + 'a {
    let boxes = problem.incidents.iter().flat_map(|i| &i.boxes);
    boxes.flat_map(move |of| {
        let shell = Shell::new(scheme, of);
        scheme.stage_ids().flat_map(move |stage| {
            let updates: &'a [Update] = &scheme.stages[stage.index()].updates;
            updates.iter().flat_map(move |update| {
                let parts = shell.parts(update.target).into_iter();
                parts.map(move |part| (stage, update.target, part.intersect(update.region)))
            })
        })
    })
}

/// The most places that the incident fields of a problem correct, with places of several boxes counted for each.
pub fn places(scheme: &Scheme, problem: &Problem) -> u64 {
    let volumes = shells(scheme, problem).map(|(.., part)| part.volume());
    volumes.fold(0, u64::saturating_add)
}
