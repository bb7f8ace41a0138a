//! The accuracy of a scheme: orders and tables of phase velocities.

use crate::columns::{Set, table};
use crate::stability::{cell, significant};
use serde_json::{Value, json};
use std::fmt::Write;
use torre_compiler::analysis::{Dispersion, Kind, Order, Reference, Sample};
use torre_compiler::scheme::Scheme;

/// Orders and tables of phase velocities.
pub(super) fn text(out: &mut String, scheme: &Scheme, found: &Dispersion) {
    let _ = writeln!(
        out,
        "\naccuracy, with the coefficients of {}",
        cell(scheme, found.at)
    );
    let order = |order: Order, quantity: &str| match order {
        Order::Power(p) => format!("order {p} in {quantity}"),
        Order::Exact => format!("exact in {quantity}"),
        Order::Unknown => format!("order in {quantity} not known"),
    };
    let _ = writeln!(
        out,
        "  {}, {}",
        order(found.in_space, "space"),
        order(found.in_time, "time")
    );
    if let Some(both) = found.higher_together() {
        let _ = writeln!(out, "  {}", order(both, "both together"));
    }
    let reference = match found.reference {
        Reference::Refined => "the same scheme with cells and steps that tend to 0",
        Reference::LongWaves => {
            "long waves of the same scheme, as its cells or steps are no parameters"
        }
        Reference::Unpaired => {
            "long waves of the same scheme, as none of smaller cells and steps could be told to be the same waves"
        }
    };
    let _ = writeln!(out, "  compared with {reference}");
    for (n, text) in [
        (found.still, "stand still at all wavelengths"),
        (
            found.irregular,
            "follow no power of the wave number when they are long, or oscillate at some lengths and only decay at \
             others, and are not compared",
        ),
        (
            found.unresolved,
            "are not resolved in time: even long ones have a quarter of a period in a step, or more",
        ),
        (
            found.spurious,
            "are none of the equations: even long ones have a quarter of a period in a step, or more",
        ),
    ] {
        if n > 0 {
            let _ = writeln!(
                out,
                "  {n} kind{} of waves {text}",
                if n == 1 { "" } else { "s" }
            );
        }
    }
    for kind in &found.kinds {
        kind_table(out, found, kind);
    }
}

fn kind_table(out: &mut String, found: &Dispersion, kind: &Kind) {
    let coefficients: Vec<String> = kind
        .coefficients
        .iter()
        .map(|c| significant(*c, 6))
        .collect();
    let values = match coefficients.iter().all(|c| *c == coefficients[0]) {
        true => coefficients[0].clone(),
        false => {
            let named = found.directions.iter().zip(&coefficients);
            let list: Vec<String> = named
                .map(|(d, c)| format!("{c} along {}", d.name))
                .collect();
            list.join(", ")
        }
    };
    let title = match (kind.moves, kind.power) {
        (true, 1) => format!("waves of speed {values}"),
        (true, 0) => {
            format!("oscillation with the frequency {values} (radians per time) for long waves")
        }
        (true, p) => format!("waves with frequencies {values} k^{p}"),
        (false, 0) => format!("decay with the rate {values} for long waves"),
        (false, p) => format!("decay with the rate {values} k^{p}"),
    };
    let count = match kind.count {
        1 => String::new(),
        n => format!(", {n} kinds"),
    };
    let quantity = match kind.moves {
        true => "phase velocity",
        false => "rate of decay",
    };
    let _ = writeln!(
        out,
        "\n  {title}{count}: {quantity} over that of the equations"
    );
    let mut columns: Vec<Vec<String>> = vec![vec!["points per wavelength".to_owned()]];
    let longest = kind.table.iter().max_by_key(|t| t.len());
    let points: Vec<f64> = longest.map_or(Vec::new(), |t| t.iter().map(|s| s.points).collect());
    columns[0].extend(points.iter().map(|p| significant(*p, 4)));
    let at = |table: &[Sample], p: f64| table.iter().find(|s| (s.points - p).abs() < 1e-6).copied();
    for (direction, table) in found.directions.iter().zip(&kind.table) {
        let mut column = vec![direction.name.clone()];
        // Along a direction in which waves stand there is no phase velocity.
        let none = if table.is_empty() { "-" } else { "" };
        column.extend(
            points
                .iter()
                .map(|p| at(table, *p).map_or(none.to_owned(), |s| format!("{:.6}", s.ratio))),
        );
        columns.push(column);
    }
    if kind.table.len() > 1 {
        let mut column = vec!["spread".to_owned()];
        column.extend(points.iter().map(|p| {
            let ratios = kind.table.iter().filter_map(|t| at(t, *p)).map(|s| s.ratio);
            let (lo, hi) = ratios.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), r| {
                (l.min(r), h.max(r))
            });
            format!("{:.6}", hi - lo)
        }));
        columns.push(column);
    }
    let damped = kind
        .table
        .iter()
        .flatten()
        .any(|s| (s.remains - 1.0).abs() > 1e-6);
    if damped {
        let mut column = vec!["remains per period".to_owned()];
        column.extend(points.iter().map(|p| {
            let parts = kind
                .table
                .iter()
                .filter_map(|t| at(t, *p))
                .map(|s| s.remains);
            let least = parts.fold(f64::INFINITY, |a, b| {
                if (b - 1.0).abs() > (a - 1.0).abs() || a.is_infinite() {
                    b
                } else {
                    a
                }
            });
            format!("{least:.6}")
        }));
        columns.push(column);
    }
    let rows: Vec<Vec<String>> = (0..columns[0].len())
        .map(|i| columns.iter().map(|c| c[i].clone()).collect())
        .collect();
    out.push_str(&table(&vec![Set::Right; columns.len()], &rows));
}

/// The same as an entry of the report.
pub(super) fn json(found: &Dispersion) -> Value {
    let order = |order: Order| match order {
        Order::Power(p) => json!(p),
        Order::Exact => json!("exact"),
        Order::Unknown => Value::Null,
    };
    let sample = |s: &Sample| json!({ "points": s.points, "ratio": s.ratio, "remains_per_period": s.remains });
    let kind = |kind: &Kind| {
        let table = |tables: &[Vec<Sample>]| -> Vec<Value> {
            let named = found.directions.iter().zip(tables);
            named
                .map(|(d, t)| json!({ "direction": d.name, "samples": t.iter().map(sample).collect::<Vec<_>>() }))
                .collect()
        };
        let around = torre_compiler::analysis::AROUND.iter().zip(&kind.around);
        json!({
            "kinds": kind.count,
            "moves": kind.moves,
            "power": kind.power,
            "coefficients": kind.coefficients,
            "table": table(&kind.table),
            "curves": table(&kind.curves),
            "anisotropy": around.map(|(points, list)| json!({
                "points": points,
                "degrees": list.iter().map(|(a, _)| *a).collect::<Vec<f64>>(),
                "ratio": list.iter().map(|(_, r)| *r).collect::<Vec<f64>>(),
            })).collect::<Vec<Value>>(),
        })
    };
    json!({
        "order_in_space": order(found.in_space),
        "order_in_time": order(found.in_time),
        "order_in_both_together": found.higher_together().map(order),
        "compared_with": match found.reference {
            Reference::Refined => "refined lattices",
            Reference::LongWaves | Reference::Unpaired => "long waves",
        },
        "wavelengths_in_cells_of": found.cell,
        "standing_kinds": found.still,
        "irregular_kinds": found.irregular,
        "unresolved_kinds": found.unresolved,
        "spurious_kinds": found.spurious,
        "waves": found.kinds.iter().map(kind).collect::<Vec<Value>>(),
    })
}
