//! `[routing]`: the path policy of flows, and the treatment of reordered packets by their transport.

use std::rc::Rc;
use std::sync::Arc;

use apus_algorithms::{AlgorithmConfig, BuiltInPath, Registry, balancers};
use apus_cc::{AlgorithmFactory, NetworkInfo};
use apus_fabric::Rehash;
use apus_sim::plan::{AckPath, EvForm, Rerouting, Spreading};
use apus_transport::{
    DEFAULT_RANGE, EndpointConfig, LossRule, MAX_RANGE, MIN_RANGE, Recovery, Sleek, SpreadConfig,
};
use apus_units::{Bytes, Span};

use super::algorithm::changes_paths;
use super::declared::{Key, Keys, Kind, key, words_of};
use super::effective::Effective;
use super::fault::FaultSpec;
use super::section::{MAX_DELAY, Section};
use super::source::Problems;
use super::tree::{Node, Value};

/// Meanings of entropy values.
const FORMS: [(&str, EvForm); 2] = [("hashed", EvForm::Hashed), ("indexed", EvForm::Indexed)];
/// Paths of acknowledgements.
const ACK_PATHS: [(&str, AckPath); 2] = [("symmetric", AckPath::Symmetric), ("own", AckPath::Own)];
/// Kinds of loss detection.
const LOSS: [(&str, Loss); 5] = [
    ("time", Loss::Time),
    ("count", Loss::Count),
    ("ev-order", Loss::EvOrder),
    ("timeout", Loss::Timeout),
    ("sleek", Loss::Sleek),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Time,
    Count,
    EvOrder,
    Timeout,
    Sleek,
}

/// Largest `ack_bytes`: far above the bytes of one path's window between two acknowledgements.
const MAX_ACK_BYTES: u64 = 1 << 24;

/// Largest window over the bandwidth-delay product (uet-htsim 40ccb05).
const SLEEK_WINDOW: f64 = 1.5;

/// Algorithms of Ultra Ethernet, whose losses are detected by the rules of Ultra Ethernet.
const UET: [&str; 1] = ["nscc"];

/// The path policy of a scenario or a workload.
pub(super) const BALANCER: Key = key(
    "balancer",
    Kind::Text,
    "Path policy: a name, optionally followed by parameters as `key=value`, such as \"reps\" or \"reps profile=uet freeze=200us\". A workload uses its own policy, else that of its class, else that of `routing`, else \"ecmp\" (one path per flow)",
);

/// Keys of `routing`.
pub(super) static ROUTING: Keys = Keys::of(&[
    BALANCER,
    key("ev", Kind::Word(&words_of(&FORMS)), "Meaning of entropy values. \"hashed\": a hash of the value and the flow selects the path, so that several values may select the same path. \"indexed\": the number of the path is the value modulo the number of paths").or(FORMS[0].0),
    key("ack_path", Kind::Word(&words_of(&ACK_PATHS)), "Path of acknowledgements. \"symmetric\": the reverse of the path of the data packet. \"own\": a path by a hash of the number of the acknowledgement").or(ACK_PATHS[0].0),
    key("loss", Kind::Word(&words_of(&LOSS)), "What declares a packet lost before its timeout. \"time\": the acknowledgement of a packet sent `loss_delay` later. \"count\": the acknowledgement of a packet sent `transport.reorder_threshold` packets later. \"ev-order\": the acknowledgement of a later packet with the same entropy value. \"timeout\": nothing. \"sleek\": many packets out of order, or the answer to a probe after a silence. With \"ev-order\", \"timeout\" and \"sleek\", each packet has its own timeout. Default: \"timeout\" if switches trim; otherwise \"sleek\" for `nscc` and \"time\" for other algorithms"),
    key("loss_delay", Kind::Time, "With `loss = \"time\"`: minimum time from the departure of the lost packet to that of the acknowledged packet. Default: the unloaded RTT of the longest path").within(1, MAX_DELAY.as_ps()),
    key("range", Kind::Count, "Maximum number of packet numbers from the oldest packet in flight to the newest one; must be a power of two. The sender stops at this limit").within(MIN_RANGE as u64, MAX_RANGE as u64).or("1024"),
    key("reroute_local", Kind::Time, "Time after the failure of a link at which the switches at both ends stop using the link, and time after its repair at which they use it again. Default: never"),
    key("reroute_global", Kind::Time, "Time after the failure of a link at which all switches avoid paths through the link, and time after its repair at which they use these paths again. Default: never"),
    key("rehash", Kind::Word(&words_of(&REHASH)), "Treatment of the flows of a group of ports that has lost a member. \"resilient\": only the flows of the lost member move. \"modulo\": the hash is taken modulo the new number of members, so that most flows move").or(REHASH[0].0),
    key("ack_bytes", Kind::Size, "Number of payload bytes after which the receiver acknowledges. The receiver acknowledges some packets at once: the first packet, marked packets, repeated packets, and packets after which the sender waits for an acknowledgement. 0: each packet is acknowledged").at_most(MAX_ACK_BYTES).or("0B"),
]);

/// Treatment of the flows of a group of ports that has lost a member.
const REHASH: [(&str, Rehash); 2] = [("resilient", Rehash::Resilient), ("modulo", Rehash::Modulo)];

/// The settings of `[routing]`.
pub(super) struct Routing {
    pub(super) rerouting: Rerouting,
    balancer: Option<String>,
    form: EvForm,
    ack_path: AckPath,
    /// The loss detection, if it is set.
    loss: Option<Loss>,
    loss_delay: Option<Span>,
    reorder_threshold: u64,
    range: u32,
    ack_bytes: u32,
    recovery: Recovery,
    network: Option<NetworkInfo>,
    /// The values of the table, as recorded.
    effective: Option<Rc<Effective>>,
    registry: Registry,
}

impl Routing {
    /// Reads `[routing]`, which has an effect only if the scenario or a workload has a `balancer`.
    pub(super) fn read(
        root: &Section<'_>,
        endpoint: &EndpointConfig,
        network: Option<NetworkInfo>,
        registry: Registry,
    ) -> Option<Self> {
        let mut routing = Self {
            rerouting: Rerouting::default(),
            balancer: None,
            form: EvForm::Hashed,
            ack_path: AckPath::Symmetric,
            loss: None,
            loss_delay: None,
            reorder_threshold: endpoint.reorder_threshold,
            range: DEFAULT_RANGE,
            ack_bytes: 0,
            recovery: endpoint.recovery,
            network,
            effective: None,
            registry,
        };
        if root.node("routing").is_some() {
            let section = root.section("routing")?;
            routing.effective = Some(Rc::clone(section.effective()));
            routing.balancer = section.get("balancer");
            routing.form = section.meaning("ev", &FORMS)?;
            routing.ack_path = section.meaning("ack_path", &ACK_PATHS)?;
            if section.node("loss").is_some() {
                routing.loss = Some(section.meaning("loss", &LOSS)?);
            }
            if routing.loss == Some(Loss::Time) {
                routing.loss_delay = section.get("loss_delay");
            } else {
                section.no_effect("loss_delay", "unless `loss` is \"time\"");
            }
            let range: u32 = section.get_or_default("range");
            let must = format_args!("is {range}; it must be a power of two, like 1024");
            section.check(range.is_power_of_two(), "range", must);
            let (local, global) = (section.get("reroute_local"), section.get("reroute_global"));
            let mut rehash = Rehash::default();
            if local.or(global).is_some() {
                rehash = section.meaning("rehash", &REHASH)?;
            } else {
                section.no_effect("rehash", "without `reroute_local` or `reroute_global`");
            }
            routing.rerouting = Rerouting { local, global, rehash };
            routing.range = range;
            // At most MAX_ACK_BYTES.
            routing.ack_bytes = section.get_or_default::<Bytes>("ack_bytes").get() as u32;
            section.finish();
        }
        Some(routing)
    }

    /// Returns the settings of the transport of flows with this algorithm.
    fn transport(&self, algorithm: &str) -> SpreadConfig {
        let trims = self.network.is_some_and(|network| network.trims);
        let loss = self.loss.unwrap_or(match (trims, UET.contains(&algorithm)) {
            // Switches report the packets that they trim.
            (true, _) => Loss::Timeout,
            (false, true) => Loss::Sleek,
            (false, false) => Loss::Time,
        });
        let base_rtt = self.network.map_or(Span::ZERO, |network| network.base_rtt);
        let loss = match loss {
            Loss::Count => LossRule::Count(self.reorder_threshold),
            Loss::EvOrder => LossRule::EvOrder,
            Loss::Timeout => LossRule::Timeout,
            Loss::Time => LossRule::Time(self.loss_delay.unwrap_or(base_rtt)),
            Loss::Sleek => LossRule::Sleek(Sleek {
                base_rtt,
                // uet-htsim 40ccb05: the target of NSCC without trimming.
                target: base_rtt,
                most: self.network.map_or(u32::MAX, |network| {
                    (network.bdp_packets() * SLEEK_WINDOW) as u32 // saturates
                }),
            }),
        };
        SpreadConfig { loss, range: self.range, ack_bytes: self.ack_bytes }
    }

    /// Reads the policy of a workload with this algorithm; the outer `None` means that an error was
    /// reported.
    pub(super) fn spread(
        &self,
        section: &Section<'_>,
        algorithm: &AlgorithmConfig,
        of_class: Option<&str>,
    ) -> Option<Option<Arc<Spreading<BuiltInPath>>>> {
        let own: Option<String> = section.get("balancer");
        let text = own.or_else(|| of_class.map(str::to_owned)).or_else(|| self.balancer.clone());
        let Some(text) = text else { return Some(None) };
        let problem = |message: String| {
            section.problem("balancer", message);
            None
        };
        let words = match balancers::parse(&text) {
            Ok(words) => words,
            Err(message) => return problem(message),
        };
        let balancers::Words { name, profile, settings } = words;
        let foreign = self.registry.foreign_balancers();
        let built = balancers::build(name, profile, &settings, self.network.as_ref(), foreign);
        let config = match built {
            Ok(config) => config,
            Err(error) => return problem(format!("cannot be \"{text}\": {error}")),
        };
        if let BuiltInPath::Ecmp(ecmp) = config.policy()
            && !ecmp.relabels()
        {
            return Some(None);
        }
        if self.recovery == Recovery::GoBackN {
            return problem(format!(
                "is \"{name}\", but go-back-N needs packets in order; set `transport.recovery = \"selective\"`"
            ));
        }
        if algorithm.credit_limit().is_some() {
            return problem(format!(
                "is \"{name}\", but `{}` needs credits and data on one path; use \"ecmp\"",
                algorithm.info().name
            ));
        }
        if changes_paths(algorithm) {
            return problem(format!(
                "is \"{name}\", but the profile `falcon` of `swift` changes the path itself; use the profile `paper`"
            ));
        }
        Some(Some(Arc::new(Spreading {
            policy: config.policy().clone(),
            transport: self.transport(algorithm.info().name),
            form: self.form,
            ack_path: self.ack_path,
        })))
    }

    /// Reports settings of `[routing]` that no fault uses, in a run that ends at `end` with its drain.
    pub(super) fn check_rerouting(
        &self,
        root: &Section<'_>,
        problems: &Problems,
        faults: &[FaultSpec],
        end: Span,
    ) {
        let Some(section) = view(root, problems) else { return };
        let first = faults.iter().filter(|fault| fault.is_down()).map(|fault| fault.at).min();
        let keys =
            [("reroute_local", self.rerouting.local), ("reroute_global", self.rerouting.global)];
        for (key, delay) in keys {
            let Some(delay) = delay else { continue };
            let Some(first) = first else {
                section
                    .problem(key, "has no effect: no `[[fault]]` has `kind = \"down\"`; remove it");
                continue;
            };
            let message = format_args!(
                "is {delay}, which has no effect: the first fault is at {first}, and the run ends at {end} at \
                 the latest, with its drain"
            );
            section.check(first.saturating_add(delay) < end, key, message);
        }
    }

    /// Reports settings of `[routing]` that no workload uses.
    pub(super) fn check(&self, root: &Section<'_>, problems: &Problems, is_used: bool) {
        let Some(section) = view(root, problems).filter(|_| !is_used) else { return };
        let message = "has no effect: every flow keeps one path; set `balancer` to another policy than \"ecmp\"";
        for name in ["ev", "ack_path", "loss", "loss_delay", "range", "ack_bytes"] {
            if section.node(name).is_some() {
                section.problem(name, message);
            }
            if let Some(effective) = &self.effective {
                effective.remove(name);
            }
        }
    }
}

/// Returns `[routing]` for checks. Its values have already been recorded.
fn view<'a>(root: &Section<'a>, problems: &'a Problems) -> Option<Section<'a>> {
    match root.node("routing") {
        Some(Node { value: Value::Table(table), .. }) => {
            Some(Section::new(table, &ROUTING, "routing", root.place(), problems))
        }
        _ => None,
    }
}
