//! Counts that theory gives, and towers that run by their sets alone, with version numbers instead of values.

mod faults;
mod interp;
mod mirrors;
mod points;
mod tasks;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use torre_compiler::cone::{Rational, cones};
use torre_compiler::lattice::Axis;
use torre_compiler::lattice::{Interval, PerAxis};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::schedule::{Cut, Frame, Level, Tiling};
use torre_compiler::scheme::{Boundary, ComponentId, Precision};
use torre_compiler::scheme::{Scheme, StageId, Update};
use torre_compiler::testing::{Limits, Rng, elasticity, everywhere, maxwell, random_scheme, star};
use torre_compiler::tile::TileProgram;
use torre_compiler::tile::lower;
use torre_compiler::tower::*;

fn tiling(
    scheme: &Scheme,
    pitches: [Rational; 2],
    slack: Rational,
    height: u64,
) -> (Frame, Tiling) {
    let cones = cones(scheme);
    let frame = Frame::new(scheme, &cones);
    let cut = |form: [i32; 3], pitch: Rational| {
        let mut face = frame.fitting(PerAxis(form));
        face.slope = face.slope + slack;
        Cut { face, pitch }
    };
    let cuts = vec![cut([1, 1, 0], pitches[0]), cut([1, -1, 0], pitches[1])];
    let levels = vec![Level { cuts }];
    (frame, Tiling { height, levels })
}

fn towers_of(scheme: &Scheme, pitch: Rational) -> Towers {
    let (frame, tiling) = tiling(scheme, [pitch; 2], Rational::ZERO, 4);
    let program = lower(scheme, &frame, &tiling).expect("fitting faces are legal");
    let layout = Layout::new(scheme).expect("it is small");
    Towers::new(scheme, &layout, &program, Numbering::Grid).expect("these are towers")
}

#[test]
fn fdtd42_moves_what_the_law_says() {
    let scheme = maxwell(4, Precision::F32, [64; 3]);
    for d in 1..=6 {
        let towers = towers_of(&scheme, Rational::whole(3 * d));
        assert_eq!((towers.steps, towers.advance), (1, Group::new(3, 0)));
        assert_eq!(towers.alignments.len(), 1 + (d % 2) as usize);
        assert_eq!(towers.cells(), 4.5 * (d * d) as f64);
        // A curl reads along two axes only, so a little less is loaded than 27 (2 D + 1).
        let moved = Traffic {
            loads: 54.0 * d as f64 + 15.0,
            stores: 27.0 * (2 * d - 1) as f64,
        };
        assert_eq!(towers.traffic(), moved);
        let Traffic { loads, stores } = towers.traffic_of_column();
        assert_eq!(loads + stores, 27.0 * (4 * d - 1) as f64 - 3.0);
        let law = 96.0 / d as f64;
        let bytes = towers.bytes_per_cell(&scheme);
        assert!(bytes <= law && bytes > 0.88 * law, "{bytes} {law}");
    }
    // All values of the tower, except the ones that lie in front of it half of the time.
    assert_eq!(
        towers_of(&scheme, Rational::whole(6)).alignments[0].most_kept(),
        103
    );
}

#[test]
fn other_schemes_move_few_values_too() {
    let count = |scheme: &Scheme, pitch: i64| {
        let towers = towers_of(scheme, Rational::whole(pitch));
        let Traffic { loads, stores } = towers.traffic();
        let kept = towers.alignments.iter().map(Residency::most_kept).max();
        (towers.steps, towers.advance.x, loads, stores, kept)
    };
    let maxwell22 = maxwell(2, Precision::F32, [64; 3]);
    assert_eq!(count(&maxwell22, 2), (1, 1, 13.0, 9.0, Some(12)));
    assert_eq!(count(&maxwell22, 4), (1, 1, 25.0, 21.0, Some(48)));
    // Two time levels, so two steps to a period.
    for radius in [1, 4] {
        let scheme = star(radius, Precision::F32, [32; 3]);
        assert_eq!(torre_compiler::scheme::verify(&scheme), Ok(()));
    }
    assert_eq!(
        count(&star(1, Precision::F32, [32; 3]), 4),
        (2, 2, 20.0, 12.0, Some(16))
    );
    assert_eq!(
        count(&star(1, Precision::F32, [32; 3]), 8),
        (2, 2, 36.0, 28.0, Some(64))
    );
    assert_eq!(
        count(&star(4, Precision::F32, [32; 3]), 8),
        (2, 8, 192.0, 64.0, Some(64))
    );
    // With five coefficients, which are loaded once and kept.
    let elastic = elasticity(Precision::F32, [64; 3]);
    assert_eq!(count(&elastic, 6), (1, 3, 287.0, 120.0, Some(188)));
}

/// Whether towers of the grid may run by their sets.
fn fits(scheme: &Scheme) -> bool {
    [Axis::OUTER, Axis::MIDDLE]
        .iter()
        .all(|&a| !scheme.grid.is_periodic(a))
        && scheme.grid.dimensions() == 3
}

#[test]
fn towers_of_random_schemes_find_their_values() {
    let limits = Limits {
        dimensions: 3,
        components: 3,
        stages: 3,
        ops: 6,
        length: 2,
        width: 26,
        reach: 1,
    };
    let (mut tried, mut inner) = (0, 0);
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        everywhere(&mut scheme);
        if !fits(&scheme) || scheme.grid.cells.0.iter().take(2).any(|n| *n < 12) {
            continue;
        }
        let mut pitch =
            || Rational::new(rng.within(2, 20), rng.within(1, 2)).unwrap_or(Rational::ONE);
        let pitches = if seed % 3 == 0 {
            [pitch(), pitch()]
        } else {
            [pitch(); 2]
        };
        let slack = Rational::halves(rng.within(0, 1));
        tried += 1;
        inner += run(&scheme, pitches, slack, 1 + rng.below(3)).unwrap_or(0);
    }
    assert!(tried > 50 && inner > 10 * tried, "{inner} {tried}");
}

#[test]
fn towers_of_known_schemes_find_their_values() {
    let cells = [29, 31, 2];
    for (scheme, pitch) in [
        (maxwell(4, Precision::F32, cells), 6),
        (maxwell(4, Precision::F32, cells), 9),
        (maxwell(2, Precision::F32, cells), 3),
        (elasticity(Precision::F32, cells), 6),
    ] {
        let inner = run(&scheme, [Rational::whole(pitch); 2], Rational::ZERO, 3);
        assert!(inner > Some(4), "{inner:?} of {pitch} in {}", scheme.name);
    }
}

/// Runs two time blocks of `periods` periods; gives the number of towers that ran by their sets.
fn run(scheme: &Scheme, pitches: [Rational; 2], slack: Rational, periods: u64) -> Option<usize> {
    let (frame, tiling) = tiling(scheme, pitches, slack, 1 << 20);
    let program = lower(scheme, &frame, &tiling).expect("fitting faces are legal");
    let layout = Layout::new(scheme).ok()?;
    let towers = Towers::new(scheme, &layout, &program, Numbering::Grid).ok()?;
    let mut machine = Machine::new(scheme, &layout);
    for time_block in 0..2 {
        machine.first_step = time_block * periods * towers.steps;
        machine.time_block(&program, &towers, periods as usize);
    }
    machine.finish(2 * periods * towers.steps);
    Some(machine.inner)
}

/// Memory and towers that hold versions.
struct Machine<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    /// Per row of a group, the component and the time level that it holds; `None` for coefficients.
    rows: Vec<Option<(ComponentId, u64)>>,
    memory: BTreeMap<RowRef, i64>,
    first_step: u64,
    inner: usize,
}

/// A tower that runs.
struct Tower {
    tile: PerFace<i64>,
    /// If it runs by its residency.
    located: Option<Located>,
    kept: BTreeMap<RowRef, i64>,
}

impl<'a> Machine<'a> {
    fn new(scheme: &'a Scheme, layout: &'a Layout) -> Self {
        let mut rows = vec![None; layout.rows as usize];
        for id in scheme.component_ids() {
            for time_level in 0..u64::from(scheme.component(id).time_levels) {
                rows[layout.row(id, time_level).0 as usize] = Some((id, time_level));
            }
        }
        Machine {
            scheme,
            layout,
            rows,
            memory: BTreeMap::new(),
            first_step: 0,
            inner: 0,
        }
    }

    /// Where a place's value is stored: mirrors are ghosts of values inside. `None`: it is 0 or constant.
    fn stored(&self, place: RowRef) -> Option<RowRef> {
        let (id, _) = self.rows[place.row.0 as usize]?;
        let position = self.scheme.component(id).position;
        let z = self.scheme.grid.live(position)[Axis::INNER].lo;
        let at = PerAxis([place.at.x, place.at.y, z]);
        match self.scheme.grid.resolve(position, at) {
            torre_compiler::scheme::Located::Stored { at, .. } => Some(RowRef {
                at: Group::new(at[Axis::OUTER], at[Axis::MIDDLE]),
                row: place.row,
            }),
            torre_compiler::scheme::Located::Zero => None,
        }
    }

    fn load(&self, place: RowRef) -> i64 {
        let Some(stored) = self.stored(place) else {
            return i64::MIN;
        };
        let (_, time_level) = self.rows[place.row.0 as usize].expect("constants are not stored");
        let time_levels = self.time_levels(place.row);
        let initial = -(-(time_level as i64)).rem_euclid(time_levels);
        self.memory.get(&stored).copied().unwrap_or(initial)
    }

    fn time_levels(&self, row: RowId) -> i64 {
        let (id, _) = self.rows[row.0 as usize].expect("it is a component's row");
        i64::from(self.scheme.component(id).time_levels)
    }

    fn time_block(&mut self, program: &TileProgram, towers: &Towers, periods: usize) {
        let stages = self.scheme.stages.len() as i64;
        let numbers = Interval::new(0, periods as i64 * towers.steps as i64 * stages);
        let cuts = [program.levels[0][0], program.levels[0][1]];
        let whole = program.whole();
        let [first, second] = cuts.map(|cut| program.indices(&whole, cut, numbers));
        let bounds = towers.bounds(self.scheme, self.layout);
        let whole = |tile| {
            let placed = towers.place(&bounds, tile, periods as u64)?;
            (placed.interior == (0..periods as u64)).then_some(Located {
                alignment: placed.alignment,
                origin: placed.origin,
            })
        };
        // All towers of a column at once, stage by stage.
        for column in first.lo + second.lo..first.hi + second.hi {
            let tiles = (first.lo..first.hi).map(|i| [i, column - i]);
            let mut all: Vec<Tower> = tiles
                .filter(|t| second.contains(t[1]))
                .map(|tile| Tower {
                    tile,
                    located: whole(tile),
                    kept: BTreeMap::new(),
                })
                .collect();
            for tower in &mut all {
                self.begin(towers, tower);
            }
            for number in numbers.lo..numbers.hi {
                for tower in &mut all {
                    self.stage(program, towers, tower, number);
                }
            }
            for tower in &mut all {
                self.end(towers, tower, numbers.hi);
            }
        }
    }

    /// The live ranges of a tower that are under way when a stage starts, with their places.
    fn alive<'t>(towers: &'t Towers, tower: &Tower, number: i64) -> Vec<(&'t LiveRange, RowRef)> {
        let Some(Located { alignment, origin }) = tower.located else {
            return Vec::new();
        };
        let residency = &towers.alignments[alignment];
        let per_period = residency.stages.len() as i64;
        let mut alive = Vec::new();
        for live_range in &residency.live_ranges {
            let (first, last) = (live_range.first() as i64, live_range.last() as i64);
            // Begun in period t: per_period t + first < number <= per_period t + last
            for period in (number - last).div_euclid(per_period)..=number.div_euclid(per_period) {
                if per_period * period + first < number && number <= per_period * period + last {
                    alive.push((live_range, shifted(live_range.row, towers, origin, period)));
                }
            }
        }
        alive
    }

    fn begin(&mut self, towers: &Towers, tower: &mut Tower) {
        self.inner += usize::from(tower.located.is_some());
        for (_, place) in Self::alive(towers, tower, 0) {
            assert!(tower.kept.insert(place, self.value(place)).is_none());
        }
    }

    fn value(&self, place: RowRef) -> i64 {
        match self.rows[place.row.0 as usize] {
            Some(_) => self.load(place),
            None => 0,
        }
    }

    fn end(&mut self, towers: &Towers, tower: &mut Tower, number: i64) {
        for (live_range, place) in Self::alive(towers, tower, number) {
            let value = tower.kept[&place];
            if live_range.stored().is_some() && self.stored(place).is_some() {
                self.memory.insert(place, value);
            }
        }
    }

    fn stage(&mut self, program: &TileProgram, towers: &Towers, tower: &mut Tower, number: i64) {
        let stages = self.scheme.stages.len() as i64;
        let stage = StageId((number % stages) as u32);
        let step = self.first_step + (number / stages) as u64;
        let updates = &self.scheme.stages[stage.index()].updates;
        let phase = (step % u64::from(self.scheme.phases())) as u32;
        let target = |update: &Update, at| RowRef {
            at,
            row: self
                .layout
                .target_row(self.scheme, stage, phase, update.target),
        };
        let Some(Located { alignment, origin }) = tower.located else {
            let mut written = Vec::new();
            let mut tile = program.whole();
            program.narrow(&mut tile, program.levels[0][0], tower.tile[0]);
            program.narrow(&mut tile, program.levels[0][1], tower.tile[1]);
            program.walk(&tile, Interval::new(number, number + 1), &mut |segment| {
                for update in program.updates(stage, segment.classes).iter() {
                    let [outer, middle, _] = segment.rows.0;
                    let at = (outer.lo..outer.hi)
                        .flat_map(|x| (middle.lo..middle.hi).map(move |y| Group::new(x, y)));
                    for at in at {
                        self.check_reads(&updates[update], stage, step, at, &|place| {
                            Some(self.load(place))
                        });
                        let version =
                            self.scheme.version(updates[update].target, stage, step) as i64 + 1;
                        written.push((target(&updates[update], at), version));
                    }
                }
            });
            self.memory.extend(written);
            return;
        };
        let per_period = towers.alignments[alignment].stages.len() as i64;
        let rows = &towers.alignments[alignment].stages[(number % per_period) as usize];
        let here = |place| shifted(place, towers, origin, number / per_period);
        for place in &rows.entering {
            let value = self.value(here(*place));
            assert!(
                tower.kept.insert(here(*place), value).is_none(),
                "it was loaded before"
            );
        }
        let mut written = Vec::new();
        for own in &rows.updates {
            let update = &updates[own.update];
            let at = here(RowRef {
                at: own.at,
                row: RowId(0),
            })
            .at;
            let mirrored = &towers.mirrored;
            let region = update.region;
            if !region[Axis::OUTER].contains(at.x) || !region[Axis::MIDDLE].contains(at.y) {
                // An end cuts the row off.
                written.push((target(update, at), tower.kept[&target(update, at)]));
                continue;
            }
            self.check_reads(update, stage, step, at, &|place| {
                let component = self.layout.component_of(place.row);
                let own = component.map(|id| mirrored.own(id));
                // Beyond mirrors the row takes values that other reads of its body check.
                match own.is_none_or(|own| own.contains(place.at)) {
                    true => Some(tower.kept[&place]),
                    false => None,
                }
            });
            let version = self.scheme.version(update.target, stage, step) as i64 + 1;
            written.push((target(update, at), version));
        }
        tower.kept.extend(written);
        for place in &rows.leaving {
            self.memory.insert(here(*place), tower.kept[&here(*place)]);
        }
        // Only rows that are touched again are kept.
        let alive: BTreeSet<RowRef> = Self::alive(towers, tower, number + 1)
            .iter()
            .map(|a| a.1)
            .collect();
        tower.kept.retain(|place, _| alive.contains(place));
        assert_eq!(tower.kept.len(), alive.len());
        let stage = (number % per_period) as usize;
        assert_eq!(alive.len(), towers.alignments[alignment].kept(stage));
    }

    /// Every read finds the version that the scheme names.
    fn check_reads(
        &self,
        update: &Update,
        stage: StageId,
        step: u64,
        at: Group,
        find: &dyn Fn(RowRef) -> Option<i64>,
    ) {
        let phase = (step % u64::from(self.scheme.phases())) as u32;
        for read in update.body.reads() {
            let place = RowRef {
                at: at + reach(read),
                row: self.layout.read_row(self.scheme, stage, phase, read),
            };
            let Some(found) = find(place) else { continue };
            let newest = self.scheme.version(read.component, stage, step) as i64;
            if self.stored(place).is_some() {
                assert_eq!(
                    found,
                    newest - i64::from(read.age),
                    "{read:?} at {place:?}, {stage} of step {step}"
                );
            }
        }
    }

    /// All rows have their last versions.
    fn finish(&self, steps: u64) {
        let updates = self.scheme.stages.iter().flat_map(|s| &s.updates);
        for update in updates.filter(|u| !u.region.is_empty()) {
            let last = self.scheme.version(update.target, StageId(0), steps);
            let row = self.layout.row(update.target, last);
            for x in update.region[Axis::OUTER].lo..update.region[Axis::OUTER].hi {
                for y in update.region[Axis::MIDDLE].lo..update.region[Axis::MIDDLE].hi {
                    let at = Group::new(x, y);
                    assert_eq!(self.load(RowRef { at, row }), last as i64);
                }
            }
        }
    }
}

fn shifted(row: RowRef, towers: &Towers, origin: Group, periods: i64) -> RowRef {
    RowRef {
        at: row.at + origin + towers.advance * periods,
        row: row.row,
    }
}

/// Where ends have no ghosts, or are mirrors of central differences, no period is run row by row: ends clip towers or
/// leave them whole.
#[test]
fn ends_clip_towers() {
    let parts = |boundary: [[Boundary; 2]; 2]| {
        let mut scheme = maxwell(4, Precision::F32, [31, 40, 8]);
        let sides = [boundary[0], boundary[1], [Boundary::Zero; 2]];
        scheme.grid.boundary = PerAxis(sides);
        everywhere(&mut scheme);
        let layout = Layout::new(&scheme).expect("it is small");
        let towers = towers_of(&scheme, Rational::whole(6));
        let bounds = towers.bounds(&scheme, &layout);
        let periods = 4;
        let [first, second] = towers
            .indices(&scheme, periods)
            .expect("they can be counted");
        let tiles = (first.lo..first.hi).flat_map(|i| (second.lo..second.hi).map(move |j| [i, j]));
        let parts: Vec<_> = tiles
            .filter_map(|tile| towers.place(&bounds, tile, periods))
            .collect();
        let cut = parts.iter().filter(|p| p.interior != p.periods).count();
        let predicated = parts.iter().filter(|p| p.variant > 0).count();
        (cut, predicated, parts.len() - predicated)
    };
    let [open, shut] = [[Boundary::Zero; 2], [Boundary::Pec, Boundary::Pmc]];
    let (cut, predicated, whole) = parts([open; 2]);
    assert!(
        cut == 0 && predicated > 20 && whole > 5,
        "{predicated} {whole}"
    );
    for ends in [[shut; 2], [[Boundary::Zero, Boundary::Pec], shut]] {
        let (cut, predicated, whole) = parts(ends);
        assert!(
            cut == 0 && predicated > 20 && whole > 5,
            "{predicated} {whole}"
        );
    }
}
