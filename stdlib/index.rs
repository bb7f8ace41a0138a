/// The modules of the standard library with their texts, by name. This file is meant to be `include!`d by crates that
/// embed it.
pub const MODULES: &[(&str, &str)] = &[
    ("acoustics", include_str!("acoustics.torre")),
    ("constants", include_str!("constants.torre")),
    ("curl", include_str!("curl.torre")),
    ("diff", include_str!("diff.torre")),
    ("div", include_str!("div.torre")),
    ("elastic", include_str!("elastic.torre")),
    ("grad", include_str!("grad.torre")),
    ("laplacian", include_str!("laplacian.torre")),
    ("layers", include_str!("layers.torre")),
    ("maxwell", include_str!("maxwell.torre")),
    ("sources", include_str!("sources.torre")),
    ("wave", include_str!("wave.torre")),
];
