//! `ecn`: the packets that switches mark, of all classes or of one.
use apus_algorithms::BuiltInSwitch;
use apus_algorithms::dcqcn::switch::{Ramp, RampMarker};
use apus_algorithms::dctcp::switch::{EcnMarker, MarkAt};
use apus_units::Bytes;

use super::declared::{Keys, Kind, key, words_of};
use super::section::Section;

/// Keys of `ecn`.
pub(super) static ECN: Keys = Keys::of(&[
    key("threshold", Kind::Size, "Packets are marked if the port holds more than this many bytes of their class"),
    key("at", Kind::Word(&words_of(&MarkAt::WORDS)), "Time at which the queue is compared with the thresholds: when the packet joins the queue (\"enqueue\"), or when the packet leaves the queue (\"dequeue\")")
        .or(MarkAt::WORDS[0].0),
    key(
        "k_min",
        Kind::Size,
        "In place of `threshold`: queue above which packets are marked at random, with a probability that rises from 0 to `p_max` at `k_max`",
    ),
    key("k_max", Kind::Size, "Queue above which every packet is marked"),
    key("p_max", Kind::Number, "Probability that a packet is marked if the queue is `k_max`").above_0_to(1.0),
]);

/// The rule by which packets are marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Marking {
    /// Everything above a threshold (RFC 8257 §3.1).
    Threshold(EcnMarker),
    /// With a probability that grows with the queue (RED on the instantaneous queue; DCQCN §3.1).
    Ramp(Ramp, MarkAt),
}

impl Marking {
    /// Returns the switch half. `seed` is the seed of the random numbers of a ramp.
    pub(super) fn half(&self, seed: u64) -> BuiltInSwitch {
        match *self {
            Self::Threshold(marker) => BuiltInSwitch::Ecn(marker),
            Self::Ramp(ramp, at) => BuiltInSwitch::Ramp(RampMarker::new(ramp, seed).at(at)),
        }
    }

    /// Reads `ecn = { threshold = "100kB", at = "enqueue" }` or `ecn = { k_min = "5kB", k_max = "200kB",
    /// p_max = 0.01 }`.
    pub(super) fn read(ecn: Section<'_>) -> Option<Self> {
        let ramp = ["k_min", "k_max", "p_max"].into_iter().any(|key| ecn.node(key).is_some());
        let marking = if ramp { read_ramp(&ecn) } else { read_threshold(&ecn) };
        ecn.finish();
        marking
    }
}

fn read_threshold(ecn: &Section<'_>) -> Option<Marking> {
    let threshold = ecn.require("threshold");
    let at = ecn.meaning("at", &MarkAt::WORDS)?;
    Some(Marking::Threshold(EcnMarker::new(threshold?).at(at)))
}

fn read_ramp(ecn: &Section<'_>) -> Option<Marking> {
    ecn.no_effect("threshold", "together with `k_min`, `k_max` and `p_max`");
    let at = ecn.meaning("at", &MarkAt::WORDS);
    let (k_min, k_max) = (ecn.require::<Bytes>("k_min"), ecn.require("k_max"));
    let p_max: Option<f64> = ecn.require("p_max");
    let ramp = Ramp { k_min: k_min?, k_max: k_max?, p_max: p_max? };
    let message = format_args!("is {}, below `k_min`, which is {}", ramp.k_max, ramp.k_min);
    ecn.check(ramp.k_max >= ramp.k_min, "k_max", message);
    Some(Marking::Ramp(ramp, at?))
}
