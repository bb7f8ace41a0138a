//! Reads beyond mirrors at the ends of the first two axes, which need no ghosts in predicated periods.
//!
//! A read beyond a mirror sees a value of the grid, perhaps with the other sign. With central differences an update
//! reads that value anyway, at another offset. So the code of a predicated period takes it, by the index of the row
//! that is updated, and ghosts of other rows are of no use: rows need not be loaded anew in each stage, as in boundary
//! periods. An end is *closed* if that holds for all reads beyond it.

use super::group_box::GroupBox;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::scheme::{Body, ComponentId, Op, Read, Scheme, Update};

/// The axes over which towers are cut.
pub(crate) const AXES: [Axis; 2] = [Axis::OUTER, Axis::MIDDLE];

/// A value that an operation reads instead, in rows at an index along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirroredRead {
    /// The index of the row that is updated.
    pub at: i64,
    /// The operation of the same body that reads the value there.
    pub op: usize,
    /// It is seen with the other sign.
    pub negated: bool,
}

/// Per operation of a body and axis, the reads beyond closed ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirroredBody(Vec<[Vec<MirroredRead>; 2]>);

/// A row that appears again beyond closed ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowGhost {
    /// The index of the row along each axis; `None`: any.
    pub of: [Option<i64>; 2],
    /// From there to the ghost.
    pub by: [i64; 2],
    pub negated: bool,
}

/// The reads beyond mirrors of all updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirroredReads {
    /// Which ends are closed, per axis.
    closed: [[bool; 2]; 2],
    /// Per stage and update, its body, then the bodies of its amendments.
    bodies: Vec<Vec<Vec<MirroredBody>>>,
    /// Per component, the groups that are no ghosts beyond closed ends.
    own: Vec<GroupBox>,
    /// Per component.
    ghosts: Vec<Vec<RowGhost>>,
}

/// Values of the operands of a body, each perhaps seen through mirrors.
pub(crate) trait Operands {
    type Value: Copy;

    /// The value that an operation reads where it does not read beyond an end.
    fn plain(&mut self, op: usize) -> Self::Value;

    /// `seen` for rows at the index of a read along an axis, with its sign, `own` for others.
    fn choose(
        &mut self,
        axis: usize,
        read: MirroredRead,
        seen: Self::Value,
        own: Self::Value,
    ) -> Self::Value;
}

impl MirroredBody {
    /// Whether no operation reads beyond a closed end.
    pub fn is_empty(&self) -> bool {
        self.0.iter().flatten().all(Vec::is_empty)
    }

    /// The value that an operation reads.
    pub(crate) fn value<O: Operands>(&self, operands: &mut O, op: usize) -> O::Value {
        self.along(operands, op, 0)
    }

    /// The same where only mirrors across some axes count, from `first` on.
    fn along<O: Operands>(&self, operands: &mut O, op: usize, first: usize) -> O::Value {
        if first == AXES.len() {
            return operands.plain(op);
        }
        let mut value = self.along(operands, op, first + 1);
        for read in self.0.get(op).map_or(&[][..], |of| &of[first]) {
            let seen = self.along(operands, read.op, first + 1);
            value = operands.choose(first, *read, seen, value);
        }
        value
    }

    /// The indices along an axis of rows that read beyond closed ends.
    fn places(&self, axis: usize) -> impl Iterator<Item = i64> + '_ {
        let reads = self.0.iter().flat_map(move |of| &of[axis]);
        reads.map(|read| read.at)
    }
}

impl MirroredReads {
    pub fn new(scheme: &Scheme) -> MirroredReads {
        let side = |axis: usize, side: usize| {
            scheme.grid.boundary[AXES[axis]][side].is_mirror() && is_closed(scheme, axis, side)
        };
        let closed = [0, 1].map(|axis| [0, 1].map(|end| side(axis, end)));
        let bodies = scheme.stages.iter().map(|stage| {
            let updates = stage.updates.iter();
            updates
                .map(|update| {
                    let bodies = update.bodies();
                    bodies
                        .map(|body| mirrored_body(scheme, update, body, closed))
                        .collect()
                })
                .collect()
        });
        let ids: Vec<ComponentId> = scheme.component_ids().collect();
        MirroredReads {
            closed,
            bodies: bodies.collect(),
            own: ids.iter().map(|id| own(scheme, *id, closed)).collect(),
            ghosts: ids.iter().map(|id| ghosts(scheme, *id, closed)).collect(),
        }
    }

    /// Whether some end is closed.
    pub fn any_closed(&self) -> bool {
        self.closed.iter().flatten().any(|closed| *closed)
    }

    /// Whether an end of an axis is closed.
    pub fn is_closed(&self, axis: usize, side: usize) -> bool {
        self.closed[axis][side]
    }

    /// The bodies of an update: its own, then of its amendments.
    pub fn bodies(&self, stage: usize, update: usize) -> &[MirroredBody] {
        let of = self.bodies.get(stage).and_then(|of| of.get(update));
        of.map_or(&[], Vec::as_slice)
    }

    /// The groups of a component that are no ghosts beyond closed ends.
    pub fn own(&self, id: ComponentId) -> GroupBox {
        self.own.get(id.index()).copied().unwrap_or(GroupBox::ALL)
    }

    /// The ghosts of a component beyond closed ends.
    pub fn ghosts(&self, id: ComponentId) -> &[RowGhost] {
        self.ghosts.get(id.index()).map_or(&[], Vec::as_slice)
    }

    /// The largest part of a box of groups in which an update reads nothing beyond closed ends.
    pub(super) fn without(&self, stage: usize, update: usize, of: GroupBox) -> GroupBox {
        let along = |axis: usize, range: Interval| {
            let places = self.bodies(stage, update).iter();
            let places = places.flat_map(|body| body.places(axis));
            let middle = range.lo + range.len() / 2;
            places.fold(range, |range, place| match place < middle {
                true => Interval::new(range.lo.max(place + 1), range.hi),
                false => Interval::new(range.lo, range.hi.min(place)),
            })
        };
        GroupBox {
            x: along(0, of.x),
            y: along(1, of.y),
        }
    }
}

/// The ghosts of a component beyond an end, each with the index of its source.
fn beyond(scheme: &Scheme, id: ComponentId, axis: usize, side: usize) -> Vec<(i64, i64, bool)> {
    let axis = AXES[axis];
    let extent = scheme.extent(id)[axis];
    let pairs = AxisGhosts::new(scheme, id, axis).pairs();
    let pairs = pairs.into_iter().filter(|(_, ghost)| match side {
        0 => ghost.index < extent.lo,
        _ => ghost.index >= extent.hi,
    });
    pairs
        .map(|(source, ghost)| (source, ghost.index, ghost.negated))
        .collect()
}

/// The operation of a body that reads what `read` sees beyond an end, in rows at an index.
fn seen(body: &Body, read: &Read, axis: usize, offset: i64) -> Option<usize> {
    let mut other = *read;
    other.offset[AXES[axis]] = i32::try_from(offset).ok()?;
    let wanted = Op::Read(other);
    body.ops.iter().position(|op| *op == wanted)
}

fn is_closed(scheme: &Scheme, axis: usize, side: usize) -> bool {
    let updates = scheme.stages.iter().flat_map(|stage| &stage.updates);
    let mut bodies = updates.flat_map(|update| update.bodies().map(move |body| (update, body)));
    bodies.all(|(update, body)| {
        body.reads().all(|read| {
            let offset = i64::from(read.offset[AXES[axis]]);
            let mut ghosts = beyond(scheme, read.component, axis, side).into_iter();
            ghosts.all(|(source, ghost, negated)| {
                let at = ghost - offset;
                !update.region[AXES[axis]].contains(at)
                    || seen(body, read, axis, source - at).is_some()
                        && !(negated && reads_zeros(scheme, update, read, axis))
            })
        })
    })
}

/// Whether an update reads values that are 0 because of an end of another axis: in ghosts these zeros have no sign.
fn reads_zeros(scheme: &Scheme, update: &Update, read: &Read, axis: usize) -> bool {
    let others = Axis::ALL.into_iter().filter(|other| *other != AXES[axis]);
    let mut others = others.filter(|other| scheme.grid.axes[*other].is_some());
    others.any(|other| {
        let by = i64::from(read.offset[other]);
        let Interval { lo, hi } = update.region[other];
        let held = AxisGhosts::new(scheme, read.component, other).held();
        let within = |range: &Interval| range.lo <= lo + by && hi + by <= range.hi;
        lo < hi && !held.iter().any(within)
    })
}

fn mirrored_body(
    scheme: &Scheme,
    update: &Update,
    body: &Body,
    closed: [[bool; 2]; 2],
) -> MirroredBody {
    let of = |op: &Op| {
        let mut all = [Vec::new(), Vec::new()];
        let Op::Read(read) = op else { return all };
        for (axis, side) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            if !closed[axis][side] {
                continue;
            }
            let offset = i64::from(read.offset[AXES[axis]]);
            let ghosts = beyond(scheme, read.component, axis, side).into_iter();
            all[axis].extend(ghosts.filter_map(|(source, ghost, negated)| {
                let at = ghost - offset;
                let op = seen(body, read, axis, source - at)?;
                let acts = update.region[AXES[axis]].contains(at);
                acts.then_some(MirroredRead { at, op, negated })
            }));
        }
        all
    };
    MirroredBody(body.ops.iter().map(of).collect())
}

fn own(scheme: &Scheme, id: ComponentId, closed: [[bool; 2]; 2]) -> GroupBox {
    let along = |axis: usize| {
        let [below, above] = [0, 1].map(|side| {
            let ghosts = match closed[axis][side] {
                true => beyond(scheme, id, axis, side),
                false => Vec::new(),
            };
            ghosts.into_iter().map(|(_, ghost, _)| ghost)
        });
        let all = GroupBox::ALL.x;
        let lo = below.max().map_or(all.lo, |last| last + 1);
        Interval::new(lo, above.min().unwrap_or(all.hi))
    };
    GroupBox {
        x: along(0),
        y: along(1),
    }
}

/// Whether an update reads a component at offsets along both axes.
fn reads_corners(scheme: &Scheme, id: ComponentId) -> bool {
    let updates = scheme.stages.iter().flat_map(|stage| &stage.updates);
    let mut reads = updates.flat_map(Update::reads);
    reads.any(|read| read.component == id && AXES.into_iter().all(|axis| read.offset[axis] != 0))
}

fn ghosts(scheme: &Scheme, id: ComponentId, closed: [[bool; 2]; 2]) -> Vec<RowGhost> {
    let along = |axis: usize| -> Vec<(i64, i64, bool)> {
        let sides = (0..2).filter(|side| closed[axis][*side]);
        sides
            .flat_map(|side| beyond(scheme, id, axis, side))
            .collect()
    };
    let [x, y] = [0, 1].map(along);
    let one = |axis: usize, (source, ghost, negated): (i64, i64, bool)| {
        let mut row = RowGhost {
            of: [None; 2],
            by: [0; 2],
            negated,
        };
        row.of[axis] = Some(source);
        row.by[axis] = ghost - source;
        row
    };
    let outer: Vec<RowGhost> = x.into_iter().map(|own| one(0, own)).collect();
    let middle: Vec<RowGhost> = y.into_iter().map(|own| one(1, own)).collect();
    let mut all: Vec<RowGhost> = outer.iter().chain(&middle).copied().collect();
    if reads_corners(scheme, id) {
        let both = outer.iter().flat_map(|a| {
            middle.iter().map(|b| RowGhost {
                of: [a.of[0], b.of[1]],
                by: [a.by[0], b.by[1]],
                negated: a.negated != b.negated,
            })
        });
        all.extend(both);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::{Boundary, Located, Precision};
    use crate::testing::{Limits, Rng, everywhere, maxwell, random_scheme};

    /// Names the value that a read finds.
    struct Names<'a> {
        body: &'a Body,
        /// The row that is updated.
        at: [i64; 2],
    }

    impl Operands for Names<'_> {
        /// The group of a value, and whether it is negated.
        type Value = ([i64; 2], bool);

        fn plain(&mut self, op: usize) -> Self::Value {
            let Op::Read(read) = &self.body.ops[op] else {
                return (self.at, false);
            };
            let by = AXES.map(|axis| i64::from(read.offset[axis]));
            ([self.at[0] + by[0], self.at[1] + by[1]], false)
        }

        fn choose(
            &mut self,
            axis: usize,
            read: MirroredRead,
            seen: Self::Value,
            own: Self::Value,
        ) -> Self::Value {
            let (seen, negated) = seen;
            match self.at[axis] == read.at {
                true => (seen, negated != read.negated),
                false => own,
            }
        }
    }

    /// For rows of random schemes with closed ends: a read finds the value that the reference finds, with its sign.
    #[test]
    fn reads_beyond_mirrors_find_their_sources() {
        let limits = Limits {
            dimensions: 3,
            components: 2,
            stages: 2,
            ops: 9,
            length: 9,
            width: 9,
            reach: 1,
        };
        let (mut closed, mut mirrored, mut open) = (0, 0, 0);
        let random = (0..600).map(|seed| random_scheme(&mut Rng::new(seed), &limits));
        let known = [2, 4].map(|order| maxwell(order, Precision::F64, [7, 8, 5]));
        for mut scheme in random.chain(known) {
            for axis in AXES {
                scheme.grid.boundary[axis] = [Boundary::Pec, Boundary::Pmc];
            }
            everywhere(&mut scheme);
            let reads = MirroredReads::new(&scheme);
            if reads.closed != [[true; 2]; 2] {
                open += 1;
                continue;
            }
            closed += 1;
            for (n, stage) in scheme.stages.iter().enumerate() {
                for (number, update) in stage.updates.iter().enumerate() {
                    let [x, y] = AXES.map(|axis| update.region[axis]);
                    let groups = (x.lo..x.hi).flat_map(|x| (y.lo..y.hi).map(move |y| [x, y]));
                    for at in groups {
                        mirrored += check_row(&scheme, &reads, [n, number], at);
                    }
                }
            }
        }
        assert!(
            closed > 50 && open > 50 && mirrored > 150,
            "{closed} {open} {mirrored}"
        );
    }

    /// Checks the reads of a row; gives how many find a mirrored value.
    fn check_row(
        scheme: &Scheme,
        reads: &MirroredReads,
        [stage, number]: [usize; 2],
        at: [i64; 2],
    ) -> usize {
        let update = &scheme.stages[stage].updates[number];
        let all = reads.bodies(stage, number);
        let mut mirrored = 0;
        for (body, own) in update.bodies().zip(all) {
            for (op, read) in body.ops.iter().enumerate() {
                let Op::Read(read) = read else { continue };
                let mut names = Names { body, at };
                let plain = names.plain(op);
                let found = own.value(&mut names, op);
                mirrored += usize::from(found != plain);
                let position = scheme.component(read.component).position;
                let z = scheme.grid.live(position)[Axis::INNER].lo;
                let place = crate::lattice::PerAxis([plain.0[0], plain.0[1], z]);
                match scheme.grid.resolve(position, place) {
                    Located::Stored { at, negated } => {
                        let at = AXES.map(|axis| at[axis]);
                        assert_eq!(found, (at, negated), "{read:?}");
                    }
                    // Zeros on a plane about which the component is odd have no sign.
                    Located::Zero => assert!(!found.1, "{read:?}"),
                }
            }
        }
        mirrored
    }
}
