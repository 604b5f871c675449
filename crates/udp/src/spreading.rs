//! Spreading of a flow's packets over source ports of this host. Switches that hash addresses and ports (ECMP) then
//! give one flow several paths.

use std::str::FromStr;

use apus_algorithms::balancers::{self, BalancerConfig};
use apus_cc::{ForeignBalancer, PathPolicy};
use apus_transport::{DEFAULT_RANGE, LossRule, MAX_RANGE, MIN_RANGE, SpreadConfig};
use apus_units::Span;

use crate::session::{MAX_PORTS, in_range};

/// Default number of source ports. Source: uet-htsim 40ccb05, `-paths`; Ultra Ethernet and MRC: 64 to 256.
pub const DEFAULT_PORTS: u16 = 64;

/// Default of [`LossDetection::Time`]. deviation: no source; half of the shortest timeout here, so that packets on a
/// path that is cut or no longer used are declared lost before their timeout. If the queues of two paths differ by more
/// than this time, packets are sent twice.
const LOSS_DELAY: Span = Span::from_ms(5);

/// Path of the acknowledgements of packets that came from several ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckPath {
    /// From the port at which the packet arrived, to the port from which it came. NATs and firewalls let such acknowledgements
    /// pass as answers.
    #[default]
    Symmetric,
    /// From the port of this host with the number of the packet's port, if there is one and the peer has confirmed it, to the
    /// peer's first port.
    Own,
}

impl AckPath {
    /// Names of the paths in settings.
    pub const WORDS: [(&'static str, Self); 2] =
        [("symmetric", Self::Symmetric), ("own", Self::Own)];
}

impl FromStr for AckPath {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::WORDS.iter().find(|(name, _)| *name == word);
        found.map(|&(_, path)| path).ok_or_else(|| format!("it is {word}; choose symmetric or own"))
    }
}

/// Rule that declares a packet lost before its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// A packet is lost once a later packet by the same port is acknowledged: a path keeps the order of packets. Packets on a
    /// path that is cut are never acknowledged, so only timeouts detect their losses.
    EvOrder,
    /// A packet is lost once a packet that was sent this much later is acknowledged.
    Time(Span),
    /// No packet is declared lost early. Each packet has its own timeout.
    Timeout,
}

impl Default for LossDetection {
    fn default() -> Self {
        Self::Time(LOSS_DELAY)
    }
}

impl LossDetection {
    /// Parses "ev-order", "timeout" or "time". `delay` is the time of "time", 5 ms by default.
    ///
    /// # Errors
    /// If the word is another one, or `delay` has no effect.
    pub fn parse(word: &str, delay: Option<Span>) -> Result<Self, String> {
        let rule = match word {
            "ev-order" => Self::EvOrder,
            "timeout" => Self::Timeout,
            "time" => return Ok(Self::Time(delay.unwrap_or(LOSS_DELAY))),
            "sleek" => {
                return Err("loss is sleek, which needs the RTT of the path without queues, and that is not known between \
                            processes; choose ev-order, time or timeout"
                    .to_owned());
            }
            "count" => {
                return Err("loss is count: a number of packets says nothing where they overtake each other by the difference of \
                            two paths' queues; choose ev-order, time or timeout"
                    .to_owned());
            }
            other => return Err(format!("loss is {other}; choose ev-order, time or timeout")),
        };
        match delay {
            Some(_) => Err(format!(
                "loss_delay has no effect with loss {word}; remove it, or set loss to time"
            )),
            None => Ok(rule),
        }
    }

    fn rule(self) -> LossRule {
        match self {
            Self::EvOrder => LossRule::EvOrder,
            Self::Time(delay) => LossRule::Time(delay),
            Self::Timeout => LossRule::Timeout,
        }
    }
}

/// Settings of source ports as texts. Settings that are `None` have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpreadSettings {
    /// Path policy: a name, followed by parameters as `key=value`. With `None`, each connection uses one source port.
    pub balancer: Option<String>,
    /// Number of source ports of an engine; [`DEFAULT_PORTS`] by default.
    pub ports: Option<u16>,
    /// Second source port; see [`Spreading::next_port`].
    pub source_port: Option<u16>,
    /// Rule that declares a packet lost: "time", "ev-order" or "timeout".
    pub loss: Option<String>,
    /// Time of the rule "time"; see [`LossDetection::Time`].
    pub loss_delay: Option<Span>,
    /// Length of the range of packet numbers that flows remember; see [`Config::range`](crate::Config::range).
    pub range: Option<u32>,
    /// Path of acknowledgements; see [`Config::ack_path`](crate::Config::ack_path).
    pub ack_path: Option<AckPath>,
    /// Maximum number of source ports of a peer; see [`Config::accept_ports`](crate::Config::accept_ports).
    pub accept_ports: Option<u16>,
}

impl SpreadSettings {
    /// Returns the spreading that these settings describe.
    ///
    /// # Errors
    /// If a setting is impossible or has no effect.
    pub(crate) fn spreading(
        &self,
        foreign: &[&'static dyn ForeignBalancer],
    ) -> Result<Option<Spreading>, String> {
        let Some(balancer) = &self.balancer else {
            let set = [
                ("ports", self.ports.is_some()),
                ("source_port", self.source_port.is_some()),
                ("loss", self.loss.is_some()),
                ("loss_delay", self.loss_delay.is_some()),
            ];
            return match set.iter().find(|(_, is_set)| *is_set) {
                Some((name, _)) => {
                    Err(format!("{name} has no effect without a balancer; set one, such as reps"))
                }
                None => Ok(None),
            };
        };
        let mut spreading = Spreading::new(balancer, self.ports.unwrap_or(DEFAULT_PORTS), foreign)?;
        spreading.next_port = self.source_port;
        let word = self.loss.as_deref().unwrap_or("time");
        spreading.loss = LossDetection::parse(word, self.loss_delay)?;
        Ok(Some(spreading))
    }
}

/// How a host spreads the packets of its flows over source ports.
#[derive(Clone, Debug)]
pub struct Spreading {
    balancer: BalancerConfig,
    /// Number of source ports of an engine, its first one included.
    pub(crate) ports: u16,
    /// The second source port of the first engine. Its other ports follow, then those of further engines. With `None`, the system
    /// chooses.
    pub next_port: Option<u16>,
    /// Loss detection; by default [`LossDetection::Time`] with 5 ms. deviation: the simulator's default is the time of an RTT
    /// without queues, which is unknown here.
    pub loss: LossDetection,
}

impl Spreading {
    /// Parses a path policy: a name, followed by parameters as `key=value`, like "reps" or "reps freeze=10ms". Unless `evs` is
    /// set, the policy has as many entropy values as there are ports.
    ///
    /// # Errors
    /// If the policy or a parameter is unknown, a value or the number of ports is impossible, or the policy acts at switches.
    pub fn new(
        text: &str,
        ports: u16,
        foreign: &[&'static dyn ForeignBalancer],
    ) -> Result<Self, String> {
        in_range("ports", ports, 2..=MAX_PORTS)?;
        if !ports.is_power_of_two() {
            return Err(format!("ports is {ports}; it must be a power of two, such as 64"));
        }
        let wrong = |error: &dyn std::fmt::Display| format!("balancer is \"{text}\": {error}");
        let words = balancers::parse(text).map_err(|error| wrong(&error))?;
        let mut settings = words.settings.clone();
        let evs = ports.to_string();
        let infos = balancers::all().chain(foreign.iter().map(|policy| policy.info()));
        let has_evs = infos
            .filter(|info| info.name == words.name)
            .any(|info| info.parameters.iter().any(|parameter| parameter.name == "evs"));
        if has_evs && !settings.iter().any(|(name, _)| *name == "evs") {
            settings.push(("evs", &evs));
        }
        let balancer = balancers::build(words.name, words.profile, &settings, None, foreign)
            .map_err(|error| wrong(&error))?;
        if balancer.policy().at_switches().is_some() {
            let choice = "a host only chooses source ports, and this policy acts at switches of a simulation; choose one like \
                          reps or oblivious";
            return Err(wrong(&choice));
        }
        Ok(Self { balancer, ports, next_port: None, loss: LossDetection::default() })
    }

    /// Returns the policy's name, profile and parameters.
    #[must_use]
    pub fn balancer(&self) -> &BalancerConfig {
        &self.balancer
    }

    /// Returns the number of source ports of an engine, including its first one: a power of two from 2 to [`MAX_PORTS`].
    #[must_use]
    pub fn ports(&self) -> u16 {
        self.ports
    }

    /// Returns the settings of the transport for a range of packet numbers.
    pub(crate) fn transport(&self, range: u32) -> SpreadConfig {
        SpreadConfig { loss: self.loss.rule(), range, ack_bytes: 0 }
    }

    /// Checks that the source ports of `engines` engines, numbered upwards from `next_port`, are between 1 and 65535.
    ///
    /// # Errors
    /// A sentence that names the setting.
    pub(crate) fn check(&self, engines: u32) -> Result<(), String> {
        let Some(next) = self.next_port else { return Ok(()) };
        let last = u32::from(next) + engines * (u32::from(self.ports) - 1) - 1;
        if next == 0 || last > u32::from(u16::MAX) {
            return Err(format!(
                "source_port is {next}: the ports of {engines} engines would end at {last}; they must be 1 to 65535"
            ));
        }
        Ok(())
    }
}

/// Checks a range of packet numbers.
///
/// # Errors
/// A sentence that states the limits of the range.
pub(crate) fn check_range(range: u32) -> Result<(), String> {
    in_range("range", range, MIN_RANGE..=MAX_RANGE)?;
    if !range.is_power_of_two() {
        return Err(format!(
            "range is {range}; it must be a power of two, such as {DEFAULT_RANGE}"
        ));
    }
    Ok(())
}

/// The ports that a host offers to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Number of ports that the host sends from.
    pub(crate) sends: u16,
    /// Maximum number of ports of the peer from which the host accepts packets.
    pub(crate) accepts: u16,
    /// Number of packet numbers that the host remembers.
    pub(crate) range: u32,
}

impl Offer {
    /// Returns the offer with these logarithms to base 2; `None` if they are out of range.
    pub(crate) fn of_logarithms([sends, accepts, range]: [u8; 3]) -> Option<Self> {
        let most = MAX_PORTS.ilog2() as u8;
        let ranges = MIN_RANGE.ilog2() as u8..=MAX_RANGE.ilog2() as u8;
        (sends <= most && accepts <= most && ranges.contains(&range)).then(|| Self {
            sends: 1 << sends,
            accepts: 1 << accepts,
            range: 1 << range,
        })
    }

    /// Returns the ports that this side and a peer with the offer `theirs` use; `None` if both use one port.
    pub(crate) fn agreed(&self, theirs: Option<&Self>) -> Option<Agreed> {
        let theirs = theirs?;
        let own = self.sends.min(theirs.accepts);
        let peer = theirs.sends.min(self.accepts);
        let range = self.range.min(theirs.range);
        (own.max(peer) > 1).then_some(Agreed { own, peer, range })
    }
}

/// The ports that both sides of a connection use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Number of ports of this side.
    pub(crate) own: u16,
    /// Number of ports of the peer.
    pub(crate) peer: u16,
    pub(crate) range: u32,
}

/// Reason why all packets of a connection leave by one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnePort {
    /// This host has no balancer.
    Off,
    /// The version of the peer supports only one port.
    PeerTooOld,
    /// The peer accepts one port only: by its settings, or because it has several engines at one address, among which its kernel
    /// divides source ports.
    PeerAcceptsOne,
    /// The peer has not confirmed a further port yet, or confirms none any longer: a NAT or a firewall is in the way, or no path
    /// is left.
    Unconfirmed,
}

impl OnePort {
    /// Returns the reason as a single word, as in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::PeerTooOld => "peer_too_old",
            Self::PeerAcceptsOne => "peer_accepts_one",
            Self::Unconfirmed => "unconfirmed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_on_the_smaller_numbers_and_on_nothing_for_one_port() {
        let offer = |sends, accepts, range| Offer { sends, accepts, range };
        let (ours, theirs) = (offer(64, 256, 1024), offer(1, 16, 512));
        assert_eq!(ours.agreed(Some(&theirs)), Some(Agreed { own: 16, peer: 1, range: 512 }));
        assert_eq!(theirs.agreed(Some(&ours)), Some(Agreed { own: 1, peer: 16, range: 512 }));
        assert_eq!(ours.agreed(Some(&offer(1, 1, 512))), None);
        assert_eq!(ours.agreed(None), None);
    }

    #[test]
    fn policies_take_as_many_values_as_there_are_ports() {
        let evs = |text| {
            let spreading = Spreading::new(text, 16, &[]).expect(text);
            let all = spreading.balancer().parameters();
            all.iter().find(|p| p.name == "evs").map(|p| p.value.to_string())
        };
        assert_eq!(evs("reps").as_deref(), Some("16"));
        assert_eq!(evs("bitmap").as_deref(), Some("16"));
        assert_eq!(evs("reps evs=32").as_deref(), Some("32"));
        assert_eq!(evs("ecmp"), None);
        for (text, ports, what) in [
            ("reps", 48, "power of two"),
            ("reps", 1, "at least 2"),
            ("reps", 512, "at most 256"),
            ("adaptive", 16, "acts at switches"),
            ("rep", 16, "reps"),
            ("reps freeze", 16, "key=value"),
        ] {
            let error = Spreading::new(text, ports, &[]).expect_err(what);
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn rules_that_cannot_hold_between_processes_are_refused_with_the_reason() {
        let parse = |word, delay| LossDetection::parse(word, delay);
        assert_eq!(parse("ev-order", None), Ok(LossDetection::EvOrder));
        assert_eq!(
            parse("time", Some(Span::from_ms(2))),
            Ok(LossDetection::Time(Span::from_ms(2)))
        );
        for (word, delay, what) in [
            ("sleek", None, "without queues"),
            ("count", None, "overtake"),
            ("never", None, "ev-order, time or timeout"),
            ("timeout", Some(LOSS_DELAY), "no effect"),
        ] {
            assert!(parse(word, delay).expect_err(what).contains(what), "{word}");
        }
    }
}
