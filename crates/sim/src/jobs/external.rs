//! Messages of a job whose operations come one by one: from a program outside, or from a model of all hosts.

use std::collections::BTreeMap;

use apus_jobs::Message;
use apus_units::Time;

/// What happened to a message of such a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Its first byte has arrived; only with the model of LogGOPS.
    Began,
    /// It has arrived.
    Arrived,
    /// The sender's part is done, by the rule of the job.
    Sent,
    /// The sender has the acknowledgement, after which nothing happens to it; for messages within a host, when they
    /// have arrived.
    Acknowledged,
}

/// A step of a message, which its number names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Happened {
    pub(crate) at: Time,
    pub(crate) job: u32,
    /// The sending rank.
    pub(crate) from: u32,
    pub(crate) message: u32,
    pub(crate) step: Step,
}

/// The messages of a rank that are outstanding, by number, and what happened to them.
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

    /// Notes a step of message `message` of rank `from`.
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
