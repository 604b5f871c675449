//! Settings of a host.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use apus_algorithms::{AlgorithmConfig, BuiltInSwitch, Registry, build};
use apus_cc::{
    AlgorithmFactory, CongestionHeader, Fields, FlowInfo, MAX_FIELD_BYTES, SendInfo, Sender,
    SwitchInfo,
};
use apus_transport::{DEFAULT_RANGE, extension_of};
use apus_units::{Bytes, PacketNumber, Rate, Time};
use apus_wire::MAX_HEADER_BYTES;

use crate::accept::AcceptHook;
use crate::capture::Capture;
use crate::error::StartError;
use crate::qlog::Qlog;
use crate::session::{Config as SessionConfig, KeyRing, MAX_PORTS, guard_bytes};
use crate::spreading::{AckPath, Offer, SpreadSettings, Spreading};
use crate::sys::{Families, has_ipv6};

mod check;

/// Number of traffic classes that flows may belong to: as many as Ethernet's priorities (IEEE 802.1Q).
pub const CLASSES: usize = 8;

/// Parameters of Swift over a kernel's UDP. The values of the paper are for NIC timestamps and engines that own their
/// cores.
const SWIFT: &[(&str, &str)] = &[
    // deviation: the paper's 25 us ends at the NIC; here the sender's kernel is part of the fabric
    // delay, and a bare round trip through two kernels takes 10 to 119 us (docs/udp.md).
    ("base_target", "200us"),
    // deviation: the paper's 100 us is for engines that spin; a thread that sleeps is woken within 1.2 ms in 99 of 100 cases
    // (docs/udp.md).
    ("endpoint_target", "1500us"),
    // deviation: the paper's 0.001 lets a flow pause for 1000 round trips; Falcon's default is 0.01.
    ("min_cwnd", "0.01"),
    // deviation: the paper has one minimum. An engine that shares its core is descheduled for milliseconds whatever the
    // window is. Below one packet, the window would only add pauses of RTT / cwnd, with the RTT of a descheduled engine
    // (docs/udp.md).
    ("endpoint_min_cwnd", "1"),
    // deviation: the defaults of 1 ms are for engines that own their cores; a thread that shares its core is
    // descheduled for 8 to 24 ms (docs/udp.md). A timeout before the first sample does not indicate congestion either,
    // because the handshake has just been answered.
    ("min_rto", "10ms"),
    ("initial_rto", "30ms"),
    // deviation: 3 is for timeouts of 1 ms in a network with a delay of 25 us; three timeouts fit into one period of
    // being descheduled.
    ("retx_reset_threshold", "10"),
];

/// Maximum number of engines of a host. Rationale: a region has one bit per engine that sends from it.
const MAX_ENGINES: u32 = 64;

/// Maximum number of bytes of the IP and UDP headers: those of IPv6, which are longer than those of IPv4.
const IP_UDP_BYTES: u32 = 48;

/// Number of bytes that a packet occupies on an Ethernet link in addition to its MTU: header, checksum, preamble and
/// gap (IEEE 802.3).
const ETHERNET_BYTES: u32 = 14 + 4 + 8 + 12;

/// Returns the number of bytes that an IP packet of this length occupies on an Ethernet link.
pub(crate) const fn wire_bytes_of(ip_bytes: u32) -> u32 {
    ip_bytes + ETHERNET_BYTES
}

/// Returns the maximum number of bytes of a full packet that are not payload: headers, the algorithm's fields and the
/// `guard` of the session.
pub(crate) fn header_bytes(algorithm: &AlgorithmConfig, guard: usize) -> u32 {
    let layout = algorithm.fields();
    let own = layout.map_or(Fields::NONE, |layout| Fields::data(layout.id, [0; MAX_FIELD_BYTES]));
    // Room for telemetry is not part of the layout: the sender half requests it on each packet.
    let first = first_header(algorithm);
    let bytes_of = |fields| extension_of(fields, layout, None, &mut [0; _]).encoded_len();
    let extension = bytes_of(own).max(bytes_of(first.fields));
    IP_UDP_BYTES + (MAX_HEADER_BYTES + extension + guard) as u32
}

/// Returns the congestion fields of the first packet of a flow.
pub(crate) fn first_header(algorithm: &AlgorithmConfig) -> CongestionHeader {
    let mut header = CongestionHeader::default();
    let info = SendInfo::new(Time::ZERO, PacketNumber::new(0));
    algorithm.sender(&FlowInfo::default()).on_transmit(&mut header, &info);
    header
}

/// Returns the switch half of an algorithm.
pub(crate) fn switch_half(algorithm: &AlgorithmConfig) -> BuiltInSwitch {
    algorithm.switch(&SwitchInfo { packet: Bytes::new(1500), seed: 0, nic: false })
}

/// The threads that drive the engines of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Calls that wait for an op, a message or a connection drive the engine, and sleep in the kernel. While no call waits, a
    /// thread of the host drives the engine, so that peers do not wait for a slow application. Suits most applications.
    Shared,
    /// Each engine has a thread that sleeps only while another thread wants its core. Gives minimum latency, and is intended for
    /// engines with a core of their own.
    Spinning,
    /// Only calls that wait, and [`Host::drive`](crate::Host::drive), drive the engine, and they never sleep. Intended for an
    /// application thread that has a core of its own and drives the engine without long breaks.
    Inline,
}

/// Settings of a [`Host`](crate::Host). Every resource that costs memory is bounded by one of them.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses to serve, each by [`Config::engines`] engines of its own. Port 0 lets the system choose. One socket at `[::]`
    /// serves every address of both families, unless the list contains an IPv4 address too ([`Config::any_address`]).
    pub listen: Vec<SocketAddr>,
    /// Keys that peers must prove. With [`KeyRing::insecure`] there are none: nothing is encrypted, and any peer may connect.
    pub keys: KeyRing,
    /// Threads that drive the engines; [`Mode::Shared`] by default.
    pub mode: Mode,
    /// Number of engines per address, each with its own socket and thread. A connection always belongs to one engine. deviation:
    /// no source; one engine carries about 10 Gb/s and half a million ops per second (docs/performance.md).
    pub engines: u32,
    /// Congestion control algorithm of every flow.
    pub algorithm: AlgorithmConfig,
    /// Whether the bottleneck of every path writes the algorithm's fields, as [`Switch`](crate::switch::Switch) does. Algorithms
    /// whose sender never slows down without these fields, such as HPCC, require this setting.
    pub behind_switch: bool,
    /// Algorithms that [`Config::set_algorithm`] finds by name; by default those of this project.
    pub registry: Registry,
    /// Rate of the host's link, for algorithms that start from this rate. deviation: no source; most servers have at least 10
    /// Gb/s.
    pub line_rate: Rate,
    /// Maximum length in bytes of the IP packets to send, if the path carries them. deviation: 9000 is the usual jumbo frame.
    pub max_mtu: u32,
    /// Maximum number of flows per connection. deviation: no source; 1024 flows take half a megabyte.
    pub max_flows: u32,
    /// Maximum number of outstanding ops per flow and direction. deviation: as the transport's default.
    pub max_ops: u32,
    /// Maximum length in bytes of a message from a peer. deviation: no source; writes carry more.
    pub max_message: u64,
    /// Maximum number of bytes, per connection, of messages that have arrived in part or in full and that the application has not
    /// taken. Further messages wait at the peer. At least `max_message`. deviation: no source; 16 of the longest.
    pub max_queued_bytes: u64,
    /// Maximum number, per connection, of messages that the application has not taken. deviation: no source; at 4 KiB each they
    /// fill `max_queued_bytes`.
    pub max_queued_messages: u32,
    /// Maximum number of bytes of messages that the application has not taken, over all connections of a peer with a key of its
    /// own, per engine. At least `max_message`; by default four times `max_queued_bytes`. All peers that the key ring does not
    /// list may together have three times this value or three times the default, whichever is more. deviation: no source.
    pub quota_queued_bytes: Option<u64>,
    /// Maximum number of outstanding ops in all connections that a peer with a key of its own has opened, per engine. A
    /// connection of n flows counts with n times `max_ops`, whatever limit the peer states for itself. A connection beyond the
    /// quota is refused. By default the ops of four connections with `max_flows` times `max_ops` each: a connection that replaces
    /// another one is counted in addition to it at first. All peers that the key ring does not list may together have three times
    /// this value or three times the default, whichever is more. deviation: no source.
    pub quota_ops: Option<u64>,
    /// Maximum number of connections that peers opened and the application has not accepted. A peer with a key of its own may
    /// have a quarter of them, and all peers that the key ring does not list three quarters. deviation: SOMAXCONN of Linux before
    /// 5.4, for TCP.
    pub max_unaccepted: u32,
    /// Maximum number of submitted ops that the engine has not processed. deviation: no source; an engine processes as many in a
    /// few milliseconds.
    pub submission_ring: u32,
    /// Kernel buffer of each socket and direction, in bytes; the kernel may allow less. deviation: no source; 3 ms at 10 Gb/s, by
    /// which an engine that shares its core may be late.
    pub socket_buffer: u32,
    /// How flows spread their packets over source ports of this host. With `None`, each connection uses one source port.
    pub spreading: Option<Spreading>,
    /// Maximum number of source ports of a peer: a power of two up to [`MAX_PORTS`], or 1 to refuse further ports. `None` means
    /// [`MAX_PORTS`], or 1 if several [engines](Config::engines) share an address. The kernel divides source ports among such
    /// engines by a hash, so that packets of a connection would reach engines that do not know the connection. deviation: no
    /// source; a port of a session takes 20 bytes.
    pub accept_ports: Option<u16>,
    /// Length of the range of packet numbers that flows of connections with several ports remember, a power of two from 128 to
    /// 16384. The smaller value of the two hosts applies. Source: Falcon (isekai v1.1): senders track 1024 packets.
    pub range: u32,
    /// Path of the acknowledgements that this host sends to peers with several ports.
    pub ack_path: AckPath,
    /// DSCP of each traffic class, 0 to 63. The application chooses the class of a flow when it opens the flow
    /// ([`Host::connect_with`](crate::Host::connect_with)); otherwise the class is 0. The DSCP of packets that the peer sends on
    /// the flow follows the peer's settings for the same class.
    pub dscp: [u8; CLASSES],
    /// Device of the NIC's clock (`/dev/ptp0`), if the NIC's timestamps are to be used.
    pub nic_clock: Option<PathBuf>,
    /// Whether the kernel or the NIC reports when packets left (t1), so that the sender's own queues do not count as fabric
    /// delay. deviation: off, though Swift has NIC timestamps: a Snap engine's NIC pulls, so there is no queue, and each report
    /// costs at least a microsecond here (docs/udp.md).
    pub departure_timestamps: bool,
    /// Maximum number of connections, and of peers, that the metrics of an engine list one by one
    /// ([`Host::metrics`](crate::Host::metrics)). Further connections are only counted, and further peers are reported as one.
    /// deviation: no source; the page of an engine stays below half a megabyte.
    pub metrics_limit: u32,
    /// Capture file to which every datagram is written.
    pub capture: Option<Capture>,
    /// Directory in which every connection is recorded, for diagnosis. [`Connection::record`](crate::Connection::record) records
    /// a single connection.
    pub qlog: Option<Qlog>,
    /// Decision of the application on each connection that a peer requests. Without it, every peer that proves a key of the key
    /// ring may connect.
    pub accept: Option<AcceptHook>,
    /// Settings of sessions: handshakes, keepalives, keys and quotas.
    pub session: SessionConfig,
}

impl Config {
    /// Returns default settings for a host at the address `listen` with these keys: Swift, one engine, [`Mode::Shared`].
    ///
    /// # Errors
    /// None with this version's table of algorithms.
    pub fn new(listen: SocketAddr, keys: KeyRing) -> Result<Self, StartError> {
        let algorithm =
            build("swift", None, SWIFT).map_err(|error| StartError::Setting(error.to_string()))?;
        Ok(Self {
            listen: vec![listen],
            keys,
            mode: Mode::Shared,
            engines: 1,
            algorithm,
            behind_switch: false,
            registry: Registry::BUILT_IN,
            line_rate: Rate::from_gbps(10),
            max_mtu: 9000,
            max_flows: 1024,
            max_ops: 1024,
            max_message: 1 << 20,
            max_queued_bytes: 16 << 20,
            max_queued_messages: 4096,
            quota_queued_bytes: None,
            quota_ops: None,
            max_unaccepted: 128,
            submission_ring: 4096,
            socket_buffer: 4 << 20,
            spreading: None,
            accept_ports: None,
            range: DEFAULT_RANGE,
            ack_path: AckPath::default(),
            dscp: [0; CLASSES],
            nic_clock: None,
            departure_timestamps: false,
            metrics_limit: 64,
            capture: None,
            qlog: None,
            accept: None,
            session: SessionConfig::default(),
        })
    }

    /// Returns the address whose socket serves every address of this machine: `[::]`, or `0.0.0.0` on a system without IPv6.
    #[must_use]
    pub fn any_address(port: u16) -> SocketAddr {
        if has_ipv6() {
            (Ipv6Addr::UNSPECIFIED, port).into()
        } else {
            (Ipv4Addr::UNSPECIFIED, port).into()
        }
    }

    /// Returns the address families that a socket at `address` serves.
    pub(crate) fn families_at(&self, address: SocketAddr) -> Families {
        let alone = self.listen.iter().all(SocketAddr::is_ipv6);
        match address {
            SocketAddr::V6(v6) if v6.ip().is_unspecified() && alone => Families::Both,
            address => Families::of(address),
        }
    }

    /// Returns the number of ports of an engine.
    pub(crate) fn own_ports(&self) -> u16 {
        self.spreading.as_ref().map_or(1, |spreading| spreading.ports)
    }

    /// Returns the host's offer to peers about ports.
    pub(crate) fn offer(&self) -> Offer {
        let most = if self.engines > 1 { 1 } else { MAX_PORTS };
        let accepts = self.accept_ports.unwrap_or(most);
        Offer { sends: self.own_ports(), accepts, range: self.range }
    }

    /// Sets the path policy of flows and the number of source ports, by default [`DEFAULT_PORTS`](crate::DEFAULT_PORTS). With
    /// `None` as the policy, each connection uses one source port. Replaces [`Config::spreading`]; its other settings are reset
    /// to their defaults.
    ///
    /// # Errors
    /// As [`Spreading::new`], and if there are `ports` without a policy.
    pub fn set_balancer(
        &mut self,
        balancer: Option<&str>,
        ports: Option<u16>,
    ) -> Result<(), StartError> {
        if balancer.is_none() && ports.is_some() {
            let why = "ports has no effect without a balancer; set one, such as reps";
            return Err(StartError::Setting(why.to_owned()));
        }
        let foreign = self.registry.foreign_balancers();
        let ports = ports.unwrap_or(crate::spreading::DEFAULT_PORTS);
        let spreading = balancer.map(|text| Spreading::new(text, ports, foreign)).transpose();
        self.spreading = spreading.map_err(StartError::Setting)?;
        Ok(())
    }

    /// Applies settings of source ports that were given as texts. Settings that are `None` get their defaults.
    ///
    /// # Errors
    /// If a setting is impossible or has no effect.
    pub fn set_spreading(&mut self, settings: &SpreadSettings) -> Result<(), StartError> {
        let spreading = settings.spreading(self.registry.foreign_balancers());
        self.spreading = spreading.map_err(StartError::Setting)?;
        self.accept_ports = settings.accept_ports;
        self.range = settings.range.unwrap_or(DEFAULT_RANGE);
        self.ack_path = settings.ack_path.unwrap_or_default();
        Ok(())
    }

    /// Returns the number of engines of the host.
    pub(crate) fn all_engines(&self) -> u32 {
        self.engines * self.listen.len() as u32
    }

    /// Replaces the algorithm, or changes parameters of the current one. The current algorithm is initially Swift with the
    /// settings of [`Config::new`]. Its parameters that are not named keep their values. Another algorithm begins with its own
    /// defaults.
    ///
    /// # Errors
    /// If the algorithm or a parameter is unknown, or a value is invalid.
    pub fn set_algorithm(
        &mut self,
        name: Option<&str>,
        parameters: &[(&str, &str)],
    ) -> Result<(), StartError> {
        let changed = match name {
            Some(name) if name != self.algorithm.info().name => {
                self.registry.build(name, None, parameters)
            }
            _ => self.algorithm.changed(parameters, &[]),
        };
        self.algorithm = changed.map_err(|error| StartError::Setting(error.to_string()))?;
        Ok(())
    }

    /// Returns the `max_mtu` with which full sealed packets carry `payload` bytes, for an algorithm without packet fields of its
    /// own.
    #[must_use]
    pub fn mtu_for(payload: u32) -> u32 {
        payload + IP_UDP_BYTES + (MAX_HEADER_BYTES + guard_bytes(true)) as u32
    }
}

#[cfg(test)]
mod tests {
    use apus_cc::{AckEvent, Allowance, Pacing, TimeoutEvent};
    use apus_units::Span;

    use super::*;

    fn defaults() -> Config {
        Config::new(([127, 0, 0, 1], 0).into(), KeyRing::insecure()).expect("defaults")
    }

    /// A peer whose engine shares its core is repeatedly descheduled, and later no longer. The flow must not pause
    /// afterwards: a pause would take RTT / cwnd, with the RTT of a descheduled peer (40 ms / 0.01 is 4 s).
    #[test]
    fn a_flow_does_not_pause_after_its_peer_was_descheduled() {
        let config = defaults();
        let mut flow = config.algorithm.sender(&FlowInfo::default());
        let mut now = Time::ZERO;
        let (descheduled, fabric) = (Span::from_ms(40), Span::from_us(20));
        for i in 0..100 {
            // The timeouts while the peer is descheduled, and the late acknowledgement of one packet.
            let until = now + descheduled;
            while now + flow.rto() < until {
                now += flow.rto();
                let mut event = TimeoutEvent::new(now);
                event.next_seq = PacketNumber::new(i + 1);
                flow.on_timeout(&event);
            }
            now = until;
            let mut event = AckEvent::new(now, descheduled);
            event.fabric_delay = fabric;
            event.endpoint_delay = descheduled - fabric;
            event.acked_seq = PacketNumber::new(i);
            event.next_seq = PacketNumber::new(i + 1);
            flow.on_ack(&event);
            let Allowance { window, pacing } = flow.allowance();
            assert!(window >= 1.0, "{window} packets after being descheduled {} times", i + 1);
            assert_eq!(pacing, Pacing::AckClocked);
        }
    }

    /// The rate of RCCC's grants is meant for a whole host.
    #[test]
    fn rccc_runs_on_one_engine() {
        let mut config = defaults();
        config.set_algorithm(Some("rccc"), &[]).expect("rccc");
        config.check().expect("one engine");
        config.engines = 2;
        let error = config.check().expect_err("two").to_string();
        assert!(error.contains("each of 2 engines") && error.contains("use one engine"), "{error}");
    }

    /// Sizes from the wire layout: Bolt has 1 writable byte, type, count and 5 bytes; telemetry has the type, 3 bytes
    /// and 8 hops of 13 bytes.
    #[test]
    fn a_full_packet_has_room_for_the_fields_of_its_algorithm() {
        let of = |name| header_bytes(&build(name, None, &[]).expect("an algorithm"), 20);
        let none = of("swift");
        assert_eq!(of("dctcp"), none);
        assert_eq!(of("bolt"), none + 8);
        assert_eq!(of("rcp"), none + 7);
        assert_eq!(of("hpcc"), none + 108);
    }

    #[test]
    fn a_parameter_is_changed_and_the_others_stay() {
        let mut config = defaults();
        let of = |config: &Config, name| {
            let all = config.algorithm.effective();
            all.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone())
        };
        for name in [None, Some("swift")] {
            config.set_algorithm(name, &[("base_target", "77us")]).expect("a parameter");
            assert_eq!(of(&config, "base_target").as_deref(), Some("77us"));
            assert_eq!(of(&config, "min_rto").as_deref(), Some("10ms"), "as SWIFT has it");
        }
        config.set_algorithm(None, &[("fs_range", "0us")]).expect("what it turns off was not set");
        let unknown = config.set_algorithm(None, &[("base_targt", "1us")]).expect_err("unknown");
        assert!(unknown.to_string().contains("base_targt"), "{unknown}");
        config.set_algorithm(Some("dctcp"), &[]).expect("another");
        assert_eq!(config.algorithm.info().name, "dctcp");
        assert!(config.set_algorithm(None, &[("base_target", "1us")]).is_err(), "it is Swift's");
    }

    #[test]
    fn impossible_lists_of_addresses_are_refused() {
        let check = |listen: &[&str], engines, mode| {
            let listen = listen.iter().map(|text| text.parse().expect("an address")).collect();
            Config { listen, engines, mode, ..defaults() }.check().map_err(|e| e.to_string())
        };
        for (listen, engines, mode, what) in [
            (&[][..], 1, Mode::Shared, "no address"),
            (&["0.0.0.0:7", "[::]:7", "0.0.0.0:7"], 1, Mode::Shared, "0.0.0.0:7 twice"),
            (&["[::ffff:127.0.0.1]:7"], 1, Mode::Shared, "write 127.0.0.1:7"),
            (&["0.0.0.0:7", "[::]:7"], 33, Mode::Shared, "at most 64 engines"),
            (&["0.0.0.0:7", "[::]:7"], 1, Mode::Inline, "[::] serves all"),
        ] {
            let error = check(listen, engines, mode).expect_err(what);
            assert!(error.contains(what), "{error}");
        }
        check(&["0.0.0.0:7", "[::]:7"], 32, Mode::Spinning).expect("64 engines");
        check(&["127.0.0.1:0", "127.0.0.1:0"], 1, Mode::Shared).expect("two ports");
    }

    #[test]
    fn the_ipv6_wildcard_serves_both_families_unless_an_ipv4_address_is_listed() {
        let at = |listen: &[&str], n: usize| {
            let listen: Vec<SocketAddr> =
                listen.iter().map(|text| text.parse().expect("an address")).collect();
            let address = listen[n];
            Config { listen, ..defaults() }.families_at(address)
        };
        assert_eq!(at(&["[::]:7"], 0), Families::Both);
        assert_eq!(at(&["[::1]:7"], 0), Families::V6);
        assert_eq!(at(&["0.0.0.0:7", "[::]:7"], 0), Families::V4);
        assert_eq!(at(&["0.0.0.0:7", "[::]:7"], 1), Families::V6);
        assert_eq!(at(&["[::1]:8", "[::]:7"], 1), Families::Both);
    }

    #[test]
    fn algorithms_that_need_switches_to_take_part_are_refused() {
        let config = |algorithm| {
            let algorithm = build(algorithm, None, &[]).expect("an algorithm");
            Config { algorithm, ..defaults() }
        };
        for algorithm in ["swift", "dctcp", "cubic", "bolt", "hull"] {
            config(algorithm).check().expect(algorithm);
        }
        for algorithm in ["hpcc", "rcp", "expresspass"] {
            let error = config(algorithm).check().expect_err(algorithm).to_string();
            assert!(error.contains(algorithm), "{error}");
        }
        for (algorithm, accepted) in
            [("hpcc", true), ("rcp", true), ("bolt", false), ("expresspass", false)]
        {
            let mut config = config(algorithm);
            config.behind_switch = true;
            assert_eq!(config.check().is_ok(), accepted, "{algorithm} behind a switch");
        }
        let mut falcon = config("swift");
        falcon.algorithm = build("swift", Some("falcon"), &[]).expect("a profile");
        let error = falcon.check().expect_err("no level is told").to_string();
        assert!(error.contains("swift's profile falcon"), "{error}");
    }
}
