//! `[routing]`: the path policy of flows, and how their transport bears packets that overtake each other.

use std::rc::Rc;
use std::sync::Arc;

use apus_algorithms::{AlgorithmConfig, BuiltInPath, balancers};
use apus_cc::{AlgorithmFactory, NetworkInfo};
use apus_fabric::Rehash;
use apus_sim::plan::{AckPath, EvForm, Rerouting, Spreading};
use apus_transport::{
    DEFAULT_RANGE, EndpointConfig, LossRule, MAX_RANGE, MIN_RANGE, Recovery, SpreadConfig,
};
use apus_units::Span;

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
const LOSS: [(&str, Loss); 4] = [
    ("time", Loss::Time),
    ("count", Loss::Count),
    ("ev-order", Loss::EvOrder),
    ("timeout", Loss::Timeout),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Time,
    Count,
    EvOrder,
    Timeout,
}

/// The path policy of a scenario or a workload.
pub(super) const BALANCER: Key = key(
    "balancer",
    Kind::Text,
    "Path policy: a name, and parameters as `key=value` after it, like \"reps\" or \"reps profile=uet freeze=200us\"; \"ecmp\", one path per flow, if not given",
);

/// Keys of `routing`.
pub(super) static ROUTING: Keys = Keys::of(&[
    BALANCER,
    key("ev", Kind::Word(&words_of(&FORMS)), "Meaning of entropy values: \"hashed\" with the flow, so that several may lead to the same path, or \"indexed\": the value modulo the number of paths").or(FORMS[0].0),
    key("ack_path", Kind::Word(&words_of(&ACK_PATHS)), "Path of acknowledgements: \"symmetric\", the reverse of the data packet's, or \"own\", by a hash of their number").or(ACK_PATHS[0].0),
    key("loss", Kind::Word(&words_of(&LOSS)), "What declares a packet lost before its timeout: an acknowledged packet that was sent `loss_delay` later (\"time\"), `transport.reorder_threshold` packets later (\"count\"), or later with the same entropy value (\"ev-order\"); or nothing (\"timeout\")").or(LOSS[0].0),
    key("loss_delay", Kind::Time, "With `loss = \"time\"`: that time; the unloaded RTT of the longest path if not given").within(1, MAX_DELAY.as_ps()),
    key("range", Kind::Count, "Packet numbers from the oldest packet in flight to the newest, a power of two; the sender stops at the edge").within(MIN_RANGE as u64, MAX_RANGE as u64).or("1024"),
    key("reroute_local", Kind::Time, "Time after which the switches at both ends of a link that is down stop using it, and after which they use it again; never if not given"),
    key("reroute_global", Kind::Time, "Time after which all switches avoid paths through a link that is down, and after which they use these again; never if not given"),
    key("rehash", Kind::Word(&words_of(&REHASH)), "Flows of a group of ports that has lost a member: \"resilient\", only those of that member move; \"modulo\", the hash modulo the number of members moves most").or(REHASH[0].0),
]);

/// What becomes of the flows of a group of ports that has lost a member.
const REHASH: [(&str, Rehash); 2] = [("resilient", Rehash::Resilient), ("modulo", Rehash::Modulo)];

/// The settings of `[routing]`.
pub(super) struct Routing {
    pub(super) rerouting: Rerouting,
    balancer: Option<String>,
    form: EvForm,
    ack_path: AckPath,
    transport: SpreadConfig,
    recovery: Recovery,
    network: Option<NetworkInfo>,
    /// The values of the table, as recorded.
    effective: Option<Rc<Effective>>,
}

impl Routing {
    /// Reads `[routing]`, which has an effect only if the scenario or a workload has a `balancer`.
    pub(super) fn read(
        root: &Section<'_>,
        endpoint: &EndpointConfig,
        network: Option<NetworkInfo>,
    ) -> Option<Self> {
        let mut routing = Self {
            rerouting: Rerouting::default(),
            balancer: None,
            form: EvForm::Hashed,
            ack_path: AckPath::Symmetric,
            transport: SpreadConfig { loss: LossRule::Time(Span::ZERO), range: DEFAULT_RANGE },
            recovery: endpoint.recovery,
            network,
            effective: None,
        };
        let mut rule = Loss::Time;
        let mut delay = None;
        if root.node("routing").is_some() {
            let section = root.section("routing")?;
            routing.effective = Some(Rc::clone(section.effective()));
            routing.balancer = section.get("balancer");
            routing.form = section.meaning("ev", &FORMS)?;
            routing.ack_path = section.meaning("ack_path", &ACK_PATHS)?;
            rule = section.meaning("loss", &LOSS)?;
            if rule == Loss::Time {
                delay = section.get("loss_delay");
            } else {
                section.no_effect("loss_delay", "unless `loss` is \"time\"");
            }
            let range: u32 = section.get_or_default("range");
            let must = format_args!("is {range}; it must be a power of two, like 1024");
            section.check(range.is_power_of_two(), "range", must);
            routing.transport.range = range;
            let (local, global) = (section.get("reroute_local"), section.get("reroute_global"));
            let mut rehash = Rehash::default();
            if local.or(global).is_some() {
                rehash = section.meaning("rehash", &REHASH)?;
            } else {
                section.no_effect("rehash", "without `reroute_local` or `reroute_global`");
            }
            routing.rerouting = Rerouting { local, global, rehash };
            section.finish();
        }
        routing.transport.loss = match rule {
            Loss::Count => LossRule::Count(endpoint.reorder_threshold),
            Loss::EvOrder => LossRule::EvOrder,
            Loss::Timeout => LossRule::Timeout,
            Loss::Time => LossRule::Time(match delay {
                Some(delay) => delay,
                None => network.map_or(Span::ZERO, |network| network.base_rtt),
            }),
        };
        Some(routing)
    }

    /// Reads the policy of a workload with this algorithm; the outer `None` means that an error was
    /// reported.
    pub(super) fn spread(
        &self,
        section: &Section<'_>,
        algorithm: &AlgorithmConfig,
    ) -> Option<Option<Arc<Spreading<BuiltInPath>>>> {
        let own: Option<String> = section.get("balancer");
        let Some(text) = own.or_else(|| self.balancer.clone()) else { return Some(None) };
        let problem = |message: String| {
            section.problem("balancer", message);
            None
        };
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let mut profile = None;
        let mut settings = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some(("profile", value)) => profile = Some(value),
                Some(setting) => settings.push(setting),
                None => {
                    return problem(format!(
                        "has \"{word}\" behind the name; write a parameter as `key=value`"
                    ));
                }
            }
        }
        let built = balancers::build(name, profile, &settings, self.network.as_ref(), &[]);
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
        if algorithm.profile() == "falcon" && algorithm.info().name == "swift" {
            return problem(format!(
                "is \"{name}\", but the profile `falcon` of `swift` changes the path itself; use the profile `paper`"
            ));
        }
        Some(Some(Arc::new(Spreading {
            policy: config.policy().clone(),
            transport: self.transport,
            form: self.form,
            ack_path: self.ack_path,
        })))
    }

    /// Notes settings of `[routing]` that no fault uses, in a run that ends at `end` with its drain.
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

    /// Notes settings of `[routing]` that no workload uses.
    pub(super) fn check(&self, root: &Section<'_>, problems: &Problems, is_used: bool) {
        let Some(section) = view(root, problems).filter(|_| !is_used) else { return };
        let message = "has no effect: every flow keeps one path; set `balancer` to another policy than \"ecmp\"";
        for name in ["ev", "ack_path", "loss", "loss_delay", "range"] {
            if section.node(name).is_some() {
                section.problem(name, message);
            }
            if let Some(effective) = &self.effective {
                effective.remove(name);
            }
        }
    }
}

/// Returns `[routing]` for checks. Its values have been recorded, and stay.
fn view<'a>(root: &Section<'a>, problems: &'a Problems) -> Option<Section<'a>> {
    match root.node("routing") {
        Some(Node { value: Value::Table(table), .. }) => {
            Some(Section::new(table, &ROUTING, "routing", root.place(), problems))
        }
        _ => None,
    }
}
