//! Event by event or window by window: the results are the same, the better one is the faster.
//!
//! Going through a window costs something per link, which many packets per window repay.

use apus_cc::AlgorithmFactory;
use apus_units::{Span, Time};

use crate::calendar::Calendar;
use crate::part::Part;
use crate::world::{Entity, Pending};

/// From so many events per window on, a run goes on window by window: measured, `permutation-128` has
/// 2000 and gains a quarter, `incast-100` has 37 and loses a sixth.
const MANY: u64 = 400;
/// Below so many it goes on event by event.
const FEW: u64 = 200;

/// Windows between one choice and the next, at least.
const LEAST: u64 = 16;

/// How a part goes on.
pub(crate) struct Pace {
    /// The other way to keep events, empty; `None` if there is none, because nodes touch each other at
    /// once.
    other: Option<Pending>,
    window: Span,
    /// Where the events counted begin.
    since: (Time, u64),
    /// Window by window even if little happens: for tests.
    always: bool,
}

impl Pace {
    /// For a run that begins event by event, and may go on by this calendar.
    pub(crate) fn new(calendar: Option<Calendar>) -> Self {
        Self {
            window: calendar.as_ref().map_or(Span::ZERO, Calendar::width),
            other: calendar.map(|calendar| Pending::Calendar(Box::new(calendar))),
            since: (Time::ZERO, 0),
            always: false,
        }
    }

    /// Window by window from here on.
    pub(crate) fn hold(&mut self) {
        self.always = true;
    }
}

impl<F: AlgorithmFactory> Part<F> {
    /// Chooses how to go on, by what happened since it was asked last. Between windows.
    pub(crate) fn choose_pace(&mut self) {
        let (now, events) = (self.world.now, self.handled.events);
        let (before, count) = self.pace.since;
        let windows = now.since(before).as_ps() / self.pace.window.as_ps().max(1);
        if windows < LEAST && !self.pace.always {
            return;
        }
        self.pace.since = (now, events);
        let change = match self.world.pending {
            Pending::Queue(_) => self.pace.always || events - count >= MANY * windows,
            Pending::Calendar(_) => !self.pace.always && events - count < FEW * windows,
        };
        if change && let Some(other) = self.pace.other.take() {
            let emptied = self.change_pace(other);
            self.pace.other = Some(emptied);
        }
    }

    /// Moves all events over to `other`; what kept them so far comes back empty.
    fn change_pace(&mut self, other: Pending) -> Pending {
        let mut emptied = core::mem::replace(&mut self.world.pending, other);
        match (&mut emptied, &mut self.world.pending) {
            (Pending::Queue(from), Pending::Calendar(to)) => {
                to.restart(self.world.now);
                let entities = self.world.entities;
                from.drain(|entity, at| {
                    if let Entity::Fabric(event) = entities.of(entity) {
                        to.push(event, at);
                    }
                });
            }
            (Pending::Calendar(from), Pending::Queue(to)) => {
                let entities = self.world.entities;
                from.drain(|event, at| to.push(entities.fabric(event), at));
            }
            (Pending::Queue(_), Pending::Queue(_))
            | (Pending::Calendar(_), Pending::Calendar(_)) => {}
        }
        for host in &self.hosts {
            if host.wake_at() < Time::MAX {
                self.world.schedule_host(host.id, host.wake_at());
            }
        }
        emptied
    }
}
