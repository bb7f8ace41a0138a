//! Which known name was meant.

/// Names longer than this are not compared.
const LONGEST: usize = 64;
/// So many candidates are looked at.
const CANDIDATES: usize = 1_000;

/// The candidate nearest to `name`, if one is near enough. The first of several wins.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > LONGEST {
        return None;
    }
    let allowed = 1 + length / 4;
    candidates
        .into_iter()
        .take(CANDIDATES)
        .filter(|c| *c != name && c.len() <= LONGEST)
        .map(|c| (distance(name, c), c))
        .filter(|&(d, c)| d <= allowed && d < length.max(c.chars().count()))
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// A hint that names the nearest candidate.
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    suggest(name, candidates).map(|c| format!("did you mean `{c}`?"))
}

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment); a change of case costs one in all.
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
    }

    #[test]
    fn distances() {
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
