//! `torre explain`: the chapter on diagnostics, section by section, as plain text.

use crate::args;
use crate::codes;
use crate::failure::{Exit, Failure};
use crate::write;
use torre_grammar::diag::Diagnostic;

/// The chapter, as it is in the book.
const CHAPTER: &str = include_str!("../../docs/src/diagnostics.md");

/// The module that the programs of the sections on problems use.
const MODULE: &str = "`string.torre`:\n";

pub fn explain(args: &args::Explain) -> Result<(), Failure> {
    let Some(code) = &args.code else {
        return write::result(&list());
    };
    match section(&code.to_uppercase()) {
        Some(text) => write::result(&text),
        None => Err(Failure::new(
            Exit::Usage,
            Diagnostic::error(codes::OPTIONS, format!("there is no code `{code}`"))
                .hint("`torre explain` lists all codes"),
        )),
    }
}

/// The headings of all sections: `E0001: something else was expected`.
fn headings() -> impl Iterator<Item = &'static str> {
    CHAPTER.lines().filter_map(|line| line.strip_prefix("### "))
}

fn list() -> String {
    headings().map(|heading| format!("{heading}\n")).collect()
}

/// The section of the chapter about a code.
fn section(code: &str) -> Option<String> {
    let heading = headings().find(|h| h.split(':').next() == Some(code))?;
    let (_, rest) = CHAPTER.split_once(&format!("\n### {heading}\n"))?;
    let end = ["\n### ", "\n## "]
        .iter()
        .filter_map(|next| rest.find(next));
    let body = rest.get(..end.min().unwrap_or(rest.len()))?;
    let mut text = format!("{heading}\n\n{}", plain(body.trim()));
    if body.contains("string::string")
        && let Some((_, module)) = CHAPTER.split_once(MODULE)
    {
        let end = module.find("\n```\n").map_or(module.len(), |i| i + 5);
        text.push_str("\nThe module `string.torre`:\n");
        text.push_str(&plain(module.get(..end)?));
    }
    Some(text)
}

/// Markdown as it reads on a terminal: code is indented, links are their texts.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            if !text.is_empty() && !text.ends_with("\n\n") {
                text.push('\n');
            }
            continue;
        }
        match (is_code, line.strip_prefix("> ")) {
            (true, _) => text.push_str(&format!("    {line}")),
            (false, Some(message)) => text.push_str(&format!("The message: {message}")),
            (false, None) => text.push_str(&unlinked(line)),
        }
        text.push('\n');
    }
    text
}

/// `[text](place)` becomes `text`.
fn unlinked(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, label, after)) = next_link(rest) {
        text.push_str(before);
        text.push_str(label);
        rest = after;
    }
    text + rest
}

/// The text before a link, its own text, and the text behind it.
fn next_link(line: &str) -> Option<(&str, &str, &str)> {
    let middle = line.find("](")?;
    let start = line[..middle].rfind('[')?;
    let end = middle + line[middle..].find(')')?;
    Some((&line[..start], &line[start + 1..middle], &line[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::resolve::codes as resolve;

    #[test]
    fn every_code_is_explained() {
        let known = resolve::TABLE.iter().map(|(code, _)| *code);
        for code in known.chain(codes::ALL) {
            let text = section(code.0).unwrap_or_else(|| panic!("{} has no section", code.0));
            assert!(text.lines().count() > 1, "{text}");
            for trace in ["```", "](", ".md", "### "] {
                assert!(!text.contains(trace), "{} has `{trace}`:\n{text}", code.0);
            }
        }
        assert_eq!(section("E9999"), None);
        assert_eq!(section("E00"), None);
    }

    #[test]
    fn links_are_their_texts() {
        assert_eq!(
            unlinked("see [a b](c.md#d) and [e](f.md), or [1/2, 0]"),
            "see a b and e, or [1/2, 0]"
        );
    }

    #[test]
    fn sections_with_a_module_show_it() {
        let text = section("E0504").expect("it is there");
        assert!(
            text.contains("\n    domain 100 x 100\n") || text.contains("      domain 100 x 100")
        );
        assert!(text.contains("    scheme string {"), "{text}");
        let text = section("E0302").expect("it is there");
        assert!(!text.contains("string.torre"), "{text}");
    }
}
