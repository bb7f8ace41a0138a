//! Derived schemes: the statements of a scheme together with the statements of the schemes from which it is derived.
//!
//! A declaration replaces the declaration of the same name, and stands in its place. In the same way a statement of the
//! step replaces the statement that advances the same components, and a `let` the `let` of the same name. Other
//! statements of a derived step stand before the statement that follows them in its text, at the end if none does. Each
//! text keeps its own scope: statements see the `let`s of their own scheme and of its bases, and the names of their own
//! module.

use super::codes;
use super::load::{Found, ItemId};
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::space::Space;
use super::value::{Scope, Sight};
use crate::scheme::ComponentId;
use std::collections::BTreeSet;
use std::rc::Rc;
use torre_grammar::ast::{self, Coef, ItemKind, Name, Region, SchemeStmt, StepStmt, Stmt};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::{Span, Spanned};

/// Schemes in a line of descent.
const DERIVED: usize = 32;

/// A scheme with the declarations and steps from its bases.
pub struct SchemeText {
    pub name: Name,
    /// The scope of the scheme's own text.
    pub scope: Rc<Scope>,
    /// Declarations: declarations of bases first, except where they are replaced.
    pub body: Vec<Declared>,
    /// Steps; the step of the first base comes first.
    pub steps: Vec<Step>,
    /// The scheme, then its base, the base of that, and so on.
    pub line: Vec<ItemId>,
}

/// A declaration with the scope of its text.
pub struct Declared {
    pub scope: Rc<Scope>,
    pub stmt: SchemeStmt,
    pub span: Span,
}

/// The step of one scheme in a line.
pub struct Step {
    pub scope: Rc<Scope>,
    pub body: Vec<Stmt<StepStmt>>,
}

/// A statement of a step that is made of several.
pub struct StepPart<'a> {
    pub scope: &'a Rc<Scope>,
    pub stmt: &'a Stmt<StepStmt>,
    /// The step that its text belongs to: later ones see the `let`s of earlier ones.
    pub level: usize,
    /// The level from which on a `let` is seen.
    pub seen_from: usize,
    /// Components that it advances in its base only.
    pub replaced: BTreeSet<ComponentId>,
    keys: BTreeSet<Key>,
}

/// The key by which statements replace each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Let(String),
    Advance(ComponentId),
}

/// Where a statement of a step stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Step,
    /// In a branch of a `where`.
    Branch,
}

impl SchemeText {
    /// Where the scheme is named.
    pub fn place(&self) -> Place {
        self.scope.place(self.name.span)
    }
}

impl Resolver<'_> {
    /// The text of a scheme, with that of its bases.
    pub fn scheme_text(&mut self, item: ItemId) -> Outcome<SchemeText> {
        let mut line = vec![item];
        let mut texts = vec![self.own_text(item)?];
        while let Some((scope, scheme)) = texts.last()
            && let Some(path) = &scheme.base
        {
            let place = scope.place(span_of(path));
            let name = scheme.name.node.clone();
            let base = self.item_at(&scope.clone(), &path.clone(), Space::Scheme, &place)?;
            if line.contains(&base) {
                let message = format!("scheme `{name}` is derived from itself");
                let d = self.error(codes::RECURSIVE, message, &place);
                return self.fail(d);
            }
            if line.len() >= DERIVED {
                return self.too_complex(&place);
            }
            line.push(base);
            texts.push(self.own_text(base)?);
        }
        let mut body: Vec<Declared> = Vec::new();
        let mut steps = Vec::new();
        let mut bases: Vec<Rc<Scope>> = Vec::new();
        for (scope, scheme) in texts.iter().rev() {
            let step = self.own_step(scope, scheme)?;
            steps.extend(step.map(|body| Step {
                scope: scope.clone(),
                body,
            }));
            self.check_new_names(scope, scheme, &body, &bases)?;
            body = derive(body, scope, scheme);
            bases.push(scope.clone());
        }
        let Some((scope, scheme)) = texts.into_iter().next() else {
            return Err(Reported);
        };
        Ok(SchemeText {
            name: scheme.name,
            scope,
            body,
            steps,
            line,
        })
    }

    fn own_text(&self, item: ItemId) -> Outcome<(Rc<Scope>, ast::Scheme)> {
        let module = self.library.module(item.module);
        match module.ast.items.get(item.index).map(|i| &i.kind) {
            Some(ItemKind::Scheme(scheme)) => {
                let scope = Scope {
                    source: module.source.clone(),
                    module: item.module,
                    locals: Vec::new(),
                    sight: Sight::Scheme,
                };
                Ok((Rc::new(scope), scheme.clone()))
            }
            _ => Err(Reported),
        }
    }

    fn own_step(
        &mut self,
        scope: &Scope,
        scheme: &ast::Scheme,
    ) -> Outcome<Option<Vec<Stmt<StepStmt>>>> {
        let mut found: Option<(&Vec<Stmt<StepStmt>>, Span)> = None;
        for stmt in &scheme.body {
            let SchemeStmt::Step { body, .. } = &stmt.kind.node else {
                continue;
            };
            if let Some((_, first)) = found {
                let d = Diagnostic::error(codes::STEP, "the scheme has two steps")
                    .at(&scope.source, stmt.kind.span, "again here")
                    .at(&scope.source, first, "first here");
                return self.fail(d);
            }
            found = Some((body, stmt.kind.span));
        }
        Ok(found.map(|(body, _)| body.clone()))
    }

    /// A name that a derived scheme adds must not change the meaning of texts of its bases.
    fn check_new_names(
        &mut self,
        scope: &Scope,
        scheme: &ast::Scheme,
        inherited: &[Declared],
        bases: &[Rc<Scope>],
    ) -> Outcome<()> {
        let mut failed = false;
        for stmt in &scheme.body {
            if let SchemeStmt::Axes(_) = stmt.kind.node
                && let Some(base) = &scheme.base
            {
                let first = inherited.iter().find(|d| is_axes(&d.stmt));
                let message = "a derived scheme has the axes of its base";
                let mut d = Diagnostic::error(codes::DERIVED, message).at(
                    &scope.source,
                    stmt.kind.span,
                    "given again",
                );
                if let Some(first) = first {
                    d = d.at(&first.scope.source, first.span, "given here");
                }
                d.hint = base.last().map(|b| format!("`{}` says them", b.node));
                failed |= self.fail::<()>(d).is_err();
            }
            let Some((false, name)) = declared(&stmt.kind.node) else {
                continue;
            };
            let is_new = !inherited
                .iter()
                .any(|d| declared(&d.stmt).is_some_and(|(_, n)| n.node == name.node));
            if is_new && is_extent(&name.node, inherited) {
                let message = format!("texts of a base mean the domain by `{}`", name.node);
                let d = self
                    .error(codes::DERIVED, message, &scope.place(name.span))
                    .hint("choose another name");
                failed |= self.fail::<()>(d).is_err();
            }
            let is_used = |base: &&Rc<Scope>| {
                let found = self.library.find(base.module, Space::Value, &name.node);
                matches!(found, Found::Item(_))
            };
            if is_new && let Some(base) = bases.iter().find(is_used) {
                let message = format!(
                    "`{}` means something else in the module of a base, `{}`",
                    name.node,
                    base.source.name()
                );
                let d = self
                    .error(codes::DERIVED, message, &scope.place(name.span))
                    .hint("choose another name");
                failed |= self.fail::<()>(d).is_err();
            }
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    /// The statements of a step in their order, statements of all schemes of a line together.
    pub fn step_parts<'a>(&mut self, text: &'a SchemeText) -> Outcome<Vec<StepPart<'a>>> {
        let mut all: Vec<StepPart<'a>> = Vec::new();
        for (level, step) in text.steps.iter().enumerate() {
            let mut own = Vec::new();
            for stmt in &step.body {
                let mut keys = BTreeSet::new();
                if text.steps.len() > 1 {
                    self.keys(&step.scope, &stmt.kind, Level::Step, &mut keys)?;
                }
                own.push(StepPart {
                    scope: &step.scope,
                    stmt,
                    level,
                    seen_from: level,
                    replaced: BTreeSet::new(),
                    keys,
                });
            }
            all = match all.is_empty() {
                true => own,
                false => self.merge(all, own)?,
            };
        }
        Ok(all)
    }

    /// The names and components to which a statement gives a value.
    fn keys(
        &mut self,
        scope: &Scope,
        stmt: &Spanned<StepStmt>,
        level: Level,
        keys: &mut BTreeSet<Key>,
    ) -> Outcome<()> {
        match &stmt.node {
            StepStmt::Let(bound) if level == Level::Step => {
                keys.insert(Key::Let(bound.name.node.clone()));
            }
            StepStmt::Let(_) | StepStmt::Allow(_) => {}
            StepStmt::Update { target, .. } => {
                let components = self.target(scope, target)?.components;
                keys.extend(components.into_iter().map(Key::Advance));
            }
            StepStmt::Where(branches) => {
                for stmt in branches.iter().flat_map(|b| &b.body) {
                    self.keys(scope, &stmt.kind, Level::Branch, keys)?;
                }
            }
        }
        Ok(())
    }

    /// Puts the statements of a derived step among the statements of its base.
    fn merge<'a>(
        &mut self,
        mut base: Vec<StepPart<'a>>,
        mut own: Vec<StepPart<'a>>,
    ) -> Outcome<Vec<StepPart<'a>>> {
        // The n-th statement on a component replaces the n-th of the base.
        let mut taken: Vec<BTreeSet<Key>> = vec![BTreeSet::new(); base.len()];
        let mut anchors: Vec<Option<usize>> = Vec::new();
        let mut last: Option<(usize, &StepPart)> = None;
        for part in &own {
            let free = |(i, b): (usize, &StepPart)| {
                let mut shared = part.keys.intersection(&b.keys);
                shared.any(|key| !taken[i].contains(key))
            };
            let found = base.iter().enumerate().position(free);
            anchors.push(found);
            let Some(i) = found else { continue };
            taken[i].extend(part.keys.intersection(&base[i].keys).cloned());
            if let Some((earlier, other)) = last
                && i < earlier
            {
                let at = |part: &StepPart| Place::new(&part.scope.source, part.stmt.kind.span);
                let (here, first, theirs) = (at(part), at(other), at(&base[i]));
                let message = "these statements stand in another order in the base";
                let d = Diagnostic::error(codes::DERIVED, message)
                    .at(&here.source, here.span, "this one comes later here")
                    .at(&first.source, first.span, "behind this one")
                    .at(
                        &theirs.source,
                        theirs.span,
                        "what it replaces comes earlier",
                    )
                    .hint("give them in the order of the base, or write a scheme of its own");
                return self.fail(d);
            }
            last = Some((i, part));
        }
        let all: BTreeSet<Key> = own.iter().flat_map(|p| p.keys.iter().cloned()).collect();
        let mut next = base.len();
        let mut slots = vec![next; own.len()];
        for (i, anchor) in anchors.iter().enumerate().rev() {
            next = anchor.unwrap_or(next);
            slots[i] = next;
        }
        for (part, anchor) in own.iter_mut().zip(&anchors) {
            if let (StepStmt::Let(_), Some(i)) = (&part.stmt.kind.node, anchor) {
                part.seen_from = base[*i].seen_from;
            }
        }
        let mut merged = Vec::new();
        let mut own = own.into_iter().zip(anchors).zip(slots).peekable();
        let mut take = |slot: usize, is_new: bool, merged: &mut Vec<StepPart<'a>>| {
            while let Some(((part, _), _)) =
                own.next_if(|((_, anchor), at)| *at == slot && (!is_new || anchor.is_none()))
            {
                merged.push(part);
            }
        };
        for (i, part) in base.iter_mut().enumerate() {
            let keys: BTreeSet<Key> = part.keys.difference(&all).cloned().collect();
            let is_left = !keys.is_empty() || part.keys.is_empty();
            take(i, is_left, &mut merged);
            if !is_left {
                continue;
            }
            let gone = part.keys.intersection(&all);
            let mut replaced = part.replaced.clone();
            replaced.extend(gone.filter_map(|key| match key {
                Key::Advance(id) => Some(*id),
                Key::Let(_) => None,
            }));
            merged.push(StepPart {
                keys,
                replaced,
                ..*part
            });
            take(i, false, &mut merged);
        }
        take(base.len(), false, &mut merged);
        Ok(merged)
    }
}

/// The declarations of a scheme put among the declarations of its base.
fn derive(mut body: Vec<Declared>, scope: &Rc<Scope>, scheme: &ast::Scheme) -> Vec<Declared> {
    let inherited = body.len();
    let mut replaced = BTreeSet::new();
    for stmt in &scheme.body {
        if let SchemeStmt::Step { .. } = stmt.kind.node {
            continue;
        }
        let key = declared(&stmt.kind.node).map(|(is_side, name)| (is_side, &name.node));
        let same = |d: &Declared| declared(&d.stmt).map(|(is_side, n)| (is_side, &n.node)) == key;
        let mut own = Declared {
            scope: scope.clone(),
            stmt: stmt.kind.node.clone(),
            span: stmt.kind.span,
        };
        // A second one of the same name is reported when it is declared.
        let found = body[..inherited]
            .iter()
            .position(|d| key.is_some() && same(d));
        match found.filter(|i| replaced.insert(*i)) {
            Some(i) => {
                keep_position(&body[i].stmt, &mut own.stmt);
                body[i] = own;
            }
            None => body.push(own),
        }
    }
    body
}

/// A coefficient or region that does not state its shape and position has the ones of the declaration that it replaces.
fn keep_position(base: &SchemeStmt, own: &mut SchemeStmt) {
    match (base, own) {
        (
            SchemeStmt::Coef(base),
            SchemeStmt::Coef(
                own @ Coef {
                    shape: None,
                    position: None,
                    ..
                },
            ),
        ) => {
            own.shape.clone_from(&base.shape);
            own.position.clone_from(&base.position);
        }
        (SchemeStmt::Region(base), SchemeStmt::Region(own @ Region { position: None, .. })) => {
            own.position.clone_from(&base.position);
        }
        _ => {}
    }
}

/// The name that a statement declares, and whether it is that of a side.
fn declared(stmt: &SchemeStmt) -> Option<(bool, &Name)> {
    Some(match stmt {
        SchemeStmt::Param { name, .. } | SchemeStmt::Const { name, .. } => (false, name),
        SchemeStmt::Field(field) => (false, &field.name),
        SchemeStmt::Coef(coef) => (false, &coef.name),
        SchemeStmt::Region(region) => (false, &region.name),
        SchemeStmt::Side { name, .. } => (true, name),
        SchemeStmt::Axes(_) | SchemeStmt::Allow(_) | SchemeStmt::Step { .. } => return None,
    })
}

/// Whether texts with these declarations have a name for the cells or the length along an axis.
fn is_extent(name: &str, declared: &[Declared]) -> bool {
    let Some(axis) = name.strip_prefix(['n', 'l']) else {
        return false;
    };
    declared.iter().any(|d| match &d.stmt {
        SchemeStmt::Axes(axes) => axes.iter().any(|a| a.node == axis),
        _ => false,
    })
}

fn is_axes(stmt: &SchemeStmt) -> bool {
    matches!(stmt, SchemeStmt::Axes(_))
}

fn span_of(path: &[Name]) -> Span {
    match (path.first(), path.last()) {
        (Some(first), Some(last)) => first.span.to(last.span),
        _ => Span::default(),
    }
}
