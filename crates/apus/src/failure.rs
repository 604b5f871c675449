//! How a command ends if not well.

use std::process::ExitCode;

/// Exit code of a command that was interrupted: 128 and the number of SIGINT, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Why a command did not do what was asked.
pub enum Failure {
    /// The input is wrong; nothing was run. Exit code 2, as for wrong arguments.
    Input(String),
    /// A run failed, or its results could not be kept. Exit code 1.
    Run(String),
    /// Somebody ended it before its time; what there was by then has been kept. Exit code 130.
    Interrupted(String),
    /// A check failed; the output has said so. Exit code 1.
    Checks,
}

impl Failure {
    /// Says what is wrong on standard error.
    pub fn report(&self) -> ExitCode {
        match self {
            Self::Input(message) => {
                eprintln!("{message}");
                ExitCode::from(2)
            }
            Self::Run(message) => {
                eprintln!("{message}");
                ExitCode::from(1)
            }
            Self::Interrupted(message) => {
                eprintln!("{message}");
                ExitCode::from(INTERRUPTED)
            }
            Self::Checks => ExitCode::from(1),
        }
    }
}
