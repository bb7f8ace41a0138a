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
use crate::patch::{CoefPlace, PatchProgram, WARP};
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

/// Reads rows that are kept from round to round.
fn get(k: &mut Kernel<'_>, kept: &[(usize, Vec<Variable>)], values: &mut Values) {
    for (row, own) in kept {
        values.rows[*row] = own.iter().map(|variable| k.get(*variable)).collect();
    }
}

/// Keeps them.
fn set(k: &mut Kernel<'_>, kept: &[(usize, Vec<Variable>)], values: &Values) {
    for (row, own) in kept {
        let pairs = own.iter().zip(&values.rows[*row]);
        pairs.for_each(|(variable, value)| k.set(*variable, *value));
    }
}

impl Context<'_> {
    /// A tile from its first load to its last store.
    fn tile(&self, k: &mut Kernel<'_>, patch: &Patch, surroundings: Surroundings) {
        let ends = surroundings == Surroundings::Ends;
        let mut values = self.load(k, patch, surroundings);
        let held = (0..self.program.held.len()).filter(|row| self.program.held[*row]);
        let held: Vec<usize> = held.collect();
        if ends {
            for row in &held {
                let mut at = self.coordinates(k, patch);
                self.ghosts(k, patch, &mut at, &[*row], &mut values);
            }
            self.load_states(k, patch);
        }
        let begin = &self.program.begin;
        begin
            .iter()
            .for_each(|row| self.publish(k, patch, *row, &values));
        if self.program.slots.count() > 0 {
            k.barrier();
        }
        let variables: Vec<Vec<Variable>> = held
            .iter()
            .map(|row| {
                values.rows[*row]
                    .iter()
                    .map(|value| k.variable_of(*value))
                    .collect()
            })
            .collect();
        let [rounds, all] = [Patches::ROUNDS, Patches::ALL].map(|n| k.param(n));
        let last = k.int(IntOp::Sub, rounds, Operand::i32(1));
        let all = k.compare(IntCmp::Ne, all, Operand::i32(0));
        let kept: Vec<(usize, Vec<Variable>)> = held.into_iter().zip(variables).collect();
        let (zero, one) = (Operand::i32(0), Operand::i32(1));
        let each_round = self.program.exchanges_each_round();
        let early = self.final_early();
        let round =
            |k: &mut Kernel<'_>, values: &mut Values, round: Operand, rims: Option<Rims<'_>>| {
                get(k, &kept, values);
                let at_end = k.compare(IntCmp::Eq, round, last);
                let leaves = k.int(IntOp::And, at_end, all);
                for (number, stage) in self.program.stages.iter().enumerate() {
                    // An exchange publishes all that the next round reads.
                    let is_read = !each_round || number + 1 < self.program.stages.len();
                    let after = After { leaves, is_read };
                    self.stage(k, patch, stage, ends.then_some(round), after, values);
                    let rows = early.iter().filter(|(stage, _)| *stage == number);
                    let rows: Vec<usize> = rows.map(|(_, row)| *row).collect();
                    if let Some(Rims { halo, number, more }) = rims.filter(|_| !rows.is_empty()) {
                        k.when(more, |k| {
                            let array = self.rims(k, number);
                            self.store_rims(k, patch, halo, array, &rows, values);
                        });
                    }
                }
                set(k, &kept, values);
            };
        match &self.program.stays {
            None => k.repeat(zero, rounds, one, Some(1), |k, n| {
                round(k, &mut values, n, None);
            }),
            Some(staying) => {
                let waiting = Waiting::new(k, staying, patch.tile);
                let height = Operand::i32((self.program.height / self.program.round) as i32);
                k.repeat(zero, rounds, height, Some(1), |k, first| {
                    let end = k.int(IntOp::Add, first, height);
                    let end = k.int(IntOp::Min, end, rounds);
                    let more = k.compare(IntCmp::Lt, end, rounds);
                    let number = k.int(IntOp::Div, first, height);
                    let halo = Halo {
                        waiting: &waiting,
                        staying,
                        surroundings,
                    };
                    if each_round {
                        let rims = Rims { halo, number, more };
                        round(k, &mut values, first, Some(rims));
                    } else {
                        k.repeat(first, end, one, Some(1), |k, n| {
                            round(k, &mut values, n, None);
                        });
                    }
                    k.when(more, |k| {
                        get(k, &kept, &mut values);
                        self.exchange(k, patch, halo, number, &mut values);
                        set(k, &kept, &values);
                    });
                });
            }
        }
        get(k, &kept, &mut values);
        let to = Store {
            array: k.param(Patches::TO),
            rims: None,
            surroundings,
        };
        for (row, _) in &kept {
            self.store(k, patch, *row, &values.rows[*row], to);
        }
        if ends {
            self.store_states(k, patch, to);
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
