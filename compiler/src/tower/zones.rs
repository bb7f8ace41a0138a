//! Zones in towers: the variants of the code of interior periods, and which of them a tower runs.
//!
//! States of amendments are read and written at their own place alone, so they stay in memory: no live range and no
//! cone grows by them. A variant has the amendments of some zones. A zone that covers the grid along both axes over
//! which towers are cut, such as a layer along the inner axis, is in all variants, since all towers meet it; all other
//! zones are in one variant together, for towers that come near any of them. So there are three variants at most,
//! however many sets of zones occur. A row that lies in none of them costs one condition; a variant for each axis gains
//! at most 4 % for FDTD(4,2) with W = 4 on an H200, and takes the assembler twice as long. Faces of boxes of total
//! fields are like zones: all towers meet faces across the inner axis; only towers of the variants whose zones some
//! towers meet come near the others.

use super::group_box::GroupBox;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::{Op, Scheme, StateId, ZoneId, ZoneSet};

/// A variant of the code of interior periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// The zones whose amendments it has.
    pub zones: ZoneSet,
    /// Towers may meet faces of boxes of total fields across the first two axes, where whole rows are corrected.
    pub faces: bool,
    /// Ends of the grid may cut rows off.
    pub predicated: bool,
}

/// Whether a tower needs a variant with predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Predicates {
    Without,
    With,
}

/// The variants of a program, variants without predicates first, and where towers need which variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variants {
    pub all: Vec<Variant>,
    /// The boxes of zones that some towers meet and others do not.
    partial: Vec<(ZoneId, GroupBox)>,
    /// Where faces across the first two axes are.
    faces: Vec<GroupBox>,
}

impl Variants {
    pub(super) fn new(scheme: &Scheme, layout: &Layout) -> Variants {
        let updates = scheme.stages.iter().flat_map(|s| &s.updates);
        let amended = updates.fold(ZoneSet::default(), |set, u| set.union(u.zones()));
        let whole = Axis::ALL.map(|axis| Interval::new(0, layout.extent[axis]));
        let (mut everywhere, mut some) = (ZoneSet::default(), ZoneSet::default());
        let mut partial = Vec::new();
        for zone in amended.iter() {
            let boxes = &layout.zones[zone.index()].boxes;
            let regions = boxes.iter().map(|b| b.region);
            let across =
                |axis: Axis, region: &crate::lattice::Region| region[axis] == whole[axis.index()];
            let covers = |region: &crate::lattice::Region| {
                across(Axis::OUTER, region) && across(Axis::MIDDLE, region)
            };
            if regions.clone().any(|region| covers(&region)) {
                everywhere = everywhere.union(ZoneSet::of(zone));
            } else if !boxes.is_empty() {
                some = some.union(ZoneSet::of(zone));
                partial.extend(regions.map(|region| {
                    let [x, y] = [Axis::OUTER, Axis::MIDDLE].map(|axis| region[axis]);
                    (zone, GroupBox { x, y })
                }));
            }
        }
        let all = everywhere.union(some);
        let variant = |zones| Variant {
            zones,
            faces: false,
            predicated: false,
        };
        let mut variants = vec![variant(everywhere)];
        if all != everywhere {
            variants.push(variant(all));
        }
        Variants {
            all: variants,
            partial,
            faces: Vec::new(),
        }
    }

    /// The same with a variant for towers that ends of the grid may cut rows off.
    pub(super) fn with_predicates(mut self) -> Variants {
        let most = *self.most();
        self.all.push(Variant {
            predicated: true,
            ..most
        });
        self
    }

    /// The variant without predicates that has the amendments of all zones.
    fn most(&self) -> &Variant {
        &self.all[self.plain() - 1]
    }

    /// The same with faces of boxes of total fields across the first two axes: one variant more at most, for towers
    /// near faces, or near zones that not all towers meet.
    pub(super) fn with_faces(mut self, faces: &[GroupBox]) -> Variants {
        self.faces = faces.to_vec();
        if faces.is_empty() {
            return self;
        }
        let plain = self.plain();
        for variant in &mut self.all[1..] {
            variant.faces = true;
        }
        if plain == 1 {
            let near = Variant {
                faces: true,
                ..self.all[0]
            };
            self.all.insert(1, near);
        }
        self
    }

    /// The number of the variant for a tower whose rows of interior periods lie in a box.
    pub(super) fn of(&self, predicates: Predicates, rows: GroupBox) -> usize {
        let predicated = predicates == Predicates::With;
        let mut needed = ZoneSet::default();
        for (zone, at) in &self.partial {
            let met = at.intersect(rows);
            if !met.x.is_empty() && !met.y.is_empty() {
                needed = needed.union(ZoneSet::of(*zone));
            }
        }
        let faces = self.are_near_faces(rows);
        let has = |v: &Variant| {
            v.predicated == predicated && v.zones.intersect(needed) == needed && (v.faces || !faces)
        };
        self.all.iter().position(has).unwrap_or(0)
    }

    /// Whether rows in a box may be near faces across the first two axes.
    pub(super) fn are_near_faces(&self, rows: GroupBox) -> bool {
        let near = |at: &GroupBox| {
            let met = at.intersect(rows);
            !met.x.is_empty() && !met.y.is_empty()
        };
        self.faces.iter().any(near)
    }

    /// The boxes of groups by which towers need one variant or another.
    pub(super) fn boxes(&self) -> impl Iterator<Item = GroupBox> {
        let zones = self.partial.iter().map(|(_, at)| *at);
        zones.chain(self.faces.iter().copied())
    }

    /// How many variants have no predicates: they come first.
    pub fn plain(&self) -> usize {
        self.all.iter().filter(|v| !v.predicated).count()
    }

    /// Whether a variant has amendments.
    pub fn any_zones(&self) -> bool {
        self.all.iter().any(|v| !v.zones.is_empty())
    }

    /// Whether a variant is for towers near faces of boxes of total fields.
    pub fn any_faces(&self) -> bool {
        self.all.iter().any(|v| v.faces)
    }

    /// Whether all variants have amendments.
    pub fn all_have_zones(&self) -> bool {
        self.all.iter().all(|v| !v.zones.is_empty())
    }
}

/// The memory that an operation of an amendment reads when the amendment acts, instead of a row that the tower has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    State(StateId),
    /// A coefficient of an axis along which rows differ.
    Row(Axis),
    /// A coefficient of the inner axis: the same for a thread in all rows.
    Lane,
}

/// The memory that an operation reads; `None` for one that reads a row, or nothing.
pub fn memory_of(scheme: &Scheme, op: &Op) -> Option<Memory> {
    match op {
        Op::State(state) => Some(Memory::State(*state)),
        Op::Coef(coef) => scheme.coefs[coef.index()].only_axis.map(|axis| match axis {
            Axis::INNER => Memory::Lane,
            axis => Memory::Row(axis),
        }),
        _ => None,
    }
}
