//! Converts errors of the crates below to exceptions of the package; their classes are in `apus/errors.py`.

use apus::api::OpenError;
use apus_scenario::{Problem, ScenarioError as Problems};
use pyo3::PyErr;

mod python {
    pyo3::import_exception!(apus.errors, ScenarioError);
}

/// A problem as the arguments of Python's class `Problem`.
type ProblemParts = (String, Option<usize>, Option<usize>, String);

fn parts(problem: &Problem) -> ProblemParts {
    let (line, column) = problem.position.unzip();
    (problem.source.clone(), line, column, problem.message.clone())
}

/// Returns the exception of an error of a scenario.
pub fn of_scenario(error: &Problems) -> PyErr {
    let problems: Vec<ProblemParts> = error.0.iter().map(parts).collect();
    python::ScenarioError::new_err((error.to_string(), problems))
}

/// Returns the exception of a scenario that cannot be opened.
pub fn of_open(error: &OpenError) -> PyErr {
    match error {
        OpenError::File(message) => of_input(message),
        OpenError::Scenario(error) => of_scenario(error),
    }
}

/// Returns the exception of wrong input other than the text of a scenario.
pub fn of_input(message: &str) -> PyErr {
    python::ScenarioError::new_err((message.to_owned(), Vec::<ProblemParts>::new()))
}
