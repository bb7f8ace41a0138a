//! An incident field, as it is at some stage of some step.

use super::fault::Fault;
use super::line::Line;
use super::shell::Shell;
use super::weigh::Term;
use crate::host::HostExpr;
use crate::lattice::PerAxis;
use crate::problem::{Incident, IncidentField};
use crate::scheme::{ComponentId, Scheme, StageId};
use crate::statics::{Files, GridPoint, physical_time};

/// An incident field.
#[derive(Clone, Debug)]
pub enum Field {
    Plane(Box<Line>),
    Given(Given),
}

/// A field whose values are given.
#[derive(Clone, Debug)]
pub struct Given {
    /// By component.
    values: Vec<Option<HostExpr>>,
}

impl Field {
    /// The field before the first step. A fault comes with the index of its box.
    pub fn new(
        scheme: &Scheme,
        incident: &Incident,
        files: &dyn Files,
    ) -> Result<Field, (usize, Fault)> {
        let shells: Vec<Shell<'_>> = incident
            .boxes
            .iter()
            .map(|b| Shell::new(scheme, b))
            .collect();
        for (number, shell) in shells.iter().enumerate() {
            shell
                .check(&incident.field)
                .map_err(|fault| (number, fault))?;
        }
        Ok(match &incident.field {
            IncidentField::Plane(wave) => {
                Field::Plane(Box::new(Line::new(scheme, wave, &shells, files)?))
            }
            IncidentField::Given(values) => Field::Given(Given {
                values: values.clone(),
            }),
        })
    }

    /// The value of a term, its weight left out, right before a stage of a step.
    pub fn value(&self, at: &When<'_>, term: &Term) -> f64 {
        match self {
            Field::Plane(line) => {
                let values = line.values(line.slot(term.component, term.age));
                values[line.point(term.at) as usize]
            }
            Field::Given(given) => {
                let lag = given.lag(at.scheme, at.stage, term);
                let lag = lag.ok().flatten();
                lag.map_or(0.0, |lag| given.value(at, term.component, lag, term.at))
            }
        }
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> u64 {
        match self {
            Field::Plane(line) => line.bytes(),
            Field::Given(_) => 0,
        }
    }

    /// Runs a stage of a step: the values are then the ones before the next stage.
    pub fn advance(&mut self, at: &When<'_>) {
        if let Field::Plane(line) = self {
            line.advance(at.scheme, at.files, at.stage.index(), at.step);
        }
    }
}

/// When a field is looked at.
#[derive(Clone, Copy)]
pub struct When<'a> {
    pub scheme: &'a Scheme,
    pub files: &'a dyn Files,
    pub stage: StageId,
    /// Steps done before.
    pub step: u64,
}

impl Given {
    /// The steps after which the version that a term reads in a stage is the newest one, less the steps done before.
    /// `None`: it is 0.
    pub fn lag(&self, scheme: &Scheme, stage: StageId, term: &Term) -> Result<Option<i64>, Fault> {
        let component = term.component;
        let each = i64::from(scheme.updates_per_step(component));
        if each == 0 {
            return Ok(None);
        }
        if self.values[component.index()].is_none() {
            return Err(Fault::NotGiven { component });
        }
        let version = i64::from(scheme.updates_before(component, stage)) - i64::from(term.age);
        match version.rem_euclid(each) {
            0 => Ok(Some(version.div_euclid(each))),
            _ => Err(Fault::NoTime { component }),
        }
    }

    /// The value of a component `lag` steps later than the steps that are done.
    pub fn value(&self, at: &When<'_>, id: ComponentId, lag: i64, place: PerAxis<i64>) -> f64 {
        let value = self.values[id.index()].as_ref();
        value.map_or(0.0, |value| {
            value.eval(&GridPoint {
                scheme: at.scheme,
                files: at.files,
                position: at.scheme.component(id).position,
                at: place,
                time: physical_time(at.scheme, id, at.step as i64 + lag),
            })
        })
    }
}
