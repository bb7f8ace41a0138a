//! Predictions of calculation windows.

/// The rates of a device and of its link to the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Cell-steps per second of time blocks that are in the device's memory.
    pub cells: f64,
    /// Bytes per second from the host to the device, and at the same time back.
    pub link: f64,
    /// Bytes read and written per second by copies within the device's memory.
    pub copies: f64,
}

impl Rates {
    /// Share by which towers were faster, and a link slower, than expected in runs of windows: up to 0.12 and 0.15.
    const DOUBT: f64 = 0.1;

    /// The rates with which transfers are hidden less well than is expected.
    pub fn doubted(self) -> Rates {
        Rates {
            cells: self.cells * (1.0 + Self::DOUBT),
            link: self.link * (1.0 - Self::DOUBT),
            ..self
        }
    }
}

/// The rate of the mean time of two rates.
pub fn mean_time(one: f64, other: f64) -> f64 {
    2.0 / (1.0 / one.max(f64::MIN_POSITIVE) + 1.0 / other.max(f64::MIN_POSITIVE))
}

/// Towers of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchTowers {
    pub count: f64,
    /// Towers that a device runs side by side.
    pub together: f64,
}

impl LaunchTowers {
    /// Times of a tower for which a device waits at the ends of a launch. Of the rate of whole time blocks 0.84 was
    /// measured with 688 towers in 12 steps on the 132 multiprocessors of an H100, 0.81 in 16 steps, 0.94 with 2052,
    /// 0.97 with 4104; 0.981 with 8192 on an H200, 0.988 with 16384.
    pub const ENDS: f64 = 1.05;

    /// The share of the rate of large launches that such launches reach. At the ends of a launch multiprocessors wait,
    /// for about the time of a tower in all: a tower begins when some towers before it are ahead.
    pub fn share(self) -> f64 {
        self.count / (self.count + Self::ENDS * self.together).max(f64::MIN_POSITIVE)
    }
}

/// The work of a calculation window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowWork {
    /// Steps of a pass, and bytes of a cell with all that lies between rows.
    pub steps: u64,
    pub bytes: f64,
    /// Planes of the window, and of its buffer if planes slide.
    pub window: i64,
    pub slides_in: Option<i64>,
    pub launch: LaunchTowers,
    /// Planes that go through a device in a run, in all passes.
    pub planes: f64,
}

/// A rate of a calculation window, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowRate {
    /// Cell-steps per second that transfers allow: `K L / b` for passes of K steps, cells of b bytes and a link of L
    /// bytes per second each way.
    pub transfers: f64,
    /// Cell-steps per second that computing allows, with the towers of a launch.
    pub computing: f64,
    /// Seconds of slides per second of computing: `W / (M - W) * (2 b / copies) / (K / cells)` for windows of W planes
    /// in a buffer of M; 0 where planes go around.
    pub slides: f64,
    /// Cell-steps per second.
    pub cells: f64,
    /// The same, by the mean of the times with the expected rates and with [doubted](Rates::doubted) ones: windows are
    /// compared by it. Where two windows differ little, the one with more time for transfers is chosen.
    pub weighed: f64,
}

impl WindowRate {
    /// Copies and launches overlap, but for the first and the last window of a run: there loads and stores alone say
    /// how fast time blocks come and go.
    pub fn new(rates: Rates, work: WindowWork) -> WindowRate {
        let expected = WindowRate::at(rates, work);
        let doubted = WindowRate::at(rates.doubted(), work);
        WindowRate {
            weighed: mean_time(expected.cells, doubted.cells),
            ..expected
        }
    }

    fn at(rates: Rates, work: WindowWork) -> WindowRate {
        let (steps, bytes) = (work.steps as f64, work.bytes);
        let transfers = steps * rates.link / bytes;
        let computing = rates.cells * work.launch.share();
        let window = work.window as f64;
        let moved = work
            .slides_in
            .map_or(0.0, |places| window / (places - work.window).max(1) as f64);
        let slides = moved * (2.0 * bytes / rates.copies) * computing / steps;
        let steady = (computing / (1.0 + slides)).min(transfers);
        // Times per plane, in the time of copying one.
        let computes = transfers / computing;
        let ends = match computes <= 1.0 {
            true => window,
            false => window * (2.0 - computes).max(0.0),
        };
        let all = work.planes.max(1.0) * transfers / steady;
        let cells = steady * all / (all + ends);
        WindowRate {
            transfers,
            computing,
            slides,
            cells,
            weighed: cells,
        }
    }

    /// The same of several devices that take `passes` passes over `planes` planes in turns, if a pass begins `behind`
    /// planes behind the one before.
    pub fn in_turns(self, devices: usize, passes: u64, planes: i64, behind: i64) -> WindowRate {
        let (count, last) = (devices.max(1) as u64, passes.max(1) - 1);
        let [planes, behind] = [planes.max(1), behind.max(1)].map(|n| n as f64);
        // A device begins its next pass when it has done the one before, and no device overtakes another one.
        let begin = match count as f64 * behind <= planes {
            true => (last / count) as f64 * planes + (last % count) as f64 * behind,
            false => last as f64 * behind,
        };
        let times = (last + 1) as f64 * planes / (begin + planes);
        WindowRate {
            cells: self.cells * times,
            weighed: self.weighed * times,
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

/// A rate of overlapped slabs, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabsRate {
    /// Cell-steps per second that transfers allow: `K L / (b l)` for passes of K steps, cells of b bytes, a link of L
    /// bytes per second each way, and l planes loaded per plane of the domain.
    pub transfers: f64,
    /// Cell-steps per second that computing allows: `R / r`, r being the cell-steps that are computed per cell-step of
    /// the domain.
    pub computing: f64,
    /// Cell-steps per second: the less of both, as loads, launches and stores of neighbouring slabs overlap, but for
    /// the loads of the first slab of a run and the stores of the last one.
    pub cells: f64,
}

impl SlabsRate {
    pub fn new(rates: Rates, work: SlabWork) -> SlabsRate {
        let transfers = work.steps as f64 * rates.link / (work.bytes * work.loaded.max(1.0));
        let computing = rates.cells / work.computed.max(1.0);
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

/// A rate of several devices, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripesRate {
    /// Seconds of a launch, and of its messages to a neighbour.
    pub launch: f64,
    pub message: f64,
    /// The share of the time in which a device has something to do: neighbours run in turns in a time block, so that
    /// `k T / (2 (T + m))` of launches of T seconds and messages of m overlap in k time blocks in flight; at most 1.
    pub utilisation: f64,
    /// Cell-steps per second of all devices.
    pub cells: f64,
}

impl StripesRate {
    /// For devices that reach `cells` cell-steps per second each.
    pub fn new(cells: f64, work: StripeWork) -> StripesRate {
        let launch = work.launch / cells;
        let message = work.message / work.link + SIGNALS;
        let turns = work.in_flight as f64 * launch / (2.0 * (launch + message));
        let utilisation = turns.min(1.0);
        StripesRate {
            launch,
            message,
            utilisation,
            cells: cells * utilisation * work.all / work.block,
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
        let work = WindowWork {
            steps: 96,
            bytes: 27.0,
            window: 436,
            slides_in: Some(4000),
            launch: LaunchTowers {
                count: 4096.0,
                together: 132.0,
            },
            planes: 100_000.0,
        };
        let long = WindowRate::new(rates, work);
        assert!((long.cells / 1e9 - 152.0).abs() < 1.0, "{long:?}");
        let short = WindowRate::new(rates, WindowWork { steps: 16, ..work });
        assert!((short.cells / 1e9 - 29.5).abs() < 0.2, "{short:?}");
        assert!(short.slides > long.slides);
        let around = WindowWork {
            slides_in: None,
            ..work
        };
        assert!(WindowRate::new(rates, around).cells > long.cells);
    }

    /// Elastic waves on an H200, whose towers were a tenth faster than expected: passes of 84 steps left no time for
    /// transfers.
    #[test]
    fn of_windows_alike_the_one_with_time_for_transfers_is_chosen() {
        let rates = Rates {
            cells: 62.8e9,
            link: 46e9,
            copies: 4.2e12,
        };
        let of = |steps, count| {
            let together = 132.0;
            WindowRate::new(
                rates,
                WindowWork {
                    steps,
                    bytes: 58.7,
                    window: 550,
                    slides_in: None,
                    launch: LaunchTowers { count, together },
                    planes: 70_000.0,
                },
            )
        };
        let (few, many) = (of(84, 8192.0), of(120, 6144.0));
        assert!(few.cells > many.cells, "{few:?} {many:?}");
        assert!(few.weighed < many.weighed, "{few:?} {many:?}");
    }

    /// Launches of 8 columns at 512 rows on an H100, as they were measured; and runs of few passes, whose ends count.
    #[test]
    fn small_launches_and_short_runs_lose() {
        let share = |count| {
            let together = 132.0;
            LaunchTowers { count, together }.share()
        };
        for (count, measured) in [(688.0, 0.825), (2052.0, 0.94), (4104.0, 0.97)] {
            assert!((share(count) - measured).abs() < 0.01, "{count}");
        }
        let rates = Rates {
            cells: 127e9,
            link: 42e9,
            copies: 3e12,
        };
        let work = |planes| WindowWork {
            steps: 96,
            bytes: 27.2,
            window: 520,
            slides_in: None,
            launch: LaunchTowers {
                count: 688.0,
                together: 132.0,
            },
            planes,
        };
        let [short, long] = [4096.0, 1e6].map(|planes| WindowRate::new(rates, work(planes)).cells);
        assert!((0.9..0.95).contains(&(short / long)), "{short} {long}");
    }

    /// FDTD(4,2) in f32 on one H200 in 12 GB with planes of 1536 x 256: low passes wait for copies, and high ones copy
    /// and compute planes that slabs have in common, so that time against height is U-shaped.
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
            computing: 1.0,
            slides: 0.0,
            cells: 1.0,
            weighed: 1.0,
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
        assert!((rate.cells / 1e9 - 316.0).abs() < 1.0, "{rate:?}");
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
