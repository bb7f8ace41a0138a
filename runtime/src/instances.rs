//! The types that run calculations, compiled here for both formats of numbers.
//!
//! Each crate that runs a calculation would compile this for itself, which was half of the time that the command and
//! the suite took. A generic function with `#[inline(never)]` is taken from the crate that has it already, at all
//! levels of optimisation; others only at low levels. So functions by which other crates enter a calculation have this
//! attribute. None of them is called in an inner loop.

use crate::gpu::{OnDevice, Pipelined, Striped};
use crate::host::{Calculation, Compiled};
use crate::run::checkpoint::Earlier;
use crate::run::{
    Checkpoints, InFiles, Literal, Outputs, SeriesRecords, census, checkpoint, execute, verify,
};
use crate::simulation::{Simulation, Value};

/// The address of code.
type Code = *const ();

/// A calculation as any, which takes all that is done with it.
fn any<'a, T, S: Simulation<T>>(simulation: &'a mut S) -> &'a mut (dyn Simulation<T> + 'a) {
    simulation
}

fn instances_for<T: Value>() -> Vec<Code> {
    vec![
        any::<T, Compiled<'static, T>> as Code,
        any::<T, Literal<'static, T>> as Code,
        any::<T, InFiles<'static, T>> as Code,
        any::<T, OnDevice<'static, T>> as Code,
        any::<T, Pipelined<'static, T>> as Code,
        any::<T, Striped<'static, T>> as Code,
        Literal::<T>::new as Code,
        Calculation::<T>::new as Code,
        Calculation::<T>::arranged as Code,
        OnDevice::<T>::new as Code,
        OnDevice::<T>::by as Code,
        Pipelined::<T>::new as Code,
        Pipelined::<T>::over as Code,
        Pipelined::<T>::with_timeline as Code,
        Striped::<T>::new as Code,
        Striped::<T>::with_timeline as Code,
        Checkpoints::write::<T> as Code,
        Outputs::start::<T> as Code,
        Outputs::write::<T> as Code,
        Outputs::statics::<T> as Code,
        Outputs::finish::<T> as Code,
        SeriesRecords::take::<T> as Code,
        census::<T> as Code,
        checkpoint::identity::<T> as Code,
        Earlier::resume::<T> as Code,
        Earlier::resume_in_place::<T> as Code,
        execute::<T> as Code,
        verify::compare::<T> as Code,
        verify::compare_pictures::<T> as Code,
        verify::find_missing_pictures::<T> as Code,
    ]
}

/// All of them, so that they are compiled.
pub fn instances() -> [Vec<Code>; 2] {
    [instances_for::<f32>(), instances_for::<f64>()]
}
