//! DCQCN's notification point: notifies the sender of marked packets (DCQCN §3.1, Fig. 6).

use apus_units::{Span, Time};

use apus_cc::{DataEvent, Receiver, ReceiverControl};

/// The receiver half: notifies the sender of the first marked packet at once, and of further ones within an
/// interval together at its end.
#[derive(Clone, Debug)]
pub struct NotificationPoint {
    interval: Span,
    /// Earliest time of the next notification.
    allowed_at: Time,
    /// Time of the pending notification; [`Time::MAX`] if none is due.
    due_at: Time,
}

impl NotificationPoint {
    /// Creates a notification point that sends at most one notification per `interval`.
    #[must_use]
    pub fn new(interval: Span) -> Self {
        Self { interval, allowed_at: Time::ZERO, due_at: Time::MAX }
    }
}

impl Receiver for NotificationPoint {
    #[inline]
    fn on_data(&mut self, event: &DataEvent) -> bool {
        if event.marked && self.due_at == Time::MAX {
            self.due_at = self.allowed_at.max(event.now);
        }
        true
    }

    #[inline]
    fn next_control(&self) -> Time {
        self.due_at
    }

    fn poll_control(&mut self, now: Time) -> Option<ReceiverControl> {
        if self.due_at > now {
            return None;
        }
        self.due_at = Time::MAX;
        self.allowed_at = now.saturating_add(self.interval);
        Some(ReceiverControl::Notification)
    }

    fn sends_control(&self) -> bool {
        true
    }
}
