//! Items of modules that are not in use.

use super::parsed::Parsed;
use super::space::{Space, item_name};
use crate::world::World;
use torre_grammar::ast::ItemKind;
use torre_grammar::source::Source;

/// The most modules that are searched; modules of the library come first.
const SEARCHED: usize = 100;

/// Longer modules are not looked through, modules of the library excepted.
const LONGEST: usize = 1 << 18;

/// The kind of item for which a name stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// A number: a constant.
    Value,
    /// A called definition.
    Operator,
    Scheme,
}

impl Wanted {
    pub fn space(self) -> Space {
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
    pub module: String,
    pub name: String,
    pub wanted: Wanted,
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

/// The items of all modules but the user's own, items of the library first; where a name is wanted, the items of the
/// modules that define it.
pub fn elsewhere(world: &dyn World, user: &Source, name: Option<&str>) -> Vec<Elsewhere> {
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
        let Ok(ast) = Parsed::default().module(&found) else {
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
