//! What a level says once.

use super::{Reader, Result};
use torre_grammar::ast::{Name, ScheduleClause, ScheduleLevel};
use torre_grammar::source::Span;

/// The clause that counts over all levels.
const HEIGHT: &str = "height";

impl Reader<'_> {
    /// Refuses axes, sizes and clauses that a level names again: one of them would be void.
    pub(super) fn once(&self, level: &ScheduleLevel) -> Result<()> {
        let name = |name: &'_ Name| (name.node.clone(), name.span);
        self.differ(level.axes.iter().map(name))?;
        let sizes = level.shape.args.iter().filter_map(|arg| arg.name.as_ref());
        self.differ(sizes.map(name))?;
        let clauses = level.clauses.iter().map(|clause| match clause {
            ScheduleClause::Lean { axis, .. } => ("lean".to_string(), axis.span),
            ScheduleClause::Word { word, .. } => name(word),
        });
        self.differ(clauses.filter(|(word, _)| word != HEIGHT))
    }

    fn differ(&self, words: impl Iterator<Item = (String, Span)>) -> Result<()> {
        let mut earlier: Vec<String> = Vec::new();
        for (word, span) in words {
            if earlier.contains(&word) {
                return Err(self.error(span, format!("`{word}` is given twice"), "here"));
            }
            earlier.push(word);
        }
        Ok(())
    }
}
