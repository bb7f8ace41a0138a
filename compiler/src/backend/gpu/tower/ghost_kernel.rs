//! Makes the ghosts along the inner axis anew, where towers leave them out of date in memory, for code that reads them
//! there.

use super::super::abi::GhostsOf;
use super::super::ir::{Launch, Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use super::context::in_interval;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tower::block::GhostPass;

/// The kernel's name.
pub const SYMBOL: &str = "torre_ghosts";

/// Adds the kernel, whose threads have a group each.
pub(super) fn write(module: &mut Module, scheme: &Scheme, layout: &Layout, pass: &GhostPass) {
    let [outer, middle] = [Axis::OUTER, Axis::MIDDLE].map(|axis| layout.visible(axis));
    let launch = Launch {
        threads: [pass.threads, 1, 1],
        ..Launch::default()
    };
    let mut k = module.kernel(SYMBOL, GhostsOf::TYPES, launch);
    let block = k.special(Special::Block(0));
    let first = k.int(IntOp::Mul, block, Operand::i32(pass.threads as i32));
    let thread = k.special(Special::Thread(0));
    let number = k.int(IntOp::Add, first, thread);
    let beyond = k.compare(IntCmp::Ge, number, Operand::i32(pass.groups));
    k.exit_if(beyond);
    let across = Operand::i32(middle.len() as i32);
    let [by_x, by_y] = [IntOp::Div, IntOp::Rem].map(|op| k.int(op, number, across));
    let bytes = |elements: i64| elements * layout.element_bytes as i64;
    let array = k.param(GhostsOf::ARRAY);
    let mut group = k.offset(array, bytes(layout.group(outer.lo, middle.lo)));
    // Planes may have a gap between them.
    for (by, axis) in [(by_x, Axis::OUTER), (by_y, Axis::MIDDLE)] {
        let wide = k.resize(by, Type::I64);
        let by = k.int(IntOp::Mul, wide, Operand::i64(bytes(layout.stride[axis])));
        group = k.advance(group, by, 1);
    }
    let [x, y] = [(by_x, outer.lo), (by_y, middle.lo)]
        .map(|(by, lo)| k.int(IntOp::Add, by, Operand::i32(lo as i32)));
    let real = Type::scalar(scheme.precision);
    for id in scheme.component_ids() {
        let ghosts = AxisGhosts::new(scheme, id, Axis::INNER).pairs();
        if ghosts.is_empty() {
            continue;
        }
        // An odd component stays 0 on its plane of symmetry, in ghosts, too.
        let mut has = Operand::int(Type::I1, 1);
        for (at, axis) in [(x, Axis::OUTER), (y, Axis::MIDDLE)] {
            let there = is_one_of(&mut k, at, &AxisGhosts::new(scheme, id, axis).held());
            has = k.int(IntOp::And, has, there);
        }
        k.when(has, |k| {
            let levels = 0..scheme.component(id).time_levels;
            for row in levels.map(|level| layout.row(id, level.into())) {
                let row = k.offset(group, bytes(layout.row_start(row)));
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
        let within = in_interval(k, index, *range);
        found = k.int(IntOp::Or, found, within);
    }
    found
}
