//! `torre cone`: dependence vectors and slopes.

use crate::args;
use crate::failure::Failure;
use crate::input;
use crate::render::Voice;
use crate::write;
use torre_compiler::cone::cones;

pub fn cone(args: &args::Cone, voice: &Voice) -> Result<(), Failure> {
    let resolved = input::inspected(&args.what, voice)?;
    write::result(&cones(&resolved.scheme).to_string());
    Ok(())
}
