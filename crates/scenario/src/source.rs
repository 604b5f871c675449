//! The texts that settings come from, places in them, and errors.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

/// A text with the name by which messages mention it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Usually the path of a file.
    pub name: String,
    /// Content of the text.
    pub text: String,
}

/// An error in a scenario: the place, the mistake, and a valid form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, or the option of the command line.
    pub source: String,
    /// Line and column, both from 1, unless the source is an option.
    pub position: Option<(usize, usize)>,
    /// The mistake and a valid form.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All mistakes in a scenario, in the order of the files; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError(pub Vec<Problem>);

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

/// A place in one of the sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    source: usize,
    offset: usize,
}

#[derive(Debug)]
enum Origin {
    File(Source),
    Option(String),
}

/// Problems in the order in which they were found, each once.
#[derive(Debug, Default)]
struct Found {
    ordered: Vec<(Place, Rc<str>)>,
    known: BTreeSet<(Place, Rc<str>)>,
}

/// The sources of a scenario and the problems found in them so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    sources: Vec<Origin>,
    found: RefCell<Found>,
    /// The files that the scenario names, by name: their texts, or the reason why they cannot be read.
    files: RefCell<BTreeMap<String, Result<String, String>>>,
}

impl Problems {
    /// Adds a file. [`Place::at`] on the returned place gives the places in the file.
    pub(super) fn add_file(&mut self, source: &Source) -> Place {
        self.sources.push(Origin::File(source.clone()));
        Place { source: self.sources.len() - 1, offset: 0 }
    }

    /// Adds an option of the command line, as the user wrote it.
    pub(super) fn add_option(&mut self, text: String) -> Place {
        self.sources.push(Origin::Option(text));
        Place { source: self.sources.len() - 1, offset: 0 }
    }

    /// Stores a file that the scenario names, unless it is already stored.
    pub(super) fn add_data(&self, name: &str, find: &dyn Fn(&str) -> Result<Source, String>) {
        let mut files = self.files.borrow_mut();
        if !files.contains_key(name) {
            files.insert(name.to_owned(), find(name).map(|source| source.text));
        }
    }

    /// Returns the text of a file, or the reason why it cannot be read.
    pub(super) fn file(&self, name: &str) -> Result<String, String> {
        let files = self.files.borrow();
        files.get(name).cloned().unwrap_or_else(|| Err(format!("{name} was not read")))
    }

    /// Records an error at a place. The runs of an experiment share most of their settings: equal
    /// errors count once.
    pub(super) fn add(&self, place: Place, message: impl Into<String>) {
        let problem = (place, Rc::from(message.into()));
        let mut found = self.found.borrow_mut();
        if found.known.insert(problem.clone()) {
            found.ordered.push(problem);
        }
    }

    /// Returns `true` if there are no problems so far.
    pub(super) fn is_empty(&self) -> bool {
        self.found.borrow().ordered.is_empty()
    }

    /// Returns a place in words: `scenario.toml:3:1`.
    pub(super) fn locate(&self, place: Place) -> String {
        match &self.sources[place.source] {
            Origin::Option(text) => text.clone(),
            Origin::File(source) => {
                let mut cursor = Cursor::new(place.source);
                format!("{}:{}", source.name, cursor.advance(&source.text, place.offset).0)
            }
        }
    }

    /// Returns all problems as an error, or `Ok` if there are none.
    pub(super) fn into_result(self) -> Result<(), ScenarioError> {
        let mut found = self.found.take().ordered;
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|(place, _)| *place);
        let mut cursor = Cursor::new(0);
        let problems = found.into_iter().map(|(place, message)| {
            let message = message.to_string();
            match &self.sources[place.source] {
                Origin::Option(text) => Problem { source: text.clone(), position: None, message },
                Origin::File(source) => {
                    if cursor.source != place.source {
                        cursor = Cursor::new(place.source);
                    }
                    let position = Some(cursor.advance(&source.text, place.offset));
                    Problem { source: source.name.clone(), position, message }
                }
            }
        });
        Err(ScenarioError(problems.collect()))
    }
}

/// A position in a source that only moves forward, so that one pass finds the positions of all problems.
struct Cursor {
    source: usize,
    offset: usize,
    line: usize,
    column: usize,
}

impl Cursor {
    fn new(source: usize) -> Self {
        Self { source, offset: 0, line: 1, column: 1 }
    }

    /// Moves to `offset`, which must not be before the previous offset. Returns line and column of the
    /// character there.
    fn advance(&mut self, text: &str, offset: usize) -> (usize, usize) {
        let offset = text.floor_char_boundary(offset);
        for c in text.get(self.offset..offset).unwrap_or_default().chars() {
            (self.line, self.column) =
                if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        self.offset = self.offset.max(offset);
        (self.line, self.column)
    }
}

impl Place {
    /// Returns the place at byte `offset` of the same source.
    pub(super) fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }
}

/// Finds a testbed by name, or reads a file that a scenario names (its name has a dot or a slash;
/// it is relative to the scenario). Returns its content, or an error about the name with a valid
/// form.
pub type FindTestbed<'a> = &'a dyn Fn(&str) -> Result<Source, String>;

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> (Problems, Place) {
        let mut problems = Problems::default();
        let source = Source { name: "a.toml".to_owned(), text: text.to_owned() };
        let start = problems.add_file(&source);
        (problems, start)
    }

    #[test]
    fn problems_have_the_line_and_column_of_their_place_and_count_once() {
        let (mut problems, start) = problems("a\né = 1\nb");
        let option = problems.add_option("--set x=1".to_owned());
        // The third one is within `é`, the last one beyond the end.
        for offset in [9, 4, 3, 2, 0, 2, 99] {
            problems.add(start.at(offset), "wrong");
        }
        problems.add(option, "wrong too");
        assert_eq!(problems.locate(start.at(4)), "a.toml:2");
        assert_eq!(problems.locate(option), "--set x=1");
        let error = problems.into_result().expect_err("problems");
        let positions: Vec<_> = error.0.iter().map(|problem| problem.position).collect();
        let expected = [(1, 1), (2, 1), (2, 1), (2, 2), (3, 1), (3, 2)].map(Some);
        assert_eq!(positions[..6], expected);
        assert_eq!(error.0[6].to_string(), "--set x=1: wrong too");
    }

    /// Positions are found in one pass: the cursor continues from the previous problem.
    #[test]
    fn a_cursor_reads_only_what_follows_its_last_position() {
        let mut cursor = Cursor::new(0);
        assert_eq!(cursor.advance("ab\ncd", 4), (2, 2));
        // Another text before this offset shows that it is not read again.
        assert_eq!(cursor.advance("\n\n\n\nef", 6), (2, 4));
    }

    /// Equal problems are found in a set, so that a hundred thousand problems take little time.
    #[test]
    fn many_problems_are_each_reported_once() {
        let (problems, start) = problems(&"x".repeat(100_000));
        for _ in 0..2 {
            (0..100_000).for_each(|offset| problems.add(start.at(offset), "wrong"));
        }
        let error = problems.into_result().expect_err("problems");
        assert_eq!(error.0.len(), 100_000);
        assert_eq!(error.0[99_999].position, Some((1, 100_000)));
    }
}
