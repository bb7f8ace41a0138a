//! The C programs: building them, and running them alternately with Torre.

use crate::cases::Case;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use torre_compiler::scheme::Precision;

/// A folder for programs, removed at the end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> io::Result<Folder> {
        let folder = (0..)
            .map(|n| std::env::temp_dir().join(format!("torre-bench-{}-{n}", std::process::id())))
            .find_map(|path| match fs::create_dir(&path) {
                Ok(()) => Some(Ok(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => None,
                Err(e) => Some(Err(e)),
            });
        folder
            .unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
            .map(Folder)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind in the system's temporary files does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The C programs, so that the benchmark runs where its sources are not.
const SOURCES: &[(&str, &str)] = &[
    ("common.h", include_str!("../c/common.h")),
    ("elastic.c", include_str!("../c/elastic.c")),
    ("maxwell.c", include_str!("../c/maxwell.c")),
    ("stream.c", include_str!("../c/stream.c")),
    ("te.c", include_str!("../c/te.c")),
    ("wave.c", include_str!("../c/wave.c")),
];

/// A compiler and a folder for its programs.
#[derive(Debug)]
pub struct Builder {
    compiler: String,
    flags: Vec<String>,
    folder: Folder,
}

impl Builder {
    pub const FLAGS: &str = "-O3 -march=native -ffast-math -fopenmp";

    pub fn new(compiler: &str, flags: &str) -> io::Result<Builder> {
        Ok(Builder {
            compiler: compiler.to_string(),
            flags: flags.split_whitespace().map(str::to_string).collect(),
            folder: Folder::new()?,
        })
    }

    /// For reports: `cc -O3 ...`.
    pub fn description(&self) -> String {
        format!("{} {}", self.compiler, self.flags.join(" "))
    }

    /// The first line of the compiler's version text.
    pub fn version(&self) -> String {
        let output = Command::new(&self.compiler).arg("--version").output();
        let text = output.map_or(String::new(), |o| {
            String::from_utf8_lossy(&o.stdout).into_owned()
        });
        text.lines().next().unwrap_or("unknown").to_string()
    }

    /// Builds the program of a case for a time step.
    pub fn build(&self, case: &Case, precision: Precision, dt: f64) -> Result<PathBuf, String> {
        let real = match precision {
            Precision::F32 => "float",
            Precision::F64 => "double",
        };
        let defines = [
            format!("-DREAL={real}"),
            format!("-DORDER={}", case.order),
            format!("-DDT={dt:?}"),
        ];
        self.compile(
            case.baseline,
            &format!("{}-{precision}", case.name),
            &defines,
        )
    }

    /// Builds the program that measures bandwidth.
    pub fn build_stream(&self) -> Result<PathBuf, String> {
        self.compile("stream.c", "stream", &[])
    }

    fn compile(&self, file: &str, name: &str, defines: &[String]) -> Result<PathBuf, String> {
        let program = self.folder.join(name);
        for (name, text) in SOURCES {
            let path = self.folder.join(name);
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let source = self.folder.join(file);
        let output = Command::new(&self.compiler)
            .args(&self.flags)
            .args(defines)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .arg("-lm")
            .output()
            .map_err(|e| format!("{}: {e}", self.compiler))?;
        if output.status.success() {
            Ok(program)
        } else {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("{file} does not compile: {text}"))
        }
    }
}

/// A command whose threads stay on cores of their own, from the first one on.
pub fn pinned(program: &Path, threads: usize) -> Command {
    let mut command = Command::new(program);
    command
        .env("OMP_NUM_THREADS", threads.to_string())
        .env("OMP_DYNAMIC", "false")
        .env("OMP_PLACES", "cores")
        .env("OMP_PROC_BIND", "close")
        // Long enough from one loop to the next, short enough that its threads leave the cores to Torre after a
        // command.
        .env("GOMP_SPINCOUNT", "30000");
    command
}

/// A baseline that waits for commands.
#[derive(Debug)]
pub struct Baseline {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    values: usize,
    precision: Precision,
}

impl Baseline {
    pub fn start(
        program: &Path,
        precision: Precision,
        cells: [i64; 3],
        threads: usize,
    ) -> Result<Baseline, String> {
        let mut child = pinned(program, threads)
            .args(cells.map(|n| n.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Baseline {
                child,
                input: Some(input),
                output: BufReader::new(output),
                values: cells.iter().product::<i64>() as usize,
                precision,
            }),
            _ => Err("the baseline has no pipes".to_string()),
        }
    }

    fn send(&mut self, command: &str) -> io::Result<()> {
        match &mut self.input {
            Some(input) => {
                writeln!(input, "{command}")?;
                input.flush()
            }
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Advances some steps; seconds.
    pub fn run(&mut self, steps: u64) -> Result<f64, String> {
        let mut line = String::new();
        self.send(&format!("run {steps}"))
            .and_then(|()| self.output.read_line(&mut line))
            .map_err(|e| format!("the baseline stopped: {e}"))?;
        let seconds = line.trim().parse();
        seconds.map_err(|_| format!("the baseline answered `{}`", line.trim()))
    }

    /// The values of some fields.
    pub fn dump(&mut self, fields: usize) -> Result<Vec<Vec<f64>>, String> {
        let read = |this: &mut Self| {
            this.send("dump")?;
            let mut bytes = vec![0; fields * this.values * this.precision.bytes()];
            this.output.read_exact(&mut bytes)?;
            io::Result::Ok(bytes)
        };
        let bytes = read(self).map_err(|e| format!("the baseline stopped: {e}"))?;
        let all: Vec<f64> = match self.precision {
            Precision::F32 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| f64::from(f32::from_ne_bytes(*b)))
                .collect(),
            Precision::F64 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| f64::from_ne_bytes(*b))
                .collect(),
        };
        Ok(all
            .chunks(self.values.max(1))
            .map(<[f64]>::to_vec)
            .collect())
    }

    /// The number by which the system knows the process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        // Without input it ends by itself.
        self.input = None;
        let _ = self.child.wait();
    }
}
