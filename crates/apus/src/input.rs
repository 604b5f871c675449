//! `apus run --traffic F --topology F`: runs files of other simulators instead of a scenario.

use std::path::Path;

use apus_scenario::import::Traffic;
use apus_scenario::{Options, Problem, ScenarioError, Source, file};
use apus_units::Span;

use crate::failure::Failure;
use crate::library::{self, Gathered};

/// deviation: a traffic file has no duration, so the run lasts until 10 ms after the start of the last message, which
/// is many round trips. The measured phase ends earlier if all messages have ended, unless `--set duration=...` sets
/// the duration.
const AFTER_LAST: Span = Span::from_ms(10);

/// Returns the scenario that runs `traffic` over `topology`: a file or one line such as "star hosts=8 100Gbps 1us". The
/// algorithm is Swift unless `--set algorithm.name=...` selects another one.
///
/// The texts of streamed traces are kept only if `keeps_streams`.
pub fn open(
    traffic: &str,
    topology: &str,
    keeps_streams: bool,
    options: &Options,
) -> Result<Gathered, Failure> {
    let text = file::read_text(Path::new(traffic), file::DATA_BYTES)
        .map_err(|error| Failure::Input(format!("{traffic}: cannot be read: {error}")))?;
    let messages =
        Traffic::parse(&text).map_err(|error| Failure::Input(format!("{traffic}:{error}")))?;
    let last = messages.messages.iter().map(|message| message.start).max().unwrap_or_default();
    let duration = last.saturating_add(AFTER_LAST);
    let given = topology;
    let topology = if topology.contains(' ') && !Path::new(topology).exists() {
        quote(topology)?
    } else {
        // Neither format gives buffer sizes; 4 MB is the default of the one-line form.
        format!("{{ kind = \"links\", file = {}, buffer = \"4MB\" }}", quote(&path(topology))?)
    };
    let name = Path::new(traffic).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let sets_duration = |set: &String| set.split('=').next().map(str::trim) == Some("duration");
    let ends_with_ops = !options.set.iter().any(sets_duration);
    let text = format!(
        "duration = \"{duration}\"\nends_with_ops = {ends_with_ops}\nalgorithm = {{ name = \"swift\" }}\ntopology = {topology}\n\
         [[workload]]\nkind = \"trace\"\nfile = {}\n",
        quote(&path(traffic))?
    );
    let source = Source { name: format!("{name}.toml"), text };
    let gathered = library::gather(source, Path::new(""), keeps_streams, options);
    gathered.map_err(|ScenarioError(problems)| {
        let lines = problems.iter().map(|problem| {
            // Positions in the text above would refer to a file that does not exist.
            match problem.position {
                Some((TOPOLOGY_LINE, _)) => of_option("--topology", given, "topology", problem),
                Some((line, _)) if line > TOPOLOGY_LINE => {
                    of_option("--traffic", traffic, "workload", problem)
                }
                _ => problem.to_string(),
            }
        });
        Failure::Input(lines.collect::<Vec<_>>().join("\n"))
    })
}

/// Line of the topology in the scenario; the lines of the workload follow.
const TOPOLOGY_LINE: usize = 4;

/// Returns the message of a problem in the value of an option.
fn of_option(option: &str, given: &str, table: &str, problem: &Problem) -> String {
    let message = problem.message.as_str();
    let message = message.strip_prefix(&format!("`{table}.file` ")).unwrap_or(message);
    match message.starts_with(given) || message.starts_with(&path(given)) {
        true => message.to_owned(),
        false => format!("{option} {given}: {message}"),
    }
}

/// Returns the path in a form that cannot be the name of a testbed.
fn path(file: &str) -> String {
    if file.contains(['.', '/', '\\']) { file.to_owned() } else { format!("./{file}") }
}

/// Returns a text as a TOML string.
fn quote(text: &str) -> Result<String, Failure> {
    serde_json::to_string(text).map_err(|error| Failure::Input(error.to_string()))
}
