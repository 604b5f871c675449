//! Names: the rules for names of scenarios, variants and parts of runs.

/// Rule for labels and names of variants: they become parts of file names and of keys.
pub(super) const LABEL_RULE: &str =
    "1 to 64 letters, digits, `-`, `_` or `.`, and not begin with `.`";

/// Rule for names of parts of a run: dots separate the parts of a metric's name.
pub(super) const PART_RULE: &str = "1 to 64 letters, digits, `-` or `_`";

/// Returns `true` if a text can be the name of a part of a run.
pub(super) fn is_part_name(text: &str) -> bool {
    is_label(text) && !text.contains('.')
}

/// Returns `true` if a text can be a label.
pub(super) fn is_label(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=64).contains(&text.len()) && !text.starts_with('.') && text.chars().all(allowed)
}

/// Returns a label made from any text.
pub(super) fn label_from(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let label: String = text.trim().chars().map(safe).take(64).collect();
    if is_label(&label) {
        label
    } else {
        format!("x{}", label.chars().take(63).collect::<String>())
    }
}

/// Returns the name of the file without its extension.
pub(super) fn default_name(file: &str) -> String {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    label_from(base.strip_suffix(".toml").unwrap_or(base))
}

/// Longest name of a scenario or a run.
pub(super) const MAX_NAME: usize = 130;

/// Returns `true` if a text can be the name of a scenario: labels joined by `/`.
pub(super) fn is_name(name: &str) -> bool {
    name.split('/').all(is_label)
}
