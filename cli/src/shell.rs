//! Words of command lines that a message proposes.

use std::path::Path;

/// A path as a shell takes it for one word, and a command for no option.
pub fn word(path: &Path) -> String {
    let mut text = path.display().to_string();
    if text.starts_with('-') {
        text.insert_str(0, "./");
    }
    let plain = |c: char| c.is_alphanumeric() || "/._-+,=@%:".contains(c);
    match text.chars().all(plain) && !text.is_empty() {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_commands_as_they_are() {
        let odd = [
            "a b.torre",
            "it's",
            "$HOME/*",
            "-x",
            "\u{e9}.torre",
            "a;b",
            "~/a",
            "a\nb",
        ];
        for text in odd {
            let echoed = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", word(Path::new(text)))])
                .output()
                .unwrap();
            let echoed = String::from_utf8(echoed.stdout).unwrap();
            assert_eq!(echoed.trim_start_matches("./"), text);
        }
        assert_eq!(word(Path::new("../a/b-1.torre")), "../a/b-1.torre");
        assert_eq!(word(Path::new("-q")), "./-q");
    }
}
