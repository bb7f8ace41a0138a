//! Colours, and colour maps that are even to the eye: their lightness in CIELAB changes linearly with the value.
//!
//! The maps are formulas of our own in the cylinder coordinates of CIELAB (lightness, chroma, hue; CIE 15:2004,
//! white point D65), converted to sRGB by IEC 61966-2-1. The colours of lines come from M. Okabe and K. Ito,
//! "Color Universal Design" (2008), which people with colour-blindness can tell apart.

/// Red, green and blue in sRGB.
pub type Rgb = [u8; 3];

/// The background.
pub const WHITE: Rgb = [255, 255, 255];
/// Text and frames.
pub const INK: Rgb = [38, 40, 46];
/// Text of less weight.
pub const SOFT: Rgb = [104, 108, 118];
/// Lines of the grid of a plot.
pub const GRID: Rgb = [230, 231, 235];
/// Values that are not numbers: green is in neither map.
pub const NAN: Rgb = [0, 190, 90];
/// Colours of lines, in their order of use.
pub const LINES: [Rgb; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [90, 90, 90],
];

/// Colours in the table of a map: odd, so that one of them is that of 0.
pub const TABLE: usize = 257;

/// A map from numbers to colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourMap {
    /// Blue, white, red for values from -1 to 1; both ends have the same lightness.
    Diverging,
    /// From dark blue over red to light yellow for values from 0 to 1.
    Sequential,
    /// From near white to slate for values from 0 to 1: a background on which marks can be seen.
    Pale,
}

impl ColourMap {
    /// The smallest value of the map; the largest is 1.
    pub fn low(self) -> f64 {
        match self {
            Self::Diverging => -1.0,
            Self::Sequential | Self::Pale => 0.0,
        }
    }

    /// The colour of a value; beyond the ends theirs.
    pub fn colour(self, value: f64) -> Rgb {
        if value.is_nan() {
            return NAN;
        }
        let (lightness, chroma, hue) = self.coordinates(value.clamp(self.low(), 1.0));
        encode(linear(lightness, chroma, hue))
    }

    /// Colours from the lowest to the highest value.
    pub fn table(self) -> [Rgb; TABLE] {
        let step = (1.0 - self.low()) / (TABLE - 1) as f64;
        std::array::from_fn(|i| self.colour(self.low() + i as f64 * step))
    }

    /// Lightness, chroma and hue (degrees).
    fn coordinates(self, value: f64) -> (f64, f64, f64) {
        match self {
            Self::Diverging => {
                let s = value.abs();
                // Chroma grows faster than the lightness falls, so that small values already have a colour.
                let rise = s * (1.4 - 0.4 * s);
                let (chroma, hue) = if value < 0.0 {
                    (59.0 * rise, 250.0 + 40.0 * s)
                } else {
                    (60.0 * rise, 45.0 - 13.0 * s)
                };
                (96.0 - 64.0 * s, chroma, hue)
            }
            Self::Sequential => {
                let bulge = (std::f64::consts::PI * value.powf(0.9)).sin();
                let chroma = 26.0 + 10.0 * value + 32.0 * bulge;
                (8.0 + 87.0 * value, chroma, 290.0 + 170.0 * value)
            }
            Self::Pale => (97.0 - 40.0 * value, 2.0 + 16.0 * value, 260.0),
        }
    }
}

/// CIELAB to linear sRGB, which may lie outside 0..1 for colours that screens do not have.
fn linear(lightness: f64, chroma: f64, hue: f64) -> [f64; 3] {
    let (sin, cos) = hue.to_radians().sin_cos();
    let fy = (lightness + 16.0) / 116.0;
    let inverse = |t: f64| {
        let d = 6.0 / 29.0;
        if t > d {
            t.powi(3)
        } else {
            3.0 * d * d * (t - 4.0 / 29.0)
        }
    };
    let x = 0.95047 * inverse(fy + chroma * cos / 500.0);
    let y = inverse(fy);
    let z = 1.08883 * inverse(fy - chroma * sin / 200.0);
    [
        3.2404542 * x - 1.5371385 * y - 0.4985314 * z,
        -0.9692660 * x + 1.8760108 * y + 0.0415560 * z,
        0.0556434 * x - 0.2040259 * y + 1.0572252 * z,
    ]
}

fn encode(linear: [f64; 3]) -> Rgb {
    linear.map(|c| {
        let c = c.clamp(0.0, 1.0);
        let c = if c <= 0.0031308 {
            12.92 * c
        } else {
            1.055 * c.powf(1.0 / 2.4) - 0.055
        };
        (255.0 * c).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lightness of a colour as it is shown.
    fn lightness(colour: Rgb) -> f64 {
        let [r, g, b] = colour.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        });
        let y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b;
        let f = if y > (6.0f64 / 29.0).powi(3) {
            y.cbrt()
        } else {
            y * (29.0f64 / 6.0).powi(2) / 3.0 + 4.0 / 29.0
        };
        116.0 * f - 16.0
    }

    #[test]
    fn screens_can_show_every_colour() {
        for map in [ColourMap::Diverging, ColourMap::Sequential, ColourMap::Pale] {
            for i in 0..=1000 {
                let value = map.low() + i as f64 / 1000.0 * (1.0 - map.low());
                let (l, c, h) = map.coordinates(value);
                for part in linear(l, c, h) {
                    assert!((-0.004..=1.004).contains(&part), "{map:?} {value} {part}");
                }
            }
        }
    }

    #[test]
    fn lightness_is_linear_in_the_value() {
        for (i, &colour) in ColourMap::Sequential.table().iter().enumerate() {
            let expected = 8.0 + 87.0 * i as f64 / 256.0;
            assert!((lightness(colour) - expected).abs() < 0.7, "{i}");
        }
        let table = ColourMap::Diverging.table();
        assert_eq!(table[128], ColourMap::Diverging.colour(0.0));
        for i in 0..128 {
            let expected = 96.0 - 64.0 * (1.0 - i as f64 / 128.0);
            assert!((lightness(table[i]) - expected).abs() < 0.7, "{i}");
            assert!((lightness(table[256 - i]) - expected).abs() < 0.7, "{i}");
        }
    }

    #[test]
    fn special_values_have_a_colour() {
        for map in [ColourMap::Diverging, ColourMap::Sequential] {
            assert_eq!(map.colour(f64::NAN), NAN);
            assert_eq!(map.colour(f64::INFINITY), map.colour(1.0));
            assert_eq!(map.colour(f64::NEG_INFINITY), map.colour(map.low()));
            let far = |a: Rgb| {
                (0..3)
                    .map(|i| (i32::from(a[i]) - i32::from(NAN[i])).abs())
                    .sum::<i32>()
            };
            assert!(map.table().into_iter().map(far).min() > Some(100));
        }
        let [r, g, b] = ColourMap::Diverging.colour(0.0);
        assert!(r.abs_diff(g) < 2 && g.abs_diff(b) < 2 && r > 240);
    }
}
