//! What a calculation window is expected to do.

/// What is known of a device and of its link to the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Cell-steps per second of time blocks that are in the device's memory.
    pub cells: f64,
    /// Bytes per second from the host to the device, and at the same time back.
    pub link: f64,
    /// Bytes read and written per second by copies within the device's memory.
    pub copies: f64,
}

/// Share of the rate of whole time blocks that launches of groups reach, by simulation of their ends.
const GROUPS: f64 = 0.97;

/// A rate of a calculation window, and what bounds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowRate {
    /// Cell-steps per second that transfers allow: `K L / b` for passes of K steps, cells of b bytes and a link of L
    /// bytes per second each way.
    pub transfers: f64,
    /// Seconds of slides per second of computing: `W / (M - W) * (2 b / copies) / (K / cells)` for windows of W planes
    /// in a buffer of M.
    pub slides: f64,
    /// Cell-steps per second.
    pub cells: f64,
}

impl WindowRate {
    /// For passes of so many steps, cells of so many bytes with all that lies between rows, and a window of so many
    /// planes in a buffer.
    pub fn new(rates: Rates, steps: u64, bytes: f64, window: i64, places: i64) -> WindowRate {
        let steps = steps as f64;
        let transfers = steps * rates.link / bytes;
        let moved = window as f64 / (places - window).max(1) as f64;
        let slides = moved * (2.0 * bytes / rates.copies) * rates.cells / steps;
        WindowRate {
            transfers,
            slides,
            cells: GROUPS * (rates.cells / (1.0 + slides)).min(transfers),
        }
    }

    /// The least number of steps of a pass for which transfers take no longer than computing.
    pub fn hidden(rates: Rates, bytes: f64) -> u64 {
        (rates.cells * bytes / rates.link).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FDTD(4,2) in f32 on one H200, by the figures of the book.
    #[test]
    fn transfers_hide_behind_enough_steps() {
        let rates = Rates {
            cells: 158e9,
            link: 50e9,
            copies: 4.2e12,
        };
        assert_eq!(WindowRate::hidden(rates, 27.0), 86);
        let long = WindowRate::new(rates, 96, 27.0, 436, 4000);
        assert!((long.cells / 1e9 - 153.0).abs() < 1.0, "{long:?}");
        let short = WindowRate::new(rates, 16, 27.0, 436, 4000);
        assert!((short.cells / 1e9 - 28.7).abs() < 0.2, "{short:?}");
        assert!(short.slides > long.slides);
    }
}
