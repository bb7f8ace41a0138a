//! Injections and receivers: additions of sources to single values and records of them, right after their updates.
//!
//! This is the one table of places and the one arithmetic. Host, layerwise kernels and towers take from here which
//! source acts in which cells, in which order, with which profile and wave; and after which stage a probe records. The
//! reference evaluates sources by itself.

use crate::incident::{CorrectedRows, Corrections, Gathered};
use crate::lattice::{PerAxis, for_each_index};
use crate::problem::{Problem, Source};
use crate::real::Real;
use crate::scheme::{ComponentId, Scheme, StageId};
use crate::statics::{Files, coef_value, source_acts, source_wave};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// A cell in which a source acts: after each update it adds `round(profile * wave)`, or puts it in place of the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Injection {
    pub at: PerAxis<i64>,
    pub profile: f64,
    /// Index into the waves of a step.
    pub wave: u32,
}

/// Where a source acts.
#[derive(Clone, Debug, PartialEq)]
pub struct InjectionSource {
    /// After whose updates it acts; one of them updates the cells.
    pub stage: StageId,
    pub component: ComponentId,
    /// The product becomes the value, rather than being added to it.
    pub replaces: bool,
    /// The last index varies fastest.
    pub cells: Vec<Injection>,
}

/// The factor of the injections of a step: the time function of a source, for all of its cells or for one of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// Index into the problem's sources.
    pub source: usize,
    /// Where it is evaluated.
    pub at: PerAxis<i64>,
}

/// All injections of a problem.
#[derive(Debug, Default)]
pub struct Injections {
    /// One for each source of the problem. Injections into the same cell act in their order.
    pub sources: Vec<InjectionSource>,
    /// The waves of the sources in a step; the waves of corrections follow them.
    own: Vec<Wave>,
    /// The corrections at the faces of boxes of total fields, which act before the sources. The waves of steps are
    /// computed one after the other.
    corrections: Mutex<Corrections>,
    /// The waves of a step that they take.
    correction_waves: usize,
    /// Where that is added.
    corrected: Vec<CorrectedRows>,
}

impl Injections {
    pub fn new(scheme: &Scheme, problem: &Problem, files: &dyn Files) -> Injections {
        let mut injections = Injections::default();
        for (number, source) in problem.sources.iter().enumerate() {
            let everywhere = has_one_wave(source);
            let mut cells = Vec::new();
            for_each_cell(scheme, files, source, |at, profile| {
                if cells.is_empty() || !everywhere {
                    injections.own.push(Wave { source: number, at });
                }
                cells.push(Injection {
                    at,
                    profile,
                    wave: injections.own.len() as u32 - 1,
                });
            });
            injections.sources.push(InjectionSource {
                stage: source.stage,
                component: source.component,
                replaces: source.replaces,
                cells,
            });
        }
        injections.take_corrections(scheme, problem, files);
        injections
    }

    /// Incident fields that cannot be have been refused before.
    fn take_corrections(&mut self, scheme: &Scheme, problem: &Problem, files: &dyn Files) {
        if let Ok(mut corrections) = Corrections::new(scheme, problem, files) {
            self.corrected = std::mem::take(&mut corrections.rows);
            self.correction_waves = corrections.len();
            self.corrections = Mutex::new(corrections);
        }
    }

    fn correcting(&self) -> MutexGuard<'_, Corrections> {
        self.corrections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Where corrections are added, before the sources of the problem act; the waves that they take are counted from
    /// [`Injections::first_correction`] on.
    pub fn corrected(&self) -> &[CorrectedRows] {
        &self.corrected
    }

    /// The number of the first wave of corrections: waves of sources come before.
    pub fn first_correction(&self) -> usize {
        self.own.len()
    }

    /// The number of waves of a step.
    pub fn waves_per_step(&self) -> usize {
        self.own.len() + self.correction_waves
    }

    /// The waves of a step, from 0, in order. Steps that follow each other take the least time.
    pub fn waves(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
        step: u64,
    ) -> Vec<f64> {
        let of = Driven {
            scheme,
            problem,
            files,
        };
        let mut waves: Vec<f64> = self.own_waves(&of, step).collect();
        let mut corrections = self.correcting();
        if !corrections.is_empty() {
            corrections.waves(scheme, files, step, &mut waves);
        }
        waves
    }

    /// Appends the waves of some steps, one step after the other, as devices read them; they are computed by some
    /// threads, at most.
    pub fn wave_bytes(
        &self,
        of: &Driven<'_>,
        steps: Range<u64>,
        threads: usize,
        bytes: &mut Vec<u8>,
    ) {
        let count = steps.end.saturating_sub(steps.start);
        let [serial, parallel] = self.operations_with(&self.correcting());
        // One thread goes from step to step at a time, so more than some have nothing to do.
        let busy = 2 + (parallel / serial.max(1)) as usize;
        let worth = ((serial + parallel).saturating_mul(count) / PER_THREAD) as usize;
        self.waves_by(of, steps, threads.min(busy).min(worth).max(1), bytes);
    }

    /// The same by exactly `threads` threads.
    fn waves_by(&self, of: &Driven<'_>, steps: Range<u64>, threads: usize, bytes: &mut Vec<u8>) {
        let Driven { scheme, files, .. } = *of;
        let count = steps.end.saturating_sub(steps.start) as usize;
        let each = self.waves_per_step() * WAVE;
        let begin = bytes.len();
        bytes.resize(begin + count * each, 0);
        let mut corrections = self.correcting();
        if each == 0 {
            return;
        }
        let (gathering, summing) = corrections.from_step(scheme, files, steps.start);
        let chunks = bytes[begin..].chunks_exact_mut(each);
        let next = Mutex::new((gathering, steps.zip(chunks)));
        let work = || {
            let mut gathered: [Gathered; TOGETHER] = Default::default();
            let mut waves = Vec::new();
            loop {
                let Ok(mut own) = next.lock() else { return };
                let (gathering, rest) = &mut *own;
                let some = gathered.iter_mut().zip(rest).map(|(gathered, place)| {
                    gathering.gather(scheme, files, gathered);
                    place
                });
                let some: Vec<(u64, &mut [u8])> = some.collect();
                drop(own);
                if some.is_empty() {
                    return;
                }
                for (gathered, (step, bytes)) in gathered.iter().zip(some) {
                    waves.clear();
                    waves.extend(self.own_waves(of, step));
                    summing.sum(scheme, files, gathered, &mut waves);
                    for (bytes, wave) in bytes.chunks_exact_mut(WAVE).zip(&waves) {
                        bytes.copy_from_slice(&wave.to_le_bytes());
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            // Where a thread cannot be started, others do its work.
            for _ in 1..threads {
                let _ = Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }

    /// Multiplications in the time in which the waves of a step are computed, about.
    pub fn operations(&self) -> u64 {
        self.operations_with(&self.correcting()).iter().sum()
    }

    /// Operations that depend on the step before, and others.
    fn operations_with(&self, corrections: &Corrections) -> [u64; 2] {
        let [serial, parallel] = corrections.operations();
        [serial, parallel + self.own.len() as u64 * EVALUATION]
    }

    /// The waves of sources in a step.
    fn own_waves<'a>(&'a self, of: &'a Driven<'a>, step: u64) -> impl Iterator<Item = f64> + 'a {
        let wave = move |wave: &Wave| {
            let source = &of.problem.sources[wave.source];
            source_wave(of.scheme, of.files, source, step, wave.at)
        };
        self.own.iter().map(wave)
    }
}

/// Bytes of a wave.
const WAVE: usize = size_of::<f64>();

/// Multiplications in the time in which a wave of a source is evaluated, about.
pub const EVALUATION: u64 = 50;

/// Multiplications for which a thread is started.
const PER_THREAD: u64 = 1 << 18;

/// Steps that a thread takes at a time.
const TOGETHER: usize = 8;

/// The input of the computation of waves.
#[derive(Clone, Copy)]
pub struct Driven<'a> {
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub files: &'a dyn Files,
}

/// The cells in which a source acts, with its profile there; the last index varies fastest.
pub fn for_each_cell(
    scheme: &Scheme,
    files: &dyn Files,
    source: &Source,
    mut act: impl FnMut(PerAxis<i64>, f64),
) {
    let position = scheme.component(source.component).position;
    for_each_index(source.region, |at| {
        if source_acts(scheme, files, source, at) {
            let profile = coef_value(scheme, files, position, &source.profile, at);
            act(at, profile);
        }
    });
}

/// The value of a source: the product is taken in double precision and rounded.
pub fn given<T: Real>(profile: f64, wave: f64) -> T {
    T::from_f64(profile * wave)
}

/// The value after an injection: the sum is in the value's precision.
pub fn inject<T: Real>(value: T, profile: f64, wave: f64) -> T {
    value.add(given(profile, wave))
}

/// Whether one wave serves all cells of a source.
pub fn has_one_wave(source: &Source) -> bool {
    !source.wave.depends_on_place()
}

/// A value that a probe records after every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    pub component: ComponentId,
    pub at: PerAxis<i64>,
    /// The last stage of a step that may change it. `None`: nothing ever does.
    pub stage: Option<StageId>,
}

/// The receivers of a problem, one for each probe.
pub fn receivers(scheme: &Scheme, problem: &Problem) -> Vec<Receiver> {
    let of = |probe: &crate::problem::Probe| Receiver {
        component: probe.component,
        at: probe.at,
        stage: last_stage(scheme, probe.component, Some(probe.at)),
    };
    problem.probes.iter().map(of).collect()
}

/// The last stage of a step that can change a value of a component: any, or the one at `at`.
pub fn last_stage(scheme: &Scheme, id: ComponentId, at: Option<PerAxis<i64>>) -> Option<StageId> {
    let changes = |stage: &StageId| {
        let mut updates = scheme.stages[stage.index()].updates.iter();
        updates.any(|u| u.target == id && at.is_none_or(|at| u.region.contains(at)))
    };
    scheme.stage_ids().filter(changes).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{HostBinary, HostExpr, HostUnary};
    use crate::lattice::{Axis, HalfIndex};
    use crate::problem::{Drive, Incident, IncidentField, PlaneWave, TotalBox};
    use crate::scheme::Precision;
    use crate::statics::NoFiles;
    use crate::testing::maxwell;

    /// Two boxes of a plane wave, one of a given field, and a source whose wave is another one at each place.
    fn problem(scheme: &Scheme) -> Problem {
        let target = scheme.stages[0].updates[0].target;
        let cos = HostExpr::unary(HostUnary::Cos, HostExpr::Time);
        let plane = PlaneWave {
            direction: PerAxis([1, -2, 1]),
            drives: vec![Drive {
                component: target,
                wave: cos.clone(),
            }],
            loss: 0.2,
        };
        let along = HostExpr::Coordinate(Axis::INNER, HalfIndex::ZERO);
        let leaning = HostExpr::binary(HostBinary::Mul, cos.clone(), along);
        let incident = |field, boxes: &[[[i64; 2]; 3]]| Incident {
            name: "wave".to_owned(),
            field,
            boxes: boxes
                .iter()
                .map(|ends| TotalBox {
                    ends: PerAxis(*ends),
                })
                .collect(),
        };
        let given = scheme.component_ids().map(|_| Some(leaning.clone()));
        let boxes = [[[4, 8], [5, 9], [4, 7]], [[5, 7], [4, 9], [5, 8]]];
        Problem {
            steps: 90,
            incidents: vec![
                incident(IncidentField::Plane(plane), &boxes),
                incident(IncidentField::Given(given.collect()), &boxes[..1]),
            ],
            sources: vec![Source {
                component: target,
                stage: StageId(0),
                region: scheme.stages[0].updates[0].region,
                condition: None,
                profile: HostExpr::Number(1.0),
                wave: leaning.clone(),
                replaces: false,
            }],
            ..Problem::default()
        }
    }

    #[test]
    fn waves_do_not_depend_on_threads_or_on_the_order_of_steps() {
        let scheme = maxwell(4, Precision::F64, [12, 13, 11]);
        let problem = problem(&scheme);
        let of = Driven {
            scheme: &scheme,
            problem: &problem,
            files: &NoFiles,
        };
        let injections = Injections::new(&scheme, &problem, &NoFiles);
        let count = injections.waves_per_step();
        let first = injections.first_correction();
        assert!(first > 100 && count > first + 100, "{first} {count}");
        let waves = (0..90).flat_map(|step| injections.waves(&scheme, &problem, &NoFiles, step));
        let waves: Vec<u8> = waves.flat_map(f64::to_le_bytes).collect();
        let each = count * WAVE;
        for (threads, steps) in [
            (1, 0..90),
            (3, 0..90),
            (2, 5..70),
            (7, 70..71),
            (3, 71..90),
            (2, 9..9),
        ] {
            let mut bytes = vec![7];
            injections.waves_by(&of, steps.clone(), threads, &mut bytes);
            let [begin, end] = [steps.start, steps.end].map(|step| step as usize * each);
            assert!(bytes[1..] == waves[begin..end], "{threads} {steps:?}");
            injections.wave_bytes(&of, steps.clone(), threads, &mut bytes);
            assert!(
                bytes[1 + end - begin..] == waves[begin..end],
                "{threads} {steps:?}"
            );
        }
    }
}
