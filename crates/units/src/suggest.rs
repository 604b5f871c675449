//! Suggestions of names for a misspelt word in messages.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Maximum number of candidates in a hint, and of names in a list that is always shown in full.
const CANDIDATES: usize = 5;
/// Maximum length of a list of all names, bytes. Rationale: about four lines of a terminal.
const WHOLE_LIST: usize = 320;
/// Minimum length of a word that is searched in names: most names contain one or two given letters.
const MIN_CONTAINED: usize = 3;

/// Returns the end of a message about a word that is not one of `names`.
///
/// The end is `; did you mean ...?` with at most five names: the names nearest to the word, or
/// names that contain it. If no name is similar, it lists all names if that list is short, and
/// otherwise the five nearest with the total number.
#[must_use]
pub fn suggestion<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some(meant) = similar(word, names.clone()) {
        return format!("; did you mean {meant}?");
    }
    let (count, bytes) = names.clone().fold((0, 0), |(n, sum), name| (n + 1, sum + name.len() + 2));
    if count <= CANDIDATES || bytes <= WHOLE_LIST {
        return format!("; choose from {}", names.collect::<Vec<_>>().join(", "));
    }
    let mut nearest: Vec<_> = names.map(|name| (edit_distance(word, name), name)).collect();
    nearest.sort_unstable();
    nearest.dedup();
    let all = nearest.len();
    let nearest: Vec<&str> = nearest.into_iter().map(|(_, name)| name).take(CANDIDATES).collect();
    match all > CANDIDATES {
        true => format!("; choose one of {all}, such as {}", nearest.join(", ")),
        false => format!("; choose from {}", nearest.join(", ")),
    }
}

/// Returns the names that may have been meant by a word, quoted and joined by "or".
///
/// If no name is similar enough, the result is the names that contain the word, at most five, the shortest
/// first.
#[must_use]
pub fn similar<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let mut near: Vec<(usize, &str)> = names
        .clone()
        .map(|name| (edit_distance(word, name), name))
        .filter(|&(distance, _)| distance <= 1 + word.len() / 4)
        .collect();
    near.sort_unstable();
    near.dedup();
    if let Some(&(nearest, _)) = near.first() {
        return alternatives(near.iter().filter(|&&(distance, _)| distance == nearest));
    }
    let mut containing: Vec<(usize, &str)> = names
        .filter(|name| word.len() >= MIN_CONTAINED && contains(name, word))
        .map(|name| (name.len(), name))
        .collect();
    containing.sort_unstable();
    containing.dedup();
    alternatives(containing.iter())
}

/// Returns the first five names, quoted and joined by "or"; `None` if there is none.
fn alternatives<'a>(ranked: impl Iterator<Item = &'a (usize, &'a str)>) -> Option<String> {
    let found: Vec<String> = ranked.take(CANDIDATES).map(|(_, name)| format!("`{name}`")).collect();
    let (last, rest) = found.split_last()?;
    Some(match rest {
        [] => last.clone(),
        _ => format!("{} or {last}", rest.join(", ")),
    })
}

/// Returns `true` if `word` is part of `name`, ignoring the case of ASCII letters.
fn contains(name: &str, word: &str) -> bool {
    name.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// Levenshtein's distance in bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Returns the first 60 characters of a line, for messages that quote it.
#[must_use]
pub fn shorten(line: &str) -> String {
    let short: String = line.chars().take(60).collect();
    if short.len() < line.len() { format!("{short}...") } else { short }
}

#[cfg(test)]
mod tests {
    use super::{similar, suggestion};
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_near() {
        let names = || ["swift", "bolt", "dctcp"].into_iter();
        assert_eq!(suggestion("swfit", names()), "; did you mean `swift`?");
        assert_eq!(suggestion("DCTCP", names()), "; did you mean `dctcp`?");
        assert_eq!(suggestion("timely", names()), "; choose from swift, bolt, dctcp");
        assert_eq!(similar("timely", names()), None);
    }

    #[test]
    fn names_that_contain_the_word_are_suggested() {
        let names = || ["swift/fig17", "bolt/fig17", "swift/fig4"].into_iter();
        assert_eq!(suggestion("fig17", names()), "; did you mean `bolt/fig17` or `swift/fig17`?");
        assert_eq!(suggestion("FIG4", names()), "; did you mean `swift/fig4`?");
        assert_eq!(similar("ig", names()), None, "two letters are part of too many names");
    }

    #[test]
    fn a_long_list_is_cut_to_the_five_nearest() {
        let names: Vec<String> = (0..5000).map(|index| format!("host {index}")).collect();
        let hint = suggestion("agg 8", names.iter().map(String::as_str));
        assert!(hint.starts_with("; choose one of 5000, such as host "), "{hint}");
        assert_eq!(hint.matches("host").count(), 5, "{hint}");
        assert!(hint.contains("host 8"), "{hint}");
        let hint = suggestion("host", names.iter().map(String::as_str));
        assert_eq!(hint, "; did you mean `host 0`, `host 1`, `host 2`, `host 3` or `host 4`?");
    }
}
