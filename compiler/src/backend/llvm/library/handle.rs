//! Owners of LLVM's objects: each frees its object, and its lifetime states the objects on which it depends.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;

use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::analysis::LLVMVerifierFailureAction;
use llvm_sys::error::LLVMErrorRef;
use llvm_sys::prelude::{
    LLVMContextRef, LLVMDiagnosticInfoRef, LLVMMemoryBufferRef, LLVMModuleRef,
};
use llvm_sys::target_machine::{
    LLVMCodeGenFileType, LLVMCodeGenOptLevel, LLVMCodeModel, LLVMRelocMode, LLVMTargetMachineRef,
};

use super::api::Api;
use super::error::Error;
use super::options::Level;
use super::target::Target;

/// A text for LLVM, ended by zero; `name` names it in the error.
pub fn c_string(text: &str, name: &'static str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::ZeroByte { name })
}

/// Takes over a message of LLVM, which is freed.
///
/// # Safety
/// The message is null or a string from LLVM that the caller owns.
pub unsafe fn take_message(api: &Api, message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: not null, so a string that ends in zero, ours to read and then to free.
    unsafe {
        let text = CStr::from_ptr(message)
            .to_string_lossy()
            .trim_end()
            .to_owned();
        (api.LLVMDisposeMessage)(message);
        text
    }
}

/// Takes over an error of LLVM: its message, or nothing where it stands for success.
///
/// # Safety
/// The error comes from LLVM, and the caller owns it.
pub unsafe fn take_error(api: &Api, error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: `LLVMGetErrorMessage` consumes the error and gives a string that ends in zero, which is freed by its
    // own function.
    unsafe {
        let message = (api.LLVMGetErrorMessage)(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        (api.LLVMDisposeErrorMessage)(message);
        Err(text)
    }
}

/// A block of bytes that LLVM owns.
pub struct Buffer<'a> {
    api: &'a Api,
    raw: LLVMMemoryBufferRef,
}

impl<'a> Buffer<'a> {
    /// A copy of the bytes, followed by a zero that does not count.
    pub fn copy(api: &'a Api, bytes: &[u8]) -> Self {
        // SAFETY: the range is readable during the call, which copies it.
        let raw = unsafe {
            (api.LLVMCreateMemoryBufferWithMemoryRangeCopy)(
                bytes.as_ptr().cast(),
                bytes.len(),
                c"kernel".as_ptr(),
            )
        };
        Self { api, raw }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer is alive, its start and size delimit its bytes, and nothing writes to them.
        unsafe {
            let start: *const u8 = (self.api.LLVMGetBufferStart)(self.raw).cast();
            std::slice::from_raw_parts(start, (self.api.LLVMGetBufferSize)(self.raw))
        }
    }

    /// Gives the buffer up to a function of LLVM that takes it over.
    pub fn into_raw(self) -> LLVMMemoryBufferRef {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: we own the buffer and use it no more.
        unsafe { (self.api.LLVMDisposeMemoryBuffer)(self.raw) }
    }
}

/// The errors that LLVM reported in a context.
struct Sink<'a> {
    api: &'a Api,
    errors: RefCell<Vec<String>>,
}

/// Collects a diagnostic. Without a handler LLVM prints diagnostics and ends the process at the first error.
///
/// Only LLVM may call it; the type of handlers in `llvm-sys` has no `unsafe` to say so.
extern "C" fn on_diagnostic(info: LLVMDiagnosticInfoRef, opaque: *mut c_void) {
    // SAFETY: `opaque` is the sink that `Context::new` registered; it lives as long as the context and is reached from
    // the one thread that uses the context.
    let sink = unsafe { &*opaque.cast::<Sink>() };
    // SAFETY: the diagnostic lives during this call, its severity is one of the four declared values, and its
    // description is ours to free.
    unsafe {
        if (sink.api.LLVMGetDiagInfoSeverity)(info) == LLVMDiagnosticSeverity::LLVMDSError {
            let message = (sink.api.LLVMGetDiagInfoDescription)(info);
            sink.errors
                .borrow_mut()
                .push(take_message(sink.api, message));
        }
    }
}

/// The context in which modules live. It belongs to one thread; other threads use contexts of their own.
pub struct Context<'a> {
    api: &'a Api,
    raw: LLVMContextRef,
    /// Counted, since LLVM holds its address.
    sink: Rc<Sink<'a>>,
}

impl<'a> Context<'a> {
    pub fn new(api: &'a Api) -> Self {
        let sink = Rc::new(Sink {
            api,
            errors: RefCell::default(),
        });
        let opaque = Rc::as_ptr(&sink).cast_mut().cast();
        // SAFETY: the handler matches the type that LLVM calls, and the sink outlives the context.
        let raw = unsafe {
            let raw = (api.LLVMContextCreate)();
            (api.LLVMContextSetDiagnosticHandler)(raw, Some(on_diagnostic), opaque);
            raw
        };
        Self { api, raw, sink }
    }

    /// The errors reported since the last call, or nothing.
    pub fn errors(&self) -> Result<(), String> {
        let errors = self.sink.errors.take();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors.join("\n"))
        }
    }

    /// Reads IR text and verifies it.
    pub fn parse(&self, ir: &str) -> Result<Module<'_>, Error> {
        // LLVM's lexer would skip it or stop there.
        if ir.contains('\0') {
            return Err(Error::ZeroByte { name: "IR" });
        }
        let buffer = Buffer::copy(self.api, ir.as_bytes());
        let (mut raw, mut message) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: context and buffer are alive, and the results are written through valid pointers. This function
        // leaves the buffer to us.
        let failed = unsafe {
            (self.api.LLVMParseIRInContext2)(self.raw, buffer.raw, &mut raw, &mut message)
        };
        if failed != 0 {
            // SAFETY: a message of LLVM for us to free.
            let message = unsafe { take_message(self.api, message) };
            return Err(Error::Parse { message });
        }
        let module = Module {
            api: self.api,
            raw,
            _context: PhantomData,
        };
        let mut message = ptr::null_mut();
        // SAFETY: the module is alive; with this action the verifier only reports.
        let broken = unsafe {
            (self.api.LLVMVerifyModule)(
                module.raw,
                LLVMVerifierFailureAction::LLVMReturnStatusAction,
                &mut message,
            )
        };
        // SAFETY: a message of LLVM for us to free, present in both cases.
        let message = unsafe { take_message(self.api, message) };
        if broken != 0 {
            return Err(Error::Verify { message });
        }
        self.errors().map_err(|message| Error::Verify { message })?;
        Ok(module)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: we own the context, and the modules in it borrow it, so they are gone.
        unsafe { (self.api.LLVMContextDispose)(self.raw) }
    }
}

/// Verified IR in a context.
pub struct Module<'c> {
    api: &'c Api,
    raw: LLVMModuleRef,
    _context: PhantomData<&'c Context<'c>>,
}

impl Module<'_> {
    /// Makes the module one for the machine: its triple and its data layout.
    pub fn set_machine(&mut self, machine: &Machine) {
        // SAFETY: module and machine are alive; LLVM copies triple and layout, and the layout is freed once.
        unsafe {
            (self.api.LLVMSetTarget)(self.raw, machine.triple.as_ptr());
            let layout = (self.api.LLVMCreateTargetDataLayout)(machine.raw);
            (self.api.LLVMSetModuleDataLayout)(self.raw, layout);
            (self.api.LLVMDisposeTargetData)(layout);
        }
    }

    /// Runs a pipeline in LLVM's notation.
    pub fn run_passes(&mut self, passes: &str, machine: &Machine) -> Result<(), Error> {
        let text = c_string(passes, "pass pipeline")?;
        // SAFETY: module, machine and text are alive during the call, the options are freed once, and the error is
        // ours.
        let result = unsafe {
            let options = (self.api.LLVMCreatePassBuilderOptions)();
            let error = (self.api.LLVMRunPasses)(self.raw, text.as_ptr(), machine.raw, options);
            (self.api.LLVMDisposePassBuilderOptions)(options);
            take_error(self.api, error)
        };
        result.map_err(|message| Error::Passes {
            passes: passes.to_owned(),
            message,
        })
    }

    /// The module as text.
    pub fn print(&self) -> String {
        // SAFETY: the module is alive, and the text is ours to free.
        unsafe { take_message(self.api, (self.api.LLVMPrintModuleToString)(self.raw)) }
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: we own the module; its context is alive, since we borrow it.
        unsafe { (self.api.LLVMDisposeModule)(self.raw) }
    }
}

/// The kind of file to which a machine's code is written.
#[derive(Clone, Copy)]
pub enum File {
    Assembly,
    Object,
}

/// A code generator for one target.
pub struct Machine<'a> {
    api: &'a Api,
    raw: LLVMTargetMachineRef,
    triple: CString,
}

impl<'a> Machine<'a> {
    /// A code generator. On a CPU its code is position independent and in the small
    /// model: constants are addressed relative to the instruction pointer, and no address is patched into the code.
    pub fn new(api: &'a Api, target: &Target, level: Level) -> Result<Self, Error> {
        let triple = c_string(&target.triple, "target triple")?;
        let cpu = c_string(&target.cpu, "processor's name")?;
        let features = c_string(&target.features, "feature list")?;
        let (reloc, code_model) = if target.is_cpu() {
            (
                LLVMRelocMode::LLVMRelocPIC,
                LLVMCodeModel::LLVMCodeModelSmall,
            )
        } else {
            (
                LLVMRelocMode::LLVMRelocDefault,
                LLVMCodeModel::LLVMCodeModelDefault,
            )
        };
        let level = match level {
            Level::None => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
            Level::Less => LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
            Level::Default => LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
            Level::Aggressive => LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
        };
        let failure = |message: String| Error::Target {
            target: target.to_string(),
            message,
        };
        let (mut kind, mut message) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the texts end in zero and live during the calls, which copy them; results are written through valid
        // pointers. The target is an entry of LLVM's registry and lives for ever.
        let raw = unsafe {
            let failed =
                (api.LLVMGetTargetFromTriple)(triple.as_ptr(), &mut kind, &mut message) != 0;
            let message = take_message(api, message);
            if failed {
                return Err(failure(message));
            }
            (api.LLVMCreateTargetMachine)(
                kind,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                level,
                reloc,
                code_model,
            )
        };
        if raw.is_null() {
            return Err(failure("no such processor or feature".to_owned()));
        }
        Ok(Self { api, raw, triple })
    }

    /// Generates the code of a module, which is used up: code generation changes its IR.
    pub fn emit(&self, module: Module, file: File) -> Result<Buffer<'a>, Error> {
        let file = match file {
            File::Assembly => LLVMCodeGenFileType::LLVMAssemblyFile,
            File::Object => LLVMCodeGenFileType::LLVMObjectFile,
        };
        let (mut raw, mut message) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: machine and module are alive, and results are written through valid pointers; the message is ours.
        unsafe {
            let failed = (self.api.LLVMTargetMachineEmitToMemoryBuffer)(
                self.raw,
                module.raw,
                file,
                &mut message,
                &mut raw,
            ) != 0;
            let message = take_message(self.api, message);
            if failed {
                return Err(Error::Codegen { message });
            }
        }
        Ok(Buffer { api: self.api, raw })
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // SAFETY: we own the machine and use it no more.
        unsafe { (self.api.LLVMDisposeTargetMachine)(self.raw) }
    }
}
