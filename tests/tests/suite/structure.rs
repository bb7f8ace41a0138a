//! Files and folders have an order: the names that files take from each other make no circle.
//!
//! An arrow goes from a file to each file that defines a name which the first one uses. A name that a module only hands
//! on (`pub use`) leads to the file that defines it, and is no arrow of the module itself. Tests are left out.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Two files that belong together may know each other; circles of more have no beginning for a reader.
const MOST: usize = 2;

/// A module by its path from the root of the crate.
type Module = Vec<String>;

/// The visibility of a name that a module imports: for all (`pub use`), or for the module alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Private,
    Public,
}

/// A name that a file brings in or mentions by its path.
struct Import {
    path: Vec<String>,
    /// The name that it has here.
    name: String,
    visibility: Visibility,
}

/// The names that a file defines and uses.
#[derive(Default)]
struct File {
    defined: BTreeSet<String>,
    imports: Vec<Import>,
}

/// The files of a crate.
struct Crate {
    files: BTreeMap<Module, File>,
}

/// Arrows, with the names that are taken.
type Graph = BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>>;

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, into),
            false if path.extension().is_some_and(|e| e == "rs") => into.push(path),
            false => {}
        }
    }
}

fn ident(tree: Option<&TokenTree>) -> Option<String> {
    match tree? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_punct(tree: Option<&TokenTree>, wanted: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_path(trees: &[TokenTree], at: usize) -> bool {
    is_punct(trees.get(at), ':') && is_punct(trees.get(at + 1), ':')
}

/// The paths of a `use` from its first name on.
fn used(trees: &[TokenTree], prefix: &[String], visibility: Visibility, into: &mut Vec<Import>) {
    let (mut path, mut at, mut name) = (prefix.to_vec(), 0, None);
    while let Some(tree) = trees.get(at) {
        match tree {
            TokenTree::Ident(word) if word == "as" => {
                name = ident(trees.get(at + 1));
                at += 1;
            }
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == '*' => path.push("*".to_owned()),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|tree| is_punct(Some(tree), ',')) {
                    if !part.is_empty() {
                        used(part, &path, visibility, into);
                    }
                }
                return;
            }
            _ => {}
        }
        at += 1;
    }
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    into.push(Import {
        path,
        name,
        visibility,
    });
}

impl File {
    fn read(&mut self, tokens: TokenStream, children: &BTreeSet<String>) {
        const ITEMS: [&str; 8] = [
            "struct", "enum", "fn", "trait", "const", "static", "type", "union",
        ];
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut at, mut visibility) = (0, Visibility::Private);
        while at < trees.len() {
            let word = ident(trees.get(at));
            match (&trees[at], word.as_deref()) {
                (TokenTree::Punct(punct), _) if punct.as_char() == '#' => {
                    let attribute = trees.get(at + 1).map(|tree| tree.to_string());
                    let is_test = attribute
                        .is_some_and(|text| text.replace(' ', "").starts_with("[cfg(test)"));
                    at += 1;
                    if is_test {
                        // Up to the end of the item.
                        at += 1;
                        while at < trees.len() && !is_end(&trees[at]) {
                            at += 1;
                        }
                    }
                }
                (_, Some("pub")) => {
                    visibility = Visibility::Public;
                    if matches!(trees.get(at + 1), Some(TokenTree::Group(_))) {
                        at += 1;
                    }
                    at += 1;
                    continue;
                }
                (_, Some("use")) => {
                    let end = (at..trees.len()).find(|n| is_punct(trees.get(*n), ';'));
                    let end = end.unwrap_or(trees.len());
                    used(&trees[at + 1..end], &[], visibility, &mut self.imports);
                    at = end;
                }
                (_, Some(word)) => {
                    if ITEMS.contains(&word)
                        && let Some(name) = ident(trees.get(at + 1))
                    {
                        self.defined.insert(name);
                    }
                    if word == "macro_rules"
                        && let Some(name) = ident(trees.get(at + 2))
                    {
                        self.defined.insert(name);
                    }
                    let leads =
                        ["crate", "super", "self"].contains(&word) || children.contains(word);
                    let inside = at >= 2 && is_path(&trees, at - 2);
                    if leads && !inside && is_path(&trees, at + 1) {
                        let mut path = vec![word.to_owned()];
                        while is_path(&trees, at + 1)
                            && let Some(next) = ident(trees.get(at + 3))
                        {
                            path.push(next);
                            at += 3;
                        }
                        self.imports.push(Import {
                            path,
                            name: String::new(),
                            visibility: Visibility::Private,
                        });
                    }
                }
                (TokenTree::Group(group), _) => self.read(group.stream(), children),
                _ => {}
            }
            visibility = Visibility::Private;
            at += 1;
        }
    }
}

/// Whether an item ends here.
fn is_end(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        tree => is_punct(Some(tree), ';'),
    }
}

impl Crate {
    fn read(folder: &Path) -> Crate {
        let mut paths = Vec::new();
        sources(folder, &mut paths);
        let module = |path: &PathBuf| -> Module {
            let inner = path.strip_prefix(folder).expect("a file of the folder");
            let inner = inner.with_extension("");
            let mut parts: Module = inner
                .iter()
                .map(|p| p.to_string_lossy().into_owned())
                .collect();
            if let Some("lib" | "main" | "mod") = parts.last().map(String::as_str) {
                parts.pop();
            }
            parts
        };
        let modules: BTreeSet<Module> = paths.iter().map(module).collect();
        let mut files = BTreeMap::new();
        for path in &paths {
            let own = module(path);
            let children = modules
                .iter()
                .filter(|m| m.len() == own.len() + 1 && m.starts_with(&own))
                .filter_map(|m| m.last().cloned())
                .collect();
            let text = std::fs::read_to_string(path).expect("a source");
            let tokens = text.parse::<TokenStream>().expect("Rust");
            let mut file = File::default();
            file.read(tokens, &children);
            files.insert(own, file);
        }
        Crate { files }
    }

    /// The file that defines the item of a path in a module, or the last module on the way.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let mut rest = path.iter().map(String::as_str).peekable();
        let mut at = match *rest.peek()? {
            "crate" => {
                rest.next();
                Module::new()
            }
            "self" => {
                rest.next();
                from.clone()
            }
            "super" => {
                let mut at = from.clone();
                while rest.next_if_eq(&"super").is_some() {
                    at.pop();
                }
                at
            }
            first => {
                let mut child = from.clone();
                child.push(first.to_owned());
                self.files.contains_key(&child).then(|| from.clone())?
            }
        };
        for name in rest {
            let mut child = at.clone();
            child.push(name.to_owned());
            if self.files.contains_key(&child) {
                at = child;
                continue;
            }
            let file = self.files.get(&at)?;
            if depth == 0 || file.defined.contains(name) {
                return Some(at);
            }
            let handed = |wanted: &str| {
                let imports = file.imports.iter().filter(move |i| i.name == wanted);
                imports.filter(|i| i.path != path).collect::<Vec<_>>()
            };
            for import in handed(name) {
                if let Some(found) = self.resolve(&at, &import.path, depth - 1) {
                    return Some(found);
                }
            }
            for import in handed("*") {
                let found = self.resolve(&at, &import.path, depth - 1);
                let found = found.filter(|m| self.files[m].defined.contains(name));
                if found.is_some() {
                    return found;
                }
            }
            return Some(at);
        }
        Some(at)
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for (own, file) in &self.files {
            if own.iter().any(|part| part == "tests" || part == "testing") {
                continue;
            }
            let private = |import: &&Import| import.visibility == Visibility::Private;
            for import in file.imports.iter().filter(private) {
                if let Some(other) = self.resolve(own, &import.path, 12)
                    && other != *own
                {
                    let names = graph
                        .entry(own.clone())
                        .or_default()
                        .entry(other)
                        .or_default();
                    names.extend(import.path.last().cloned());
                }
            }
        }
        graph
    }

    /// The arrows between folders: a file whose modules lie in a folder belongs to that. Folders within each other are
    /// one house.
    fn folders(&self, graph: &Graph) -> Graph {
        let folder = |module: &Module| {
            let is_folder = |m: &Module| m.len() > module.len() && m.starts_with(module);
            let mut folder = module.clone();
            if !self.files.keys().any(is_folder) {
                folder.pop();
            }
            folder
        };
        let mut folders = Graph::new();
        for (from, arrows) in graph {
            for (to, names) in arrows {
                let (a, b) = (folder(from), folder(to));
                if !a.starts_with(&b) && !b.starts_with(&a) {
                    let all = folders.entry(a).or_default().entry(b).or_default();
                    all.extend(
                        names
                            .iter()
                            .map(|name| format!("{}: {name}", from.join("/"))),
                    );
                }
            }
        }
        folders
    }
}

/// All modules that can be reached from a module.
fn reached<'a>(graph: &'a Graph, from: &'a Module) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for to in graph.get(module).into_iter().flatten().map(|(to, _)| to) {
            if found.insert(to) {
                next.push(to);
            }
        }
    }
    found
}

/// The circles of more than `most` files, with the names that tie them.
fn circles(graph: &Graph, most: usize) -> Vec<String> {
    let reach: BTreeMap<_, _> = graph.keys().map(|m| (m, reached(graph, m))).collect();
    let meet = |a: &Module, b: &Module| {
        let leads =
            |from: &Module, to: &Module| reach.get(from).is_some_and(|all| all.contains(to));
        leads(a, b) && leads(b, a)
    };
    let mut shown = Vec::new();
    let mut known: BTreeSet<&Module> = BTreeSet::new();
    for module in graph.keys() {
        let circle: Vec<&Module> = graph.keys().filter(|other| meet(module, other)).collect();
        if circle.len() <= most || !known.insert(module) {
            continue;
        }
        known.extend(&circle);
        let mut text = String::new();
        for (from, to) in circle
            .iter()
            .flat_map(|a| circle.iter().map(move |b| (*a, *b)))
        {
            if let Some(names) = graph.get(from).and_then(|arrows| arrows.get(to)) {
                text += &format!(
                    "\n  {} takes {names:?} from {}",
                    from.join("/"),
                    to.join("/")
                );
            }
        }
        shown.push(text);
    }
    shown
}

fn crates() -> impl Iterator<Item = Crate> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = ["compiler", "runtime", "grammar", "cli", "trust"];
    names
        .into_iter()
        .map(move |name| Crate::read(&root.join(name).join("src")))
}

#[test]
fn files_import_each_other_in_no_circle() {
    let found: Vec<String> = crates().flat_map(|c| circles(&c.graph(), MOST)).collect();
    assert!(found.is_empty(), "circles of files:{}", found.join("\n"));
}

#[test]
fn folders_import_each_other_in_no_circle() {
    let found: Vec<String> = crates()
        .flat_map(|c| circles(&c.folders(&c.graph()), 1))
        .collect();
    assert!(found.is_empty(), "circles of folders:{}", found.join("\n"));
}

#[test]
fn circles_are_found() {
    let graph = |arrows: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in arrows {
            let module = |name: &str| vec![name.to_owned()];
            graph
                .entry(module(from))
                .or_default()
                .entry(module(to))
                .or_default();
        }
        graph
    };
    let three = graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]);
    assert_eq!(circles(&three, 2).len(), 1);
    assert!(circles(&three, 3).is_empty());
    assert!(circles(&graph(&[("a", "b"), ("b", "c"), ("a", "c")]), 1).is_empty());
    let mut file = File::default();
    let text = "use super::a::{self, B as C}; pub use d::E; fn f() { crate::g::H::new() } #[cfg(test)] mod tests { \
        use super::x; }";
    file.read(text.parse().expect("Rust"), &BTreeSet::new());
    let paths: Vec<String> = file.imports.iter().map(|i| i.path.join("::")).collect();
    assert_eq!(
        paths,
        ["super::a::self", "super::a::B", "d::E", "crate::g::H::new"]
    );
    assert!(file.imports[2].visibility == Visibility::Public && file.defined.contains("f"));
}

/// Lines of documentation at which an example begins that would run.
fn examples(text: &str) -> Vec<usize> {
    let mut inside = false;
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_start();
        let doc = ["///", "//!"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let Some(fence) = doc.and_then(|doc| doc.trim().strip_prefix("```")) else {
            continue;
        };
        inside = !inside;
        if inside && fence != "text" {
            found.push(number);
        }
    }
    found
}

#[test]
fn libraries_without_tests_or_examples_have_none() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in [
        "bench", "cli", "compiler", "grammar", "ptx", "runtime", "tests", "trust",
    ] {
        let folder = root.join(name);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        // The lines of the sections with a head.
        let of = |head: &'static str| {
            let sections = manifest.split("\n[").filter(move |s| s.starts_with(head));
            sections.flat_map(str::lines)
        };
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for path in files {
            let text = std::fs::read_to_string(&path).expect("a source");
            let head = if path.ends_with("main.rs") {
                "[bin]]"
            } else {
                "lib]"
            };
            let path = path.display();
            let tests = text.lines().any(|line| line.trim() == "#[test]");
            assert!(
                !(of(head).any(|line| line == "test = false") && tests),
                "{path}: tests that do not run"
            );
            let examples = examples(&text);
            let run = examples.is_empty() || !of("lib]").any(|line| line == "doctest = false");
            assert!(
                run,
                "{path}: examples that do not run, in lines {examples:?}"
            );
        }
    }
}

#[test]
fn examples_of_documentation_are_found() {
    let text = "/// ```text\n/// a\n/// ```\n//! ```\n//! b\n//! ```\nlet c = 1;\n    /// ```rust\n    /// ```";
    assert_eq!(examples(text), [4, 8]);
}
