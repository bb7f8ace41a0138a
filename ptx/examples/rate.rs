//! How many instructions of threads are interpreted in a second: `rate FILE KERNEL BLOCKS THREADS WORDS SHARED
//! [U32|F32]...`
//!
//! The first argument of the kernel is a buffer of WORDS words for each block; the others follow.

use std::time::Instant;
use torre_ptx::{Device, Module, Options, Param};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, kernel, blocks, threads, words, shared, rest @ ..] = &args[..] else {
        return Err("FILE KERNEL BLOCKS THREADS WORDS SHARED are needed".into());
    };
    let text = std::fs::read_to_string(file)?;
    let start = Instant::now();
    let module = Module::parse(&text)?;
    println!("parsed in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let entry = module.entry(kernel).ok_or("no such kernel")?;
    let (blocks, words): (u32, usize) = (blocks.parse()?, words.parse()?);
    for races in [true, false] {
        let mut device = Device::new();
        let values: Vec<f32> = (0..words * blocks as usize)
            .map(|i| (i % 101) as f32 * 0.01)
            .collect();
        let mut params = vec![Param::from(device.upload(&values))];
        for value in rest {
            params.push(match value.parse() {
                Ok(number) => Param::U32(number),
                Err(_) => Param::F32(value.parse()?),
            });
        }
        let options = Options {
            races,
            ..Options::default()
        };
        let start = Instant::now();
        let counts = device.launch(
            entry,
            [blocks, 1, 1],
            [threads.parse()?, 1, 1],
            shared.parse()?,
            &params,
            &options,
        )?;
        let seconds = start.elapsed().as_secs_f64();
        let number = counts.instructions.threads as f64;
        println!(
            "races {races}: {number:.3e} instructions of threads in {seconds:.3} s, {:.0} million/s",
            number / seconds * 1e-6
        );
    }
    Ok(())
}
