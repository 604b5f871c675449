//! Choices of a seed: hosts, ops and faults. A plan determines its world; a smaller plan is a simpler world.

use apus_udp::session::Cipher;
use apus_udp::{AckPath, LossDetection};
use apus_units::Span;

use crate::draw::Draw;
use crate::fault::{Fault, Trouble};
use crate::identity::rights;

/// Number of bytes of a region that only its owner uses, before the slots of writes.
pub(crate) const MARGIN: u64 = 64;
/// Number of bytes of the region with known content that peers read.
pub(crate) const PATTERN_BYTES: u64 = 300_000;
/// Number of words that atomic ops change.
pub(crate) const WORDS: u64 = 4;

/// Plan of a world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed from which the plan was drawn; it also determines the choices of the network.
    pub seed: u64,
    /// Whether sessions are sealed.
    pub sealed: bool,
    /// Time after which faults stop.
    pub horizon: Span,
    /// Delay of the network: minimum, and maximum additional delay.
    pub delay: [Span; 2],
    /// Timeouts of sessions: retry, keepalive, idle timeout, handshake timeout, life of a key.
    pub timeouts: [Span; 5],
    /// The hosts.
    pub hosts: Vec<HostPlan>,
    /// The ops, in the order of their times.
    pub ops: Vec<OpPlan>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// Host whose application takes no messages from this time on, until a long time after faults have stopped.
    pub(crate) hold: Option<(usize, Span)>,
    /// Peers (second index) that may write to the slots of a host (first index), if hosts have keys of their own.
    pub(crate) rights: Option<Vec<Vec<bool>>>,
}

/// A host.
#[derive(Clone, Debug)]
pub struct HostPlan {
    pub(crate) engines: u32,
    pub(crate) algorithm: &'static str,
    pub(crate) cipher: Cipher,
    /// Number of flows of the connections that it opens.
    pub(crate) flows: usize,
    /// Parts per million by which its clock is fast.
    pub(crate) drift_ppm: i64,
    pub(crate) mtu: u32,
    pub(crate) segmentation: bool,
    /// Whether its kernel reports departures and timestamps arrivals.
    pub(crate) stamps: bool,
    /// Whether its kernel aggregates equal datagrams.
    pub(crate) aggregates: bool,
    pub(crate) max_ops: u32,
    pub(crate) max_message: u64,
    pub(crate) max_queued_messages: u32,
    pub(crate) submission_ring: u32,
    pub(crate) max_unaccepted: u32,
    /// Size of the socket's receive buffer in bytes.
    pub(crate) socket_buffer: usize,
    /// Time that the application takes to react.
    pub(crate) reaction: Span,
    /// Whether it has a valid key and breaks the protocol.
    pub(crate) insider: bool,
    /// Its source ports, in worlds whose hosts spread packets.
    pub(crate) ports: Option<PortPlan>,
    /// Its quotas by key, in some worlds whose hosts have keys of their own.
    pub(crate) quotas: Option<QuotaPlan>,
}

/// Total limits that a host sets per peer.
#[derive(Clone, Debug)]
pub(crate) struct QuotaPlan {
    pub(crate) sessions: u32,
    pub(crate) queued_bytes: u64,
    pub(crate) ops: u64,
}

/// The source ports of a host.
#[derive(Clone, Debug)]
pub(crate) struct PortPlan {
    /// Path policy and number of ports, if the host spreads its own packets.
    pub(crate) balancer: Option<(&'static str, u16)>,
    pub(crate) loss: LossDetection,
    /// Maximum number of ports of a peer.
    pub(crate) accepts: u16,
    pub(crate) range: u32,
    pub(crate) ack_path: AckPath,
}

/// Path policies of hosts.
const BALANCERS: [&str; 8] = [
    "ecmp",
    "ecmp profile=prr",
    "plb",
    "flowlet",
    "oblivious",
    "bitmap",
    "reps freeze=20ms",
    "mixed",
];

/// Algorithms without marks and without a target delay.
const NO_SIGNAL: [&str; 5] = ["bolt", "constant", "cubic", "dx", "timely"];

impl PortPlan {
    fn draw(draw: &mut Draw) -> Self {
        let losses = [
            LossDetection::default(),
            LossDetection::EvOrder,
            LossDetection::Time(Span::from_ms(3)),
            LossDetection::Timeout,
        ];
        Self {
            balancer: draw.chance(800).then(|| (draw.pick(&BALANCERS), draw.pick(&[2, 4, 8]))),
            loss: draw.pick(&losses),
            accepts: draw.pick(&[1, 2, 256, 256]),
            range: draw.pick(&[128, 256, 1024]),
            ack_path: draw.pick(&[AckPath::Symmetric, AckPath::Symmetric, AckPath::Own]),
        }
    }
}

/// Kind of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Writes its own slot in the peer's region.
    Write,
    /// Reads a part of the peer's region of known content.
    Read,
    /// Sends a message.
    Message,
    /// Adds 1 to a word.
    Add,
    /// Replaces a word by the next number.
    Swap,
    /// Writes with a region key that has the identifier of a region and another secret.
    StrangeKey,
    /// Writes to a region that peers may only read.
    Forbidden,
    /// Writes beyond the end of a region.
    Beyond,
    /// Reads from an address whose end no packet can express.
    Overflow,
    /// Sends a message that is longer than the peer accepts.
    TooLong,
}

/// An op.
#[derive(Clone, Debug)]
pub struct OpPlan {
    /// Time of submission, if there is a connection by then.
    pub(crate) at: Span,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) what: What,
    pub(crate) length: u64,
    /// Address of a read, or number of the word of an atomic op.
    pub(crate) place: u64,
    pub(crate) deadline: Option<Span>,
    /// Time after which it is cancelled.
    pub(crate) cancel: Option<Span>,
}

const SECOND: Span = Span::from_secs(1);

impl Plan {
    /// Draws the plan of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed, 0);
        let count = draw.pick(&[2, 3, 3, 3, 4, 4, 5]);
        let horizon = draw.span(Span::from_ms(100), Span::from_secs(30));
        let ms = Span::from_ms;
        let retry = draw.pick(&[ms(20), ms(100)]);
        let keepalive = draw.pick(&[SECOND, Span::from_secs(10)]);
        let idle = keepalive + draw.pick(&[ms(500), Span::from_secs(5)]);
        let handshake = draw.pick(&[SECOND, Span::from_secs(5)]);
        let life = draw.pick(&[ms(50), SECOND, Span::from_secs(120)]);
        let insider = (count > 3 && draw.chance(500)).then_some(count - 1);
        let mut hosts: Vec<HostPlan> =
            (0..count).map(|n| HostPlan::draw(&mut draw, insider == Some(n))).collect();
        let ops = draw.range(30, 90);
        let mut ops: Vec<OpPlan> =
            (0..ops).map(|_| OpPlan::draw(&mut draw, count, horizon)).collect();
        ops.sort_by_key(|op| op.at);
        let faults = draw.range(8, 20);
        let mut faults: Vec<Fault> =
            (0..faults).map(|_| Fault::draw(&mut draw, &hosts, horizon)).collect();
        // These choices have their own streams, so that the other choices of a seed are the same as before
        // this kind of host existed.
        let mut own = Draw::new(seed, 3);
        let hold = own.chance(300).then(|| (own.index(count), own.below(horizon)));
        let mut ports = Draw::new(seed, 4);
        if ports.chance(400) {
            for host in &mut hosts {
                host.ports = ports.chance(800).then(|| PortPlan::draw(&mut ports));
            }
            for _ in 0..ports.range(2, 8) {
                faults.push(Fault::draw_of_port(&mut ports, count, horizon));
            }
        }
        let mut more_algorithms = Draw::new(seed, 5);
        for host in &mut hosts {
            if more_algorithms.chance(250) {
                host.algorithm =
                    more_algorithms.pick(&["bolt", "dcqcn", "dx", "hull", "mswift", "nscc"]);
            }
        }
        // A host rejects policies that depend on congestion signals if its algorithm has none.
        for host in &mut hosts {
            let Some(ports) = &mut host.ports else { continue };
            if NO_SIGNAL.contains(&host.algorithm) {
                ports.balancer = ports.balancer.map(|(policy, count)| match policy {
                    "plb" | "bitmap" | "reps freeze=20ms" | "mixed" => ("oblivious", count),
                    other => (other, count),
                });
            }
        }
        let sealed = draw.chance(750);
        let mut own_keys = Draw::new(seed, 7);
        let mut rights = (sealed && own_keys.chance(400)).then(|| rights(&mut own_keys, count));
        // An insider with the right to the slots could change those of other hosts.
        if let (Some(rights), Some(insider)) = (&mut rights, insider) {
            rights.iter_mut().for_each(|of| of[insider] = false);
        }
        if rights.is_some() {
            let more = 0..own_keys.range(1, 5);
            faults.extend(more.map(|_| Fault::draw_of_rights(&mut own_keys, count, horizon)));
        }
        let mut quotas = Draw::new(seed, 8);
        for host in hosts.iter_mut().filter(|_| rights.is_some()) {
            host.quotas = quotas.chance(500).then(|| QuotaPlan {
                sessions: quotas.pick(&[3, 6]),
                queued_bytes: host.max_message * quotas.pick(&[1, 3]),
                ops: u64::from(host.max_ops) * quotas.pick(&[12, 24]),
            });
        }
        let mut memory = Draw::new(seed, 6);
        if memory.chance(200) {
            faults.push(Fault::draw_of_memory(&mut memory, count, horizon));
        }
        let mut informed = Draw::new(seed, 9);
        if let Some(insider) = insider.filter(|_| informed.chance(700)) {
            let more = 0..informed.range(1, 3);
            faults.extend(more.map(|_| Fault::draw_of_informed(&mut informed, insider, horizon)));
        }
        let mut replaced = Draw::new(seed, 10);
        if rights.is_some() && replaced.chance(600) {
            let more = 0..replaced.range(1, 3);
            faults.extend(more.map(|_| Fault::draw_of_replacement(&mut replaced, count, horizon)));
        }
        Self {
            seed,
            sealed,
            horizon,
            delay: [
                draw.span(Span::from_us(5), Span::from_us(500)),
                draw.span(Span::from_us(1), Span::from_ms(2)),
            ],
            timeouts: [retry, keepalive, idle, handshake, life],
            hosts,
            ops,
            faults,
            hold: hold.filter(|&(host, _)| insider != Some(host)),
            rights,
        }
    }

    /// Draws the plan of a seed that is kept because it has found a bug: without the kinds of faults that are newer
    /// than the seed.
    #[must_use]
    pub fn draw_kept(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        plan.faults
            .retain(|f| !matches!(f.what, Trouble::InformedInsider(..) | Trouble::Replace(_)));
        plan
    }

    /// Returns the first byte of the slot of each op that writes, in its target's region, and the length of
    /// each host's region.
    pub(crate) fn slots(&self) -> (Vec<u64>, Vec<u64>) {
        let mut lengths = vec![MARGIN; self.hosts.len()];
        let slot = |op: &OpPlan| {
            let start = lengths[op.to];
            if op.what == What::Write {
                // There is a gap between slots, so that a write beyond its slot is detected.
                lengths[op.to] += op.length + MARGIN;
            }
            start
        };
        let slots = self.ops.iter().map(slot).collect();
        (slots, lengths)
    }

    /// Returns the host that breaks the protocol.
    pub(crate) fn insider(&self) -> Option<usize> {
        self.hosts.iter().position(|host| host.insider)
    }

    /// Returns a description of the world in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{} hosts, {} ops, {} faults within {}, {}{}",
            self.hosts.len(),
            self.ops.len(),
            self.faults.len(),
            self.horizon,
            match (&self.rights, self.sealed) {
                (Some(_), _) => "keys of hosts",
                (None, true) => "a shared key",
                (None, false) => "insecure",
            },
            if self.hosts.iter().any(|host| host.ports.is_some()) { ", several ports" } else { "" },
        )
    }
}

impl HostPlan {
    /// Returns the maximum number of bytes of messages of a connection that the application has not taken.
    pub(crate) fn max_queued_bytes(&self) -> u64 {
        2 * self.max_message
    }

    fn draw(draw: &mut Draw, insider: bool) -> Self {
        let ciphers: Vec<Cipher> = Cipher::available().collect();
        Self {
            engines: draw.pick(&[1, 1, 1, 2, 3]),
            algorithm: draw
                .pick(&["swift", "swift", "swift", "cubic", "dctcp", "timely", "constant"]),
            cipher: draw.pick(&ciphers),
            flows: draw.pick(&[1, 1, 2, 3]),
            drift_ppm: draw.range(0, 400) as i64 - 200,
            mtu: draw.pick(&[1280, 1500, 4000, 9000]),
            segmentation: draw.chance(800),
            stamps: draw.chance(400),
            aggregates: draw.chance(600),
            max_ops: draw.pick(&[2, 8, 1024]),
            max_message: draw.pick(&[100_000, 1 << 20]),
            max_queued_messages: draw.pick(&[2, 16, 4096]),
            submission_ring: draw.pick(&[2, 16, 4096]),
            max_unaccepted: draw.pick(&[1, 128]),
            socket_buffer: draw.pick(&[20_000, 200_000, 4 << 20]),
            reaction: draw.span(Span::from_us(1), Span::from_ms(1)),
            insider,
            ports: None,
            quotas: None,
        }
    }
}

impl OpPlan {
    fn draw(draw: &mut Draw, hosts: usize, horizon: Span) -> Self {
        let (from, to) = draw.pair(hosts);
        let what = match draw.range(0, 99) {
            0..26 => What::Write,
            26..44 => What::Read,
            44..70 => What::Message,
            70..80 => What::Add,
            80..88 => What::Swap,
            88..91 => What::StrangeKey,
            91..93 => What::Forbidden,
            93..95 => What::Beyond,
            95..97 => What::Overflow,
            _ => What::TooLong,
        };
        let length = match draw.range(0, 9) {
            0..4 => draw.log_range(16, 1024),
            4..8 => draw.log_range(1024, 16_384),
            8 => draw.log_range(16_384, 100_000),
            // More packets than one acknowledgement reports, in bursts.
            _ => draw.log_range(100_000, PATTERN_BYTES),
        };
        let length = match what {
            What::Message => length.min(100_000),
            What::Overflow | What::Forbidden | What::StrangeKey => length.min(20_000),
            _ => length,
        };
        let place = match what {
            What::Read => draw.range(0, PATTERN_BYTES - length.min(PATTERN_BYTES)),
            _ => draw.range(0, WORDS - 1),
        };
        // Half of the ops come in bursts, so that queues fill.
        let at = match draw.chance(500) {
            true => Span::from_ps(horizon.as_ps() / 8 * draw.range(0, 7)),
            false => draw.below(horizon),
        };
        Self {
            at,
            from,
            to,
            what,
            length,
            place,
            deadline: draw.chance(120).then(|| draw.span(Span::from_us(10), Span::from_secs(2))),
            cancel: draw.chance(120).then(|| draw.span(Span::from_us(1), Span::from_ms(500))),
        }
    }
}
