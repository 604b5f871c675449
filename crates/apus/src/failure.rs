//! Errors of a command.

use std::fmt;
use std::process::ExitCode;

/// Exit code of a command that was interrupted: 128 plus the number of SIGINT, as in shells.
pub const INTERRUPTED: u8 = 130;

/// Reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The input is wrong; nothing was run. Exit code 2, as for wrong arguments.
    Input(String),
    /// A run failed, or its results could not be kept. Exit code 1.
    Run(String),
    /// The user interrupted the command; finished results have been kept. Exit code 130.
    Interrupted(String),
    /// A check failed; the output reports it. Exit code 1.
    Checks,
}

/// Displays the message, which is empty for failed checks.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(message) | Self::Run(message) | Self::Interrupted(message) => {
                f.write_str(message)
            }
            Self::Checks => Ok(()),
        }
    }
}

impl Failure {
    /// Adds another reason, and keeps the exit code.
    pub fn and(self, why: &str) -> Self {
        match self {
            Self::Input(message) => Self::Input(format!("{message}\n{why}")),
            Self::Run(message) => Self::Run(format!("{message}\n{why}")),
            Self::Interrupted(message) => Self::Interrupted(format!("{message}\n{why}")),
            Self::Checks => Self::Run(why.to_owned()),
        }
    }

    /// Prints the error to standard error.
    pub fn report(&self) -> ExitCode {
        if !matches!(self, Self::Checks) {
            eprintln!("{self}");
        }
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Run(_) | Self::Checks => ExitCode::from(1),
            Self::Interrupted(_) => ExitCode::from(INTERRUPTED),
        }
    }
}
