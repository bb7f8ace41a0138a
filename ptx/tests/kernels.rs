//! Kernels as LLVM prints them, compared with Rust bit for bit.

use torre_ptx::{Device, Module, Options, Param};

fn heat_in_rust(mut u: Vec<f32>, steps: u32, a: f32, b: f32) -> Vec<f32> {
    for _ in 0..steps {
        let old = u.clone();
        for i in 1..65 {
            u[i] = b.mul_add(old[i - 1] + old[i + 1], a * old[i]);
        }
    }
    u
}

#[test]
fn steps_in_shared_memory_have_the_bits_of_rust() {
    let module = Module::parse(include_str!("fixtures/heat.ptx")).unwrap();
    let entry = module.entry("heat").unwrap();
    let u: Vec<f32> = (0..66).map(|i| (i as f32 * 0.7).sin()).collect();
    let expected = heat_in_rust(u.clone(), 9, 0.48, 0.26);
    for seed in 0..20 {
        let mut device = Device::new();
        let buffer = device.upload(&u);
        let params = [
            buffer.into(),
            Param::U32(9),
            Param::F32(0.48),
            Param::F32(0.26),
        ];
        let options = Options {
            seed,
            ..Options::default()
        };
        let counts = device
            .launch(entry, [1; 3], [64, 1, 1], 0, &params, &options)
            .unwrap();
        assert_eq!(device.download::<f32>(buffer), expected, "seed {seed}");
        assert_eq!(counts.barriers, 18);
        assert_eq!(counts.opcode("fma.rn.f32").threads, 64 * 9);
        assert_eq!(counts.global_stores.bytes, 64 * 4);
        assert_eq!(counts.shared_loads.bytes, 64 * 9 * 8);
        assert_eq!(counts.shared_loads.pieces, counts.shared_loads.ideal);
    }
}
