//! `apus run --traffic F --topology F`: other simulators' files in place of a scenario.

use std::path::Path;

use apus_sim::import::Traffic;
use apus_sim::scenario::{Options, Scenario, Source};
use apus_units::Span;

use crate::failure::Failure;
use crate::library;

/// deviation: a traffic file does not say how long to run; 10 ms after the last message has begun
/// is many round trips. `--set duration=...` says otherwise.
const AFTER_LAST: Span = Span::from_ms(10);

/// The scenario that runs `traffic` over `topology`, a file or one line like "star hosts=8 100Gbps
/// 1us", with Swift unless `--set algorithm.name=...` says otherwise.
pub fn open(traffic: &str, topology: &str, options: &Options) -> Result<Scenario, Failure> {
    let text = std::fs::read_to_string(traffic)
        .map_err(|error| Failure::Input(format!("{traffic}: cannot be read: {error}")))?;
    let messages =
        Traffic::parse(&text).map_err(|error| Failure::Input(format!("{traffic}:{error}")))?;
    let last = messages.messages.iter().map(|message| message.start).max().unwrap_or_default();
    let duration = last.saturating_add(AFTER_LAST);
    let topology = if topology.contains(' ') && !Path::new(topology).exists() {
        quote(topology)?
    } else {
        // Neither format says how large buffers are; 4MB is what the one-line form has.
        format!("{{ kind = \"links\", file = {}, buffer = \"4MB\" }}", quote(&path(topology))?)
    };
    let name = Path::new(traffic).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = format!(
        "duration = \"{duration}\"\nalgorithm = {{ name = \"swift\" }}\ntopology = {topology}\n\
         [[workload]]\nkind = \"trace\"\nfile = {}\n",
        quote(&path(traffic))?
    );
    let source = Source { name: format!("{name}.toml"), text };
    library::read(&source, Path::new(""), options)
        .map_err(|error| Failure::Input(error.to_string()))
}

/// A path that is not taken for the name of a testbed.
fn path(file: &str) -> String {
    if file.contains(['.', '/', '\\']) { file.to_owned() } else { format!("./{file}") }
}

/// A text as TOML writes it.
fn quote(text: &str) -> Result<String, Failure> {
    serde_json::to_string(text).map_err(|error| Failure::Input(error.to_string()))
}
