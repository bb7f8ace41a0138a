//! Prepares for LLVM: notes where the toolchain that builds the compiler lies, since its libLLVM is one of the places
//! searched at run time, or, with the feature `llvm-static`, links LLVM's archives.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC");
    println!("cargo:rustc-env=TORRE_BUILD_SYSROOT={}", sysroot());
    if env::var_os("CARGO_FEATURE_LLVM_STATIC").is_some() {
        println!("cargo:rerun-if-env-changed={CONFIG_VARIABLE}");
        if Config::find().and_then(|config| config.link()).is_none() {
            println!(
                "cargo::error=the feature `llvm-static` needs LLVM 22 or 23 with its archives: install llvm-22-dev and \
                 libzstd-dev (Debian), or set {CONFIG_VARIABLE} to its llvm-config"
            );
        }
    }
}

/// What a command prints, without the space around it; nothing if it fails.
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

/// The variable that names the `llvm-config` to ask.
const CONFIG_VARIABLE: &str = "LLVM_CONFIG";

/// Where `llvm-config` is looked for otherwise.
const CONFIG_NAMES: [&str; 5] = [
    "llvm-config-22",
    "llvm-config-23",
    "/usr/lib/llvm-22/bin/llvm-config",
    "/usr/lib/llvm-23/bin/llvm-config",
    "llvm-config",
];

/// The parts of LLVM that the function table calls; `llvm-config` adds what they need.
const COMPONENTS: [&str; 6] = [
    "irreader",
    "passes",
    "orcjit",
    "x86codegen",
    "x86asmparser",
    "nvptxcodegen",
];

/// Libraries of LLVM's that are linked from their archives too, so that the executable needs the C library only.
const ARCHIVES: [&str; 3] = ["stdc++", "z", "zstd"];

/// The `llvm-config` of a version that serves.
struct Config(OsString);

impl Config {
    fn find() -> Option<Self> {
        let chosen = env::var_os(CONFIG_VARIABLE);
        let names: Vec<OsString> = match chosen {
            Some(chosen) => vec![chosen],
            None => CONFIG_NAMES.map(OsString::from).to_vec(),
        };
        names.into_iter().map(Self).find(Self::serves)
    }

    fn serves(&self) -> bool {
        output(&self.0, &["--version"])
            .is_some_and(|version| version.starts_with("22.") || version.starts_with("23."))
    }

    /// The words that `llvm-config` answers with for our components.
    fn ask(&self, what: &str) -> Option<Vec<String>> {
        let mut arguments = vec!["--link-static", what];
        arguments.extend(COMPONENTS);
        let answer = output(&self.0, &arguments)?;
        Some(answer.split_whitespace().map(str::to_owned).collect())
    }

    /// Tells cargo the archives and libraries, each before those that it needs.
    fn link(&self) -> Option<()> {
        let directory = output(&self.0, &["--libdir"])?;
        println!("cargo:rustc-link-search=native={directory}");
        for word in self.ask("--libs")? {
            let name = library_name(&word)?;
            println!("cargo:rustc-link-lib=static:-bundle={name}");
        }
        let system = self.ask("--system-libs")?;
        for word in system.iter().map(String::as_str).chain(["-lstdc++"]) {
            let name = library_name(word)?;
            if ARCHIVES.contains(&name) {
                link_archive(name);
                continue;
            }
            if let Some(directory) = Path::new(word).parent().filter(|d| d.is_absolute()) {
                println!("cargo:rustc-link-search=native={}", directory.display());
            }
            println!("cargo:rustc-link-lib=dylib={name}");
        }
        Some(())
    }
}

/// The library that a linker's argument means: `z` for `-lz`, `z3` for `/usr/lib/libz3.so`.
fn library_name(word: &str) -> Option<&str> {
    word.strip_prefix("-l").or_else(|| {
        let file = Path::new(word).file_name()?.to_str()?;
        file.strip_prefix("lib")?
            .split_once(".so")
            .map(|(name, _)| name)
    })
}

/// Links a library's archive where the C compiler knows one, and the shared library otherwise.
fn link_archive(name: &str) {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let question = format!("-print-file-name=lib{name}.a");
    // A compiler that knows no such file repeats its name.
    let archive = output(&compiler, &[&question]).map(PathBuf::from);
    match archive
        .as_deref()
        .filter(|path| path.is_absolute())
        .and_then(Path::parent)
    {
        Some(directory) => {
            println!("cargo:rustc-link-search=native={}", directory.display());
            println!("cargo:rustc-link-lib=static:-bundle={name}");
        }
        None => println!("cargo:rustc-link-lib=dylib={name}"),
    }
}
