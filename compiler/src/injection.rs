//! Injections and receivers: what sources and probes do to single values, right after their updates.
//!
//! This is the one table of places and the one arithmetic. Host, layerwise kernels and towers take from here in which
//! cells which source acts, in which order, with which profile and wave; and after which stage a probe records. The
//! reference evaluates sources by itself.

use crate::incident::{CorrectedRows, Corrections};
use crate::lattice::{PerAxis, for_each_index};
use crate::problem::{Problem, Source};
use crate::real::Real;
use crate::scheme::{ComponentId, Scheme, StageId};
use crate::statics::{Files, coef_value, source_acts, source_wave};
use std::ops::Range;
use std::sync::Mutex;

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

/// What injections of a step are multiplied with: the time function of a source, for all of its cells or for one of
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
    /// One for each source of the problem. Those to the same cell act in their order.
    pub sources: Vec<InjectionSource>,
    /// Those of the sources in a step; the waves of corrections follow them.
    own: Vec<Wave>,
    /// What is added at the faces of boxes of total fields, before the sources act. The waves of steps are computed one
    /// after the other.
    corrections: Mutex<Corrections>,
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
            self.corrections = Mutex::new(corrections);
        }
    }

    /// Where corrections are added, before the sources of the problem act; the waves that they take are counted from
    /// [`Injections::first_correction`] on.
    pub fn corrected(&self) -> &[CorrectedRows] {
        &self.corrected
    }

    /// The number of the first wave of corrections: those of sources come before.
    pub fn first_correction(&self) -> usize {
        self.own.len()
    }

    /// The number of waves of a step.
    pub fn waves_per_step(&self) -> usize {
        let corrections = self.corrections.lock();
        self.own.len() + corrections.map_or(0, |c| c.len())
    }

    /// The waves of a step, from 0, in order. Steps that follow each other take the least time.
    pub fn waves(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
        step: u64,
    ) -> Vec<f64> {
        let mut waves = Vec::new();
        self.append_waves(scheme, problem, files, step, &mut waves);
        waves
    }

    fn append_waves(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
        step: u64,
        waves: &mut Vec<f64>,
    ) {
        let wave = |wave: &Wave| {
            let source = &problem.sources[wave.source];
            source_wave(scheme, files, source, step, wave.at)
        };
        waves.extend(self.own.iter().map(wave));
        if let Ok(mut corrections) = self.corrections.lock()
            && !corrections.is_empty()
        {
            corrections.waves(scheme, files, step, waves);
        }
    }

    /// Appends the waves of some steps, one step after the other, as devices read them.
    pub fn wave_bytes(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
        steps: Range<u64>,
        bytes: &mut Vec<u8>,
    ) {
        const EACH: usize = size_of::<f64>();
        let count = steps.end.saturating_sub(steps.start) as usize;
        bytes.reserve(count * self.waves_per_step() * EACH);
        let mut waves = Vec::new();
        for step in steps {
            waves.clear();
            self.append_waves(scheme, problem, files, step, &mut waves);
            let begin = bytes.len();
            bytes.resize(begin + waves.len() * EACH, 0);
            for (bytes, wave) in bytes[begin..].chunks_exact_mut(EACH).zip(&waves) {
                bytes.copy_from_slice(&wave.to_le_bytes());
            }
        }
    }
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

/// What a source gives: the product is taken in double precision and rounded.
pub fn given<T: Real>(profile: f64, wave: f64) -> T {
    T::from_f64(profile * wave)
}

/// What an injection makes of a value to which it adds: the sum is in the value's precision.
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
