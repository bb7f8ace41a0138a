//! Runs by the reference.

use super::{Made, Prepared, Run};
use crate::failure::Failure;
use crate::machine;
use std::time::Duration;
use torre_runtime::run::Literal;
use torre_runtime::simulation::Value;

impl<T: Value> Run<'_, T> {
    pub(super) fn run_reference(&self, prepared: &Prepared<'_>) -> Result<(), Failure> {
        let made = Made {
            backend: "reference".to_owned(),
            code: "reference".to_owned(),
            compiling: Duration::ZERO,
            cached: false,
            field_bytes: Literal::<T>::bytes(self.scheme),
            spilled: 0,
            devices: vec![machine::cpu_name()],
            as_planned: false,
        };
        let mut simulation = Literal::<T>::new(self.scheme, self.problem, prepared.files);
        self.execute(&mut simulation, prepared, None, made)
    }
}
