//! Words of texts.

use torre_grammar::words::Count;

#[test]
fn words_are_counted_with_the_brackets_behind_them() {
    for (text, words, closed) in [
        ("", 0, 0),
        ("u@next = 2 * u - 1.5e-3*(a, b)", 7, 0),
        ("[+1/2, 0]", 3, 1),
        ("256x128 x 4", 5, 0),
        ("1..x2, \"a b.npy\"", 3, 0),
        ("std::wave::{a, b}", 4, 1),
        ("f(g(a), (b + [c])", 5, 1),
        ("f(a)(b)", 3, 1),
        ("a and (b)", 3, 0),
    ] {
        let count = Count::of(text);
        assert_eq!((count.words, count.closed), (words, closed), "{text}");
    }
}
