//! Names that a `use` would bring in: looked for in all modules, and suggested if they really can be used.

use super::elsewhere::{Elsewhere, Wanted, elsewhere};
use super::load::{Found, Library, ModuleId};
use super::report::Report;
use super::resolver::Resolver;
use super::searches::Search;
use super::space::Space;
use super::suggest::{nearest, suggest};
use super::value::{Scope, Sight};
use std::rc::Rc;
use torre_grammar::ast::{Ast, Comments, Item, ItemKind, Name, Use};
use torre_grammar::source::{Source, Span};

/// The most names that are searched for.
const SEARCHES: usize = 32;

impl Resolver<'_> {
    /// A remedy where a name is not known: a `use`, or the name that was meant.
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

    /// The names that a text sees of other modules once it is loaded, and the number of errors.
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
