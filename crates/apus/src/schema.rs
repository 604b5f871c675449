//! `apus schema`: the JSON Schema of scenarios, for editors.

use clap::Args;

use crate::failure::Failure;
use crate::output::print;

/// Print the JSON Schema of scenarios, with which editors complete keys.
#[derive(Args)]
pub struct Schema {}

impl Schema {
    /// Runs the command.
    #[expect(clippy::unused_self, reason = "every command is executed this way")]
    pub fn execute(&self) -> Result<(), Failure> {
        print(&format!("{:#}\n", apus_scenario::schema(crate::registry())))
    }
}
