//! Names that a `use` would bring in: looked for in all modules, and suggested if they really can be used.

use super::load::{Found, Library, ModuleId, Space, item_name};
use super::report::Report;
use super::resolver::Resolver;
use super::suggest::{nearest, suggest};
use super::value::{Scope, Sight};
use crate::world::World;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use torre_grammar::ast::{Ast, Comments, Item, ItemKind, Name, Use};
use torre_grammar::source::{Source, Span};

/// So many modules are searched; those of the library come first.
const SEARCHED: usize = 100;

/// So many names are searched for.
const SEARCHES: usize = 32;
/// Longer modules are not looked through, those of the library excepted.
const LONGEST: usize = 1 << 18;

/// What a name stands for at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// A number: a constant.
    Value,
    /// What is called: a definition.
    Operator,
    Scheme,
}

impl Wanted {
    fn space(self) -> Space {
        match self {
            Wanted::Value | Wanted::Operator => Space::Value,
            Wanted::Scheme => Space::Scheme,
        }
    }

    /// Whether an item can stand there.
    pub fn fits(self, kind: &ItemKind) -> bool {
        matches!(
            (self, kind),
            (Wanted::Value, ItemKind::Const { .. })
                | (Wanted::Operator, ItemKind::Def(_))
                | (Wanted::Scheme, ItemKind::Scheme(_))
        )
    }
}

/// An item of a module that is not in use.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    module: String,
    name: String,
    wanted: Wanted,
}

/// What other modules have for a name: only what can really be used.
#[derive(Clone, Debug, Default)]
struct Search {
    /// An item of the name that fits its place.
    fitting: Option<Elsewhere>,
    /// One of the name that is something else.
    other: Option<Elsewhere>,
    /// One that fits and has nearly this name.
    near: Option<Elsewhere>,
}

/// What was searched for, so that nothing is searched for twice.
#[derive(Debug, Default)]
pub struct Searches {
    items: RefCell<BTreeMap<ModuleId, Rc<[Elsewhere]>>>,
    found: RefCell<BTreeMap<(ModuleId, String, Wanted), Search>>,
}

impl Resolver<'_> {
    /// What helps where a name is not known: a `use`, or the name that was meant.
    pub fn hint_for_missing<'a>(
        &self,
        user: ModuleId,
        name: &str,
        wanted: Wanted,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        let Search {
            fitting,
            other,
            near,
        } = self.searched(user, name, wanted);
        if let Some(found) = fitting {
            return Some(format!("add `use {}::{name}`", found.module));
        }
        if let Some(near) = suggest(name, known) {
            return Some(format!("did you mean `{near}`?"));
        }
        if let Some(Elsewhere { module, wanted, .. }) = other {
            return Some(match wanted {
                Wanted::Operator => format!(
                    "`{name}` of `{module}` is an operator: add `use {module}::{name}`, and write `{name}(...)`"
                ),
                Wanted::Scheme => format!(
                    "`{name}` of `{module}` is a scheme, which problems name in `scheme {name}`"
                ),
                Wanted::Value => {
                    format!("`{name}` of `{module}` is a number, and stands without parentheses")
                }
            });
        }
        let Elsewhere { module, name, .. } = near?;
        Some(format!(
            "did you mean `{name}`? Then add `use {module}::{name}`"
        ))
    }

    fn searched(&self, user: ModuleId, name: &str, wanted: Wanted) -> Search {
        let key = (user, name.to_string(), wanted);
        let mut found = self.searches.found.borrow_mut();
        if let Some(known) = found.get(&key) {
            return known.clone();
        }
        // Each search loads the user's module anew.
        let search = match found.len() < SEARCHES {
            true => self.search(user, name, wanted),
            false => Search::default(),
        };
        found.insert(key, search.clone());
        search
    }

    fn search(&self, user: ModuleId, name: &str, wanted: Wanted) -> Search {
        let source = &self.library.module(user).source;
        let own = elsewhere(self.world, source, Some(name));
        let usable = |e: &&Elsewhere| self.can_be_used(user, e);
        let of_name = || own.iter().filter(|e| e.name == name);
        let fitting = of_name().filter(|e| e.wanted == wanted).find(usable);
        if fitting.is_some() {
            return Search {
                fitting: fitting.cloned(),
                ..Search::default()
            };
        }
        let is_in_expression = wanted != Wanted::Scheme;
        let other = of_name().filter(|_| is_in_expression).find(usable);
        // Short names are like many others.
        let all = match name.chars().count() {
            0..4 => Rc::from([]),
            _ => self.all_elsewhere(user),
        };
        let alike = || all.iter().filter(|e| e.wanted == wanted);
        let near = nearest(name, alike().map(|e| e.name.as_str()));
        let near = near.and_then(|near| alike().filter(|e| e.name == near).find(usable));
        Search {
            fitting: None,
            other: other.cloned(),
            near: near.cloned(),
        }
    }

    /// All items of other modules.
    fn all_elsewhere(&self, user: ModuleId) -> Rc<[Elsewhere]> {
        let mut known = self.searches.items.borrow_mut();
        let items = known.entry(user).or_insert_with(|| {
            let source = &self.library.module(user).source;
            elsewhere(self.world, source, None).into()
        });
        items.clone()
    }

    /// The names that a module sees and that can stand at such a place.
    pub fn fitting(&self, module: ModuleId, wanted: Wanted) -> Vec<&str> {
        let names = self.library.names(module, wanted.space());
        names
            .filter(
                |name| match self.library.find(module, wanted.space(), name) {
                    Found::Item(item) => {
                        let items = &self.library.module(item.module).ast.items;
                        items.get(item.index).is_some_and(|i| wanted.fits(&i.kind))
                    }
                    Found::Broken | Found::Nothing => false,
                },
            )
            .collect()
    }

    /// A number that is called: it needs no parentheses.
    pub fn hint_for_uncalled(&self, scope: &Scope, name: &str) -> Option<String> {
        let is_axis = self.frame.axis(name).is_some();
        let is_value = scope.sight != Sight::Item && self.frame.extents.contains(name);
        (is_axis || is_value)
            .then(|| format!("`{name}` is no operator: a product is written with `*`"))
    }

    /// Whether a `use` of the item would work: it is added to the user's module, which is loaded once more.
    fn can_be_used(&self, user: ModuleId, item: &Elsewhere) -> bool {
        let module = self.library.module(user);
        let (source, ast) = (&module.source, &module.ast);
        let (_, before) = self.loaded(source, ast);
        let word = |text: &str| Name::new(text.to_string(), Span::default());
        let mut with: Ast = (**ast).clone();
        with.items.insert(
            0,
            Item {
                comments: Comments::default(),
                kind: ItemKind::Use(Use {
                    path: item.module.split("::").map(word).collect(),
                    names: vec![word(&item.name)],
                }),
            },
        );
        let (found, after) = self.loaded(source, &with);
        let is_there = found
            .iter()
            .any(|(space, name)| *space == item.wanted.space() && *name == item.name);
        is_there && after <= before
    }

    /// What a text sees of other modules once it is loaded, and how many errors that gives.
    fn loaded(&self, source: &Source, ast: &Ast) -> (Vec<(Space, String)>, usize) {
        let (mut library, mut report) = (Library::default(), Report::default());
        let id = library.load(self.world, &mut report, source, Rc::new(ast.clone()));
        let mut seen = Vec::new();
        for space in Space::ALL {
            let names: Vec<String> = library.names(id, space).map(str::to_string).collect();
            for name in names {
                if let Found::Item(item) = library.find(id, space, &name)
                    && item.module != id
                {
                    seen.push((space, name));
                }
            }
        }
        (seen, report.finish(source).0.len())
    }
}

/// The library's module that has an item of this name.
pub fn module_with(world: &dyn World, user: &Source, name: &str) -> Option<String> {
    let all = elsewhere(world, user, Some(name)).into_iter();
    let mut found = all.filter(|e| e.name == name && is_library(&e.module));
    found.next().map(|e| e.module)
}

fn is_library(module: &str) -> bool {
    module.contains("::")
}

/// The items of all modules but the user's own, those of the library first; where a name is wanted, those of the
/// modules that define it.
fn elsewhere(world: &dyn World, user: &Source, name: Option<&str>) -> Vec<Elsewhere> {
    let defines = |text: &str, name: &str| {
        let heads = ["def", "const", "scheme"].map(|word| format!("{word} {name}"));
        heads.iter().any(|head| text.contains(head))
    };
    let mut modules = world.modules();
    modules.sort_by_key(|m| !is_library(m));
    let mut all = Vec::new();
    for module in modules.into_iter().take(SEARCHED) {
        let path: Vec<&str> = module.split("::").collect();
        let Some(found) = world.module(user, &path) else {
            continue;
        };
        let is_long = found.text().len() > LONGEST && !is_library(&module);
        if is_long || found == *user || found.name() == user.name() {
            continue;
        }
        if name.is_some_and(|name| !defines(found.text(), name)) {
            continue;
        }
        let Ok(ast) = torre_grammar::parse(&found) else {
            continue;
        };
        for item in &ast.items {
            let wanted = [Wanted::Value, Wanted::Operator, Wanted::Scheme];
            let wanted = wanted.into_iter().find(|w| w.fits(&item.kind));
            if let (Some(wanted), Some((_, name))) = (wanted, item_name(&item.kind)) {
                all.push(Elsewhere {
                    module: module.clone(),
                    name: name.node.clone(),
                    wanted,
                });
            }
        }
    }
    all
}
