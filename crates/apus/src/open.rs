//! Opens a page in the system's browser.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Command that opens a file with the program that the user has chosen for its type.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else if cfg!(windows) {
    "explorer"
} else {
    "xdg-open"
};

/// Opens a page.
pub fn open(page: &Path) -> Result<(), Failure> {
    let started = Command::new(OPENER)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.map(drop).map_err(|error| {
        Failure::Run(format!(
            "--open: `{OPENER}` cannot be started: {error}; open {} in a browser",
            page.display()
        ))
    })
}
