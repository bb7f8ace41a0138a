//! The elements that tiles touch: some tiles in the middle of the grid are walked.

use crate::lattice::{Axis, Interval, PerAxis, Region, div_floor};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tile::{Plane, Tile, TileProgram};

/// The most steps in which tiles that end are walked.
const STEPS: u64 = 256;
/// The least part of a plane that is not the sum of others, relative to its numbers.
const LEAST: f64 = 1e-9;

/// Elements that the steps of a tile touch, each counted once.
#[derive(Clone, Copy, Debug, Default)]
struct Elements {
    first: f64,
    /// By each of the next steps anew, on average, until all rows of time levels have had all roles.
    turning: f64,
    /// By each step after these anew.
    further: f64,
    /// The number of roles that rows have in turn.
    phases: f64,
}

impl Elements {
    /// As many by each step.
    fn alike(each: f64) -> Elements {
        Elements {
            first: each,
            turning: each,
            further: each,
            phases: 1.0,
        }
    }

    /// The elements of the steps of all phases and of the step after them.
    fn of(steps: &[Counts], count: impl Fn(&Counts) -> f64) -> Elements {
        let counts: Vec<f64> = steps.iter().map(count).collect();
        let phases = counts.len() - 1;
        let turning: f64 = counts[1..phases].iter().sum();
        Elements {
            first: counts[0],
            turning: turning / phases.saturating_sub(1).max(1) as f64,
            further: counts[phases],
            phases: phases as f64,
        }
    }

    /// All of a time block.
    fn within(&self, height: f64) -> f64 {
        let turning = height.min(self.phases) - 1.0;
        let further = (height - self.phases).max(0.0);
        self.first + self.turning * turning + self.further * further
    }
}

/// The elements that a tile touches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touched {
    loaded: Elements,
    /// Values written, which go back to where they came from.
    stored: Elements,
    /// Cell-steps of a step.
    cells: f64,
    /// Runs of groups in a step, and elements along the inner axis of one.
    runs: f64,
    pub length: f64,
    /// By the largest step.
    pub step: f64,
    /// Where tiles end before the time block does: by all steps of the largest one.
    whole: Option<f64>,
    /// How many tiles the cells of all steps belong to.
    tiles: f64,
}

impl Touched {
    /// Whether no cell is updated.
    pub fn is_empty(&self) -> bool {
        self.cells == 0.0
    }

    /// Elements moved per cell-step, if each touched row is moved once.
    pub fn traffic(&self, height: f64) -> f64 {
        let moved = self.loaded.within(height) + self.stored.within(height);
        moved / (self.cells * height).max(1.0)
    }

    pub fn footprint(&self, height: f64) -> f64 {
        self.whole.unwrap_or(self.loaded.within(height))
    }

    /// Tiles for each cell-step.
    pub fn tiles(&self, height: f64) -> f64 {
        self.tiles / (self.cells * height).max(1.0)
    }

    /// Runs of groups for each cell-step.
    pub fn runs(&self) -> f64 {
        self.runs / self.cells.max(1.0)
    }
}

/// Velocities at which tiles can move so that they look alike in each step: the ones that solve all equations, each of
/// which says that the events on a plane move along with it.
#[derive(Default)]
struct Motion {
    /// Forms and slopes; each has a component, of some index, that later ones lack.
    equations: Vec<([f64; 4], usize)>,
}

impl Motion {
    /// Adds a plane's equation; `false` if no velocity solves it as well as the others, so that the plane ends tiles.
    fn solves(&mut self, plane: &Plane) -> bool {
        let [x, y, z] = plane.form.0.map(|n| n as f64);
        let mut own = [x, y, z, plane.slope as f64];
        let least = LEAST * own.iter().fold(0.0, |most: f64, n| most.max(n.abs()));
        for (other, at) in &self.equations {
            let factor = own[*at] / other[*at];
            own.iter_mut()
                .zip(other)
                .for_each(|(n, m)| *n -= factor * m);
        }
        let largest = (0..3).max_by(|&a, &b| own[a].abs().total_cmp(&own[b].abs()));
        match largest.filter(|at| own[*at].abs() > least) {
            Some(at) => {
                self.equations.push((own, at));
                true
            }
            None => own[3].abs() <= least,
        }
    }
}

/// Whether the tiles of the first levels end before their time block does, if it is high enough: diamonds do, towers
/// that lean go on.
pub(super) fn end(program: &TileProgram, levels: usize) -> bool {
    let mut motion = Motion::default();
    let mut cuts = program.levels.iter().take(levels).flatten();
    !cuts.all(|cut| motion.solves(&program.planes[cut.plane]))
}

/// The tiles around the middle of the grid in some stages, cut by the first `levels` levels: one, or all that follow
/// each other there.
fn middle_tiles(program: &TileProgram, levels: usize, numbers: Interval) -> Vec<Tile> {
    let mut motion = Motion::default();
    let mut tiles = vec![program.whole()];
    for cut in program.levels.iter().take(levels).flatten() {
        if motion.solves(&program.planes[cut.plane]) {
            // The depth of the grid's middle, half way in time, so that the tiles of all planes meet there.
            let range = program.depth_range(cut.plane, numbers);
            let middle = div_floor(range.lo + range.len() / 2, cut.pitch);
            let narrow = |tile: &mut Tile| program.narrow(tile, *cut, middle);
            tiles.iter_mut().for_each(narrow);
            continue;
        }
        let parts = tiles.iter().flat_map(|tile| {
            let indices = program.occupied(tile, *cut, numbers);
            (indices.lo..indices.hi).map(|index| {
                let mut part = tile.clone();
                program.narrow(&mut part, *cut, index);
                part
            })
        });
        tiles = parts.collect();
    }
    tiles
}

/// The indices along an axis that a tile touches: ranges with others between them. Along a folded axis a tile has rows
/// on both sides of the ring.
#[derive(Default)]
struct Places(Vec<Interval>);

impl Places {
    fn add(&mut self, range: Interval) {
        let mut all = range;
        self.0.retain(|own| {
            let meet = own.lo <= all.hi && all.lo <= own.hi;
            if meet {
                all = all.hull(*own);
            }
            !meet
        });
        self.0.push(all);
    }

    fn len(&self) -> i64 {
        self.0.iter().map(|range| range.len()).sum()
    }

    /// The number of the first index of a part of one of the ranges.
    fn number(&self, first: i64) -> i64 {
        let mut before = 0;
        for range in &self.0 {
            if range.contains(first) {
                return before + first - range.lo;
            }
            before += range.len();
        }
        unreachable!("a tile touches the indices that it was walked for")
    }
}

/// For each row of the layout and (x, y) in a tile, the range along the inner axis that was touched.
struct Seen {
    lean: Places,
    diamond: Places,
    ranges: Vec<Interval>,
}

impl Seen {
    /// Room for all that a tile touches in `numbers`.
    fn new(layout: &Layout, program: &TileProgram, tile: &Tile, numbers: Interval) -> Seen {
        let (mut lean, mut diamond) = (Places::default(), Places::default());
        let grown = |range: Interval, axis: Axis| {
            let [below, above] = layout.reach[axis].map(i64::from);
            Interval::new(range.lo - below, range.hi + above)
        };
        program.walk(tile, numbers, &mut |segment| {
            lean.add(grown(segment.rows[Axis::OUTER], Axis::OUTER));
            diamond.add(grown(segment.rows[Axis::MIDDLE], Axis::MIDDLE));
        });
        let rows = layout.rows as usize * (lean.len() * diamond.len()) as usize;
        Seen {
            lean,
            diamond,
            ranges: vec![Interval::default(); rows],
        }
    }

    /// Touches rows; returns how many elements are new.
    fn touch(&mut self, row: u32, offset: PerAxis<i32>, rows: Region) -> i64 {
        let [xs, ys, zs] = rows.0;
        if ys.is_empty() {
            return 0;
        }
        let (dx, dy) = (
            i64::from(offset[Axis::OUTER]),
            i64::from(offset[Axis::MIDDLE]),
        );
        let (lean, diamond) = (self.lean.len(), self.diamond.len());
        let first = self.diamond.number(ys.lo + dy);
        let mut fresh = 0;
        for x in xs.lo + dx..xs.hi + dx {
            let line = (i64::from(row) * lean + self.lean.number(x)) * diamond + first;
            for own in &mut self.ranges[line as usize..(line + ys.len()) as usize] {
                let all = own.hull(zs);
                fresh += all.len() - own.len();
                *own = all;
            }
        }
        fresh
    }
}

/// Counts of some stages of a tile.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Elements touched, and values written, that were not before.
    fresh: f64,
    stored: f64,
    cells: f64,
    runs: f64,
    /// Elements along the inner axis, all runs together.
    lengths: f64,
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            fresh: self.fresh + other.fresh,
            stored: self.stored + other.stored,
            cells: self.cells + other.cells,
            runs: self.runs + other.runs,
            lengths: self.lengths + other.lengths,
        }
    }
}

/// A tile that is walked.
struct Walk<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    program: &'a TileProgram,
    tile: Tile,
    seen: Seen,
    written: Seen,
}

impl<'a> Walk<'a> {
    fn new(
        scheme: &'a Scheme,
        layout: &'a Layout,
        program: &'a TileProgram,
        tile: Tile,
        numbers: Interval,
    ) -> Self {
        let seen = || Seen::new(layout, program, &tile, numbers);
        Walk {
            scheme,
            layout,
            program,
            seen: seen(),
            written: seen(),
            tile,
        }
    }

    /// Counts a step after all that were counted before.
    fn step(&mut self, step: u64) -> Counts {
        let Walk {
            scheme,
            layout,
            program,
            tile,
            seen,
            written,
        } = self;
        let per_step = program.stages_per_step();
        let per_cell: usize = scheme.stages.iter().map(|s| s.updates.len()).sum();
        let phase = (step % u64::from(scheme.phases().max(1))) as u32;
        let (mut fresh, mut stored) = (0, 0);
        let mut counts = Counts::default();
        let numbers = Interval::new(step as i64 * per_step, (step as i64 + 1) * per_step);
        program.walk(tile, numbers, &mut |segment| {
            let updates = program.updates(segment.stage, segment.classes);
            let all = &scheme.stages[segment.stage.index()].updates;
            counts.runs += 1.0;
            counts.lengths += segment.rows[Axis::INNER].len() as f64;
            counts.cells += segment.rows.volume() as f64 * updates.iter().count() as f64;
            for update in updates.iter().map(|i| &all[i]) {
                let mut touch = |row: u32, offset| fresh += seen.touch(row, offset, segment.rows);
                let none = PerAxis::splat(0);
                let target = layout.target_row(scheme, segment.stage, phase, update.target);
                stored += written.touch(target.0, none, segment.rows);
                touch(target.0, none);
                for read in update.body.reads() {
                    let row = layout.read_row(scheme, segment.stage, phase, read);
                    touch(row.0, read.offset);
                }
                for coef in update.body.coefs().chain(update.mask) {
                    touch(layout.coef_row(coef).0, none);
                }
            }
        });
        Counts {
            fresh: fresh as f64,
            stored: stored as f64,
            cells: counts.cells / per_cell.max(1) as f64,
            ..counts
        }
    }
}

/// Counts the elements that the tiles of the first `levels` levels touch.
pub(super) fn touched(
    scheme: &Scheme,
    layout: &Layout,
    program: &TileProgram,
    levels: usize,
) -> Touched {
    let steps = match end(program, levels) {
        true => program.height.clamp(1, STEPS),
        // The last of them stands for all that follow: the rows of time levels have their first roles again.
        false => 1 + u64::from(scheme.phases().max(1)),
    };
    let numbers = Interval::new(0, steps as i64 * program.stages_per_step());
    let tiles = middle_tiles(program, levels, numbers).into_iter();
    let mut walks = tiles.map(|tile| Walk::new(scheme, layout, program, tile, numbers));
    if !end(program, levels) {
        let Some(mut walk) = walks.next() else {
            return Touched::default();
        };
        let walked: Vec<Counts> = (0..steps).map(|step| walk.step(step)).collect();
        let first = walked[0];
        return Touched {
            loaded: Elements::of(&walked, |step| step.fresh),
            stored: Elements::of(&walked, |step| step.stored),
            cells: first.cells,
            runs: first.runs,
            length: first.lengths / first.runs.max(1.0),
            step: first.fresh,
            whole: None,
            tiles: 1.0,
        };
    }
    let mut all = Counts::default();
    let (mut whole, mut tiles): (f64, f64) = (0.0, 0.0);
    let mut largest: Option<(f64, Tile, u64)> = None;
    for mut walk in walks {
        let mut own = 0.0;
        for step in 0..steps {
            let counts = walk.step(step);
            own += counts.fresh;
            all = all.plus(counts);
            if largest
                .as_ref()
                .is_none_or(|(most, _, _)| *most < counts.cells)
            {
                largest = Some((counts.cells, walk.tile.clone(), step));
            }
        }
        whole = whole.max(own);
        tiles += f64::from(u8::from(own > 0.0));
    }
    let step = largest.map_or(0.0, |(_, tile, step)| {
        Walk::new(scheme, layout, program, tile, numbers)
            .step(step)
            .fresh
    });
    let mean = |sum: f64| sum / steps as f64;
    Touched {
        loaded: Elements::alike(mean(all.fresh)),
        stored: Elements::alike(mean(all.stored)),
        cells: mean(all.cells),
        runs: mean(all.runs),
        length: all.lengths / all.runs.max(1.0),
        step,
        whole: Some(whole),
        tiles,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cone::cones;
    use crate::schedule::template::{Size, diamond, skewed, torre};
    use crate::schedule::{Frame, Schedule, TiledTemplate};
    use crate::scheme::{Boundary, Precision};
    use crate::testing::{bounded, maxwell, maxwell_te, star};
    use crate::tile::in_integers;

    /// The only member of a family for a scheme, and its innermost tiles.
    fn of(scheme: &Scheme, family: &TiledTemplate) -> (TileProgram, Touched) {
        let layout = Layout::new(scheme).expect("a small size");
        let frame = Frame::new(scheme, &cones(scheme));
        let Schedule::Tiled(tiling) = family.members(&frame).remove(0).1 else {
            panic!("a tiling");
        };
        let program = in_integers(scheme, &frame, &tiling);
        let touched = touched(scheme, &layout, &program, tiling.levels.len());
        (program, touched)
    }

    fn size(value: i64) -> Size {
        Size::of("N", &[value])
    }

    #[test]
    fn diamonds_end_and_towers_go_on() {
        let scheme = maxwell_te(2, Precision::F32, [256, 512]);
        for inner in [0, 64] {
            let (program, _) = of(&scheme, &diamond(size(16), size(16), size(inner)));
            assert!(end(&program, 1));
            let (program, _) = of(&scheme, &skewed(size(16), size(16), size(inner)));
            assert!(!end(&program, 1));
        }
        let scheme = maxwell(2, Precision::F32, [64; 3]);
        let (program, _) = of(&scheme, &torre(size(8), size(2), size(8), size(32)));
        assert!(!end(&program, 2));
    }

    #[test]
    fn each_row_of_a_diamond_counts_once() {
        let cells = [1024, 512];
        let scheme = maxwell_te(2, Precision::F32, cells);
        for (pitch, height) in [(16, 16), (32, 32), (64, 64), (64, 32), (16, 64)] {
            let (_, own) = of(&scheme, &diamond(size(pitch), size(height), size(0)));
            let pitch = pitch as f64;
            let row = cells[1] as f64;
            // The diamonds that follow each other are as wide together as one is at most.
            assert!((own.cells / (pitch * row) - 1.0).abs() < 0.02, "{own:?}");
            assert!((own.step / (3.0 * row) - pitch).abs() <= 1.5, "{own:?}");
            let whole = own.footprint(height as f64) / (3.0 * row);
            assert!((whole - pitch).abs() <= 1.5, "{own:?}");
        }
        // Strips of a row of half diamonds, one of whole ones and another one of halves.
        let (_, own) = of(&scheme, &diamond(size(64), size(64), size(0)));
        assert!((3.0..=5.0).contains(&own.tiles), "{own:?}");
        // A diamond lasts for as many steps as its pitch. Tiles that a time block cuts in two move as many rows.
        let traffic = |pitch, height| {
            let (_, own) = of(&scheme, &diamond(size(pitch), size(height), size(0)));
            own.traffic(height as f64)
        };
        let [low, high] = [traffic(16, 64), traffic(64, 64)];
        assert!((2.5..4.5).contains(&(low / high)), "{low} {high}");
        assert!(traffic(64, 32) > 1.2 * high, "{high}");
    }

    /// Two time levels alternate between two rows: a step finds the row that it writes as the step before the last one
    /// left it.
    #[test]
    fn leaning_tiles_store_each_value_once_for_each_time_that_they_enter_it() {
        let scheme = star(1, Precision::F32, [96, 96, 64]);
        let layout = Layout::new(&scheme).expect("a small size");
        for family in [
            torre(size(16), size(1), size(16), size(0)),
            torre(size(8), size(1), size(8), size(0)),
            skewed(size(16), size(16), size(0)),
        ] {
            let (program, own) = of(&scheme, &family);
            let steps = program.height;
            let levels = program.levels.len();
            let numbers = Interval::new(0, steps as i64 * program.stages_per_step());
            let tile = middle_tiles(&program, levels, numbers).remove(0);
            let mut walk = Walk::new(&scheme, &layout, &program, tile, numbers);
            let all = (0..steps).fold(Counts::default(), |all, step| all.plus(walk.step(step)));
            let moved = (all.fresh + all.stored) / all.cells;
            let expected = own.traffic(steps as f64);
            assert!(
                (expected / moved - 1.0).abs() < 0.02,
                "{expected} beside {moved}"
            );
        }
    }

    /// A ring is folded: a tile has rows on both of its sides, and none between them.
    #[test]
    fn tables_of_tiles_do_not_grow_with_a_ring() {
        let table = |length: i64| {
            let scheme = maxwell(4, Precision::F32, [length, length, 16]);
            let scheme = bounded(scheme, [[Boundary::Periodic; 2]; 3]);
            let layout = Layout::new(&scheme).expect("a small size");
            let (program, _) = of(&scheme, &torre(size(8), size(1), size(8), size(0)));
            let numbers = Interval::new(0, 2 * program.stages_per_step());
            let tile = middle_tiles(&program, program.levels.len(), numbers).remove(0);
            let seen = Seen::new(&layout, &program, &tile, numbers);
            (seen.ranges.len(), seen.lean.0.len(), seen.diamond.0.len())
        };
        let (rows, lean, diamond) = table(128);
        assert_eq!((rows, lean, diamond), table(1024));
        assert!(lean == 2 || diamond == 2, "{lean} {diamond}");
    }
}
