//! Statements that run ahead of the text, as another one reads their values as `u@next`.

use super::codes;
use super::graph::{LevelKey, Node};
use super::order::Statement;
use super::resolver::Resolver;
use crate::distinct::distinct;
use crate::scheme::ComponentId;
use torre_grammar::diag::Diagnostic;

impl Resolver<'_> {
    /// Warns where a statement runs before another one that stands above it and reads or changes the same values. A
    /// statement that reads a next value says itself that it runs after the statements that compute it. `needs` are the
    /// statements that each one runs after, and `sequence` is the order in which all run.
    pub(super) fn warn_of_statements_ahead(
        &mut self,
        list: &[Statement],
        needs: &[Vec<usize>],
        sequence: &[usize],
    ) {
        if sequence.is_sorted() {
            return;
        }
        let count = self.frame.components.len();
        // Per component, the statements so far that read it and that advance it; their places in the text.
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut makers: Vec<Vec<usize>> = vec![Vec::new(); count];
        for &number in sequence {
            let statement = &list[number];
            let read = self.older_read_by(statement);
            let targets = distinct(statement.targets());
            let of = |lists: &[Vec<usize>], components: &[ComponentId]| -> Vec<usize> {
                let lists = components.iter().map(|c| &lists[c.index()]);
                lists.flatten().copied().collect()
            };
            let mut earlier = of(&makers, &read);
            earlier.extend(of(&makers, &targets));
            earlier.extend(of(&readers, &targets));
            let below = earlier.into_iter().filter(|other| *other > number);
            if let Some(ahead) = below.min_by_key(|other| (needs[number].contains(other), *other))
                && !needs[number].contains(&ahead)
            {
                self.warn_ahead(&list[ahead], statement);
                return;
            }
            for c in read {
                readers[c.index()].push(number);
            }
            for c in targets {
                makers[c.index()].push(number);
            }
        }
    }

    /// The components of which a statement reads the newest value or the one before.
    fn older_read_by(&mut self, statement: &Statement) -> Vec<ComponentId> {
        let mut found = Vec::new();
        for advance in &statement.updates {
            self.graph.visit(advance.value.node, &mut |node| {
                if let Node::Field { component, level } = node
                    && level != Some(LevelKey::Next)
                {
                    found.push(component);
                }
            });
        }
        distinct(found)
    }

    fn warn_ahead(&mut self, ahead: &Statement, above: &Statement) {
        let name = |statement: &Statement| statement.place.text().unwrap_or("this").to_owned();
        let (ahead_name, above_name) = (name(ahead), name(above));
        let message = format!(
            "`{ahead_name}` is computed before `{above_name}`, which stands above it and reads or changes the same \
             values"
        );
        let d = Diagnostic::warning(codes::AHEAD, message)
            .at(
                &ahead.value.source,
                ahead.value.span,
                "runs first, as a statement reads its `@next`",
            )
            .at(&above.value.source, above.value.span, "runs after it")
            .hint("write the statements in the order in which they run");
        self.report.push(d);
    }
}
