//! Tells the compiler where the toolchain that builds it lies: its libLLVM is one of the places searched at run time.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC");
    println!("cargo:rustc-env=TORRE_BUILD_SYSROOT={}", sysroot());
}

/// The sysroot of the building toolchain; empty where it cannot be told, which only shortens the search.
fn sysroot() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => String::new(),
    }
}
