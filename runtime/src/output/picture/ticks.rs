//! Round numbers along an axis and their labels.

use super::AxisText;

/// Where marks lie along an axis, and their texts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    /// Values of the axis.
    pub values: Vec<f64>,
    /// One per value.
    pub labels: Vec<String>,
    /// The labels are in units of ten to this power.
    pub exponent: i32,
}

/// At most about `count` round values (1, 2 or 5 times a power of ten apart) between `low` and `high`.
pub(super) fn ticks(low: f64, high: f64, count: usize) -> Ticks {
    let mut this = Ticks {
        values: Vec::new(),
        labels: Vec::new(),
        exponent: 0,
    };
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return this;
    }
    let rough = span / count.max(1) as f64;
    let power = 10f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|&step| step >= rough * (1.0 - 1e-9))
        .unwrap_or(rough);
    if !(step > 0.0 && step.is_finite()) {
        return this;
    }
    let size = low.abs().max(high.abs());
    let exponent = size.log10().floor() as i32;
    if !(-3..6).contains(&exponent) {
        // Powers that units have names for.
        this.exponent = exponent.div_euclid(3) * 3;
    }
    // Two factors, since one power of ten may not be a number while the other is.
    let unit = |value: f64| {
        let half = this.exponent / 2;
        value / 10f64.powi(half) / 10f64.powi(this.exponent - half)
    };
    let decimals = (-(unit(step) * 1.0001).log10().floor()).clamp(0.0, 12.0) as usize;
    let margin = span * 1e-9;
    let first = ((low - margin) / step).ceil();
    for i in 0..=2 * count.max(1) {
        let value = (first + i as f64) * step;
        if !value.is_finite() || value > high + margin {
            break;
        }
        let value = if value.abs() < step / 2.0 { 0.0 } else { value };
        let label = format!("{:.decimals$}", unit(value));
        this.values.push(value);
        this.labels.push(label.replace('-', "\u{2212}"));
    }
    this
}

/// As many marks as fit, at most about `count`: labels keep their distance along `pixels`.
pub(super) fn fitting_ticks(
    low: f64,
    high: f64,
    count: usize,
    pixels: usize,
    width_of: impl Fn(&str) -> usize,
) -> Ticks {
    for count in (1..=count).rev() {
        let this = ticks(low, high, count);
        let widest = this.labels.iter().map(|label| width_of(label)).max();
        let needed = (widest.unwrap_or(0) + 14) as f64;
        let step = match this.values[..] {
            [a, b, ..] => (b - a) / (high - low) * pixels as f64,
            _ => return this,
        };
        if step >= needed {
            return this;
        }
    }
    let mut this = ticks(low, high, 1);
    // Not even two labels have room.
    this.values.truncate(1);
    this.labels.truncate(1);
    this
}

/// The whole number as raised digits.
fn raised(number: i32) -> String {
    const DIGITS: [char; 10] = [
        '\u{2070}', '\u{b9}', '\u{b2}', '\u{b3}', '\u{2074}', '\u{2075}', '\u{2076}', '\u{2077}',
        '\u{2078}', '\u{2079}',
    ];
    let raise = |c: char| match c.to_digit(10) {
        Some(digit) => DIGITS[digit as usize],
        None => '\u{207b}',
    };
    number.to_string().chars().map(raise).collect()
}

/// A number with up to five digits as one writes it by hand: `250`, `0.0125`, `3.2·10⁻⁹`.
pub fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.abs().to_string();
    }
    // Rounded first, since 9.99999 has another power of ten than 10.
    let text = format!("{value:.4e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let short = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    let text = match power {
        -3..6 => short(format!("{value:.*}", (4 - power).max(0) as usize)),
        _ => format!("{}\u{b7}10{}", short(digits.to_owned()), raised(power)),
    };
    text.replace('-', "\u{2212}")
}

/// The text of an axis with the power of ten of its labels: `x (10⁻⁹ m)`.
pub(super) fn axis_title(text: &AxisText, exponent: i32) -> String {
    let AxisText { name, units } = text;
    match (exponent, units.as_str()) {
        (0, "") => name.clone(),
        (0, units) => format!("{name} ({units})"),
        (n, "") => format!("{name} (10{})", raised(n)),
        (n, units) => format!("{name} (10{} {units})", raised(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round() {
        let t = ticks(0.0, 256.0, 6);
        assert_eq!(t.labels, ["0", "50", "100", "150", "200", "250"]);
        let t = ticks(-1.0, 1.0, 4);
        assert_eq!(
            t.labels,
            ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]
        );
        let t = ticks(-3.2e-9, 3.2e-9, 4);
        assert_eq!((t.labels[0].as_str(), t.exponent), ("\u{2212}2", -9));
        let t = ticks(0.0, 5.1e-6, 5);
        assert_eq!(
            (t.labels[0].as_str(), t.labels[2].as_str(), t.exponent),
            ("0", "4", -6)
        );
        let t = ticks(0.0, 123456.0, 5);
        assert_eq!((t.labels[1].as_str(), t.exponent), ("50000", 0));
        let t = ticks(0.0, 1234560.0, 5);
        assert_eq!((t.labels[1].as_str(), t.exponent), ("0.5", 6));
    }

    #[test]
    fn odd_ranges_do_no_harm() {
        for (low, high) in [
            (0.0, 0.0),
            (1.0, 0.0),
            (f64::NAN, 1.0),
            (0.0, f64::INFINITY),
            (-f64::MAX, f64::MAX),
            (0.0, f64::MAX),
            (0.0, 5e-324),
            (1e300, 1e300 + 1e285),
            (1.0, 1.0 + f64::EPSILON),
        ] {
            let t = ticks(low, high, 5);
            assert!(t.values.len() <= 11 && t.values.len() == t.labels.len());
            assert!(t.values.iter().all(|v| v.is_finite()), "{low} {high} {t:?}");
        }
    }

    #[test]
    fn labels_do_not_meet() {
        let wide = |_: &str| 40;
        assert_eq!(fitting_ticks(0.0, 10.0, 12, 600, wide).values.len(), 11);
        assert_eq!(
            fitting_ticks(0.0, 10.0, 12, 300, wide).labels,
            ["0", "2", "4", "6", "8", "10"]
        );
        assert_eq!(fitting_ticks(0.0, 10.0, 12, 60, wide).labels, ["0", "10"]);
        assert_eq!(fitting_ticks(0.0, 10.0, 12, 30, wide).labels, ["0"]);
        assert!(fitting_ticks(0.0, 0.0, 12, 30, wide).labels.is_empty());
    }

    #[test]
    fn numbers_are_written_plainly() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (250.0, "250"),
            (-0.0125, "\u{2212}0.0125"),
            (1.0 / 3.0, "0.33333"),
            (9.999996, "10"),
            (123456.7, "123457"),
            (3.2e-9, "3.2\u{b7}10\u{207b}\u{2079}"),
            (-1e12, "\u{2212}1\u{b7}10\u{b9}\u{b2}"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(plain(value), text);
        }
    }

    #[test]
    fn titles_name_the_power() {
        let text = |units: &str| AxisText {
            name: "x".into(),
            units: units.into(),
        };
        assert_eq!(axis_title(&text(""), 0), "x");
        assert_eq!(axis_title(&text("m"), -9), "x (10\u{207b}\u{2079} m)");
        assert_eq!(axis_title(&text(""), 6), "x (10\u{2076})");
    }
}
