//! Pyramids: tiles that compute the values for which they would otherwise have to wait.
//!
//! A tile owns a box of cells, its *base*. In a time block it loads the values from which the values of the base at the
//! time block's end follow, advances them in memory of its own, over a region that shrinks from stage to stage, and
//! stores its base. Cells beyond the base are computed by the neighbours as well: tiles of a time block depend on
//! nothing but the values before it, so that each order of them is legal.
//!
//! Regions are boxes, an interval per axis, and follow from the reads of the updates backwards through the time block:
//! a stage has to compute the values that later stages of the tile read. A read beyond a mirror needs the ghost's
//! source. Along a periodic axis that is cut, the tile goes around the end and computes the cells there with it;
//! indices then lie beyond the domain ([`PyramidProgram::unrolled`]).

use crate::kernel::row_region;
use crate::lattice::{Axis, Interval, PerAxis};
use crate::layout::{ALIGNMENT, Layout, TooLarge};
use crate::schedule::Pyramid;
use crate::scheme::{ComponentId, Scheme, StageId};
use std::fmt;

/// The tiles of a pyramid schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct PyramidProgram {
    /// Steps in a time block.
    pub height: u64,
    /// Cells of a base along each axis.
    pub base: PerAxis<i64>,
    /// Tiles along each axis.
    pub tiles: PerAxis<i64>,
    /// Periodic axes that are cut: a tile goes around their ends.
    pub unrolled: PerAxis<bool>,
    /// Where a tile's own values lie: index 0 is [`AxisTile::first`].
    pub layout: Layout,
    /// How far a tile's input reaches beyond its base, below and above.
    pub overlap: PerAxis<[i64; 2]>,
}

/// A tile along one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisTile {
    /// The indices that the tile owns; indices of components that end earlier are left out there.
    pub base: Interval,
    /// The index that comes first in the tile's memory.
    pub first: i64,
    /// The indices that are loaded, ghosts included.
    pub loaded: Interval,
    /// Per stage of a time block, the indices that are computed.
    pub stages: Vec<Interval>,
}

impl PyramidProgram {
    /// Before: bases and a height of at least 1. After: the same tiles with a layout for each one's own values.
    pub fn new(scheme: &Scheme, pyramid: &Pyramid) -> Result<PyramidProgram, TooLarge> {
        let grid = &scheme.grid;
        let full = Layout::new(scheme)?;
        let cut = |a: Axis| pyramid.base[a].filter(|&b| b < full.extent[a]);
        let base = PerAxis::from_fn(|a| cut(a).unwrap_or(full.extent[a]).max(1));
        let mut program = PyramidProgram {
            height: pyramid.height.max(1),
            base,
            tiles: PerAxis::from_fn(|a| (full.extent[a] - 1).div_euclid(base[a]) + 1),
            unrolled: PerAxis::from_fn(|a| cut(a).is_some() && grid.is_periodic(a)),
            overlap: PerAxis::splat([0; 2]),
            layout: full.clone(),
        };
        let reach = |a: Axis| full.reach[a].map(i64::from).into_iter().max().unwrap_or(0);
        let line = (ALIGNMENT / full.element_bytes) as i64;
        let mut extent = PerAxis::splat(1);
        for axis in Axis::ALL {
            let [lo, hi] = program.growth(scheme, axis, base[axis]);
            program.overlap[axis] = [lo, hi];
            // A mirror shows values within the reach of its end; from there the tile grows as it does elsewhere.
            let widest = base[axis].max(reach(axis) + 2).saturating_add(lo + hi);
            extent[axis] = if program.unrolled[axis] {
                widest
            } else {
                widest.min(full.extent[axis])
            };
        }
        extent[Axis::INNER] = extent[Axis::INNER].saturating_add(line);
        // Ghosts lie within the reach of an end, and so do their sources.
        let margin = |a: Axis| i32::try_from(2 * reach(a) + 2).map_err(|_| TooLarge);
        let mut margins = PerAxis::splat([0; 2]);
        for axis in grid.present() {
            margins[axis] = [margin(axis)?; 2];
        }
        program.layout = Layout::sized(scheme, extent, margins)?;
        Ok(program)
    }

    /// How far the input of a tile that no end cuts reaches beyond its base.
    fn growth(&self, scheme: &Scheme, axis: Axis, base: i64) -> [i64; 2] {
        if scheme.grid.axes[axis].is_none() || self.tiles[axis] == 1 {
            return [0; 2];
        }
        let line = Line {
            axis,
            unrolled: true,
        };
        let (input, stages) = regions(scheme, line, Interval::new(0, base), self.height);
        let all = stages.iter().fold(input, |all, s| all.hull(*s));
        [-all.lo, all.hi - base]
    }

    /// The tile with an index along an axis.
    pub fn axis_tile(&self, scheme: &Scheme, axis: Axis, index: i64) -> AxisTile {
        let lo = index * self.base[axis];
        let end = match index + 1 == self.tiles[axis] {
            // Planes at the end belong to the last tile.
            true => i64::MAX,
            false => lo + self.base[axis],
        };
        let extents = scheme.component_ids().map(|id| scheme.extent(id)[axis].hi);
        let base = Interval::new(lo, end.min(extents.max().unwrap_or(1)));
        let line = Line {
            axis,
            unrolled: self.unrolled[axis],
        };
        let (input, stages) = regions(scheme, line, base, self.height);
        let all = stages.iter().fold(input.hull(base), |all, s| all.hull(*s));
        let [below, above] = scheme.reach()[axis].map(i64::from);
        let line = match axis {
            Axis::INNER => (ALIGNMENT / scheme.precision.bytes()) as i64,
            _ => 1,
        };
        AxisTile {
            base,
            first: all.lo.div_euclid(line) * line,
            loaded: Interval::new(all.lo - below, all.hi + above),
            stages,
        }
    }

    /// How far each stage of a time block computes beyond the base of a tile that no end cuts, below and above.
    pub fn profile(&self, scheme: &Scheme, axis: Axis) -> Vec<[i64; 2]> {
        let base = Interval::new(0, self.base[axis]);
        let line = Line {
            axis,
            unrolled: true,
        };
        let (_, stages) = regions(scheme, line, base, self.height);
        stages.iter().map(|s| [-s.lo, s.hi - base.hi]).collect()
    }

    /// How many tiles a time block has.
    pub fn count(&self) -> u64 {
        self.tiles
            .0
            .iter()
            .fold(1, |n, &t| n.saturating_mul(t as u64))
    }

    /// The indices of a tile along the axes.
    pub fn place(&self, tile: u64) -> PerAxis<i64> {
        let [_, middle, inner] = self.tiles.0.map(|t| t as u64);
        let [x, y, z] = [tile / (middle * inner), tile / inner % middle, tile % inner];
        PerAxis([x as i64, y as i64, z as i64])
    }
}

/// The input of a tile along an axis, and the indices that each stage of a time block computes.
fn regions(scheme: &Scheme, line: Line, base: Interval, height: u64) -> (Interval, Vec<Interval>) {
    let Line { axis, unrolled } = line;
    // The indices that are stored at the end, per component. They are computed in every step, as probes and slices may
    // look at them.
    let owned: Vec<Interval> = scheme
        .component_ids()
        .map(|id| match unrolled {
            true => base,
            false => base.intersect(scheme.extent(id)[axis]),
        })
        .collect();
    // Per component and time level, the indices that are needed of the version that it holds.
    let mut needs: Vec<Vec<Interval>> = scheme
        .component_ids()
        .map(|id| vec![owned[id.index()]; usize::from(scheme.component(id).time_levels)])
        .collect();
    let ids: Vec<StageId> = scheme.stage_ids().collect();
    let mut stages = Vec::new();
    for step in (0..height).rev() {
        for &stage in ids.iter().rev() {
            let place = StageLine { line, stage, step };
            stages.push(before(scheme, place, &owned, &mut needs));
        }
    }
    stages.reverse();
    let input = needs
        .iter()
        .flatten()
        .fold(Interval::default(), |all, n| all.hull(*n));
    (input, stages)
}

/// An axis as a tile sees it.
#[derive(Clone, Copy)]
struct Line {
    axis: Axis,
    /// It goes on beyond its ends.
    unrolled: bool,
}

/// A stage of a time block, along an axis.
#[derive(Clone, Copy)]
struct StageLine {
    line: Line,
    stage: StageId,
    step: u64,
}

/// Goes back over a stage: from the values that are needed after it to the values that are needed before, and the
/// values that it has to compute.
fn before(
    scheme: &Scheme,
    place: StageLine,
    owned: &[Interval],
    needs: &mut [Vec<Interval>],
) -> Interval {
    let StageLine { line, stage, step } = place;
    let Line { axis, unrolled } = line;
    let time_level = |id: ComponentId, version: u64| {
        (version % u64::from(scheme.component(id).time_levels)) as usize
    };
    let updates = &scheme.stages[stage.index()].updates;
    let mut computed = Interval::default();
    let mut wanted = Vec::new();
    for update in updates {
        let id = update.target;
        let own = &mut needs[id.index()][time_level(id, scheme.version(id, stage, step) + 1)];
        // Before the stage, the time level holds the version that the update replaces.
        wanted.push(std::mem::take(own).hull(owned[id.index()]));
    }
    for (update, wanted) in updates.iter().zip(wanted) {
        let mut reader = wanted;
        if !unrolled {
            reader = wanted.intersect(row_region(scheme, update)[axis]);
        }
        computed = computed.hull(reader);
        let live = scheme.grid.live(scheme.component(update.target).position);
        if update.mask.is_some() || update.region != live {
            // Elsewhere the old value stays.
            let id = update.target;
            let own = &mut needs[id.index()][time_level(id, scheme.version(id, stage, step))];
            *own = own.hull(wanted);
        } else if !unrolled {
            // Zeros on a plane are loaded.
            let id = update.target;
            let own = &mut needs[id.index()][time_level(id, scheme.version(id, stage, step) + 1)];
            let plane = Interval::new(wanted.lo, wanted.lo + 1);
            if !wanted.is_empty() && reader.lo > wanted.lo {
                *own = own.hull(plane);
            }
        }
        if reader.is_empty() {
            continue;
        }
        for read in update.body.reads() {
            let id = read.component;
            let offset = i64::from(read.offset[axis]);
            let seen = Interval::new(reader.lo + offset, reader.hi + offset);
            let time_levels = u64::from(scheme.component(id).time_levels);
            let version =
                scheme.version(id, stage, step) + time_levels - u64::from(read.age) % time_levels;
            let own = &mut needs[id.index()][time_level(id, version)];
            *own = own.hull(sources(scheme, line, id, seen));
        }
    }
    computed
}

/// The stored indices that the values at some indices come from.
fn sources(scheme: &Scheme, line: Line, id: ComponentId, seen: Interval) -> Interval {
    let Line { axis, unrolled } = line;
    if unrolled {
        return seen;
    }
    let extent = scheme.extent(id)[axis];
    if scheme.grid.is_periodic(axis) {
        // The tile holds the whole axis.
        return extent;
    }
    let half = scheme.component(id).position[axis].0;
    let mut found = seen.intersect(extent);
    let below = Interval::new(seen.lo, seen.hi.min(extent.lo));
    let above = Interval::new(seen.lo.max(extent.hi), seen.hi);
    for (side, plane, beyond) in [(0, 0, below), (1, scheme.grid.cells[axis], above)] {
        let mirrored = scheme.grid.boundary[axis][side].is_mirror();
        if mirrored && !beyond.is_empty() {
            let ghost = |i: i64| 2 * plane - i - half;
            let shown = Interval::new(ghost(beyond.hi - 1), ghost(beyond.lo) + 1);
            found = found.hull(shown.intersect(extent));
        }
    }
    found
}

impl fmt::Display for PyramidProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pyramids of height {}", self.height)?;
        for axis in Axis::ALL {
            let [below, above] = self.overlap[axis];
            writeln!(
                f,
                "  {axis}: {} bases of {}, inputs {below} below and {above} above{}",
                self.tiles[axis],
                self.base[axis],
                if self.unrolled[axis] {
                    ", around the ends"
                } else {
                    ""
                },
            )?;
        }
        Ok(())
    }
}
