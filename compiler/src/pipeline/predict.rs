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

    /// The same of several devices that take so many passes over so many planes in turns, if a pass begins so many
    /// planes behind the one before.
    pub fn in_turns(self, devices: usize, passes: u64, planes: i64, behind: i64) -> WindowRate {
        let (count, last) = (devices.max(1) as u64, passes.max(1) - 1);
        let [planes, behind] = [planes.max(1), behind.max(1)].map(|n| n as f64);
        // A device begins its next pass when it has done the one before, and nobody overtakes another one.
        let begin = match count as f64 * behind <= planes {
            true => (last / count) as f64 * planes + (last % count) as f64 * behind,
            false => last as f64 * behind,
        };
        WindowRate {
            cells: self.cells * (last + 1) as f64 * planes / (begin + planes),
            ..self
        }
    }

    /// The least number of steps of a pass for which transfers take no longer than computing.
    pub fn hidden(rates: Rates, bytes: f64) -> u64 {
        (rates.cells * bytes / rates.link).ceil() as u64
    }
}

/// The work of overlapped slabs in a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabWork {
    /// Steps of a pass, and bytes of a cell with all that lies between rows.
    pub steps: u64,
    pub bytes: f64,
    /// Cell-steps that are computed, and planes that are loaded, per cell-step and plane of the domain: at least 1.
    pub computed: f64,
    pub loaded: f64,
    /// Slabs of all passes.
    pub slabs: u64,
}

/// A rate of overlapped slabs, and what bounds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabsRate {
    /// Cell-steps per second that transfers allow: `K L / (b l)` for passes of K steps, cells of b bytes, a link of L
    /// bytes per second each way, and l planes loaded per plane of the domain.
    pub transfers: f64,
    /// Those that computing allows: `R / r`, r being what is computed per cell-step of the domain.
    pub computing: f64,
    /// Cell-steps per second: the less of both, as loads, launches and stores of neighbouring slabs overlap, but for the
    /// loads of the first slab of a run and the stores of the last one.
    pub cells: f64,
}

impl SlabsRate {
    pub fn new(rates: Rates, work: SlabWork) -> SlabsRate {
        let transfers = work.steps as f64 * rates.link / (work.bytes * work.loaded.max(1.0));
        let computing = GROUPS * rates.cells / work.computed.max(1.0);
        let least = transfers.min(computing);
        // In units of the time of a slab.
        let ends = least / transfers * (1.0 + 1.0 / work.loaded.max(1.0));
        let slabs = work.slabs.max(1) as f64;
        SlabsRate {
            transfers,
            computing,
            cells: least * slabs / (slabs + ends),
        }
    }
}

/// Seconds from the end of a launch to the beginning of a copy to another device, and from its end to the next launch.
const SIGNALS: f64 = 10e-6;

/// The work of each of several devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripeWork {
    pub devices: usize,
    /// Time blocks in flight.
    pub in_flight: usize,
    /// Cell-steps of a launch, and of all launches of a device in a time block, on the device with most of them.
    pub launch: f64,
    pub block: f64,
    /// Cell-steps of a time block on all devices.
    pub all: f64,
    /// Bytes that a launch sends to each neighbour, and bytes per second from one device to another.
    pub message: f64,
    pub link: f64,
}

/// A rate of several devices, and what bounds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripesRate {
    /// Seconds of a launch, and of what it sends to a neighbour.
    pub launch: f64,
    pub message: f64,
    /// The share of the time in which a device has something to do: neighbours run in turns in a time block, so that
    /// `k T / (2 (T + m))` of launches of T seconds and messages of m overlap in k time blocks in flight; at most 1.
    pub utilisation: f64,
    /// Cell-steps per second of all devices.
    pub cells: f64,
}

impl StripesRate {
    /// For devices that reach so many cell-steps per second each.
    pub fn new(cells: f64, work: StripeWork) -> StripesRate {
        let launch = work.launch / cells;
        let message = work.message / work.link + SIGNALS;
        let turns = work.in_flight as f64 * launch / (2.0 * (launch + message));
        let utilisation = turns.min(1.0);
        StripesRate {
            launch,
            message,
            utilisation,
            cells: GROUPS * cells * utilisation * work.all / work.block,
        }
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

    /// FDTD(4,2) in f32 on one H200 in 12 GB with planes of 1536 x 256: low passes wait for copies, and high ones copy
    /// and compute what slabs have in common, so that time against height is U-shaped.
    #[test]
    fn slabs_have_a_best_height() {
        let rates = Rates {
            cells: 158e9,
            link: 40e9,
            copies: 4.2e12,
        };
        let rate = |steps: u64| {
            let halo = 3.0 * steps as f64;
            let base = 12e9 / (2.0 * 27.0 * 1536.0 * 256.0) - 2.0 * halo;
            let work = SlabWork {
                steps,
                bytes: 27.0,
                computed: 1.0 + halo / base,
                loaded: 1.0 + 2.0 * halo / base,
                slabs: 1000,
            };
            SlabsRate::new(rates, work).cells * 1e-9
        };
        let rates: Vec<f64> = [8, 16, 32, 48, 64, 80].map(rate).to_vec();
        let best = rates.iter().copied().fold(0.0, f64::max);
        assert!(best > 30.0 && best < 50.0, "{rates:?}");
        assert!(rates[0] < 0.4 * best && rates[5] < 0.7 * best, "{rates:?}");
    }

    /// Passes that do not divide among devices leave some of them without work, and so do short domains.
    #[test]
    fn devices_in_turns_are_behind_each_other() {
        let one = WindowRate {
            transfers: 2.0,
            slides: 0.0,
            cells: 1.0,
        };
        let of = |devices, passes, planes| one.in_turns(devices, passes, planes, 100).cells;
        assert_eq!(of(1, 7, 1000), 1.0);
        assert_eq!(of(2, 4, 1000), 4000.0 / 2100.0);
        assert_eq!(of(2, 3, 1000), 1.5);
        assert_eq!(of(2, 1, 1000), 1.0);
        // Eleven devices are too many for such a domain: a pass begins when the one before has gone on by 100 planes.
        assert_eq!(of(11, 101, 1000), 101000.0 / 11000.0);
    }

    /// FDTD(4,2) in f32 at 1536 x 1536 x 256 on two H200, by the figures of the book.
    #[test]
    fn devices_wait_for_neighbours_where_few_time_blocks_are_in_flight() {
        let plane = 768.0 * 256.0 * 16.0;
        let work = StripeWork {
            devices: 2,
            in_flight: 4,
            launch: 96.0 * plane,
            block: 1536.0 * plane,
            all: 2.0 * 1536.0 * plane,
            message: 59e6,
            link: 390e9,
        };
        let rate = StripesRate::new(158e9, work);
        assert!((rate.launch - 1.9e-3).abs() < 0.1e-3, "{rate:?}");
        assert_eq!(rate.utilisation, 1.0);
        assert!((rate.cells / 1e9 - 306.5).abs() < 1.0, "{rate:?}");
        let few = StripesRate::new(
            158e9,
            StripeWork {
                in_flight: 1,
                ..work
            },
        );
        assert!((0.4..0.5).contains(&few.utilisation), "{few:?}");
    }
}
