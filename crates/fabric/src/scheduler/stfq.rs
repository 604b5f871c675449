//! Start-time fair queueing: Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996. It stays
//! fair when the rate of the link varies.

use alloc::boxed::Box;

use super::{Head, Scheduler};

/// Units of a tag per byte at weight 1. Tags start from 0 in each busy period; 64 bits suffice for
/// 4.5 PB per period.
const TAG_UNITS: u64 = 1 << 12;

/// A packet that reaches the head of its class gets the start tag max(virtual time, finish tag of
/// its predecessor) and the finish tag start + bytes / weight. The port serves the packet with the
/// smallest start tag, and the virtual time is the start tag of the packet in service. A class that
/// was idle, paused or out of tokens is therefore not compensated for missed service.
#[derive(Clone)]
pub(crate) struct StartTime {
    virtual_time: u64,
    classes: Box<[Class]>,
}

#[derive(Clone)]
struct Class {
    /// Finish tag of the packet of the class that was served last.
    finish: u64,
    weight: u64,
}

impl Scheduler for StartTime {
    fn new(weights: &[u32]) -> Self {
        let class = |weight: &u32| Class { finish: 0, weight: u64::from(*weight) };
        Self { virtual_time: 0, classes: weights.iter().map(class).collect() }
    }

    #[inline]
    fn next(&mut self, heads: &[Option<Head>]) -> Option<usize> {
        let mut first: Option<(u64, usize, Head)> = None;
        for (index, (class, head)) in self.classes.iter().zip(heads).enumerate() {
            let Some(head) = *head else { continue };
            let start = class.finish.max(self.virtual_time);
            if first.is_none_or(|(earliest, ..)| start < earliest) {
                first = Some((start, index, head));
            }
        }
        let (_, index, head) = first?;
        self.note_sole(index, head);
        Some(index)
    }

    #[inline]
    fn note_sole(&mut self, class: usize, head: Head) {
        let class = &mut self.classes[class];
        self.virtual_time = class.finish.max(self.virtual_time);
        class.finish = self.virtual_time + u64::from(head.bytes) * TAG_UNITS / class.weight;
    }

    fn on_idle(&mut self) {
        self.virtual_time = 0;
        self.classes.iter_mut().for_each(|class| class.finish = 0);
    }
}
