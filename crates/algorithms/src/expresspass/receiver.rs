//! ExpressPass's receiver half: sends credits.

use alloc::sync::Arc;

use apus_units::{Span, Time};

use super::feedback::Feedback;
use super::params::Params;
use apus_cc::{DataEvent, FlowInfo, MAX_CREDIT_PADDING, Receiver, ReceiverControl};
use apus_units::random::SplitMix64;

/// The receiver half: closed, or sending credits from a request to the stop.
#[derive(Clone, Debug)]
pub struct ExpressPassReceiver {
    params: Arc<Params>,
    random: SplitMix64,
    /// Credits per second at which the credits and their data fill the line.
    max_rate: f64,
    /// State while the receiver sends credits; `None` otherwise.
    sending: Option<Sending>,
    /// The next credit's number.
    next_number: u32,
}

#[derive(Clone, Debug)]
struct Sending {
    feedback: Feedback,
    next_at: Time,
    heard_at: Time,
}

impl ExpressPassReceiver {
    /// Creates a closed receiver.
    #[must_use]
    pub fn new(params: Arc<Params>, flow: &FlowInfo) -> Self {
        // Credits get control / (control + packet) of the line: 84 / (84 + 1538) = 5.18 %.
        let pair = (flow.control.get() + flow.packet.get()) as f64 * 8.0;
        let max_rate = flow.line_rate.as_bps() as f64 / pair;
        Self { params, random: SplitMix64::new(flow.seed), max_rate, sending: None, next_number: 0 }
    }

    /// The feedback control, while credits are sent.
    #[must_use]
    pub fn feedback(&self) -> Option<&Feedback> {
        self.sending.as_ref().map(|sending| &sending.feedback)
    }

    /// Returns the time to the next credit, jitter included.
    fn gap(&mut self, rate: f64) -> Span {
        let jitter = self.params.jitter * (2.0 * self.random.uniform() - 1.0);
        Span::from_ps_f64(1e12 / rate * (1.0 + jitter))
    }
}

impl Receiver for ExpressPassReceiver {
    fn on_data(&mut self, event: &DataEvent) -> bool {
        // Data that arrived without a credit (a read request) or after the stop is not acknowledged by a
        // credit.
        let (Some(echo), Some(sending)) = (&event.credit, &mut self.sending) else { return true };
        sending.heard_at = event.now;
        sending.feedback.on_echo(&self.params, event.now, echo);
        false
    }

    fn on_credit_request(&mut self, now: Time, packets: u32) {
        if let Some(sending) = &mut self.sending {
            sending.heard_at = now;
            return;
        }
        let first = self.next_number;
        let feedback = Feedback::new(&self.params, self.max_rate, now, first, packets);
        self.sending = Some(Sending { feedback, next_at: now, heard_at: now });
    }

    fn on_credit_stop(&mut self, _: Time) {
        self.sending = None;
    }

    fn next_control(&self) -> Time {
        self.sending.as_ref().map_or(Time::MAX, |sending| sending.next_at)
    }

    fn poll_control(&mut self, now: Time) -> Option<ReceiverControl> {
        let sending = self.sending.as_ref().filter(|sending| sending.next_at <= now)?;
        if now.since(sending.heard_at) >= self.params.idle_timeout {
            self.sending = None;
            return None;
        }
        let (rate, next_at) = (sending.feedback.rate(), sending.next_at);
        let gap = self.gap(rate);
        let padding = if self.params.random_sizes {
            self.random.below(u64::from(MAX_CREDIT_PADDING) + 1) as u8
        } else {
            MAX_CREDIT_PADDING / 2
        };
        if let Some(sending) = &mut self.sending {
            // The gap counts from the time at which this credit was due, so that a coarse timer does not slow
            // the rate. A host that was delayed for longer does not send the missed credits.
            sending.next_at = (next_at + gap).max(now.saturating_sub(gap));
        }
        self.next_number = self.next_number.wrapping_add(1);
        Some(ReceiverControl::Credit { padding })
    }

    fn sends_control(&self) -> bool {
        true
    }
}
