//! For any input there is an answer: a scheme that keeps its rules, or diagnostics with an error.

use crate::garbage::Bytes;
use crate::support::*;
use proptest::prelude::*;
use torre_compiler::resolve::{Options, check, codes, resolve};
use torre_compiler::scheme::{Body, verify};
use torre_grammar::source::Source;

/// Whether every operation is an operand of another, or the result.
fn all_needed(body: &Body) -> bool {
    let mut needed = vec![false; body.ops.len()];
    needed[body.result.index()] = true;
    for op in &body.ops {
        op.operands(|v| needed[v.index()] = true);
    }
    needed.into_iter().all(|n| n)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 800,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn garbage_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
        let ast = Bytes::new(&bytes).ast();
        let source = Source::new("garbage.torre", "0123456789 ".repeat(6));
        let world = TestWorld {
            arrays: vec![("eps.npy", "<f4", vec![8, 8])],
            tables: vec![("wave.csv", "t a b\n0 1 2\n1 3 4\n")],
            ..TestWorld::default()
        };
        let options = Options::default();
        let diagnostics = match resolve(&world, &source, &ast, &options) {
            Ok(resolved) => {
                prop_assert!(verify(&resolved.scheme).is_ok());
                for update in resolved.scheme.stages.iter().flat_map(|s| &s.updates) {
                    prop_assert!(all_needed(&update.body));
                }
                resolved.warnings
            }
            Err(d) => {
                prop_assert!(d.has_errors());
                d
            }
        };
        let all = check(&world, &source, &ast, &options);
        for d in diagnostics.0.iter().chain(&all.0) {
            prop_assert_ne!(d.code, codes::INTERNAL, "{}", d.message);
        }
    }
}
