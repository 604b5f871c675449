//! The command `apus`.

use std::process::ExitCode;

fn main() -> ExitCode {
    apus::main_with([])
}
