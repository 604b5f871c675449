//! Configuration of an egress port, and the kind of port that it requires.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::{Bytes, ClassId, Rate};

use crate::scheduler::SchedulerKind;

/// The memory in which a port keeps its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Memory of the port alone: a packet is dropped if it would raise the occupancy above this
    /// size. [`Bytes::MAX`] is "unlimited".
    Own(Bytes),
    /// The pool of the switch ([`SwitchSpec::shared_buffer`]), with dynamic thresholds (Choudhury
    /// and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN
    /// 6(2), 1998). A packet is dropped if the pool is full, or if with the packet the queue of its
    /// class at this port would exceed `alpha` times the free space of the pool.
    ///
    /// [`SwitchSpec::shared_buffer`]: crate::SwitchSpec::shared_buffer
    Shared {
        /// Threshold of a queue as a multiple of the free memory, above 0.
        alpha: f64,
    },
}

/// A token bucket: a class may send at `rate` in the long run, and `burst` bytes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Tokens per time, in wire bytes: the long-run rate of the class.
    pub rate: Rate,
    /// Size of the bucket, which is full at the start. A packet is served when the bucket holds
    /// tokens for all of its bytes. A packet larger than the bucket is served when the bucket is
    /// full, and leaves a negative number of tokens.
    pub burst: Bytes,
}

/// A traffic class of an egress port.
#[derive(Clone, Debug)]
pub struct ClassConfig<W> {
    /// Strict priority level: level 0 is served first. Classes of the same level share its
    /// bandwidth as the port's [`scheduler`](PortConfig::scheduler) says.
    pub priority: u8,
    /// Share within the level, above 0.
    pub weight: u32,
    /// Maximum number of bytes that the class may hold in the port, in addition to the limit of the
    /// port's [`Buffer`].
    pub limit: Bytes,
    /// Maximum number of queued packets of the class in the port, without the one in service.
    pub limit_packets: u32,
    /// Token bucket in front of the class. At most one class of a port may have one.
    pub rate_limit: Option<RateLimit>,
    /// Trimming of packets for which the class has no room; `None`: they are dropped.
    pub trim: Option<Trim>,
    /// Switch half that sees the class's packets; each class has its own copy.
    pub algorithm: W,
}

/// Trimming: a data packet for which its class has no room loses its payload, and its header joins
/// another class (unverified: Handley et al., NDP, SIGCOMM 2017; uet-htsim 40ccb05). The network
/// determines which packets have a payload that can be removed
/// ([`Network::trim_packets`](crate::Network::trim_packets)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Class of the headers, which they keep on the rest of their path.
    pub class: ClassId,
    /// Wire bytes of a header.
    pub bytes: u32,
    /// Whether, with probability 1/2, the last packet of the queue is trimmed instead of the
    /// arriving one. Otherwise synchronised senders may lose the payload of each packet.
    pub tail: bool,
    /// Whether headers are kept. If not, packets are dropped as without trimming, and `tail`
    /// determines which ones (uet-htsim 40ccb05, `-disable_trim`).
    pub keeps_headers: bool,
    /// Seed of the port's stream of random numbers.
    pub seed: u64,
}

impl<W: Default> Default for ClassConfig<W> {
    /// Level 0, weight 1, no limits, no switch half.
    fn default() -> Self {
        Self {
            priority: 0,
            weight: 1,
            limit: Bytes::MAX,
            limit_packets: u32::MAX,
            rate_limit: None,
            trim: None,
            algorithm: W::default(),
        }
    }
}

/// An egress port.
#[derive(Clone, Debug)]
pub struct PortConfig<W> {
    /// Rate of the link behind the port.
    pub rate: Rate,
    /// Buffer of the port.
    pub buffer: Buffer,
    /// Classes of the port, at least one, with at most 64 different priorities;
    /// [`ClassId`](apus_units::ClassId) is the index.
    pub classes: Vec<ClassConfig<W>>,
    /// Scheduler of classes of the same priority.
    pub scheduler: SchedulerKind,
    /// Whether classes will be paused ([`Network::set_paused`](crate::Network::set_paused)).
    pub pausable: bool,
    /// Whether the link will fail, lose packets or change its rate
    /// ([`Network::set_link_up`](crate::Network::set_link_up),
    /// [`Network::set_impairment`](crate::Network::set_impairment),
    /// [`Network::set_rate`](crate::Network::set_rate)).
    pub variable: bool,
}

/// How a port finds the departures of its packets, the simplest kind first. Where several kinds are
/// possible, they give equal results to the picosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKind {
    /// When a packet joins: for a port with one class. One event per hop.
    Fifo,
    /// When the port is used next: for classes that nothing can stop, in strict priority or by
    /// weights, with or without trimming. One event per hop.
    Lazy,
    /// By events: for every option of a port. Needs a service event for each packet behind which
    /// another is queued, or for every packet if the link can be stopped or the memory is shared.
    Event,
}

/// Maximum number of priorities of a port. Rationale: one bit for each in a 64-bit word.
const MAX_LEVELS: usize = 64;

impl<W: SwitchHalf> PortConfig<W> {
    /// Returns a port with one class, its own buffer and no switch half.
    #[must_use]
    pub fn new(rate: Rate, buffer: Bytes) -> Self
    where
        W: Default,
    {
        Self {
            rate,
            buffer: Buffer::Own(buffer),
            classes: vec![ClassConfig::default()],
            scheduler: SchedulerKind::default(),
            pausable: false,
            variable: false,
        }
    }

    /// Sets this switch half in every class.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: &W) -> Self {
        for class in &mut self.classes {
            class.algorithm = algorithm.clone();
        }
        self
    }

    /// Returns the kind of port that this configuration requires.
    #[must_use]
    pub fn kind(&self) -> PortKind {
        if !self.is_steady() {
            return PortKind::Event;
        }
        match &self.classes[..] {
            [class] if class.limit_packets == u32::MAX && class.trim.is_none() => PortKind::Fifo,
            _ => PortKind::Lazy,
        }
    }

    /// Returns `true` if departures follow only from arrivals, and nothing else needs them
    /// immediately.
    fn is_steady(&self) -> bool {
        let is_steady = |class: &ClassConfig<W>| {
            class.rate_limit.is_none() && !class.algorithm.acts_on_dequeue()
        };
        self.classes.iter().all(is_steady)
            && matches!(self.buffer, Buffer::Own(_))
            && !self.pausable
            && !self.variable
    }

    /// Checks the classes whose packets are trimmed.
    fn check_trimming(&self) -> Result<(), String> {
        let trims = self.classes.iter().filter(|class| class.trim.is_some()).count();
        if trims > 1 {
            return Err(format!("{trims} classes are trimmed; at most one class of a port can be"));
        }
        for (number, class) in self.classes.iter().enumerate() {
            let Some(trim) = class.trim else { continue };
            let other = trim.class.index() != number && trim.class.index() < self.classes.len();
            if trim.keeps_headers && !other {
                return Err(format!(
                    "class {number} is trimmed to {}; name another class of the port",
                    trim.class
                ));
            }
            if class.limit == Bytes::MAX || trim.bytes == 0 {
                return Err(format!(
                    "class {number} is trimmed to headers of {} B without effect; it needs a limit, \
                     and headers of 1 B or more",
                    trim.bytes
                ));
            }
            if let Buffer::Shared { .. } = self.buffer {
                return Err(format!(
                    "class {number} is trimmed in a shared memory; trimming needs the port's own buffer"
                ));
            }
        }
        Ok(())
    }

    /// Checks the configuration.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.rate.as_bps() == 0 {
            return Err("its rate is 0; a link needs a rate above 0".into());
        }
        if let Buffer::Shared { alpha } = self.buffer
            && !(alpha > 0.0 && alpha.is_finite())
        {
            return Err(format!("alpha is {alpha}; it must be a finite number above 0"));
        }
        if self.classes.is_empty() || self.classes.len() > 256 {
            return Err(format!("it has {} classes; it must have 1 to 256", self.classes.len()));
        }
        let mut levels = [false; 256];
        self.classes.iter().for_each(|class| levels[usize::from(class.priority)] = true);
        let levels = levels.iter().filter(|used| **used).count();
        if levels > MAX_LEVELS {
            return Err(format!(
                "its classes have {levels} different priorities; there may be at most {MAX_LEVELS}"
            ));
        }
        if let Some(class) = self.classes.iter().position(|c| c.weight == 0) {
            return Err(format!("class {class} has weight 0; a weight must be above 0"));
        }
        self.check_trimming()?;
        let limits = || self.classes.iter().filter_map(|c| c.rate_limit);
        if limits().count() > 1 {
            return Err(format!(
                "{} classes are rate-limited; at most one class of a port can be",
                limits().count()
            ));
        }
        if limits().any(|l| l.rate.as_bps() == 0 || l.burst == Bytes::ZERO) {
            return Err("a rate limit has rate or burst 0; both must be above 0".into());
        }
        Ok(())
    }
}
