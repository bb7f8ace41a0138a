//! The baselines in CUDA: finding a compiler, building them, or finding them where they were built before, and running
//! them.

use crate::baseline::Folder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The programs, and the files that they include.
const SOURCES: [(&str, &str); 5] = [
    ("common.cuh", include_str!("../../cuda/common.cuh")),
    ("heat.cu", include_str!("../../cuda/heat.cu")),
    ("elastic.cu", include_str!("../../cuda/elastic.cu")),
    ("maxwell.cu", include_str!("../../cuda/maxwell.cu")),
    ("wave.cu", include_str!("../../cuda/wave.cu")),
];

/// The baselines.
#[derive(Debug)]
pub struct Programs {
    origin: Origin,
    found: BTreeMap<&'static str, Result<PathBuf, String>>,
}

/// Where programs come from.
#[derive(Debug)]
enum Origin {
    /// A folder of programs that were built before, each named as its file without the extension.
    Built(PathBuf),
    Compiler(Nvcc),
}

/// A compiler for CUDA.
#[derive(Debug)]
struct Nvcc {
    compiler: PathBuf,
    /// Compute capability, major * 10 + minor.
    capability: u32,
    /// With the sources.
    folder: Folder,
}

/// Where a compiler may be, best first: `named`, or the places that the environment names.
fn places(named: Option<&str>, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![PathBuf::from(named)];
    }
    let path = variable("PATH").unwrap_or_default();
    let homes = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(variable)
        .map(|home| PathBuf::from(home).join("bin"));
    std::env::split_paths(&path)
        .chain(homes)
        .chain([PathBuf::from("/usr/local/cuda/bin")])
        .map(|folder| folder.join("nvcc"))
        .collect()
}

impl Programs {
    /// Programs from a folder, or else from `nvcc`; or the missing part.
    pub fn find(
        built: Option<&str>,
        named: Option<&str>,
        capability: u32,
    ) -> Result<Programs, String> {
        let origin = match built {
            Some(folder) if !Path::new(folder).is_dir() => {
                return Err(format!("{folder} is not a folder"));
            }
            Some(folder) => Origin::Built(PathBuf::from(folder)),
            None => Origin::Compiler(Nvcc::find(named, capability)?),
        };
        Ok(Programs {
            origin,
            found: BTreeMap::new(),
        })
    }

    /// For reports.
    pub fn description(&self) -> String {
        match &self.origin {
            Origin::Built(folder) => format!("programs in {}", folder.display()),
            Origin::Compiler(nvcc) => nvcc.description(),
        }
    }

    /// The program of a file, built when it is first wanted.
    fn program(&mut self, file: &'static str) -> Result<PathBuf, String> {
        let origin = &self.origin;
        let found = self.found.entry(file).or_insert_with(|| match origin {
            Origin::Built(folder) => Ok(folder.join(file).with_extension("")),
            Origin::Compiler(nvcc) => nvcc.build(file),
        });
        found.clone()
    }

    /// The answer of a program, a line of JSON.
    pub fn run(&mut self, file: &'static str, words: &[String]) -> Result<Value, String> {
        let program = self.program(file)?;
        let output = answer(Command::new(&program).args(words), &program)?;
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(text.trim()).map_err(|_| format!("{file} answered `{}`", text.trim()))
    }
}

impl Nvcc {
    fn find(named: Option<&str>, capability: u32) -> Result<Nvcc, String> {
        let compiler = places(named, |name| std::env::var_os(name))
            .into_iter()
            .find(|path| Command::new(path).arg("--version").output().is_ok())
            .ok_or(
                "there is no nvcc in PATH, CUDA_HOME/bin, CUDA_PATH/bin or /usr/local/cuda/bin",
            )?;
        let folder = Folder::new().map_err(|e| e.to_string())?;
        for (name, text) in SOURCES {
            fs::write(folder.join(name), text).map_err(|e| e.to_string())?;
        }
        Ok(Nvcc {
            compiler,
            capability,
            folder,
        })
    }

    fn description(&self) -> String {
        let output = Command::new(&self.compiler).arg("--version").output();
        let text = output.map_or(String::new(), |o| {
            String::from_utf8_lossy(&o.stdout).into_owned()
        });
        let release = text.lines().find(|line| line.contains("release"));
        let flags = self.flags().join(" ");
        format!(
            "{} {flags}; {}",
            self.compiler.display(),
            release.unwrap_or("of an unknown release").trim()
        )
    }

    fn flags(&self) -> [String; 3] {
        [
            "-O3".to_string(),
            "-std=c++17".to_string(),
            format!("-arch=sm_{}", self.capability),
        ]
    }

    fn build(&self, file: &str) -> Result<PathBuf, String> {
        let program = self.folder.join(file).with_extension("");
        let mut command = Command::new(&self.compiler);
        command
            .args(self.flags())
            .arg(self.folder.join(file))
            .arg("-o")
            .arg(&program);
        answer(&mut command, &self.compiler).map(|_| program)
    }
}

/// The output of a command that succeeds.
fn answer(command: &mut Command, name: &Path) -> Result<Output, String> {
    let name = name.display();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!(
            "{name}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_is_looked_for_in_order() {
        let variable = |name: &str| match name {
            "PATH" => Some(OsString::from("/a:/b")),
            "CUDA_HOME" => Some(OsString::from("/c")),
            _ => None,
        };
        let found = places(None, variable);
        let expected = [
            "/a/nvcc",
            "/b/nvcc",
            "/c/bin/nvcc",
            "/usr/local/cuda/bin/nvcc",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        assert_eq!(places(Some("own"), variable), [PathBuf::from("own")]);
    }

    #[test]
    fn what_is_not_there_is_missed() {
        assert!(Programs::find(None, Some("/nowhere/nvcc"), 90).is_err());
        assert!(Programs::find(Some("/nowhere"), None, 90).is_err());
        let here = env!("CARGO_MANIFEST_DIR");
        let mut programs = Programs::find(Some(here), None, 90).expect("a folder");
        assert!(programs.run("maxwell.cu", &[]).is_err());
    }
}
