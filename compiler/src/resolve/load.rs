//! Modules and their items: the items that `use` imports, and the item that a name means.

use super::allow;
use super::built_in;
use super::codes;
use super::elsewhere::module_with;
use super::parsed::Parsed;
use super::report::{Place, Report};
use super::space::{Space, item_name};
use super::suggest::did_you_mean;
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use torre_grammar::ast::{Ast, DefLine, ItemKind, Layer, Name, Use};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::{Source, Span};

const MODULES: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId {
    pub module: ModuleId,
    pub index: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum Found {
    Item(ItemId),
    /// The name comes from a `use` that failed.
    Broken,
    Nothing,
}

#[derive(Debug)]
pub struct Module {
    pub source: Source,
    pub ast: Rc<Ast>,
    /// `None`: a name whose `use` failed.
    names: BTreeMap<(Space, String), Option<ItemId>>,
    loading: bool,
}

/// All modules that were met.
#[derive(Debug, Default)]
pub struct Library {
    /// Shared with other libraries of the same program.
    parsed: Rc<Parsed>,
    modules: Vec<Module>,
    /// The modules to which the paths of a module have led.
    opened: BTreeMap<(ModuleId, String), Option<ModuleId>>,
}

impl Library {
    /// An empty library that parses no text which is parsed.
    pub fn sharing(parsed: &Rc<Parsed>) -> Self {
        Self {
            parsed: parsed.clone(),
            ..Self::default()
        }
    }

    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    /// The texts of all modules.
    pub fn sources(&self) -> Vec<Source> {
        self.modules.iter().map(|m| m.source.clone()).collect()
    }

    pub fn find(&self, module: ModuleId, space: Space, name: &str) -> Found {
        match self.module(module).names.get(&(space, name.to_string())) {
            Some(Some(item)) => Found::Item(*item),
            Some(None) => Found::Broken,
            None => Found::Nothing,
        }
    }

    /// The names of a kind that a module sees.
    pub fn names(&self, module: ModuleId, space: Space) -> impl Iterator<Item = &str> {
        self.module(module)
            .names
            .keys()
            .filter(move |(s, _)| *s == space)
            .map(|(_, n)| n.as_str())
    }

    /// The items of a kind that a module defines itself, in the order of the text.
    pub fn own(&self, module: ModuleId, space: Space) -> Vec<(ItemId, Name)> {
        let items = &self.module(module).ast.items;
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| {
                let (s, name) = item_name(&item.kind)?;
                (s == space).then(|| (ItemId { module, index }, name.clone()))
            })
            .collect()
    }

    /// Takes in a module and all that it uses.
    pub fn load(
        &mut self,
        world: &dyn World,
        report: &mut Report,
        source: &Source,
        ast: Rc<Ast>,
    ) -> ModuleId {
        let id = ModuleId(self.modules.len());
        let mut names: BTreeMap<(Space, String), Option<ItemId>> = BTreeMap::new();
        let mut spans: BTreeMap<(Space, String), Span> = BTreeMap::new();
        for (index, item) in ast.items.iter().enumerate() {
            let Some((space, name)) = item_name(&item.kind) else {
                continue;
            };
            let key = (space, name.node.clone());
            if let Some(&first) = spans.get(&key) {
                report.push(twice(
                    source,
                    &name.node,
                    &Place::new(source, first),
                    name.span,
                ));
                continue;
            }
            if space == Space::Value && built_in::is_taken(&name.node) {
                report.push(taken(source, name));
            }
            spans.insert(key.clone(), name.span);
            names.insert(key, Some(ItemId { module: id, index }));
        }
        parameters_once(report, source, &ast);
        names_in_layers(report, source, &ast);
        allow::silence(report, source, &ast);
        self.modules.push(Module {
            source: source.clone(),
            ast: ast.clone(),
            names,
            loading: true,
        });
        for item in &ast.items {
            if let ItemKind::Use(u) = &item.kind {
                self.bring_in(world, report, id, u, &mut spans);
            }
        }
        self.modules[id.0].loading = false;
        id
    }

    fn bring_in(
        &mut self,
        world: &dyn World,
        report: &mut Report,
        user: ModuleId,
        u: &Use,
        spans: &mut BTreeMap<(Space, String), Span>,
    ) {
        let source = self.module(user).source.clone();
        let from = match self.whole_module(world, &source, u) {
            Some(d) => {
                report.push(d);
                None
            }
            None => self.open(world, report, user, &u.path),
        };
        for name in &u.names {
            let mut bindings = Vec::new();
            match from {
                None => bindings.extend(Space::ALL.map(|s| (s, None))),
                Some(from) => {
                    for space in Space::ALL {
                        match self.find(from, space, &name.node) {
                            Found::Item(item) if item.module == from => {
                                bindings.push((space, Some(item)));
                            }
                            Found::Broken => bindings.push((space, None)),
                            _ => {}
                        }
                    }
                    if bindings.is_empty() {
                        self.report_missing(world, report, &source, from, name);
                        bindings.extend(Space::ALL.map(|s| (s, None)));
                    }
                    if let [(Space::Problem, Some(_))] = bindings[..] {
                        report.push(problem_of_another_file(&source, name));
                    }
                }
            }
            for (space, item) in bindings {
                let key = (space, name.node.clone());
                if item.is_some()
                    && let Some(&first) = spans.get(&key)
                {
                    report.push(twice(
                        &source,
                        &name.node,
                        &Place::new(&source, first),
                        name.span,
                    ));
                    continue;
                }
                if item.is_some() {
                    spans.insert(key.clone(), name.span);
                }
                self.modules[user.0].names.entry(key).or_insert(item);
            }
        }
    }

    /// The error of a `use` that names a module and no item of it.
    fn whole_module(&self, world: &dyn World, source: &Source, u: &Use) -> Option<Diagnostic> {
        let [name] = u.names.as_slice() else {
            return None;
        };
        let mut words: Vec<&str> = u.path.iter().map(|n| n.node.as_str()).collect();
        if world.module(source, &words).is_some() {
            return None;
        }
        words.push(&name.node);
        let module = world.module(source, &words)?;
        let joined = words.join("::");
        let span = u.path.first().map_or(name.span, |n| n.span.to(name.span));
        let mut d = Diagnostic::error(
            codes::UNKNOWN_MODULE,
            format!("`{joined}` is a module, and `use` takes its items"),
        )
        .at(source, span, "names no item");
        let ast = torre_grammar::parse(&module).ok()?;
        let names = ast.items.iter().filter_map(|i| item_name(&i.kind));
        let names: Vec<&str> = names.map(|(_, n)| n.node.as_str()).collect();
        d.hint = names.first().map(|first| {
            let first = names.iter().find(|n| **n == name.node).unwrap_or(first);
            format!("write `use {joined}::{first}`; it has {}", names.join(", "))
        });
        Some(d)
    }

    fn report_missing(
        &self,
        world: &dyn World,
        report: &mut Report,
        source: &Source,
        from: ModuleId,
        name: &Name,
    ) {
        let all: Vec<String> = Space::ALL
            .iter()
            .flat_map(|&s| self.own(from, s))
            .map(|(_, n)| n.node)
            .collect();
        let module = self.module(from).source.name();
        let mut d = Diagnostic::error(
            codes::UNKNOWN_ITEM,
            format!("`{module}` has no item `{}`", name.node),
        )
        .at(source, name.span, "not found there");
        let elsewhere = module_with(world, source, &name.node);
        d.hint = match elsewhere {
            Some(module) => Some(format!(
                "it is in `{module}`: `use {module}::{}`",
                name.node
            )),
            None => did_you_mean(&name.node, all.iter().map(String::as_str)).or_else(|| {
                (!all.is_empty() && all.len() <= 12).then(|| format!("it has {}", all.join(", ")))
            }),
        };
        report.push(d);
    }

    /// The module at a path, loaded if it was not yet. `None`: reported.
    pub fn open(
        &mut self,
        world: &dyn World,
        report: &mut Report,
        user: ModuleId,
        path: &[Name],
    ) -> Option<ModuleId> {
        let words: Vec<&str> = path.iter().map(|n| n.node.as_str()).collect();
        let key = (user, words.join("::"));
        if let Some(&known) = self.opened.get(&key) {
            return known;
        }
        let found = self.open_new(world, report, user, path);
        self.opened.insert(key, found);
        found
    }

    fn open_new(
        &mut self,
        world: &dyn World,
        report: &mut Report,
        user: ModuleId,
        path: &[Name],
    ) -> Option<ModuleId> {
        let source = self.module(user).source.clone();
        let span = match (path.first(), path.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => Span::default(),
        };
        let place = Place::new(&source, span);
        let words: Vec<&str> = path.iter().map(|n| n.node.as_str()).collect();
        let joined = words.join("::");
        let Some(found) = world.module(&source, &words) else {
            if let Some(reason) = world.unreadable(&source, &words) {
                let message = format!("the module `{joined}` cannot be read: {reason}");
                let d = Diagnostic::error(codes::UNKNOWN_MODULE, message);
                report.push(d.at(&source, span, "used here"));
                return None;
            }
            let mut d = Diagnostic::error(
                codes::UNKNOWN_MODULE,
                format!("there is no module `{joined}`"),
            )
            .at(&source, span, "not found");
            let known = world.modules();
            d.hint = did_you_mean(&joined, known.iter().map(String::as_str)).or_else(|| {
                (words.len() > 1 && words[0] != "std").then(|| {
                    "modules are files beside this one, as `lib` in `use lib::name`, or of the library, as `std::curl`"
                        .to_string()
                })
            });
            report.push(d);
            return None;
        };
        let known = self
            .modules
            .iter()
            .position(|m| m.source == found || m.source.name() == found.name());
        if let Some(index) = known {
            if self.modules[index].loading {
                let message = format!("`{joined}` uses this module in turn");
                report.push(
                    Diagnostic::error(codes::MODULE_CYCLE, message)
                        .at(&place.source, span, "used here")
                        .hint("move what both need into a third module"),
                );
                return None;
            }
            return Some(ModuleId(index));
        }
        let deep = self.modules.iter().filter(|m| m.loading).count() > 64;
        if self.modules.len() >= MODULES || deep {
            report.push(
                Diagnostic::error(codes::TOO_COMPLEX, "too many modules").at(
                    &place.source,
                    span,
                    "not loaded",
                ),
            );
            return None;
        }
        match self.parsed.module(&found) {
            Ok(ast) => Some(self.load(world, report, &found, ast)),
            Err(diagnostics) => {
                for d in diagnostics.0 {
                    report.push(d.at(&place.source, span, "used here"));
                }
                None
            }
        }
    }
}

fn problem_of_another_file(source: &Source, name: &Name) -> Diagnostic {
    let message = format!("`{}` is a problem, which only its own file runs", name.node);
    Diagnostic::error(codes::WRONG_KIND, message)
        .at(source, name.span, "used here")
        .hint("take its scheme by `use`, and write a problem here")
}

/// The error of a definition of a built-in name.
pub fn taken(source: &Source, name: &Name) -> Diagnostic {
    let message = format!("`{}` is built in and cannot be defined", name.node);
    Diagnostic::error(codes::BUILT_IN, message)
        .at(source, name.span, "this name is taken")
        .hint("choose another name")
}

/// Reports names in layers that their built-in values have.
fn names_in_layers(report: &mut Report, source: &Source, ast: &Ast) {
    let is_built_in = |name: &&Name| {
        let mut known = built_in::VALUES_OF_LAYERS
            .iter()
            .chain(&built_in::SIZES_OF_LAYERS);
        known.any(|known| name.node == *known)
    };
    for item in &ast.items {
        let ItemKind::Layer(Layer { def, .. }) = &item.kind else {
            continue;
        };
        let of_lines = def.lines.iter().flat_map(|line| match &line.kind.node {
            DefLine::State { names, .. } => names.iter().collect(),
            DefLine::Let(bound) => vec![&bound.name],
            _ => Vec::new(),
        });
        let names = def.params.iter().map(|param| &param.name).chain(of_lines);
        for name in names.filter(is_built_in) {
            report.push(taken(source, name));
        }
    }
}

/// Reports parameters and states of a definition that have one name: the later one would hide the other one.
fn parameters_once(report: &mut Report, source: &Source, ast: &Ast) {
    for item in &ast.items {
        let (ItemKind::Def(def) | ItemKind::Layer(Layer { def, .. })) = &item.kind else {
            continue;
        };
        let states = def.lines.iter().filter_map(|line| match &line.kind.node {
            DefLine::State { names, .. } => Some(names),
            _ => None,
        });
        let params = def.params.iter().map(|param| &param.name);
        let mut earlier: BTreeMap<&str, Span> = BTreeMap::new();
        for name in params.chain(states.flatten()) {
            match earlier.get(name.node.as_str()) {
                Some(&first) => {
                    let first = Place::new(source, first);
                    report.push(twice(source, &name.node, &first, name.span));
                }
                None => {
                    earlier.insert(&name.node, name.span);
                }
            }
        }
    }
}

/// A name that is defined twice: the definition that was met first, and the other one.
pub fn twice(source: &Source, name: &str, met: &Place, other: Span) -> Diagnostic {
    let (mut first, mut again) = (met.clone(), Place::new(source, other));
    // Declarations of a kind are met before those of another kind, wherever they stand.
    if first.source == again.source && again.span.start < first.span.start {
        std::mem::swap(&mut first, &mut again);
    }
    Diagnostic::error(codes::DEFINED_TWICE, format!("`{name}` is defined twice"))
        .at(&again.source, again.span, "defined again here")
        .at(&first.source, first.span, "first defined here")
}
