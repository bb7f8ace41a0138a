//! Which values have which colours.

use super::colour::{ColourMap, NAN, Rgb, TABLE};

/// Of the values of a frame, this part is left out of the range of colours, half of it at either end.
const OUTERMOST: f64 = 1e-3;

/// Values of one sign are ignored where they are less than this part of the values of the other sign.
const SLIGHT: f64 = 0.01;

/// Spans of ranges have to be numbers too.
const MOST: f64 = f64::MAX / 4.0;

/// A range of values with a map of colours; both ends are finite and differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub map: ColourMap,
    pub low: f64,
    pub high: f64,
}

/// Where the values of frames lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest and the largest finite value.
    whole: [f64; 2],
    /// The same without the outermost values of each frame.
    inner: [f64; 2],
}

impl Spread {
    /// Of one frame; none where no value is finite.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let out = (values.len() as f64 * OUTERMOST / 2.0) as usize;
        let last = values.len().checked_sub(1)?;
        let mut at = |index: usize| *values.select_nth_unstable_by(index, f64::total_cmp).1;
        Some(Self {
            whole: [at(0), at(last)],
            inner: [at(out), at(last - out)],
        })
    }

    /// Of this frame and others.
    pub fn with(self, other: Self) -> Self {
        let hull = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        Self {
            whole: hull(self.whole, other.whole),
            inner: hull(self.inner, other.inner),
        }
    }

    /// The smallest and the largest value.
    pub fn whole(self) -> [f64; 2] {
        self.whole
    }

    /// Colours for values without the outermost ones, unless all others are equal.
    pub fn inner_scale(self) -> Scale {
        match self.inner {
            [low, high] if low == high => self.whole_scale(),
            [low, high] => Scale::of(low, high),
        }
    }

    /// Colours for all values.
    pub fn whole_scale(self) -> Scale {
        Scale::of(self.whole[0], self.whole[1])
    }
}

impl Scale {
    /// Where no value is known.
    pub const UNIT: Self = Self {
        map: ColourMap::Diverging,
        low: -1.0,
        high: 1.0,
    };

    /// Blue, white, red and as far to either side where values have both signs, otherwise from dark to light.
    fn of(low: f64, high: f64) -> Self {
        let (low, high) = (low.clamp(-MOST, MOST), high.clamp(-MOST, MOST));
        let size = low.abs().max(high.abs());
        let both = low < 0.0 && high > 0.0 && low.abs().min(high) >= SLIGHT * size;
        if both || size == 0.0 {
            let size = if size > 0.0 { size } else { 1.0 };
            return Self {
                map: ColourMap::Diverging,
                low: -size,
                high: size,
            };
        }
        // Narrower spans vanish in the precision of the values.
        let (low, high) = match high - low > 1e-12 * size {
            true => (low, high),
            false if size > 1e-290 => (low - size / 2.0, low + size / 2.0),
            false => (low - 1.0, low + 1.0),
        };
        Self {
            map: ColourMap::Sequential,
            low,
            high,
        }
    }

    /// A range as it was asked for: blue, white and red where 0 lies inside. None unless it is finite and goes upward.
    pub fn between(low: f64, high: f64) -> Option<Self> {
        let fits = low < high && low >= -MOST && high <= MOST && (high - low).is_normal();
        fits.then_some(Self {
            map: match low < 0.0 && high > 0.0 {
                true => ColourMap::Diverging,
                false => ColourMap::Sequential,
            },
            low,
            high,
        })
    }

    /// Colours of values.
    pub fn colours(self) -> impl Fn(f64) -> Rgb {
        let table = self.map.table();
        let size = self.low.abs().max(self.high.abs());
        move |value| {
            if value.is_nan() {
                return NAN;
            }
            let value = value.clamp(self.low, self.high);
            let part = match self.map {
                ColourMap::Diverging => 0.5 + 0.5 * (value / size),
                ColourMap::Sequential | ColourMap::Pale => {
                    (value - self.low) / (self.high - self.low)
                }
            };
            table[(part.clamp(0.0, 1.0) * (TABLE - 1) as f64).round() as usize]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[f64]) -> (ColourMap, f64, f64) {
        let spread = Spread::of(values.iter().copied()).unwrap();
        let Scale { map, low, high } = spread.whole_scale();
        (map, low, high)
    }

    #[test]
    fn both_signs_have_the_same_range() {
        use ColourMap::{Diverging, Sequential};
        assert_eq!(
            scale(&[-1.0, 3.0, f64::NAN, f64::INFINITY]),
            (Diverging, -3.0, 3.0)
        );
        assert_eq!(scale(&[-0.02, 3.0]), (Sequential, -0.02, 3.0));
        assert_eq!(scale(&[1.0, 3.0]), (Sequential, 1.0, 3.0));
        assert_eq!(scale(&[-3.0, -1.0]), (Sequential, -3.0, -1.0));
        assert_eq!(scale(&[0.0]), (Diverging, -1.0, 1.0));
        assert_eq!(scale(&[4.0, 4.0]), (Sequential, 2.0, 6.0));
        assert_eq!(scale(&[5e-324, 5e-324]), (Sequential, -1.0, 1.0));
        let (_, low, high) = scale(&[-f64::MAX, f64::MAX]);
        assert!((high - low).is_finite());
        assert_eq!(Spread::of([f64::NAN, f64::NEG_INFINITY]), None);
    }

    #[test]
    fn the_outermost_thousandth_is_left_out() {
        // 10 of 10000 values, 5 at either end.
        let values = |outer: f64| {
            let inner = (0..9990).map(|i| f64::from(i % 101) / 50.0 - 1.0);
            inner.chain([outer; 5]).chain([-outer; 5])
        };
        let spread = Spread::of(values(1000.0)).unwrap();
        let Scale { low, high, .. } = spread.inner_scale();
        assert_eq!((low, high), (-1.0, 1.0));
        assert_eq!(spread.whole(), [-1000.0, 1000.0]);
        // One more is too many.
        let more = Spread::of(values(1000.0).chain([1000.0])).unwrap();
        assert_eq!(more.inner_scale().high, 1000.0);
        // Frames share the widest range.
        let other = Spread::of(values(9.0).map(|v| 3.0 * v)).unwrap();
        assert_eq!(spread.with(other).inner_scale().high, 3.0);
        // A value alone is seen where all others are equal.
        let alone = (0..10_000).map(|i| f64::from(u8::from(i == 7)));
        assert_eq!(Spread::of(alone).unwrap().inner_scale().high, 1.0);
    }

    #[test]
    fn ranges_can_be_asked_for() {
        let odd = Scale::between(-1.0, 3.0).unwrap();
        let colour = odd.colours();
        assert_eq!(colour(0.0), ColourMap::Diverging.colour(0.0));
        assert_eq!(colour(9.0), ColourMap::Diverging.colour(1.0));
        // Both signs in one measure: below -1 a third of the way to blue.
        assert_eq!(colour(-1.0), colour(-9.0));
        assert_ne!(colour(-9.0), ColourMap::Diverging.colour(-1.0));
        assert_eq!(colour(f64::NAN), NAN);
        let positive = Scale::between(2.0, 4.0).unwrap().colours();
        assert_eq!(positive(2.0), ColourMap::Sequential.colour(0.0));
        assert_eq!(positive(4.0), ColourMap::Sequential.colour(1.0));
        for (low, high) in [
            (1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (0.0, f64::INFINITY),
            (-f64::MAX, f64::MAX),
        ] {
            assert_eq!(Scale::between(low, high), None, "{low} {high}");
        }
    }
}
