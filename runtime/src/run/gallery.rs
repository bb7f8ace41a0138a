//! The pictures of a run's outputs, with one range for all frames of an output.
//!
//! While frames come, each is drawn with the range of the frames up to it. When the run ends, the range is that of all
//! frames, and frames that were drawn with another range are read back from their arrays and drawn again. So pictures
//! can be looked at during a run, frames need no memory, and the pictures of a finished run depend on its values only.

mod spectral;

use super::outlines::Outlines;
use super::own_folder::OwnFolder;
use super::pictures::{Measure, Rows, Shown};
use crate::output::npy::NpyReader;
use crate::output::picture::{Scale, Spread, movie, text_width};
use crate::output::{Attempt, Cause, FileError};
use std::collections::BTreeMap;
use std::path::Path;
use torre_compiler::lattice::{Axis, gcd};
use torre_compiler::problem::{Output, Problem, StaticOutput};
use torre_compiler::scheme::Scheme;
use torre_compiler::statics::Files;

/// Frames of a line that are drawn above each other, at the most: more are finer than pixels.
const MOST_LINES: usize = 4096;

/// Values of the frames of a line that are drawn above each other, at the most; of more, frames are left out.
pub(super) const MOST_IN_DIAGRAM: usize = 1 << 21;

/// How pictures are to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pictures {
    /// Ranges that replace the ranges of the values; of two for one output the later one.
    pub ranges: Vec<Range>,
    /// Whether frames are put together to animations.
    pub movies: bool,
    /// An axis that points downward where it is not drawn to the right.
    pub down: Option<Axis>,
}

/// The range of colours, or of the vertical axis of curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// An output, or the component, coefficient or region that outputs show.
    pub of: String,
    pub scale: Scale,
}

/// The pictures of all outputs of a run.
#[derive(Debug)]
pub struct Gallery {
    pub(super) folder: OwnFolder,
    how: Pictures,
    albums: BTreeMap<String, Album>,
}

/// The pictures of one output.
#[derive(Debug, Default)]
struct Album {
    outlines: Outlines,
    /// Of the frames that were looked at.
    spread: Option<Spread>,
    /// With which range each frame was drawn, by its step.
    drawn: BTreeMap<u64, Measure>,
}

/// A frame as it lies in the folder.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    pub step: u64,
    /// Its files without their endings.
    pub stem: &'a str,
}

impl Gallery {
    pub fn new(folder: &Path, how: Pictures) -> Self {
        Self {
            folder: OwnFolder::new(folder),
            how,
            albums: BTreeMap::new(),
        }
    }

    /// Finds the outlines of media.
    pub fn outline(&mut self, scheme: &Scheme, problem: &Problem, files: &dyn Files) {
        for output in problem.frames() {
            if let Some(shown) = Shown::of_output(scheme, output) {
                let outlines = Outlines::of(scheme, &problem.media, files, &shown);
                self.album(&output.name).outlines = outlines;
            }
        }
    }

    fn album(&mut self, output: &str) -> &mut Album {
        self.albums.entry(output.to_owned()).or_default()
    }

    /// The range that was asked for under one of two names.
    fn range(&self, names: [&str; 2]) -> Option<Scale> {
        let mut ranges = self.how.ranges.iter().rev();
        let range = ranges.find(|range| names.contains(&range.of.as_str()))?;
        Some(range.scale)
    }

    /// The range that was asked for of an output's frames.
    fn given(&self, output: &str, shown: &Shown) -> Option<Measure> {
        let scale = self.range([output, &shown.name])?;
        Some(match shown.axes.len() {
            1 => Measure::Line([scale.low, scale.high]),
            _ => Measure::Plane(scale),
        })
    }

    /// Draws a frame that was written just now; the name of the picture, if it has one.
    pub fn show(
        &mut self,
        scheme: &Scheme,
        output: &Output,
        frame: Frame<'_>,
        values: &[f64],
    ) -> Result<Option<String>, FileError> {
        let Some(shown) = Shown::of_output(scheme, output) else {
            return Ok(None);
        };
        let shown = shown.pointing(self.how.down);
        let given = self.given(&output.name, &shown);
        let name = format!("{}.png", frame.stem);
        let path = self.folder.place(&name)?;
        let album = self.album(&output.name);
        album.look_at(values);
        let measure = given.unwrap_or_else(|| album.measure(&shown));
        let when = Shown::when(scheme, output, frame.step);
        let subtitle = shown.subtitle(scheme, Some(when), &album.outlines);
        let picture = shown.draw(scheme, values, measure, subtitle, &album.outlines, 0);
        picture.write(&path)?;
        album.drawn.insert(frame.step, measure);
        Ok(Some(name))
    }

    /// Draws a field that does not change; gives the name of the picture, if it has one.
    pub fn show_static(
        &self,
        scheme: &Scheme,
        output: &StaticOutput,
        stem: &str,
        values: &[f64],
    ) -> Result<Option<String>, FileError> {
        let Some(shown) = Shown::of_static(scheme, output) else {
            return Ok(None);
        };
        let shown = shown.pointing(self.how.down);
        let measure = self.given(&output.name, &shown).unwrap_or_else(|| {
            // Small parts of a medium matter as much as large ones.
            let spread = Spread::of(values.iter().copied());
            match (shown.axes.len(), spread) {
                (1, spread) => Measure::Line(spread.map_or([0.0, 1.0], Spread::whole)),
                (_, Some(spread)) => Measure::Plane(spread.whole_scale()),
                (_, None) => Measure::Plane(Scale::UNIT),
            }
        });
        let none = Outlines::default();
        let subtitle = shown.subtitle(scheme, None, &none);
        let name = format!("{stem}.png");
        let picture = shown.draw(scheme, values, measure, subtitle, &none, 0);
        picture.write(&self.folder.place(&name)?)?;
        Ok(Some(name))
    }

    /// Draws the frames of an output again that have another range than all together; then the frames of a line above
    /// each other, and the animation. `frames` are all frames in the folder, `base` is the name of files of the whole
    /// series. Gives the names of all pictures.
    pub fn finish(
        &mut self,
        scheme: &Scheme,
        output: &Output,
        frames: &[Frame<'_>],
        base: &str,
    ) -> Result<Vec<String>, FileError> {
        let Some(shown) = Shown::of_output(scheme, output) else {
            return Ok(Vec::new());
        };
        let shown = shown.pointing(self.how.down);
        let given = self.given(&output.name, &shown);
        let (folder, movies) = (self.folder.clone(), self.how.movies);
        let album = self.album(&output.name);
        let read = |frame: &Frame<'_>| read(&folder.join(format!("{}.npy", frame.stem)), &shown);
        for frame in frames {
            if !album.drawn.contains_key(&frame.step) {
                album.look_at(&read(frame)?);
            }
        }
        let measure = given.unwrap_or_else(|| album.measure(&shown));
        let subtitle = |frame: &Frame<'_>| {
            let when = Shown::when(scheme, output, frame.step);
            shown.subtitle(scheme, Some(when), &album.outlines)
        };
        let mut names = Vec::new();
        for frame in frames {
            let name = format!("{}.png", frame.stem);
            if album.drawn.get(&frame.step) != Some(&measure) {
                let values = read(frame)?;
                let text = subtitle(frame);
                let picture = shown.draw(scheme, &values, measure, text, &album.outlines, 0);
                picture.write(&folder.place(&name)?)?;
                album.drawn.insert(frame.step, measure);
            }
            names.push(name);
        }
        if let Some(rows) = TimeRows::of(frames, shown.count())
            && shown.axes.len() == 1
        {
            let mut values: Vec<f64> = Vec::new();
            let mut last = None;
            for number in &rows.frames {
                match last == Some(number) {
                    true => values.extend_from_within(values.len() - shown.count()..),
                    false => values.extend(read(&frames[*number])?),
                }
                last = Some(number);
            }
            let scale = match measure {
                Measure::Line([low, high]) if given.is_some() => Scale::between(low, high),
                _ => album.spread.map(Spread::inner_scale),
            };
            let time = |step: u64| Shown::when(scheme, output, step).time;
            let start = time(rows.first);
            let distance = time(rows.first + rows.distance) - start;
            let along = Rows {
                over: "time",
                start,
                spacing: distance * rows.stride as f64,
            };
            let scale = scale.unwrap_or(Scale::UNIT);
            let diagram = shown.diagram(scheme, &values, scale, along, &album.outlines);
            if let Some(diagram) = diagram {
                let name = format!("{base}.png");
                diagram.write(&folder.place(&name)?)?;
                names.push(name);
            }
        }
        if movies && frames.len() > 1 {
            let widths = frames.iter().map(|frame| text_width(&subtitle(frame), 9.5));
            let room = widths.fold(0.0, f32::max).ceil() as usize;
            let name = format!("{base}.apng");
            movie::write(&folder.place(&name)?, frames.len(), |number| {
                folder.check()?;
                let frame = &frames[number];
                let (values, text) = (read(frame)?, subtitle(frame));
                Ok(shown.draw(scheme, &values, measure, text, &album.outlines, room))
            })?;
            names.push(name);
        }
        Ok(names)
    }
}

impl Album {
    fn look_at(&mut self, values: &[f64]) {
        let found = Spread::of(values.iter().copied());
        self.spread = match (self.spread, found) {
            (Some(known), Some(found)) => Some(known.with(found)),
            (known, found) => known.or(found),
        };
    }

    fn measure(&self, shown: &Shown) -> Measure {
        match (self.spread, shown.axes.len()) {
            (Some(spread), _) => shown.measure(spread),
            (None, 1) => Measure::Line([0.0, 1.0]),
            (None, _) => Measure::Plane(Scale::UNIT),
        }
    }
}

/// The frames of a line above each other, at equal distances in time.
#[derive(Debug, PartialEq)]
struct TimeRows {
    /// The step of the first row.
    first: u64,
    /// Steps between frames, of which every `stride`-th is a row.
    distance: u64,
    stride: u64,
    /// The number of each row's frame: the last one up to then, as runs may have had other steps.
    frames: Vec<usize>,
}

impl TimeRows {
    /// Of two frames or more, each of some values.
    fn of(frames: &[Frame<'_>], values: usize) -> Option<Self> {
        let ([first, _, ..], Some(last)) = (frames, frames.last()) else {
            return None;
        };
        let distances = frames.windows(2).map(|pair| pair[1].step - pair[0].step);
        let distance = distances.fold(0, gcd).max(1);
        let all = (last.step - first.step) / distance + 1;
        let stride = all.div_ceil(MOST_LINES as u64);
        let stride = stride.max(
            all.saturating_mul(values as u64)
                .div_ceil(MOST_IN_DIAGRAM as u64),
        );
        let steps = (0..all).step_by(stride as usize);
        let steps = steps.map(|row| first.step + row * distance);
        let up_to = |step| frames.partition_point(|frame| frame.step <= step) - 1;
        Some(Self {
            first: first.step,
            distance,
            stride,
            frames: steps.map(up_to).collect(),
        })
    }
}

/// The values of a frame.
fn read(path: &Path, shown: &Shown) -> Result<Vec<f64>, FileError> {
    let mut reader = NpyReader::open(path)?;
    let values: Vec<f64> = reader.read_all()?;
    match values.len() == shown.count() {
        true => Ok(values),
        false => {
            let (expected, found) = (vec![shown.count()], vec![values.len()]);
            let cause = Cause::Shape { expected, found };
            Err(FileError::new(path, Attempt::Read, cause))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(steps: &[u64], values: usize) -> Option<TimeRows> {
        let frame = |step: &u64| Frame {
            step: *step,
            stem: "",
        };
        let frames: Vec<Frame<'_>> = steps.iter().map(frame).collect();
        TimeRows::of(&frames, values)
    }

    #[test]
    fn rows_have_equal_distances_in_time() {
        assert_eq!(rows(&[4], 10), None);
        let even = rows(&[4, 8, 12, 16], 10).unwrap();
        assert_eq!((even.first, even.distance, even.stride), (4, 4, 1));
        assert_eq!(even.frames, [0, 1, 2, 3]);
        // As after a run with other steps; a row without a frame has that before it.
        let uneven = rows(&[0, 4, 8, 10, 12, 20], 10).unwrap();
        assert_eq!((uneven.first, uneven.distance), (0, 2));
        assert_eq!(uneven.frames, [0, 0, 1, 1, 2, 3, 4, 4, 4, 4, 5]);
        let many: Vec<u64> = (0..10_000).collect();
        let many = rows(&many, 10).unwrap();
        assert_eq!((many.stride, many.frames.len()), (3, 3334));
        assert_eq!(many.frames[..3], [0, 3, 6]);
        let wide = rows(&[1, 2, 3, 4], MOST_IN_DIAGRAM / 2).unwrap();
        assert_eq!(wide.frames, [0, 2]);
    }
}
