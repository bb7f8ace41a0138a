//! Sheets: sources in so many columns of cells that whole periods run them, too.
//!
//! A sheet adds `round(profile * wave)` to values of a component after its update in a stage, where they lie in a box. Profiles lie in
//! memory as an array over the box, of which each thread reads the values at its own index; a period whose threads have added is like any
//! other. A kernel is made for a list of [`Acting`]; where each of them acts, and what it adds, are parameters. Sheets act before hooks
//! do: sources that are hooks come after all sheets that share a cell with them.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Variable};
use super::flow::param;
use super::ticket;
use super::write::Writer;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::scheme::{Cmp, ComponentId, Precision, StageId};
use crate::tile::residency::Own;

/// After which update a sheet acts: what a kernel has to know when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acting {
    pub stage: StageId,
    pub component: ComponentId,
}

/// What a sheet adds, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// Within the region of the update.
    pub region: Region,
    /// From a profile to the next one along an axis, in numbers of double precision from that of the region's first index; all 0 where it
    /// is the same everywhere. NaN where the sheet does not act.
    pub stride: PerAxis<i32>,
    /// Which of the step's waves.
    pub wave: i32,
}

/// Axes in the order of parameters.
const AXES: [Axis; 3] = [Axis::OUTER, Axis::MIDDLE, Axis::INNER];

impl Sheet {
    /// Parameters of a kernel for a sheet: its profiles, and so many words.
    pub const WORDS: usize = 3 * AXES.len() + 1;

    /// Its words; `None` where indices are too large for them.
    pub fn words(&self) -> Option<[i32; Sheet::WORDS]> {
        let mut words = [0; Sheet::WORDS];
        for (axis, words) in AXES.into_iter().zip(words.chunks_exact_mut(3)) {
            let range = self.region[axis];
            words[0] = i32::try_from(range.lo).ok()?;
            words[1] = i32::try_from(range.len().max(0)).ok()?;
            words[2] = self.stride[axis];
        }
        words[Sheet::WORDS - 1] = self.wave.checked_mul(8)?;
        Some(words)
    }
}

/// The types of the parameters of a kernel with sheets, after those of every kernel: the bytes of a step's waves, and each sheet's own.
pub(super) fn params(sheets: &[Acting]) -> Vec<Type> {
    let mut types = Vec::new();
    if !sheets.is_empty() {
        types.push(Type::I32);
    }
    for _ in sheets {
        types.push(Type::GLOBAL);
        types.extend([Type::I32; Sheet::WORDS]);
    }
    types
}

/// Along an axis.
#[derive(Clone, Copy)]
struct Range {
    lo: Operand,
    len: Operand,
    stride: Operand,
}

/// A sheet as a kernel finds it in its parameters.
struct Found {
    profile: Operand,
    ranges: [Range; AXES.len()],
    wave: Operand,
}

impl Found {
    fn new(k: &Kernel<'_>, number: usize) -> Found {
        let first = param::SHEETS + 1 + number * (1 + Sheet::WORDS);
        let word = |n: usize| k.param(first + 1 + n);
        let range = |n: usize| Range {
            lo: word(3 * n),
            len: word(3 * n + 1),
            stride: word(3 * n + 2),
        };
        Found {
            profile: k.param(first),
            ranges: [0, 1, 2].map(range),
            wave: word(Sheet::WORDS - 1),
        }
    }

    /// Whether profiles are not the same everywhere.
    fn differs(&self, k: &mut Kernel<'_>) -> Operand {
        let [lean, ..] = self.ranges;
        k.compare(IntCmp::Ne, lean.stride, Operand::i32(0))
    }

    /// Whether a row is in the box, and the thread has something to do there.
    fn has(&self, k: &mut Kernel<'_>, (at, inside): Place) -> Operand {
        let mut inside = inside;
        for (at, range) in at.into_iter().zip(self.ranges) {
            let from = k.int(IntOp::Sub, at, range.lo);
            let within = k.compare(IntCmp::Below, from, range.len);
            inside = k.int(IntOp::And, inside, within);
        }
        inside
    }

    /// Where the profile of a row lies at an index of the box along the inner axis.
    fn profile(&self, k: &mut Kernel<'_>, z: Operand, (at, _): Place) -> Operand {
        let [.., along] = self.ranges;
        let mut element = k.int(IntOp::Mul, z, along.stride);
        for (at, range) in at.into_iter().zip(self.ranges) {
            let from = k.int(IntOp::Sub, at, range.lo);
            let by = k.int(IntOp::Mul, from, range.stride);
            element = k.int(IntOp::Add, element, by);
        }
        let element = k.resize(element, Type::I64);
        k.advance(self.profile, element, 8)
    }

    /// Whether some of a period's rows, or what lies between them, may be in the box.
    fn is_near(&self, k: &mut Kernel<'_>, at: [Operand; 2], own: &[Own]) -> Operand {
        let mut near = Operand::int(Type::I1, 1);
        for (n, (at, range)) in at.into_iter().zip(self.ranges).enumerate() {
            let offsets = own.iter().map(|own| [own.x, own.y][n]);
            let none = Interval::new(0, 0);
            let hull = offsets.fold(none, |hull, at| hull.hull(Interval::new(at, at + 1)));
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
}

/// Indices of a row along the first two axes, and whether the thread has something to do there.
pub(super) type Place = ([Operand; 2], Operand);

/// Where a thread is that a sheet concerns: from the first index of its box along the inner axis, and in the periods of the time block.
#[derive(Clone, Copy)]
struct Within {
    z: Operand,
    period: Operand,
}

/// Rows of one update to which sheets add.
pub(super) struct Rows<'r> {
    pub acting: Acting,
    /// Whether the thread writes rows of whole periods, if that is not all of them.
    pub active: Option<Operand>,
    /// The period of the time block, which whole ones count from the last one's end on; and the step of the period.
    pub period: Operand,
    pub step: i32,
    pub places: Places<'r>,
}

/// Where rows are.
pub(super) enum Places<'r> {
    /// Relative to the origin of a whole period; the block's task, from which that follows.
    Whole(&'r [Own], Operand),
    Cut(&'r [Place]),
}

impl Writer<'_> {
    pub(super) fn has_sheets(&self, acting: Acting) -> bool {
        self.sheets.contains(&acting)
    }

    /// Adds to the values of some rows what sheets add.
    pub(super) fn add_sheets(&self, k: &mut Kernel<'_>, rows: &Rows<'_>, values: &mut [Operand]) {
        for number in self.sheets_of(rows) {
            let sheet = Found::new(k, number);
            let variables: Vec<Variable> = values.iter().map(|v| k.variable_of(*v)).collect();
            self.along(k, &sheet, rows, |k, at| match rows.places {
                Places::Cut(places) => self.add_sheet(k, &sheet, (rows, at), places, &variables),
                Places::Whole(own, task) => self.near(k, &sheet, at, (own, task), |k, places| {
                    self.add_sheet(k, &sheet, (rows, at), places, &variables);
                }),
            });
            for (value, variable) in values.iter_mut().zip(variables) {
                *value = k.get(variable);
            }
        }
    }

    /// Fetches what sheets will add to rows of a whole period, so that it is near when it is needed.
    pub(super) fn fetch_sheets(&self, k: &mut Kernel<'_>, rows: &Rows<'_>) {
        let Places::Whole(own, task) = rows.places else {
            return;
        };
        for number in self.sheets_of(rows) {
            let sheet = Found::new(k, number);
            self.along(k, &sheet, rows, |k, at| {
                let wave = self.wave(k, &sheet, rows, at);
                k.prefetch_if(Operand::int(Type::I1, 1), wave);
                // One value for all is soon there anyway.
                let differ = sheet.differs(k);
                k.when(differ, |k| {
                    self.near(k, &sheet, at, (own, task), |k, places| {
                        for place in places {
                            let inside = sheet.has(k, *place);
                            let from = sheet.profile(k, at.z, *place);
                            k.prefetch_if(inside, from);
                        }
                    });
                });
            });
        }
    }

    /// The sheets that add to some rows, by their numbers.
    fn sheets_of(&self, rows: &Rows<'_>) -> impl Iterator<Item = usize> {
        let sheets = self.sheets.iter().enumerate();
        sheets.filter_map(|(number, acting)| (*acting == rows.acting).then_some(number))
    }

    /// What threads do whose index along the inner axis is in a sheet's box.
    fn along(
        &self,
        k: &mut Kernel<'_>,
        sheet: &Found,
        rows: &Rows<'_>,
        body: impl FnOnce(&mut Kernel<'_>, Within),
    ) {
        // Threads have no register to keep it in.
        let thread = k.again(self.thread);
        let [.., along] = sheet.ranges;
        let z = k.int(IntOp::Sub, thread, along.lo);
        let mut there = k.compare(IntCmp::Below, z, along.len);
        if let Some(active) = rows.active {
            there = k.int(IntOp::And, there, active);
        }
        k.when(there, |k| {
            let period = match rows.places {
                Places::Whole(_, task) => {
                    let end = ticket::whole_end(k, task);
                    k.int(IntOp::Add, rows.period, end)
                }
                Places::Cut(_) => rows.period,
            };
            body(k, Within { z, period });
        });
    }

    /// What is done to a sheet in whole periods near it: with where the rows are, all of which are the thread's.
    fn near(
        &self,
        k: &mut Kernel<'_>,
        sheet: &Found,
        within: Within,
        (own, task): (&[Own], Operand),
        body: impl FnOnce(&mut Kernel<'_>, &[Place]),
    ) {
        let at = self.origin(k, within.period, task);
        let near = sheet.is_near(k, at, own);
        k.when(near, |k| {
            let place = |k: &mut Kernel<'_>, own: &Own| {
                let by = [own.x, own.y].map(|n| Operand::i32(n as i32));
                let at = [0, 1].map(|n| k.int(IntOp::Add, at[n], by[n]));
                (at, Operand::int(Type::I1, 1))
            };
            let places: Vec<Place> = own.iter().map(|own| place(k, own)).collect();
            body(k, &places);
        });
    }

    /// The index of the origin of a period.
    fn origin(&self, k: &mut Kernel<'_>, period: Operand, task: Operand) -> [Operand; 2] {
        let at = ticket::whole_at(k, task, self.towers.rings.is_any());
        [0, 1].map(|n| {
            let by = Operand::i32(self.towers.advance[n] as i32);
            let by = k.int(IntOp::Mul, period, by);
            k.int(IntOp::Add, at[n], by)
        })
    }

    /// What one sheet adds, at an index of its box along the inner axis.
    fn add_sheet(
        &self,
        k: &mut Kernel<'_>,
        sheet: &Found,
        (rows, at): (&Rows<'_>, Within),
        places: &[Place],
        variables: &[Variable],
    ) {
        let double = Type::scalar(Precision::F64);
        let wave = self.wave(k, sheet, rows, at);
        let wave = k.load(double, wave, 8, Access::ReadOnly);
        let added = |k: &mut Kernel<'_>, profile: Operand| {
            let added = k.product(profile, wave);
            k.convert(added, self.real)
        };
        let inside: Vec<Operand> = places.iter().map(|place| sheet.has(k, *place)).collect();
        let differs = sheet.differs(k);
        let differ = |k: &mut Kernel<'_>| {
            // All profiles are under way together, as far as there are registers.
            let loads = places.iter().zip(&inside).map(|(place, inside)| {
                let from = sheet.profile(k, at.z, *place);
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
            let profile = k.load(double, sheet.profile, 8, Access::ReadOnly);
            let added = added(k, profile);
            for (inside, variable) in inside.iter().zip(variables) {
                let before = k.get(*variable);
                let after = k.sum(before, added);
                let after = k.choose(*inside, after, before);
                k.set(*variable, after);
            }
        });
    }

    /// Where the wave of a sheet lies.
    fn wave(&self, k: &mut Kernel<'_>, sheet: &Found, rows: &Rows<'_>, at: Within) -> Operand {
        let steps = Operand::i32(self.towers.steps as i32);
        let step = k.int(IntOp::Mul, at.period, steps);
        let step = k.int(IntOp::Add, step, Operand::i32(rows.step));
        let by = k.int(IntOp::Mul, step, k.param(param::SHEETS));
        let by = k.int(IntOp::Add, by, sheet.wave);
        k.advance_by_word(k.param(param::WAVES), by)
    }
}
