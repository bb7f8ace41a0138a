//! Makes all ghosts in memory, which patches leave out of date, for code that reads them there.
//!
//! A thread has one place beyond an end: along the outer axis a place of a line that has ghosts, else a place beside
//! the ends of a line. With three axes each place of the grid and beyond it has a thread.

use super::context::within;
use crate::backend::gpu::abi::GhostsOf;
use crate::backend::gpu::ir::{Launch, Module, Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use crate::ghost::{AxisGhosts, Ghost};
use crate::lattice::{Axis, Interval, PerAxis};
use crate::layout::Layout;
use crate::patch::MOST_TILES;
use crate::scheme::{ComponentId, Scheme};

/// The kernel's name.
pub const GHOSTS: &str = "torre_patch_ghosts";

const THREADS: u32 = 128;

/// Blocks and threads that the kernel is started with; `None` where there are no ghosts, or too many.
pub fn ghost_threads(scheme: &Scheme, layout: &Layout) -> Option<([u32; 3], [u32; 3])> {
    let pairs = |axis: Axis| {
        let of = |id: ComponentId| AxisGhosts::new(scheme, id, axis).pairs().len();
        scheme.component_ids().map(of).sum::<usize>()
    };
    if Axis::ALL.into_iter().map(pairs).sum::<usize>() == 0 {
        return None;
    }
    if scheme.grid.axes[Axis::MIDDLE].is_some() {
        let number = |axis: Axis| u32::try_from(layout.visible(axis).len()).ok();
        let [x, y, z] = [
            number(Axis::OUTER)?,
            number(Axis::MIDDLE)?,
            number(Axis::INNER)?,
        ];
        let few = i64::from(x.max(y)) <= MOST_TILES;
        return few.then_some(([z.div_ceil(THREADS), y, x], [THREADS, 1, 1]));
    }
    let [x, z] = [Axis::OUTER, Axis::INNER].map(|axis| layout.visible(axis).len());
    let blocks = u32::try_from(x.max(z)).ok()?.div_ceil(THREADS);
    Some(([blocks, 1, 1], [THREADS, 1, 1]))
}

/// Adds the kernel. Ghosts of ghosts have the value as their source, so that none waits for another one: thread `n`
/// makes the ghosts whose index along the axis across is `n`.
pub(super) fn write(module: &mut Module, scheme: &Scheme, layout: &Layout) {
    let launch = Launch {
        threads: [THREADS, 1, 1],
        ..Launch::default()
    };
    let mut k = module.kernel(GHOSTS, GhostsOf::TYPES, launch);
    let block = k.special(Special::Block(0));
    let first = k.int(IntOp::Mul, block, Operand::i32(THREADS as i32));
    let thread = k.special(Special::Thread(0));
    let number = k.int(IntOp::Add, first, thread);
    if scheme.grid.axes[Axis::MIDDLE].is_some() {
        let [x, y] = [2, 1].map(|n| k.special(Special::Block(n)));
        places(&mut k, scheme, layout, [x, y, number]);
        return k.finish();
    }
    for id in scheme.component_ids() {
        let live = scheme.grid.live(scheme.component(id).position);
        let [outer, inner] = [Axis::OUTER, Axis::INNER].map(|a| AxisGhosts::new(scheme, id, a));
        let writer = GhostCode {
            scheme,
            layout,
            id,
            number,
        };
        // Beyond the ends of lines, of all lines that are no ghosts.
        let of_lines = inner.pairs();
        writer.each(&mut k, live[Axis::OUTER], |k, x| {
            for (source, ghost) in &of_lines {
                let [from, to] = [*source, ghost.index].map(|z| Operand::i32(z as i32));
                let ghost = Target {
                    at: [x, to],
                    negated: ghost.negated,
                };
                writer.copy(k, [x, from], ghost);
            }
        });
        let corners = |source: i64| {
            std::iter::once(None).chain(
                of_lines
                    .iter()
                    .filter(move |(s, _)| *s == source)
                    .map(|(_, g)| Some(*g)),
            )
        };
        for (source, ghost) in outer.pairs() {
            let [from, to] = [source, ghost.index].map(|x| Operand::i32(x as i32));
            writer.each(&mut k, live[Axis::INNER], |k, z| {
                let ghost = Target {
                    at: [to, z],
                    negated: ghost.negated,
                };
                writer.copy(k, [from, z], ghost);
            });
            // Few corners: one thread for each line of ghosts.
            let mut sources: Vec<i64> = of_lines.iter().map(|(s, _)| *s).collect();
            sources.sort_unstable();
            sources.dedup();
            for z in sources {
                for Ghost { index, negated } in corners(z).flatten() {
                    let one = k.compare(IntCmp::Eq, number, Operand::i32(0));
                    k.when(one, |k| {
                        let [from_z, to_z] = [z, index].map(|z| Operand::i32(z as i32));
                        let ghost = Target {
                            at: [to, to_z],
                            negated: ghost.negated != negated,
                        };
                        writer.copy(k, [from, from_z], ghost);
                    });
                }
            }
        }
    }
    k.finish();
}

struct GhostCode<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    id: ComponentId,
    number: Operand,
}

/// A ghost that a value is copied to.
#[derive(Clone, Copy)]
struct Target {
    at: [Operand; 2],
    negated: bool,
}

impl GhostCode<'_> {
    /// Code for the thread whose number is an index of an interval.
    fn each(
        &self,
        k: &mut Kernel<'_>,
        range: Interval,
        body: impl FnOnce(&mut Kernel<'_>, Operand),
    ) {
        let own = within(k, self.number, range);
        k.when(own, |k| body(k, self.number));
    }

    /// Copies the value of a cell to another one, in all time levels.
    fn copy(&self, k: &mut Kernel<'_>, from: [Operand; 2], to: Target) {
        let real = Type::scalar(self.scheme.precision);
        for level in 0..self.scheme.component(self.id).time_levels {
            let row = self.layout.row(self.id, level.into());
            let first = self.layout.element(row, PerAxis::splat(0)) * i64::from(real.bytes());
            let line = self.layout.stride[Axis::OUTER] * i64::from(real.bytes());
            let place = |k: &mut Kernel<'_>, [x, z]: [Operand; 2]| {
                let [x, z] = [x, z].map(|n| k.resize(n, Type::I64));
                let by = k.int(IntOp::Mul, x, Operand::i64(line));
                let array = k.offset(k.param(GhostsOf::ARRAY), first);
                let line = k.advance(array, by, 1);
                k.advance(line, z, real.bytes())
            };
            let source = place(k, from);
            let value = k.load(real, source, real.bytes(), Access::Plain);
            let value = match to.negated {
                true => k.negated(value),
                false => value,
            };
            let target = place(k, to.at);
            k.store(value, target, real.bytes(), Access::Plain);
        }
    }
}

/// Gives ghosts at the place of a thread, counted from the first one that has memory, its value.
fn places(k: &mut Kernel<'_>, scheme: &Scheme, layout: &Layout, number: [Operand; 3]) {
    let real = Type::scalar(scheme.precision);
    let bytes = i64::from(real.bytes());
    let at = [0, 1, 2].map(|n| {
        let first = Operand::i32(layout.visible(Axis::ALL[n]).lo as i32);
        k.int(IntOp::Add, number[n], first)
    });
    for id in scheme.component_ids() {
        let live = scheme.grid.live(scheme.component(id).position);
        let (no, yes) = (Operand::int(Type::I1, 0), Operand::int(Type::I1, 1));
        let (mut ghost, mut there, mut negated) = (no, yes, no);
        let mut source = at;
        for (n, axis) in Axis::ALL.into_iter().enumerate() {
            let mut known = within(k, at[n], live[axis]);
            for (from, own) in AxisGhosts::new(scheme, id, axis).pairs() {
                let here = k.compare(IntCmp::Eq, at[n], Operand::i32(own.index as i32));
                source[n] = k.choose(here, Operand::i32(from as i32), source[n]);
                known = k.int(IntOp::Or, known, here);
                ghost = k.int(IntOp::Or, ghost, here);
                if own.negated {
                    negated = k.int(IntOp::Xor, negated, here);
                }
            }
            there = k.int(IntOp::And, there, known);
        }
        let made = k.int(IntOp::And, ghost, there);
        k.when(made, |k| {
            for level in 0..scheme.component(id).time_levels {
                let row = layout.row(id, level.into());
                let first = layout.element(row, PerAxis::splat(0)) * bytes;
                let place = |k: &mut Kernel<'_>, at: [Operand; 3]| {
                    let mut place = k.offset(k.param(GhostsOf::ARRAY), first);
                    for (n, axis) in Axis::ALL.into_iter().enumerate() {
                        let index = k.resize(at[n], Type::I64);
                        let stride = Operand::i64(layout.stride[axis] * bytes);
                        let by = k.int(IntOp::Mul, index, stride);
                        place = k.advance(place, by, 1);
                    }
                    place
                };
                let [from, to] = [source, at].map(|at| place(k, at));
                let value = k.load(real, from, real.bytes(), Access::Plain);
                let other = k.negated(value);
                let value = k.choose(negated, other, value);
                k.store(value, to, real.bytes(), Access::Plain);
            }
        });
    }
}
