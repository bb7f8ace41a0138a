//! The order in which the tiles inside of an outermost tile run.
//!
//! On folded axes a tile has a part on each sheet. Parts far from the ends of the fold are tasks of their own
//! ([`super::sheets`]). Of the others, parts between which no dependence goes run one after the other, all inner tiles
//! of one of them before the tiles of the next, so that a cache holds the values of one part instead of up to four.
//! Parts that touch each other run together, their stages in turn. As tiles lean, parts touch in some of their stages
//! only, and run one after the other in the others.

use super::shape::{Part, Shapes};
use super::sheets::SheetSet;
use super::{Tile, TileProgram};
use crate::lattice::{Axis, Interval, PerAxis, Region};

/// An innermost tile, or the parts of it that run together.
#[derive(Clone, Debug)]
pub struct Work {
    pub tile: Tile,
    /// They run stage by stage; `None`: the tile has to be walked on these sheets.
    pub parts: Option<Vec<Part>>,
    pub sheets: SheetSet,
    /// The stages that run, counted from the time block's first.
    pub stages: Interval,
}

impl Shapes {
    /// Appends the tiles inside of an outermost tile, as far as they lie on some sheets, in running order.
    pub fn course(
        &mut self,
        program: &TileProgram,
        tile: &Tile,
        numbers: Interval,
        sheets: SheetSet,
        course: &mut Vec<Work>,
    ) {
        let first = course.len();
        let stages = Interval::new(0, numbers.len());
        program.tiles_inside(tile, 1, numbers, &mut |inner| {
            let mut parts = Vec::new();
            let shaped = self.parts(inner, numbers, sheets, &mut parts);
            if !shaped || !parts.is_empty() {
                course.push(Work {
                    tile: inner.clone(),
                    parts: shaped.then_some(parts),
                    sheets,
                    stages,
                });
            }
        });
        let of = |work: &Work| work.parts.as_ref().map_or(0, Vec::len);
        let own = &course[first..];
        if own.iter().any(|work| work.parts.is_none()) || own.iter().all(|work| of(work) < 2) {
            return;
        }
        let whole = course.split_off(first);
        let all = whole.iter().flat_map(|work| work.parts.iter().flatten());
        for group in self.dependent(program, all, stages) {
            for work in &whole {
                let parts = work.parts.iter().flatten();
                let parts: Vec<&Part> = parts.filter(|p| group >> p.sheet & 1 == 1).collect();
                if !parts.is_empty() {
                    self.in_turn(program, &work.tile, &parts, stages, course);
                }
            }
        }
    }

    /// Appends some stages of parts of a tile: parts one after the other for as many stages as no dependence goes
    /// between them.
    fn in_turn(
        &self,
        program: &TileProgram,
        tile: &Tile,
        parts: &[&Part],
        stages: Interval,
        course: &mut Vec<Work>,
    ) {
        let sets = |stages| self.dependent(program, parts.iter().copied(), stages);
        let joined = |stages| sets(stages).len() < 2;
        let mut from = stages.lo;
        while from < stages.hi {
            let mut end = from + 1;
            let together = parts.len() < 2 || joined(Interval::new(from, end));
            while end < stages.hi
                && match together {
                    true => parts.len() < 2 || joined(Interval::new(end, end + 1)),
                    false => !joined(Interval::new(from, end + 1)),
                }
            {
                end += 1;
            }
            let some = Interval::new(from, end);
            from = end;
            if together {
                course.push(Work {
                    tile: tile.clone(),
                    parts: Some(parts.iter().copied().cloned().collect()),
                    sheets: parts.iter().fold(0, |set, p| set | 1 << p.sheet),
                    stages: some,
                });
                continue;
            }
            for set in sets(some) {
                let own = parts.iter().copied();
                let own: Vec<&Part> = own.filter(|p| set >> p.sheet & 1 == 1).collect();
                self.in_turn(program, tile, &own, some, course);
            }
        }
    }

    /// The sheets of the given parts, in sets; no dependence of the given stages joins two sets.
    fn dependent<'a>(
        &self,
        program: &TileProgram,
        parts: impl Iterator<Item = &'a Part>,
        stages: Interval,
    ) -> Vec<SheetSet> {
        let mut bounds: Vec<(usize, Region)> = Vec::new();
        for part in parts {
            let own = self.bounds(part, stages);
            match bounds.iter_mut().find(|(sheet, _)| *sheet == part.sheet) {
                Some((_, all)) => *all = PerAxis::from_fn(|a| all[a].hull(own[a])),
                None => bounds.push((part.sheet, own)),
            }
        }
        let mut sets: Vec<SheetSet> = Vec::new();
        for (n, (sheet, own)) in bounds.iter().enumerate() {
            let touching = bounds[..n]
                .iter()
                .filter(|(_, other)| touch(program, own, other));
            let touching = touching.fold(0, |set: SheetSet, (other, _)| set | 1 << other);
            // Sets that it joins become one.
            let mut joined = 1 << sheet;
            sets.retain(|set| {
                let apart = set & touching == 0;
                joined |= if apart { 0 } else { *set };
                apart
            });
            sets.push(joined);
        }
        sets
    }
}

/// Whether a dependence may go between events of two regions along the outer and middle axes: some of their cells are
/// no farther from each other than updates read.
fn touch(program: &TileProgram, a: &Region, b: &Region) -> bool {
    let axes = [Axis::OUTER, Axis::MIDDLE];
    if axes
        .iter()
        .any(|&axis| a[axis].is_empty() || b[axis].is_empty())
    {
        return false;
    }
    axes.into_iter().all(|axis| {
        let reach = program.reach[axis];
        let wide = Interval::new(a[axis].lo - reach, a[axis].hi + reach);
        let around = program.ring[axis].map_or(0, |ring| ring / 2);
        [-around, 0, around].into_iter().any(|by| {
            let moved = Interval::new(b[axis].lo + by, b[axis].hi + by);
            !wide.intersect(moved).is_empty()
        })
    })
}
