//! Runs of kernels in zones: how they are cut at the ends of zones, and their records.

use super::{Bands, Code, Run, Stream, run_axis};
use crate::lattice::{Axis, Group, Interval, PerAxis, Region};
use crate::layout::Layout;
use crate::scheme::{Scheme, ZoneMap, ZoneSet};

/// A run before it is cut at the ends of zones.
#[derive(Clone, Copy, Debug)]
pub struct RunStart {
    /// The first group's indices along the outer and middle axes.
    pub place: Group,
    /// As in [`Run`].
    pub offset: i64,
    pub groups: i64,
}

/// Runs in the same zones, over the same range of the inner axis.
#[derive(Clone, Debug)]
pub struct ZonedRuns {
    pub zones: ZoneSet,
    pub range: Interval,
    /// Where there are no zones.
    pub runs: Vec<Run>,
    /// Where there are, [`record_width`] numbers for each.
    pub records: Vec<i64>,
}

impl ZonedRuns {
    /// Runs a kernel over a part of the range: one of these zones, or of the ones among them that amend its updates.
    ///
    /// # Safety
    /// As for [`Code::run`].
    pub unsafe fn run(&self, code: &dyn Code, kernel: usize, base: *mut u8, range: Interval) {
        // SAFETY: passed on.
        unsafe {
            match self.zones.is_empty() {
                true => code.run(kernel, base, &self.runs, range),
                false => code.run_zoned(kernel, base, &self.records, range),
            }
        }
    }
}

/// Parts of runs, in lists that are filled again and again.
#[derive(Clone, Debug, Default)]
pub struct ZoneParts {
    all: Vec<ZonedRuns>,
    used: usize,
    /// For each, where its last record is.
    last: Vec<Option<Recorded>>,
}

/// Where the first cell of a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recorded {
    /// The part of each axis.
    parts: [usize; 3],
    place: Group,
}

impl ZoneParts {
    pub fn iter(&self) -> impl Iterator<Item = &ZonedRuns> {
        self.all[..self.used].iter()
    }

    /// The number of the part in some zones, of the parts after the first `first`; a new one if there is none.
    fn of(&mut self, first: usize, zones: ZoneSet, range: Interval) -> usize {
        let own = &self.all[first..self.used];
        let known = own.iter().position(|part| part.zones == zones);
        let index = known.map_or(self.used, |i| first + i);
        if index == self.used {
            self.used += 1;
            self.last.resize(self.last.len().max(self.used), None);
            self.last[index] = None;
            match self.all.get_mut(index) {
                Some(part) => {
                    part.zones = zones;
                    part.range = range;
                    part.runs.clear();
                    part.records.clear();
                }
                None => self.all.push(ZonedRuns {
                    zones,
                    range,
                    runs: Vec::new(),
                    records: Vec::new(),
                }),
            }
        }
        index
    }
}

/// Cuts runs where zones change, bands excepted.
#[derive(Clone, Debug)]
pub struct ZoneSplitter {
    /// All zones as they are.
    exact: ZoneMap,
    /// Zones in bands take all of the inner axis.
    map: ZoneMap,
    bands: Bands,
    axis: Axis,
    streams: Vec<Stream>,
    /// Per stream, how far it begins from where it begins for the next index along the outer and the middle axis of the
    /// same parts, in bytes.
    strides: Vec<Group>,
    some: bool,
}

impl ZoneSplitter {
    pub fn new(scheme: &Scheme, layout: &Layout) -> Self {
        let bands = Bands::new(scheme, layout);
        let bytes = layout.element_bytes as i64;
        let stride = |stream| match stream {
            Stream::AxisCoefs(Axis::OUTER) => Group::new(layout.axis_coefs[Axis::OUTER].stride, 0),
            Stream::AxisCoefs(Axis::MIDDLE) => {
                Group::new(0, layout.axis_coefs[Axis::MIDDLE].stride)
            }
            Stream::AxisCoefs(_) => Group::default(),
            Stream::Zone(zone) => {
                let own = &layout.zones[zone.index()];
                Group::new(own.plane, own.group)
            }
        };
        let strides = Stream::all(layout).map(stride);
        Self {
            strides: strides
                .map(|by| Group::new(by.x * bytes, by.y * bytes))
                .collect(),
            exact: scheme.zone_map(),
            map: ZoneMap::new(&bands.uncut(&scheme.zones)),
            bands,
            axis: run_axis(scheme),
            streams: Stream::all(layout).collect(),
            some: !scheme.zones.is_empty(),
        }
    }

    /// Whether no zone has a cell in a region.
    pub fn is_bare(&self, region: Region) -> bool {
        !self.some || self.exact.is_bare(region)
    }

    /// The runs over a range, runs in the same zones together; only zones in `relevant` count. The runs'
    /// offsets count from group `origin`.
    pub fn split(
        &self,
        layout: &Layout,
        relevant: ZoneSet,
        origin: Group,
        starts: impl Iterator<Item = RunStart> + Clone,
        range: Interval,
        found: &mut ZoneParts,
    ) {
        let bytes = layout.element_bytes as i64;
        let base = layout.group(origin.x, origin.y);
        let stride = layout.stride[self.axis] * bytes;
        found.used = 0;
        let across = self.parts_across(starts.clone());
        for (z, range) in self.map.parts(Axis::INNER, range) {
            let first = found.used;
            if let Some([x, y]) = across {
                let zones = self.map.at_parts([x, y, z]).intersect(relevant);
                let index = found.of(first, zones, range);
                let to = &mut found.all[index];
                self.record_alike(layout, zones, base, starts.clone(), to);
                continue;
            }
            for start in starts.clone() {
                let Group { x, y } = start.place;
                let (lo, across) = match self.axis {
                    Axis::MIDDLE => (y, self.map.part(Axis::OUTER, x)),
                    _ => (x, self.map.part(Axis::MIDDLE, y)),
                };
                let along = Interval::new(lo, lo + start.groups);
                for (part, own) in self.map.parts(self.axis, along) {
                    let (parts, at) = match self.axis {
                        Axis::MIDDLE => ([across, part, z], PerAxis([x, own.lo, range.lo])),
                        _ => ([part, across, z], PerAxis([own.lo, y, range.lo])),
                    };
                    let zones = self.map.at_parts(parts).intersect(relevant);
                    let index = found.of(first, zones, range);
                    let to = &mut found.all[index];
                    let offset = start.offset + (own.lo - lo) * stride;
                    let groups = own.len();
                    if zones.is_empty() {
                        to.runs.push(Run { offset, groups });
                        continue;
                    }
                    let place = Group::new(at[Axis::OUTER], at[Axis::MIDDLE]);
                    let last = found.last[index].replace(Recorded { parts, place });
                    let end = to.records.len();
                    to.records.extend([offset, groups]);
                    if let Some(last) = last.filter(|last| last.parts == parts) {
                        // Streams begin where they began for that one, and some strides farther.
                        let (dx, dy) = (place.x - last.place.x, place.y - last.place.y);
                        let before = end - self.streams.len();
                        for (n, (stream, by)) in self.streams.iter().zip(&self.strides).enumerate()
                        {
                            to.records.push(match stream {
                                Stream::Zone(zone) if !zones.contains(*zone) => 0,
                                _ => to.records[before + n] + dx * by.x + dy * by.y,
                            });
                        }
                        continue;
                    }
                    for stream in &self.streams {
                        to.records.push(match stream {
                            // Of the other zones' streams no kernel takes anything.
                            Stream::Zone(zone) if !zones.contains(*zone) => 0,
                            stream => (self.start(layout, *stream, at) - base) * bytes,
                        });
                    }
                }
            }
        }
    }

    /// The part of the outer and of the middle axis that has all groups of all runs, if there is one of each.
    fn parts_across(&self, starts: impl Iterator<Item = RunStart>) -> Option<[usize; 2]> {
        let mut hull = [Interval::default(); 2];
        for start in starts {
            let Group { x, y } = start.place;
            let [outer, middle] = match self.axis {
                Axis::MIDDLE => [1, start.groups],
                _ => [start.groups, 1],
            };
            hull[0] = hull[0].hull(Interval::new(x, x + outer));
            hull[1] = hull[1].hull(Interval::new(y, y + middle));
        }
        let one = |axis: Axis, range: Interval| {
            let [first, last] = [range.lo, range.hi - 1].map(|i| self.map.part(axis, i));
            (!range.is_empty() && first == last).then_some(first)
        };
        Some([one(Axis::OUTER, hull[0])?, one(Axis::MIDDLE, hull[1])?])
    }

    /// Appends runs that all lie in the same part of the outer and of the middle axis. There streams begin at equal
    /// distances.
    fn record_alike(
        &self,
        layout: &Layout,
        zones: ZoneSet,
        base: i64,
        starts: impl Iterator<Item = RunStart>,
        to: &mut ZonedRuns,
    ) {
        let bytes = layout.element_bytes as i64;
        let whole = |start: &RunStart| Run {
            offset: start.offset,
            groups: start.groups,
        };
        if zones.is_empty() {
            to.runs.extend(starts.map(|start| whole(&start)));
            return;
        }
        let mut first = None;
        for start in starts {
            let Run { offset, groups } = whole(&start);
            let end = to.records.len();
            to.records.extend([offset, groups]);
            let Some((at, place)) = first else {
                first = Some((end, start.place));
                let Group { x, y } = start.place;
                let at = PerAxis([x, y, to.range.lo]);
                let own = self.streams.iter().map(|stream| match stream {
                    // Of the other zones' streams no kernel takes anything.
                    Stream::Zone(zone) if !zones.contains(*zone) => 0,
                    stream => (self.start(layout, *stream, at) - base) * bytes,
                });
                to.records.extend(own);
                continue;
            };
            let by = Group::new(start.place.x - place.x, start.place.y - place.y);
            for (n, (stream, stride)) in self.streams.iter().zip(&self.strides).enumerate() {
                let first = to.records[at + 2 + n];
                to.records.push(match stream {
                    Stream::Zone(zone) if !zones.contains(*zone) => 0,
                    _ => first + by.x * stride.x + by.y * stride.y,
                });
            }
        }
    }

    /// Where a stream begins, as an element of the array, for a run that starts at a cell: that of a zone in bands in
    /// the first one.
    fn start(&self, layout: &Layout, stream: Stream, mut at: PerAxis<i64>) -> i64 {
        if let Stream::Zone(zone) = stream
            && let Some(band) = self.bands.of(zone).first()
        {
            at[Axis::INNER] = band.range.lo;
        }
        stream.start(layout, at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record_width;
    use super::*;
    use crate::testing::{Limits, Rng, add_random_bands, random_scheme};
    use std::collections::BTreeMap;

    type Records = BTreeMap<(ZoneSet, i64), (Vec<Run>, Vec<i64>)>;

    /// A random scheme with layers, some of them along the inner axis.
    fn banded(rng: &mut Rng, dimensions: usize) -> Scheme {
        let limits = Limits {
            dimensions,
            components: 3,
            stages: 1,
            ops: 4,
            length: 90,
            width: 12,
            reach: 2,
        };
        let mut scheme = random_scheme(rng, &limits);
        add_random_bands(rng, &limits, &mut scheme);
        scheme
    }

    /// A run of one group, somewhere in the grid.
    fn random_start(rng: &mut Rng, cells: PerAxis<i64>) -> RunStart {
        let at = PerAxis::from_fn(|a| rng.within(0, cells[a] - 1));
        RunStart {
            place: Group::new(at[Axis::OUTER], at[Axis::MIDDLE]),
            offset: rng.within(0, 1000),
            groups: 1,
        }
    }

    /// The records of a split, by zones and range.
    fn records(
        split: &ZoneSplitter,
        layout: &Layout,
        starts: &[RunStart],
        range: Interval,
        all: &mut Records,
        parts: &mut ZoneParts,
    ) {
        let every = ZoneSet(u32::MAX);
        let origin = Group::new(1, 2);
        split.split(layout, every, origin, starts.iter().copied(), range, parts);
        for part in parts.iter() {
            let own = all.entry((part.zones, part.range.lo)).or_default();
            own.0.extend(&part.runs);
            own.1.extend(&part.records);
        }
    }

    /// Runs that are cut together have the records that each has alone.
    #[test]
    fn records_of_many_runs_are_those_of_each() {
        let mut several = 0;
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let scheme = banded(&mut rng, 1 + seed as usize % 3);
            let layout = Layout::new(&scheme).expect("a small scheme");
            let split = ZoneSplitter::new(&scheme, &layout);
            let cells = scheme.grid.cells;
            let starts: Vec<RunStart> = (0..12)
                .map(|_| {
                    let start = random_start(&mut rng, cells);
                    let at = match split.axis {
                        Axis::MIDDLE => start.place.y,
                        _ => start.place.x,
                    };
                    let groups = rng.within(1, cells[split.axis] - at);
                    RunStart { groups, ..start }
                })
                .collect();
            let range = Interval::new(0, cells[Axis::INNER]);
            let (mut together, mut alone) = (Records::new(), Records::new());
            let mut parts = ZoneParts::default();
            // Lists of an earlier batch leave nothing.
            records(
                &split,
                &layout,
                &starts[6..],
                range,
                &mut Records::new(),
                &mut parts,
            );
            records(&split, &layout, &starts, range, &mut together, &mut parts);
            for start in &starts {
                let fresh = &mut ZoneParts::default();
                records(&split, &layout, &[*start], range, &mut alone, fresh);
            }
            assert_eq!(together, alone, "seed {seed}");
            several += usize::from(together.len() > 2);
        }
        assert!(several > 30, "{several}");
    }

    /// Runs that all lie in the same part of the grid have the records that they have beside a run in another part.
    #[test]
    fn runs_in_one_part_have_the_same_records() {
        let mut compared = 0;
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let scheme = banded(&mut rng, 2 + seed as usize % 2);
            let layout = Layout::new(&scheme).expect("a small scheme");
            let split = ZoneSplitter::new(&scheme, &layout);
            let cells = scheme.grid.cells;
            let all: Vec<RunStart> = (0..40).map(|_| random_start(&mut rng, cells)).collect();
            let across = |starts: &[RunStart]| split.parts_across(starts.iter().copied());
            let (own, others): (Vec<RunStart>, Vec<RunStart>) =
                (all.iter().copied()).partition(|s| across(&[*s]) == across(&all[..1]));
            let Some(other) = others.first() else {
                continue;
            };
            assert!(across(&own).is_some());
            let mixed = [own.as_slice(), &[*other]].concat();
            assert_eq!(across(&mixed), None);
            let range = Interval::new(0, cells[Axis::INNER]);
            let mut parts = ZoneParts::default();
            let (mut quick, mut slow) = (Records::new(), Records::new());
            records(&split, &layout, &own, range, &mut quick, &mut parts);
            records(&split, &layout, &mixed, range, &mut slow, &mut parts);
            let width = record_width(&layout);
            for (key, (runs, own)) in &quick {
                let (more, others) = &slow[key];
                assert_eq!(runs[..], more[..runs.len()], "seed {seed}");
                assert_eq!(own[..], others[..own.len()], "seed {seed}");
                let count = runs.len() + own.len() / width;
                assert!(more.len() + others.len() / width <= count + 1);
                compared += count;
            }
        }
        assert!(compared > 1000, "{compared}");
    }
}
