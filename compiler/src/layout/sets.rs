//! Distances between long rows that spread their parts over the sets of a cache.
//!
//! A tile on two axes has a part of each of some dozen rows, and walks through all of them stage by stage. Lines of a
//! cache whose addresses differ by a multiple of [`SETS`] lines share a set, which holds 8 to 16 of them. Rows of 8192
//! values of four bytes have a distance of 513 lines, so that every fourth row begins four lines behind the same set:
//! three components need 47 lines of a set then, where 6 would do.

/// Sets of a level-2 cache: 1 MB of 8 ways, or 2 MB of 16. In caches with half of them, rows are spread as well.
const SETS: usize = 2048;
/// Rows of a tile, and lines of each.
const ROWS: usize = 64;
const LINES: usize = 64;
/// Lines of a component's tile that share a set if they are spread evenly, and the number that is good enough.
const GOOD: u16 = 3;
/// A row grows by at most this part of its length.
const PART: i64 = 16;

/// The least odd number of lines, from an odd number on, with which rows are spread; where none is within the bound,
/// the number with the least load.
pub(super) fn spread(lines: i64) -> i64 {
    // Distances repeat their loads after as many lines as there are sets.
    let most = lines.saturating_add((lines / PART).min(SETS as i64));
    let mut best = (u16::MAX, lines);
    for lines in (lines..=most).step_by(2) {
        let load = load(lines);
        if load < best.0 {
            best = (load, lines);
        }
        if best.0 <= GOOD {
            break;
        }
    }
    best.1
}

/// The most lines of a tile that share a set, for a distance between rows in lines.
fn load(lines: i64) -> u16 {
    let distance = lines.rem_euclid(SETS as i64) as usize;
    let each = usize::try_from(lines).map_or(LINES, |lines| lines.min(LINES));
    let mut sets = [0u16; SETS];
    for row in 0..ROWS {
        for line in 0..each {
            sets[(row * distance + line) % SETS] += 1;
        }
    }
    sets.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_power_of_two_are_spread() {
        for lines in [257, 513, 1025, 2049, 4097, 65537] {
            let found = spread(lines);
            assert!(load(lines) > 6 && load(found) <= GOOD, "{lines}: {found}");
            assert!(
                found % 2 == 1 && found <= lines + lines / PART,
                "{lines}: {found}"
            );
        }
    }

    #[test]
    fn short_rows_and_rows_that_are_spread_stay() {
        for lines in [1, 3, 17, 33, 65, 193, 529] {
            assert_eq!(spread(lines), lines);
        }
    }
}
