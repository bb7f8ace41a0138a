//! The work of devices, and the operations for which they waited.
//!
//! A device *waits* where none of its kernels runs. Each such gap ends with a launch; the gap is divided among the
//! operations that led to that launch. Of the operations for which the launch waited, the one that was over last counts
//! for as long as it ran; then the one that was over last before that one, and so on to the beginning of the gap.

use super::{Kind, Operation, Timeline};
use std::collections::BTreeMap;

/// Seconds that a device waited for something.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Such as `send of GPU 1`.
    pub name: String,
    pub seconds: f64,
    /// Gaps in which it was waited for.
    pub gaps: usize,
}

/// The times of a device, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceTimes {
    pub device: usize,
    /// From the beginning of the first operation of all devices to the end of the last one.
    pub all: f64,
    /// In which a kernel runs, and in which two or more do.
    pub computing: f64,
    pub together: f64,
    /// Seconds in which a copy of a kind runs, for each kind that there is, with its bytes.
    pub copying: Vec<(Kind, f64, u64)>,
    /// In which no kernel runs: before the first launch, after the last one, and between.
    pub waiting: f64,
    pub before: f64,
    pub after: f64,
    /// The causes of the gaps between, the largest first.
    pub causes: Vec<Cause>,
    pub launches: usize,
    pub towers: u64,
}

/// Times of all devices.
pub fn summary(timeline: &Timeline) -> Vec<DeviceTimes> {
    let ops = &timeline.operations;
    let first = ops.iter().map(|op| op.begin).fold(f64::INFINITY, f64::min);
    let last = ops
        .iter()
        .map(|op| op.end)
        .fold(f64::NEG_INFINITY, f64::max);
    if ops.is_empty() {
        return Vec::new();
    }
    let devices = 0..timeline.devices.len();
    devices
        .map(|device| times(ops, device, [first, last]))
        .collect()
}

/// The union of the times of some operations as intervals that do not meet, ascending; and how long two or more of them
/// run.
fn union<'a>(ops: impl Iterator<Item = &'a Operation>) -> (Vec<[f64; 2]>, f64) {
    let mut ends: Vec<(f64, i32)> = ops
        .flat_map(|op| [(op.begin, 1), (op.end.max(op.begin), -1)])
        .collect();
    // Where one ends when another one begins, there is no gap.
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let (mut all, mut together): (Vec<[f64; 2]>, f64) = (Vec::new(), 0.0);
    let (mut running, mut since) = (0, 0.0);
    for (at, change) in ends {
        if running >= 2 {
            together += at - since;
        }
        match (running, change) {
            (0, _) => all.push([at, at]),
            (1, -1) => {
                if let Some(last) = all.last_mut() {
                    last[1] = at;
                }
            }
            _ => {}
        }
        running += change;
        since = at;
    }
    (all, together)
}

fn length(intervals: &[[f64; 2]]) -> f64 {
    intervals.iter().map(|[from, to]| to - from).sum()
}

fn times(ops: &[Operation], device: usize, [first, last]: [f64; 2]) -> DeviceTimes {
    let own = || ops.iter().filter(move |op| op.device == device);
    let (computing, together) = union(own().filter(|op| op.kind.computes()));
    let copies = Kind::ALL.into_iter().filter(|kind| !kind.computes());
    let copying = copies.filter_map(|kind| {
        let of = || own().filter(move |op| op.kind == kind);
        let bytes = of().map(|op| op.amount).sum();
        let seconds = length(&union(of()).0);
        of().next().map(|_| (kind, seconds, bytes))
    });
    let ends = [computing.first(), computing.last()];
    let [begin, end] = match ends {
        [Some(begin), Some(end)] => [begin[0], end[1]],
        _ => [last, last],
    };
    let mut causes: BTreeMap<String, Cause> = BTreeMap::new();
    // By their beginnings, to find the launch that ends a gap.
    let mut starts: Vec<usize> = (0..ops.len())
        .filter(|n| ops[*n].device == device && ops[*n].kind.computes())
        .collect();
    starts.sort_by(|a, b| ops[*a].begin.total_cmp(&ops[*b].begin));
    for pair in computing.windows(2) {
        let gap = [pair[0][1], pair[1][0]];
        let at = starts.partition_point(|n| ops[*n].begin < gap[1]);
        let Some(next) = starts.get(at) else {
            continue;
        };
        for (name, seconds) in blame(ops, device, *next, gap) {
            let cause = causes.entry(name.clone()).or_insert(Cause {
                name,
                seconds: 0.0,
                gaps: 0,
            });
            cause.seconds += seconds;
            cause.gaps += 1;
        }
    }
    let mut causes: Vec<Cause> = causes.into_values().collect();
    causes.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let computing = length(&computing);
    DeviceTimes {
        device,
        all: last - first,
        computing,
        together,
        copying: copying.collect(),
        waiting: last - first - computing,
        before: begin - first,
        after: last - end,
        causes,
        launches: own().filter(|op| op.kind == Kind::Run).count(),
        towers: own()
            .filter(|op| op.kind == Kind::Run)
            .map(|op| op.amount)
            .sum(),
    }
}

/// The causes of a gap that an operation ends, with the seconds of each.
fn blame(ops: &[Operation], device: usize, next: usize, gap: [f64; 2]) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    let mut add = |name: String, from: f64, to: f64| {
        let seconds = to.min(gap[1]) - from.max(gap[0]);
        if seconds > 0.0 {
            *shares.entry(name).or_insert(0.0) += seconds;
        }
    };
    let (mut op, mut until) = (next, gap[1]);
    while until > gap[0] {
        let before = ops[op].after.iter().copied();
        let latest = before.max_by(|a, b| ops[*a].end.total_cmp(&ops[*b].end));
        let over = latest.map_or(gap[0], |n| ops[n].end.min(until));
        // The host asked for it when all that it waits for was over already.
        let asked = ops[op].asked.clamp(over, until);
        add("the host".to_owned(), over, asked);
        add("signals".to_owned(), asked, until);
        let Some(latest) = latest else {
            break;
        };
        let of = &ops[latest];
        let name = match of.device == device {
            true => of.kind.name().to_owned(),
            false => format!("{} of GPU {}", of.kind.name(), of.device),
        };
        add(name, of.begin, over);
        (op, until) = (latest, of.begin.min(over));
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(device: usize, kind: Kind, times: [f64; 2], after: &[usize]) -> Operation {
        Operation {
            device,
            queue: 0,
            kind,
            name: String::new(),
            amount: 10,
            after: after.to_vec(),
            asked: 0.0,
            begin: times[0],
            end: times[1],
        }
    }

    fn of(operations: Vec<Operation>) -> Vec<DeviceTimes> {
        summary(&Timeline {
            devices: vec!["one".to_owned(), "other".to_owned()],
            queues: vec!["block 0".to_owned()],
            operations,
        })
    }

    /// A launch of GPU 0, a copy to GPU 1, and a launch there; then GPU 0 goes on.
    #[test]
    fn gaps_have_causes() {
        let mut ops = vec![
            op(0, Kind::Run, [0.0, 4.0], &[]),
            op(0, Kind::Send, [4.0, 5.0], &[0]),
            op(1, Kind::Run, [5.5, 8.0], &[1]),
            op(0, Kind::Run, [9.0, 10.0], &[0, 2]),
        ];
        let all = of(ops.clone());
        assert_eq!((all[0].computing, all[0].waiting), (5.0, 5.0));
        let causes = |times: &DeviceTimes| {
            let causes = times.causes.iter();
            let pairs = causes.map(|cause| (cause.name.clone(), cause.seconds));
            pairs.collect::<Vec<_>>()
        };
        // The copy overlaps the gap, too.
        let expected = [("run of GPU 1", 2.5), ("signals", 1.5), ("send", 1.0)];
        let expected = expected.map(|(name, seconds)| (name.to_owned(), seconds));
        assert_eq!(causes(&all[0]), expected);
        assert_eq!((all[1].before, all[1].after), (5.5, 2.0));
        assert!(all[1].causes.is_empty());
        assert_eq!(all[0].copying, [(Kind::Send, 1.0, 10)]);
        assert_eq!((all[0].launches, all[0].towers), (2, 20));
        // An operation that was asked for late waited for the host.
        ops[3].asked = 8.75;
        assert_eq!(causes(&of(ops)[0])[1], ("send".to_owned(), 1.0));
    }

    #[test]
    fn launches_at_a_time_are_counted_once() {
        let ops = vec![
            op(0, Kind::Run, [0.0, 4.0], &[]),
            op(0, Kind::Run, [1.0, 3.0], &[]),
            op(0, Kind::Run, [3.0, 6.0], &[]),
            op(0, Kind::Run, [6.0, 7.0], &[]),
        ];
        let all = of(ops);
        assert_eq!((all[0].computing, all[0].together), (7.0, 3.0));
        assert_eq!((all[0].waiting, all[1].waiting), (0.0, 7.0));
        assert!(all[0].causes.is_empty());
        assert!(of(Vec::new()).is_empty());
    }
}
