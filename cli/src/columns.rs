//! Tables for people: columns that line up.

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    Left,
    Right,
}

/// The rows in columns two blanks apart, each line behind an indent of two; the first row is the head.
pub fn table<R: AsRef<[String]>>(set: &[Set], rows: &[R]) -> String {
    let rows = || rows.iter().map(AsRef::as_ref);
    let width = |i: usize| rows().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..set.len()).map(width).collect();
    let mut out = String::new();
    for row in rows() {
        let cells = row.iter().zip(&widths).zip(set);
        let line: Vec<String> = cells
            .map(|((cell, width), set)| match set {
                Set::Left => format!("{cell:<width$}"),
                Set::Right => format!("{cell:>width$}"),
            })
            .collect();
        out.push_str("  ");
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "rate"], ["±long", "7"]].map(|row| row.map(str::to_owned));
        assert_eq!(
            table(&[Set::Left, Set::Right], &rows),
            "  a      rate\n  ±long     7\n"
        );
    }
}
