//! Boxes around conditions: the part of the grid in which a condition can hold.

use super::graph::{Graph, NodeId, WORK};
use super::ranges::Bounds;
use crate::lattice::{Axis, Interval, Position, Region};
use crate::scheme::Grid;

/// The part of the work of a program that one search for a smallest box may take: programs may have many.
const SHARE: usize = 64;

/// The smallest box in `region` outside of which a condition certainly fails; a larger one where arrays decide, or
/// where the search is too long.
pub fn enclose(
    graph: &mut Graph,
    grid: &Grid,
    condition: NodeId,
    position: Position,
    region: Region,
) -> Region {
    let mut search = Search {
        graph,
        grid,
        condition,
        position,
    };
    match search.cut(region) {
        Some(region) => search.hull(region),
        None => none_of(region),
    }
}

/// An empty box at the beginning of a region.
fn none_of(region: Region) -> Region {
    let lo = region[Axis::INNER].lo;
    region.with(Axis::INNER, Interval::new(lo, lo))
}

/// The search for the places at which a condition may hold.
struct Search<'a> {
    graph: &'a mut Graph,
    grid: &'a Grid,
    condition: NodeId,
    position: Position,
}

impl Search<'_> {
    /// Whether the condition holds in a region, and the work of finding out.
    fn holds(&self, region: Region) -> (Option<bool>, usize) {
        let mut bounds = Bounds::new(self.graph, self.grid, self.position, region);
        let holds = bounds.holds(self.condition);
        (holds, bounds.work())
    }

    fn fails(&mut self, slab: Region) -> bool {
        let (holds, work) = self.holds(slab);
        self.graph.spend(work);
        holds == Some(false)
    }

    /// A region without the slabs at its sides in which the condition fails, as far as bounds of whole slabs tell;
    /// `None` where it fails everywhere.
    fn cut(&mut self, region: Region) -> Option<Region> {
        let mut found = region;
        if region.is_empty() || self.fails(region) {
            return None;
        }
        for axis in Axis::ALL {
            let Interval { lo, hi } = found[axis];
            // The condition may hold in lo..hi. The most indices that can be cut off from below, then from above.
            let cut_below = most(hi - lo, |n| {
                self.fails(found.with(axis, Interval::new(lo, lo + n)))
            });
            let lo = lo + cut_below;
            let cut_above = most(hi - lo, |n| {
                self.fails(found.with(axis, Interval::new(hi - n, hi)))
            });
            found[axis] = Interval::new(lo, hi - cut_above);
        }
        Some(found)
    }

    /// The box around the places of a region at which the condition may hold.
    fn hull(&mut self, region: Region) -> Region {
        let left = WORK.saturating_sub(self.graph.work()) / SHARE;
        let mut spent = 0;
        let mut found = region.map(|_| Interval::default());
        let mut open = vec![region];
        while let Some(part) = open.pop() {
            if part.intersect(found) == part {
                continue;
            }
            let (holds, work) = self.holds(part);
            spent += work;
            match (holds, halves(part)) {
                (Some(false), _) => {}
                (None, Some(halves)) if spent < left => open.extend(halves),
                _ => found = Region::from_fn(|a| part[a].hull(found[a])),
            }
        }
        self.graph.spend(spent);
        match found.is_empty() {
            true => none_of(region),
            false => found,
        }
    }
}

/// The two halves of a region along its longest axis, the upper one first; `None` for one place or none.
fn halves(region: Region) -> Option<[Region; 2]> {
    let axis = Axis::ALL.into_iter().max_by_key(|a| region[*a].len())?;
    let Interval { lo, hi } = region[axis];
    let middle = lo + (hi - lo) / 2;
    let half = |part: Interval| region.with(axis, part);
    (hi - lo > 1).then(|| [Interval::new(middle, hi), Interval::new(lo, middle)].map(half))
}

/// The largest number below `limit` for which a statement holds that holds for all smaller ones too.
fn most(limit: i64, mut holds: impl FnMut(i64) -> bool) -> i64 {
    let (mut yes, mut no) = (0, limit.max(1));
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    yes
}

/// Whether some conditions hold wherever others do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Implied {
    Yes,
    No,
    /// Arrays decide, or more than the work that is left.
    Unknown,
}

/// The claim that all of `wanted` hold at every place of a region where all of `given` do.
pub struct Claim<'a> {
    pub grid: &'a Grid,
    pub given: &'a [NodeId],
    pub wanted: &'a [NodeId],
    pub position: Position,
    pub region: Region,
}

/// Whether a claim is true. `work` is the number of values that may still be bounded.
pub fn implied(graph: &Graph, claim: &Claim<'_>, work: &mut usize) -> Implied {
    let mut open = vec![claim.region];
    let mut answer = Implied::Yes;
    while let Some(region) = open.pop() {
        if region.is_empty() || claim.wanted.is_empty() {
            continue;
        }
        let mut bounds = Bounds::new(graph, claim.grid, claim.position, region);
        let (given, wanted) = (bounds.all(claim.given), bounds.all(claim.wanted));
        let spent = bounds.work();
        if given == Some(false) || wanted == Some(true) {
            continue;
        }
        if given == Some(true) && wanted == Some(false) {
            return Implied::No;
        }
        if spent >= *work {
            return Implied::Unknown;
        }
        *work -= spent;
        match halves(region) {
            Some(halves) => open.extend(halves),
            None => answer = Implied::Unknown,
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{At, HostBinary, HostUnary};
    use crate::lattice::{HalfIndex, PerAxis};
    use crate::scheme::Boundary;
    use proptest::prelude::*;

    /// Cells of a size.
    fn grid(spacing: PerAxis<f64>) -> Grid {
        Grid {
            axes: PerAxis::from_fn(|_| None),
            cells: PerAxis([14, 1, 11]),
            spacing,
            dt: 1.0,
            boundary: PerAxis::splat([Boundary::Zero; 2]),
        }
    }

    /// An expression made of choices: numbers, coordinates and operations with bounds.
    fn expression(graph: &mut Graph, choices: &mut impl Iterator<Item = u8>, depth: u32) -> NodeId {
        use HostBinary as H;
        let mut next = || choices.next().unwrap_or(0);
        let kind = next();
        if depth == 0 || kind % 8 == 0 {
            return match next() % 3 {
                0 => {
                    let n = f64::from(next()) / 8.0 - 10.0;
                    graph.number(n)
                }
                1 => graph.coordinate(Axis::OUTER),
                _ => graph.coordinate(Axis::INNER),
            };
        }
        if kind % 8 == 1 {
            let ops = [
                HostUnary::Neg,
                HostUnary::Abs,
                HostUnary::Sqrt,
                HostUnary::Not,
                HostUnary::Floor,
                HostUnary::Sin,
                HostUnary::Cos,
                HostUnary::Exp,
                HostUnary::Log,
                HostUnary::Tanh,
                HostUnary::Tan,
            ];
            let op = ops[usize::from(next()) % ops.len()];
            let a = expression(graph, choices, depth - 1);
            return graph.unary(op, a);
        }
        if kind % 8 == 2 {
            let c = expression(graph, choices, depth - 1);
            let a = expression(graph, choices, depth - 1);
            let b = expression(graph, choices, depth - 1);
            return graph.choose(c, a, b);
        }
        let ops = [
            H::Add,
            H::Sub,
            H::Mul,
            H::Div,
            H::Pow,
            H::Min,
            H::Max,
            H::Lt,
            H::Le,
            H::Gt,
            H::Ge,
            H::Eq,
            H::Ne,
            H::And,
            H::Or,
            H::Atan2,
        ];
        let op = ops[usize::from(next()) % ops.len()];
        let a = expression(graph, choices, depth - 1);
        let b = match op {
            H::Pow => {
                let n = f64::from(choices.next().unwrap_or(0) % 7) - 2.0;
                graph.number(n)
            }
            _ => expression(graph, choices, depth - 1),
        };
        graph.binary(op, a, b)
    }

    fn indices(region: Region) -> impl Iterator<Item = PerAxis<i64>> {
        let PerAxis([x, y, z]) = region;
        let plane = move |i| (y.lo..y.hi).map(move |j| (i, j));
        let row = move |(i, j)| (z.lo..z.hi).map(move |k| PerAxis([i, j, k]));
        (x.lo..x.hi).flat_map(plane).flat_map(row)
    }

    /// Whether a condition holds at an index, by the host's arithmetic.
    fn holds(
        graph: &mut Graph,
        grid: &Grid,
        id: NodeId,
        position: Position,
        index: PerAxis<i64>,
    ) -> bool {
        let place = PerAxis::from_fn(|a| {
            (HalfIndex::cells(index[a]) + position[a]).as_f64() * grid.spacing[a]
        });
        let at = At {
            position: place.0,
            time: 0.0,
        };
        graph.host(id, position).expect("small").eval(&at) != 0.0
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The box is the one around the indices at which the condition holds.
        #[test]
        fn boxes_are_the_smallest(choices in proptest::collection::vec(any::<u8>(), 0..80), half in 0i64..2) {
            let mut graph = Graph::default();
            let grid = grid(PerAxis([0.5, 1.0, 0.3]));
            let id = expression(&mut graph, &mut choices.into_iter(), 4);
            let position = PerAxis([HalfIndex(half), HalfIndex::ZERO, HalfIndex(1 - half)]);
            let region = PerAxis([Interval::new(-3, 14), Interval::new(0, 1), Interval::new(0, 11)]);
            let found = enclose(&mut graph, &grid, id, position, region);
            let mut smallest = region.map(|_| Interval::default());
            for index in indices(region) {
                if holds(&mut graph, &grid, id, position, index) {
                    smallest = PerAxis::from_fn(|a| smallest[a].hull(Interval::new(index[a], index[a] + 1)));
                }
            }
            let whole = graph.host(id, position).expect("small");
            let same = found == smallest || found.is_empty() && smallest.is_empty();
            prop_assert!(same, "{}: {:?} for {:?}", whole, found, smallest);
        }

        /// Without arrays every claim is decided, as each index by itself says.
        #[test]
        fn claims_are_decided(
            given in proptest::collection::vec(any::<u8>(), 0..40),
            wanted in proptest::collection::vec(any::<u8>(), 0..40),
            half in 0i64..2,
        ) {
            let mut graph = Graph::default();
            let grid = grid(PerAxis([0.5, 1.0, 0.3]));
            let given = expression(&mut graph, &mut given.into_iter(), 3);
            let wanted = expression(&mut graph, &mut wanted.into_iter(), 3);
            let position = PerAxis([HalfIndex(half), HalfIndex::ZERO, HalfIndex(1 - half)]);
            let region = PerAxis([Interval::new(-3, 14), Interval::new(0, 1), Interval::new(0, 11)]);
            let mut at = |id, index| holds(&mut graph, &grid, id, position, index);
            let fails = indices(region).any(|index| at(given, index) && !at(wanted, index));
            let claim = Claim { grid: &grid, given: &[given], wanted: &[wanted], position, region };
            let said = implied(&graph, &claim, &mut 1_000_000);
            prop_assert_eq!(said, if fails { Implied::No } else { Implied::Yes });
        }
    }

    #[test]
    fn boxes_of_simple_bodies_are_tight() {
        let mut graph = Graph::default();
        let grid = grid(PerAxis::splat(0.5));
        let squared = |graph: &mut Graph, axis, centre: f64| {
            let (x, centre, two) = (
                graph.coordinate(axis),
                graph.number(centre),
                graph.number(2.0),
            );
            let d = graph.binary(HostBinary::Sub, x, centre);
            graph.binary(HostBinary::Pow, d, two)
        };
        let x = squared(&mut graph, Axis::OUTER, 5.0);
        let y = squared(&mut graph, Axis::INNER, 4.0);
        let sum = graph.binary(HostBinary::Add, x, y);
        let four = graph.number(4.0);
        let disc = graph.binary(HostBinary::Lt, sum, four);
        let whole = PerAxis([
            Interval::new(0, 40),
            Interval::new(0, 1),
            Interval::new(0, 30),
        ]);
        let found = enclose(&mut graph, &grid, disc, Position::default(), whole);
        // From 3 to 7 and from 2 to 6, both ends outside.
        assert_eq!(found[Axis::OUTER], Interval::new(7, 14));
        assert_eq!(found[Axis::INNER], Interval::new(5, 12));
        let outside = graph.unary(HostUnary::Not, disc);
        assert_eq!(
            enclose(&mut graph, &grid, outside, Position::default(), whole),
            whole
        );
        let never = graph.binary(HostBinary::And, disc, outside);
        let far = PerAxis([
            Interval::new(20, 40),
            Interval::new(0, 1),
            Interval::new(0, 30),
        ]);
        assert!(enclose(&mut graph, &grid, never, Position::default(), far).is_empty());
    }
}
