//! The executable: all of it is in the library, which is compiled while the code of the compiler is generated.

use std::process::ExitCode;

fn main() -> ExitCode {
    torre_cli::main()
}
