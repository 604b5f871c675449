//! `apus_swift`: the algorithm without the transport, for use in other transports.

use std::ffi::c_char;

use apus_algorithms::BuiltInSender;
use apus_algorithms::registry::build;
use apus_cc::{AckEvent, AlgorithmFactory, FlowInfo, LossEvent, Pacing, Sender, TimeoutEvent};
use apus_units::{Span, Time};

use crate::failure::{Failure, call};
use crate::pointer::{Out, given, hand_out, put, text};

/// The sender half of one flow.
pub struct apus_swift {
    sender: BuiltInSender,
}

/// `apus_ack`.
#[repr(C)]
pub struct apus_ack {
    now_ns: u64,
    rtt_ns: u64,
    endpoint_delay_ns: u64,
    acked_packets: u32,
    hops: u8,
}

/// `apus_allowance`.
#[repr(C)]
#[allow(dead_code)] // C reads them
pub struct apus_allowance {
    cwnd: f64,
    packets: u32,
    pacing_delay_ns: u64,
    rto_ns: u64,
    fabric_cwnd: f64,
    endpoint_cwnd: f64,
    target_ns: u64,
}

/// Returns an instant of a clock of the caller, which may have any epoch. Swift uses only differences of instants, modulo
/// 2^64 ps (213 days), so the instant may wrap around. It is never [`Time::MAX`], because it is a multiple of 8.
fn time(ns: u64) -> Time {
    Time::from_ps(ns.wrapping_mul(1_000))
}

fn span(ns: u64) -> Span {
    Span::from_ps(ns.saturating_mul(1_000))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_swift_create(
    settings: *const c_char,
    swift: Out<'_, Box<apus_swift>>,
) -> i32 {
    hand_out(swift, "swift", || {
        let settings = if settings.is_null() {
            ""
        } else {
            // SAFETY: the header requires a text.
            unsafe { text(settings, "settings") }?
        };
        let mut pairs = Vec::new();
        for word in settings.split_whitespace() {
            let pair = word.split_once('=').ok_or_else(|| {
                Failure::invalid(format!(
                    "`{word}` is not a setting; write name=value, as in base_target=25us"
                ))
            })?;
            pairs.push(pair);
        }
        let built = build("swift", Some("paper"), &pairs);
        let config = built.map_err(|error| Failure::invalid(error.to_string()))?;
        Ok(apus_swift { sender: config.sender(&FlowInfo::default()) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_swift_on_ack(swift: Option<&mut apus_swift>, ack: Option<&apus_ack>) -> i32 {
    call(|| {
        let (swift, ack) = (given(swift, "swift")?, given(ack, "ack")?);
        if ack.endpoint_delay_ns > ack.rtt_ns {
            return Err(Failure::invalid("endpoint_delay_ns must be at most rtt_ns"));
        }
        let mut event = AckEvent::new(time(ack.now_ns), span(ack.rtt_ns));
        event.fabric_delay = span(ack.rtt_ns - ack.endpoint_delay_ns);
        event.endpoint_delay = span(ack.endpoint_delay_ns);
        event.hops = ack.hops;
        event.acked_packets = ack.acked_packets;
        swift.sender.on_ack(&event);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_swift_on_loss(swift: Option<&mut apus_swift>, now_ns: u64) -> i32 {
    call(|| {
        let event = LossEvent::new(time(now_ns), 1);
        given(swift, "swift")?.sender.on_loss(&event);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_swift_on_timeout(swift: Option<&mut apus_swift>, now_ns: u64) -> i32 {
    call(|| {
        let event = TimeoutEvent::new(time(now_ns));
        given(swift, "swift")?.sender.on_timeout(&event);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_swift_allowance(
    swift: Option<&apus_swift>,
    allowance: Out<'_, apus_allowance>,
) -> i32 {
    call(|| {
        let swift = given(swift, "swift")?;
        let allowed = swift.sender.allowance();
        let state = swift.sender.snapshot();
        let result = apus_allowance {
            cwnd: allowed.window,
            packets: allowed.packets(),
            pacing_delay_ns: match allowed.pacing {
                Pacing::Delay(delay) => delay.as_ps() / 1_000,
                Pacing::AckClocked | Pacing::Own { .. } | Pacing::Rate(_) | Pacing::Credits => 0,
            },
            rto_ns: swift.sender.rto().as_ps() / 1_000,
            fabric_cwnd: state.fabric_cwnd.unwrap_or(0.0),
            endpoint_cwnd: state.endpoint_cwnd.unwrap_or(0.0),
            target_ns: state.target_delay.map_or(0, |target| target.as_ps() / 1_000),
        };
        put(allowance, result, "allowance")
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_swift_free(_: Option<Box<apus_swift>>) {}
