//! Which updates keep their values free of subnormal numbers.
//!
//! A pulse in a background of zeros has a front at which values fall to 0 through all magnitudes, and processors take
//! many times as long for subnormal numbers as for others. So an update whose values the next step reads elsewhere ends
//! with [`Op::Flush`], and so does each new value of a state. Every closed chain of dependences between cells or
//! components crosses a step somewhere, so that tiny values cannot spread; fields that a step computes from flushed
//! ones, such as the second field of a leapfrog scheme, need no operation of their own.

use crate::scheme::{Body, Op, Scheme, Value};

/// Ends the bodies of a scheme with the flushes that they need.
pub fn add_flushes(scheme: &mut Scheme) {
    let flushed = read_by_next_step(scheme);
    let updates = scheme.stages.iter_mut().flat_map(|s| &mut s.updates);
    for update in updates {
        let flushes = flushed[update.target.index()];
        if flushes {
            flush_result(&mut update.body);
        }
        for amendment in &mut update.amendments {
            if flushes {
                flush_result(&mut amendment.body);
            }
            for advance in &mut amendment.advances {
                advance.value = flush(&mut amendment.body, advance.value);
            }
        }
    }
}

/// For each component: does a step read values of the step before, other than the old value of the target?
fn read_by_next_step(scheme: &Scheme) -> Vec<bool> {
    let mut found = vec![false; scheme.components.len()];
    // How often each component was updated in the step so far.
    let mut updated = vec![0; scheme.components.len()];
    for stage in &scheme.stages {
        for update in &stage.updates {
            let amended = update.amendments.iter().flat_map(|a| a.body.reads());
            for read in update.body.reads().chain(amended) {
                let component = read.component.index();
                let elsewhere = read.component != update.target || read.offset.0 != [0; 3];
                found[component] |= elsewhere && usize::from(read.age) >= updated[component];
            }
        }
        for update in &stage.updates {
            updated[update.target.index()] += 1;
        }
    }
    found
}

fn flush_result(body: &mut Body) {
    body.result = flush(body, body.result);
}

/// The flushed value, as an operation of the body; numbers that are the same everywhere need none.
fn flush(body: &mut Body, value: Value) -> Value {
    if matches!(body.ops[value.index()], Op::Const(_) | Op::Coef(_)) {
        return value;
    }
    let op = Op::Flush(value);
    let known = body.ops.iter().position(|o| *o == op);
    let index = known.unwrap_or_else(|| {
        body.ops.push(op);
        body.ops.len() - 1
    });
    Value(index as u32)
}
