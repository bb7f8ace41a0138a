//! Where on the grid towers are whole, and which periods of a time block they run there.

use super::group::{Group, PerFace};
use super::group_box::GroupBox;
use super::mirrored_reads::AXES;
use super::residency::{Residency, RowUpdate};
use super::seam::{Held, SeamDepths};
use super::towers::{Located, Towers};
use super::width::Width;
use super::zones::{Predicates, Variants};
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::{Boundary, ComponentId, Scheme, Update};
use std::ops::Range;

/// The rows of a component that updates may write. Values of other rows never change; ghosts of their zeros have no
/// sign.
pub fn written_groups(scheme: &Scheme, component: ComponentId) -> GroupBox {
    let live = scheme.grid.live(scheme.component(component).position);
    GroupBox {
        x: live[Axis::OUTER],
        y: live[Axis::MIDDLE],
    }
}

/// The origins for which periods of an alignment have a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// All rows lie in the regions of their updates, have no ghosts along the two axes and read nothing beyond closed
    /// mirrors.
    interior: GroupBox,
    /// The same, except for rows near and beyond ends that may cut rows off. `None` where there is no such end.
    predicated: Option<GroupBox>,
    /// Memory holds all rows that are kept when the period begins.
    begin: GroupBox,
    /// Some row may lie where updates may write its component, or near it.
    touched: GroupBox,
    /// Of the rows of a period.
    seam: SeamDepths,
    /// The rows of a period, relative to its origin.
    rows: GroupBox,
    /// Whether all planes across the outer axis are alike, and counted on around it.
    alike: bool,
}

impl Bounds {
    /// Whether a period whose origin is here may be the first one that is run by interior code.
    pub fn may_begin(&self, at: Group) -> bool {
        self.begin.contains(at)
    }

    /// The origins of periods that may have rows in the grid.
    pub(super) fn touched(&self) -> GroupBox {
        self.touched
    }

    /// Between which origins of a period along the middle axis towers may do something else, for variants of their
    /// code: below each of these places, and from it on.
    pub(super) fn changes(&self, variants: &Variants) -> Vec<i64> {
        let boxes = [
            Some(self.interior),
            self.predicated,
            Some(self.begin),
            Some(self.touched),
        ];
        let ends = boxes
            .into_iter()
            .flatten()
            .flat_map(|of| [of.y.lo, of.y.hi]);
        // Rows meet a box from where the last of them does until where the first one does.
        let rows = self.rows.y;
        let meets = |of: GroupBox| [of.y.lo - rows.hi + 1, of.y.hi - rows.lo];
        ends.chain(variants.boxes().flat_map(meets)).collect()
    }
}

/// The periods of a tower in a time block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub alignment: usize,
    /// At the start of the time block, counted on around periodic axes: along the outer axis from the seam on, and
    /// where that is unrolled, as the array has its planes.
    pub origin: Group,
    /// From there to where the origin lies in the array in interior periods: lengths of rings. Where the outer axis is
    /// unrolled, from its plane to the index of that.
    pub shift: Group,
    /// Below which depths rows belong to a narrow tower, along both faces.
    pub limits: PerFace<Option<i64>>,
    /// The periods in which rows may lie in the grid, counted from the start of the time block.
    pub periods: Range<u64>,
    /// The periods that interior or predicated code runs. The few others are run row by row in memory.
    pub interior: Range<u64>,
    /// The number of the variant of interior periods. Where ends of the grid may cut rows off, values beyond these ends
    /// are never used, and rows in no region keep their values.
    pub variant: usize,
    /// The interior periods whose rows may be near faces of boxes of total fields across the first two axes, and the
    /// periods between them.
    pub near: Range<u64>,
}

impl Placement {
    /// Along which faces the tower is narrow.
    pub fn width(&self) -> Width {
        Width(self.limits.map(|limit| limit.is_some()))
    }
}

impl Towers {
    /// Where towers have to be, per alignment.
    pub fn bounds(&self, scheme: &Scheme, layout: &Layout) -> Vec<Bounds> {
        let predicates = self.may_predicate(scheme);
        let unrolled = self.is_unrolled(layout);
        // Planes that are alike have no ends.
        let alike = unrolled && self.rings.uniform;
        let anywhere = |of: GroupBox, along: bool| GroupBox {
            x: if along { GroupBox::ALL.x } else { of.x },
            y: of.y,
        };
        let whole = |residency: &Residency, cutting: CuttingEnds| {
            anywhere(self.whole(scheme, residency, cutting), alike)
        };
        let open = self.predicating_ends(scheme);
        let bounds = |residency: &Residency| Bounds {
            interior: whole(residency, CuttingEnds::default()),
            predicated: predicates.then(|| whole(residency, open)),
            begin: anywhere(residency.visible(layout, self.advance), unrolled),
            alike,
            touched: residency.touched(scheme, self.margin()),
            seam: match &self.rings.seam {
                Some(seam) => seam.depths(residency),
                None => SeamDepths::default(),
            },
            rows: residency.rows(),
        };
        let mut bounds: Vec<Bounds> = self.alignments.iter().map(bounds).collect();
        self.keep_rowless(&mut bounds);
        bounds
    }

    /// Towers without any row, which lie between the rows of the lattice where all components have one position, are
    /// kept wherever towers beside them are, if these depend on each other across them.
    fn keep_rowless(&self, bounds: &mut [Bounds]) {
        let margin = self.margin();
        if margin == 0 {
            return;
        }
        let all = bounds.iter().map(|of| of.touched);
        let all = all.fold(GroupBox::default(), GroupBox::hull);
        let wide = |of: Interval| Interval::new(of.lo - margin, of.hi + margin);
        for (own, residency) in bounds.iter_mut().zip(&self.alignments) {
            if residency.is_rowless() {
                own.touched = GroupBox {
                    x: wide(all.x),
                    y: wide(all.y),
                };
            }
        }
    }

    /// The placement of a tile in a time block of `periods` periods; `None` if it has no row there.
    pub fn place(&self, bounds: &[Bounds], tile: PerFace<i64>, periods: u64) -> Option<Placement> {
        let located = self.locate(tile)?;
        self.place_at(bounds, located, self.rings.limits(tile), periods)
    }

    /// The same for a tile that lies somewhere, and may be narrow.
    pub(super) fn place_at(
        &self,
        bounds: &[Bounds],
        located: Located,
        limits: PerFace<Option<i64>>,
        periods: u64,
    ) -> Option<Placement> {
        let Located {
            alignment,
            mut origin,
        } = located;
        let [_, around] = self.rings.cells;
        if let Some(around) = around {
            origin.y = origin.y.rem_euclid(around);
        }
        let passage = Passage {
            towers: self,
            bounds: &bounds[alignment],
            origin,
            per_period: self.alignments[alignment].stages.len() as i64,
        };
        let periods = passage.with_rows(periods);
        if periods.is_empty() {
            return None;
        }
        let none = periods.end..periods.end;
        let mut placement = Placement {
            alignment,
            origin,
            // Of boundary periods, whose rows are wrapped around the ring.
            shift: Group::new(self.rings.rotation, 0),
            limits,
            periods,
            interior: none.clone(),
            variant: 0,
            near: none,
        };
        if limits.iter().all(Option::is_none) {
            let predicates = passage.find_interior(&mut placement);
            passage.find_variant(predicates, &mut placement);
        }
        Some(placement)
    }

    /// Whether ends of the grid may cut rows off interior periods.
    pub fn may_predicate(&self, scheme: &Scheme) -> bool {
        let ends = self.predicating_ends(scheme);
        ends.into_iter().flatten().any(|end| end)
    }

    /// Which ends of the outer and the middle axis may cut rows off predicated periods: ends without ghosts, and
    /// mirrors that are closed ([`super::MirroredReads`]), if all updates need the old values of the rows that they
    /// write.
    pub fn predicating_ends(&self, scheme: &Scheme) -> [[bool; 2]; 2] {
        let keep = self.alignments.iter().all(Residency::keeps_all);
        [0, 1].map(|axis| {
            let ends = scheme.grid.boundary[AXES[axis]];
            [0, 1].map(|side| {
                let open = keep && ends[side] == Boundary::Zero;
                open || self.mirrored.is_closed(axis, side)
            })
        })
    }
}

/// The passage of a tower through the periods of a time block.
struct Passage<'a> {
    towers: &'a Towers,
    bounds: &'a Bounds,
    /// At the start of the time block.
    origin: Group,
    /// Stages of a period.
    per_period: i64,
}

impl Passage<'_> {
    fn at(&self, period: u64) -> Group {
        self.origin + self.towers.advance * period as i64
    }

    /// How many rows of a period lie on the right side of the seam, if there is one, after a shift of all rows by `by`
    /// planes.
    fn held(&self, period: u64, by: i64) -> Option<Held> {
        let stage = period as i64 * self.per_period;
        let seam = self.towers.rings.seam.as_ref();
        seam.map(|seam| seam.holds(self.bounds.seam, stage, self.at(period).x + by))
    }

    /// The periods of a range whose rows lie so, or would after a shift by `margin` planes to a side. Where a tower is
    /// moves along a line, and so do its depths along the seam: there is one range of periods.
    fn while_held(&self, periods: Range<u64>, margin: i64, of: fn(Held) -> bool) -> Range<u64> {
        if self.towers.rings.seam.is_none() {
            return periods;
        }
        let holds = |t: &u64| {
            let mut near = [-margin, 0, margin].into_iter();
            near.any(|by| self.held(*t, by).is_none_or(of))
        };
        let end = periods.end;
        let from = periods.clone().find(holds).unwrap_or(end);
        from..(from..end).find(|t| !holds(t)).unwrap_or(end)
    }

    /// The periods of a range whose origins, seen at a shift, lie in a box.
    fn inside(&self, periods: Range<u64>, of: GroupBox, shift: Group) -> Range<u64> {
        of.periods(periods, self.origin + shift, self.towers.advance)
    }

    /// The periods, of this many, that have rows in the grid.
    fn with_rows(&self, periods: u64) -> Range<u64> {
        let [ring_x, ring_y] = self.towers.rings.cells.map(|cells| cells.is_some());
        let touched = self.bounds.touched;
        let touched = GroupBox {
            x: if ring_x { GroupBox::ALL.x } else { touched.x },
            y: if ring_y { GroupBox::ALL.y } else { touched.y },
        };
        let periods = self.inside(0..periods, touched, Group::default());
        self.while_held(periods, self.towers.margin(), |held| held.some)
    }

    /// Finds the longest range of interior periods, and where the array has them; tells whether ends of the grid cut
    /// rows off them.
    fn find_interior(&self, placement: &mut Placement) -> Predicates {
        let periods = placement.periods.clone();
        let mut predicates = Predicates::Without;
        for shift in self.towers.rings.shifts() {
            let all = |of: GroupBox| {
                let inside = self.inside(periods.clone(), of, shift);
                self.while_held(inside, 0, |held| held.all)
            };
            let fits = all(self.bounds.interior);
            let begin = self.inside(fits.clone(), self.bounds.begin, shift).start;
            let interior = begin.min(fits.end)..fits.end;
            let predicated = match self.bounds.predicated {
                Some(predicated) => all(predicated),
                None => periods.end..periods.end,
            };
            for (periods, own) in [
                (interior, Predicates::Without),
                (predicated, Predicates::With),
            ] {
                let most = placement.interior.end - placement.interior.start;
                if periods.end - periods.start > most {
                    placement.interior = periods;
                    placement.shift = shift;
                    predicates = own;
                }
            }
        }
        predicates
    }

    /// The rows that a period has, as they lie in the array.
    fn rows(&self, period: u64, shift: Group) -> GroupBox {
        let origin = self.at(period) + shift;
        let rows = self.bounds.rows.seen_from(Group::default() - origin);
        match (self.bounds.alike, self.towers.rings.cells[0]) {
            (true, Some(cells)) => GroupBox {
                x: Interval::new(0, cells),
                ..rows
            },
            _ => rows,
        }
    }

    /// Finds the variant that the interior periods need, and which of them come near faces of boxes of total fields.
    fn find_variant(&self, predicates: Predicates, placement: &mut Placement) {
        let variants = &self.towers.variants;
        let rows_of = |period| self.rows(period, placement.shift);
        let interior = placement.interior.clone();
        let ends = [interior.start, interior.end.saturating_sub(1)];
        let ends = ends.into_iter().filter(|_| !interior.is_empty());
        let rows = ends.map(rows_of).fold(GroupBox::default(), GroupBox::hull);
        let variant = variants.of(predicates, rows);
        placement.variant = variant;
        if variants.all[variant].faces {
            let mut near = interior.filter(|t| variants.are_near_faces(rows_of(*t)));
            if let Some(first) = near.next() {
                placement.near = first..near.next_back().unwrap_or(first) + 1;
            }
        }
    }
}

/// The ends of the first two axes that may cut rows off a period.
type CuttingEnds = [[bool; 2]; 2];

impl Towers {
    /// The origins for which all rows of a period lie in the regions of their updates, none has ghosts along the two
    /// axes, and none reads beyond closed mirrors; some ends may cut rows off.
    fn whole(&self, scheme: &Scheme, residency: &Residency, cutting: CuttingEnds) -> GroupBox {
        let ends = |axis: usize, mut range: Interval| {
            let [below, above] = cutting[axis];
            if below {
                range.lo = GroupBox::ALL.x.lo;
            }
            if above {
                range.hi = GroupBox::ALL.x.hi;
            }
            range
        };
        let inner = |stage: usize, number: usize, update: &Update| {
            let inner = without_ghosts(scheme, update);
            self.mirrored.without(stage, number, inner)
        };
        let stages = scheme.stages.iter().enumerate();
        let inner: Vec<Vec<GroupBox>> = stages
            .map(|(n, stage)| {
                let updates = stage.updates.iter().enumerate();
                updates
                    .map(|(number, update)| inner(n, number, update))
                    .collect()
            })
            .collect();
        residency.fold_updates(GroupBox::ALL, |bounds, stage, update| {
            let inner = inner[stage % inner.len()][update.update].seen_from(update.at);
            bounds.intersect(GroupBox {
                x: ends(0, inner.x),
                y: ends(1, inner.y),
            })
        })
    }
}

impl Residency {
    /// The origins for which some row of a component may lie where updates may write it, or `margin` rows beyond, be it
    /// in the region of its own update or not: a tower tells its neighbours how far the towers before it are, so it
    /// goes on where a statement acts in a part of the grid only.
    fn touched(&self, scheme: &Scheme, margin: i64) -> GroupBox {
        let wide = |of: Interval| Interval::new(of.lo - margin, of.hi + margin);
        self.fold_updates(GroupBox::default(), |bounds, stage, update| {
            let of = &scheme.stages[stage % scheme.stages.len()].updates[update.update];
            let GroupBox { x, y } = written_groups(scheme, of.target);
            let of = GroupBox {
                x: wide(x),
                y: wide(y),
            };
            bounds.hull(of.seen_from(update.at))
        })
    }

    /// The rows that a period updates, relative to its origin.
    pub fn rows(&self) -> GroupBox {
        let one = |n: i64| Interval::new(n, n + 1);
        self.fold_updates(GroupBox::default(), |all, _, update| {
            let [x, y] = update.at.array().map(one);
            all.hull(GroupBox { x, y })
        })
    }

    fn is_rowless(&self) -> bool {
        self.stages.iter().all(|rows| rows.updates.is_empty())
    }

    /// Goes through the updates of a period, each with the number of its stage.
    fn fold_updates(
        &self,
        start: GroupBox,
        add: impl Fn(GroupBox, usize, &RowUpdate) -> GroupBox,
    ) -> GroupBox {
        let stages = self.stages.iter().enumerate();
        let all = stages.flat_map(|(number, rows)| rows.updates.iter().map(move |u| (number, u)));
        all.fold(start, |bounds, (stage, update)| add(bounds, stage, update))
    }

    /// The origins for which memory holds all that is kept when a period begins.
    fn visible(&self, layout: &Layout, advance: Group) -> GroupBox {
        let held = GroupBox {
            x: layout.visible(Axis::OUTER),
            y: layout.visible(Axis::MIDDLE),
        };
        let per_period = self.stages.len();
        let mut bounds = GroupBox::ALL;
        for live in &self.live_ranges {
            // Loads may run one stage ahead.
            for period in 1..=live.last() / per_period + 1 {
                let at = live.row.at - advance * (period as i64 - 1);
                for at in [at, at - advance] {
                    bounds = bounds.intersect(held.seen_from(at));
                }
            }
        }
        bounds
    }
}

/// The groups in which an update acts and its values have no ghosts along the first two axes.
pub fn without_ghosts(scheme: &Scheme, update: &Update) -> GroupBox {
    let along =
        |axis: Axis| AxisGhosts::new(scheme, update.target, axis).without(update.region[axis]);
    GroupBox {
        x: along(Axis::OUTER),
        y: along(Axis::MIDDLE),
    }
}
