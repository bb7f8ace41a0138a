//! Kernels as LLVM prints them, compared with Rust bit for bit.

use torre_ptx::{Counts, Device, Fault, FaultKind, Module, Options, Param};

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

fn flow(
    text: &str,
    blocks: u32,
    steps: u32,
    options: &Options,
) -> Result<(Vec<f32>, Counts), Fault> {
    let module = Module::parse(text).unwrap();
    let cells = 32 * blocks as usize + 2;
    let mut device = Device::new();
    let u: Vec<f32> = (0..2 * cells)
        .map(|i| ((i % cells) as f32 * 0.3).cos())
        .collect();
    let buffer = device.upload(&u);
    let mut progress = vec![0u32; blocks as usize + 2];
    (progress[0], progress[blocks as usize + 1]) = (i32::MAX as u32, i32::MAX as u32);
    let progress = device.upload(&progress);
    let params = [
        buffer.into(),
        progress.into(),
        Param::U32(steps),
        Param::F32(0.48),
        Param::F32(0.26),
    ];
    let entry = module.entry("flow").unwrap();
    let counts = device.launch(entry, [blocks, 1, 1], [32, 1, 1], 0, &params, options)?;
    let last = cells * (steps as usize % 2);
    Ok((device.download(buffer)[last..last + cells].to_vec(), counts))
}

#[test]
fn blocks_that_wait_for_their_neighbours() {
    let text = include_str!("fixtures/flow.ptx");
    let (blocks, steps) = (5, 7);
    let cells = 32 * blocks + 2;
    let mut expected: Vec<f32> = (0..cells).map(|i| (i as f32 * 0.3).cos()).collect();
    for _ in 0..steps {
        let old = expected.clone();
        for i in 1..cells - 1 {
            expected[i] = 0.26f32.mul_add(old[i - 1] + old[i + 1], 0.48 * old[i]);
        }
    }
    for seed in 0..20 {
        let options = Options {
            seed,
            ..Options::default()
        };
        let (u, _) = flow(text, blocks as u32, steps, &options).unwrap();
        assert_eq!(u, expected, "seed {seed}");
    }
    let few = Options {
        resident: 4,
        ..Options::default()
    };
    assert_eq!(
        flow(text, 5, steps, &few).unwrap_err().kind,
        FaultKind::Deadlock
    );
    // The stages of the order are taken away one at a time.
    for (good, bad) in [
        (
            "ld.acquire.gpu.global.b32 \t%r12",
            "ld.relaxed.gpu.global.b32 \t%r12",
        ),
        (
            "ld.acquire.gpu.global.b32 \t%r13",
            "ld.relaxed.gpu.global.b32 \t%r13",
        ),
        ("st.release.gpu", "st.relaxed.gpu"),
        ("[%rd1+8]", "[%rd1]"),
        ("setp.lt.s32 \t%p2", "setp.le.s32 \t%p2"),
    ] {
        assert!(text.contains(good));
        let kinds: Vec<FaultKind> = (0..10)
            .filter_map(|seed| {
                let options = Options {
                    seed,
                    ..Options::default()
                };
                flow(&text.replace(good, bad), 5, steps, &options)
                    .err()
                    .map(|fault| fault.kind)
            })
            .collect();
        assert_eq!(kinds.len(), 10, "{bad}: {kinds:?}");
    }
    // The same without the barrier after the wait, and without the one before progress is published.
    for at in [text.find("bar.sync"), text.rfind("bar.sync")]
        .into_iter()
        .flatten()
    {
        let missing = format!("{}// {}", &text[..at], &text[at..]);
        let fault = flow(&missing, 5, steps, &Options::default()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Race, "{fault}");
    }
}

#[test]
fn rare_instructions_as_llvm_prints_them() {
    let module = Module::parse(include_str!("fixtures/mixture.ptx")).unwrap();
    let entry = module.entry("mixture").unwrap();
    for (n, h, b, d) in [
        (123_456_789_012i64, -7i16, 0xa5u8, 0.77),
        (-5, 300, 1, -1e9),
        (3, -1, 255, 12.5),
    ] {
        let mut device = Device::new();
        let out = device.alloc_tracked(8 * 8 * 32);
        let small = |value: u32| Param::U32(value);
        let params = [
            out.into(),
            Param::U64(n as u64),
            small(h as u16 as u32),
            small(b.into()),
            Param::F64(d),
        ];
        device
            .launch(entry, [1; 3], [32, 1, 1], 0, &params, &Options::default())
            .unwrap();
        let words: Vec<u64> = device.download(out);
        for (t, row) in words.chunks_exact(8).enumerate() {
            let local = if t % 8 == 0 { t as i64 } else { 7 };
            let mixed = (n / 7 + (n as u64 % (t as u64 + 9)) as i64).wrapping_mul(h.into()) as u64
                ^ u64::from(b);
            let table = [1.0f32, 2.5, -3.0, 4.25][t % 4];
            let least = (t as f32).min(table).copysign(table);
            let way = [10, 20, 30, 10, 40].get(t).copied().unwrap_or(50);
            let funnel = ((t as u64) << 32 | 0xdead_beef) << (t % 8) >> 32;
            let expected = [
                local as u64,
                mixed,
                u64::from(mixed.leading_zeros() + mixed.count_ones()),
                (d * f64::from(table)).floor().to_bits(),
                way,
                f64::from(least).to_bits(),
                i64::from(mixed as i8) as u64,
                i64::from(funnel as i32) as u64,
            ];
            assert_eq!(row, expected, "thread {t}, {n} {h} {b} {d}");
        }
    }
}
