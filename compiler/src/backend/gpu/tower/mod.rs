//! The kernel of a tower program: a block of threads runs a tower from its first to its last period, with all values
//! that evolve on the chip.
//!
//! ```text
//! thread            one index along the inner axis; the values of that index in registers
//!   begin             load the rows with which an interior period of this alignment begins
//!   period after period, stage after stage: the row operations of the program, printed              interior
//!   end               store the values that memory does not have yet
//!   boundary periods  row by row in memory, with a condition for each row                            boundary
//! ```
//!
//! The program ([`crate::tower`]) defines the operations, their order and the places of values. Here are the
//! instructions for them: how warps share the work ([`kernel`]) and keep order ([`pipeline`], [`neighbours`],
//! [`cluster`], [`sync`]), how blocks take towers ([`queue`]) and wait for each other ([`progress`]), and how the
//! assembler is steered ([`steer`]).

mod amended;
mod amended_row;
mod boundary;
mod cluster;
mod code;
mod context;
mod copied;
mod correction;
mod correction_words;
mod ghost_kernel;
mod ghosts_folded;
mod ghosts_on_store;
mod interior;
mod kernel;
mod listed_ghosts;
mod load;
mod neighbours;
mod pipeline;
mod points;
mod predicate;
mod produce;
mod progress;
mod queue;
mod source_box;
mod source_rows;
mod steer;
mod sync;
mod task;
mod volume;
mod worker;
mod z_block;
mod zone;
mod zone_coefs;

pub use ghost_kernel::SYMBOL as GHOSTS;
pub use kernel::SYMBOL as TOWERS;
pub use steer::NEAR;

use super::abi::boundary_words;
use super::ir::{Module, Type};
use crate::layout::{GPU_ALIGNMENT, Layout};
use crate::scheme::Scheme;
use crate::tower::{TowerProgram, View};
use code::Code;
use context::Context;
use listed_ghosts::{GhostList, ListedGhosts};

/// Adds the kernels of a tower program to an empty module: [`TOWERS`], and [`GHOSTS`] if towers leave ghosts along the
/// inner axis out of date.
pub fn emit(module: &mut Module, scheme: &Scheme, layout: &Layout, program: &TowerProgram) {
    emit_with(module, scheme, layout, program, NEAR);
}

/// The same; accesses to memory add less than `near` to a pointer by themselves.
pub fn emit_with(
    module: &mut Module,
    scheme: &Scheme,
    layout: &Layout,
    program: &TowerProgram,
    near: i64,
) {
    let View { scheme, layout } = &program.towers.numbering.view(scheme, layout);
    let shared = module.shared_on_demand(GPU_ALIGNMENT as u32);
    let rows = module.constants(&boundary_words(&program.boundary));
    let block = &program.block;
    let context = |alignment: usize| Context {
        scheme,
        layout,
        program,
        alignment,
        variant: 0,
        real: Type::scalar(scheme.precision),
        near,
    };
    let contexts: Vec<Context<'_>> = (0..program.periods.len()).map(context).collect();
    let mut list = Vec::new();
    let listed = contexts.iter();
    let listed = listed.map(|context| ListedGhosts::new(context, &mut list));
    let listed: Vec<Option<ListedGhosts>> = listed.collect();
    let list = (!list.is_empty()).then(|| module.table(&list));
    let codes = contexts.iter().zip(&listed).map(|(context, ghosts)| {
        let variants = 0..program.towers.variants.all.len();
        let variants = variants.map(|variant| Context {
            variant,
            ..*context
        });
        let ghosts = ghosts.as_ref().zip(list);
        Code {
            variants: variants.collect(),
            ghosts: ghosts.map(|(ghosts, list)| GhostList { ghosts, list }),
        }
    });
    let codes: Vec<Code<'_>> = codes.collect();
    kernel::write(module, &codes, shared, rows);
    if let Some(ghosts) = &block.ghosts {
        ghost_kernel::write(module, scheme, layout, &ghosts.pass);
    }
}
