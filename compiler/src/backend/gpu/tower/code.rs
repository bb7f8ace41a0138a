//! The code of interior periods in its variants.

use super::super::ir::Operand;
use super::super::kernel::{IntCmp, Kernel};
use super::context::Context;
use super::listed_ghosts::GhostList;

/// The code of an alignment.
#[derive(Clone)]
pub(super) struct Code<'a> {
    /// One for each variant of interior periods.
    pub variants: Vec<Context<'a>>,
    /// The list of ghosts along the inner axis in shared rows, where towers make them.
    pub ghosts: Option<GhostList<'a>>,
}

impl<'a> Code<'a> {
    /// The context that is the same for all variants.
    pub fn context(&self) -> &Context<'a> {
        &self.variants[0]
    }

    /// Writes code for interior periods, in each variant.
    pub fn by_variant(
        &self,
        k: &mut Kernel<'_>,
        variant: Operand,
        run: &impl Fn(&mut Kernel<'_>, &Context<'a>),
    ) {
        let all: Vec<_> = self.variants.iter().enumerate().collect();
        by_number(k, variant, &all, run);
    }

    /// The same for code that differs only where ends of the grid may cut rows off.
    pub fn by_kind(
        &self,
        k: &mut Kernel<'_>,
        variant: Operand,
        run: &impl Fn(&mut Kernel<'_>, &Context<'a>),
    ) {
        let last = |predicated: bool| {
            let mut all = self.variants.iter().enumerate();
            all.rfind(|(_, context)| context.predicated() == predicated)
        };
        let all: Vec<_> = [false, true].into_iter().filter_map(last).collect();
        by_number(k, variant, &all, run);
    }
}

/// Runs the first code whose number is not below a number.
fn by_number<'a>(
    k: &mut Kernel<'_>,
    number: Operand,
    codes: &[(usize, &Context<'a>)],
    run: &impl Fn(&mut Kernel<'_>, &Context<'a>),
) {
    match codes {
        [] => {}
        [(_, only)] => run(k, only),
        [(last, first), others @ ..] => {
            let is_first = match last {
                0 => k.compare(IntCmp::Eq, number, Operand::i32(0)),
                last => k.compare(IntCmp::Le, number, Operand::i32(*last as i32)),
            };
            k.either(
                is_first,
                |k| run(k, first),
                |k| by_number(k, number, others, run),
            );
        }
    }
}
