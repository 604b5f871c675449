//! Jobs in any of the text formats.

use apus_jobs::{Graph, goal};

use super::text::{content, is_blank};
use super::{cm_job, simai};

/// Reads a job in any of the formats, identified by the beginning: `num_ranks N` is GOAL, `Nodes N` is a
/// connection matrix of htsim ([`cm_job`]), and a policy such as `HYBRID_TRANSFORMER_FWD_IN_BCKWD` is a
/// workload of SimAI ([`simai`]).
///
/// # Errors
/// An error in the form `:LINE: what is wrong`.
pub fn parse_job(text: &str) -> Result<Graph, String> {
    let (_, first) = content(text).find(|(_, line)| !line.starts_with("//")).unwrap_or_default();
    let word = first.split_whitespace().next().unwrap_or_default();
    if word == "Nodes" || first.contains("->") {
        cm_job::parse_job(text).map_err(|error| error.to_string())
    } else if simai::POLICIES.contains(&word) || word.starts_with("HYBRID_") {
        simai::parse_job(text).map_err(|error| error.to_string())
    } else if word == "num_ranks" || first.starts_with("/*") || is_blank(first) {
        goal::read(text.as_bytes()).map_err(|error| match error.place {
            goal::Place::Line(line) => format!("{line}: {}", error.detail()),
            goal::Place::Offset(_) => error.to_string(),
        })
    } else {
        Err("1: unknown format of a job; the file must begin with `num_ranks N` (GOAL), `Nodes N` (a connection matrix \
             of htsim) or a policy such as HYBRID_TRANSFORMER_FWD_IN_BCKWD (a workload.txt of SimAI)"
            .to_owned())
    }
}
