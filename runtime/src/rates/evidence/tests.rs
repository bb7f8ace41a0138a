use super::*;
use crate::host::measure::Measured;
use crate::rates::Computer;
use crate::rates::case::{Family, Kind};
use torre_compiler::cost::Machine;

fn computer() -> Computer {
    let machine = Machine {
        threads: 16,
        cores: 16,
        l1: 32 << 10,
        l2: 2 << 20,
        l3: 300 << 20,
        l2_rate: 1e11,
        l3_rate: 5e10,
        l3_rate_all: 4e11,
        l3_rate_far: 4e10,
        memory_rate: 1e10,
        memory_rate_all: 1e11,
        vector_rate: 4e9,
        vector_rate_all: 6.4e10,
        vector_rate_slowest: 4e9,
        vector_bytes: 64,
    };
    let measured = Measured {
        machine,
        doubtful: false,
    };
    Computer::of_processor(&measured).unwrap()
}

/// A case with 2^24 cells; towers have sizes.
fn case(family: &str, kind: Kind, height: f64, width: f64) -> Case {
    Case {
        family: Family::named(family),
        kind,
        sizes: match kind {
            Kind::Layerwise => [0.0; 4],
            _ => [height, width, width, 0.0],
        },
        class: 24,
    }
}

fn record(case: &Case, ratios: &[f64]) -> CaseRuns {
    CaseRuns {
        computer: computer(),
        case: case.clone(),
        runs: ratios.len() as u64,
        ratios: ratios.to_vec(),
    }
}

fn ratio(evidence: &Evidence, case: &Case) -> f64 {
    evidence.learned(case).unwrap().ratio
}

#[test]
fn without_runs_nothing_is_corrected() {
    let evidence = Evidence::new(Vec::new());
    let [plain, towers] = [Kind::Layerwise, Kind::Towers].map(|kind| case("a", kind, 8.0, 12.0));
    assert_eq!(evidence.learned(&plain), None);
    assert_eq!(evidence.choice(&[(plain, 1.0), (towers, 5.0)]), 0);
    assert_eq!(evidence.choice(&[]), 0);
}

#[test]
fn two_runs_correct_what_is_expected_of_the_same_by_more_than_three_quarters() {
    let towers = case("a", Kind::Towers, 8.0, 12.0);
    for factor in [0.25, 0.45, 0.625, 1.6, 3.0] {
        for (count, within) in [(1, 1.2), (2, 1.12), (3, 1.1)] {
            let evidence = Evidence::new(vec![record(&towers, &vec![factor; count])]);
            let left = ratio(&evidence, &towers) / factor;
            assert!(
                left < within && left > 1.0 / within,
                "{factor}, {count}: {left}"
            );
        }
    }
}

#[test]
fn evidence_spreads_less_the_less_two_cases_have_in_common() {
    let towers = case("a", Kind::Towers, 8.0, 12.0);
    let evidence = Evidence::new(vec![record(&towers, &[0.5, 0.5])]);
    let farther = [
        towers.clone(),
        case("a", Kind::Towers, 8.0, 16.0),
        case("a", Kind::Towers, 64.0, 48.0),
        case("b", Kind::Towers, 8.0, 12.0),
        case("b", Kind::Layerwise, 0.0, 0.0),
    ];
    let ratios: Vec<f64> = farther.iter().map(|case| ratio(&evidence, case)).collect();
    assert!(ratios.is_sorted_by(|a, b| a < b), "{ratios:?}");
    assert!(
        ratios[0] < 0.55 && ratios[4] < 0.85 && ratios[4] > 0.7,
        "{ratios:?}"
    );
    let of = |case: &Case| {
        let Learned { runs, alike, .. } = evidence.learned(case).unwrap();
        [runs, alike]
    };
    assert_eq!(of(&farther[0]), [2, 2]);
    assert_eq!(of(&farther[4]), [2, 0]);
    let mut smaller = towers;
    smaller.class = 18;
    assert!(ratio(&evidence, &smaller) > ratios[0]);
}

#[test]
fn many_runs_of_a_few_cases_do_not_outvote_one_of_another() {
    let [plain, towers] = [Kind::Layerwise, Kind::Towers].map(|kind| case("a", kind, 8.0, 12.0));
    let mut records = vec![record(&plain, &[1.0, 1.0])];
    for width in [8.0, 12.0, 16.0, 20.0, 24.0, 32.0] {
        records.push(record(&case("a", Kind::Towers, 8.0, width), &[0.5; 5]));
    }
    let evidence = Evidence::new(records);
    assert!((ratio(&evidence, &plain) - 1.0).abs() < 0.1);
    assert!((ratio(&evidence, &towers) - 0.5).abs() < 0.03);
}

#[test]
fn a_single_run_changes_no_choice() {
    let [plain, towers] = [Kind::Layerwise, Kind::Towers].map(|kind| case("a", kind, 8.0, 12.0));
    let cases = [(towers.clone(), 2.0), (plain.clone(), 1.9)];
    for factor in [0.02, 0.1, 0.5] {
        // However slow it was, and with any evidence of others.
        let evidence = Evidence::new(vec![
            record(&towers, &[factor]),
            record(&plain, &[1.0, 1.0, 1.0]),
        ]);
        let lower = ratio(&evidence, &towers);
        assert!(lower < 0.75, "{lower}");
        assert_eq!(evidence.choice(&cases), 0, "{factor}");
    }
    // Of two runs the faster one counts, so that one that was disturbed does not change it either.
    for ratios in [[0.1, 1.0], [1.0, 0.1]] {
        let evidence = Evidence::new(vec![record(&towers, &ratios), record(&plain, &[1.0, 1.0])]);
        assert_eq!(evidence.choice(&cases), 0, "{ratios:?}");
    }
}

#[test]
fn a_schedule_that_never_ran_is_no_better_for_it() {
    let [plain, towers] = [Kind::Layerwise, Kind::Towers].map(|kind| case("a", kind, 8.0, 12.0));
    let evidence = Evidence::new(vec![record(&towers, &[0.5; 5])]);
    for rate in [0.5, 1.0, 1.5, 1.9] {
        let cases = [(towers.clone(), 2.0), (plain.clone(), rate)];
        assert_eq!(evidence.choice(&cases), 0, "{rate}");
    }
}

#[test]
fn enough_runs_of_both_change_the_choice_if_the_gain_is_larger_than_what_is_unknown() {
    let [plain, towers] = [Kind::Layerwise, Kind::Towers].map(|kind| case("a", kind, 8.0, 12.0));
    let evidence = |slow: f64| {
        Evidence::new(vec![
            record(&towers, &[slow, slow]),
            record(&plain, &[1.0, 1.0]),
        ])
    };
    let cases = [(towers.clone(), 2.0), (plain.clone(), 1.0)];
    for (slow, chosen) in [(1.0, 0), (0.5, 0), (0.45, 0), (0.35, 1), (0.2, 1)] {
        assert_eq!(evidence(slow).choice(&cases), chosen, "{slow}");
    }
    // The margin in favour of sweeps falls as well.
    let evidence = Evidence::new(vec![
        record(&towers, &[1.3, 1.3]),
        record(&plain, &[0.9, 0.9]),
    ]);
    assert_eq!(evidence.choice(&[(plain, 1.0), (towers, 1.1)]), 1);
}

#[test]
fn what_is_unknown_vanishes_between_a_case_and_itself_and_falls_with_runs() {
    let [plain, towers] = [Kind::Layerwise, Kind::Towers].map(|kind| case("a", kind, 8.0, 12.0));
    let mut before = f64::INFINITY;
    for count in [0, 2, 3, 5] {
        let ratios = vec![0.7; count];
        let records: Vec<CaseRuns> = match count {
            0 => Vec::new(),
            _ => vec![record(&towers, &ratios), record(&plain, &ratios)],
        };
        let posterior = Posterior::new(records.iter());
        let [a, b] = [&towers, &plain].map(|case| posterior.seen(case));
        assert!(a.difference(&a).abs() < 1e-12);
        let unknown = a.difference(&b);
        assert!(unknown < before && unknown > 0.0, "{count}: {unknown}");
        before = unknown;
    }
}

#[test]
fn as_many_records_as_a_file_holds_give_finite_ratios() {
    // Also where many are almost the same.
    let records: Vec<CaseRuns> = (0..256)
        .map(|i| {
            let width = 8.0 + f64::from(i % 16) / 64.0;
            let mut case = case(["a", "b"][i as usize % 2], Kind::Towers, 8.0, width);
            case.class = 20 + (i as u32) / 64;
            record(&case, &vec![0.5 + f64::from(i) / 512.0; 1 + i as usize % 5])
        })
        .collect();
    let towers = case("a", Kind::Towers, 8.0, 8.0);
    let evidence = Evidence::new(records);
    let found = ratio(&evidence, &towers);
    assert!((0.5..1.0).contains(&found), "{found}");
}

#[test]
fn fast_schedules_that_differ_and_are_not_known_to_be_slow_are_tried() {
    let towers = |height, width| case("a", Kind::Towers, height, width);
    let own = (towers(8.0, 12.0), 1.0);
    let cases = [
        own.clone(),
        // Too near.
        (towers(8.0, 16.0), 0.99),
        (towers(16.0, 12.0), 0.97),
        // Too near to that one.
        (towers(16.0, 16.0), 0.96),
        (towers(4.0, 24.0), 0.95),
        (case("a", Kind::Layerwise, 0.0, 0.0), 0.9),
        (towers(32.0, 6.0), 0.94),
        (towers(8.0, 48.0), 0.7),
    ];
    let tried = |records: Vec<CaseRuns>| Evidence::new(records).worth_trying(&cases, 0);
    assert_eq!(tried(Vec::new()), [2, 4, 6]);
    // Runs have shown that one of them is slow, which counts a little for towers that are alike.
    let known = vec![
        record(&own.0, &[1.0, 1.0, 1.0]),
        record(&cases[2].0, &[0.8, 0.8, 0.8]),
        record(&cases[4].0, &[1.05]),
    ];
    assert_eq!(tried(known), [4, 5, 6]);
    assert!(Evidence::default().worth_trying(&[], 0).is_empty());
}
