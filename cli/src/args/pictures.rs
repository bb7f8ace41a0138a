//! Files of pictures, whose endings name their formats.

use clap::builder::{PathBufValueParser, TypedValueParser};
use std::path::PathBuf;

/// Endings of pictures of any kind. Other endings, and none, name no format.
const PICTURES: [&str; 12] = [
    "apng", "bmp", "eps", "gif", "jpeg", "jpg", "pdf", "png", "svg", "tif", "tiff", "webp",
];

pub fn svg() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| picture(path, &["svg"]))
}

pub fn png() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| picture(path, &["png"]))
}

pub fn svg_or_png() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| picture(path, &["svg", "png"]))
}

/// The path, if it does not have the ending of a format in which it is not written.
fn picture(path: PathBuf, written: &[&str]) -> Result<PathBuf, String> {
    let ending = path.extension().and_then(|e| e.to_str());
    let ending = ending.map(str::to_ascii_lowercase);
    let is_other = |e: &str| PICTURES.contains(&e) && !written.contains(&e);
    if ending.as_deref().is_some_and(is_other) {
        let formats = written.join(" or ").to_uppercase();
        return Err(format!("this is written as {formats}"));
    }
    Ok(path)
}
