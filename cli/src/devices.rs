//! `--devices`: the GPUs that compute. All that depends on how many there may be is here.

use crate::codes;
use crate::failure::{Exit, Failure};
use torre_grammar::diag::Diagnostic;

/// More numbers than any machine has devices.
const MOST: usize = 64;

/// The numbers of devices, in the order in which they were given. One that is named more than once counts as several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(Vec<usize>);

impl Devices {
    /// Reads `0` or `0,1,2`.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut numbers = Vec::new();
        for word in text.split(',') {
            let number = word
                .trim()
                .parse()
                .map_err(|_| "expected numbers such as 0,1")?;
            numbers.push(number);
        }
        match numbers.len() {
            0..=MOST => Ok(Self(numbers)),
            _ => Err(format!("more than {MOST} devices")),
        }
    }

    pub fn numbers(&self) -> &[usize] {
        &self.0
    }

    /// The part of a device that each of them is.
    pub fn share(&self) -> f64 {
        let first = |(n, number): &(usize, &usize)| !self.0[..*n].contains(number);
        let different = self.0.iter().enumerate().filter(first).count();
        different as f64 / self.0.len().max(1) as f64
    }

    /// The device of a command that takes one.
    pub fn one(&self) -> Result<usize, Failure> {
        match self.0.as_slice() {
            [only] => Ok(*only),
            several => {
                let message = format!(
                    "one device is measured at a time, and `--devices` names {}",
                    several.len()
                );
                let first = several.first().copied().unwrap_or(0);
                Err(Failure::new(
                    Exit::Usage,
                    Diagnostic::error(codes::DEVICES, message)
                        .hint(format!("`--devices {first}` takes one of them")),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Devices;

    #[test]
    fn devices_are_numbers() {
        assert_eq!(Devices::read("2"), Ok(Devices(vec![2])));
        assert_eq!(Devices::read("1, 0"), Ok(Devices(vec![1, 0])));
        let twice = Devices(vec![0, 0]);
        assert_eq!(twice.share(), 0.5);
        assert_eq!(Devices::read("0,0"), Ok(twice));
        for wrong in ["", "a", "0,", "0,,1", "-1", "0-3", "99999999999999999999"] {
            assert!(Devices::read(wrong).is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..65).map(|n| n.to_string()).collect();
        assert!(Devices::read(&many.join(",")).is_err());
    }

    #[test]
    fn one_device_is_one() {
        let one = |text| Devices::read(text).expect("numbers").one();
        assert_eq!(one("3").expect("one"), 3);
        let refused = one("0,1").expect_err("two");
        assert_eq!(refused.diagnostics.0[0].code.0, "E0818");
    }
}
