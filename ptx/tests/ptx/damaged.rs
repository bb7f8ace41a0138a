//! Texts that are damaged at random: an error, a fault or a result, and no panic.

use torre_ptx::{Device, Module, Options, Param};

/// A generator of numbers (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }
}

/// One to three lines are removed, exchanged, repeated or changed in one word.
fn damage(text: &str, words: &[&str], random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for _ in 0..1 + random.below(3) {
        let (line, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(5) {
            0 => drop(lines.remove(line)),
            1 => lines.swap(line, other),
            2 => lines.insert(other, lines[line].clone()),
            3 => {
                let mut parts: Vec<&str> = lines[line].split_whitespace().collect();
                let place = random.below(parts.len());
                if let Some(part) = parts.get_mut(place) {
                    *part = words[random.below(words.len())];
                }
                lines[line] = parts.join(" ");
            }
            _ => {
                let mut bytes = lines[line].clone().into_bytes();
                let place = random.below(bytes.len());
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = 32 + random.below(95) as u8;
                }
                lines[line] = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
    }
    lines.join("\n")
}

#[test]
fn nothing_panics() {
    let texts = [
        include_str!("fixtures/heat.ptx"),
        include_str!("fixtures/flow.ptx"),
        include_str!("fixtures/mixture.ptx"),
    ];
    let words: Vec<&str> = texts
        .iter()
        .flat_map(|text| text.split_whitespace())
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut refused, mut launched) = (0, 0);
    for round in 0..3000 {
        let text = damage(texts[round % texts.len()], &words, &mut random);
        let Ok(module) = Module::parse(&text) else {
            refused += 1;
            continue;
        };
        for entry in module.entries() {
            let mut device = Device::new();
            let a = Param::from(device.upload(&[0u32; 4096]));
            let (steps, x, y) = (Param::U32(3), Param::F32(0.5), Param::F32(0.25));
            let params = match round % texts.len() {
                0 => vec![a, steps, x, y],
                1 => vec![a.clone(), a, steps, x, y],
                _ => vec![a, Param::U64(77), steps.clone(), steps, Param::F64(0.5)],
            };
            let options = Options {
                limit: 20_000,
                idle_rounds: 50,
                ..Options::default()
            };
            // The outcome is of no interest, only that there is one.
            launched += 1;
            drop(device.launch(entry, [2, 1, 1], [32, 1, 1], 0, &params, &options));
        }
    }
    assert!(
        refused > 500 && launched > 500,
        "{refused} refused, {launched} launched"
    );
}
