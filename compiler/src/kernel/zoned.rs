//! Runs of kernels in zones: how they are cut at the ends of zones, and what their records say.

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
    /// Runs a kernel of these zones over a part of the range.
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
}

impl ZoneParts {
    pub fn iter(&self) -> impl Iterator<Item = &ZonedRuns> {
        self.all[..self.used].iter()
    }

    /// The part in some zones, of those after the first `first`; a new one if there is none.
    fn of(&mut self, first: usize, zones: ZoneSet, range: Interval) -> &mut ZonedRuns {
        let own = &self.all[first..self.used];
        let known = own.iter().position(|part| part.zones == zones);
        let index = known.map_or(self.used, |i| first + i);
        if index == self.used {
            self.used += 1;
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
        &mut self.all[index]
    }
}

/// Cuts runs where zones change, bands excepted.
#[derive(Clone, Debug)]
pub struct ZoneSplitter {
    /// All zones as they are.
    exact: ZoneMap,
    /// Those in bands take all of the inner axis.
    map: ZoneMap,
    bands: Bands,
    axis: Axis,
    streams: Vec<Stream>,
    some: bool,
}

impl ZoneSplitter {
    pub fn new(scheme: &Scheme, layout: &Layout) -> Self {
        let bands = Bands::new(scheme, layout);
        Self {
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

    /// The runs over a range, those in the same zones together; of the zones only those in `relevant` count. The runs'
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
        for (z, range) in self.map.parts(Axis::INNER, range) {
            let first = found.used;
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
                    let to = found.of(first, zones, range);
                    let offset = start.offset + (own.lo - lo) * stride;
                    let groups = own.len();
                    if zones.is_empty() {
                        to.runs.push(Run { offset, groups });
                        continue;
                    }
                    to.records.extend([offset, groups]);
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

    /// Where a stream begins, as an element of the array, for a run that starts at a cell: that of a zone in bands in the
    /// first one.
    fn start(&self, layout: &Layout, stream: Stream, mut at: PerAxis<i64>) -> i64 {
        if let Stream::Zone(zone) = stream
            && let Some(band) = self.bands.of(zone).first()
        {
            at[Axis::INNER] = band.range.lo;
        }
        stream.start(layout, at)
    }
}
