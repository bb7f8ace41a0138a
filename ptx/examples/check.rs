//! Parses files of PTX and says what is wrong with them.
fn main() {
    for path in std::env::args().skip(1) {
        match std::fs::read_to_string(&path).map(|text| torre_ptx::Module::parse(&text)) {
            Ok(Ok(module)) => println!("{path}: {} kernels", module.entries().len()),
            Ok(Err(error)) => println!("{path}: {error}"),
            Err(error) => println!("{path}: {error}"),
        }
    }
}
