//! How many schedules a text may stand for.

use super::{Reader, Result};
use crate::schedule::template::Template;
use torre_grammar::ast;

/// Combinations of sizes that a schedule leaves open, at most: the rate of each is predicted.
const MOST_CHOICES: usize = 1 << 14;

impl Reader<'_> {
    /// Refuses schedules that leave too much open.
    pub(super) fn few(&self, template: &Template, schedule: &ast::Schedule) -> Result<()> {
        let Template::Tiled(tiled) = template else {
            return Ok(());
        };
        let counts = tiled.sizes.iter().map(|size| size.values.len());
        let choices = counts.fold(1, usize::saturating_mul);
        if choices <= MOST_CHOICES {
            return Ok(());
        }
        let open = tiled.sizes.iter().filter(|size| size.values.len() > 1);
        let names: Vec<&str> = open.map(|size| size.name.as_str()).collect();
        let message =
            format!("this schedule leaves more than {MOST_CHOICES} combinations of sizes open");
        let hint = format!(
            "give numbers or shorter ranges for some of {}",
            names.join(", ")
        );
        Err(self
            .error(schedule.name.span, message, "too much is open")
            .hint(hint))
    }
}
