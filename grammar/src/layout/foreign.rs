//! Characters of other languages and of typesetting.

/// The way in which Torre writes what a character means elsewhere.
pub fn hint(character: char) -> Option<&'static str> {
    Some(match character {
        '−' | '–' | '—' => "write `-`",
        '×' | '·' | '∙' | '⋅' => "write `*`, or `x` between the sizes of a domain",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `!=`",
        '²' | '³' => "write `^2` or `^3`",
        'π' => "write `pi`",
        '√' => "write `sqrt(...)`",
        '?' => "a choice is written `if x < 3 then 1 else 0`",
        '%' => "the rest of a division is written `a - b * floor(a / b)`",
        '“' | '”' | '„' => "strings are in straight double quotes",
        '\u{a0}' | '\u{2000}'..='\u{200b}' => "replace it by an ordinary space",
        c if c.is_alphabetic() => "names are made of ASCII letters, digits and `_`",
        _ => return None,
    })
}
