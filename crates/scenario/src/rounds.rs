//! `kind = "partition-aggregate"`: a master reads from its workers, and continues when all of them have
//! answered.

use apus_units::Bytes;

use super::frame::Frame;
use super::hosts::{read_host_or_last, read_senders};
use super::section::Section;

/// The workload: rounds of requests and answers. An op is an answer, from the submission of its
/// request to the arrival of its last byte.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    pub(super) master: u32,
    pub(super) workers: Vec<u32>,
    pub(super) request: Bytes,
    pub(super) answer: Bytes,
}

impl Rounds {
    pub(super) fn read(section: &Section<'_>, frame: &Frame<'_>) -> Option<Self> {
        let master = read_host_or_last(section, "master", frame.hosts)?;
        let workers = read_senders(section, "workers", &[master], frame.hosts);
        let (request, answer) = (section.require("request"), section.require("answer"));
        Some(Self { master, workers: workers?, request: request?, answer: answer? })
    }
}
