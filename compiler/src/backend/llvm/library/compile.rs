//! IR text to machine code.

use std::fmt;

use super::error::Work;
use super::handle::{Context, File, Machine, Module};
use super::options::Options;
use super::target::Target;
use super::{Error, Library};

/// Relocatable machine code, as the bytes of an object file.
#[derive(Clone, PartialEq, Eq)]
pub struct Object(Vec<u8>);

impl Object {
    /// An object from bytes that were kept.
    ///
    /// # Safety
    /// The bytes come from an object that [`compile`] gave: loading reads addresses and sizes out of them.
    pub unsafe fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, to keep or to write to a file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} bytes)", self.0.len())
    }
}

/// Compiles IR text to an object.
///
/// The triple and data layout written in the text are replaced by the target's. Floating-point operations keep
/// their meaning: nothing is contracted, reordered or flushed that the IR does not allow by a flag. Threads may compile
/// at the same time; each call has its own context.
pub fn compile(
    library: &Library,
    ir: &str,
    target: &Target,
    options: &Options,
) -> Result<Object, Error> {
    emit(library, ir, target, options, File::Object).map(Object)
}

/// Compiles IR text to assembly: the assembly of a CPU, or PTX.
pub fn compile_to_asm(
    library: &Library,
    ir: &str,
    target: &Target,
    options: &Options,
) -> Result<String, Error> {
    let bytes = emit(library, ir, target, options, File::Assembly)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The IR as the pipeline of `options` leaves it, as text.
pub fn optimise(
    library: &Library,
    ir: &str,
    target: &Target,
    options: &Options,
) -> Result<String, Error> {
    let context = Context::new(&library.api);
    let (module, _) = prepare(library, &context, ir, target, options)?;
    Ok(module.print())
}

fn emit(
    library: &Library,
    ir: &str,
    target: &Target,
    options: &Options,
    file: File,
) -> Result<Vec<u8>, Error> {
    let _work = Work::on(format!("compiling for {target}"));
    let context = Context::new(&library.api);
    let (module, machine) = prepare(library, &context, ir, target, options)?;
    let buffer = machine.emit(module, file)?;
    context
        .errors()
        .map_err(|message| Error::Codegen { message })?;
    Ok(buffer.bytes().to_vec())
}

/// Parses, verifies and optimises.
fn prepare<'c>(
    library: &'c Library,
    context: &'c Context,
    ir: &str,
    target: &Target,
    options: &Options,
) -> Result<(Module<'c>, Machine<'c>), Error> {
    let machine = Machine::new(&library.api, target, options.level)?;
    let mut module = context.parse(ir)?;
    module.set_machine(&machine);
    let passes = options.passes.as_str();
    if !passes.is_empty() {
        module.run_passes(passes, &machine)?;
        context.errors().map_err(|message| Error::Passes {
            passes: passes.to_owned(),
            message,
        })?;
    }
    Ok((module, machine))
}
