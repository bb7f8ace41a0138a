//! The front end in one call: source text to a resolved calculation.

use crate::resolve::{self, Options, Resolved};
use crate::world::World;
use torre_grammar::diag::Diagnostics;
use torre_grammar::parse;
use torre_grammar::source::Source;

/// Parses a source and resolves one of its problems.
pub fn load(
    world: &dyn World,
    source: &Source,
    options: &Options,
) -> Result<Resolved, Diagnostics> {
    let ast = parse(source)?;
    resolve::resolve(world, source, &ast, options)
}

/// All that is wrong with a source.
pub fn check(world: &dyn World, source: &Source, options: &Options) -> Diagnostics {
    match parse(source) {
        Ok(ast) => resolve::check(world, source, &ast, options),
        Err(diagnostics) => diagnostics,
    }
}
