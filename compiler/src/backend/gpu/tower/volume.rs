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
use super::correction_words::{Correction, box_of};
use super::source_box::{RowPlace, SourceBox, Within, origin};
use super::source_rows::{Faces, Places, RowPatterns, Rows, any_is_there};
use crate::incident::FarRows;
use crate::scheme::{Cmp, Precision};
use crate::tower::block::WARP;
use crate::tower::{Adds, Group, RowUpdate, VolumeSource};

/// A source that adds the product of a profile and a wave.
struct Product {
    source_box: SourceBox,
    /// The profile of the box's first cell.
    profiles: Operand,
    /// From a profile to the next one along each axis; all 0 where profiles are the same everywhere.
    strides: [Operand; 3],
    /// Where its wave lies among the waves of a step, in bytes.
    wave: Operand,
}

/// A source as a kernel finds it in its parameters.
enum Volume {
    Product(Product),
    Correction(Correction),
}

impl Product {
    fn new(k: &Kernel<'_>, number: usize) -> Product {
        let param = |parameter: usize| k.param(TowerParams::of_volume(number, parameter));
        Product {
            source_box: box_of(k, number),
            profiles: param(VolumeParams::PROFILES),
            strides: [0, 1, 2].map(|axis| param(VolumeParams::stride(axis))),
            wave: param(VolumeParams::WAVE),
        }
    }

    /// Whether profiles are not the same everywhere.
    fn differs(&self, k: &mut Kernel<'_>) -> Operand {
        let [outer, ..] = self.strides;
        k.compare(IntCmp::Ne, outer, Operand::i32(0))
    }

    /// Where the profile of a row lies at an index of the box along the inner axis.
    fn profile(&self, k: &mut Kernel<'_>, z: Operand, row: RowPlace) -> Operand {
        let ([.., inner], SourceBox(ranges)) = (self.strides, self.source_box);
        let mut element = k.int(IntOp::Mul, z, inner);
        for ((at, range), stride) in row.at.into_iter().zip(ranges).zip(self.strides) {
            let from = k.int(IntOp::Sub, at, range.lo);
            let by = k.int(IntOp::Mul, from, stride);
            element = k.int(IntOp::Add, element, by);
        }
        let element = k.resize(element, Type::I64);
        k.advance(self.profiles, element, 8)
    }

    /// Where the wave of a step lies.
    fn wave(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
    ) -> Operand {
        let step = rows.step(k, context, at);
        let by = k.int(IntOp::Mul, step, k.param(TowerParams::WAVE_BYTES));
        let by = k.int(IntOp::Add, by, self.wave);
        k.advance_by_word(k.param(TowerParams::WAVES), by)
    }

    /// Adds to the values of some rows, at an index of the box along the inner axis.
    fn add(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        places: &[RowPlace],
        variables: &[Variable],
    ) {
        let double = Type::scalar(Precision::F64);
        let wave = self.wave(k, context, rows, at);
        let wave = k.load(double, wave, 8, Access::ReadOnly);
        let added = |k: &mut Kernel<'_>, profile: Operand| {
            let added = k.product(profile, wave);
            k.convert(added, context.real)
        };
        let inside: Vec<Operand> = places
            .iter()
            .map(|place| self.source_box.has(k, *place))
            .collect();
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

impl Volume {
    fn new(k: &Kernel<'_>, context: &Context<'_>, number: usize) -> Volume {
        match context.program.sources[number].adds {
            Adds::Product => Volume::Product(Product::new(k, number)),
            Adds::Correction(far_rows) => Volume::Correction(Correction::new(k, number, far_rows)),
        }
    }

    fn source_box(&self) -> SourceBox {
        match self {
            Volume::Product(product) => product.source_box,
            Volume::Correction(correction) => correction.source_box,
        }
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
        let along = self.source_box().inner();
        let z = k.int(IntOp::Sub, thread, along.lo);
        let mut there = k.compare(IntCmp::Below, z, along.len);
        if let (Volume::Correction(correction), Faces::Far) = (self, faces) {
            there = correction.is_beside(k, thread, there);
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
        let near = match self {
            Volume::Correction(correction) if correction.are_alike(context, rows) => {
                self.source_box().is_around(k, at, own)
            }
            _ => self.source_box().is_near(k, at, own),
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

    /// Adds to the values of some rows, at an index of the box along the inner axis.
    fn add(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        rows: &Rows<'_>,
        at: Within,
        places: &[RowPlace],
        variables: &[Variable],
    ) {
        match self {
            Volume::Product(product) => product.add(k, context, rows, at, places, variables),
            Volume::Correction(correction) => {
                correction.correct(k, context, rows, at, places, variables);
            }
        }
    }
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
        let Volume::Correction(correction) = Volume::new(k, context, source) else {
            continue;
        };
        if !correction.finds_by_lanes(context, rows) {
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
                let pattern = correction.pattern_of_lane(k, at, part);
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
            if let Volume::Correction(correction) = &volume
                && correction.finds_by_lanes(context, rows)
            {
                // All threads of a warp come here, as each of them knows the pattern of a row.
                let own = rows.patterns_of(k, number);
                let any = any_is_there(k, &own);
                k.when(any, |k| {
                    volume.along(k, lane, rows, faces, |k, within| {
                        correction.correct_by(k, context, rows, within, own, &variables);
                    });
                });
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
    let faces = Faces::of(context, rows.places);
    for number in sources_of(context, rows) {
        let volume = Volume::new(k, context, number);
        match &volume {
            Volume::Correction(correction) => {
                let fetch = |k: &mut Kernel<'_>| {
                    volume.along(k, lane, rows, faces, |k, at| {
                        volume.near(k, context, rows, at, |k, places| {
                            correction.prefetch_waves(k, context, rows, at, places);
                        });
                    });
                };
                match Finding::of(context, rows, &context.program.sources[number]) {
                    Finding::No | Finding::Copied => {}
                    Finding::Looks => fetch(k),
                    Finding::LooksIf(near) => k.when(near, fetch),
                }
            }
            Volume::Product(product) => volume.along(k, lane, rows, faces, |k, at| {
                let wave = product.wave(k, context, rows, at);
                k.prefetch_if(Operand::int(Type::I1, 1), wave);
                // One value for all is soon there anyway.
                let differ = product.differs(k);
                k.when(differ, |k| {
                    volume.near(k, context, rows, at, |k, places| {
                        for place in places {
                            let inside = product.source_box.has(k, *place);
                            let from = product.profile(k, at.z, *place);
                            k.prefetch_if(inside, from);
                        }
                    });
                });
            }),
        }
    }
}
