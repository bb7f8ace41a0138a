//! Which known name was meant.

/// Names longer than this are not compared.
const LONGEST: usize = 64;
/// The most candidates that are looked at.
const CANDIDATES: usize = 1_000;

/// The candidate nearest to `name`, if one is near enough. The first of several wins.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    within(name, name.chars().count() / 4, candidates)
}

/// The candidate that differs from `name` by one slip, in a word of four letters or more.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    within(name, (name.chars().count() / 4).min(1), candidates)
}

/// Short words differ from each other by a letter or two without being meant, as `dt` and `dx` or `pml` and `pmc`:
/// among short words, only other cases and swapped letters count.
fn within<'a>(
    name: &str,
    allowed: usize,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = name.chars().count();
    if length > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .take(CANDIDATES)
        .filter(|c| *c != name && c.len() <= LONGEST)
        .filter(|c| allowed > 0 || has_same_letters(name, c))
        .map(|c| (distance(name, c), c))
        .filter(|&(d, _)| d <= allowed.max(1))
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// Whether two words of two letters or more have the same letters, in any case and order.
fn has_same_letters(a: &str, b: &str) -> bool {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.to_lowercase().chars().collect();
        letters.sort_unstable();
        letters
    };
    a.len() > 1 && letters(a) == letters(b)
}

/// A hint that names the nearest candidate.
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    suggest(name, candidates).map(|c| format!("did you mean `{c}`?"))
}

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment); a change of case costs one
/// in all.
fn distance(a: &str, b: &str) -> usize {
    if a.eq_ignore_ascii_case(b) {
        return 1;
    }
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j - 1] + changed).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        assert_eq!(suggest("crul", ["curl", "div"]), Some("curl"));
        assert_eq!(suggest("Eps", ["eps", "E"]), Some("eps"));
        assert_eq!(suggest("velocity", ["pressure"]), None);
        assert_eq!(suggest("q", ["p", "u"]), None);
        assert_eq!(suggest("dampnig", ["damping"]), Some("damping"));
        assert_eq!(suggest("esp", ["eps"]), Some("eps"));
    }

    #[test]
    fn short_names_are_not_taken_for_others() {
        for (name, other) in [
            ("pml", "pmc"),
            ("cpml", "pmc"),
            ("dx", "dt"),
            ("c0", "c"),
            ("hy", "hz"),
            ("e", "E0"),
            ("curl", "u"),
        ] {
            assert_eq!(suggest(name, [other]), None, "{name}");
        }
        assert_eq!(suggest("e", ["E"]), None, "a letter alone says too little");
    }

    #[test]
    fn distances() {
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
