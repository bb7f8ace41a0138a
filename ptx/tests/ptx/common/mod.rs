//! Helpers of several tests: texts of kernels, launches.
pub mod values;

use torre_ptx::{Buffer, Counts, Device, Fault, Module, Options, Param};

/// A module with one kernel `k` of these parameters, declarations and statements.
pub fn module(params: &str, body: &str) -> Module {
    let text = text(params, body);
    Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The text of such a module.
pub fn text(params: &str, body: &str) -> String {
    let registers = ".reg .pred %p<10>;\n.reg .b16 %h<10>;\n.reg .b32 %r<40>;\n.reg .b64 %d<40>;";
    let head =
        ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 128 .b8 dynamic[];";
    format!("{head}\n.visible .entry k({params})\n{{\n{registers}\n{body}\nret;\n}}\n")
}

/// Parameters that are addresses.
pub fn pointers(names: &[&str]) -> String {
    let each = names.iter().map(|name| format!(".param .u64 {name}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Runs a kernel on a buffer of zeros.
pub fn run(
    module: &Module,
    grid: u32,
    block: u32,
    words: usize,
    options: &Options,
) -> Result<(Vec<u32>, Counts), Fault> {
    let mut device = Device::new();
    let buffer = device.upload(&vec![0u32; words]);
    let counts = launch(&mut device, module, grid, block, &[buffer], options)?;
    Ok((device.download(buffer), counts))
}

/// Launches `k` with buffers as arguments and a dynamic shared memory of 4 KiB.
pub fn launch(
    device: &mut Device,
    module: &Module,
    grid: u32,
    block: u32,
    buffers: &[Buffer],
    options: &Options,
) -> Result<Counts, Fault> {
    let params: Vec<Param> = buffers.iter().map(|buffer| Param::from(*buffer)).collect();
    let entry = module.entry("k").expect("a kernel");
    device.launch(entry, [grid, 1, 1], [block, 1, 1], 4096, &params, options)
}

/// Options with this seed.
pub fn seed(seed: u64) -> Options {
    Options {
        seed,
        ..Options::default()
    }
}

/// `%r1` is the thread, `%d1` the address of its word in `a`, `%d2` that in shared memory.
pub const PLACES: &str = "
mov.u32 %r1, %tid.x;
mul.wide.u32 %d3, %r1, 4;
ld.param.u64 %d1, [a];
add.s64 %d1, %d1, %d3;
mov.u64 %d2, dynamic;
add.s64 %d2, %d2, %d3;
";
