//! The effective configuration as a scenario: every default resolved.

use std::fmt::{self, Write};

use apus_cc::{Origin, ParamKind, Parameter};
use apus_units::{Bytes, Span};

use super::algorithm::NamedAlgorithm;
use super::closed::{ClosedLoops, Pattern};
use super::host::{LOCAL_RX, RECOVERY, spans_of};
use super::links::Links;
use super::poisson::{Pairs, Poisson};
use super::setup::Setup;
use super::shape::Shape;
use super::sizes_of::OpSizes;
use super::workload::{Demand, Repeat, Workload};
use apus_sim::host_model::Nic;
use apus_sim::plan::FaultKind;

impl Setup {
    /// Returns a scenario with all settings of the run, which reads back to the same plan.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.write_toml(false)
    }

    /// Returns the text of [`Setup::to_toml`], with a comment at each parameter of an algorithm
    /// that follows from the network.
    #[must_use]
    pub fn to_annotated_toml(&self) -> String {
        self.write_toml(true)
    }

    fn write_toml(&self, annotated: bool) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write_all(&mut text, self, annotated);
        text
    }
}

fn write_all(out: &mut String, setup: &Setup, annotated: bool) -> fmt::Result {
    writeln!(out, "# The effective configuration of a run: every default resolved.")?;
    writeln!(out, "name = \"{}\"", setup.name)?;
    writeln!(out, "duration = \"{}\"\nwarmup = \"{}\"", setup.duration, setup.warmup)?;
    writeln!(out, "drain = \"{}\"", setup.drain)?;
    if setup.ends_with_ops {
        writeln!(out, "ends_with_ops = true")?;
    }
    writeln!(out, "seed = {}", setup.seed)?;
    write_topology(out, setup)?;
    let sizes = setup.sizes;
    writeln!(out, "\n[packets]\npayload = \"{}B\"", sizes.payload)?;
    writeln!(out, "header = \"{}B\"\ncontrol = \"{}B\"", sizes.header, sizes.control)?;
    write_host(out, setup)?;
    let endpoint = setup.endpoint;
    writeln!(out, "\n[transport]\nreorder_threshold = {}", endpoint.reorder_threshold)?;
    let recovery = RECOVERY.iter().find(|(_, recovery)| *recovery == endpoint.recovery);
    if let Some((word, _)) = recovery {
        writeln!(out, "recovery = \"{word}\"")?;
    }
    writeln!(out, "max_ops = {}", endpoint.max_ops)?;
    let granularity = Span::from_ps(1 << endpoint.timer_granularity_log2_ps);
    writeln!(out, "timer_granularity = \"{granularity}\"")?;
    let counts = LOCAL_RX.iter().find(|(_, counts)| *counts == endpoint.local_rx_delay);
    if let Some((word, _)) = counts {
        writeln!(out, "local_rx_delay = \"{word}\"")?;
    }
    for named in &setup.algorithms {
        write_algorithm(out, named, annotated)?;
    }
    for workload in &setup.workloads {
        write_workload(out, workload, setup)?;
    }
    for fault in &setup.faults {
        writeln!(out, "\n[[fault]]\nlink = \"{}\"\nat = \"{}\"", fault.link, fault.at)?;
        if let Some(until) = fault.until {
            writeln!(out, "until = \"{until}\"")?;
        }
        match fault.kind {
            FaultKind::Down => writeln!(out, "kind = \"down\"")?,
            FaultKind::Loss(p) => writeln!(out, "kind = \"loss\"\nprobability = {p:?}")?,
            FaultKind::Corrupt(p) => writeln!(out, "kind = \"corrupt\"\nprobability = {p:?}")?,
            FaultKind::Reorder(p, delay) => {
                writeln!(out, "kind = \"reorder\"\nprobability = {p:?}\ndelay = \"{delay}\"")?;
            }
        }
    }
    let named = setup.named_workloads();
    let named: Vec<&str> = named.iter().map(|named| named.name.as_str()).collect();
    super::measure::write(out, &setup.measure, &named)?;
    if let Some(record) = &setup.record {
        super::record::write(out, record)?;
    }
    Ok(())
}

fn write_topology(out: &mut String, setup: &Setup) -> fmt::Result {
    let topology = &setup.topology;
    let own = topology.shared.is_none();
    writeln!(out, "\n[topology]")?;
    let uppers = topology.shape.write(out)?;
    if !matches!(topology.shape, Shape::Graph(_)) {
        write_links(out, topology.edge, own)?;
    }
    writeln!(out, "pipeline_latency = \"{}\"", topology.pipeline_latency)?;
    if let Some(shared) = topology.shared {
        let (size, alpha) = (shared.size, shared.alpha);
        writeln!(out, "shared = {{ size = \"{size}\", alpha = {alpha:?} }}")?;
    }
    if let Some(marking) = &topology.ecn {
        writeln!(out, "{}", marking.write())?;
    }
    if let Some(class) = topology.ack_class {
        writeln!(out, "ack_class = \"{}\"", topology.classes[usize::from(class)].name)?;
    }
    if !topology.plain.is_empty() {
        let names: Vec<_> = topology.plain.iter().map(|name| format!("\"{name}\"")).collect();
        writeln!(out, "plain = [{}]", names.join(", "))?;
    }
    if topology.instant_signals {
        writeln!(out, "signals = \"instant\"")?;
    }
    if let Some(pfc) = &topology.pfc {
        super::pfc::write(out, pfc, &topology.classes)?;
    }
    for (key, links) in uppers {
        writeln!(out, "\n[topology.{key}]")?;
        write_links(out, links, own)?;
    }
    for class in &topology.classes {
        writeln!(out, "\n[[topology.class]]\nname = \"{}\"", class.name)?;
        writeln!(out, "priority = {}\nweight = {}", class.priority, class.weight)?;
        if class.limit != Bytes::MAX {
            writeln!(out, "limit = \"{}\"", class.limit)?;
        }
        if let Some(marking) = &class.ecn {
            writeln!(out, "{}", marking.write())?;
        }
    }
    if let Shape::Graph(graph) = &topology.shape {
        for link in &graph.links {
            writeln!(out, "\n[[topology.link]]\na = \"{}\"", graph.name(link.a))?;
            writeln!(out, "b = \"{}\"", graph.name(link.b))?;
            write_links(out, link.links, own)?;
        }
    }
    Ok(())
}

fn write_links(out: &mut String, links: Links, own_buffers: bool) -> fmt::Result {
    writeln!(out, "rate = \"{}\"\ndelay = \"{}\"", links.rate, links.delay)?;
    if own_buffers {
        writeln!(out, "buffer = \"{}\"", size_or_unlimited(links.buffer))?;
    }
    Ok(())
}

fn size_or_unlimited(size: Bytes) -> String {
    if size == Bytes::MAX { "unlimited".to_owned() } else { size.to_string() }
}

fn write_host(out: &mut String, setup: &Setup) -> fmt::Result {
    let model = setup.host.model;
    writeln!(out, "\n[host]\nmodel = \"{}\"", setup.host.preset)?;
    writeln!(out, "jitter = \"{}\"\nclock_offset = \"{}\"", model.jitter, model.clock_offset)?;
    writeln!(out, "clock_drift = \"{}ppb\"", model.clock_drift_ppb)?;
    writeln!(out, "clock_reading_interval = \"{}\"", model.clock_reading_interval)?;
    match model.nic {
        Nic::Pull => writeln!(out, "nic_backlog = \"{}\"", model.nic_backlog)?,
        Nic::Queue => writeln!(out, "nic = \"queue\"")?,
    }
    let Some(mut costs) = model.engine else { return Ok(()) };
    writeln!(out, "receive_queue = \"{}\"", size_or_unlimited(model.receive_queue))?;
    writeln!(out, "\n[host.engine]")?;
    for (key, span) in spans_of(&mut costs) {
        writeln!(out, "{key} = \"{span}\"")?;
    }
    writeln!(out, "noise = {:?}\nbatch = {}\nshared = {}", costs.noise, costs.batch, costs.shared)
}

fn write_algorithm(out: &mut String, named: &NamedAlgorithm, annotated: bool) -> fmt::Result {
    let (label, config) = (&named.label, &named.config);
    let info = config.info();
    writeln!(out, "\n[algorithm.{label}]\nname = \"{}\"", info.name)?;
    writeln!(out, "profile = \"{}\"", config.profile())?;
    for Parameter { name, value, origin } in config.parameters() {
        let kind = info.parameters.iter().find(|p| p.name == *name).map(|p| p.kind);
        match (kind, value.parse::<f64>()) {
            (Some(ParamKind::Number), Ok(number)) => write!(out, "{name} = {number:?}")?,
            (Some(ParamKind::Count | ParamKind::Flag), _) => write!(out, "{name} = {value}")?,
            _ => write!(out, "{name} = \"{value}\"")?,
        }
        match origin {
            Origin::Derived(rule) if annotated => {
                writeln!(out, " # derived: {} ({})", rule.rule, rule.source)?;
            }
            _ => writeln!(out)?,
        }
    }
    Ok(())
}

fn write_workload(out: &mut String, workload: &Workload, setup: &Setup) -> fmt::Result {
    if workload.repeat == Repeat::Again {
        return Ok(());
    }
    writeln!(out, "\n[[workload]]")?;
    if let Some(named) = &workload.named {
        writeln!(out, "name = \"{}\"", named.name)?;
        if let Some(deadline) = named.deadline {
            writeln!(out, "deadline = \"{deadline}\"")?;
        }
    }
    match &workload.demand {
        Demand::Closed(loops) => write_closed(out, loops)?,
        Demand::Poisson(poisson) => write_poisson(out, poisson)?,
        Demand::Rounds(rounds) => {
            writeln!(out, "kind = \"partition-aggregate\"\nmaster = {}", rounds.master)?;
            writeln!(out, "workers = {:?}\nrequest = \"{}\"", rounds.workers, rounds.request)?;
            writeln!(out, "answer = \"{}\"", rounds.answer)?;
        }
        Demand::Trace(trace) => {
            let rows = crate::import::csv::render(trace.messages.iter());
            writeln!(out, "kind = \"trace\"\nflows = \"\"\"\n{rows}\"\"\"")?;
            if let Some(flows) = trace.flows_per_pair {
                writeln!(out, "flows_per_pair = {flows}")?;
            }
        }
    }
    if !matches!(workload.demand, Demand::Rounds(_)) {
        writeln!(out, "op = \"{}\"", workload.op)?;
    }
    if !matches!(workload.demand, Demand::Trace(_)) {
        writeln!(out, "start = \"{}\"", workload.start)?;
        if let Repeat::First(Some(every)) = workload.repeat {
            writeln!(out, "every = \"{every}\"")?;
        }
        if let Some(stop) = workload.stop {
            writeln!(out, "stop = \"{stop}\"")?;
        }
    }
    writeln!(out, "algorithm = \"{}\"", setup.algorithms[workload.algorithm].label)?;
    if let Some(class) = setup.topology.classes.get(usize::from(workload.class)) {
        writeln!(out, "class = \"{}\"", class.name)?;
    }
    if let Some(service) = workload.service {
        service.write(out)?;
    }
    if let Demand::Closed(ClosedLoops { pattern: Pattern::Flows(flows), .. }) = &workload.demand {
        for flow in flows {
            writeln!(out, "\n[[workload.flow]]\nfrom = {}\nto = {}", flow.from, flow.to)?;
            writeln!(out, "start = \"{}\"", flow.start)?;
            if let Some(stop) = flow.stop {
                writeln!(out, "stop = \"{stop}\"")?;
            }
            if let Some(reroute) = &flow.reroute {
                reroute.write(out)?;
            }
        }
    }
    Ok(())
}

fn write_closed(out: &mut String, loops: &ClosedLoops) -> fmt::Result {
    match &loops.pattern {
        Pattern::Incast { senders, receivers } => {
            writeln!(out, "kind = \"incast\"\nsenders = {senders:?}\nreceiver = {receivers:?}")?;
        }
        Pattern::Permutation { hosts } => {
            writeln!(out, "kind = \"permutation\"\nhosts = {hosts:?}")?;
        }
        Pattern::AllToAll { hosts } => writeln!(out, "kind = \"all-to-all\"\nhosts = {hosts:?}")?,
        Pattern::Flows(_) => writeln!(out, "kind = \"flows\"")?,
    }
    writeln!(out, "flows_per_pair = {}\nsize = \"{}\"", loops.flows_per_pair, loops.size)?;
    writeln!(out, "outstanding = {}", loops.outstanding)?;
    writeln!(out, "start_spread = \"{}\"", loops.start_spread)
}

fn write_poisson(out: &mut String, poisson: &Poisson) -> fmt::Result {
    writeln!(out, "kind = \"poisson\"\nload = {:?}", poisson.load)?;
    match &poisson.sizes {
        OpSizes::Fixed(size) => writeln!(out, "size = \"{size}\"")?,
        OpSizes::Drawn(_, Some(name)) => writeln!(out, "sizes = \"{name}\"")?,
        OpSizes::Drawn(sizes, None) => {
            let text = sizes.to_text();
            writeln!(out, "sizes = {{ points = \"\"\"\n{text}\"\"\" }}")?;
        }
    }
    match &poisson.pairs {
        Pairs::Random(hosts) => writeln!(out, "hosts = {hosts:?}")?,
        Pairs::OtherRacks(hosts, _) => writeln!(out, "hosts = {hosts:?}\nto = \"other-racks\"")?,
        Pairs::To { senders, receiver } => {
            writeln!(out, "senders = {senders:?}\nreceiver = {receiver}")?;
        }
    }
    match poisson.flows_per_pair {
        Some(flows) => writeln!(out, "flows = \"per-pair\"\nflows_per_pair = {flows}"),
        None => writeln!(out, "flows = \"per-op\""),
    }
}
