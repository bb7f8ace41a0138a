//! The tables of a calculation as C.

use super::expr::number;
use std::fmt::{Result, Write};
use std::sync::Arc;
use torre_compiler::host::HostExpr;
use torre_compiler::problem::{Problem, StaticValue};
use torre_compiler::scheme::Scheme;
use torre_compiler::table::Table;

/// Every table that the host evaluates, once.
pub fn tables(scheme: &Scheme, problem: &Problem) -> Vec<Arc<Table>> {
    let coefs = scheme.coefs.iter().map(|c| &c.value);
    let init = problem.init.iter().filter_map(|i| match &i.value {
        StaticValue::Expr(e) => Some(e),
        StaticValue::File(_) => None,
    });
    let sources = problem
        .sources
        .iter()
        .flat_map(|s| [&s.profile, &s.wave].into_iter().chain(&s.condition));
    let mut found: Vec<Arc<Table>> = Vec::new();
    for e in coefs.chain(init).chain(sources) {
        e.any(&mut |e| {
            if let HostExpr::Table(table, _) = e
                && !found.contains(table)
            {
                found.push(table.clone());
            }
            false
        });
    }
    found
}

/// The arrays of tables and the function that reads them.
pub fn print(out: &mut String, p: &str, tables: &[Arc<Table>]) -> Result {
    if tables.is_empty() {
        return Ok(());
    }
    writeln!(out, "/* Tables: each argument with its value. */")?;
    for (index, table) in tables.iter().enumerate() {
        let points = table.points();
        writeln!(
            out,
            "static const double {p}_table{index}[{}] = {{",
            2 * points.len()
        )?;
        for line in points.chunks(4) {
            let pairs = line
                .iter()
                .map(|point| format!("{}, {},", number(point.at), number(point.value)));
            writeln!(out, "  {}", pairs.collect::<Vec<_>>().join(" "))?;
        }
        writeln!(out, "}};")?;
    }
    write!(
        out,
        "/* Linear between the points; `below` and `above` beyond the ends. */\n\
         static inline double {p}_table(const double *points, int64_t n, double below, double above, double x) {{\n\
         \x20 const double *end = points + 2 * (n - 1);\n\
         \x20 int64_t low = 0, high = n - 1;\n\
         \x20 if (x != x) return x;\n\
         \x20 if (x < points[0]) return below;\n\
         \x20 if (x >= end[0]) return x > end[0] ? above : end[1];\n\
         \x20 while (high - low > 1) {{\n\
         \x20   int64_t middle = low + (high - low) / 2;\n\
         \x20   if (points[2 * middle] <= x) low = middle; else high = middle;\n\
         \x20 }}\n\
         \x20 points += 2 * low;\n\
         \x20 return points[1] + {p}_mul(points[3] - points[1], (x - points[0]) / (points[2] - points[0]));\n\
         }}\n\n"
    )
}

/// The value of a table at an argument.
pub fn call(p: &str, tables: &[Arc<Table>], table: &Arc<Table>, argument: &str) -> String {
    let index = tables.iter().position(|t| t == table).unwrap_or(0);
    let points = table.points();
    let end = |value: Option<&f64>| number(table.outside().or(value.copied()).unwrap_or(f64::NAN));
    let below = end(points.first().map(|p| &p.value));
    let above = end(points.last().map(|p| &p.value));
    let n = points.len();
    format!("{p}_table({p}_table{index}, {n}, {below}, {above}, {argument})")
}
