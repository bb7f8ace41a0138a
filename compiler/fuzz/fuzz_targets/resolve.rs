//! Programs of random trees, or of random text where the input begins like text.

#![no_main]

#[path = "../../tests/resolve/garbage.rs"]
mod garbage;
#[path = "../../tests/resolve/support.rs"]
#[allow(dead_code)]
mod support;

use libfuzzer_sys::fuzz_target;
use support::TestWorld;
use torre_compiler::resolve::{Options, check, codes, resolve};
use torre_compiler::scheme::verify;
use torre_grammar::source::Source;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let is_text = first.is_ascii_graphic() || first.is_ascii_whitespace();
    let (source, ast) = if is_text {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        let source = Source::new("fuzz.torre", text);
        match torre_grammar::parse(&source) {
            Ok(ast) => (source, ast),
            Err(_) => return,
        }
    } else {
        let ast = garbage::Bytes::new(rest).ast();
        (Source::new("fuzz.torre", "0123456789 ".repeat(6)), ast)
    };
    let world = TestWorld {
        modules: vec![("ring", "use chain::f"), ("chain", "use ring::f")],
        arrays: vec![
            ("eps.npy", "<f4", vec![8, 8]),
            ("media/rods.npy", "<f4", vec![150, 150]),
        ],
    };
    let options = Options {
        memory: Some(1 << 40),
        ..Options::default()
    };
    let diagnostics = match resolve(&world, &source, &ast, &options) {
        Ok(resolved) => {
            assert_eq!(verify(&resolved.scheme), Ok(()));
            resolved.warnings
        }
        Err(d) => {
            assert!(d.has_errors());
            d
        }
    };
    let all = check(&world, &source, &ast, &options);
    for d in diagnostics.0.iter().chain(&all.0) {
        assert_ne!(d.code, codes::INTERNAL, "{}", d.message);
    }
});
