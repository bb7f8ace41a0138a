//! Machine code in memory.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ops::Deref;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use llvm_sys::error::LLVMErrorRef;
use llvm_sys::orc2::lljit::LLVMOrcLLJITRef;
use llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcCSymbolMapPair,
};

use super::api::Api;
use super::error::Work;
use super::handle::{Buffer, c_string, take_error};
use super::{Error, Library, Object};

/// An object loaded into the process. Clones share the code, which is freed with the last of them and of its
/// [`Entry`]s.
#[derive(Clone)]
pub struct Jit(Arc<Code>);

/// A session of LLVM's ORC linker that holds one object.
struct Code {
    library: &'static Library,
    raw: LLVMOrcLLJITRef,
    /// Shared with the linker, which reports symbols that it cannot resolve.
    sink: Arc<Sink>,
}

// SAFETY: ORC guards its sessions with locks, so that threads may look symbols up in one session at the same time; that
// is all that is done with a session between its creation and its disposal, and `drop` has it alone. Nothing in it is
// bound to the thread that made it.
unsafe impl Send for Code {}
// SAFETY: as for `Send`.
unsafe impl Sync for Code {}

/// The errors that a session reported on its own account.
struct Sink {
    library: &'static Library,
    errors: Mutex<Vec<String>>,
}

impl Sink {
    /// Takes the errors so far and appends them to the message that a call returned.
    fn explain(&self, message: String) -> String {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(message)
            .chain(errors.drain(..))
            .collect::<Vec<_>>()
            .join(": ")
    }
}

/// Collects an error of a session; LLVM would print it.
///
/// Only LLVM may call it; the type of reporters in `llvm-sys` has no `unsafe` to say so.
extern "C" fn on_session_error(opaque: *mut c_void, error: LLVMErrorRef) {
    // SAFETY: `opaque` is the sink that `Jit::load` registered, and its session keeps it alive.
    let sink = unsafe { &*opaque.cast::<Sink>() };
    // SAFETY: the reporter takes over the error.
    if let Err(message) = unsafe { take_error(&sink.library.api, error) } {
        let mut errors = sink.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.push(message);
    }
}

impl Jit {
    /// Loads an object. It may call the functions of [`symbols`] and of the process; they are resolved, and the
    /// object is linked, when one of its symbols is asked for first.
    pub fn load(library: &'static Library, object: &Object) -> Result<Self, Error> {
        let _work = Work::on("loading compiled code".to_owned());
        let api = &library.api;
        let failure = |message| Error::Load { message };
        let mut raw = ptr::null_mut();
        // SAFETY: the session is written through a valid pointer; no builder means the defaults, for this process.
        unsafe { take_error(api, (api.LLVMOrcCreateLLJIT)(&mut raw, ptr::null_mut())) }
            .map_err(failure)?;
        let code = Code {
            library,
            raw,
            sink: Arc::new(Sink {
                library,
                errors: Mutex::default(),
            }),
        };
        let sink = Arc::as_ptr(&code.sink).cast_mut().cast();
        let buffer = Buffer::copy(api, object.bytes());
        // SAFETY: the session is alive, and its library is its own. The sink is alive as long as the session, and
        // `on_session_error` may run on any thread. Adding an object takes the buffer over, also where it fails.
        let added = unsafe {
            let session = (api.LLVMOrcLLJITGetExecutionSession)(raw);
            (api.LLVMOrcExecutionSessionSetErrorReporter)(session, on_session_error, sink);
            define_symbols(api, raw).map_err(failure)?;
            let dylib = (api.LLVMOrcLLJITGetMainJITDylib)(raw);
            let error = (api.LLVMOrcLLJITAddObjectFile)(raw, dylib, buffer.into_raw());
            take_error(api, error)
        };
        added.map_err(|message| Error::Load {
            message: code.sink.explain(message),
        })?;
        Ok(Self(Arc::new(code)))
    }

    /// The address of a symbol, valid as long as this handle or a clone of it lives.
    pub fn address(&self, name: &str) -> Result<*const c_void, Error> {
        let _work = Work::on(format!("linking `{name}`"));
        let text = c_string(name, "symbol")?;
        let api = &self.0.library.api;
        let mut address = 0u64;
        // SAFETY: the session is alive, the name ends in zero, and the address is written through a valid pointer.
        let found = unsafe {
            let error = (api.LLVMOrcLLJITLookup)(self.0.raw, &mut address, text.as_ptr());
            take_error(api, error)
        };
        found.map_err(|message| Error::Symbol {
            name: name.to_owned(),
            message: self.0.sink.explain(message),
        })?;
        Ok(ptr::with_exposed_provenance(address as usize))
    }

    /// A function of the object, with a handle that keeps its code alive.
    ///
    /// # Safety
    /// `F` is a type of function pointer that states the ABI and the signature the IR gives this symbol. Copies of the
    /// pointer are not called after the last [`Entry`] or [`Jit`] of the object is gone. This processor has the
    /// features that the object was compiled for.
    pub unsafe fn entry<F: Copy>(&self, name: &str) -> Result<Entry<F>, Error> {
        const { assert!(size_of::<F>() == size_of::<*const c_void>()) }
        let address = self.address(name)?;
        // SAFETY: a function pointer has the size and the representation of an address, and it is not null, since a
        // symbol was found; the caller vouches for its type.
        let function = unsafe { std::mem::transmute_copy::<*const c_void, F>(&address) };
        Ok(Entry {
            function,
            jit: self.clone(),
        })
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let api = &self.library.api;
        // SAFETY: the last handle is gone, so nothing looks symbols up or runs the code, and the session is ours.
        let result = unsafe { take_error(api, (api.LLVMOrcDisposeLLJIT)(self.raw)) };
        // Memory that cannot be given back is lost; there is no remedy.
        drop(result);
    }
}

impl fmt::Debug for Jit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jit").field(&self.0.raw).finish()
    }
}

/// A function of loaded code; called through `*entry`. It keeps the code alive.
#[derive(Clone, Debug)]
pub struct Entry<F> {
    function: F,
    jit: Jit,
}

impl<F> Entry<F> {
    /// The code that the function belongs to.
    pub fn jit(&self) -> &Jit {
        &self.jit
    }
}

impl<F> Deref for Entry<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.function
    }
}

/// The flags of a function that other code may call.
const EXPORTED_AND_CALLABLE: u8 = LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported
    as u8
    | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8;

/// Makes the functions of [`symbols`] known to a session.
///
/// # Safety
/// The session is alive.
unsafe fn define_symbols(api: &Api, jit: LLVMOrcLLJITRef) -> Result<(), String> {
    let mut pairs = Vec::new();
    for (name, address) in symbols() {
        let Ok(name) = std::ffi::CString::new(name) else {
            continue;
        };
        pairs.push(LLVMOrcCSymbolMapPair {
            // SAFETY: the session is alive and the name ends in zero.
            Name: unsafe { (api.LLVMOrcLLJITMangleAndIntern)(jit, name.as_ptr()) },
            Sym: LLVMJITEvaluatedSymbol {
                Address: address.expose_provenance() as u64,
                Flags: LLVMJITSymbolFlags {
                    GenericFlags: EXPORTED_AND_CALLABLE,
                    TargetFlags: 0,
                },
            },
        });
    }
    // SAFETY: the array is valid during the call, which takes over the names but not the array. The unit goes to the
    // session's library, or stays ours where that fails.
    unsafe {
        let unit = (api.LLVMOrcAbsoluteSymbols)(pairs.as_mut_ptr(), pairs.len());
        let dylib = (api.LLVMOrcLLJITGetMainJITDylib)(jit);
        let defined = take_error(api, (api.LLVMOrcJITDylibDefine)(dylib, unit));
        if defined.is_err() {
            (api.LLVMOrcDisposeMaterializationUnit)(unit);
        }
        defined
    }
}

/// Defines C functions over Rust's operations on floats, and lists them with their names.
macro_rules! mathematics {
    ($($name:ident: $ty:ident::$method:ident($($arg:ident),*);)*) => {
        $(extern "C" fn $name($($arg: $ty),*) -> $ty {
            $ty::$method($($arg),*)
        })*

        /// The functions that compiled code may call, under the names of C's library, which LLVM calls for its
        /// intrinsics. They are Rust's functions, so that compiled and interpreted programs give the same bits.
        fn symbols() -> impl Iterator<Item = (&'static str, *const c_void)> {
            let mathematics = [$((stringify!($name), $name as *const c_void)),*];
            let memory = [
                ("memcpy", memcpy as *const c_void),
                ("memmove", memmove as *const c_void),
                ("memset", memset as *const c_void),
            ];
            mathematics.into_iter().chain(memory)
        }
    };
}

mathematics! {
    sin: f64::sin(x);
    cos: f64::cos(x);
    tan: f64::tan(x);
    asin: f64::asin(x);
    acos: f64::acos(x);
    atan: f64::atan(x);
    atan2: f64::atan2(y, x);
    sinh: f64::sinh(x);
    cosh: f64::cosh(x);
    tanh: f64::tanh(x);
    exp: f64::exp(x);
    exp2: f64::exp2(x);
    log: f64::ln(x);
    log2: f64::log2(x);
    log10: f64::log10(x);
    pow: f64::powf(x, y);
    fma: f64::mul_add(x, y, z);
    floor: f64::floor(x);
    ceil: f64::ceil(x);
    trunc: f64::trunc(x);
    round: f64::round(x);
    rint: f64::round_ties_even(x);
    roundeven: f64::round_ties_even(x);
    sinf: f32::sin(x);
    cosf: f32::cos(x);
    tanf: f32::tan(x);
    asinf: f32::asin(x);
    acosf: f32::acos(x);
    atanf: f32::atan(x);
    atan2f: f32::atan2(y, x);
    sinhf: f32::sinh(x);
    coshf: f32::cosh(x);
    tanhf: f32::tanh(x);
    expf: f32::exp(x);
    exp2f: f32::exp2(x);
    logf: f32::ln(x);
    log2f: f32::log2(x);
    log10f: f32::log10(x);
    powf: f32::powf(x, y);
    fmaf: f32::mul_add(x, y, z);
    floorf: f32::floor(x);
    ceilf: f32::ceil(x);
    truncf: f32::trunc(x);
    roundf: f32::round(x);
    rintf: f32::round_ties_even(x);
    roundevenf: f32::round_ties_even(x);
}

unsafe extern "C" {
    fn memcpy(target: *mut c_void, source: *const c_void, bytes: usize) -> *mut c_void;
    fn memmove(target: *mut c_void, source: *const c_void, bytes: usize) -> *mut c_void;
    fn memset(target: *mut c_void, value: c_int, bytes: usize) -> *mut c_void;
}
