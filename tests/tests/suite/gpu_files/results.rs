//! Results that are added to random problems.

use torre_compiler::lattice::{Axis, Interval, Offset};
use torre_compiler::problem::{
    Output, OutputKind, Problem, Reduction, Series, SeriesTerm, Spectrum, StateProbe,
};
use torre_compiler::scheme::{Body, Op, Read, Scheme, StateId, Value};

/// The sum of the squares of all values.
pub fn squares(scheme: &Scheme, every: u64) -> Series {
    let term = |component| {
        let read = Read {
            component,
            offset: Offset::default(),
            age: 0,
        };
        SeriesTerm {
            position: scheme.component(component).position,
            region: scheme.extent(component),
            condition: None,
            body: Body {
                ops: vec![Op::Read(read), Op::Mul(Value(0), Value(0))],
                result: Value(1),
            },
            coefs: Vec::new(),
        }
    };
    Series {
        name: "squares".to_owned(),
        reduction: Reduction::Sum,
        terms: scheme.component_ids().map(term).collect(),
        every,
    }
}

/// A slice, a volume and a probe of two states of a scheme, if it has some.
pub fn add_states(scheme: &Scheme, problem: &mut Problem, every: &[u64]) {
    for (number, state) in scheme.states.iter().enumerate().take(2) {
        let target = scheme.component_ids().find(|id| {
            let updates = scheme.stages.iter().flat_map(|s| &s.updates);
            let own = updates.filter(|u| u.target == *id);
            own.flat_map(|u| &u.amendments)
                .flat_map(|a| &a.advances)
                .any(|a| a.state == StateId(number as u32))
        });
        let component = target.expect("what advances it");
        let id = StateId(number as u32);
        let zone = scheme.zone(state.zone);
        let at = zone.boxes[0].map(|i| i.lo + 1);
        let kind = OutputKind::Slice {
            axis: Axis::INNER,
            index: at[Axis::INNER],
        };
        for (kind, word) in [(kind, "slice"), (OutputKind::Volume, "volume")] {
            let mut region = scheme.extent(component);
            if let OutputKind::Slice { axis, index } = kind {
                region[axis] = Interval::new(index, index + 1);
            }
            problem.outputs.push(Output {
                name: format!("{word} of {}", state.name),
                component,
                state: Some(id),
                kind,
                region,
                every: every[0],
                spectrum: None,
            });
        }
        problem.state_probes.push(StateProbe {
            name: format!("at {}", state.name),
            state: id,
            at,
            every: every[0],
        });
    }
}

/// The spectra of the first slice and of the first volume.
pub fn add_spectra(problem: &mut Problem) {
    let is_volume = |o: &&Output| matches!(o.kind, OutputKind::Volume);
    let outputs = || problem.outputs.iter();
    let both = [outputs().find(|o| !is_volume(o)), outputs().find(is_volume)];
    let spectra = both.into_iter().flatten().cloned().map(|mut own| {
        if let OutputKind::Slice { axis, index } = own.kind {
            own.region[axis] = Interval::new(index, index + 1);
        }
        let frequencies = vec![0.04, -0.01, 0.0];
        own.spectrum = Some(Spectrum { frequencies });
        own.name = format!("spectrum of {}", own.name);
        own
    });
    problem.outputs.extend(spectra.collect::<Vec<Output>>());
}
