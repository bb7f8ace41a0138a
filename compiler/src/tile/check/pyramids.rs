//! The same for overlapped tiles: runs them on version numbers.
//!
//! A tile may compute more than it needs, from values that it does not have: such places count as unknown until they
//! hold a right version again, and no event may read them. It is checked that
//! - values that a tile computes of its base are right in every stage, as probes look at them, and so are the values
//!   that it stores;
//! - the tiles of a time block store every place once;
//! - no input and no read leaves a tile's memory.

use super::versions::{Versions, source};
use super::{Event, Memory, TileFault};
use crate::kernel::row_region;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::reference::for_each_index;
use crate::scheme::{ComponentId, Read, Scheme, StageId};
use crate::tile::{AxisTile, PyramidProgram};

/// Places in memory that are looked at; bounds the time.
const MOST_PLACES: u64 = 1 << 26;

/// Of a place that holds no version.
const UNKNOWN: i64 = i64::MIN;

/// Counts of a run; all are exact and depend on the program alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PyramidReport {
    pub time_blocks: u64,
    /// In all time blocks together.
    pub tiles: u64,
    /// Updates at single cells, redundant ones included.
    pub events: u64,
    /// The values that are kept.
    pub owned: u64,
    /// Values that tiles load and store.
    pub loads: u64,
    pub stores: u64,
}

/// Runs `steps` steps of pyramids and counts their work.
pub fn check_pyramids(
    scheme: &Scheme,
    program: &PyramidProgram,
    steps: u64,
) -> Result<PyramidReport, Box<TileFault>> {
    let volume = |p: PerAxis<i64>| p.0.iter().fold(1u64, |n, &e| n.saturating_mul(e as u64));
    let places = volume(program.layout.extent).saturating_mul(program.count());
    if places.saturating_mul(u64::from(program.layout.rows)) > MOST_PLACES {
        return Err(Box::new(TileFault::TooLarge));
    }
    let memory = Memory::new(scheme, 0)?;
    let mut run = Run {
        scheme,
        program,
        versions: Versions::new(scheme),
        now: memory.versions.clone(),
        next: Vec::new(),
        memory,
        report: PyramidReport::default(),
    };
    let mut start = 0;
    while start < steps {
        let end = steps.min(start.saturating_add(program.height));
        run.time_block(start, end)?;
        start = end;
    }
    Ok(run.report)
}

struct Run<'a> {
    scheme: &'a Scheme,
    program: &'a PyramidProgram,
    versions: Versions,
    /// Where places are.
    memory: Memory,
    /// The versions before and after the time block.
    now: Vec<i64>,
    next: Vec<i64>,
    report: PyramidReport,
}

/// A tile and the versions in its memory.
struct Tile {
    axes: PerAxis<AxisTile>,
    base: Region,
    loaded: Region,
    /// Per component and time level.
    held: Vec<Vec<Vec<i64>>>,
}

impl Tile {
    fn place(&self, at: PerAxis<i64>) -> Option<usize> {
        self.loaded.contains(at).then(|| {
            let along =
                |n: i64, a: &Axis| n * self.loaded[*a].len() + (at[*a] - self.loaded[*a].lo);
            Axis::ALL.iter().fold(0, along) as usize
        })
    }

    fn get(&self, id: ComponentId, time_level: usize, at: PerAxis<i64>) -> i64 {
        let place = self.place(at);
        place.map_or(UNKNOWN, |p| self.held[id.index()][time_level][p])
    }
}

type Checked = Result<(), Box<TileFault>>;

impl Run<'_> {
    fn time_block(&mut self, start: u64, end: u64) -> Checked {
        self.next = vec![UNKNOWN; self.now.len()];
        self.report.time_blocks += 1;
        for tile in 0..self.program.count() {
            self.tile(self.program.place(tile), start, end)?;
            self.report.tiles += 1;
        }
        std::mem::swap(&mut self.now, &mut self.next);
        let mut result = Ok(());
        for id in self.scheme.component_ids() {
            let time_levels = usize::from(self.scheme.component(id).time_levels);
            for_each_index(self.scheme.extent(id), |at| {
                let left_out = |time_level: &usize| {
                    self.now[self.memory.place(id, *time_level, at)] == UNKNOWN
                };
                if (0..time_levels).any(|time_level| left_out(&time_level)) && result.is_ok() {
                    let expected = self.versions.last(id, end as i64);
                    result = Err(self.missing(id, at, expected, UNKNOWN));
                }
            });
        }
        result
    }

    fn missing(
        &self,
        component: ComponentId,
        at: PerAxis<i64>,
        expected: i64,
        found: i64,
    ) -> Box<TileFault> {
        Box::new(TileFault::Missing {
            component,
            at,
            expected,
            found,
            event: self.versions.event(component, expected, at),
        })
    }

    /// Where the domain has a place of a tile.
    fn global(&self, at: PerAxis<i64>) -> PerAxis<i64> {
        PerAxis::from_fn(|a| match self.program.unrolled[a] {
            true => at[a].rem_euclid(self.scheme.grid.cells[a]),
            false => at[a],
        })
    }

    fn tile(&mut self, place: PerAxis<i64>, start: u64, end: u64) -> Checked {
        let axes = PerAxis::from_fn(|a| self.program.axis_tile(self.scheme, a, place[a]));
        let loaded = PerAxis::from_fn(|a| axes[a].loaded);
        let fits = |a: Axis| {
            let AxisTile { first, loaded, .. } = &axes[a];
            let own = Interval::new(loaded.lo - first, loaded.hi - first);
            own.intersect(self.program.layout.visible(a)) == own
        };
        if !Axis::ALL.into_iter().all(fits) {
            let message = format!("the input of tile {:?} leaves its memory", place.0);
            return Err(Box::new(TileFault::Rule(message)));
        }
        let mut tile = Tile {
            base: PerAxis::from_fn(|a| axes[a].base),
            loaded,
            axes,
            held: Vec::new(),
        };
        for id in self.scheme.component_ids() {
            let extent = self.scheme.extent(id);
            let mut time_levels = Vec::new();
            for time_level in 0..usize::from(self.scheme.component(id).time_levels) {
                let mut values = Vec::new();
                for_each_index(loaded, |at| {
                    let global = self.global(at);
                    let held = extent.contains(global);
                    self.report.loads += u64::from(held);
                    values.push(match held {
                        true => self.now[self.memory.place(id, time_level, global)],
                        false => UNKNOWN,
                    });
                });
                time_levels.push(values);
            }
            tile.held.push(time_levels);
        }
        let per_step = self.scheme.stages.len();
        let skipped = (self.program.height - (end - start)) as usize * per_step;
        for step in start..end {
            for stage in self.scheme.stage_ids() {
                let number = skipped + (step - start) as usize * per_step + stage.index();
                let rows = PerAxis::from_fn(|a| tile.axes[a].stages[number]);
                self.stage(&mut tile, stage, step, rows)?;
            }
        }
        self.store(&tile, end)
    }

    fn stage(&mut self, tile: &mut Tile, stage: StageId, step: u64, rows: Region) -> Checked {
        let scheme = self.scheme;
        for (update, own) in scheme.stages[stage.index()].updates.iter().enumerate() {
            let region = row_region(scheme, own);
            let mut result = Ok(());
            for_each_index(rows, |at| {
                let global = self.global(at);
                if result.is_ok() && region.contains(global) {
                    let number = (step as usize * scheme.stages.len() + stage.index()) as i64;
                    let event = Event {
                        number,
                        stage,
                        update,
                        at: global,
                    };
                    result = self.event(tile, event, at);
                }
            });
            result?;
        }
        Ok(())
    }

    fn event(&mut self, tile: &mut Tile, event: Event, at: PerAxis<i64>) -> Checked {
        let update = &self.scheme.stages[event.stage.index()].updates[event.update];
        let acts = update.region.contains(event.at);
        let owned = at == event.at && tile.base.contains(at);
        let mut known = true;
        if acts {
            self.report.events += 1;
            self.report.owned += u64::from(owned);
        }
        for read in update.body.reads().filter(|_| acts) {
            let wrong = self.read(tile, event, at, *read)?;
            if let Some((expected, found)) = wrong {
                known = false;
                if owned {
                    return Err(Box::new(TileFault::WrongVersion {
                        event,
                        read: *read,
                        expected,
                        found,
                        crossing: None,
                    }));
                }
            }
        }
        let target = update.target;
        let version = self.versions.newest(target, event.number) + 1;
        let time_levels = i64::from(self.scheme.component(target).time_levels);
        let time_level = self.versions.time_level(target, version);
        let expected = self.versions.acted(target, version - time_levels, event.at);
        let found = tile.get(target, time_level, at);
        if owned && found != expected {
            return Err(Box::new(TileFault::WrongTurn {
                event,
                expected,
                found,
                crossing: None,
            }));
        }
        if let Some(place) = tile.place(at) {
            // Where a mask is 0, the old value stays.
            let right = known && (update.mask.is_none() || found == expected);
            tile.held[target.index()][time_level][place] = if right { version } else { UNKNOWN };
        }
        Ok(())
    }

    /// The version that a read wants and the one that it finds, if they differ.
    fn read(
        &self,
        tile: &Tile,
        event: Event,
        at: PerAxis<i64>,
        read: Read,
    ) -> Result<Option<(i64, i64)>, Box<TileFault>> {
        let id = read.component;
        let seen = PerAxis::from_fn(|a| at[a] + i64::from(read.offset[a]));
        let held = |a: &Axis| {
            let own = seen[*a] - tile.axes[*a].first;
            self.program.layout.visible(*a).contains(own)
        };
        if !Axis::ALL.iter().all(held) {
            return Err(Box::new(TileFault::OutOfBounds { event, read }));
        }
        let global = self.global(seen);
        let Some((found_at, _)) = source(self.scheme, id, global) else {
            return Ok(None);
        };
        let own = PerAxis::from_fn(|a| found_at[a] + seen[a] - global[a]);
        let version = self.versions.newest(id, event.number) - i64::from(read.age);
        let expected = self.versions.acted(id, version, found_at);
        let found = tile.get(id, self.versions.time_level(id, version), own);
        Ok((found != expected).then_some((expected, found)))
    }

    fn store(&mut self, tile: &Tile, end: u64) -> Checked {
        let mut result = Ok(());
        for id in self.scheme.component_ids() {
            let region = tile.base.intersect(self.scheme.extent(id));
            let last = self.versions.last(id, end as i64);
            for age in 0..i64::from(self.scheme.component(id).time_levels) {
                let time_level = self.versions.time_level(id, last - age);
                for_each_index(region, |at| {
                    let expected = self.versions.acted(id, last - age, at);
                    let found = tile.get(id, time_level, at);
                    let place = self.memory.place(id, time_level, at);
                    if result.is_ok() && (found != expected || self.next[place] != UNKNOWN) {
                        result = Err(self.missing(id, at, expected, found));
                    }
                    self.next[place] = found;
                    self.report.stores += 1;
                });
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMITS, seeds};
    use super::*;
    use crate::schedule::Pyramid;
    use crate::scheme::Precision;
    use crate::testing::{Rng, maxwell, random_pyramid, random_scheme};

    fn program(scheme: &Scheme, height: u64, base: [Option<i64>; 3]) -> PyramidProgram {
        let base = PerAxis(base);
        PyramidProgram::new(scheme, &Pyramid { height, base }).expect("a small size")
    }

    #[test]
    fn random_pyramids_of_random_schemes_pass() {
        let (mut passed, mut redundant) = (0, 0);
        for seed in seeds() {
            let mut rng = Rng::new(seed);
            let scheme = random_scheme(&mut rng, &LIMITS);
            let pyramid = random_pyramid(&mut rng);
            let program = PyramidProgram::new(&scheme, &pyramid).expect("a small size");
            let steps = 1 + seed % 7;
            let report = match check_pyramids(&scheme, &program, steps).map_err(|fault| *fault) {
                Ok(report) => report,
                Err(TileFault::TooLarge) => continue,
                Err(fault) => panic!("seed {seed}: {fault}\n{program}{scheme}"),
            };
            let updates = scheme.stages.iter().flat_map(|s| &s.updates);
            let events = updates.map(|u| u.region.volume()).sum::<u64>() * steps;
            assert_eq!(report.owned, events, "seed {seed}");
            passed += 1;
            redundant += u64::from(report.events > report.owned);
        }
        assert!(10 * passed > 9 * seeds().end, "{passed}");
        assert!(8 * redundant > passed, "{redundant} of {passed}");
    }

    #[test]
    fn too_small_regions_are_noticed() {
        let scheme = maxwell(4, Precision::F32, [20, 14, 9]);
        let whole = program(&scheme, 3, [Some(8), Some(7), None]);
        assert_eq!(whole.overlap.0, [[9, 9], [9, 9], [0, 0]]);
        assert!(check_pyramids(&scheme, &whole, 7).is_ok());
        let low = program(&scheme, 2, [Some(8), Some(7), None]);
        let fits = check_pyramids(&scheme, &low, 6).expect("time blocks of 2 steps");
        assert_eq!((fits.time_blocks, fits.tiles), (3, 3 * 6));
        // Memory for lower time blocks has no room for higher ones.
        let wide = maxwell(4, Precision::F32, [90, 14, 9]);
        let mut low = program(&wide, 2, [Some(8), None, None]);
        low.height = 9;
        let fault = check_pyramids(&wide, &low, 3).expect_err("too small a memory");
        assert!(matches!(*fault, TileFault::Rule(_)), "{fault}");
    }

    #[test]
    fn counts_of_a_pyramid() {
        // In the middle of the grid a base of 8 x 8, two stages: E needs H 3/2 cells around, so that 1 and 2 rows more
        // are computed.
        let scheme = maxwell(4, Precision::F32, [40, 40, 6]);
        let one = program(&scheme, 1, [Some(8), Some(8), None]);
        let tile = one.axis_tile(&scheme, Axis::OUTER, 2);
        assert_eq!((tile.base.lo, tile.base.hi), (16, 24));
        let lengths: Vec<i64> = tile.stages.iter().map(|s| s.len()).collect();
        assert_eq!(lengths, [11, 8]);
        let high = program(&scheme, 4, [Some(8), Some(8), None]);
        let lengths = high.axis_tile(&scheme, Axis::OUTER, 2).stages;
        let lengths: Vec<i64> = lengths.iter().map(|s| s.len()).collect();
        assert_eq!(lengths, [29, 26, 23, 20, 17, 14, 11, 8]);
    }
}
