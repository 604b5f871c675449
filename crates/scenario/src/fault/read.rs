//! Reads `[[fault]]`.

use apus_cc::CreditLimit;
use apus_fabric::Buffer;
use apus_sim::plan::FaultKind;
use apus_units::{Bytes, Span};

use super::names::{Units, find_links, find_switches};
use super::{Choice, FaultSpec, Repeat, SPACINGS};
use crate::classes::Class;
use crate::section::{Section, Setting};
use crate::set::Topology;

/// Maximum mean number of faults of one table. Rationale: each fault is an instant at which the whole run
/// stops.
const MAX_FAULTS: u64 = 100_000;

/// The properties of the run with which a fault is checked.
pub(crate) struct Limits<'a> {
    /// Length of the run.
    pub(crate) duration: Span,
    /// Longest drain.
    pub(crate) drain: Span,
    /// Wire bytes of the largest packet.
    pub(crate) packet: u64,
    /// Classes of switch ports, and wire bytes of the largest packet of each.
    pub(crate) classes: &'a [Class],
    pub(crate) largest: &'a [u64],
    /// Wire bytes of a control packet.
    pub(crate) control: u64,
    /// The limit of ports to credits, if there are any.
    pub(crate) credits: Option<CreditLimit>,
}

/// Reads the faults of a run.
pub(crate) fn read_faults(
    root: &Section<'_>,
    topology: Option<&Topology>,
    limits: &Limits<'_>,
) -> Option<Vec<FaultSpec>> {
    let tables = root.sections("fault");
    let mut faults: Vec<FaultSpec> = Vec::new();
    let mut complete = true;
    for table in tables {
        match read_fault(&table, topology?, limits) {
            Some(fault) => {
                if let Some(other) = faults.iter().find(|other| overlap(&fault, other)) {
                    let message = format_args!(
                        "`{}` overlaps another fault of that link, from {} on; end one before the \
                         other begins",
                        fault.name, other.at
                    );
                    table.problem(if fault.is_switch { "switch" } else { "link" }, message);
                }
                faults.push(fault);
            }
            None => complete = false,
        }
        table.finish();
    }
    complete.then_some(faults)
}

/// Returns `true` if two faults may change the same property of a port at the same time. A link that is down
/// for several reasons is up again when all of them have ended. Two faults that take the same link down are a
/// mistake only if both tables name the link.
fn overlap(fault: &FaultSpec, other: &FaultSpec) -> bool {
    let property = |fault: &FaultSpec| match fault.kind {
        FaultKind::Down => 0,
        FaultKind::Slow(_) => 1,
        FaultKind::Loss(_) | FaultKind::Corrupt(_) | FaultKind::Reorder(..) => 2,
    };
    let is_named = |f: &FaultSpec| !f.is_switch && f.choice.is_none() && f.repeat.is_none();
    let end = |f: &FaultSpec| f.until.unwrap_or(Span::MAX);
    let together = other.at < end(fault) && fault.at < end(other);
    if property(fault) != property(other)
        || !together
        || (fault.is_down() && !(is_named(fault) && is_named(other)))
    {
        return false;
    }
    let ports = fault.ports();
    other.ports().iter().any(|port| ports.binary_search(port).is_ok())
}

fn read_fault(table: &Section<'_>, topology: &Topology, limits: &Limits<'_>) -> Option<FaultSpec> {
    let is_switch = table.node("switch").is_some();
    let found = if is_switch {
        table.no_effect("link", "with a `switch`, which fails with all its links");
        find(table, "switch", |name| find_switches(topology, name))
    } else {
        find(table, "link", |name| find_links(topology, name))
    };
    let at: Span = table.get_or_default("at");
    let &Limits { duration, drain, .. } = limits;
    table.check(at < duration, "at", format_args!("is {at}, but the run ends at {duration}"));
    let end = duration.saturating_add(drain);
    let until: Option<Span> = table.get("until");
    if let Some(until) = until {
        let message = format_args!("is {until}; it must be after {at}, when the fault begins");
        table.check(until > at, "until", message);
        let message = format_args!(
            "is {until}, which has no effect: the run ends at {end} at the latest, with its drain"
        );
        table.check(until < end, "until", message);
    }
    let kind = read_kind(table);
    let units = found.as_ref().map_or(0, |(_, units)| units.len());
    let choice = read_choice(table, units);
    let of_each = until.unwrap_or(end).saturating_sub(at);
    let chosen = choice.map_or(units, |choice| choice.count);
    let repeat = read_repeat(table, of_each, chosen as u64)?;
    let ((name, units), kind) = (found?, kind?);
    if let FaultKind::Slow(fraction) = kind {
        check_memory(table, topology, &units, (fraction, limits));
    }
    table.record(if is_switch { "switch" } else { "link" }, name.value());
    Some(FaultSpec { name, is_switch, at, until, kind, repeat, choice, units })
}

/// Finds the links or switches that the text of a key names.
fn find(
    table: &Section<'_>,
    key: &'static str,
    find: impl Fn(&str) -> Result<(String, Units), String>,
) -> Option<(String, Units)> {
    let name: String = table.require(key)?;
    find(&name).map_err(|why| table.problem(key, why)).ok()
}

fn read_kind(table: &Section<'_>) -> Option<FaultKind> {
    if table.node("kind").is_none() {
        table.missing("kind", "\"down\", \"slow\", \"loss\", \"corrupt\" or \"reorder\"");
        return None;
    }
    let word = table.word("kind")?;
    match word {
        "down" => table.no_effect("probability", "on a link that is down"),
        "slow" => table.no_effect("probability", "on a slow link"),
        _ => {}
    }
    if word != "reorder" {
        table.no_effect("delay", "unless packets are reordered (kind = \"reorder\")");
    }
    if word != "slow" {
        table.no_effect("fraction", "unless the link is slow (kind = \"slow\")");
    }
    Some(match word {
        "down" => FaultKind::Down,
        "slow" => {
            let fraction: f64 = table.require("fraction")?;
            table.check(
                fraction < 1.0,
                "fraction",
                "is 1, which has no effect; it must be below 1",
            );
            FaultKind::Slow(fraction)
        }
        "loss" => FaultKind::Loss(table.require("probability")?),
        "corrupt" => FaultKind::Corrupt(table.require("probability")?),
        "reorder" => {
            let (probability, delay) = (table.require("probability"), table.require("delay"));
            FaultKind::Reorder(probability?, delay?)
        }
        other => unreachable!("the word {other} is not declared"),
    })
}

/// Reads the choice of the units that fail among those that match.
fn read_choice(table: &Section<'_>, units: usize) -> Option<Choice> {
    let share: Option<f64> = table.get("share");
    if share.is_some() {
        table.no_effect("count", "with a `share`");
    }
    let count: Option<u64> = if share.is_none() { table.get("count") } else { None };
    let Some(count) = share.map(|share| (share * units as f64).round() as u64).or(count) else {
        table.no_effect("keep_paths", "without `share` or `count`");
        return None;
    };
    if units > 0 && share.is_none() {
        let most = units as u64;
        let message = format_args!("is {count}, but {most} match, which all fail without it");
        table.check(count < most, "count", message);
    }
    // At most the number of links.
    Some(Choice { count: count.max(1) as usize, keep_paths: table.get_or_default("keep_paths") })
}

/// Reads whether the fault repeats. `of_each` is the time of each link or switch, and `chosen` their number.
/// The outer `None` means that an error was reported.
fn read_repeat(table: &Section<'_>, of_each: Span, chosen: u64) -> Option<Option<Repeat>> {
    if table.node("every").is_none() {
        for key in ["lasts", "spacing"] {
            table.no_effect(key, "without `every`");
        }
        return Some(None);
    }
    let (every, lasts): (Option<Span>, Option<Span>) =
        (table.require("every"), table.require("lasts"));
    let is_random = table.meaning("spacing", &SPACINGS)?;
    let (every, lasts) = (every?, lasts?);
    let message = format_args!("is {every}; it must be more than `lasts`, {lasts}");
    table.check(every > lasts, "every", message);
    let faults = (of_each / every.as_ps().max(1)).as_ps().saturating_add(1).saturating_mul(chosen);
    let message = format_args!("makes some {faults} faults; at most {MAX_FAULTS} are possible");
    table.check(faults <= MAX_FAULTS, "every", message);
    Some(Some(Repeat { lasts, every, is_random }))
}

/// Reports each limit that cannot hold a packet on a slow link: the memory of a port, the limit of a class, or
/// that of credits.
fn check_memory(
    table: &Section<'_>,
    topology: &Topology,
    units: &Units,
    (fraction, limits): (f64, &Limits<'_>),
) {
    let ports = || {
        units.iter().flatten().map(|port| {
            let link = &topology.links[port.index() / 2];
            if port.index().is_multiple_of(2) { &link.ab } else { &link.ba }
        })
    };
    let check = |bytes: Option<Bytes>, packet: u64, what: &str| {
        let Some(bytes) = bytes.filter(|bytes| *bytes < Bytes::MAX) else { return };
        let left = (bytes.get() as f64 * fraction) as u64;
        let message =
            format_args!("leaves {left} B of {what}, which does not hold one packet of {packet} B");
        table.check(left >= packet, "fraction", message);
    };
    let own = ports().filter_map(|port| match port.buffer {
        Buffer::Own(own) => Some(own),
        Buffer::Shared { .. } => None,
    });
    check(own.min(), limits.packet, "the memory of a port");
    for (number, (class, largest)) in limits.classes.iter().zip(limits.largest).enumerate() {
        let limit = ports().filter_map(|port| port.classes.get(number)).map(|class| class.limit);
        check(limit.min(), *largest, &format!("the limit of class `{}`", class.name));
    }
    if let Some(credits) = limits.credits.filter(|credits| credits.queue_in_bytes) {
        let bytes = Bytes::new(u64::from(credits.queue).saturating_mul(limits.control));
        check(Some(bytes), limits.control, "the queue of credits");
    }
}
