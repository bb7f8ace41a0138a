//! Towers and pyramids of a plan, for people and for programs.

use crate::report::bytes;
use serde_json::{Value, json};
use std::fmt::Write;
use torre_runtime::plan::gpu::{Fit, PatchPlan, TimeBlockPlan, TowerPlan};

/// The shape and the needs of time blocks, line by line.
pub fn time_blocks_text(plan: &TimeBlockPlan) -> String {
    match plan {
        TimeBlockPlan::Towers(plan) => towers_text(plan),
        TimeBlockPlan::Patches(plan) => patches_text(plan),
    }
}

fn towers_text(plan: &TowerPlan) -> String {
    let Fit {
        block,
        kept,
        registers,
        ..
    } = &plan.fit;
    let (width, size) = plan.width();
    let size = size.map_or_else(String::new, |size| format!(", D = {size}"));
    let mut out = String::new();
    let mut line = |name, value: String, more: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:<9} {value:>8} {more}");
    };
    let shape = format!(
        "cells wide{size}: {} columns of cells, {} steps high; {} in a time block",
        plan.fit.towers().cells(),
        plan.height(),
        plan.count
    );
    line("tower", width.to_string(), shape);
    if let Some(z_blocks) = plan.z_blocks {
        let each = format!("z blocks of {}, one after the other", block.values);
        line("lines", z_blocks.to_string(), each);
    } else if let Some(slabs) = block.lines.slabs() {
        let each = format!("slabs of {}, for the blocks of a cluster", block.values);
        line("lines", slabs.count.to_string(), each);
    }
    let threads = block.roles.all().to_string();
    line("threads", threads, "of a block".to_owned());
    let shared = bytes(u64::from(block.shared_bytes));
    let rows = format!("of a block, {} rows", block.shared_rows);
    line("shared", shared, rows);
    let registers = format!("values of a thread, about {registers} registers");
    line("kept", kept.to_string(), registers);
    for variant in &plan.variants {
        let zones = match variant.zones.as_slice() {
            [] => "without layers".to_owned(),
            zones => format!("with {}", zones.join(", ")),
        };
        let cut = if variant.predicated {
            ", cut by ends"
        } else {
            ""
        };
        let faces = match variant.faces {
            true => ", near faces of total fields",
            false => "",
        };
        let towers = format!("towers {zones}{faces}{cut}");
        line("variant", variant.towers.to_string(), towers);
    }
    out
}

/// The shape and the needs of pyramids, line by line.
fn patches_text(plan: &PatchPlan) -> String {
    let program = &plan.program;
    let mut out = String::new();
    let mut line = |name, value: String, more: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:<9} {value:>8} {more}");
    };
    let bases = program.along.each_ref().map(|along| along.base);
    let of_axes = |numbers: &[i64; 3]| program.of_axes(numbers, " x ");
    let steps = program.height;
    let shape = format!(
        "bases of {} cells in tiles of {}, {steps} {} high",
        of_axes(&bases),
        of_axes(&program.shape.tile()),
        if steps == 1 { "step" } else { "steps" }
    );
    line("pyramids", program.tiles().to_string(), shape);
    if let Some(staying) = &program.stays {
        let steps = program.launch_steps();
        let neighbours = staying.width();
        let stay = format!(
            "steps of a launch: tiles stay on the chip, with up to {neighbours} neighbours"
        );
        line("stay", steps.to_string(), stay);
    }
    if program.rooms.any() {
        let zones = format!(
            "tiles with cells of zones, and {} for their states",
            bytes(plan.room_bytes)
        );
        line("zones", program.rooms.count.to_string(), zones);
    }
    let patch = of_axes(&program.shape.patch);
    let threads = format!("of a block, with {patch} cells each");
    line("threads", program.shape.all_threads().to_string(), threads);
    let blocks = program.shape.blocks;
    let shared = format!("of a block, {blocks} for a multiprocessor");
    line("shared", bytes(plan.shared_bytes), shared);
    let registers = format!("values of a thread, about {} registers", plan.registers);
    line("kept", program.values().to_string(), registers);
    out
}

/// The shape and the needs of pyramids, for programs.
pub fn patches_json(plan: &PatchPlan) -> Value {
    let program = &plan.program;
    let of_axes = |numbers: [i64; 3]| program.axes().map(|n| numbers[n]).collect::<Vec<i64>>();
    json!({
        "height": program.height,
        "steps_of_launch": program.launch_steps(),
        "per_time_block": program.tiles(),
        "tiles_in_zones": program.rooms.count,
        "room_bytes": plan.room_bytes,
        "base": of_axes(program.along.map(|along| along.base)),
        "tile": of_axes(program.shape.tile()),
        "patch": of_axes(program.shape.patch),
        "threads": program.shape.all_threads(),
        "blocks": program.shape.blocks,
        "shared_bytes": plan.shared_bytes,
        "kept_values": program.values(),
        "registers": plan.registers,
    })
}

/// The shape and the needs of towers, for programs.
pub fn towers_json(plan: &TowerPlan) -> Value {
    let (width, size) = plan.width();
    json!({
        "width": width.as_f64(),
        "size": size.map(|size| size.as_f64()),
        "height": plan.height(),
        "columns_of_cells": plan.fit.towers().cells(),
        "per_time_block": plan.count,
        "z_blocks": plan.z_blocks,
        "blocks_per_line": plan.fit.block.lines.cluster(),
        "threads": plan.fit.block.roles.all(),
        "shared_bytes": plan.fit.block.shared_bytes,
        "shared_rows": plan.fit.block.shared_rows,
        "kept_values": plan.fit.kept,
        "registers": plan.fit.registers,
        "variants": plan.variants.iter().map(|variant| json!({
            "zones": variant.zones,
            "faces": variant.faces,
            "predicated": variant.predicated,
            "towers": variant.towers,
        })).collect::<Vec<Value>>(),
    })
}
