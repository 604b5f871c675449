//! The order in which a port serves classes of the same priority.
//!
//! A new scheduler is one file with a type that implements [`Scheduler`], and one line in the table
//! at the end of this file.

mod drr;
mod stfq;

/// The first packet of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Size on the wire.
    pub(crate) bytes: u32,
}

/// The state of a scheduler for the classes of one priority level of a port, two or more.
///
/// The port serves levels in strict priority and asks the scheduler of the highest level that has a
/// packet to serve. A level of one class has no scheduler. Classes are numbered within their level, in
/// the order of their numbers in the port.
pub(crate) trait Scheduler: Clone {
    /// Creates the scheduler of classes with these weights, all above 0.
    fn new(weights: &[u32]) -> Self;

    /// Chooses the class whose first packet the port serves now.
    ///
    /// `heads` has an entry for each class: its first packet, or `None` if the class has no packet,
    /// is paused, or has no tokens for it. The port calls this when the link is free, and serves the
    /// packet.
    ///
    /// The result is a class with a packet, and `None` only if no class has one: schedulers are
    /// work-conserving.
    fn next(&mut self, heads: &[Option<Head>]) -> Option<usize>;

    /// Records a choice for which [`Scheduler::next`] is not called: only this class has a packet.
    fn note_sole(&mut self, class: usize, head: Head);

    /// Reports that the port has become empty, so that the next packet begins a new busy period.
    fn on_idle(&mut self);
}

macro_rules! schedulers {
    ($($(#[$doc:meta])* $variant:ident($type:ty) = $word:literal, $meaning:literal;)+) => {
        /// The schedulers. The first one is the default.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SchedulerKind {
            $($(#[$doc])* $variant,)+
        }

        impl SchedulerKind {
            /// Name of each scheduler in scenarios.
            pub const WORDS: [(&'static str, Self); [$($word),+].len()] =
                [$(($word, Self::$variant)),+];

            /// Description of the scenario key that selects the scheduler.
            pub const DOC: &'static str = concat!(
                "Order in which a port serves classes of the same priority",
                $("; \"", $word, "\": ", $meaning),+
            );

            /// Creates the scheduler of classes with these weights.
            pub(crate) fn build(self, weights: &[u32]) -> BuiltInScheduler {
                match self {
                    $(Self::$variant => {
                        BuiltInScheduler::$variant(<$type as Scheduler>::new(weights))
                    })+
                }
            }
        }

        /// A scheduler of any kind, so that a call is resolved by one branch.
        #[derive(Clone)]
        pub(crate) enum BuiltInScheduler {
            $($variant($type),)+
        }

        impl BuiltInScheduler {
            /// Chooses a class; see [`Scheduler::next`].
            #[inline]
            pub(crate) fn next(&mut self, heads: &[Option<Head>]) -> Option<usize> {
                match self {
                    $(Self::$variant(scheduler) => scheduler.next(heads),)+
                }
            }

            /// Records a choice; see [`Scheduler::note_sole`].
            #[inline]
            pub(crate) fn note_sole(&mut self, class: usize, head: Head) {
                match self {
                    $(Self::$variant(scheduler) => scheduler.note_sole(class, head),)+
                }
            }

            /// Begins a new busy period; see [`Scheduler::on_idle`].
            pub(crate) fn on_idle(&mut self) {
                match self {
                    $(Self::$variant(scheduler) => scheduler.on_idle(),)+
                }
            }
        }
    };
}

schedulers! {
    /// Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996).
    StartTime(stfq::StartTime) = "stfq", "start-time fair queueing";
    /// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
    DeficitRoundRobin(drr::DeficitRoundRobin) = "drr", "deficit round robin";
}

impl Default for SchedulerKind {
    fn default() -> Self {
        Self::WORDS[0].1
    }
}
