//! Periods of which ends of the grid without ghosts cut rows off, as the same straight-line code as that of whole periods.
//!
//! A row that is in no region keeps its value. What memory does not have is nobody's, so it may be anything: zeros are copied and loaded
//! instead. So each row needs one condition more, the same for all threads, and no row is read again from memory in each stage, as where
//! ghosts have to be kept up to date (`edge`).

use super::super::ir::Operand;
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::edge::in_interval;
use super::spans::Between;
use super::ticket;
use super::write::{Period, Writer};
use crate::lattice::{Axis, Interval};
use crate::scheme::{ComponentId, Update};
use crate::tile::residency::{Own, Place};

/// What is known of a period that may be clipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clip {
    /// The index of its origin in the array.
    at: [Operand; 2],
}

const AXES: [Axis; 2] = [Axis::OUTER, Axis::MIDDLE];

impl Clip {
    /// The period of this number of the task whose words these are.
    pub fn new(k: &mut Kernel<'_>, writer: &Writer<'_>, words: Operand, number: Operand) -> Clip {
        let mut at = ticket::whole_at(k, words, writer.towers.rings.is_any());
        for (at, by) in at.iter_mut().zip(writer.towers.advance) {
            let by = k.int(IntOp::Mul, number, Operand::i32(by as i32));
            *at = k.int(IntOp::Add, *at, by);
        }
        Clip { at }
    }

    /// Whether a row so many cells from the origin lies in a box.
    fn lies(&self, k: &mut Kernel<'_>, by: [i64; 2], range: [Interval; 2]) -> Operand {
        let [x, y] = [0, 1].map(|n| {
            let range = Interval::new(range[n].lo - by[n], range[n].hi - by[n]);
            in_interval(k, self.at[n], range)
        });
        k.int(IntOp::And, x, y)
    }

    /// Whether memory has a row.
    pub fn has(&self, k: &mut Kernel<'_>, writer: &Writer<'_>, place: Place) -> Operand {
        let held = AXES.map(|axis| writer.layout.visible(axis));
        self.lies(k, [place.x, place.y], held)
    }

    /// Whether an update acts on a row.
    pub fn acts(&self, k: &mut Kernel<'_>, update: &Update, own: &Own) -> Operand {
        self.lies(k, [own.x, own.y], AXES.map(|axis| update.region[axis]))
    }

    /// Whether a row of a component has values of its own.
    pub fn stores(
        &self,
        k: &mut Kernel<'_>,
        writer: &Writer<'_>,
        component: ComponentId,
        place: Place,
    ) -> Operand {
        let extent = writer.scheme.extent(component);
        self.lies(k, [place.x, place.y], AXES.map(|axis| extent[axis]))
    }
}

impl Writer<'_> {
    /// What a period has to know where it may be clipped: that of this number, counted from the end of the whole part on.
    pub(super) fn clip(&self, k: &mut Kernel<'_>, which: Operand) -> Option<Clip> {
        let task = self.task.filter(|_| self.clips)?;
        let end = ticket::whole_end(k, task);
        let number = k.int(IntOp::Add, which, end);
        Some(Clip::new(k, self, task, number))
    }

    /// Writes a value to a row in memory that a period leaves there, and that was first and last written in some of its stages: where the thread has
    /// done so, if lines are cut into spans.
    pub(super) fn leave(
        &self,
        k: &mut Kernel<'_>,
        (period, (between, stages)): (Period, (Option<Between>, [i64; 2])),
        (component, place): (ComponentId, Place),
        to: Operand,
        value: Operand,
    ) {
        let there = period
            .clip
            .map(|clip| clip.stores(k, self, component, place));
        let wrote = between.map(|between| self.takes_part(k, between, stages));
        let stores = match (there, wrote) {
            (Some(there), Some(wrote)) => Some(k.int(IntOp::And, there, wrote)),
            (there, wrote) => there.or(wrote),
        };
        match stores {
            None => self.store(k, component, to, value),
            Some(stores) => k.when(stores, |k| self.store(k, component, to, value)),
        }
    }
}

/// Runs what is done for whole periods: once for those that nothing cuts, and once for those of which ends cut rows off, if there are such.
pub(super) fn by_kind<'a>(
    k: &mut Kernel<'_>,
    writer: &Writer<'a>,
    clipped: Operand,
    run: impl Fn(&mut Kernel<'_>, &Writer<'a>),
) {
    let whole = Writer {
        clips: false,
        ..writer.clone()
    };
    if !writer.clips {
        run(k, &whole);
        return;
    }
    let is_whole = k.compare(IntCmp::Eq, clipped, Operand::i32(0));
    k.either(is_whole, |k| run(k, &whole), |k| run(k, writer));
}
