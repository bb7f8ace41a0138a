//! The pictures of a run's outputs, with one range for all frames of an output.
//!
//! While frames come, each is drawn with the range of the frames up to it. When the run ends, the range is that of all
//! frames, and frames that were drawn with another range are read back from their arrays and drawn again. So pictures
//! can be looked at during a run, frames need no memory, and the pictures of a finished run depend on its values only.

use super::outlines::Outlines;
use super::pictures::{Measure, Rows, Shown};
use crate::output::npy::NpyReader;
use crate::output::picture::{Scale, Spread, movie, plain, text_width};
use crate::output::{Attempt, Cause, FileError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use torre_compiler::lattice::Axis;
use torre_compiler::problem::{Output, Problem, StaticOutput};
use torre_compiler::scheme::Scheme;
use torre_compiler::statics::Files;

/// Frames of a line that are drawn above each other, at the most: more are finer than pixels.
const MOST_LINES: usize = 4096;

/// Values of the frames of a line that are drawn above each other, at the most; of more, frames are left out.
pub(super) const MOST_IN_DIAGRAM: usize = 1 << 21;

/// Frequencies of a plane's spectrum that have pictures, at the most.
const MOST_SPECTRAL: usize = 16;

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
    folder: PathBuf,
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
            folder: folder.to_path_buf(),
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

    /// The range that was asked for.
    fn given(&self, output: &str, shown: &Shown) -> Option<Measure> {
        let mut ranges = self.how.ranges.iter().rev();
        let range = ranges.find(|range| range.of == output || range.of == shown.name)?;
        Some(match shown.axes.len() {
            1 => Measure::Line([range.scale.low, range.scale.high]),
            _ => Measure::Plane(range.scale),
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
        let path = self.folder.join(format!("{}.png", frame.stem));
        let album = self.album(&output.name);
        album.look_at(values);
        let measure = given.unwrap_or_else(|| album.measure(&shown));
        let when = Shown::when(scheme, output, frame.step);
        let subtitle = shown.subtitle(scheme, Some(when), &album.outlines);
        let picture = shown.draw(scheme, values, measure, subtitle, &album.outlines, 0);
        picture.write(&path)?;
        album.drawn.insert(frame.step, measure);
        Ok(Some(format!("{}.png", frame.stem)))
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
        picture.write(&self.folder.join(&name))?;
        Ok(Some(name))
    }

    /// Draws the moduli of a spectrum: of a plane at each of the first frequencies, of a line all above each other
    /// where they have equal distances. `base`: its files without their endings. Gives the names of the pictures.
    pub fn show_spectrum(
        &self,
        scheme: &Scheme,
        output: &Output,
        base: &str,
        moduli: impl Fn(usize) -> Vec<f64>,
    ) -> Result<Vec<String>, FileError> {
        let (Some(shown), Some(spectrum)) = (Shown::of_output(scheme, output), &output.spectrum)
        else {
            return Ok(Vec::new());
        };
        let shown = Shown {
            name: format!("|{}|", shown.name),
            ..shown.pointing(self.how.down)
        };
        let none = Outlines::default();
        let frequencies = &spectrum.frequencies;
        let most = MOST_IN_DIAGRAM / shown.count().max(1);
        if let (1, Some(rows)) = (shown.axes.len(), frequency_rows(frequencies))
            && frequencies.len() <= most
        {
            let values: Vec<f64> = (0..frequencies.len()).flat_map(moduli).collect();
            let scale = Spread::of(values.iter().copied()).map_or(Scale::UNIT, Spread::whole_scale);
            let Some(diagram) = shown.diagram(scheme, &values, scale, rows, &none) else {
                return Ok(Vec::new());
            };
            let name = format!("{base}.png");
            diagram.write(&self.folder.join(&name))?;
            return Ok(vec![name]);
        }
        let place = shown.subtitle(scheme, None, &none);
        let mut names = Vec::new();
        for (number, frequency) in frequencies.iter().enumerate().take(MOST_SPECTRAL) {
            let moduli = moduli(number);
            let spread = Spread::of(moduli.iter().copied());
            let measure = match (shown.axes.len(), spread) {
                (1, spread) => Measure::Line(spread.map_or([0.0, 1.0], Spread::whole)),
                (_, spread) => Measure::Plane(spread.map_or(Scale::UNIT, Spread::whole_scale)),
            };
            let parts = [format!("frequency {}", plain(*frequency)), place.clone()];
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            let subtitle = parts.collect::<Vec<_>>().join(", ");
            let name = format!("{base}-{number:04}.png");
            let picture = shown.draw(scheme, &moduli, measure, subtitle, &none, 0);
            picture.write(&self.folder.join(&name))?;
            names.push(name);
        }
        Ok(names)
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
                picture.write(&folder.join(&name))?;
                album.drawn.insert(frame.step, measure);
            }
            names.push(name);
        }
        if let [first, second, ..] = frames
            && shown.axes.len() == 1
        {
            let values = frames.len().saturating_mul(shown.count());
            let stride = frames.len().div_ceil(MOST_LINES);
            let stride = stride.max(values.div_ceil(MOST_IN_DIAGRAM));
            let mut values = Vec::new();
            for frame in frames.iter().step_by(stride) {
                values.extend(read(frame)?);
            }
            let scale = match measure {
                Measure::Line([low, high]) if given.is_some() => Scale::between(low, high),
                _ => album.spread.map(Spread::inner_scale),
            };
            let when = |frame: &Frame<'_>| Shown::when(scheme, output, frame.step);
            let start = when(first).time;
            let rows = Rows {
                over: "time",
                start,
                spacing: (when(second).time - start) * stride as f64,
            };
            let scale = scale.unwrap_or(Scale::UNIT);
            let diagram = shown.diagram(scheme, &values, scale, rows, &album.outlines);
            if let Some(diagram) = diagram {
                let name = format!("{base}.png");
                diagram.write(&folder.join(&name))?;
                names.push(name);
            }
        }
        if movies && frames.len() > 1 {
            let widths = frames.iter().map(|frame| text_width(&subtitle(frame), 9.5));
            let room = widths.fold(0.0, f32::max).ceil() as usize;
            let name = format!("{base}.apng");
            movie::write(&folder.join(&name), frames.len(), |number| {
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

/// Frequencies at equal distances, upward.
fn frequency_rows(frequencies: &[f64]) -> Option<Rows> {
    let [first, second, ..] = frequencies else {
        return None;
    };
    let spacing = second - first;
    let mut distances = frequencies.windows(2).map(|pair| pair[1] - pair[0]);
    let equal = distances.all(|distance| (distance - spacing).abs() <= 1e-6 * spacing);
    (spacing > 0.0 && equal).then_some(Rows {
        over: "frequency",
        start: *first,
        spacing,
    })
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
