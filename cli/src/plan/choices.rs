//! Members of a family of schedules, for people and for programs.

use crate::columns::{Set, table};
use crate::rates::{Expected, LearnedRates};
use crate::report::bytes;
use serde_json::{Value, json};
use torre_compiler::cost::{Choice, Prediction, gcells};

/// Alternatives that are listed.
const MOST: usize = 8;

/// The members of a family that were considered, if there are several: first the one that was taken.
pub fn considered(taken: &Choice, choices: &[Choice], learned_rates: &LearnedRates) -> String {
    if choices.len() < 2 {
        return String::new();
    }
    let row = |choice: &Choice| {
        let p = &choice.prediction;
        [
            gcells(p.rate),
            learned_rates.rate(choice).map_or_else(String::new, gcells),
            format!("{:.1}", p.memory_bytes),
            format!("{:.1}", p.cache_bytes),
            bytes(p.footprint as u64),
            choice.name.clone(),
        ]
    };
    let head = [
        "Gcells/s", "learned", "memory", "caches", "tile", "schedule",
    ];
    let others = choices.iter().filter(|choice| *choice != taken);
    let all = std::iter::once(taken).chain(others).take(MOST).map(row);
    let all = std::iter::once(head.map(str::to_owned)).chain(all);
    // Without runs there is nothing in the second column.
    let kept = |(column, _): &(usize, String)| *column != 1 || learned_rates.any();
    let rows: Vec<Vec<String>> = all
        .map(|row| {
            let cells = row.into_iter().enumerate().filter(kept);
            cells.map(|(_, cell)| cell).collect()
        })
        .collect();
    let mut set = vec![Set::Right; rows[0].len() - 1];
    set.push(Set::Left);
    format!(
        "\nthe best of {} that were considered; memory and caches in bytes per cell-step\n{}",
        choices.len(),
        table(&set, &rows)
    )
}

/// The members of a family that were not chosen, for reports.
pub fn alternatives(
    chosen: &Choice,
    choices: &[Choice],
    learned_rates: &LearnedRates,
) -> Vec<Value> {
    let others = choices.iter().filter(|choice| *choice != chosen);
    let json = |choice: &Choice| {
        let mut value = choice_json(choice);
        value["learned_gcells_per_s"] = learned_rates.rate(choice).map(|rate| rate * 1e-9).into();
        value
    };
    others.map(json).collect()
}

/// A schedule and its prediction, for reports.
pub fn choice_json(choice: &Choice) -> Value {
    let Prediction {
        rate,
        compute,
        cache_bytes,
        memory_bytes,
        footprint,
    } = &choice.prediction;
    json!({
        "schedule": choice.name,
        "tiling": choice.schedule.to_string(),
        "predicted_gcells_per_s": rate * 1e-9,
        "computing_ns_per_cell_step": compute * 1e9,
        "bytes_per_cell_step": {"memory": memory_bytes, "cache": cache_bytes},
        "tile_bytes": footprint,
    })
}

/// The learned rate of a plan, and whether they have changed the choice, in lines, if there were any.
pub fn learned_text(expected: &Expected, taken: &Choice) -> String {
    let lines = [expected.text(), expected.change(taken)];
    let lines = lines.into_iter().flatten();
    lines.map(|line| format!("  learned   {line}\n")).collect()
}
