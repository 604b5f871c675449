//! The commands that the help lists.

use std::path::Path;

use super::command::apus;

/// Returns the names of all commands.
pub fn commands() -> Vec<String> {
    let help = String::from_utf8(apus(Path::new("."), &["--help"]).stdout).expect("UTF-8");
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let commands: Vec<String> =
        lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect();
    assert!(commands.len() > 10, "{commands:?}");
    commands
}
