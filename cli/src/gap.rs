//! How far planes lie from each other on a GPU: as the variable says, or as towers were timed.

use crate::failure::Failure;
use crate::rates::Rates;
use crate::render::Voice;
use crate::window::Held;
use serde_json::{Value, json};
use std::env;
use std::time::{Duration, Instant};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::scheme::Scheme;
use torre_runtime::gpu::{Device, DeviceModel, GapTrial, NoTrial, TimedGap, best_gap};
use torre_runtime::plan::gpu::DevicePlan;
use torre_runtime::rates::{Computer, GapRecord, GapStore};
use torre_runtime::simulation::SetupError;

/// The environment variable that decides on gaps: a number of rows, or `timed`.
const VARIABLE: &str = "TORRE_PLANE_GAP";

/// Seconds that timing takes for each gap, about: the driver translates one kernel after the other. Runs of which it
/// is a larger part than this do without.
const TIMING: f64 = 1.25;
const PART: f64 = 0.02;

/// Tables of time blocks for each gap take less than this part of the memory of a run, together.
const TABLES: u64 = 32;

/// The wish for a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// None: towers decide, where it pays.
    Open,
    /// Towers are timed, however short the run is.
    Timed,
    Rows(i64),
}

impl Wish {
    fn read(text: Option<&str>) -> Option<Wish> {
        match text {
            None => Some(Wish::Open),
            Some("timed") => Some(Wish::Timed),
            Some(rows) => {
                let rows: u16 = rows.parse().ok()?;
                Some(Wish::Rows(rows.into()))
            }
        }
    }

    fn of_user() -> Result<Wish, Failure> {
        let text = env::var_os(VARIABLE).filter(|text| !text.is_empty());
        let text = text.map(|text| text.to_string_lossy().into_owned());
        Wish::read(text.as_deref()).ok_or_else(|| {
            let text = text.unwrap_or_default();
            Failure::usage(format!(
                "`{VARIABLE}` is `timed` or a number of rows up to {}, and not `{text}`",
                u16::MAX
            ))
        })
    }
}

/// The reason for a gap.
#[derive(Clone, Debug, PartialEq)]
enum Why {
    /// The variable says so.
    Wished,
    /// Towers were timed with some gaps, in an earlier run if that is not known to have taken time now.
    Timed {
        all: Vec<TimedGap>,
        now: Option<Duration>,
    },
}

/// The gap between planes of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    pub rows: i64,
    why: Why,
}

impl Gap {
    fn timed(all: Vec<TimedGap>, now: Option<Duration>) -> Gap {
        Gap {
            rows: best_gap(&all).gap,
            why: Why::Timed { all, now },
        }
    }

    /// The rate with it over that without one.
    fn gain(&self) -> Option<f64> {
        let Why::Timed { all, .. } = &self.why else {
            return None;
        };
        let seconds = |gap: i64| {
            let mut timed = all.iter();
            timed.find(|timed| timed.gap == gap).map(|t| t.seconds)
        };
        Some(seconds(0)? / seconds(self.rows)?).filter(|gain| gain.is_finite())
    }

    /// In a sentence.
    pub fn text(&self) -> String {
        let rows = match self.rows {
            0 => "planes lie as close as they can".to_owned(),
            1 => "planes lie 1 row farther apart than they have to".to_owned(),
            rows => format!("planes lie {rows} rows farther apart than they have to"),
        };
        match &self.why {
            Why::Wished => format!("{rows}, as `{VARIABLE}` says"),
            Why::Timed { all, now } => {
                let when = match now {
                    Some(time) => format!("{:.1} s now", time.as_secs_f64()),
                    None => "an earlier run".to_owned(),
                };
                let gain = self.gain().unwrap_or(1.0);
                let rate = match self.rows {
                    0 => "no other distance is worth it".to_owned(),
                    _ => format!("{gain:.3} of the rate without that"),
                };
                format!("{rows}: {rate}, by {} distances timed in {when}", all.len())
            }
        }
    }

    pub fn json(&self) -> Value {
        let timed = match &self.why {
            Why::Wished => Vec::new(),
            Why::Timed { all, .. } => all.clone(),
        };
        let timed = timed.iter();
        let timed = timed.map(|timed| json!({"rows": timed.gap, "seconds": timed.seconds}));
        let now = match &self.why {
            Why::Timed { now: Some(now), .. } => Some(now.as_secs_f64()),
            _ => None,
        };
        json!({
            "gap_rows": self.rows,
            "wished": self.why == Why::Wished,
            "gain": self.gain(),
            "timed": timed.collect::<Vec<_>>(),
            "timing_seconds": now,
        })
    }
}

/// The memory of a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceMemory {
    /// Bytes that the run needs.
    pub needed: u64,
    /// Bytes that are free beyond these.
    pub free: u64,
}

/// A run whose planes may get a gap.
pub struct Subject<'a> {
    trial: GapTrial<'a>,
    /// Under which gaps of the GPU are recorded, if they are.
    computer: Option<Computer>,
}

impl<'a> Subject<'a> {
    /// `None` where planes have no gaps: without towers, and in windows.
    pub fn new(
        scheme: &'a Scheme,
        plan: &'a DevicePlan,
        held: Option<&'a Held>,
        model: &DeviceModel,
        rates: &Rates,
    ) -> Option<Subject<'a>> {
        let stripes = match held {
            None => None,
            Some(Held::Stripes(plan)) => Some(&plan.stripes),
            Some(Held::All(_) | Held::Window(_)) => return None,
        };
        let towers = plan.towers()?;
        let computer = Computer::of_devices(&model.facts, 1);
        Some(Subject {
            trial: GapTrial {
                scheme,
                program: &towers.program,
                gpu: model.gpu,
                order: towers.order,
                stripes,
            },
            computer: Some(computer).filter(|_| rates.is_learning()),
        })
    }

    /// The gap that was asked for, or that earlier runs have found.
    pub fn known(&self) -> Result<Option<Gap>, Failure> {
        Ok(match Wish::of_user()? {
            Wish::Rows(rows) => Some(Gap {
                rows,
                why: Why::Wished,
            }),
            Wish::Timed => None,
            Wish::Open => self.recorded()?,
        })
    }

    fn recorded(&self) -> Result<Option<Gap>, Failure> {
        let Some(computer) = &self.computer else {
            return Ok(None);
        };
        let key = self.trial.key().map_err(SetupError::from)?;
        let found = GapStore::of_user().find(computer, &key);
        let found = found.filter(|timed| self.trial.tries(timed));
        Ok(found.map(|timed| Gap::timed(timed, None)))
    }

    /// The same; or towers are timed on a device, if that was asked for or takes a small part of the run, which is
    /// expected to take `seconds`.
    pub fn choose(
        &self,
        device: &dyn Device,
        memory: DeviceMemory,
        seconds: f64,
        voice: &Voice,
    ) -> Result<Option<Gap>, Failure> {
        if let Some(gap) = self.known()? {
            let room =
                gap.why == Why::Wished || self.trial.bytes().is_ok_and(|own| own <= memory.free);
            return Ok(Some(gap).filter(|_| room));
        }
        let asked = Wish::of_user()? == Wish::Timed;
        let gaps = self.trial.gaps();
        let timing = TIMING * gaps.len() as f64;
        let pays = self.computer.is_some() && PART * seconds >= timing;
        let more = memory.needed / TABLES;
        let fits = self
            .trial
            .bytes()
            .is_ok_and(|own| own + more <= memory.free);
        if !(asked || pays) {
            return Ok(None);
        }
        if !fits || gaps.len() < 2 {
            if asked {
                let reason = match fits {
                    true => "planes have too few rows",
                    false => "no memory is left for that",
                };
                voice.note(format_args!("distances of planes are not timed: {reason}"));
            }
            return Ok(None);
        }
        let start = Instant::now();
        let timed = match self.timed(device, &gaps) {
            Ok(timed) => timed,
            Err(NoTrial::Sources) if !asked => return Ok(None),
            Err(reason) => {
                voice.note(format_args!("distances of planes are not timed: {reason}"));
                return Ok(None);
            }
        };
        if let Some(computer) = &self.computer {
            let record = GapRecord {
                computer: computer.clone(),
                key: self.trial.key().map_err(SetupError::from)?,
                timed: timed.clone(),
            };
            // Without a record the next run times them again.
            let _ = GapStore::of_user().add(record);
        }
        Ok(Some(Gap::timed(timed, Some(start.elapsed()))))
    }

    fn timed(&self, device: &dyn Device, gaps: &[i64]) -> Result<Vec<TimedGap>, NoTrial> {
        let library = Library::open().map_err(torre_runtime::gpu::TimeBlockError::from)?;
        self.trial.time(library, device, gaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_rows_or_a_trial() {
        for (text, expected) in [
            (None, Some(Wish::Open)),
            (Some("timed"), Some(Wish::Timed)),
            (Some("0"), Some(Wish::Rows(0))),
            (Some("16"), Some(Wish::Rows(16))),
            (Some("-1"), None),
            (Some("65536"), None),
            (Some("auto"), None),
        ] {
            assert_eq!(Wish::read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn gaps_say_why_they_are_taken() {
        let timed = |gap, seconds| TimedGap { gap, seconds };
        let gap = Gap::timed(vec![timed(0, 0.103), timed(3, 0.12), timed(9, 0.1)], None);
        assert_eq!(
            gap.text(),
            "planes lie 9 rows farther apart than they have to: 1.030 of the rate without that, by 3 distances timed \
             in an earlier run"
        );
        assert_eq!(gap.json()["gap_rows"], 9);
        let now = Some(Duration::from_millis(2140));
        let gap = Gap::timed(vec![timed(0, 0.1), timed(3, 0.0999)], now);
        assert_eq!(
            gap.text(),
            "planes lie as close as they can: no other distance is worth it, by 2 distances timed in 2.1 s now"
        );
        let gap = Gap {
            rows: 1,
            why: Why::Wished,
        };
        assert_eq!(
            gap.text(),
            "planes lie 1 row farther apart than they have to, as `TORRE_PLANE_GAP` says"
        );
        assert_eq!(gap.json()["wished"], true);
    }
}
