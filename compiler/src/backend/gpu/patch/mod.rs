//! Prints patch programs ([`crate::patch`]): one kernel, with code for tiles that no end of the grid, zone, source or
//! probe meets, and code for all others.
//!
//! ```text
//! place           which tile, which patch; pointers                             place
//! load            rows and coefficients into registers                          memory
//!                 states into the tile's room                                   states
//! rounds          stages: updates, amendments, sources, ghosts, cells           stage, amend, points, ends
//!                 that are published and read
//! exchange        where tiles stay, between time blocks                         exchange
//! store           the base                                                      memory
//! ```

mod amend;
mod cells;
mod context;
mod ends;
mod exchange;
mod ghosts;
mod memory;
mod place;
mod points;
mod stage;
mod states;

pub use ghosts::{GHOSTS, ghost_threads};

use super::abi::Patches;
use super::feature::Feature;
use super::ir::{Launch, Module, Operand, Type};
use super::kernel::{IntCmp, IntOp, Kernel, Variable};
use super::nvidia::Gpu;
use crate::layout::Layout;
use crate::patch::{CoefPlace, PatchProgram, Staying, WARP};
use crate::scheme::{CoefId, Scheme};
use context::{Context, Surroundings, Values};
use exchange::{Halo, Waiting};
use memory::Store;
use place::Patch;
use stage::After;

/// The kernel's name.
pub const PATCHES: &str = "torre_patches";

/// Whether blocks of a launch may begin before the launch before has ended: the kernel waits for its end by itself.
pub fn begins_early(program: &PatchProgram, gpu: Gpu) -> bool {
    program.stays.is_none() && gpu.has(Feature::EarlyLaunch)
}

/// Adds the kernels of a program. A block has [`PatchProgram::shared_bytes`] of shared memory on demand.
pub fn emit(
    module: &mut Module,
    scheme: &Scheme,
    layout: &Layout,
    program: &PatchProgram,
    gpu: Gpu,
) {
    ghosts::write(module, scheme, layout);
    let context = Context {
        scheme,
        layout,
        program,
        early: begins_early(program, gpu),
        real: Type::scalar(scheme.precision),
        bytes: scheme.precision.bytes() as i64,
    };
    let shared = module.shared_on_demand(16);
    let launch = Launch {
        threads: [WARP as u32, program.shape.warps() as u32, 1],
        blocks: program.shape.blocks,
        ..Launch::default()
    };
    let mut k = module.kernel(PATCHES, Patches::TYPES, launch);
    let patch = Patch::new(&mut k, &context, shared);
    let bare = patch.is_bare(&mut k, &context);
    if context.early {
        k.after_launches();
    }
    k.either(
        bare,
        |k| context.tile(k, &patch, Surroundings::Bare),
        |k| context.tile(k, &patch, Surroundings::Ends),
    );
    k.finish();
}

/// An exchange that follows a time block.
#[derive(Clone, Copy)]
struct Rims<'a> {
    halo: Halo<'a>,
    /// Its number in the launch.
    number: Operand,
    /// Whether it follows.
    more: Operand,
}

/// The rounds of a tile in a launch: one code for all of them.
struct Rounds<'p> {
    patch: &'p Patch,
    surroundings: Surroundings,
    /// Rows that are kept from round to round, each with its values.
    kept: Vec<(usize, Vec<Variable>)>,
    /// Rows that are final before the last stage of a time block, each with the stage that writes it last.
    early: Vec<(usize, usize)>,
    /// The number of rounds, and the last one.
    count: Operand,
    last: Operand,
    /// Whether the last round stores rows that are not kept, too.
    all: Operand,
}

impl Rounds<'_> {
    /// Reads the rows that are kept.
    fn get(&self, k: &mut Kernel<'_>, values: &mut Values) {
        for (row, own) in &self.kept {
            values.rows[*row] = own.iter().map(|variable| k.get(*variable)).collect();
        }
    }

    /// Keeps them.
    fn set(&self, k: &mut Kernel<'_>, values: &Values) {
        for (row, own) in &self.kept {
            let pairs = own.iter().zip(&values.rows[*row]);
            pairs.for_each(|(variable, value)| k.set(*variable, *value));
        }
    }
}

impl Context<'_> {
    /// A tile from its first load to its last store.
    fn tile(&self, k: &mut Kernel<'_>, patch: &Patch, surroundings: Surroundings) {
        let ends = surroundings == Surroundings::Ends;
        let mut values = self.load(k, patch, surroundings);
        if ends {
            self.ghosts_of_held(k, patch, &mut values);
            self.load_states(k, patch);
        }
        self.publish_begin(k, patch, &values);
        let rounds = self.rounds(k, patch, surroundings, &values);
        match &self.program.stays {
            None => {
                let (zero, one) = (Operand::i32(0), Operand::i32(1));
                k.repeat(zero, rounds.count, one, Some(1), |k, n| {
                    self.round(k, &rounds, n, None, &mut values);
                });
            }
            Some(staying) => self.time_blocks(k, &rounds, staying, &mut values),
        }
        rounds.get(k, &mut values);
        let to = Store {
            array: k.param(Patches::TO),
            rims: None,
            surroundings,
        };
        for (row, _) in &rounds.kept {
            self.store(k, patch, *row, &values.rows[*row], to);
        }
        if ends {
            self.store_states(k, patch, to);
        }
    }

    /// The rounds of a tile that has loaded its values: they become variables.
    fn rounds<'p>(
        &self,
        k: &mut Kernel<'_>,
        patch: &'p Patch,
        surroundings: Surroundings,
        values: &Values,
    ) -> Rounds<'p> {
        let kept = self.program.held_rows().map(|row| {
            let own = values.rows[row].iter().map(|value| k.variable_of(*value));
            (row, own.collect())
        });
        let kept = kept.collect();
        let [count, all] = [Patches::ROUNDS, Patches::ALL].map(|n| k.param(n));
        Rounds {
            patch,
            surroundings,
            kept,
            early: self.final_early(),
            count,
            last: k.int(IntOp::Sub, count, Operand::i32(1)),
            all: k.compare(IntCmp::Ne, all, Operand::i32(0)),
        }
    }

    /// All stages of round `number`. `rims`: the exchange after it, whose rims are stored as soon as they are final.
    fn round(
        &self,
        k: &mut Kernel<'_>,
        rounds: &Rounds<'_>,
        number: Operand,
        rims: Option<Rims<'_>>,
        values: &mut Values,
    ) {
        rounds.get(k, values);
        let ends = rounds.surroundings == Surroundings::Ends;
        let at_end = k.compare(IntCmp::Eq, number, rounds.last);
        let leaves = k.int(IntOp::And, at_end, rounds.all);
        for (n, stage) in self.program.stages.iter().enumerate() {
            // An exchange publishes all that the next round reads.
            let is_read = !self.program.exchanges_each_round() || n + 1 < self.program.stages.len();
            let after = After { leaves, is_read };
            self.stage(
                k,
                rounds.patch,
                stage,
                ends.then_some(number),
                after,
                values,
            );
            let rows = rounds.early.iter().filter(|(stage, _)| *stage == n);
            let rows: Vec<usize> = rows.map(|(_, row)| *row).collect();
            if let Some(Rims { halo, number, more }) = rims.filter(|_| !rows.is_empty()) {
                k.when(more, |k| {
                    let array = self.rims(k, number);
                    self.store_rims(k, rounds.patch, halo, array, &rows, values);
                });
            }
        }
        rounds.set(k, values);
    }

    /// The time blocks of a tile that stays on the chip, with an exchange between two of them.
    fn time_blocks(
        &self,
        k: &mut Kernel<'_>,
        rounds: &Rounds<'_>,
        staying: &Staying,
        values: &mut Values,
    ) {
        let waiting = Waiting::new(k, staying, rounds.patch.tile);
        let halo = Halo {
            waiting: &waiting,
            staying,
            surroundings: rounds.surroundings,
        };
        let (zero, one) = (Operand::i32(0), Operand::i32(1));
        // Rounds of a time block.
        let height = Operand::i32((self.program.height / self.program.round) as i32);
        k.repeat(zero, rounds.count, height, Some(1), |k, first| {
            let end = k.int(IntOp::Add, first, height);
            let end = k.int(IntOp::Min, end, rounds.count);
            let more = k.compare(IntCmp::Lt, end, rounds.count);
            let number = k.int(IntOp::Div, first, height);
            if self.program.exchanges_each_round() {
                let rims = Rims { halo, number, more };
                self.round(k, rounds, first, Some(rims), values);
            } else {
                k.repeat(first, end, one, Some(1), |k, n| {
                    self.round(k, rounds, n, None, values);
                });
            }
            k.when(more, |k| {
                rounds.get(k, values);
                self.exchange(k, rounds.patch, halo, number, values);
                rounds.set(k, values);
            });
        });
    }

    /// Publishes the rows that the first stage of a round reads of others. All threads of the block are here.
    fn publish_begin(&self, k: &mut Kernel<'_>, patch: &Patch, values: &Values) {
        let begin = &self.program.begin;
        begin
            .iter()
            .for_each(|row| self.publish(k, patch, *row, values));
        if self.program.slots.count() > 0 {
            k.barrier();
        }
    }

    /// Makes the ghosts of all rows that are held.
    fn ghosts_of_held(&self, k: &mut Kernel<'_>, patch: &Patch, values: &mut Values) {
        for row in self.program.held_rows() {
            let mut at = self.coordinates(k, patch);
            self.ghosts(k, patch, &mut at, &[row], values);
        }
    }

    /// The place of a coefficient among the coefficients of the program.
    fn coef_number(&self, coef: CoefId) -> usize {
        self.program.coefs.binary_search(&coef).unwrap_or(0)
    }

    /// Bytes from the beginning of shared memory to the coefficients, and to ghosts along the axes.
    fn areas(&self) -> [i64; 4] {
        let element = self.bytes as usize;
        let coefs = self.program.slots.bytes(&self.program.shape, element);
        let [outer, middle, _] = self.program.ghost_bytes(element);
        let ghosts = coefs + self.program.coef_bytes(element);
        [coefs, ghosts, ghosts + outer, ghosts + outer + middle].map(|bytes| bytes as i64)
    }

    /// Bytes between the same thing of two slots.
    fn slot_bytes(&self) -> i64 {
        self.program.shape.all_threads() * self.bytes
    }

    fn coefs_are_shared(&self) -> bool {
        self.program.shape.coefs == CoefPlace::Shared
    }
}
