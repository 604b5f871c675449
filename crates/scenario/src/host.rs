//! `[host]` and `[transport]`: the costs of a host, and the settings of the transport.

use apus_jobs::loggops::Parameters;
use apus_transport::{EndpointConfig, LocalRx, Recovery};
use apus_units::{Bytes, Span};

use super::declared::{Amount, Keys, Kind, key, words_of};
use super::links::Memory;
use super::section::{MAX_DELAY, Section, Setting};
use super::tree::Value;
use apus_sim::PacketSizes;
use apus_sim::host_model::{EngineCosts, HostModel, Nic};
use apus_sim::plan::FINE_TIMERS_LOG2_PS;

/// Keys of `host`.
pub(super) static HOST: Keys = Keys::of(&[
    key("model", Kind::Word(HostModel::PRESETS), "The model. The other keys replace settings of the model")
        .or("ideal"),
    key(
        "jitter",
        Kind::Time,
        "Maximum random delay between a timestamp of the stack and the wire, in each direction",
    )
    .at_most(LONGEST),
    key(
        "nic",
        Kind::Word(&words_of(&NIC)),
        "\"pull\": the NIC takes packets from the flows in turn while it holds less than `nic_backlog`. \"queue\": flows pass on all packets that their windows allow, and the port of the NIC takes part in the algorithm like a switch port",
    )
    .or(NIC[0].0),
    key(
        "nic_backlog",
        Kind::Time,
        "Limit on the packets in the NIC, as their time on the wire. Below this limit, the NIC takes more packets",
    )
    .within(1, LONGEST),
    key("clock_offset", Kind::Time, "Maximum offset of the clock of a host or NIC"),
    key("clock_drift", Kind::Drift, "Maximum drift of the clock of a host or NIC, such as \"40ppm\"").at_most(1_000_000),
    key(
        "clock_reading_interval",
        Kind::Time,
        "Time between two comparisons of the clock of a host with that of its NIC",
    )
    .at_least(1),
    key("receive_queue", Kind::SizeOrUnlimited, "Size of the receive queue of the NIC").at_least(1),
    key("engine", Kind::Table(&ENGINE), "Costs of the host engine"),
    key(
        "latency",
        Kind::Time,
        "With the model \"loggops\": L, the minimum time from the departure of the first byte of a message to its arrival. Default: 2500ns, as in LogGOPSim",
    )
    .at_most(LONGEST),
    key(
        "overhead",
        Kind::Time,
        "With the model \"loggops\": o, the time for which a message occupies a stream, at each end. Default: 1500ns, as in LogGOPSim",
    )
    .at_most(LONGEST),
    key(
        "overhead_per_byte",
        Kind::Time,
        "With the model \"loggops\": O, the time for which each byte of a message occupies a stream, at each end. Default: 0ns, as in LogGOPSim",
    )
    .at_most(LONGEST),
    key(
        "gap",
        Kind::Time,
        "With the model \"loggops\": g, the time for which a message occupies a NIC. Default: 1000ns, as in LogGOPSim",
    )
    .at_most(LONGEST),
    key(
        "gap_per_byte",
        Kind::Time,
        "With the model \"loggops\": G, the time for which each byte of a message occupies a NIC. Default: 6ns, as in LogGOPSim",
    )
    .at_most(LONGEST),
    key(
        "eager",
        Kind::Size,
        "With the model \"loggops\": S, the largest message whose send does not wait for the receiver. Default: 65535B, as in LogGOPSim",
    ),
]);

/// Keys of `engine`.
pub(super) static ENGINE: Keys = Keys::of(&[
    key(
        "scale",
        Kind::Number,
        "Factor on the costs of the model. It does not apply to stalls, and to costs that the scenario sets",
    )
    .between(0.1, 10.0),
    key("round", Kind::Time, "One iteration of the loop").within(1, LONGEST),
    key("receive_packet", Kind::Time, "Receiving a data packet").at_most(LONGEST),
    key("receive_op", Kind::Time, "Finishing an op at the receiver").at_most(LONGEST),
    key("receive_ack", Kind::Time, "Receiving an acknowledgement").at_most(LONGEST),
    key("send_ack", Kind::Time, "Sending an acknowledgement").at_most(LONGEST),
    key("send_packet", Kind::Time, "Sending a data packet").at_most(LONGEST),
    key("send_op", Kind::Time, "Starting an op at the sender").at_most(LONGEST),
    key("copy_kib", Kind::Time, "Copying 1 KiB of payload at the receiver").at_most(LONGEST),
    key(
        "stall",
        Kind::Time,
        "Mean length of a stall, in which the thread is descheduled (exponentially distributed)",
    )
    .at_most(LONGEST),
    key("stall_every", Kind::Time, "Mean working time between two stalls (exponentially distributed). 0s: no stalls"),
    key("noise", Kind::Number, "Fraction of every cost that is random (exponentially distributed)").between(0.0, 1.0),
    key(
        "batch",
        Kind::Count,
        "Maximum number of packets that one iteration receives, and that it sends. One acknowledgement must be able to report them",
    )
    .within(1, EngineCosts::MAX_BATCH as u64),
    key("shared", Kind::Flag, "`true`: one thread serves both directions. `false`: each direction has its own thread"),
]);

/// Keys of `transport`.
pub(super) static TRANSPORT: Keys = Keys::of(&[
    key("reorder_threshold", Kind::Count, "A packet is declared lost when a packet sent this many packets later has been acknowledged").within(1, MAX_REORDER_THRESHOLD).or("3"),
    key("recovery", Kind::Word(&words_of(&RECOVERY)), "\"selective\": only lost packets are retransmitted. \"go-back-n\": the receiver drops the packets after a gap, and the sender retransmits everything from the gap onwards").or(RECOVERY[0].0),
    key("max_ops", Kind::Count, "Maximum number of ops of a flow from the oldest outstanding op to the newest op").within(1, 65_536).or("1024"),
    key("timer_granularity", Kind::Time, "Slot of the timing wheel; must be a power of two of picoseconds. Default: 131072ps, or 8192ps with algorithms that depend on short gaps, such as those with credits"),
    key("local_rx_delay", Kind::Word(&words_of(&LOCAL_RX)), "Kind of delay that the time t6 - t5 in the local NIC counts as").or(LOCAL_RX[0].0),
]);

/// Largest value of most times, see [`MAX_DELAY`].
const LONGEST: u64 = MAX_DELAY.as_ps();

/// The words for the way in which data gets into the NIC.
const NIC: [(&str, Nic); 2] = [("pull", Nic::Pull), ("queue", Nic::Queue)];

/// Reads `[host]`.
pub(super) fn read_host(section: Section<'_>) -> Option<HostModel> {
    let name = section.word("model")?;
    let mut model = HostModel::preset(name)?;
    let span = |key, field: &mut Span| *field = section.get_or(key, *field);
    span("jitter", &mut model.jitter);
    // These times are not delays: clocks may differ by hours, and may be read once per hour.
    span("clock_offset", &mut model.clock_offset);
    span("clock_reading_interval", &mut model.clock_reading_interval);
    model.nic = section.meaning("nic", &NIC)?;
    match model.nic {
        Nic::Pull => span("nic_backlog", &mut model.nic_backlog),
        Nic::Queue => {
            let why = "with `nic = \"queue\"`, which takes all it is given";
            section.no_effect("nic_backlog", why);
        }
    }
    let drift = Drift(model.clock_drift_ppb.unsigned_abs());
    // At most 10^6.
    model.clock_drift_ppb = section.get_or("clock_drift", drift).0 as i32;
    if model.engine.is_none() {
        let why = format!(
            "with the model \"{name}\", whose engine costs nothing (models with an engine: t1, t1-quiet)"
        );
        section.no_effect("receive_queue", &why);
        section.no_effect("engine", &why);
    }
    if let Some(costs) = &mut model.engine {
        model.receive_queue = section.get_or("receive_queue", Memory(model.receive_queue)).0;
        read_engine(section.section_or_empty("engine")?, costs);
    }
    match &mut model.loggops {
        Some(parameters) => read_loggops(&section, parameters),
        None => {
            for key in ["latency", "overhead", "overhead_per_byte", "gap", "gap_per_byte", "eager"]
            {
                section.no_effect(key, "without the model \"loggops\"");
            }
        }
    }
    section.finish();
    Some(model)
}

/// Reads the parameters of the LogGOPS model.
fn read_loggops(section: &Section<'_>, parameters: &mut Parameters) {
    for (key, field) in [
        ("latency", &mut parameters.latency),
        ("overhead", &mut parameters.overhead),
        ("overhead_per_byte", &mut parameters.overhead_per_byte),
        ("gap", &mut parameters.gap),
        ("gap_per_byte", &mut parameters.gap_per_byte),
    ] {
        *field = section.get_or(key, *field);
    }
    parameters.eager = section.get_or("eager", Bytes::new(parameters.eager)).get();
}

/// Reads `[host.engine]`. `scale` multiplies the preset's costs of work, not its stalls; an
/// explicit cost is not scaled.
fn read_engine(section: Section<'_>, costs: &mut EngineCosts) {
    if let Some(scale) = section.peek::<f64>("scale") {
        for (key, field) in spans_of(costs) {
            if !["stall", "stall_every"].contains(&key) {
                *field = field.mul_f64(scale);
            }
        }
    }
    for (key, field) in spans_of(costs) {
        *field = section.get_or(key, *field);
    }
    costs.noise = section.get_or("noise", costs.noise);
    costs.batch = section.get_or("batch", costs.batch);
    costs.shared = section.get_or("shared", costs.shared);
    section.finish();
}

/// The times of an engine by name.
fn spans_of(costs: &mut EngineCosts) -> [(&'static str, &mut Span); 10] {
    [
        ("round", &mut costs.round),
        ("receive_packet", &mut costs.receive_packet),
        ("receive_op", &mut costs.receive_op),
        ("receive_ack", &mut costs.receive_ack),
        ("send_ack", &mut costs.send_ack),
        ("send_packet", &mut costs.send_packet),
        ("send_op", &mut costs.send_op),
        ("copy_kib", &mut costs.copy_kib),
        ("stall", &mut costs.stall),
        ("stall_every", &mut costs.stall_every),
    ]
}

/// A frequency error in parts per billion, like "40ppm".
struct Drift(u32);

impl Setting for Drift {
    const KIND: &'static str = "a whole number of ppm or ppb, like \"40ppm\"";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        let Value::Text(text) = value else { return Err(None) };
        let (digits, factor) = match (text.strip_suffix("ppm"), text.strip_suffix("ppb")) {
            (Some(digits), _) => (digits, 1_000),
            (_, Some(digits)) => (digits, 1),
            _ => return Err(None),
        };
        let ppb = digits.trim().parse::<u32>().ok().and_then(|value| value.checked_mul(factor));
        ppb.map(Self).ok_or(None)
    }

    fn value(&self) -> Value {
        Value::Text(format!("{}ppb", self.0))
    }

    fn amount(&self) -> Amount {
        Amount::Whole(self.0.into())
    }
}

/// Largest distance behind the newest packet at which one is declared lost. Rationale: an
/// acknowledgement reports the newest 128 packets.
const MAX_REORDER_THRESHOLD: u64 = 128;

/// Words for the kind of delay that the local NIC receive delay counts as (Swift App. C).
const LOCAL_RX: [(&str, LocalRx); 3] =
    [("endpoint", LocalRx::Endpoint), ("fabric", LocalRx::Fabric), ("ignored", LocalRx::Ignored)];

/// Words for the treatment of packets out of order.
const RECOVERY: [(&str, Recovery); 2] =
    [("selective", Recovery::Selective), ("go-back-n", Recovery::GoBackN)];

/// Reads `[transport]`. `fine_timers` states that an algorithm depends on short gaps.
pub(super) fn read_transport(
    section: Section<'_>,
    sizes: &PacketSizes,
    fine_timers: bool,
) -> Option<EndpointConfig> {
    let mut config = EndpointConfig {
        max_payload: sizes.payload,
        header_bytes: sizes.header,
        reorder_threshold: section.get_or_default("reorder_threshold"),
        recovery: section.meaning("recovery", &RECOVERY)?,
        max_ops: section.get_or_default("max_ops"),
        local_rx_delay: section.meaning("local_rx_delay", &LOCAL_RX)?,
        ..EndpointConfig::default()
    };
    if fine_timers {
        config.timer_granularity_log2_ps = FINE_TIMERS_LOG2_PS;
    }
    let default = Span::from_ps(1 << config.timer_granularity_log2_ps);
    let ps = section.get_or("timer_granularity", default).as_ps();
    config.timer_granularity_log2_ps = ps.max(1).ilog2();
    let holds = ps.is_power_of_two() && (10..=30).contains(&ps.ilog2());
    let must = "must be a power of two of picoseconds from 1024ps to 1073741824ps, \
                like \"131072ps\"";
    section.check(holds, "timer_granularity", must);
    section.finish();
    Some(config)
}
