//! What a word that is wrong may have been meant to be, for messages.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// `; did you mean ...?` with the nearest of `names`, or the list of them if none is near: the end
/// of a message about a word that is not one of them.
#[must_use]
pub fn suggestion<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = names.clone().map(|name| (edit_distance(word, name), name)).min();
    match near {
        Some((distance, name)) if distance <= 1 + word.len() / 4 => {
            format!("; did you mean `{name}`?")
        }
        _ => format!("; there are {}", names.collect::<Vec<_>>().join(", ")),
    }
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

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_near() {
        let names = || ["swift", "bolt", "dctcp"].into_iter();
        assert_eq!(suggestion("swfit", names()), "; did you mean `swift`?");
        assert_eq!(suggestion("DCTCP", names()), "; did you mean `dctcp`?");
        assert_eq!(suggestion("timely", names()), "; there are swift, bolt, dctcp");
    }
}
