//! `[[workload]]`: the senders, receivers, sizes and times of traffic.

mod keys;

use std::sync::Arc;

use apus_algorithms::BuiltInPath;
use apus_cc::{PathPolicy, SwitchChoice};
use apus_units::{Span, suggestion};

use super::closed::ClosedLoops;
use super::frame::{Frame, Times, check_times, stop_later};
use super::job::{self, JobSpec};
use super::label::{PART_RULE, is_part_name};
use super::poisson::Poisson;
use super::repeat::{self, MAX_BURSTS};
use super::rounds::Rounds;
use super::section::{Section, Setting};
use super::service::{self, ServiceSpec};
use super::topology::TopologySpec;
use super::trace::Trace;
use super::tree::Value;
use apus_sim::measure::NamedWorkload;
use apus_sim::plan::{OpType, Spreading};
use keys::OPS;
pub(super) use keys::WORKLOAD;
pub use keys::WORKLOADS;

/// A workload as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) demand: Demand,
    /// Kind, one of [`WORKLOADS`].
    pub(super) kind: &'static str,
    /// Label in results: the name, or one derived from the kind.
    pub(super) label: String,
    pub(super) op: OpType,
    /// Whether each flow sets up its connection before its first op.
    pub(super) handshake: bool,
    pub(super) start: Span,
    pub(super) stop: Option<Span>,
    /// Repetition of the workload by its table.
    pub(super) repeat: Repeat,
    /// Index of its algorithm.
    pub(super) algorithm: usize,
    /// Index of its class.
    pub(super) class: u8,
    /// Name, if the workload is measured separately.
    pub(super) named: Option<NamedWorkload>,
    /// Service time of its reads at the answering host.
    pub(super) service: Option<ServiceSpec>,
    /// Its path policy; `None`: one path per flow.
    pub(super) spread: Option<Arc<Spreading<BuiltInPath>>>,
}

/// The part of a workload in a series of bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The workload has a separate table; it occurs once, or repeatedly at this interval.
    First(Option<Span>),
    /// A later burst of the previous table.
    Again,
}

/// The ops that a workload submits.
#[derive(Clone, Debug)]
pub(super) enum Demand {
    Closed(ClosedLoops),
    Poisson(Poisson),
    Rounds(Rounds),
    Trace(Trace),
    Job(JobSpec),
}

impl Demand {
    fn reroutes(&self) -> bool {
        matches!(self, Self::Closed(loops) if loops.reroutes())
    }
}

impl Workload {
    /// Returns `true` if the workload is a job.
    pub(super) fn is_job(&self) -> bool {
        matches!(self.demand, Demand::Job(_))
    }

    /// Reads a workload: several if it is repeated.
    pub(super) fn read(section: Section<'_>, frame: &Frame<'_>) -> Option<Vec<Self>> {
        let kind = section.kind().map(|kind| WORKLOADS[kind].name);
        let (mut start, mut stop, mut spread) = (Span::ZERO, None, Span::ZERO);
        if kind == Some("trace") {
            for key in ["start", "stop"] {
                section.no_effect(key, "on a trace, whose messages have start times");
            }
        } else {
            (start, stop) = (section.get_or_default("start"), section.get("stop"));
        }
        let is_job = section.has_kind() && job::is_job(section.table());
        if !is_job && !matches!(kind, Some("poisson" | "trace" | "partition-aggregate")) {
            spread = section.get_or_default("start_spread");
        }
        check_times(&section, start, spread, stop, frame.duration);
        let times = Times { start, spread, stop };
        let every = if is_job { None } else { repeat::read(&section, kind, &times, frame) };
        let demand = match kind {
            None => None,
            Some("poisson") => Poisson::read(&section, frame, &times).map(Demand::Poisson),
            Some("partition-aggregate") => Rounds::read(&section, frame).map(Demand::Rounds),
            Some("trace") => Trace::read(&section, frame).map(Demand::Trace),
            Some(kind) if is_job => JobSpec::read(&section, frame, kind).map(Demand::Job),
            Some(kind) => ClosedLoops::read(&section, frame, kind, &times).map(Demand::Closed),
        };
        let op = match kind {
            Some("partition-aggregate") => Some(OpType::Message),
            _ if is_job => {
                section.no_effect("op", "on a job, whose messages are writes");
                Some(OPS[0].1)
            }
            _ => section.meaning("op", &OPS),
        };
        let service = service::read(&section, op);
        let opens = matches!(kind, Some("poisson" | "trace"));
        let handshake = opens && section.get_or_default("handshake");
        let algorithm = read_algorithm(&section, frame);
        let class = read_class(&section, frame.topology);
        let named = read_name(&section);
        let config = algorithm.map(|index| &frame.configs[index].config);
        let spread_by = class.zip(config).and_then(|(class, config)| {
            let of_class = frame.topology.balancer_of(usize::from(class));
            frame.routing.spread(&section, config, of_class)
        });
        let reroutes = demand.as_ref().is_some_and(Demand::reroutes);
        let message = "does not go with `reroute`, which happens once";
        section.check(every.is_none() || !reroutes, "every", message);
        let spreads = matches!(spread_by, Some(Some(_)));
        let message = "does not go with `reroute`, which sets the only path of a flow";
        section.check(!spreads || !reroutes, "balancer", message);
        if let (Some(Some(spread)), Some(class)) = (&spread_by, class) {
            let by_load = match spread.policy.at_switches() {
                Some(SwitchChoice::LeastLoaded { .. }) => true,
                Some(SwitchChoice::Flowlet { least_loaded, .. }) => least_loaded,
                Some(SwitchChoice::InTurn) | None => false,
            };
            let message =
                "compares loads, which are parts of a port's room; limit the buffer or the class";
            section.check(
                !by_load || frame.topology.limits(usize::from(class)),
                "balancer",
                message,
            );
        }
        if demand.is_some() {
            section.finish();
        }
        let (algorithm, class) = (algorithm?, class?);
        let (demand, op, named, service) = (demand?, op?, named?, service?);
        let (kind, label, spread) = (kind?, String::new(), spread_by?);
        let repeat = Repeat::First(every);
        let first = Self {
            demand,
            kind,
            label,
            op,
            handshake,
            start,
            stop,
            repeat,
            algorithm,
            class,
            named,
            service,
            spread,
        };
        Some(bursts(first, every, frame.duration))
    }

    /// Returns `true` if any of its flows takes another path in the course of the run.
    pub(super) fn reroutes(&self) -> bool {
        self.demand.reroutes()
    }

    /// Returns the maximum number of connections that the workload opens.
    pub(super) fn connections(&self) -> u64 {
        match &self.demand {
            Demand::Closed(loops) => loops.connections(),
            Demand::Poisson(poisson) => poisson.connections(),
            Demand::Rounds(rounds) => rounds.workers.len() as u64,
            Demand::Trace(trace) => trace.connections,
            Demand::Job(job) => job.connections,
        }
    }

    /// Returns the workload, delayed by `by`. A stop after the end of the run is removed.
    fn later(&self, by: Span, duration: Span) -> Self {
        let mut next = self.clone();
        next.repeat = Repeat::Again;
        next.start = next.start.saturating_add(by);
        next.stop = stop_later(next.stop, by, duration);
        if let Demand::Closed(loops) = &mut next.demand {
            loops.delay(by, duration);
        }
        next
    }
}

/// The bursts of a workload, each a separate workload: the first, then one after each `every`, as
/// long as all of its flows start before the run ends.
fn bursts(first: Workload, every: Option<Span>, duration: Span) -> Vec<Workload> {
    let Some(every) = every.filter(|every| !every.is_zero()) else { return vec![first] };
    let spread = match &first.demand {
        Demand::Closed(loops) => loops.start_spread,
        Demand::Poisson(_) | Demand::Rounds(_) | Demand::Trace(_) | Demand::Job(_) => Span::ZERO,
    };
    let mut all = vec![first];
    // Values that are too large were refused above; the bound is an additional safeguard.
    while (all.len() as u64) < MAX_BURSTS {
        let next = all[all.len() - 1].later(every, duration);
        if next.start.saturating_add(spread) >= duration {
            break;
        }
        all.push(next);
    }
    all
}

/// Sets the label of the workloads of each table: the name; or the kind, with the number of the table if
/// several tables have this kind.
pub(super) fn label(tables: &mut [Vec<Workload>]) {
    let first = |table: &[Workload]| table.first().map(|w| (w.kind, w.named.is_some()));
    let kinds: Vec<Option<(&str, bool)>> = tables.iter().map(|table| first(table)).collect();
    let names: Vec<String> = tables
        .iter()
        .filter_map(|table| Some(table.first()?.named.as_ref()?.name.clone()))
        .collect();
    for (index, table) in tables.iter_mut().enumerate() {
        let Some((kind, named)) = kinds[index] else { continue };
        let alone = kinds.iter().filter(|other| **other == Some((kind, false))).count() == 1;
        let mut label = if alone { kind.to_owned() } else { format!("{kind}-{index}") };
        while names.contains(&label) {
            label.push_str("-unnamed");
        }
        for workload in table {
            workload.label = match &workload.named {
                Some(own) if named => own.name.clone(),
                _ => label.clone(),
            };
        }
    }
    measure_several(tables);
}

/// Maximum number of unnamed workloads that are measured separately. Rationale: each takes about 2
/// MB of distributions.
const MAX_UNNAMED: usize = 64;

/// Measures each of several workloads separately, so that results compare them. A single workload
/// is the whole run and needs no separate accumulators.
fn measure_several(tables: &mut [Vec<Workload>]) {
    if !(2..=MAX_UNNAMED).contains(&tables.len()) {
        return;
    }
    for workload in tables.iter_mut().flatten() {
        let label = || NamedWorkload { name: workload.label.clone(), deadline: None };
        if workload.named.is_none() {
            workload.named = Some(label());
        }
    }
}

/// Returns the start of the first message or job, if all workloads are traces and jobs.
pub(super) fn first_message(workloads: &[Workload]) -> Option<Span> {
    let first = |workload: &Workload| match &workload.demand {
        Demand::Trace(trace) => trace.messages.interval().map(|(first, _)| first),
        Demand::Job(_) => Some(workload.start),
        Demand::Closed(_) | Demand::Poisson(_) | Demand::Rounds(_) => None,
    };
    let starts: Vec<Span> = workloads.iter().map(first).collect::<Option<_>>()?;
    starts.into_iter().min()
}

/// Returns the number of messages of traces, if all workloads are traces and jobs.
pub(super) fn trace_ops(workloads: &[Workload]) -> Option<u64> {
    let ops = workloads.iter().map(|workload| match &workload.demand {
        Demand::Trace(trace) => Some(trace.messages.count()),
        Demand::Job(_) => Some(0),
        Demand::Closed(_) | Demand::Poisson(_) | Demand::Rounds(_) => None,
    });
    // A trace has at least one message.
    ops.sum::<Option<u64>>().filter(|ops| *ops > 0)
}

/// Returns `true` if all workloads are jobs.
pub(super) fn are_jobs(workloads: &[Workload]) -> bool {
    workloads.iter().all(Workload::is_job)
}

/// Reads `name` and `deadline`; the outer `None` means that an error was reported.
fn read_name(section: &Section<'_>) -> Option<Option<NamedWorkload>> {
    if section.node("name").is_none() {
        section.no_effect(
            "deadline",
            "on a workload without a `name`, which is not measured separately",
        );
        return Some(None);
    }
    let name: String = section.get("name")?;
    let holds = is_part_name(&name);
    section.check(holds, "name", format_args!("must be {}", PART_RULE));
    Some(Some(NamedWorkload { name, deadline: section.get("deadline") }))
}

/// Reads the class of a workload's packets.
fn read_class(section: &Section<'_>, topology: &TopologySpec) -> Option<u8> {
    if section.node("class").is_none() {
        if let Some(first) = topology.classes.first() {
            section.record("class", first.name.value());
        }
        return Some(0);
    }
    let name: String = section.get("class")?;
    let names = || topology.classes.iter().map(|class| class.name.as_str());
    let found = names().position(|known| known == name);
    if found.is_none() {
        let why = if topology.classes.is_empty() {
            "names a class, but the topology has none; add `[[topology.class]]`".to_owned()
        } else {
            format!("names no class of the topology{}", suggestion(&name, names()))
        };
        section.problem("class", why);
    }
    // At most 8 classes.
    found.map(|index| index as u8)
}

fn read_algorithm(section: &Section<'_>, frame: &Frame<'_>) -> Option<usize> {
    let known = || frame.algorithms.iter().copied();
    if section.node("algorithm").is_none() {
        if frame.algorithms.len() > 1 {
            let labels = known().collect::<Vec<_>>().join(", ");
            section.missing("algorithm", &format!("one of {labels}"));
            return None;
        }
        let only = known().next()?;
        section.record("algorithm", Value::Text(only.to_owned()));
        return Some(0);
    }
    let label: String = section.get("algorithm")?;
    let found = known().position(|known| known == label);
    if found.is_none() {
        let hint = suggestion(&label, known());
        section.problem("algorithm", format_args!("names no algorithm of this scenario{hint}"));
    }
    found
}

/// Returns the names of workloads, each once.
pub(super) fn named_workloads(workloads: &[Workload]) -> Vec<NamedWorkload> {
    let mut all: Vec<NamedWorkload> = Vec::new();
    for named in workloads.iter().filter_map(|workload| workload.named.as_ref()) {
        if all.iter().all(|other| other.name != named.name) {
            all.push(named.clone());
        }
    }
    all
}
