//! The texts that settings come from, places in them, and errors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

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

/// Everything that is wrong with a scenario, in the order of the files; never empty.
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

/// The sources of a scenario and the problems found in them so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    sources: Vec<Origin>,
    found: RefCell<Vec<(Place, String)>>,
    /// The files that the scenario names, by name: their texts, or why they cannot be read.
    files: RefCell<BTreeMap<String, Result<String, String>>>,
}

impl Problems {
    /// Adds a file; places in it are made by [`Place::at`] on the returned place.
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

    /// The text of a file, or why it cannot be read.
    pub(super) fn file(&self, name: &str) -> Result<String, String> {
        let files = self.files.borrow();
        files.get(name).cloned().unwrap_or_else(|| Err(format!("{name} was not read")))
    }

    /// Records an error at a place. The runs of an experiment share most of their settings: equal
    /// errors count once.
    pub(super) fn add(&self, place: Place, message: impl Into<String>) {
        let problem = (place, message.into());
        let mut found = self.found.borrow_mut();
        if !found.contains(&problem) {
            found.push(problem);
        }
    }

    /// Returns `true` if there are no problems so far.
    pub(super) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// A place in words: `scenario.toml:3:1`.
    pub(super) fn locate(&self, place: Place) -> String {
        let problem = self.resolve(place, String::new());
        match problem.position {
            Some((line, _)) => format!("{}:{line}", problem.source),
            None => problem.source,
        }
    }

    /// All problems, or none.
    pub(super) fn into_result(self) -> Result<(), ScenarioError> {
        let mut found = self.found.take();
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|(place, _)| *place);
        let problems = found.into_iter().map(|(place, message)| self.resolve(place, message));
        Err(ScenarioError(problems.collect()))
    }

    fn resolve(&self, place: Place, message: String) -> Problem {
        match &self.sources[place.source] {
            Origin::Option(text) => Problem { source: text.clone(), position: None, message },
            Origin::File(source) => {
                let end = (0..=place.offset.min(source.text.len()))
                    .rev()
                    .find(|&end| source.text.is_char_boundary(end))
                    .unwrap_or(0);
                let before = &source.text[..end];
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
                Problem { source: source.name.clone(), position: Some((line, column)), message }
            }
        }
    }
}

impl Place {
    /// The place `offset` bytes into the same source.
    pub(super) fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }
}

/// Finds a testbed by name, or reads a file that a scenario names (its name has a dot or a slash;
/// it is relative to the scenario). Returns its content, or an error about the name with a valid
/// form.
pub type FindTestbed<'a> = &'a dyn Fn(&str) -> Result<Source, String>;
