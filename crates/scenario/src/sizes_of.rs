//! Sizes of ops: one `size` for all, or `sizes` that are drawn from a distribution.

use std::sync::Arc;

use apus_units::Bytes;

use super::declared::{Keys, Kind, key};
use super::section::Section;
use super::tree::Value;
use apus_sim::sizes::{BUILT_IN, Sizes};

/// The keys of `sizes`.
pub(super) static SIZES: Keys = Keys::of(&[
    key("file", Kind::Text, "A file with a size and its cumulative percentage on each line"),
    key("points", Kind::Text, "Content of such a file, in place of `file`"),
]);

/// Sizes of ops.
#[derive(Clone, Debug)]
pub(super) enum OpSizes {
    Fixed(Bytes),
    Drawn(Arc<Sizes>),
}

impl OpSizes {
    /// Returns the mean in bytes.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => size.get() as f64,
            Self::Drawn(sizes) => sizes.mean(),
        }
    }

    /// Returns the size for a draw `u` uniform in [0, 1).
    pub(super) fn draw(&self, u: f64) -> Bytes {
        match self {
            Self::Fixed(size) => *size,
            Self::Drawn(sizes) => Bytes::new(sizes.quantile(u)),
        }
    }
}

/// Reads `size = "64kB"`, `sizes = "web_search"`, `sizes = { file = "mine.txt" }` or
/// `sizes = { points = "..." }`.
pub(super) fn read_sizes(section: &Section<'_>) -> Option<OpSizes> {
    let Some(node) = section.node("sizes") else {
        if section.node("size").is_none() {
            let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            section.missing(
                "sizes",
                &format!(
                    "a distribution like \"web_search\" or {{ file = \"mine.txt\" }}, or `size` for \
                     one size; built in are {}",
                    names.join(", ")
                ),
            );
            return None;
        }
        return section.require("size").map(OpSizes::Fixed);
    };
    section.no_effect("size", "with `sizes`");
    if let Value::Text(name) = &node.value {
        let Some((known, _)) = BUILT_IN.iter().find(|(known, _)| known == name) else {
            let hint = apus_units::suggestion(name, BUILT_IN.iter().map(|(known, _)| *known));
            let message = format!(
                "has no built-in distribution \"{name}\"{hint}; one of your own is \
                 {{ file = \"mine.txt\" }}"
            );
            section.problem("sizes", message);
            return None;
        };
        section.record("sizes", Value::Text(name.clone()));
        return Some(OpSizes::Drawn(Arc::new(Sizes::built_in(known)?)));
    }
    let table = section.section("sizes")?;
    let (key, name, text) = table.text_or_file("points", "size and cumulative percent per line")?;
    match Sizes::parse(&text) {
        Ok(sizes) => {
            table.record("points", Value::Text(sizes.to_text()));
            table.finish();
            Some(OpSizes::Drawn(Arc::new(sizes)))
        }
        Err(why) => {
            table.problem(key, format_args!("{name}{why}"));
            table.finish();
            None
        }
    }
}
