//! Notes where the toolchain that builds the compiler lies: its libLLVM is one of the places searched at run time. With
//! the feature `llvm-static`, offers the archives of the libraries that LLVM needs.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC");
    println!("cargo:rustc-env=TORRE_BUILD_SYSROOT={}", sysroot());
    if env::var_os("CARGO_FEATURE_LLVM_STATIC").is_some() {
        ARCHIVES.into_iter().for_each(offer_archive);
    }
}

/// The output of a command, without the space around it; nothing if it fails.
fn output(program: &OsStr, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The sysroot of the building toolchain; empty where it cannot be told, which only shortens the search.
fn sysroot() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    output(&rustc, &["--print", "sysroot"]).unwrap_or_default()
}

/// Libraries that `llvm-sys` links as shared ones after LLVM's archives.
const ARCHIVES: [&str; 3] = ["stdc++", "z", "zstd"];

/// Puts a library's archive before the shared library where the C compiler knows one. Rust's linker takes the library
/// that it finds first and drops shared libraries of which it takes nothing, so that the executable needs the C library
/// only; a linker that insists on the order takes the shared library.
fn offer_archive(name: &str) {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    // A compiler that knows no such file repeats its name.
    let archive = output(&compiler, &[&format!("-print-file-name=lib{name}.a")]).map(PathBuf::from);
    if let Some(directory) = archive
        .filter(|path| path.is_absolute())
        .as_deref()
        .and_then(Path::parent)
    {
        println!("cargo:rustc-link-search=native={}", directory.display());
        println!("cargo:rustc-link-lib=static:-bundle={name}");
    }
}
