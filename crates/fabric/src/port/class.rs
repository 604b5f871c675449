//! The classes of a port and their levels of priority.

use alloc::boxed::Box;
use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::planted::{Bug, is_planted};
use apus_units::{Bytes, Rate, Ring, Span, Time};

use super::control::rate_of;
use super::link::FIRST_SLOTS;
use crate::config::{ClassConfig, PortKind, RateLimit};
use crate::counters::{Count, DropReason};
use crate::packet::PacketRef;
use crate::scheduler::{BuiltInScheduler, Head, SchedulerKind};

/// A packet that is queued for service.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) packet: PacketRef,
    pub(super) bytes: u32,
}

impl Default for Waiting {
    /// Returns the content of an empty slot of a ring.
    fn default() -> Self {
        Self { packet: PacketRef::NONE, bytes: 0 }
    }
}

/// A token bucket, stored as the time at which it will be full: exact in picoseconds, without
/// updates as time passes.
struct TokenBucket {
    rate: Rate,
    configured: Rate,
    burst: u64,
    full_at: Time,
}

impl TokenBucket {
    fn new(limit: &RateLimit) -> Self {
        let rate = limit.rate;
        Self { rate, configured: rate, burst: limit.burst.get(), full_at: Time::ZERO }
    }

    fn fill_time(&self, bytes: u64) -> Span {
        self.rate.serialization_time(Bytes::new(bytes))
    }

    /// Changes the rate from `now` on; the tokens in the bucket are kept.
    fn set_rate(&mut self, now: Time, rate: Rate) {
        let lacks = u128::from(self.full_at.as_ps().saturating_sub(now.as_ps()));
        let lacks = (lacks * u128::from(self.rate.as_bps())).div_ceil(u128::from(rate.as_bps()));
        self.full_at = now.saturating_add(Span::from_ps(lacks.min(u128::from(u64::MAX)) as u64));
        self.rate = rate;
    }

    /// Returns the time at which the bucket holds tokens for a packet of `bytes`. A bucket that is
    /// not full lacks `rate * (full_at - now)` tokens, and may lack `burst - bytes` to serve the
    /// packet.
    fn ready_at(&self, bytes: u32) -> Time {
        let may_lack = self.burst.saturating_sub(u64::from(bytes));
        // Rounded down, so that the packet is never served before its tokens are there.
        let early = (u128::from(may_lack) * 8_000_000_000_000 / u128::from(self.rate.as_bps()))
            .min(u128::from(u64::MAX)) as u64;
        self.full_at.saturating_sub(Span::from_ps(early))
    }

    fn spend(&mut self, now: Time, bytes: u32) {
        let from = if is_planted(Bug::TokensSaved) { self.full_at } else { self.full_at.max(now) };
        self.full_at = from + self.fill_time(u64::from(bytes));
    }
}

/// A class: its queue, its scheduling state and its switch half. Fields that every packet needs
/// come first. A FIFO port uses only the switch half; its queue is the ring of its link.
#[repr(C, align(64))]
pub(super) struct Class<W> {
    /// Queued packets, without the one in service.
    pub(super) queue: Ring<Waiting>,
    /// Bytes in the port, a packet in service included, as of the time up to which the port has
    /// been updated.
    pub(super) bytes: u64,
    /// Packets of the class that were offered to the port.
    pub(super) offered: Count,
    bucket: Option<Box<TokenBucket>>,
    pub(super) paused: bool,
    /// Whether packets without room are trimmed.
    pub(super) trims: bool,
    /// Whether a packet is served as it joins if no other packet is queued and nothing can stop the
    /// port: the class has no rate limit, and its switch half does not see leaving packets.
    pub(super) prompt: bool,
    /// Index of the class's priority level.
    pub(super) level: u8,
    /// Number of times the class was paused.
    pub(super) pauses: u32,
    limit: u64,
    limit_packets: u64,
    /// Packets dropped at the port.
    pub(super) dropped: Count,
    /// Current and maximum bytes of packets that were sent in this class. These two fields and the
    /// next two are counted only by ports of kind [`PortKind::Event`].
    pub(super) own_bytes: u64,
    pub(super) max_own_bytes: u64,
    /// Current and maximum bytes of packets that were sent in a class that the port does not have,
    /// and that joined this class since it was last empty.
    foreign_bytes: u64,
    pub(super) max_foreign_bytes: u64,
    pub(super) algorithm: W,
}

impl<W: SwitchHalf> Class<W> {
    pub(super) fn new(config: &ClassConfig<W>, kind: PortKind, levels: &[Level]) -> Self {
        let queue = match kind {
            PortKind::Fifo => Ring::default(),
            PortKind::Lazy | PortKind::Event => Ring::with_slots(FIRST_SLOTS),
        };
        let level = levels.iter().position(|level| level.priority == config.priority);
        let level = level.expect("each priority has a level");
        Self {
            queue,
            bytes: 0,
            offered: Count::default(),
            bucket: config.rate_limit.as_ref().map(|limit| Box::new(TokenBucket::new(limit))),
            paused: false,
            trims: config.trim.is_some(),
            prompt: config.rate_limit.is_none() && !config.algorithm.acts_on_dequeue(),
            level: level as u8,
            pauses: 0,
            limit: config.limit.get(),
            limit_packets: u64::from(config.limit_packets),
            dropped: Count::default(),
            own_bytes: 0,
            max_own_bytes: 0,
            foreign_bytes: 0,
            max_foreign_bytes: 0,
            algorithm: config.algorithm.clone(),
        }
    }

    /// Sets the limit of the class in bytes. The link has this fraction of its rate from `now` on;
    /// rate limits and thresholds scale with it.
    pub(super) fn set_capacity(&mut self, now: Time, limit: u64, fraction: f64) {
        self.limit = limit;
        if let Some(bucket) = &mut self.bucket {
            bucket.set_rate(now, rate_of(bucket.configured, fraction));
        }
        self.algorithm.on_capacity(fraction);
    }

    /// Returns the maximum number of bytes of the class.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns `true` if the class has a limit of its own.
    pub(super) fn is_limited(&self) -> bool {
        self.limit < u64::MAX || self.limit_packets < u64::from(u32::MAX)
    }

    /// Returns `true` if the class's own limits leave room for a packet.
    pub(super) fn has_room(&self, bytes: u32) -> bool {
        (self.queue.len() as u64) < self.limit_packets
            && self.bytes + u64::from(bytes) <= self.limit
    }

    /// Reports to the switch half that a packet found no room. `in_port` is set if the port had
    /// room for it, but the class had not.
    #[cold]
    pub(super) fn refuse(&mut self, bytes: u32, in_port: bool) -> DropReason {
        self.algorithm.on_refused(Bytes::new(u64::from(bytes)));
        if in_port && self.bucket.is_some() { DropReason::RateLimit } else { DropReason::Buffer }
    }

    /// Counts a packet that is about to join, according to the class in which it was sent: this
    /// class, or one that the port does not have.
    pub(super) fn note_joining(&mut self, bytes: u32, own: bool) {
        if self.bytes == 0 {
            self.foreign_bytes = 0;
        }
        if own {
            self.own_bytes += u64::from(bytes);
            self.max_own_bytes = self.max_own_bytes.max(self.own_bytes);
        } else {
            self.foreign_bytes += u64::from(bytes);
            self.max_foreign_bytes = self.max_foreign_bytes.max(self.foreign_bytes);
        }
    }

    /// Returns the first queued packet.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<Head> {
        self.queue.front().map(|waiting| Head { bytes: waiting.bytes })
    }

    /// Returns the first packet if it may be served. If its tokens will be available only in the
    /// future, sets `not_before` to that time.
    #[inline(always)]
    pub(super) fn head(&self, now: Time, not_before: &mut Option<Time>) -> Option<Head> {
        let bytes = self.queue.front().filter(|_| !self.paused)?.bytes;
        if let Some(bucket) = &self.bucket {
            let ready = bucket.ready_at(bytes);
            if ready > now {
                *not_before = Some(ready);
                return None;
            }
        }
        Some(Head { bytes })
    }

    /// Removes the first packet, which is in service from `now` on.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Time) -> Waiting {
        let Some(&served) = self.queue.front() else {
            unreachable!("the scheduler chose a class with a packet")
        };
        self.queue.discard(1);
        if let Some(bucket) = &mut self.bucket {
            bucket.spend(now, served.bytes);
        }
        served
    }
}

/// The classes of one priority level.
#[derive(Clone)]
pub(super) struct Level {
    priority: u8,
    /// Number of the first class.
    first: u8,
    /// State of the choice, if there are several classes.
    several: Option<Box<Several>>,
}

/// Several classes of one priority level.
#[derive(Clone)]
struct Several {
    scheduler: BuiltInScheduler,
    /// Numbers of the classes, ascending.
    classes: Box<[u8]>,
    /// The first packets of the classes, for the scheduler.
    heads: Box<[Option<Head>]>,
}

impl Level {
    /// Returns the priority levels of these classes, in the order of service.
    pub(super) fn all<W>(classes: &[ClassConfig<W>], scheduler: SchedulerKind) -> Box<[Self]> {
        let mut priorities: Vec<u8> = classes.iter().map(|class| class.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        let level = |priority| {
            let of_level = classes.iter().enumerate().filter(|(_, c)| c.priority == priority);
            // Class numbers have 8 bits.
            let (numbers, weights): (Vec<u8>, Vec<u32>) =
                of_level.map(|(number, class)| (number as u8, class.weight)).unzip();
            let several = (numbers.len() > 1).then(|| {
                Box::new(Several {
                    scheduler: scheduler.build(&weights),
                    heads: numbers.iter().map(|_| None).collect(),
                    classes: numbers.as_slice().into(),
                })
            });
            Self { priority, first: numbers[0], several }
        };
        priorities.into_iter().map(level).collect()
    }

    /// Returns the number of the class to be served next, among the classes for which `head`
    /// returns a packet; `None` if there is no such class.
    #[inline(always)]
    pub(super) fn choose(&mut self, mut head: impl FnMut(usize) -> Option<Head>) -> Option<usize> {
        if let Some(several) = &mut self.several {
            return several.choose(head);
        }
        let class = usize::from(self.first);
        head(class).map(|_| class)
    }

    /// Records that a packet of a class is served, the only one at the port.
    #[inline]
    pub(super) fn note_sole(&mut self, class: usize, bytes: u32) {
        if let Some(several) = &mut self.several
            && let Some(place) = several.classes.iter().position(|&of| usize::from(of) == class)
        {
            several.scheduler.note_sole(place, Head { bytes });
        }
    }

    /// Returns `true` if a scheduler chooses among the classes of the level.
    pub(super) fn has_scheduler(&self) -> bool {
        self.several.is_some()
    }

    /// Returns `true` if no packet of the level's classes is queued.
    #[inline(always)]
    pub(super) fn is_empty<W>(&self, classes: &[Class<W>]) -> bool {
        match &self.several {
            None => classes[usize::from(self.first)].queue.is_empty(),
            Some(several) => {
                several.classes.iter().all(|&class| classes[usize::from(class)].queue.is_empty())
            }
        }
    }

    /// Begins a new busy period when a packet joins the empty port.
    #[inline]
    pub(super) fn on_idle(&mut self) {
        if let Some(several) = &mut self.several {
            several.scheduler.on_idle();
        }
    }

    /// Returns the number of the level's class, if there is only one.
    pub(super) fn only_class(&self) -> usize {
        usize::from(self.first)
    }
}

impl Several {
    fn choose(&mut self, mut head_of: impl FnMut(usize) -> Option<Head>) -> Option<usize> {
        for (head, &class) in self.heads.iter_mut().zip(&self.classes) {
            *head = head_of(usize::from(class));
        }
        let place = self.scheduler.next(&self.heads)?;
        Some(usize::from(self.classes[place]))
    }
}
