//! Choice between event by event and window by window. The results are equal; the choice affects
//! the speed.
//!
//! A window has a cost per link, which pays off with many packets per window.

use apus_cc::AlgorithmFactory;
use apus_units::{Span, Time};

use crate::calendar::Calendar;
use crate::part::Part;
use crate::world::{Entity, Pending};

/// Minimum number of events per window for windows. Measured: `permutation-128` has 2000 and gains
/// a quarter, `incast-100` has 37 and loses a sixth.
const MANY: u64 = 400;
/// Number of events per window below which a run returns to single events.
const FEW: u64 = 200;

/// Minimum number of windows between two choices.
const LEAST: u64 = 16;

/// State of the choice of a part.
pub(crate) struct Pace {
    /// The other store of events, empty; `None` if there is none, because nodes affect each other
    /// without delay.
    other: Option<Pending>,
    window: Span,
    /// Number of events and time at the last choice.
    since: (Time, u64),
    /// Always window by window, for tests.
    always: bool,
}

impl Pace {
    /// Returns the state of a run that begins event by event and may change to this calendar.
    pub(crate) fn new(calendar: Option<Calendar>) -> Self {
        Self {
            window: calendar.as_ref().map_or(Span::ZERO, Calendar::width),
            other: calendar.map(|calendar| Pending::Calendar(Box::new(calendar))),
            since: (Time::ZERO, 0),
            always: false,
        }
    }

    /// Changes to windows for the rest of the run.
    pub(crate) fn hold(&mut self) {
        self.always = true;
    }
}

impl<F: AlgorithmFactory> Part<F> {
    /// Chooses by the events since the last choice. Called between windows.
    pub(crate) fn choose_pace(&mut self) {
        if self.tap.is_some() {
            return;
        }
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

    /// Moves all events to `other` and returns the former store, empty.
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
