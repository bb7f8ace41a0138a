//! Keeps the ghosts of values beyond the domain's ends up to date, so that kernels read plain memory everywhere.

use super::memory::Cells;
use torre_compiler::ghost::{self, Ghost};
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis, Region};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Scheme};

/// For each component, where its values near an end appear again.
pub struct Ghosts {
    components: Vec<HostGhosts>,
    /// Rows whose outer and middle index lie in these intervals have no ghosts along these axes.
    far_from_ends: [Interval; 2],
}

/// The ghosts of a component.
struct HostGhosts {
    /// Along the inner axis: (source, ghost), sources ascending.
    row: Vec<(i64, Ghost)>,
    /// Per index along the outer and middle axes, the ghosts of the whole row; most are empty.
    outer: Vec<Vec<Ghost>>,
    middle: Vec<Vec<Ghost>>,
    /// The values at inner index 0 lie on a plane about which they are odd.
    zero_plane: bool,
    /// Some row has ghosts along the outer or middle axis.
    any_rows: bool,
}

impl Ghosts {
    pub fn new(scheme: &Scheme, layout: &Layout) -> Ghosts {
        let components: Vec<HostGhosts> = scheme
            .component_ids()
            .map(|id| HostGhosts::new(scheme, layout, id))
            .collect();
        let without = |axis: Axis| {
            let all = Interval::new(i64::MIN, i64::MAX);
            let own = components.iter().map(|c| c.without(axis));
            own.fold(all, Interval::intersect)
        };
        Ghosts {
            far_from_ends: [without(Axis::OUTER), without(Axis::MIDDLE)],
            components,
        }
    }

    /// Whether some of these rows may have ghosts along the outer or middle axis.
    #[inline]
    pub fn rows_may_have(&self, rows: Region) -> bool {
        let [outer, middle, _] = rows.0;
        let [x, y] = self.far_from_ends;
        outer.lo < x.lo || outer.hi > x.hi || middle.lo < y.lo || middle.hi > y.hi
    }

    /// Whether there are any ghosts.
    pub fn has_any(&self) -> bool {
        let mut components = self.components.iter();
        components.any(|c| c.any_rows || c.zero_plane || !c.row.is_empty())
    }

    /// Whether the rows of a group may have ghosts along the outer or middle axis.
    pub fn group_may_have(&self, Group { x, y }: Group) -> bool {
        let [outer, middle] = self.far_from_ends;
        !(outer.contains(x) && middle.contains(y))
    }

    /// Whether some rows of a component have ghosts along the outer or middle axis.
    pub fn component_has_row_ghosts(&self, id: ComponentId) -> bool {
        self.components[id.index()].any_rows
    }

    /// Whether the rows of a component have ghosts along the inner axis, or zeros to write there.
    pub fn component_has_inner_ghosts(&self, id: ComponentId) -> bool {
        let c = &self.components[id.index()];
        c.zero_plane || !c.row.is_empty()
    }

    /// Writes the ghosts of `range` of a row that is final for its stage (sources have acted).
    ///
    /// # Safety
    /// No other thread touches the row, nor the rows of its ghosts, meanwhile.
    pub unsafe fn update<T: Real>(
        &self,
        layout: &Layout,
        cells: Cells<T>,
        id: ComponentId,
        row: RowId,
        group: Group,
        range: Interval,
    ) {
        let start = layout.element(row, PerAxis([group.x, group.y, 0]));
        // SAFETY: passed on.
        unsafe {
            self.components[id.index()].update_row(cells, start, range);
            self.copy_row(layout, cells, id, row, group, range);
        }
    }

    /// Writes the ghosts of `range` of a row along the outer and middle axes, with their ghosts along the inner axis;
    /// the row's own ones along the inner axis are there.
    ///
    /// # Safety
    /// As for [`Ghosts::update`].
    pub unsafe fn copy_row<T: Real>(
        &self,
        layout: &Layout,
        cells: Cells<T>,
        id: ComponentId,
        row: RowId,
        Group { x, y }: Group,
        range: Interval,
    ) {
        let c = &self.components[id.index()];
        if c.outer[x as usize].is_empty() && c.middle[y as usize].is_empty() {
            return;
        }
        let start = layout.element(row, PerAxis([x, y, 0]));
        // SAFETY: indices lie in the extent or its ghosts, which the layout holds; the caller excludes other threads.
        unsafe {
            let own = |index| Ghost {
                index,
                negated: false,
            };
            for outer in std::iter::once(&own(x)).chain(&c.outer[x as usize]) {
                for middle in std::iter::once(&own(y)).chain(&c.middle[y as usize]) {
                    if outer.index == x && middle.index == y {
                        continue;
                    }
                    let copy = layout.element(row, PerAxis([outer.index, middle.index, 0]));
                    let negated = outer.negated != middle.negated;
                    let copy_one = |i: i64| {
                        let value = cells.get(start + i);
                        cells.set(copy + i, if negated { value.neg() } else { value });
                    };
                    let (to, from) = (copy + range.lo, start + range.lo);
                    match negated {
                        true => cells.repeat_negated(to, from, range.len()),
                        false => cells.repeat(to, from, range.len()),
                    }
                    let ends = c.row.iter().filter(|(source, _)| range.contains(*source));
                    ends.for_each(|(_, ghost)| copy_one(ghost.index));
                    if c.zero_plane && range.lo == 0 {
                        // A plane's zeros have no sign that a mirror could turn.
                        cells.set(copy, T::default());
                    }
                }
            }
        }
    }
}

impl HostGhosts {
    /// The ghosts along the inner axis of the range of a row that starts at an element.
    ///
    /// # Safety
    /// As for [`Ghosts::update`].
    #[inline]
    unsafe fn update_row<T: Real>(&self, cells: Cells<T>, start: i64, range: Interval) {
        // SAFETY: indices lie in the extent or its ghosts, which the layout holds; the caller excludes other threads.
        unsafe {
            if self.zero_plane && range.lo == 0 {
                cells.set(start, T::default());
            }
            for (source, ghost) in &self.row {
                if range.contains(*source) {
                    let value = cells.get(start + source);
                    let value = if ghost.negated { value.neg() } else { value };
                    cells.set(start + ghost.index, value);
                }
            }
        }
    }

    /// The largest range around the middle of an axis without ghosts along it.
    fn without(&self, axis: Axis) -> Interval {
        let ghosts = match axis {
            Axis::OUTER => &self.outer,
            _ => &self.middle,
        };
        let half = ghosts.len() / 2;
        let below = ghosts[..half].iter().rposition(|g| !g.is_empty());
        let above = ghosts[half..].iter().position(|g| !g.is_empty());
        Interval::new(
            below.map_or(i64::MIN, |i| i as i64 + 1),
            above.map_or(i64::MAX, |i| (half + i) as i64),
        )
    }

    fn new(scheme: &Scheme, layout: &Layout, id: ComponentId) -> Self {
        let ghost::ComponentGhosts(axes) = ghost::ComponentGhosts::new(scheme, id);
        let along = |axis: Axis| -> Vec<Vec<Ghost>> {
            let of = |i| axes[axis].of(i).collect();
            (0..layout.extent[axis]).map(of).collect()
        };
        let (outer, middle) = (along(Axis::OUTER), along(Axis::MIDDLE));
        let position = scheme.component(id).position;
        Self {
            row: axes[Axis::INNER].pairs(),
            any_rows: !outer.iter().chain(&middle).all(Vec::is_empty),
            outer,
            middle,
            zero_plane: scheme.grid.live(position)[Axis::INNER].lo > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::testing::{Rng, random_folded_scheme};

    /// Only rows that are no farther from an end than some row with ghosts are looked at.
    #[test]
    fn rows_near_ends_are_those_up_to_the_last_one_with_ghosts() {
        let mut some = 0;
        for seed in 0..300 {
            let scheme = random_folded_scheme(&mut Rng::new(seed));
            let layout = Layout::new(&scheme).expect("a small scheme");
            let ghosts = Ghosts::new(&scheme, &layout);
            let has = |axis: Axis, i: i64| {
                ghosts.components.iter().any(|c| {
                    let along = [&c.outer, &c.middle][usize::from(axis == Axis::MIDDLE)];
                    !along[i as usize].is_empty()
                })
            };
            for axis in [Axis::OUTER, Axis::MIDDLE] {
                let n = layout.extent[axis];
                let near = |i: i64| {
                    let mut rows = Region::from_fn(|a| Interval::new(layout.extent[a] / 2, 0));
                    for a in [Axis::OUTER, Axis::MIDDLE] {
                        rows[a].hi = rows[a].lo + 1;
                    }
                    rows[axis] = Interval::new(i, i + 1);
                    ghosts.rows_may_have(rows)
                };
                let far = Axis::ALL
                    .iter()
                    .all(|&a| a == axis || layout.extent[a] > 12 || a == Axis::INNER);
                for i in 0..n {
                    assert!(near(i) || !has(axis, i), "seed {seed}, {axis:?} {i}");
                    let beyond = match i < n / 2 {
                        true => (i..n / 2).any(|k| has(axis, k)),
                        false => (n / 2..=i).any(|k| has(axis, k)),
                    };
                    if n > 12 && far {
                        assert_eq!(near(i), beyond, "seed {seed}, {axis:?} {i}");
                        some += usize::from(beyond);
                    }
                }
            }
        }
        assert!(some > 100, "{some}");
    }
}
