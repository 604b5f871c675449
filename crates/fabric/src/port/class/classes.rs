//! The classes of a port: their queues and which is served next.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use apus_cc::{ClassView, SwitchHalf};
use apus_units::{Bytes, Rate, Span, Time};

use crate::config::{ClassConfig, RateLimit};
use crate::counters::Count;
use crate::packet::PacketRef;

/// A packet that waits for service.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) packet: PacketRef,
    pub(super) bytes: u32,
}

/// A token bucket, stored as the instant at which it will be full: exact in picoseconds, without
/// updates as time passes.
struct TokenBucket {
    rate: Rate,
    burst: u64,
    full_at: Time,
}

impl TokenBucket {
    fn new(limit: &RateLimit) -> Self {
        Self { rate: limit.rate, burst: limit.burst.get(), full_at: Time::ZERO }
    }

    fn fill_time(&self, bytes: u64) -> Span {
        self.rate.serialization_time(Bytes::new(bytes))
    }

    /// Returns when the bucket holds tokens for a packet of `bytes`. While filling it lacks
    /// `rate * (full_at - now)` tokens, and it may lack `burst - bytes`.
    fn ready_at(&self, bytes: u32) -> Time {
        let may_lack = self.burst.saturating_sub(u64::from(bytes));
        // Rounded down: never ready before the tokens are there.
        let early = (u128::from(may_lack) * 8_000_000_000_000 / u128::from(self.rate.as_bps()))
            .min(u128::from(u64::MAX)) as u64;
        self.full_at.saturating_sub(Span::from_ps(early))
    }

    fn spend(&mut self, now: Time, bytes: u32) {
        self.full_at = self.full_at.max(now) + self.fill_time(u64::from(bytes));
    }
}

/// A class: its queue, its scheduling state and its switch half.
pub(super) struct Class<W> {
    waiting: VecDeque<Waiting>,
    pub(super) limit: u64,
    pub(super) limit_packets: u64,
    /// Bytes of packets that were sent in this class, now and at most.
    pub(super) own_bytes: u64,
    pub(super) max_own_bytes: u64,
    /// Bytes of packets that were sent in a class that the port does not have and joined this one
    /// since it was empty last, now and at most.
    pub(super) foreign_bytes: u64,
    pub(super) max_foreign_bytes: u64,
    /// Packets of the class that were to go out through the port.
    pub(super) offered: Count,
    /// Packets dropped at the port.
    pub(super) dropped: Count,
    pub(super) paused: bool,
    pub(super) algorithm: W,
    /// Index of its priority level, 0 served first.
    level: usize,
    weight: u32,
    /// Start-time fair queueing: finish tag of its packet served last.
    finish: u64,
    bucket: Option<TokenBucket>,
}

impl<W: SwitchHalf> Class<W> {
    /// Returns `true` if the class has its own rate limit.
    pub(super) fn is_rate_limited(&self) -> bool {
        self.bucket.is_some()
    }

    /// Returns the number of queued packets, without the one in service.
    pub(super) fn waiting_packets(&self) -> u64 {
        self.waiting.len() as u64
    }
}

/// The decision of the scheduler.
pub(super) enum Choice {
    /// Serve this packet of this class.
    Serve(usize, Waiting),
    /// The rate-limited class has a packet, but tokens for it only from then on.
    NotBefore(Time),
    /// No class that may send has a packet.
    Nothing,
}

/// The classes of a port. Levels are served in strict priority. Within a level, start-time fair
/// queueing applies (Goyal, Vin and Cheng 1996): a packet that reaches the head of its class gets
/// the start tag max(virtual time, finish tag of its predecessor) and the finish tag start + bytes
/// / weight; the smallest start tag is served, and the level's virtual time is the start tag in
/// service. A class that was idle, paused or out of tokens is therefore not compensated for missed
/// service.
pub(super) struct Classes<W> {
    pub(super) classes: Vec<Class<W>>,
    /// The view of each class for switch halves; the bytes of classes are counted here.
    pub(super) views: Vec<ClassView>,
    /// Virtual time of each level.
    virtual_time: Vec<u64>,
}

/// Units of a tag per byte at weight 1. Tags start from 0 in each busy period, so that 64 bits hold
/// 4.5 PB of it.
const TAG_UNITS: u64 = 1 << 12;

/// The classes and their views for switch halves, borrowed separately.
pub(super) struct Parts<'a, W> {
    pub(super) classes: &'a mut [Class<W>],
    pub(super) views: &'a [ClassView],
}

impl<W: SwitchHalf> Classes<W> {
    pub(super) fn parts(&mut self) -> Parts<'_, W> {
        Parts { classes: &mut self.classes, views: &self.views }
    }

    pub(super) fn new(configs: &[ClassConfig<W>]) -> Self {
        let mut priorities: Vec<u8> = configs.iter().map(|c| c.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        let class = |config: &ClassConfig<W>| Class {
            waiting: VecDeque::new(),
            limit: config.limit.get(),
            limit_packets: u64::from(config.limit_packets),
            own_bytes: 0,
            max_own_bytes: 0,
            foreign_bytes: 0,
            max_foreign_bytes: 0,
            offered: Count::default(),
            dropped: Count::default(),
            paused: false,
            algorithm: config.algorithm.clone(),
            level: priorities.partition_point(|p| *p < config.priority),
            weight: config.weight,
            finish: 0,
            bucket: config.rate_limit.as_ref().map(TokenBucket::new),
        };
        let view = |config: &ClassConfig<W>| ClassView {
            bytes: Bytes::ZERO,
            weight: config.weight,
            priority: config.priority,
        };
        Self {
            classes: configs.iter().map(class).collect(),
            views: configs.iter().map(view).collect(),
            virtual_time: vec![0; priorities.len()],
        }
    }

    pub(super) fn push(&mut self, class: usize, waiting: Waiting) {
        self.views[class].bytes += Bytes::new(u64::from(waiting.bytes));
        self.classes[class].waiting.push_back(waiting);
    }

    /// Bytes of a class in the port, a packet in service included.
    #[inline]
    pub(super) fn bytes(&self, class: usize) -> u64 {
        self.views[class].bytes.get()
    }

    /// A packet of a class has left the port.
    #[inline]
    pub(super) fn leave(&mut self, class: usize, bytes: u32) {
        self.views[class].bytes -= Bytes::new(u64::from(bytes));
    }

    /// Takes the packet to be served from `now` on.
    pub(super) fn choose(&mut self, now: Time) -> Choice {
        let mut best: Option<(usize, u64, usize)> = None;
        let mut not_before = None;
        for (index, class) in self.classes.iter().enumerate() {
            let Some(head) = class.waiting.front() else { continue };
            if class.paused {
                continue;
            }
            if let Some(ready) = class.bucket.as_ref().map(|b| b.ready_at(head.bytes))
                && ready > now
            {
                not_before = Some(ready);
                continue;
            }
            let start = class.finish.max(self.virtual_time[class.level]);
            let key = (class.level, start, index);
            if best.is_none_or(|b| key < b) {
                best = Some(key);
            }
        }
        let Some((level, start, index)) = best else {
            return not_before.map_or(Choice::Nothing, Choice::NotBefore);
        };
        let class = &mut self.classes[index];
        let served = class.waiting.pop_front().expect("the chosen class has a packet");
        self.virtual_time[level] = start;
        class.finish = start + u64::from(served.bytes) * TAG_UNITS / u64::from(class.weight);
        if let Some(bucket) = &mut class.bucket {
            bucket.spend(now, served.bytes);
        }
        Choice::Serve(index, served)
    }

    /// The port has run empty: the next packet begins a new busy period.
    pub(super) fn end_busy_period(&mut self) {
        self.virtual_time.fill(0);
        for class in &mut self.classes {
            class.finish = 0;
        }
    }

    /// Every packet that waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.classes.iter().flat_map(|class| class.waiting.iter())
    }

    /// Takes out a packet that waits, of any class, with the index of its class.
    pub(super) fn pop_any(&mut self) -> Option<(usize, Waiting)> {
        let index = self.classes.iter().position(|class| !class.waiting.is_empty())?;
        let waiting = self.classes[index].waiting.pop_front()?;
        self.leave(index, waiting.bytes);
        Some((index, waiting))
    }
}
