//! Names with wildcards, by which scenarios select ports and links.

/// Returns `true` if `pattern` matches `name`; `*` matches any text.
pub(super) fn matches_pattern(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return left.ends_with(piece);
        }
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, matches) in [
            ("leaf 0 -> host 1", true),
            ("leaf * -> host *", true),
            ("* -> host 1", true),
            ("leaf*", true),
            ("*", true),
            ("leaf * -> spine *", false),
            ("leaf 0 -> host", false),
            ("* -> host 11", false),
            ("leaf 0 -> host 1 *", false),
        ] {
            assert_eq!(matches_pattern("leaf 0 -> host 1", pattern), matches, "{pattern}");
        }
        assert!(!matches_pattern("host 1", "host 1*1"));
    }
}
