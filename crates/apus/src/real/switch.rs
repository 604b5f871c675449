//! `apus switch`: a user-space bottleneck that takes part in an algorithm.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use apus_udp::switch::{Cause, Config, Direction, PortCounters, Punctuality, Report, Switch};
use apus_units::{Bytes, Rate, Span};
use clap::Args;
use serde_json::{Map, Value, json};

use super::{PORT, address, any, duration, failure, pairs};
use crate::failure::Failure;
use crate::interrupt::{self, Silence};
use crate::output::{print, to_json};

/// Time between two checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(100);

/// Forward datagrams between clients and an `apus serve`, as a switch with the switch half of an algorithm.
///
/// Clients (`apus ping`, `apus perf`) use the address of the switch instead of that of the server. Each direction is a port with
/// a rate, a tail-drop buffer and a link delay. Ctrl-C prints the totals and ends the command.
#[derive(Args)]
pub struct SwitchCommand {
    /// Server, as HOST or HOST:PORT.
    peer: String,
    /// Address for the clients [default: all addresses, at the port of `apus serve`].
    #[arg(long)]
    bind: Option<SocketAddr>,
    /// Rate of each port, Ethernet headers, preamble and gap included.
    #[arg(long)]
    rate: Rate,
    /// Size of the buffer of each port.
    #[arg(long, value_name = "SIZE", default_value = "256KiB")]
    buffer: Bytes,
    /// Propagation delay of the link behind each port.
    #[arg(long, default_value = "0s")]
    delay: Span,
    /// Algorithm whose switch half the ports run; without it, they only forward.
    #[arg(long)]
    algorithm: Option<String>,
    /// Set the parameter NAME of the algorithm to VALUE. May be given several times.
    #[arg(long, value_name = "NAME=VALUE", requires = "algorithm")]
    param: Vec<String>,
    /// Queue size above which a port marks packets (ECN), for algorithms that need marks.
    #[arg(long, value_name = "SIZE")]
    ecn_threshold: Option<Bytes>,
    /// Maximum length of the IP packets of the hosts, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 9000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    mtu: u32,
    /// Also print the counters of each interval of this length.
    #[arg(long, value_parser = duration)]
    interval: Option<Duration>,
    /// Print the counters as JSON.
    #[arg(long)]
    json: bool,
}

impl SwitchCommand {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let mut switch = Switch::open(&self.config()?).map_err(failure)?;
        self.begin(&switch)?;
        let watch = interrupt::watch(Silence(None))?;
        let mut total = Report::default();
        // Counts from before the time at which packets could be forwarded are discarded.
        switch.report();
        let mut reported = Instant::now();
        while !interrupt::interrupted(&watch) {
            let left = self.interval.map(|interval| interval.saturating_sub(reported.elapsed()));
            if left == Some(Duration::ZERO) {
                reported = Instant::now();
                let report = switch.report();
                total.add(&report);
                self.say(&report, "interval")?;
                continue;
            }
            let failed = |error| Failure::Run(format!("the sockets cannot be waited for: {error}"));
            switch.forward(left.map_or(SLICE, |left| left.min(SLICE))).map_err(failed)?;
        }
        total.add(&switch.report());
        self.say(&total, "total")?;
        if total.was_too_slow() {
            eprintln!("{}", self.too_slow(&total));
        }
        Ok(())
    }

    fn config(&self) -> Result<Config, Failure> {
        let server = address(&self.peer)?;
        let bind = self.bind.unwrap_or_else(|| SocketAddr::new(any(&[server]).ip(), PORT));
        let mut config = Config::new(bind, server, self.rate);
        (config.buffer, config.delay) = (self.buffer, self.delay);
        (config.ecn_threshold, config.max_mtu) = (self.ecn_threshold, self.mtu);
        if let Some(name) = &self.algorithm {
            let built = crate::registry().build(name, None, &pairs(&self.param)?);
            config.algorithm = Some(built.map_err(|error| Failure::Input(error.to_string()))?);
        }
        Ok(config)
    }

    fn begin(&self, switch: &Switch) -> Result<(), Failure> {
        let algorithm = self.algorithm.as_deref().unwrap_or("no algorithm");
        let (rate, buffer, delay) = (self.rate, self.buffer, self.delay);
        let line = format!(
            "listening on {} for {}: {rate}, buffer {buffer}, delay {delay}, {algorithm}\n",
            switch.local_addr(),
            self.peer
        );
        if self.json {
            eprint!("{line}");
        } else {
            print(&line)?;
        }
        if let Some(announced) = switch.announced_rate().filter(|announced| *announced != rate) {
            eprintln!(
                "signals and telemetry of {algorithm} state a link rate of {announced}, since packets cannot express \
                 {rate}; use 1, 10, 25, 40, 50, 100, 200, 400, 800 or 1600 Gbps"
            );
        }
        Ok(())
    }

    fn say(&self, report: &Report, period: &str) -> Result<(), Failure> {
        if self.json {
            return print(&(to_json(&json_of(report, period))? + "\n"));
        }
        let Punctuality { busy, lateness, max_lateness, .. } = report.punctuality;
        let sent: u64 = report.ports.iter().map(|port| port.sent).sum();
        print(&format!(
            "{period} {:.3} s, {} clients\n{}{}forwarder: busy {:.1} % of the time; departures late by {:.1} us on \
             average, {:.1} us at most, {:.2} % by more than {}\n",
            report.time.as_secs_f64(),
            report.clients,
            text(report, Direction::ToServer),
            text(report, Direction::ToClients),
            100.0 * busy.as_secs_f64() / report.time.as_secs_f64().max(1e-9),
            lateness.as_us_f64() / sent.max(1) as f64,
            max_lateness.as_us_f64(),
            100.0 * report.late_share(),
            Punctuality::LATE
        ))
    }

    fn too_slow(&self, total: &Report) -> String {
        let lost: u64 = total.ports.iter().map(|port| port.dropped(Cause::NotReceived)).sum();
        format!(
            "the machine was too slow for two ports of {}: {lost} datagrams were lost before they were received, and \
             {:.2} % left more than {} late; the results depend on that. Use a lower rate, longer packets or more cores",
            self.rate,
            100.0 * total.late_share(),
            Punctuality::LATE
        )
    }
}

/// Returns the lines of a port, for people.
fn text(report: &Report, direction: Direction) -> String {
    let port = report.port(direction);
    let PortCounters { received, sent, sent_bytes, marked, written, signals, max_queue, .. } =
        *port;
    let name = match direction {
        Direction::ToServer => "to the server",
        Direction::ToClients => "to the clients",
    };
    let seconds = report.time.as_secs_f64().max(1e-9);
    let mut text = format!(
        "{name}: {received} packets in, {sent} out ({sent_bytes} B, {:.3} Gb/s)\n  queue: mean {:.1} kB, max {:.1} \
         kB; marks: {marked}; fields written: {written}; signals: {signals}\n",
        sent_bytes as f64 * 8e-9 / seconds,
        port.mean_queue(report.time) / 1e3,
        max_queue.get() as f64 / 1e3,
    );
    let dropped = Cause::ALL.map(|cause| (cause, port.dropped(cause)));
    let drops: Vec<String> = dropped
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    if !drops.is_empty() {
        let _ = writeln!(text, "  drops: {}", drops.join(", "));
    }
    text
}

fn json_of(report: &Report, period: &str) -> Value {
    let port = |direction| {
        let port = report.port(direction);
        let drops = Cause::ALL.map(|cause| (cause.name().to_owned(), port.dropped(cause).into()));
        json!({
            "received": port.received,
            "sent": port.sent,
            "sent_bytes": port.sent_bytes,
            "drops": drops.into_iter().collect::<Map<_, _>>(),
            "marks": port.marked,
            "fields_written": port.written,
            "signals": port.signals,
            "mean_queue_bytes": port.mean_queue(report.time),
            "max_queue_bytes": port.max_queue.get(),
        })
    };
    let sent: u64 = report.ports.iter().map(|port| port.sent).sum();
    json!({
        "period": period,
        "seconds": report.time.as_secs_f64(),
        "clients": report.clients,
        "to_server": port(Direction::ToServer),
        "to_clients": port(Direction::ToClients),
        "busy": report.punctuality.busy.as_secs_f64() / report.time.as_secs_f64().max(1e-9),
        "mean_lateness_us": report.punctuality.lateness.as_us_f64() / sent.max(1) as f64,
        "max_lateness_us": report.punctuality.max_lateness.as_us_f64(),
        "late_share": report.late_share(),
        "too_slow": report.was_too_slow(),
    })
}
