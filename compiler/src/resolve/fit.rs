//! Whether a calculation fits into memory.

use super::Options;
use super::codes;
use super::report::{Outcome, Place};
use super::resolver::Resolver;
use crate::layout::Layout;
use crate::scheme::{Precision, Scheme};

impl Resolver<'_> {
    pub fn check_memory(
        &mut self,
        scheme: &Scheme,
        place: &Place,
        options: &Options,
    ) -> Outcome<()> {
        let needed = Layout::new(scheme).map(|l| l.bytes());
        let d = match (needed, options.memory) {
            (Ok(needed), Some(limit)) if needed > limit => {
                let smaller = smaller_domain(scheme, needed, limit);
                let mut hints = Vec::new();
                if scheme.precision == Precision::F64 && needed / 2 <= limit {
                    hints.push("`--precision f32` needs half".to_string());
                }
                if let Some(domain) = smaller {
                    hints.push(format!("`--set domain={domain}` fits"));
                }
                let mut d = self.error(
                    codes::MEMORY,
                    format!(
                        "this needs {} of memory, but there are {}",
                        bytes(needed),
                        bytes(limit)
                    ),
                    place,
                );
                d.labels[0].text = format!("{} bytes per cell", scheme.bytes_per_cell());
                if !hints.is_empty() {
                    d = d.hint(hints.join(", "));
                }
                d
            }
            (Ok(_), _) => return Ok(()),
            (Err(_), _) => self
                .error(
                    codes::MEMORY,
                    "this needs more memory than can be addressed",
                    place,
                )
                .hint("use a smaller domain"),
        };
        self.fail(d)
    }
}

/// A domain of the same form that fits.
fn smaller_domain(scheme: &Scheme, needed: u64, limit: u64) -> Option<String> {
    let mut smaller = scheme.clone();
    let ratio = limit as f64 / needed as f64;
    let mut scale = ratio.powf(1.0 / scheme.grid.dimensions() as f64);
    // Ghosts and padding around the domain prevent an exact answer.
    for _ in 0..100 {
        let mut cells = Vec::new();
        for axis in scheme.grid.present() {
            let n = (scheme.grid.cells[axis] as f64 * scale) as i64;
            if n < 1 {
                return None;
            }
            smaller.grid.cells[axis] = n;
            cells.push(n.to_string());
        }
        if Layout::new(&smaller).is_ok_and(|l| l.bytes() <= limit) {
            return Some(cells.join("x"));
        }
        scale *= 0.98;
    }
    None
}

/// `1.5 GB`
fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1000 {
        return format!("{n} bytes");
    }
    let mut value = n as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}
