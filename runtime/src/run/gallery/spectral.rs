//! Pictures of spectra: the moduli of their numbers.

use super::{Gallery, MOST_IN_DIAGRAM};
use crate::output::FileError;
use crate::output::picture::{AxisText, LinePlot, Scale, Series, Spread, plain};
use crate::run::outlines::Outlines;
use crate::run::pictures::{Measure, Rows, Shown};
use torre_compiler::problem::Output;
use torre_compiler::scheme::Scheme;

/// Frequencies of a plane's spectrum that have pictures, at the most.
const MOST_SPECTRAL: usize = 16;

impl Gallery {
    /// Draws the moduli of a spectrum, which are asked for by the numbers of frequencies: of a plane at each of the
    /// first frequencies, of a line all above each other where they have equal distances, of a single value over
    /// frequency. `base`: its files without their endings. Gives the names of the pictures.
    pub fn show_spectrum(
        &self,
        scheme: &Scheme,
        output: &Output,
        base: &str,
        mut moduli: impl FnMut(usize) -> Result<Vec<f64>, FileError>,
    ) -> Result<Vec<String>, FileError> {
        let (Some(shown), Some(spectrum)) = (Shown::of_spectrum(scheme, output), &output.spectrum)
        else {
            return Ok(Vec::new());
        };
        let shown = shown.pointing(self.how.down);
        let given = self.range([
            &format!("spectra/{}", output.name),
            &format!("spectra/{}", output.quantity(scheme)),
        ]);
        let none = Outlines::default();
        let place = shown.subtitle(scheme, None, &none);
        let frequencies = &spectrum.frequencies;
        let many = frequencies.len() > 1;
        let drawn = match (shown.axes.len(), frequency_rows(frequencies)) {
            (0, _) if many => {
                let mut points = Vec::new();
                for (number, frequency) in frequencies.iter().enumerate() {
                    points.extend(
                        moduli(number)?
                            .first()
                            .map(|modulus| (*frequency, *modulus)),
                    );
                }
                Some(curve(&shown, place.clone(), points, given).draw())
            }
            (0, _) => return Ok(Vec::new()),
            (1, Some(rows)) if frequencies.len() <= MOST_IN_DIAGRAM / shown.count().max(1) => {
                let mut values = Vec::new();
                for number in 0..frequencies.len() {
                    values.extend(moduli(number)?);
                }
                let spread = Spread::of(values.iter().copied());
                let scale = given.or(spread.map(Spread::whole_scale));
                let scale = scale.unwrap_or(Scale::UNIT);
                let Some(diagram) = shown.diagram(scheme, &values, scale, rows, &none) else {
                    return Ok(Vec::new());
                };
                Some(diagram)
            }
            _ => None,
        };
        if let Some(drawn) = drawn {
            let name = format!("{base}.png");
            drawn.write(&self.folder.place(&name)?)?;
            return Ok(vec![name]);
        }
        let mut names = Vec::new();
        for (number, frequency) in frequencies.iter().enumerate().take(MOST_SPECTRAL) {
            let moduli = moduli(number)?;
            let measure = measure(&shown, given, Spread::of(moduli.iter().copied()));
            let parts = [format!("frequency {}", plain(*frequency)), place.clone()];
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            let subtitle = parts.collect::<Vec<_>>().join(", ");
            let name = format!("{base}-{number:04}.png");
            let picture = shown.draw(scheme, &moduli, measure, subtitle, &none, 0);
            picture.write(&self.folder.place(&name)?)?;
            names.push(name);
        }
        Ok(names)
    }
}

/// The range of a picture at one frequency: the one that was asked for, or that of its values.
fn measure(shown: &Shown, given: Option<Scale>, spread: Option<Spread>) -> Measure {
    match (shown.axes.len(), given) {
        (1, Some(scale)) => Measure::Line([scale.low, scale.high]),
        (1, None) => Measure::Line(spread.map_or([0.0, 1.0], Spread::whole)),
        (_, Some(scale)) => Measure::Plane(scale),
        (_, None) => Measure::Plane(spread.map_or(Scale::UNIT, Spread::whole_scale)),
    }
}

/// The spectrum of a single value.
fn curve(
    shown: &Shown,
    place: String,
    mut points: Vec<(f64, f64)>,
    given: Option<Scale>,
) -> LinePlot {
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    LinePlot {
        title: format!("{} over frequency", shown.name),
        subtitle: place,
        across: AxisText::of("frequency"),
        up: AxisText::of(&shown.name),
        series: vec![Series {
            name: shown.name.clone(),
            points,
        }],
        ranges: [None, given.map(|scale| [scale.low, scale.high])],
        marks: Vec::new(),
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
