//! `[[fault]]`: links that fail, lose, corrupt or reorder packets on a schedule.

use apus_fabric::Topology;
use apus_units::{PortId, Span, Time};

use super::section::Section;
use crate::plan::{Fault, FaultKind};

/// A fault as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct FaultSpec {
    /// "leaf 0 -> spine 1", or with `<->` for both directions.
    pub(super) link: String,
    pub(super) at: Span,
    pub(super) until: Option<Span>,
    pub(super) kind: FaultKind,
    ports: Vec<PortId>,
}

impl FaultSpec {
    /// What it means for each direction.
    pub(super) fn plan(&self) -> impl Iterator<Item = Fault> + '_ {
        self.ports.iter().map(|&port| Fault {
            port,
            at: Time::ZERO + self.at,
            until: self.until.map_or(Time::MAX, |until| Time::ZERO + until),
            kind: self.kind,
        })
    }
}

/// Reads the faults of a run.
pub(super) fn read_faults(
    root: &Section<'_>,
    topology: Option<&Topology>,
    duration: Span,
) -> Option<Vec<FaultSpec>> {
    let tables = root.sections("fault");
    let mut faults: Vec<FaultSpec> = Vec::new();
    let mut complete = true;
    for table in tables {
        match read_fault(&table, topology?, duration) {
            Some(fault) => {
                let overlaps = |other: &&FaultSpec| {
                    let end = |f: &FaultSpec| f.until.unwrap_or(Span::MAX);
                    let together = other.at < end(&fault) && fault.at < end(other);
                    together && other.ports.iter().any(|port| fault.ports.contains(port))
                };
                if let Some(other) = faults.iter().find(overlaps) {
                    let message = format_args!(
                        "`{}` overlaps another fault of that link, from {} on; end one before the \
                         other begins",
                        fault.link, other.at
                    );
                    table.problem("link", message);
                }
                faults.push(fault);
            }
            None => complete = false,
        }
        table.finish();
    }
    complete.then_some(faults)
}

fn read_fault(table: &Section<'_>, topology: &Topology, duration: Span) -> Option<FaultSpec> {
    let link: Option<String> = table.require("link");
    let found = link.as_ref().and_then(|link| match find_ports(topology, link) {
        Ok(found) => Some(found),
        Err(why) => {
            table.problem("link", why);
            None
        }
    });
    let at: Span = table.get("at").unwrap_or(Span::ZERO);
    table.check(at < duration, "at", format_args!("is {at}, but the run ends at {duration}"));
    let until: Option<Span> = table.get("until");
    if let Some(until) = until {
        let message = format_args!("is {until}; it must be after {at}, when the fault begins");
        table.check(until > at, "until", message);
        let message = format_args!("is {until}, which has no effect: the run ends at {duration}");
        table.check(until < duration, "until", message);
    }
    if table.node("kind").is_none() {
        table.missing("kind", "\"down\", \"loss\", \"corrupt\" or \"reorder\"");
        return None;
    }
    let kind = match table.word("kind", &["down", "loss", "corrupt", "reorder"])? {
        "down" => {
            table.no_effect("probability", "on a link that is down");
            table.no_effect("delay", "on a link that is down");
            FaultKind::Down
        }
        word => {
            let probability: f64 = table.require("probability")?;
            let holds = probability > 0.0 && probability <= 1.0;
            let must =
                format_args!("must be above 0 and at most 1 per packet, but it is {probability}");
            table.check(holds, "probability", must);
            if word == "reorder" {
                let delay: Span = table.require("delay")?;
                table.check(!delay.is_zero(), "delay", "must be above 0: by how long to hold back");
                table.check_delay("delay", delay);
                FaultKind::Reorder(probability, delay)
            } else {
                table.no_effect("delay", "unless packets are reordered (kind = \"reorder\")");
                match word {
                    "loss" => FaultKind::Loss(probability),
                    _ => FaultKind::Corrupt(probability),
                }
            }
        }
    };
    let (link, ports) = found?;
    Some(FaultSpec { link, at, until, kind, ports })
}

/// The egress ports in front of a link, and its name: one port, or with `<->` both. Of several links,
/// the first.
fn find_ports(topology: &Topology, text: &str) -> Result<(String, Vec<PortId>), String> {
    let (ends, both) = match text.split_once("<->") {
        Some(ends) => (Some(ends), true),
        None => (text.split_once("->"), false),
    };
    let Some((from, to)) = ends else {
        return Err("must name two nodes, like \"leaf 0 -> spine 1\", or with `<->` for both \
                    directions"
            .to_owned());
    };
    let (from, to) = (from.trim(), to.trim());
    let mut names = Vec::new();
    for (index, link) in (0u32..).zip(&topology.links) {
        let (a, b) = (topology.node_name(link.a), topology.node_name(link.b));
        let side = match (a == from && b == to, a == to && b == from) {
            (true, _) => Some(0),
            (_, true) => Some(1),
            _ => None,
        };
        if let Some(side) = side {
            let port = 2 * index + side;
            let ports = if both { vec![port, port ^ 1] } else { vec![port] };
            let arrow = if both { "<->" } else { "->" };
            let name = format!("{from} {arrow} {to}");
            return Ok((name, ports.into_iter().map(PortId::new).collect()));
        }
        // Enough for a hint.
        if names.len() < 10_000 {
            names.extend([a, b]);
        }
    }
    let unknown = [from, to].into_iter().find(|name| !names.iter().any(|known| known == name));
    Err(match unknown {
        Some(name) => {
            let hint = apus_units::suggestion(name, names.iter().map(String::as_str));
            format!("names \"{name}\", which is no node of the topology{hint}")
        }
        None => format!("names \"{from}\" and \"{to}\", which no link connects"),
    })
}
