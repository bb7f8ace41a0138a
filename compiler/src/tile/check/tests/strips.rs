//! The tiles of a strip, all of them and the first ones.

use super::{Case, seeds};
use crate::tile::Strips;

#[test]
fn the_first_tiles_of_a_strip_are_those_of_the_whole_strip() {
    let mut longest = 0;
    for seed in seeds() {
        let program = Case::new(seed).lower();
        let strips = Strips::new(&program, 3);
        for strip in 0..strips.len() {
            let all = strips.of_strip(&program, strip);
            longest = longest.max(all.len());
            for most in [0, 1, 3, all.len(), all.len() + 1] {
                let first = strips.first_of_strip(&program, strip, most);
                assert_eq!(first, all[..most.min(all.len())], "seed {seed}: {most}");
            }
        }
    }
    assert!(longest > 3, "{longest}");
}
