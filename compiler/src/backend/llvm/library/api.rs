//! The functions of LLVM's C API that Torre calls, in one table.
//!
//! Types, constants and declarations come from the crate `llvm-sys`. The table is filled from a library opened at
//! run time (feature `llvm-dlopen`) or by the linker (`llvm-static`). Rust has no expression for the type of a declared
//! function, so the table states each signature again, and the compiler compares it with the declaration.

#![allow(non_snake_case)]

use std::ffi::{c_char, c_uint, c_void};

use declared::*;

use super::version::Version;

/// The declarations by themselves: every function of the C API has one name, in whichever header.
mod declared {
    pub use llvm_sys::analysis::*;
    pub use llvm_sys::core::*;
    pub use llvm_sys::error::*;
    pub use llvm_sys::error_handling::*;
    pub use llvm_sys::ir_reader::*;
    pub use llvm_sys::orc2::lljit::*;
    pub use llvm_sys::orc2::*;
    pub use llvm_sys::prelude::*;
    pub use llvm_sys::target::*;
    pub use llvm_sys::target_machine::*;
    pub use llvm_sys::transforms::pass_builder::*;
    pub use llvm_sys::{LLVMDiagnosticHandler, LLVMDiagnosticSeverity};
}

/// Registers one part of a target.
pub type Initialiser = unsafe extern "C" fn();

macro_rules! api {
    (
        targets { $($target:ident)* }
        functions { $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)* }
    ) => {
        /// The table: one pointer per function, all of them bound before the first call.
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg: $ty),*) $(-> $ret)?,)*
            /// The functions that register the code generators. A library built without a target lacks its functions.
            targets: [Option<Initialiser>; [$(stringify!($target)),*].len()],
        }

        // Each signature of the table against the declaration of `llvm-sys`: a difference does not compile. Constants
        // without a name leave no code behind, so nothing is linked.
        $(const _: unsafe extern "C" fn($($ty),*) $(-> $ret)? = declared::$name;)*
        $(const _: Initialiser = declared::$target;)*

        #[cfg(feature = "llvm-dlopen")]
        impl Api {
            /// Binds the table to a library; the error is the name of the first function that is missing.
            ///
            /// # Safety
            /// The library must be an LLVM whose C API has the types declared by `llvm-sys`.
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

        #[cfg(not(feature = "llvm-dlopen"))]
        impl Api {
            /// The table of the LLVM that is linked into this executable.
            pub fn linked() -> Self {
                Self {
                    $($name: declared::$name,)*
                    targets: [$(Some(declared::$target)),*],
                }
            }
        }
    };
}

api! {
    targets {
        LLVMInitializeX86TargetInfo LLVMInitializeX86Target LLVMInitializeX86TargetMC
        LLVMInitializeX86AsmPrinter LLVMInitializeX86AsmParser
        LLVMInitializeAArch64TargetInfo LLVMInitializeAArch64Target LLVMInitializeAArch64TargetMC
        LLVMInitializeAArch64AsmPrinter LLVMInitializeAArch64AsmParser
        LLVMInitializeRISCVTargetInfo LLVMInitializeRISCVTarget LLVMInitializeRISCVTargetMC
        LLVMInitializeRISCVAsmPrinter LLVMInitializeRISCVAsmParser
        LLVMInitializeNVPTXTargetInfo LLVMInitializeNVPTXTarget LLVMInitializeNVPTXTargetMC
        LLVMInitializeNVPTXAsmPrinter
    }
    functions {
        LLVMGetVersion(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint);
        LLVMDisposeMessage(message: *mut c_char);

        LLVMContextCreate() -> LLVMContextRef;
        LLVMContextDispose(context: LLVMContextRef);
        LLVMContextSetDiagnosticHandler(
            context: LLVMContextRef, handler: LLVMDiagnosticHandler, opaque: *mut c_void
        );
        LLVMGetDiagInfoDescription(info: LLVMDiagnosticInfoRef) -> *mut c_char;
        LLVMGetDiagInfoSeverity(info: LLVMDiagnosticInfoRef) -> LLVMDiagnosticSeverity;

        LLVMCreateMemoryBufferWithMemoryRangeCopy(
            data: *const c_char, length: usize, name: *const c_char
        ) -> LLVMMemoryBufferRef;
        LLVMDisposeMemoryBuffer(buffer: LLVMMemoryBufferRef);
        LLVMGetBufferStart(buffer: LLVMMemoryBufferRef) -> *const c_char;
        LLVMGetBufferSize(buffer: LLVMMemoryBufferRef) -> usize;

        LLVMDisposeModule(module: LLVMModuleRef);
        LLVMPrintModuleToString(module: LLVMModuleRef) -> *mut c_char;
        LLVMSetTarget(module: LLVMModuleRef, triple: *const c_char);

        LLVMInstallFatalErrorHandler(handler: LLVMFatalErrorHandler);

        LLVMGetErrorMessage(error: LLVMErrorRef) -> *mut c_char;
        LLVMDisposeErrorMessage(message: *mut c_char);

        LLVMParseIRInContext2(
            context: LLVMContextRef, buffer: LLVMMemoryBufferRef, module: *mut LLVMModuleRef,
            message: *mut *mut c_char
        ) -> LLVMBool;

        LLVMVerifyModule(
            module: LLVMModuleRef, action: LLVMVerifierFailureAction, message: *mut *mut c_char
        ) -> LLVMBool;

        LLVMSetModuleDataLayout(module: LLVMModuleRef, layout: LLVMTargetDataRef);
        LLVMDisposeTargetData(layout: LLVMTargetDataRef);

        LLVMCreateTargetDataLayout(machine: LLVMTargetMachineRef) -> LLVMTargetDataRef;
        LLVMGetDefaultTargetTriple() -> *mut c_char;
        LLVMGetHostCPUName() -> *mut c_char;
        LLVMGetHostCPUFeatures() -> *mut c_char;
        LLVMGetTargetFromTriple(
            triple: *const c_char, target: *mut LLVMTargetRef, message: *mut *mut c_char
        ) -> LLVMBool;
        LLVMCreateTargetMachine(
            target: LLVMTargetRef, triple: *const c_char, cpu: *const c_char, features: *const c_char,
            level: LLVMCodeGenOptLevel, reloc: LLVMRelocMode, code_model: LLVMCodeModel
        ) -> LLVMTargetMachineRef;
        LLVMDisposeTargetMachine(machine: LLVMTargetMachineRef);
        LLVMTargetMachineEmitToMemoryBuffer(
            machine: LLVMTargetMachineRef, module: LLVMModuleRef, file: LLVMCodeGenFileType,
            message: *mut *mut c_char, buffer: *mut LLVMMemoryBufferRef
        ) -> LLVMBool;

        LLVMCreatePassBuilderOptions() -> LLVMPassBuilderOptionsRef;
        LLVMDisposePassBuilderOptions(options: LLVMPassBuilderOptionsRef);
        LLVMRunPasses(
            module: LLVMModuleRef, passes: *const c_char, machine: LLVMTargetMachineRef,
            options: LLVMPassBuilderOptionsRef
        ) -> LLVMErrorRef;

        LLVMOrcExecutionSessionSetErrorReporter(
            session: LLVMOrcExecutionSessionRef, reporter: LLVMOrcErrorReporterFunction, opaque: *mut c_void
        );
        LLVMOrcAbsoluteSymbols(pairs: LLVMOrcCSymbolMapPairs, count: usize) -> LLVMOrcMaterializationUnitRef;
        LLVMOrcDisposeMaterializationUnit(unit: LLVMOrcMaterializationUnitRef);
        LLVMOrcJITDylibDefine(dylib: LLVMOrcJITDylibRef, unit: LLVMOrcMaterializationUnitRef) -> LLVMErrorRef;

        LLVMOrcCreateLLJIT(jit: *mut LLVMOrcLLJITRef, builder: LLVMOrcLLJITBuilderRef) -> LLVMErrorRef;
        LLVMOrcDisposeLLJIT(jit: LLVMOrcLLJITRef) -> LLVMErrorRef;
        LLVMOrcLLJITGetExecutionSession(jit: LLVMOrcLLJITRef) -> LLVMOrcExecutionSessionRef;
        LLVMOrcLLJITGetMainJITDylib(jit: LLVMOrcLLJITRef) -> LLVMOrcJITDylibRef;
        LLVMOrcLLJITMangleAndIntern(
            jit: LLVMOrcLLJITRef, name: *const c_char
        ) -> LLVMOrcSymbolStringPoolEntryRef;
        LLVMOrcLLJITAddObjectFile(
            jit: LLVMOrcLLJITRef, dylib: LLVMOrcJITDylibRef, object: LLVMMemoryBufferRef
        ) -> LLVMErrorRef;
        LLVMOrcLLJITLookup(
            jit: LLVMOrcLLJITRef, address: *mut LLVMOrcExecutorAddress, name: *const c_char
        ) -> LLVMErrorRef;
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
