//! Names of schedules that are written out: the text itself, with the chosen sizes in it.

use super::{Draft, Reader};
use crate::schedule::Title;
use crate::schedule::template::{Gap, Size};
use torre_grammar::ast;
use torre_grammar::source::Span;

impl Reader<'_> {
    /// Adds a size to a draft, whose name ends before its value; returns its index.
    pub(super) fn add(
        &self,
        size: Size,
        value: &ast::ScheduleValue,
        name: Span,
        out: &mut Draft,
    ) -> usize {
        let index = out.sizes.len();
        let open = match value {
            ast::ScheduleValue::Expr(_) => None,
            ast::ScheduleValue::Range(a, b) => Some(Span {
                start: a.span.start,
                end: b.span.end,
            }),
            ast::ScheduleValue::Auto => self.word_after(name, "auto"),
        };
        out.open.extend(open.map(|span| (span, index)));
        out.sizes.push(size);
        index
    }

    /// The place of the first such word behind a place.
    fn word_after(&self, place: Span, word: &str) -> Option<Span> {
        let end = place.end as usize;
        let start = end + self.source.text().get(end..)?.find(word)?;
        Some(Span::new(start, start + word.len()))
    }

    /// The levels of a schedule, as they are written, with a gap for each size that is chosen.
    pub(super) fn written_out(&self, schedule: &ast::Schedule, draft: &Draft) -> Title {
        let text = |from: u32, to: u32| {
            let text = self.source.text().get(from as usize..to as usize);
            let text = text.unwrap_or_default();
            // A statement may be written on several lines.
            let mut lines = text.split('\n');
            let first = lines.next().unwrap_or_default().to_owned();
            lines.fold(first, |all, line| {
                format!("{} {}", all.trim_end(), line.trim_start())
            })
        };
        let left_out = draft.height.filter(|&height| !draft.sizes[height].is_given);
        let cuts = |level: &ast::ScheduleLevel| level.shape.name.node != "span";
        let first_cut = schedule.levels.iter().position(|l| cuts(&l.kind.node));
        let mut gaps: Vec<Gap> = Vec::new();
        let mut before = String::new();
        for (number, statement) in schedule.levels.iter().enumerate() {
            if number > 0 {
                before.push_str("; ");
            }
            let span = statement.kind.span;
            let mut from = span.start;
            let inside =
                |(open, _): &&(Span, usize)| span.start <= open.start && open.end <= span.end;
            let mut open: Vec<&(Span, usize)> = draft.open.iter().filter(inside).collect();
            open.sort_by_key(|(open, _)| open.start);
            for (open, size) in open {
                before.push_str(&text(from, open.start));
                gaps.push(Gap {
                    before: std::mem::take(&mut before),
                    word: "",
                    size: *size,
                });
                from = open.end;
            }
            before.push_str(&text(from, span.end));
            if let Some(size) = left_out.filter(|_| first_cut == Some(number)) {
                gaps.push(Gap {
                    before: std::mem::take(&mut before),
                    word: " height ",
                    size,
                });
            }
        }
        Title::Levels {
            gaps,
            behind: before,
        }
    }
}
