//! Messages of a job whose operations are not in a graph: they come one by one from an external program, or
//! from a model of all hosts.

use std::collections::BTreeMap;

use apus_jobs::Message;
use apus_units::Time;

/// Steps of a message of such a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The first byte of the message has arrived; reported only with the LogGOPS model.
    Began,
    /// The message has arrived.
    Arrived,
    /// The send is done by the rule of the job.
    Sent,
    /// The sender has the acknowledgement, and no further step follows. A message within a host is
    /// acknowledged when it has arrived.
    Acknowledged,
}

/// A step of a message, identified by the number of the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Happened {
    pub(crate) at: Time,
    pub(crate) job: u32,
    /// The sending rank.
    pub(crate) from: u32,
    pub(crate) message: u32,
    pub(crate) step: Step,
}

/// The outstanding messages of a rank by number, and their steps.
#[derive(Debug, Default)]
pub(super) struct Outside {
    messages: BTreeMap<u32, Message>,
    happened: Vec<Happened>,
}

impl Outside {
    pub(super) fn add(&mut self, message: Message) {
        self.messages.insert(message.op, message);
    }

    pub(super) fn message(&self, number: u32) -> Option<Message> {
        self.messages.get(&number).copied()
    }

    /// Records a step of message `message` of rank `from`.
    pub(super) fn note(&mut self, at: Time, job: u32, (from, message): (u32, u32), step: Step) {
        if step == Step::Acknowledged {
            self.messages.remove(&message);
        }
        self.happened.push(Happened { at, job, from, message, step });
    }

    pub(super) fn take(&mut self, into: &mut Vec<Happened>) {
        into.append(&mut self.happened);
    }
}
