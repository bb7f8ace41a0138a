//! Functions of a header in C that evaluate operations of expressions of the host.

use super::expr::triple;
use super::names::comment;
use std::fmt::{Result, Write};
use torre_compiler::lattice::Axis;
use torre_compiler::scheme::Scheme;

/// Prints them, their names beginning with `p`.
pub fn print(out: &mut String, p: &str, scheme: &Scheme) -> Result {
    write!(
        out,
        "/* A product that is rounded before it is used. */\n\
         static inline double {p}_mul(double a, double b) {{ volatile double r = a * b; return r; }}\n\
         static inline double {p}_min(double a, double b) {{ return a < b ? a : b; }}\n\
         static inline double {p}_max(double a, double b) {{ return a > b ? a : b; }}\n\
         static inline double {p}_pow(double a, double b) {{\n\
         \x20 if (b != trunc(b) || fabs(b) > 64.0) {{\n\
         \x20   /* Of a constant base, such as 2, a compiler would make another function, which rounds otherwise. */\n\
         \x20   volatile double base = a, exponent = b;\n\
         \x20   return pow(base, exponent);\n\
         \x20 }}\n\
         \x20 double result = 1.0;\n\
         \x20 for (unsigned n = (unsigned)fabs(b); n > 0; n >>= 1) {{\n\
         \x20   if (n & 1) result = {p}_mul(result, a);\n\
         \x20   a = {p}_mul(a, a);\n\
         \x20 }}\n\
         \x20 return b < 0.0 ? 1.0 / result : result;\n\
         }}\n\n"
    )?;
    if scheme.files.is_empty() {
        return Ok(());
    }
    let extent_of = |position| scheme.grid.extent(position).map(|i| i.hi);
    writeln!(
        out,
        "/* The arrays that {p}_init takes, as doubles in C order:"
    )?;
    for (i, file) in scheme.files.iter().enumerate() {
        let extent = extent_of(file.position);
        let path = comment(&file.path);
        writeln!(out, "   files[{i}]: {path}, {}", triple(extent))?;
    }
    let n = scheme.files.len();
    let extents: Vec<String> = scheme
        .files
        .iter()
        .map(|f| triple(extent_of(f.position)))
        .collect();
    let within: String = Axis::ALL
        .iter()
        .map(|&axis| {
            let (name, i) = (["x", "y", "z"][axis.index()], axis.index());
            let n = format!("n[file][{i}]");
            match scheme.grid.is_periodic(axis) {
                true => format!("  {name} = ({name} % {n} + {n}) % {n};\n"),
                false => {
                    format!("  {name} = {name} < 0 ? 0 : {name} < {n} ? {name} : {n} - 1;\n")
                }
            }
        })
        .collect();
    write!(
        out,
        "   Indices beyond the ends read the nearest value, or go around a periodic axis. */\n\
         static inline double {p}_file(const double *const *files, int file, int64_t x, int64_t y, int64_t z) {{\n\
         \x20 static const int64_t n[{n}][3] = {{{}}};\n\
         {}\x20 return files[file][(x * n[file][1] + y) * n[file][2] + z];\n\
         }}\n\n",
        extents.join(", "),
        within
    )
}
