//! `reroute = { at, through }` of a listed flow: a change of its path during the run.

use std::sync::Arc;

use apus_units::{HostId, PortId, Span, Time};

use super::declared::{Keys, Kind, key};
use super::frame::Frame;
use super::section::{Section, Setting};
use super::tree::Value;
use apus_sim::plan::Reroute;

/// Keys of `reroute`.
pub(super) static REROUTE: Keys = Keys::of(&[
    key("at", Kind::Time, "Time of the change"),
    key(
        "through",
        Kind::Texts,
        "Switches on the new path, such as [\"leaf 0\", \"spine 1\", \"leaf 2\"]",
    ),
]);

/// A change of path as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct RerouteSpec {
    at: Span,
    path: Arc<[PortId]>,
}

impl RerouteSpec {
    /// Reads the setting; the outer `None` means that an error was reported.
    pub(super) fn read(
        table: &Section<'_>,
        (from, to): (u32, u32),
        frame: &Frame<'_>,
    ) -> Option<Option<Self>> {
        if table.node("reroute").is_none() {
            return Some(None);
        }
        let section = table.section("reroute")?;
        let at: Option<Span> = section.require("at");
        if let Some(at) = at {
            let ends = format_args!("is {at}, but the run ends at {}", frame.duration);
            section.check(at < frame.duration, "at", ends);
        }
        let through = read_names(&section);
        let path = through.as_ref().and_then(|through| {
            let topology = frame.topology.build().ok()?;
            let path = topology.path(HostId::new(from), through, HostId::new(to));
            path.inspect_err(|why| section.problem("through", why)).ok()
        });
        section.finish();
        Some(Some(Self { at: at?, path: path?.into() }))
    }

    pub(super) fn plan(&self) -> Reroute {
        Reroute { at: Time::ZERO + self.at, path: Arc::clone(&self.path) }
    }
}

fn read_names(section: &Section<'_>) -> Option<Vec<String>> {
    const EXAMPLE: &str = "the switches on the new path, like [\"left\", \"spare\", \"right\"]";
    let Some(node) = section.node("through") else {
        section.missing("through", EXAMPLE);
        return None;
    };
    let names = match &node.value {
        Value::List(list) if !list.is_empty() => list
            .iter()
            .map(|node| match &node.value {
                Value::Text(name) => Some(name.clone()),
                _ => None,
            })
            .collect::<Option<Vec<_>>>(),
        _ => None,
    };
    match &names {
        Some(names) => section.record("through", names.value()),
        None => section.problem("through", format_args!("must be {EXAMPLE}")),
    }
    names
}
