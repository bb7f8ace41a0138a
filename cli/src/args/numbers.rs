//! Numbers on the command line.

use std::num::ParseIntError;
use std::str::FromStr;

/// A number of things of which there is one at least.
pub fn from_one<N>(text: &str) -> Result<N, String>
where
    N: FromStr<Err = ParseIntError> + PartialOrd + From<u8>,
{
    match text.parse::<N>() {
        Ok(n) if n >= N::from(1) => Ok(n),
        Ok(_) => Err("expected 1 or more".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A time, up to a day.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s <= 86_400.0 => Ok(s),
        _ => Err("expected seconds, above 0 and up to 86400".to_owned()),
    }
}
