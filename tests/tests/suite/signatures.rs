//! Calls are clear by themselves: a flag or a tuple among the arguments of a function has no meaning at the call.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::path::{Path, PathBuf};

/// Parameters that may be of type `bool`: the condition of `rule`, which is tested, and `quiet` of the command line.
const FLAGS: usize = 2;

/// The findings in signatures, by the names of functions.
#[derive(Default)]
struct Found {
    flags: Vec<String>,
    /// Parameters that are taken apart into several, or whose type is a tuple.
    tuples: Vec<String>,
}

fn is_punct(tree: &TokenTree, wanted: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_tuple(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
            group.stream().into_iter().any(|t| is_punct(&t, ','))
        }
        _ => false,
    }
}

/// The parameters of a function: commas between `<` and `>` separate none.
fn parameters(all: TokenStream) -> Vec<Vec<TokenTree>> {
    let (mut found, mut depth) = (vec![Vec::new()], 0);
    let mut before = None;
    for tree in all {
        match &tree {
            tree if is_punct(tree, '<') => depth += 1,
            tree if is_punct(tree, '>') && before != Some('-') => depth -= 1,
            _ => {}
        }
        before = match &tree {
            TokenTree::Punct(punct) => Some(punct.as_char()),
            _ => None,
        };
        match depth == 0 && is_punct(&tree, ',') {
            true => found.push(Vec::new()),
            false => found.last_mut().expect("a parameter").push(tree),
        }
    }
    found
}

impl Found {
    fn read(&mut self, tokens: TokenStream, file: &Path) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            if let TokenTree::Group(group) = tree {
                self.read(group.stream(), file);
            }
            let (TokenTree::Ident(word), Some(TokenTree::Ident(name))) = (tree, trees.get(at + 1))
            else {
                continue;
            };
            let list = trees[at + 1..].iter().find_map(|tree| match tree {
                TokenTree::Group(g) if g.delimiter() == Delimiter::Parenthesis => Some(g.stream()),
                _ => None,
            });
            if let (true, Some(list)) = (word == "fn", list) {
                let place = format!("{}: {name}", file.display());
                parameters(list).iter().for_each(|p| self.look(p, &place));
            }
        }
    }

    fn look(&mut self, parameter: &[TokenTree], place: &str) {
        let is_single = |at: usize| {
            let beside = |at: usize| parameter.get(at).is_some_and(|tree| is_punct(tree, ':'));
            !beside(at + 1) && !at.checked_sub(1).is_some_and(beside)
        };
        let colon = (0..parameter.len()).find(|&at| is_punct(&parameter[at], ':') && is_single(at));
        let Some(colon) = colon else { return };
        let (pattern, ty) = parameter.split_at(colon);
        // References count as the types to which they refer.
        let plain = |tree: &&TokenTree| {
            let word = tree.to_string();
            !matches!(word.as_str(), ":" | "&" | "'" | "mut" | "_" | "a")
        };
        let ty: Vec<&TokenTree> = ty.iter().filter(plain).collect();
        match ty.as_slice() {
            [TokenTree::Ident(name)] if name == "bool" => self.flags.push(place.to_owned()),
            [one] if is_tuple(one) => self.tuples.push(place.to_owned()),
            _ if pattern.first().is_some_and(is_tuple) => self.tuples.push(place.to_owned()),
            _ => {}
        }
    }
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn calls_are_clear() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in [
        "compiler", "runtime", "grammar", "cli", "trust", "ptx", "bench", "tests",
    ] {
        for folder in ["src", "tests"] {
            let folder = root.join(name).join(folder);
            if folder.is_dir() {
                sources(&folder, &mut files);
            }
        }
    }
    assert!(files.len() > 300, "{}", files.len());
    let mut found = Found::default();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a text");
        let tokens = text.parse().expect("Rust");
        found.read(tokens, file.strip_prefix(&root).unwrap_or(file));
    }
    assert!(found.tuples.is_empty(), "{:#?}", found.tuples);
    assert!(found.flags.len() <= FLAGS, "{:#?}", found.flags);
}

#[test]
fn flags_and_tuples_are_found() {
    let mut found = Found::default();
    let text = "impl A { fn f<'a>(&self, a: bool, (b, c): (u32, &'a B<C, D>), e: impl Fn(u32, bool) -> bool) {} }
        fn g(pair: &(i64, i64), list: &[(u32, u32)], C { d, e }: C, f: Option<bool>, g: x::Y) -> (u32, bool) {}";
    found.read(text.parse().expect("Rust"), Path::new("a.rs"));
    assert_eq!(found.flags, ["a.rs: f"]);
    assert_eq!(found.tuples, ["a.rs: f", "a.rs: g"]);
}
