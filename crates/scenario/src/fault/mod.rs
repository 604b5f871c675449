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

/// Whether times are as given, or random with these means.
const SPACINGS: [(&str, bool); 2] = [("fixed", false), ("random", true)];

/// Keys of `fault`.
pub(super) static FAULT: Keys = Keys::of(&[
    key(
        "link",
        Kind::Text,
        "The link, like \"leaf 0 -> spine 1\", or with `<->` both directions. `*` stands for any text in a name, so that \"agg * <-> core *\" is a tier, and the fault is one of every link that matches; without it, of the first of parallel links",
    ),
    key(
        "switch",
        Kind::Text,
        "In place of `link`: a switch, like \"spine 1\", with all its links in both directions; `*` stands for any text",
    ),
    key("at", Kind::Time, "When the fault begins").or("0s"),
    key("until", Kind::Time, "When the fault ends, which may be in the drain; never if not given. With `every`, when the last of the faults ends at the latest"),
    key(
        "kind",
        Kind::Word(&["down", "slow", "loss", "corrupt", "reorder"]),
        "\"down\": queued, flying and arriving packets are lost; paths change as `routing.reroute_local` and `routing.reroute_global` say. \"slow\": the link has `fraction` of its rate. \"reorder\": packets are held back by `delay`, so that others overtake them",
    ),
    key("fraction", Kind::Number, "Of a slow link: its rate, rate limits, the memory of its port and the thresholds of marking, over their own. Memory that the ports of a switch share stays").above_0_to(1.0),
    key("probability", Kind::Number, "Probability per packet").above_0_to(1.0),
    key("delay", Kind::Time, "Time by which packets are held back").within(1, MAX_DELAY.as_ps()),
    key("lasts", Kind::Time, "With `every`: length of each fault").at_least(1),
    key("every", Kind::Time, "The fault comes again, after this time from its beginning").at_least(1),
    key("spacing", Kind::Word(&["fixed", "random"]), "With `every`: \"random\" draws the time between two faults from an exponential distribution with the same mean, for each link or switch; the first one is drawn too").or("fixed"),
    key("share", Kind::Number, "Only this share of the links or switches that match, rounded, at least one, chosen by the seed").above_0_to(1.0),
    key("count", Kind::Count, "Only this number of the links or switches that match, chosen by the seed").at_least(1),
    key("keep_paths", Kind::Flag, "With `share` or `count`: no pair of hosts loses its last shortest path; fewer fail if there are not enough").or("false"),
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

/// A fault that comes again.
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
