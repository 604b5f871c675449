//! The classes of a port: their queues and which is served next.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use apus_cc::{ClassView, SwitchHalf};
use apus_units::{Bytes, Rate, Span, Time};

use crate::config::{ClassConfig, RateLimit};
use crate::counters::Count;
use crate::packet::PacketRef;
use crate::scheduler::{BuiltInScheduler, Head, SchedulerKind};

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
    bucket: Option<TokenBucket>,
}

impl<W: SwitchHalf> Class<W> {
    /// Returns `true` if the class has its own rate limit.
    pub(super) fn is_rate_limited(&self) -> bool {
        self.bucket.is_some()
    }

    /// Returns the first packet if it may be served. `not_before` becomes the time from which there
    /// are tokens for it, if that is in the future.
    #[inline]
    fn head(&self, now: Time, not_before: &mut Option<Time>) -> Option<Head> {
        let bytes = self.waiting.front().filter(|_| !self.paused)?.bytes;
        if let Some(ready) = self.bucket.as_ref().map(|bucket| bucket.ready_at(bytes))
            && ready > now
        {
            *not_before = Some(ready);
            return None;
        }
        Some(Head { bytes })
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

/// The classes of one priority.
struct Level {
    /// Their indices, ascending.
    classes: Box<[usize]>,
    /// Chooses among several classes; `None` for one class.
    scheduler: Option<BuiltInScheduler>,
    /// The first packets of the classes, for the scheduler.
    heads: Box<[Option<Head>]>,
}

impl Level {
    /// Returns the index of the class to be served from `now` on.
    #[inline]
    fn choose<W: SwitchHalf>(
        &mut self,
        classes: &[Class<W>],
        now: Time,
        not_before: &mut Option<Time>,
    ) -> Option<usize> {
        let Some(scheduler) = &mut self.scheduler else {
            let index = self.classes[0];
            return classes[index].head(now, not_before).map(|_| index);
        };
        for (head, &index) in self.heads.iter_mut().zip(&self.classes) {
            *head = classes[index].head(now, not_before);
        }
        scheduler.next(&self.heads).map(|place| self.classes[place])
    }
}

/// The classes of a port. Levels are served in strict priority; a [scheduler](crate::scheduler::Scheduler)
/// chooses among the classes of a level.
pub(super) struct Classes<W> {
    pub(super) classes: Vec<Class<W>>,
    /// The view of each class for switch halves; the bytes of classes are counted here.
    pub(super) views: Vec<ClassView>,
    /// The level that is served first comes first.
    levels: Box<[Level]>,
}

/// The classes and their views for switch halves, borrowed separately.
pub(super) struct Parts<'a, W> {
    pub(super) classes: &'a mut [Class<W>],
    pub(super) views: &'a [ClassView],
}

impl<W: SwitchHalf> Classes<W> {
    pub(super) fn parts(&mut self) -> Parts<'_, W> {
        Parts { classes: &mut self.classes, views: &self.views }
    }

    pub(super) fn new(configs: &[ClassConfig<W>], scheduler: SchedulerKind) -> Self {
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
            bucket: config.rate_limit.as_ref().map(TokenBucket::new),
        };
        let view = |config: &ClassConfig<W>| ClassView {
            bytes: Bytes::ZERO,
            weight: config.weight,
            priority: config.priority,
        };
        let level = |priority| {
            let of_level = configs.iter().enumerate().filter(|(_, c)| c.priority == priority);
            let (classes, weights): (Vec<usize>, Vec<u32>) =
                of_level.map(|(index, class)| (index, class.weight)).unzip();
            Level {
                scheduler: (classes.len() > 1).then(|| scheduler.build(&weights)),
                heads: classes.iter().map(|_| None).collect(),
                classes: classes.into_boxed_slice(),
            }
        };
        Self {
            classes: configs.iter().map(class).collect(),
            views: configs.iter().map(view).collect(),
            levels: priorities.into_iter().map(level).collect(),
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
        let mut not_before = None;
        for level in &mut self.levels {
            let Some(index) = level.choose(&self.classes, now, &mut not_before) else { continue };
            let class = &mut self.classes[index];
            let served =
                class.waiting.pop_front().expect("the scheduler chose a class with a packet");
            if let Some(bucket) = &mut class.bucket {
                bucket.spend(now, served.bytes);
            }
            return Choice::Serve(index, served);
        }
        not_before.map_or(Choice::Nothing, Choice::NotBefore)
    }

    /// The port has run empty: the next packet begins a new busy period.
    pub(super) fn end_busy_period(&mut self) {
        for level in &mut self.levels {
            if let Some(scheduler) = &mut level.scheduler {
                scheduler.on_idle();
            }
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
