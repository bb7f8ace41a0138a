//! Properties of every timeline.

use torre_runtime::timeline::{Timeline, chrome_json, csv, summary};

/// Seconds by which times of devices may be wrong: half of the time of a request for an origin.
const EXACT: f64 = 1e-4;

/// Checks that no operation begins before the operations for which it waits are over, that all times of a device are
/// accounted for, and that files have all operations; or gives the fault.
pub fn check(timeline: &Timeline) -> Result<(), String> {
    let ops = &timeline.operations;
    for (number, op) in ops.iter().enumerate() {
        if op.end < op.begin {
            return Err(format!("{number}: {op:?} ends before it begins"));
        }
        if op.begin < op.asked - EXACT {
            return Err(format!("{number}: {op:?} begins before it was asked for"));
        }
        for before in &op.after {
            let early = *before >= number || ops[*before].end > op.begin + EXACT;
            if early {
                let before = &ops[*before];
                return Err(format!("{number}: {op:?} does not wait for {before:?}"));
            }
        }
    }
    for times in summary(timeline) {
        let causes = times.causes.iter().map(|cause| cause.seconds);
        let waiting = times.before + times.after + causes.sum::<f64>();
        // Causes overlap gaps by the errors of times.
        let most = EXACT * (1 + times.launches) as f64;
        let accounted = (waiting - times.waiting).abs() < most;
        if !accounted || (times.computing + times.waiting - times.all).abs() > EXACT {
            return Err(format!("{times:?} has {waiting} s of waiting"));
        }
    }
    let lines = csv(timeline).lines().count();
    let trace = chrome_json(timeline);
    let events = trace["traceEvents"].as_array().ok_or("no events")?;
    let shown = events.iter().filter(|event| event["ph"] == "X").count();
    match (lines, shown) == (ops.len() + 1, ops.len()) {
        true => Ok(()),
        false => Err(format!(
            "{} operations, {lines} lines, {shown} events",
            ops.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_runtime::timeline::{Kind, Operation};

    #[test]
    fn wrong_timelines_are_found() {
        let op = |begin: f64, after: &[usize]| Operation {
            device: 0,
            queue: 0,
            kind: Kind::Run,
            name: "launch".to_owned(),
            amount: 1,
            after: after.to_vec(),
            asked: 0.0,
            begin,
            end: begin + 1.0,
        };
        let of = |operations: Vec<Operation>| Timeline {
            devices: vec!["one".to_owned()],
            queues: vec!["blocks 0".to_owned()],
            operations,
        };
        assert_eq!(check(&of(vec![op(0.0, &[]), op(2.0, &[0])])), Ok(()));
        assert!(check(&of(vec![op(0.0, &[]), op(0.5, &[0])])).is_err());
        assert!(check(&of(vec![op(0.0, &[1]), op(2.0, &[])])).is_err());
        let late = Operation {
            asked: 3.0,
            ..op(0.0, &[])
        };
        assert!(check(&of(vec![late])).is_err());
    }
}
