//! The functions of LLVM's C API that Torre calls, in one table.
//!
//! Every function is declared once, below; the table is filled from a library opened at run time or, with the feature
//! `llvm-static`, by the linker. The declarations follow the headers `llvm-c/*.h` of LLVM 22.

#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::marker::{PhantomData, PhantomPinned};

use super::Version;

/// Declares the C API's opaque types, so that references to different things have different types.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            _data: [u8; 0],
            _not_send_or_unpin: PhantomData<(*mut u8, PhantomPinned)>,
        }
    )*};
}

opaque! {
    /// Owns types, constants and diagnostics; used by one thread at a time.
    LlvmContext;
    LlvmModule;
    LlvmMemoryBuffer;
    LlvmDiagnosticInfo;
    LlvmTarget;
    LlvmTargetMachine;
    LlvmTargetData;
    LlvmPassBuilderOptions;
    /// A failure, or success where the pointer is null; consumed by reading its message.
    LlvmError;
    LlvmJit;
    LlvmJitSession;
    LlvmJitDylib;
    LlvmSymbolName;
    LlvmMaterializationUnit;
}

/// C's truth value.
pub type LlvmBool = c_int;

/// `LLVMDiagnosticSeverity`: errors are 0, warnings 1, remarks 2, notes 3.
pub type LlvmSeverity = c_int;
pub const SEVERITY_ERROR: LlvmSeverity = 0;

/// `LLVMReturnStatusAction`: the verifier reports and neither prints nor aborts.
pub const VERIFIER_RETURN_STATUS: c_int = 2;

/// `LLVMCodeGenFileType`.
pub const FILE_ASSEMBLY: c_int = 0;
pub const FILE_OBJECT: c_int = 1;

/// `LLVMRelocMode`.
pub const RELOC_DEFAULT: c_int = 0;
pub const RELOC_PIC: c_int = 2;

/// `LLVMCodeModel`.
pub const CODE_MODEL_DEFAULT: c_int = 0;
pub const CODE_MODEL_SMALL: c_int = 3;

/// `LLVMJITSymbolGenericFlags`: exported and callable.
pub const SYMBOL_EXPORTED_CALLABLE: u8 = 1 | 4;

/// `LLVMOrcCSymbolMapPair`: a name and the address it stands for.
#[repr(C)]
pub struct LlvmSymbolPair {
    pub name: *mut LlvmSymbolName,
    pub address: u64,
    pub generic_flags: u8,
    pub target_flags: u8,
}

/// Called with each diagnostic of a context.
pub type DiagnosticHandler = unsafe extern "C" fn(*mut LlvmDiagnosticInfo, *mut c_void);

/// Called with the reason before LLVM ends the process.
pub type FatalErrorHandler = unsafe extern "C" fn(*const c_char);

/// Called with each error of a session that no caller receives; it takes the error over.
pub type ErrorReporter = unsafe extern "C" fn(*mut c_void, *mut LlvmError);

/// Registers one part of a target.
pub type Initialiser = unsafe extern "C" fn();

macro_rules! api {
    (
        required { $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)* }
        targets { $($target:ident)* }
    ) => {
        /// The table: one pointer per function, all of them bound before the first call.
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg: $ty),*) $(-> $ret)?,)*
            /// What registers the code generators; a library built without a target lacks its functions.
            targets: [Option<Initialiser>; [$(stringify!($target)),*].len()],
        }

        #[cfg(not(feature = "llvm-static"))]
        impl Api {
            /// Binds the table to a library; the error is the name of the first function that is missing.
            ///
            /// # Safety
            /// The library must be an LLVM whose C API has the types declared here.
            pub unsafe fn bind(library: &libloading::os::unix::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the caller vouches for the type of every function of the table.
                        let symbol = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                        *symbol.map_err(|_| stringify!($name))?
                    },)*
                    targets: [$({
                        // SAFETY: as above; an initialiser takes and returns nothing.
                        let symbol = unsafe {
                            library.get::<Initialiser>(concat!(stringify!($target), "\0").as_bytes())
                        };
                        symbol.ok().map(|symbol| *symbol)
                    }),*],
                })
            }
        }

        #[cfg(feature = "llvm-static")]
        impl Api {
            /// The table of the LLVM that is linked into this executable.
            pub fn linked() -> Self {
                Self {
                    $($name: linked::$name,)*
                    targets: [$(Some(linked::$target)),*],
                }
            }
        }

        #[cfg(feature = "llvm-static")]
        mod linked {
            use super::*;

            unsafe extern "C" {
                $(pub fn $name($($arg: $ty),*) $(-> $ret)?;)*
                $(pub fn $target();)*
            }
        }
    };
}

api! {
    required {
        LLVMGetVersion(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint);
        LLVMInstallFatalErrorHandler(handler: Option<FatalErrorHandler>);
        LLVMDisposeMessage(message: *mut c_char);

        LLVMContextCreate() -> *mut LlvmContext;
        LLVMContextDispose(context: *mut LlvmContext);
        LLVMContextSetDiagnosticHandler(
            context: *mut LlvmContext, handler: Option<DiagnosticHandler>, opaque: *mut c_void
        );
        LLVMGetDiagInfoDescription(info: *mut LlvmDiagnosticInfo) -> *mut c_char;
        LLVMGetDiagInfoSeverity(info: *mut LlvmDiagnosticInfo) -> LlvmSeverity;

        LLVMCreateMemoryBufferWithMemoryRangeCopy(
            data: *const c_char, length: usize, name: *const c_char
        ) -> *mut LlvmMemoryBuffer;
        LLVMDisposeMemoryBuffer(buffer: *mut LlvmMemoryBuffer);
        LLVMGetBufferStart(buffer: *mut LlvmMemoryBuffer) -> *const c_char;
        LLVMGetBufferSize(buffer: *mut LlvmMemoryBuffer) -> usize;

        LLVMParseIRInContext2(
            context: *mut LlvmContext, buffer: *mut LlvmMemoryBuffer, module: *mut *mut LlvmModule,
            message: *mut *mut c_char
        ) -> LlvmBool;
        LLVMVerifyModule(module: *mut LlvmModule, action: c_int, message: *mut *mut c_char) -> LlvmBool;
        LLVMDisposeModule(module: *mut LlvmModule);
        LLVMPrintModuleToString(module: *mut LlvmModule) -> *mut c_char;
        LLVMSetTarget(module: *mut LlvmModule, triple: *const c_char);
        LLVMSetModuleDataLayout(module: *mut LlvmModule, layout: *mut LlvmTargetData);
        LLVMCreateTargetDataLayout(machine: *mut LlvmTargetMachine) -> *mut LlvmTargetData;
        LLVMDisposeTargetData(layout: *mut LlvmTargetData);

        LLVMGetDefaultTargetTriple() -> *mut c_char;
        LLVMGetHostCPUName() -> *mut c_char;
        LLVMGetHostCPUFeatures() -> *mut c_char;
        LLVMGetTargetFromTriple(
            triple: *const c_char, target: *mut *mut LlvmTarget, message: *mut *mut c_char
        ) -> LlvmBool;
        LLVMCreateTargetMachine(
            target: *mut LlvmTarget, triple: *const c_char, cpu: *const c_char, features: *const c_char,
            level: c_int, reloc: c_int, code_model: c_int
        ) -> *mut LlvmTargetMachine;
        LLVMDisposeTargetMachine(machine: *mut LlvmTargetMachine);
        LLVMTargetMachineEmitToMemoryBuffer(
            machine: *mut LlvmTargetMachine, module: *mut LlvmModule, file: c_int, message: *mut *mut c_char,
            buffer: *mut *mut LlvmMemoryBuffer
        ) -> LlvmBool;

        LLVMCreatePassBuilderOptions() -> *mut LlvmPassBuilderOptions;
        LLVMDisposePassBuilderOptions(options: *mut LlvmPassBuilderOptions);
        LLVMRunPasses(
            module: *mut LlvmModule, passes: *const c_char, machine: *mut LlvmTargetMachine,
            options: *mut LlvmPassBuilderOptions
        ) -> *mut LlvmError;
        LLVMGetErrorMessage(error: *mut LlvmError) -> *mut c_char;
        LLVMDisposeErrorMessage(message: *mut c_char);

        LLVMOrcCreateLLJIT(jit: *mut *mut LlvmJit, builder: *mut c_void) -> *mut LlvmError;
        LLVMOrcDisposeLLJIT(jit: *mut LlvmJit) -> *mut LlvmError;
        LLVMOrcLLJITGetExecutionSession(jit: *mut LlvmJit) -> *mut LlvmJitSession;
        LLVMOrcExecutionSessionSetErrorReporter(
            session: *mut LlvmJitSession, reporter: Option<ErrorReporter>, opaque: *mut c_void
        );
        LLVMOrcLLJITGetMainJITDylib(jit: *mut LlvmJit) -> *mut LlvmJitDylib;
        LLVMOrcLLJITMangleAndIntern(jit: *mut LlvmJit, name: *const c_char) -> *mut LlvmSymbolName;
        LLVMOrcAbsoluteSymbols(pairs: *mut LlvmSymbolPair, count: usize) -> *mut LlvmMaterializationUnit;
        LLVMOrcDisposeMaterializationUnit(unit: *mut LlvmMaterializationUnit);
        LLVMOrcJITDylibDefine(dylib: *mut LlvmJitDylib, unit: *mut LlvmMaterializationUnit) -> *mut LlvmError;
        LLVMOrcLLJITAddObjectFile(
            jit: *mut LlvmJit, dylib: *mut LlvmJitDylib, object: *mut LlvmMemoryBuffer
        ) -> *mut LlvmError;
        LLVMOrcLLJITLookup(jit: *mut LlvmJit, address: *mut u64, name: *const c_char) -> *mut LlvmError;
    }
    targets {
        LLVMInitializeX86TargetInfo LLVMInitializeX86Target LLVMInitializeX86TargetMC
        LLVMInitializeX86AsmPrinter LLVMInitializeX86AsmParser
        LLVMInitializeNVPTXTargetInfo LLVMInitializeNVPTXTarget LLVMInitializeNVPTXTargetMC
        LLVMInitializeNVPTXAsmPrinter
    }
}

impl Api {
    /// The functions that register the targets this library was built with.
    pub fn target_initialisers(&self) -> impl Iterator<Item = Initialiser> {
        self.targets.iter().copied().flatten()
    }

    /// The version that the library reports.
    pub fn version(&self) -> Version {
        version_from(self.LLVMGetVersion)
    }
}

/// The type of `LLVMGetVersion`, which is asked before the rest of a library is trusted.
pub type GetVersion =
    unsafe extern "C" fn(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint);

/// Calls `LLVMGetVersion`.
pub fn version_from(get_version: GetVersion) -> Version {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the function writes three integers through valid pointers and keeps none of them.
    unsafe { get_version(&mut major, &mut minor, &mut patch) };
    Version {
        major,
        minor,
        patch,
    }
}
