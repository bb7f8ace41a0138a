//! Volume sources: sources in many groups, which interior periods run.
//!
//! Profiles lie in memory as an array over the box, of which each thread reads the values at its own index; a period
//! whose threads have added is like any other. A kernel is made for a list of sources; the place of each and the values
//! that it adds are parameters. Volume sources act before points do. Corrections near the faces of boxes of total
//! fields have waves instead of profiles ([`super::correction`]).

use super::super::abi::{TowerParams, VolumeParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Variable};
use super::context::{Context, Lane};
use super::copied::Copied;
use super::task;
use crate::incident::FarRows;
use crate::lattice::Interval;
use crate::scheme::{Cmp, ComponentId, Precision, StageId};
use crate::tower::block::WARP;
use crate::tower::{Adds, Group, RowUpdate, VolumeSource};

/// Along an axis.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub lo: Operand,
    pub len: Operand,
    pub stride: Operand,
}

/// A source as a kernel finds it in its parameters.
pub(super) struct Volume {
    pub profiles: Operand,
    pub ranges: [Range; 3],
    pub wave: Operand,
    pub adds: Adds,
}

/// Indices of a row along the first two axes, and whether the thread has something to do there.
#[derive(Clone, Copy)]
pub(super) struct RowPlace {
    pub at: [Operand; 2],
    /// Its plane, as the array has it.
    pub plane: Operand,
    pub inside: Operand,
}

/// Where a thread is that a source concerns: from the first index of its box along the inner axis, and in the periods
/// of the time block.
#[derive(Clone, Copy)]
pub(super) struct Within {
    pub z: Operand,
    pub period: Operand,
}

/// The patterns, in the lanes of a warp, of the rows of a stage that an update writes, in periods near faces of boxes
/// of total fields: for a source, by its number.
pub(super) struct RowPatterns {
    source: usize,
    rows: Vec<RowUpdate>,
    /// The pattern of the row whose number is the lane's, and of each row that is a multiple of a warp's lanes farther.
    words: Vec<Variable>,
}

/// Rows of one update to which sources add.
pub(super) struct Rows<'r> {
    pub of: (StageId, ComponentId),
    /// Whether the thread writes rows of interior periods, if that is not all of them.
    pub active: Option<Operand>,
    /// The period of the time block, which interior ones count from the last one's end on; and the step of the period.
    pub period: Operand,
    pub step: i32,
    pub places: Places<'r>,
}

impl<'r> Rows<'r> {
    /// Where waves are that were copied.
    fn copied(&self) -> Option<Copied<'r>> {
        match self.places {
            Places::Interior { copied, .. } => copied,
            Places::Boundary(_) => None,
        }
    }

    /// Their patterns for a source, from the lanes of the warp.
    fn patterns_of(&self, k: &mut Kernel<'_>, source: usize) -> Vec<Operand> {
        let Places::Interior { rows, patterns, .. } = self.places else {
            return Vec::new();
        };
        let of_source = patterns.iter().find(|known| known.source == source);
        let known = of_source.into_iter().flat_map(|known| {
            let numbers = rows
                .iter()
                .filter_map(|row| known.rows.iter().position(|r| r == row));
            numbers.map(|number| (known.words[number / WARP as usize], number % WARP as usize))
        });
        let known: Vec<(Variable, usize)> = known.collect();
        let own = known.into_iter().map(|(word, lane)| {
            let word = k.get(word);
            k.of_lane(word, lane as i32)
        });
        own.collect()
    }

    /// Their period, counted in periods of the time block.
    fn period_of_block(&self, k: &mut Kernel<'_>) -> Operand {
        match self.places {
            Places::Interior { words, .. } => {
                let end = task::interior_end(k, words);
                k.int(IntOp::Add, self.period, end)
            }
            Places::Boundary(_) => self.period,
        }
    }
}

/// Where rows are.
#[derive(Clone, Copy)]
pub(super) enum Places<'r> {
    /// Relative to the origin of an interior period; the block's task, from which that follows.
    Interior {
        rows: &'r [RowUpdate],
        words: Operand,
        /// Where waves are that were copied.
        copied: Option<Copied<'r>>,
        /// Whether the period is near faces of boxes of total fields, where it may be.
        near: Option<Operand>,
        /// Of rows of the stage.
        patterns: &'r [RowPatterns],
    },
    Boundary(&'r [RowPlace]),
}

impl Volume {
    pub fn new(k: &Kernel<'_>, context: &Context<'_>, number: usize) -> Volume {
        let param = |parameter: usize| k.param(TowerParams::of_volume(number, parameter));
        let range = |axis: usize| Range {
            lo: param(VolumeParams::lo(axis)),
            len: param(VolumeParams::len(axis)),
            stride: param(VolumeParams::stride(axis)),
        };
        Volume {
            profiles: param(VolumeParams::PROFILES),
            ranges: [0, 1, 2].map(range),
            wave: param(VolumeParams::WAVE),
            adds: context.program.sources[number].adds,
        }
    }

    /// Whether profiles are not the same everywhere.
    fn differs(&self, k: &mut Kernel<'_>) -> Operand {
        let [outer, ..] = self.ranges;
        k.compare(IntCmp::Ne, outer.stride, Operand::i32(0))
    }

    /// Whether a row is in the box, and the thread has something to do there.
    pub fn has(&self, k: &mut Kernel<'_>, row: RowPlace) -> Operand {
        let mut inside = row.inside;
        for (at, range) in row.at.into_iter().zip(self.ranges) {
            let from = k.int(IntOp::Sub, at, range.lo);
            let within = k.compare(IntCmp::Below, from, range.len);
            inside = k.int(IntOp::And, inside, within);
        }
        inside
    }

    /// Where the profile of a row lies at an index of the box along the inner axis.
    fn profile(&self, k: &mut Kernel<'_>, z: Operand, row: RowPlace) -> Operand {
        let [.., along] = self.ranges;
        let mut element = k.int(IntOp::Mul, z, along.stride);
        for (at, range) in row.at.into_iter().zip(self.ranges) {
            let from = k.int(IntOp::Sub, at, range.lo);
            let by = k.int(IntOp::Mul, from, range.stride);
            element = k.int(IntOp::Add, element, by);
        }
        let element = k.resize(element, Type::I64);
        k.advance(self.profiles, element, 8)
    }

    /// Whether all of a period's rows, and the groups between them, are in the box.
    pub fn is_around(&self, k: &mut Kernel<'_>, at: [Operand; 2], rows: &[RowUpdate]) -> Operand {
        let mut around = Operand::int(Type::I1, 1);
        for (n, (at, range)) in at.into_iter().zip(self.ranges).enumerate() {
            let hull = hull_along(rows, n);
            for end in [hull.lo, hull.hi - 1] {
                let end = k.int(IntOp::Add, at, Operand::i32(end as i32));
                let from = k.int(IntOp::Sub, end, range.lo);
                let within = k.compare(IntCmp::Below, from, range.len);
                around = k.int(IntOp::And, around, within);
            }
        }
        around
    }

    /// Whether some of a period's rows, or of the groups between them, may be in the box.
    fn is_near(&self, k: &mut Kernel<'_>, at: [Operand; 2], rows: &[RowUpdate]) -> Operand {
        let mut near = Operand::int(Type::I1, 1);
        for (n, (at, range)) in at.into_iter().zip(self.ranges).enumerate() {
            let hull = hull_along(rows, n);
            let last = k.int(IntOp::Add, at, Operand::i32(hull.hi as i32 - 1));
            let from = k.int(IntOp::Sub, last, range.lo);
            let more = Operand::i32(hull.len() as i32 - 1);
            // There is no register to keep it in.
            let len = k.again(range.len);
            let len = k.int(IntOp::Add, len, more);
            let within = k.compare(IntCmp::Below, from, len);
            near = k.int(IntOp::And, near, within);
        }
        near
    }

    /// Code for threads whose index along the inner axis is in the box, and not in the hole of corrections where no row
    /// is whole.
    fn along(
        &self,
        k: &mut Kernel<'_>,
        lane: &Lane,
        rows: &Rows<'_>,
        faces: Faces,
        body: impl FnOnce(&mut Kernel<'_>, Within),
    ) {
        // Threads have no register to keep it in.
        let thread = k.again(lane.thread);
        let [.., along] = self.ranges;
        let z = k.int(IntOp::Sub, thread, along.lo);
        let mut there = k.compare(IntCmp::Below, z, along.len);
        if matches!(self.adds, Adds::Correction(_)) && faces == Faces::Far {
            there = self.is_beside(k, thread, there);
        }
        if let Some(active) = rows.active {
            there = k.int(IntOp::And, there, active);
        }
        k.when(there, |k| {
            let period = rows.period_of_block(k);
            body(k, Within { z, period });
        });
    }

    /// Runs `body` in interior periods near the box, with the places of the rows, all of which are the thread's.
    /// Periods of alike rows are in the box or beside it.
    fn near(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        within: Within,
        body: impl FnOnce(&mut Kernel<'_>, &[RowPlace]),
    ) {
        let Places::Interior {
            rows: own, words, ..
        } = rows.places
        else {
            return;
        };
        let at = origin(k, context, within.period, words);
        let near = match self.are_alike(context, rows) {
            true => self.is_around(k, at, own),
            false => self.is_near(k, at, own),
        };
        k.when(near, |k| {
            let place = |k: &mut Kernel<'_>, row: &RowUpdate| {
                let Group { x, y } = row.at;
                let by = [x, y].map(|n| Operand::i32(n as i32));
                let at = [0, 1].map(|n| k.int(IntOp::Add, at[n], by[n]));
                RowPlace {
                    at,
                    plane: at[0],
                    inside: Operand::int(Type::I1, 1),
                }
            };
            let places: Vec<RowPlace> = own.iter().map(|row| place(k, row)).collect();
            body(k, &places);
        });
    }

    /// Corrects rows of an interior period that may be near faces across the first two axes: all threads of a warp come
    /// here, as each of them knows the pattern of a row.
    fn correct_near(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        number: usize,
        rows: &Rows<'_>,
        variables: &[Variable],
    ) {
        let own = rows.patterns_of(k, number);
        let any = any_is_there(k, &own);
        k.when(any, |k| {
            let faces = Faces::of(context, rows.places);
            self.along(k, lane, rows, faces, |k, within| {
                self.correct_by(k, context, rows, within, own, variables);
            });
        });
    }

    /// Where the wave of a step lies.
    fn wave(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
    ) -> Operand {
        let step = self.step(k, context, rows, at);
        let by = k.int(IntOp::Mul, step, k.param(TowerParams::WAVE_BYTES));
        let by = k.int(IntOp::Add, by, self.wave);
        k.advance_by_word(k.param(TowerParams::WAVES), by)
    }

    /// The number of the time block's step.
    pub fn step(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
    ) -> Operand {
        let steps = Operand::i32(context.towers().steps as i32);
        let step = k.int(IntOp::Mul, at.period, steps);
        k.int(IntOp::Add, step, Operand::i32(rows.step))
    }

    /// The value that the source adds, at an index of its box along the inner axis.
    fn add(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        places: &[RowPlace],
        variables: &[Variable],
    ) {
        if matches!(self.adds, Adds::Correction(_)) {
            self.correct(k, context, rows, at, places, variables);
            return;
        }
        let double = Type::scalar(Precision::F64);
        let wave = self.wave(k, context, rows, at);
        let wave = k.load(double, wave, 8, Access::ReadOnly);
        let added = |k: &mut Kernel<'_>, profile: Operand| {
            let added = k.product(profile, wave);
            k.convert(added, context.real)
        };
        let inside: Vec<Operand> = places.iter().map(|place| self.has(k, *place)).collect();
        let differs = self.differs(k);
        let differ = |k: &mut Kernel<'_>| {
            // All profiles are under way together, as far as there are registers.
            let loads = places.iter().zip(&inside).map(|(place, inside)| {
                let from = self.profile(k, at.z, *place);
                k.load_if(*inside, double, from)
            });
            let profiles: Vec<Operand> = loads.collect();
            for ((profile, inside), variable) in profiles.into_iter().zip(&inside).zip(variables) {
                let added = added(k, profile);
                let before = k.get(*variable);
                let after = k.sum(before, added);
                let after = k.select(Cmp::Eq, profile, profile, after, before);
                let after = k.choose(*inside, after, before);
                k.set(*variable, after);
            }
        };
        k.either(differs, differ, |k| {
            let profile = k.load(double, self.profiles, 8, Access::ReadOnly);
            let added = added(k, profile);
            for (inside, variable) in inside.iter().zip(variables) {
                let before = k.get(*variable);
                let after = k.sum(before, added);
                let after = k.choose(*inside, after, before);
                k.set(*variable, after);
            }
        });
    }
}

/// Whether one of some numbers is not negative.
pub(super) fn any_is_there(k: &mut Kernel<'_>, numbers: &[Operand]) -> Operand {
    let numbers = numbers.iter();
    let all = numbers.fold(Operand::i32(-1), |all, number| {
        k.int(IntOp::And, all, *number)
    });
    k.compare(IntCmp::Le, Operand::i32(0), all)
}

/// The index of the origin of a period of the time block.
pub(super) fn origin(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    period: Operand,
    words: Operand,
) -> [Operand; 2] {
    let at = task::interior_origin(k, context, words);
    let advance = context.towers().advance.array();
    [0, 1].map(|n| {
        let by = Operand::i32(advance[n] as i32);
        let by = k.int(IntOp::Mul, period, by);
        k.int(IntOp::Add, at[n], by)
    })
}

/// Whether faces of boxes across the first two axes may be near, where whole rows are corrected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Faces {
    Near,
    Far,
}

impl Faces {
    /// In boundary periods they may always be.
    pub fn of(context: &Context<'_>, places: Places<'_>) -> Faces {
        let interior = matches!(places, Places::Interior { .. });
        match interior && !context.near_faces() {
            true => Faces::Far,
            false => Faces::Near,
        }
    }
}

/// The rows of a period along one of the first two axes, from its origin.
fn hull_along(rows: &[RowUpdate], axis: usize) -> Interval {
    let offsets = rows.iter().map(|row| row.at.array()[axis]);
    let none = Interval::new(0, 0);
    offsets.fold(none, |hull, at| hull.hull(Interval::new(at, at + 1)))
}

/// The sources that add to some rows, by their numbers.
fn sources_of<'c>(context: &Context<'c>, rows: &Rows<'_>) -> impl Iterator<Item = usize> + use<'c> {
    let (stage, component) = rows.of;
    let all = context.program.sources.iter().enumerate();
    let acting = all.filter(move |(_, source)| source.is_after(stage, component));
    acting.map(|(number, _)| number)
}

/// How the waves of a source are found in some rows.
#[derive(Clone, Copy)]
enum Finding {
    /// There are none.
    No,
    /// Each thread looks for them.
    Looks,
    /// They were copied.
    Copied,
    /// Threads look for them in periods near faces; elsewhere they were copied, or there are none.
    LooksIf(Operand),
}

impl Finding {
    fn of(context: &Context<'_>, rows: &Rows<'_>, source: &VolumeSource) -> Finding {
        let Places::Interior { near, copied, .. } = rows.places else {
            return Finding::Looks;
        };
        let bare = source.adds == Adds::Correction(FarRows::Bare);
        let copied = copied.is_some() && source.is_copied();
        match near {
            Some(near) if bare || copied => Finding::LooksIf(near),
            None if bare && !context.near_faces() => Finding::No,
            None if copied => Finding::Copied,
            _ => Finding::Looks,
        }
    }
}

/// Has the lanes of a warp find the patterns of all rows of a stage that an update writes, in periods near faces of
/// boxes of total fields: they are loaded when the stage begins.
pub(super) fn find_patterns(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    rows: &Rows<'_>,
) -> Vec<RowPatterns> {
    let Places::Interior {
        rows: own, words, ..
    } = rows.places
    else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for source in sources_of(context, rows) {
        let near = match Finding::of(context, rows, &context.program.sources[source]) {
            Finding::Looks => None,
            Finding::LooksIf(near) => Some(near),
            Finding::No | Finding::Copied => continue,
        };
        let volume = Volume::new(k, context, source);
        if !volume.finds_by_lanes(context, rows) {
            continue;
        }
        let parts = own.chunks(WARP as usize);
        let found: Vec<Variable> = parts
            .map(|_| k.variable_of(Operand::i32(i32::MIN)))
            .collect();
        let find = |k: &mut Kernel<'_>| {
            let period = rows.period_of_block(k);
            let at = origin(k, context, period, words);
            for (part, found) in own.chunks(WARP as usize).zip(&found) {
                let pattern = volume.pattern_of_lane(k, at, part);
                k.set(*found, pattern);
            }
        };
        match near {
            Some(near) => k.when(near, find),
            None => find(k),
        }
        all.push(RowPatterns {
            source,
            rows: own.to_vec(),
            words: found,
        });
    }
    all
}

/// Adds the values of sources to the values of some rows.
pub(super) fn add(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    rows: &Rows<'_>,
    values: &mut [Operand],
) {
    let faces = Faces::of(context, rows.places);
    let mut copied = rows.copied();
    for number in sources_of(context, rows) {
        let source = &context.program.sources[number];
        let finding = Finding::of(context, rows, source);
        let own = copied.filter(|_| source.is_copied());
        if let Some(next) = copied.as_mut().filter(|_| source.is_copied()) {
            next.before += 1;
        }
        if matches!(finding, Finding::No) {
            continue;
        }
        let volume = Volume::new(k, context, number);
        let variables: Vec<Variable> = values.iter().map(|v| k.variable_of(*v)).collect();
        let look = |k: &mut Kernel<'_>| {
            if volume.finds_by_lanes(context, rows) {
                volume.correct_near(k, context, lane, number, rows, &variables);
                return;
            }
            volume.along(k, lane, rows, faces, |k, at| match rows.places {
                Places::Boundary(places) => volume.add(k, context, rows, at, places, &variables),
                Places::Interior { .. } => {
                    volume.near(k, context, rows, at, |k, places| {
                        volume.add(k, context, rows, at, places, &variables);
                    });
                }
            });
        };
        let add_copied = |k: &mut Kernel<'_>| {
            if let Some(own) = own {
                own.add(k, context, lane, number, rows.active, &variables);
            }
        };
        match finding {
            Finding::No => {}
            Finding::Looks => look(k),
            Finding::Copied => add_copied(k),
            Finding::LooksIf(near) => k.either(near, look, add_copied),
        }
        for (value, variable) in values.iter_mut().zip(variables) {
            *value = k.get(variable);
        }
    }
}

/// Prefetches the values that sources will add to rows of an interior period, so that they are near when they are
/// needed.
pub(super) fn prefetch(k: &mut Kernel<'_>, context: &Context<'_>, lane: &Lane, rows: &Rows<'_>) {
    for number in sources_of(context, rows) {
        let volume = Volume::new(k, context, number);
        let faces = Faces::of(context, rows.places);
        if matches!(volume.adds, Adds::Correction(_)) {
            let fetch = |k: &mut Kernel<'_>| {
                volume.along(k, lane, rows, faces, |k, at| {
                    volume.near(k, context, rows, at, |k, places| {
                        volume.prefetch_waves(k, context, rows, at, places);
                    });
                });
            };
            match Finding::of(context, rows, &context.program.sources[number]) {
                Finding::No | Finding::Copied => {}
                Finding::Looks => fetch(k),
                Finding::LooksIf(near) => k.when(near, fetch),
            }
            continue;
        }
        volume.along(k, lane, rows, faces, |k, at| {
            let wave = volume.wave(k, context, rows, at);
            k.prefetch_if(Operand::int(Type::I1, 1), wave);
            // One value for all is soon there anyway.
            let differ = volume.differs(k);
            k.when(differ, |k| {
                volume.near(k, context, rows, at, |k, places| {
                    for place in places {
                        let inside = volume.has(k, *place);
                        let from = volume.profile(k, at.z, *place);
                        k.prefetch_if(inside, from);
                    }
                });
            });
        });
    }
}
