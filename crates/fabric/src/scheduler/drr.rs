//! Deficit round robin: Shreedhar and Varghese, "Efficient Fair Queueing using Deficit Round Robin",
//! SIGCOMM 1995.

use alloc::boxed::Box;

use super::{Head, Scheduler};

/// Classes take turns. At its turn a class may send a quantum of bytes in addition to its deficit:
/// the bytes that it could not use at its previous turn because its next packet was larger. A class
/// that has no packet to serve at its turn loses its deficit.
///
/// The quanta are proportional to the weights. The smallest quantum is the largest packet so far,
/// so that every turn serves a packet and a choice takes at most one round.
///
/// deviation: the paper serves classes in the order in which they became backlogged, and leaves the
/// quantum to the operator. Here classes take turns by number. The bounds on the shares depend on
/// neither.
/// unverified: the text of the paper was not available.
#[derive(Clone)]
pub(crate) struct DeficitRoundRobin {
    classes: Box<[Class]>,
    smallest_weight: u64,
    /// The class whose turn it is.
    turn: usize,
    /// Whether the class has received its quantum of this turn.
    granted: bool,
    /// The largest packet so far, in bytes.
    largest: u64,
}

#[derive(Clone)]
struct Class {
    weight: u64,
    /// Bytes that the class may still send.
    deficit: u64,
}

impl DeficitRoundRobin {
    /// Lets classes take turns until one serves its packet, and returns that class. At least one
    /// class must have a packet.
    fn serve_turns(&mut self, head_of: impl Fn(usize) -> Option<Head>) -> usize {
        loop {
            let class = &mut self.classes[self.turn];
            match head_of(self.turn) {
                Some(head) => {
                    if !self.granted {
                        self.granted = true;
                        class.deficit += self.largest * class.weight / self.smallest_weight;
                    }
                    if u64::from(head.bytes) <= class.deficit {
                        class.deficit -= u64::from(head.bytes);
                        return self.turn;
                    }
                }
                None => class.deficit = 0,
            }
            self.turn = (self.turn + 1) % self.classes.len();
            self.granted = false;
        }
    }
}

impl Scheduler for DeficitRoundRobin {
    fn new(weights: &[u32]) -> Self {
        let class = |weight: &u32| Class { weight: u64::from(*weight), deficit: 0 };
        let smallest_weight = u64::from(weights.iter().copied().min().unwrap_or(1));
        let classes = weights.iter().map(class).collect();
        Self { classes, smallest_weight, turn: 0, granted: false, largest: 0 }
    }

    #[inline]
    fn next(&mut self, heads: &[Option<Head>]) -> Option<usize> {
        let bytes = |head: &Head| u64::from(head.bytes);
        self.largest = heads.iter().flatten().map(bytes).max()?.max(self.largest);
        Some(self.serve_turns(|class| heads[class]))
    }

    #[inline]
    fn note_sole(&mut self, class: usize, head: Head) {
        self.largest = self.largest.max(u64::from(head.bytes));
        self.serve_turns(|number| (number == class).then_some(head));
    }

    fn on_idle(&mut self) {
        self.granted = false;
        self.classes.iter_mut().for_each(|class| class.deficit = 0);
    }
}
