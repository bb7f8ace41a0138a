//! Makes the ghosts along the inner axis anew, where towers leave them out of date in memory: for who reads them there.

use super::super::ir::{Launch, Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::Scheme;

/// The kernel's name.
const SYMBOL: &str = "torre_ghosts";
/// Threads of a block; each has a group.
const THREADS: u32 = 128;

/// A kernel that makes all ghosts along the inner axis from what rows hold. Its parameter is the array's first element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    pub symbol: String,
    pub blocks: u32,
    pub threads: u32,
    /// One for each thread, but for the last ones.
    groups: i32,
}

impl Refresh {
    /// `None` where there are too many groups for a start.
    pub(super) fn new(layout: &Layout) -> Option<Refresh> {
        let [lean, diamond] = planes(layout);
        let groups = i32::try_from(lean.len().checked_mul(diamond.len())?).ok()?;
        Some(Refresh {
            symbol: SYMBOL.to_owned(),
            blocks: (groups as u32).div_ceil(THREADS),
            threads: THREADS,
            groups,
        })
    }
}

/// The indices of groups.
fn planes(layout: &Layout) -> [Interval; 2] {
    [Axis::OUTER, Axis::MIDDLE].map(|axis| layout.visible(axis))
}

/// Adds the kernel.
pub(super) fn write(module: &mut Module, scheme: &Scheme, layout: &Layout, refresh: &Refresh) {
    let [lean, diamond] = planes(layout);
    let launch = Launch {
        threads: [refresh.threads, 1, 1],
        ..Launch::default()
    };
    let mut k = module.kernel(&refresh.symbol, &[Type::GLOBAL], launch);
    let block = k.special(Special::Block(0));
    let first = k.int(IntOp::Mul, block, Operand::i32(refresh.threads as i32));
    let thread = k.special(Special::Thread(0));
    let number = k.int(IntOp::Add, first, thread);
    let beyond = k.compare(
        IntCmp::Ge,
        number,
        Operand::i32((lean.len() * diamond.len()) as i32),
    );
    k.exit_if(beyond);
    let across = Operand::i32(diamond.len() as i32);
    let [x, y] = [(IntOp::Div, lean.lo), (IntOp::Rem, diamond.lo)].map(|(op, lo)| {
        let from = k.int(op, number, across);
        k.int(IntOp::Add, from, Operand::i32(lo as i32))
    });
    let bytes = |elements: i64| elements * layout.element_bytes as i64;
    let wide = k.resize(number, Type::I64);
    let by = k.int(
        IntOp::Mul,
        wide,
        Operand::i64(bytes(layout.stride[Axis::MIDDLE])),
    );
    let first = k.offset(k.param(0), bytes(layout.group(lean.lo, diamond.lo)));
    let group = k.advance(first, by, 1);
    let real = Type::scalar(scheme.precision);
    for id in scheme.component_ids() {
        let ghosts = AxisGhosts::new(scheme, id, Axis::INNER).pairs();
        if ghosts.is_empty() {
            continue;
        }
        let mut has = Operand::int(Type::I1, 1);
        for (at, axis) in [(x, Axis::OUTER), (y, Axis::MIDDLE)] {
            let there = is_one_of(&mut k, at, &AxisGhosts::new(scheme, id, axis).held());
            has = k.int(IntOp::And, has, there);
        }
        k.when(has, |k| {
            let slots = 0..scheme.component(id).time_levels;
            for row in slots.map(|slot| layout.row(id, slot.into())) {
                let row = k.offset(group, bytes(i64::from(row.0) * layout.row_stride));
                let mut values = Vec::new();
                for (source, _) in &ghosts {
                    let from = k.offset(row, bytes(*source));
                    values.push(k.load(real, from, real.bytes(), Access::Plain));
                }
                for ((_, ghost), value) in ghosts.iter().zip(values) {
                    let to = k.offset(row, bytes(ghost.index));
                    let value = match ghost.negated {
                        true => k.negated(value),
                        false => value,
                    };
                    k.store(value, to, real.bytes(), Access::Plain);
                }
            }
        });
    }
    k.finish();
}

fn is_one_of(k: &mut Kernel<'_>, index: Operand, ranges: &[Interval]) -> Operand {
    let mut found = Operand::int(Type::I1, 0);
    for range in ranges {
        let from = k.int(IntOp::Sub, index, Operand::i32(range.lo as i32));
        let within = k.compare(IntCmp::Below, from, Operand::i32(range.len() as i32));
        found = k.int(IntOp::Or, found, within);
    }
    found
}
