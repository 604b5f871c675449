//! The sender half of an algorithm: additive increase, multiplicative decrease.

use apus_cc::{
    AckEvent, Allowance, CongestionHeader, LossEvent, Pacing, SendInfo, Sender, Snapshot,
    TimeoutEvent,
};
use apus_units::{PacketNumber, Span, Time};

struct Aimd {
    window: f64,
    /// Packets below this number left before the latest decrease and cause no other one.
    decreased_at: PacketNumber,
}

impl Sender for Aimd {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.window += f64::from(event.acked_packets) / self.window;
    }
    fn on_loss(&mut self, event: &LossEvent) {
        if event.lost_seq >= self.decreased_at {
            (self.window, self.decreased_at) = ((self.window / 2.0).max(1.0), event.next_seq);
        }
    }
    fn on_timeout(&mut self, event: &TimeoutEvent) {
        (self.window, self.decreased_at) = (1.0, event.next_seq);
    }
    fn on_transmit(&mut self, _: &mut CongestionHeader, _: &SendInfo) {}
    fn allowance(&self) -> Allowance {
        Allowance { window: self.window, pacing: Pacing::AckClocked }
    }
    fn rto(&self) -> Span {
        Span::from_ms(10)
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: self.window, ..Snapshot::default() }
    }
}

fn main() {
    let mut flow = Aimd { window: 4.0, decreased_at: PacketNumber::new(0) };
    let now = Time::ZERO + Span::from_us(20);
    flow.on_ack(&AckEvent::new(now, Span::from_us(20)));
    assert_eq!(flow.allowance().window, 4.25);
    assert_eq!(flow.allowance().packets(), 4);
    flow.on_timeout(&TimeoutEvent::new(now + flow.rto()));
    assert!(flow.allowance().admits(0) && !flow.allowance().admits(1));
}
