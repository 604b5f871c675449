//! The run of a scenario, read from its root.

use apus_cc::AlgorithmFactory;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use apus_units::Span;

use super::algorithm::{self, NamedAlgorithm};
use super::contradictions::{self, check_delays};
use super::fault::{Limits, read_faults};
use super::frame::Frame;
use super::host::{read_host, read_transport};
use super::keys::RUN;
use super::packets::read_packets;
use super::parts::Parts;
use super::read::Options;
use super::routing::Routing;
use super::section::{Section, Setting};
use super::setup::Setup;
use super::source::{Place, Problems};
use super::topology::TopologySpec;
use super::tree::{Node, Table, Value};
use super::workload::{Workload, named_workloads};
use super::{measure, record, workload};

/// Reads a run from the root of a scenario; problems go to `problems`.
pub(super) fn read_run(
    name: String,
    table: &Table,
    place: Place,
    problems: &Problems,
    options: &Options,
) -> Option<Setup> {
    let root = Section::new(table, &RUN, "", place, problems);
    let duration = root.require("duration");
    let warmup = read_warmup(&root, duration);
    // The seed is not recorded, since the seed of a setup can change later.
    let seed = root.get_or_default("seed");
    root.effective().remove("seed");
    let sizes = read_packets(&root, options.registry)?;
    let packet = u64::from((sizes.payload + sizes.header).max(sizes.control));
    let topology = match root.section("topology") {
        Some(section) => TopologySpec::read(section, packet, sizes.control),
        None => {
            if root.node("topology").is_none() {
                root.missing("topology", "a table like `[topology]` with `kind = \"star\"`");
            }
            None
        }
    };
    let host = read_host(root.section_or_empty("host")?);
    let network = OnceCell::new();
    let network = || {
        let (topology, host) = (topology.as_ref()?, host.as_ref()?);
        let spreads = || topology.has_balancers() || has_balancer(&root);
        *network.get_or_init(|| topology.network_info(sizes, host, spreads()))
    };
    let algorithms = algorithm::read(&root, options.registry, &network, problems);
    let fine = |named: &NamedAlgorithm| named.config.fine_timers();
    let fine_timers = algorithms.iter().flatten().any(fine);
    let transport = root.section_or_empty("transport")?;
    let endpoint = read_transport(transport, &sizes, fine_timers);
    if let (Some(topology), Some(duration)) = (&topology, duration) {
        check_delays(&root, topology, duration);
    }
    let tables = root.sections("workload");
    if tables.is_empty() && root.node("workload").is_none() {
        root.missing("workload", "one table or more `[[workload]]` with `kind` and `size`");
    }
    let of_class = topology.as_ref().is_some_and(TopologySpec::has_balancers);
    let spreads = of_class || tables.iter().any(|table| table.node("balancer").is_some());
    let network_info = if spreads || root.node("routing").is_some() { network() } else { None };
    // The limits of a workload are known only if the rest could be read.
    let (duration, topology, algorithms) = (duration?, topology?, algorithms?);
    let endpoint = endpoint?;
    let labels = algorithms.iter().map(|named| named.label.as_str()).collect();
    let routing = Routing::read(&root, &endpoint, network_info, options.registry)?;
    let frame = Frame {
        hosts: topology.hosts().max(2),
        folder: options.folder.as_deref(),
        duration,
        max_ops: endpoint.max_ops,
        algorithms: labels,
        topology: &topology,
        routing: &routing,
        loggops: host.as_ref().and_then(|host| host.loggops),
        configs: &algorithms,
    };
    let recorded: Vec<_> = tables.iter().map(|table| Rc::clone(table.effective())).collect();
    let workloads: Vec<Option<Vec<Workload>>> =
        tables.into_iter().map(|table| Workload::read(table, &frame)).collect();
    let mut workloads: Vec<Vec<Workload>> = workloads.into_iter().collect::<Option<_>>()?;
    workload::label(&mut workloads);
    for (recorded, table) in recorded.iter().zip(&workloads) {
        if let Some(named) = table.first().and_then(|workload| workload.named.as_ref()) {
            recorded.set("name", named.name.value());
        }
    }
    let workloads: Vec<Workload> = workloads.into_iter().flatten().collect();
    routing.check(&root, problems, workloads.iter().any(|workload| workload.spread.is_some()));
    // No packets are sent before the first message of a trace, so rates cannot be averaged over
    // this time.
    let warmup = match workload::first_message(&workloads) {
        Some(first) if root.node("warmup").is_none() => {
            root.record("warmup", first.value());
            Some(first)
        }
        _ => warmup,
    };
    let drain = read_drain(&root, duration, warmup);
    let ends_with_ops = read_ends_with_ops(&root, &workloads);
    let record_names_ports = matches!(root.node("record"), Some(Node { value: Value::Table(record), .. }) if record.get("packets").is_some());
    let names_links = root.node("fault").is_some() || root.node("measure").is_some();
    let built = if names_links || record_names_ports { topology.build().ok() } else { None };
    let largest = contradictions::largest_packets(&topology, &workloads, packet);
    let limits = Limits {
        duration,
        drain: drain.unwrap_or(Span::MAX),
        packet,
        classes: &topology.classes,
        largest: &largest,
        control: u64::from(sizes.control),
        credits: algorithms.iter().find_map(|named| named.config.credit_limit()),
    };
    let faults = read_faults(&root, built.as_ref(), &limits);
    if let Some(faults) = &faults
        && !options.expects_faults
    {
        routing.check_rerouting(&root, problems, faults, duration.saturating_add(limits.drain));
    }
    let named = named_workloads(&workloads).into_iter().map(|named| named.name);
    let parts = Parts {
        named: named.collect(),
        flows: workloads.iter().map(Workload::connections).sum(),
        duration,
        warmup: warmup.unwrap_or(Span::ZERO),
        topology: built.as_ref(),
        classes: &topology.classes,
    };
    let measure = measure::read(&root, &parts);
    let (record, trace) = record::read(&root, duration, built.as_ref());
    let parts = contradictions::Parts {
        topology: &topology,
        algorithms: &algorithms,
        workloads: &workloads,
        loggops: frame.loggops.is_some(),
        largest: &largest,
        fair_shares: measure.as_ref().is_some_and(|measure| measure.fair_share.is_some()),
        faults: faults.as_deref().filter(|_| !options.expects_faults).unwrap_or_default(),
        memory: options.memory.as_ref(),
    };
    parts.check(&root);
    Some(Setup {
        registry: options.registry,
        name,
        duration,
        warmup: warmup?,
        drain: drain?,
        ends_with_ops: ends_with_ops?,
        seed,
        topology,
        sizes,
        host: host?,
        endpoint,
        algorithms,
        workloads,
        faults: faults?,
        rerouting: routing.rerouting,
        measure: measure?,
        record,
        trace,
        effective: Arc::new(root.effective().to_table()),
        recorded: false,
    })
}

/// Returns `true` if the scenario or a workload names a policy that may spread packets.
fn has_balancer(root: &Section<'_>) -> bool {
    let names = |table: &Table| {
        let policy = table.get("balancer").map(|node| &node.value);
        matches!(policy, Some(Value::Text(name)) if name.split_whitespace().next() != Some("ecmp"))
    };
    let routing = root.node("routing").map(|node| &node.value);
    let workloads = root.node("workload").map(|node| &node.value);
    matches!(routing, Some(Value::Table(table)) if names(table))
        || matches!(workloads, Some(Value::List(list)) if list.iter().any(|node| matches!(&node.value, Value::Table(table) if names(table))))
}

fn read_warmup(root: &Section<'_>, duration: Option<Span>) -> Option<Span> {
    let warmup: Span = root.get_or_default("warmup");
    if let Some(duration) = duration {
        let message =
            format_args!("is {warmup}, but the run ends at {duration}: nothing is measured");
        root.check(warmup < duration, "warmup", message);
    }
    Some(warmup)
}

/// Reads the drain, which by default is as long as the measured phase.
fn read_drain(root: &Section<'_>, duration: Span, warmup: Option<Span>) -> Option<Span> {
    Some(root.get_or("drain", duration.saturating_sub(warmup?)))
}

fn read_ends_with_ops(root: &Section<'_>, workloads: &[Workload]) -> Option<bool> {
    let ends: bool = root.get_or("ends_with_ops", workload::are_jobs(workloads));
    let traces = workload::first_message(workloads).is_some();
    let message = "needs traces and jobs alone, as other workloads have no last op; remove it";
    root.check(!ends || traces, "ends_with_ops", message);
    Some(ends)
}
