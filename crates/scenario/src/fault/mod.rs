//! `[[fault]]`: links and switches that fail, slow down, lose, corrupt or reorder packets, on a schedule or at
//! random.

mod draw;
mod names;
mod read;

use apus_units::{PortId, Span};

use super::declared::{Keys, Kind, key};
use super::section::MAX_DELAY;
use apus_sim::plan::FaultKind;
use names::Units;

pub(super) use draw::plan_faults;
pub(super) use read::{Limits, read_faults};

/// Whether the times are fixed, or random with the given means.
const SPACINGS: [(&str, bool); 2] = [("fixed", false), ("random", true)];

/// Keys of `fault`.
pub(super) static FAULT: Keys = Keys::of(&[
    key(
        "link",
        Kind::Text,
        "The link, such as \"leaf 0 -> spine 1\"; with `<->`, both directions. `*` stands for any text in a name, so that \"agg * <-> core *\" is a tier. With `*`, the fault applies to every link that matches; without it, to the first of parallel links",
    ),
    key(
        "switch",
        Kind::Text,
        "In place of `link`: a switch, such as \"spine 1\", with all its links in both directions. `*` stands for any text",
    ),
    key("at", Kind::Time, "Start of the fault").or("0s"),
    key("until", Kind::Time, "End of the fault, which may be in the drain. Default: never. With `every`, it is the latest end of the last fault"),
    key(
        "kind",
        Kind::Word(&["down", "slow", "loss", "corrupt", "reorder"]),
        "\"down\": packets that are queued, on the link or arriving are lost; paths change as `routing.reroute_local` and `routing.reroute_global` define. \"slow\": the link has `fraction` of its rate. \"loss\", \"corrupt\": packets are lost or corrupted with `probability`. \"reorder\": packets are held back by `delay` with `probability`, so that other packets overtake them",
    ),
    key("fraction", Kind::Number, "With `kind = \"slow\"`: factor on the rate of the link, its rate limits, the memory of its port and the thresholds of marking. Memory that the ports of a switch share does not change").above_0_to(1.0),
    key("probability", Kind::Number, "Probability that a packet is lost, corrupted or held back").above_0_to(1.0),
    key("delay", Kind::Time, "With `kind = \"reorder\"`: time by which packets are held back").within(1, MAX_DELAY.as_ps()),
    key("lasts", Kind::Time, "With `every`: duration of each fault").at_least(1),
    key("every", Kind::Time, "The fault recurs: time from the start of one fault to the start of the next").at_least(1),
    key("spacing", Kind::Word(&["fixed", "random"]), "With `every`: \"random\" draws the time from the end of a fault to the start of the next one, separately for each link or switch. The distribution is exponential with the same mean. The time from `at` to the first fault is drawn too").or("fixed"),
    key("share", Kind::Number, "The fault applies only to this share of the matching links or switches, chosen by the seed. Their number is rounded, and is at least one").above_0_to(1.0),
    key("count", Kind::Count, "The fault applies only to this number of the matching links or switches, chosen by the seed").at_least(1),
    key("keep_paths", Kind::Flag, "With `share` or `count`: no pair of hosts loses its last shortest path. If there are not enough such links or switches, fewer are chosen").or("false"),
]);

/// A fault as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct FaultSpec {
    /// "leaf 0 -> spine *", or with `<->` for both directions; or a switch.
    pub(super) name: String,
    pub(super) is_switch: bool,
    pub(super) at: Span,
    pub(super) until: Option<Span>,
    pub(super) kind: FaultKind,
    pub(super) repeat: Option<Repeat>,
    pub(super) choice: Option<Choice>,
    units: Units,
}

/// A fault that repeats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    lasts: Span,
    every: Span,
    is_random: bool,
}

/// Some of the links or switches that match.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    count: usize,
    keep_paths: bool,
}

impl FaultSpec {
    /// Returns the ports, each once, in ascending order.
    fn ports(&self) -> Vec<PortId> {
        let mut ports: Vec<PortId> = self.units.iter().flatten().copied().collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Returns `true` if it ends paths.
    pub(super) fn is_down(&self) -> bool {
        self.kind == FaultKind::Down
    }
}
