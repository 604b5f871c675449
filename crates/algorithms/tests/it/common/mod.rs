//! Helpers of the tests: events with sensible defaults, in microseconds and packets.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use apus_algorithms::swift::{Config, Params, Swift};
use apus_cc::{AckEvent, Algorithm, FlowInfo, LossEvent, TimeoutEvent};
use apus_units::{PacketNumber, Span, Time};

pub fn us(us: f64) -> Span {
    Span::from_ps_f64(us * 1e6)
}

pub fn at(us: f64) -> Time {
    Time::from_ps((us * 1e6) as u64)
}

/// An acknowledgement of one packet at `now` us with this fabric delay and no endpoint delay.
pub fn ack(now: f64, fabric_delay: f64) -> AckEvent<'static> {
    {
        let mut event = AckEvent::new(at(now), us(fabric_delay));
        event.next_seq = PacketNumber::new(1);
        event.fields = apus_cc::Fields::NONE;
        event
    }
}

pub fn loss(now: f64) -> LossEvent {
    let (lost_seq, next_seq) = (PacketNumber::new(0), PacketNumber::new(1));
    {
        let mut event = LossEvent::new(at(now), 1);
        event.lost_seq = lost_seq;
        event.next_seq = next_seq;
        event
    }
}

pub fn timeout(now: f64) -> TimeoutEvent {
    {
        let mut event = TimeoutEvent::new(at(now));
        event.next_seq = PacketNumber::new(1);
        event
    }
}

/// The paper's profile with a fixed target of 25 us, a window that starts at 10 packets and an
/// endpoint delay that never limits.
pub fn plain() -> Config {
    let mut config = Config::paper();
    config.target.hop_scale = Span::ZERO;
    config.target.fs_range = Span::ZERO;
    config.initial_cwnd = 10.0;
    config
}

/// Falcon's profile with a fixed target of 25 us and a window that starts at 10 packets.
pub fn plain_falcon() -> Config {
    let mut config = Config::falcon();
    config.target.hop_scale = Span::ZERO;
    config.target.fs_range = Span::ZERO;
    config.initial_cwnd = 10.0;
    config
}

pub fn swift(config: Config) -> Swift {
    let params = Arc::new(Params::new(config).expect("the test's parameters are sound"));
    Swift::new(params, &FlowInfo::default())
}

#[track_caller]
pub fn assert_close(actual: f64, expected: f64) {
    let tolerance = 1e-9 * expected.abs().max(1.0);
    assert!((actual - expected).abs() <= tolerance, "{actual}, expected {expected}");
}

/// The fabric window of a sender.
pub fn fabric_cwnd(sender: &impl apus_cc::Sender) -> f64 {
    sender.snapshot().fabric_cwnd.expect("Swift has one")
}

/// The endpoint window (or receiver-buffer window) of a sender.
pub fn endpoint_cwnd(sender: &impl apus_cc::Sender) -> f64 {
    sender.snapshot().endpoint_cwnd.expect("Swift has one")
}
