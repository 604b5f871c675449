//! Events and allowances as Python objects: times in seconds, sizes in bytes, rates in bits per second.

use apus_cc::{
    AckEvent as Ack, Allowance as Allowed, FlowInfo as Flow, LossEvent as Loss, Pacing,
    PacketSizeEvent as PacketSize, SendInfo as Send, SignalEvent as Signal,
    TimeoutEvent as Timeout,
};
use apus_units::{Rate, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Picoseconds of a second.
const PS: f64 = 1e12;

/// Returns picoseconds in seconds: the number nearest to the quotient.
#[inline]
pub fn seconds(ps: u64) -> f64 {
    ps as f64 / PS
}

/// Returns a time in seconds as a span.
///
/// # Errors
/// If it is negative, not finite, or longer than a day.
pub fn span(seconds: f64, what: &str) -> PyResult<Span> {
    // Rationale: a longer time is probably a mistake of units.
    if (0.0..=86_400.0).contains(&seconds) {
        return Ok(Span::from_ps_f64(seconds * PS));
    }
    Err(PyValueError::new_err(format!("{what} must be from 0 to 86400 seconds, not {seconds}")))
}

/// Returns a point in time, counted from the start of the run or of the engine: an engine may run for months.
///
/// # Errors
/// If it is negative, not finite, or beyond the last time.
pub fn time(seconds: f64, what: &str) -> PyResult<Time> {
    let ps = seconds * PS;
    // The floating-point number nearest to `u64::MAX` is 2^64, which is beyond the limit.
    if (0.0..u64::MAX as f64).contains(&ps) {
        return Ok(Time::from_ps(ps.round() as u64));
    }
    let last = u64::MAX as f64 / PS;
    Err(PyValueError::new_err(format!("{what} must be from 0 to {last:.0} seconds, not {seconds}")))
}

/// Returns a number or a boolean as a Python literal.
fn literal(value: impl std::fmt::Debug) -> String {
    match format!("{value:?}").as_str() {
        "true" => "True".to_owned(),
        "false" => "False".to_owned(),
        number => number.to_owned(),
    }
}

/// Declares a class of events: its attributes, and the defaults of its keyword arguments.
macro_rules! events {
    ($($(#[$doc:meta])* $name:ident { $($(#[$own:meta])* $field:ident: $type:ty = $default:expr,)+ })+) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, get_all, module = "apus._native")]
            #[derive(Clone, Debug)]
            pub struct $name { $($(#[$own])* $field: $type,)+ }

            #[pymethods]
            impl $name {
                #[new]
                #[pyo3(signature = (*, $($field = $default),+))]
                #[allow(clippy::too_many_arguments, reason = "by name, and of some events only")]
                fn new($($field: $type),+) -> Self {
                    Self { $($field),+ }
                }

                fn __repr__(&self) -> String {
                    let mut text = stringify!($name).to_owned() + "(";
                    $(text += &format!("{}={}, ", stringify!($field), literal(self.$field));)+
                    text.truncate(text.len() - 2);
                    text + ")"
                }
            }
        )+
    };
}

events! {
    /// An acknowledgement.
    AckEvent {
        now: f64 = 0.0,
        rtt: f64 = 0.0,
        fabric_delay: f64 = 0.0,
        endpoint_delay: f64 = 0.0,
        hops: u8 = 0,
        acked_packets: u32 = 1,
        marked_packets: u32 = 0,
        acked_seq: u64 = 0,
        next_seq: u64 = 0,
        in_flight: u32 = 0,
    }
    /// Packets that were declared lost.
    LossEvent {
        now: f64 = 0.0,
        lost_packets: u32 = 1,
        lost_seq: u64 = 0,
        next_seq: u64 = 0,
        in_flight: u32 = 0,
    }
    /// A retransmission timeout.
    TimeoutEvent {
        now: f64 = 0.0,
        next_seq: u64 = 0,
        is_same_flight: bool = false,
    }
    /// A congestion signal of a switch.
    SignalEvent {
        now: f64 = 0.0,
        rtt: f64 = 0.0,
        seq: u64 = 0,
        queue: u64 = 0,
        link_rate: f64 = 0.0,
        in_flight: u32 = 0,
    }
    /// Another size of full packets.
    PacketSizeEvent {
        payload_before: u64 = 4096,
        payload: u64 = 4096,
        packet: u64 = 4160,
    }
    /// A data packet that is about to leave.
    SendInfo {
        now: f64 = 0.0,
        seq: u64 = 0,
        pending: u64 = 0,
        in_flight: u32 = 0,
        is_windowed: bool = true,
    }
    /// Properties of its host and of its packets that a flow uses.
    FlowInfo {
        line_rate: f64 = 100e9,
        payload: u64 = 4096,
        packet: u64 = 4160,
        control: u64 = 84,
        seed: u64 = 0,
    }
}

impl From<&Ack<'_>> for AckEvent {
    #[inline]
    fn from(event: &Ack<'_>) -> Self {
        Self {
            now: seconds(event.now.as_ps()),
            rtt: seconds(event.rtt.as_ps()),
            fabric_delay: seconds(event.fabric_delay.as_ps()),
            endpoint_delay: seconds(event.endpoint_delay.as_ps()),
            hops: event.hops,
            acked_packets: event.acked_packets,
            marked_packets: event.marked_packets,
            acked_seq: event.acked_seq.get(),
            next_seq: event.next_seq.get(),
            in_flight: event.in_flight,
        }
    }
}

impl From<&Loss> for LossEvent {
    fn from(event: &Loss) -> Self {
        Self {
            now: seconds(event.now.as_ps()),
            lost_packets: event.lost_packets,
            lost_seq: event.lost_seq.get(),
            next_seq: event.next_seq.get(),
            in_flight: event.in_flight,
        }
    }
}

impl From<&Timeout> for TimeoutEvent {
    fn from(event: &Timeout) -> Self {
        Self {
            now: seconds(event.now.as_ps()),
            next_seq: event.next_seq.get(),
            is_same_flight: event.is_same_flight,
        }
    }
}

impl From<&Signal> for SignalEvent {
    fn from(event: &Signal) -> Self {
        Self {
            now: seconds(event.now.as_ps()),
            rtt: seconds(event.rtt.as_ps()),
            seq: event.seq.get(),
            queue: event.queue.get(),
            link_rate: event.link_rate.as_bps() as f64,
            in_flight: event.in_flight,
        }
    }
}

impl From<&PacketSize> for PacketSizeEvent {
    fn from(event: &PacketSize) -> Self {
        let PacketSize { payload_before, payload, packet } = event;
        Self { payload_before: payload_before.get(), payload: payload.get(), packet: packet.get() }
    }
}

impl From<&Send> for SendInfo {
    fn from(info: &Send) -> Self {
        Self {
            now: seconds(info.now.as_ps()),
            seq: info.seq.get(),
            pending: info.pending.get(),
            in_flight: info.in_flight,
            is_windowed: info.is_windowed,
        }
    }
}

impl From<&Flow> for FlowInfo {
    fn from(flow: &Flow) -> Self {
        Self {
            line_rate: flow.line_rate.as_bps() as f64,
            payload: flow.payload.get(),
            packet: flow.packet.get(),
            control: flow.control.get(),
            seed: flow.seed,
        }
    }
}

/// The rate at which a flow may send: a window in packets, and a pace within it.
#[pyclass(frozen, module = "apus._native")]
pub struct Allowance(pub Allowed);

#[pymethods]
impl Allowance {
    #[new]
    #[pyo3(signature = (window, *, delay=None, rate=None))]
    fn new(window: f64, delay: Option<f64>, rate: Option<f64>) -> PyResult<Self> {
        let pacing = match (delay, rate) {
            (None, None) => Pacing::AckClocked,
            (Some(delay), None) => Pacing::Delay(span(delay, "the delay between packets")?),
            (None, Some(rate)) if (1.0..=1e15).contains(&rate) => {
                Pacing::Rate(Rate::from_bps(rate as u64))
            }
            (None, Some(rate)) => {
                let message =
                    format!("the rate must be from 1 to 1e15 bits per second, not {rate}");
                return Err(PyValueError::new_err(message));
            }
            (Some(_), Some(_)) => {
                let message = "delay and rate are two ways to pace; give one of them";
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(Self(Allowed { window: window_of(window)?, pacing }))
    }

    /// Window in packets.
    #[getter]
    fn window(&self) -> f64 {
        self.0.window
    }

    /// Time between packets in seconds.
    #[getter]
    fn delay(&self) -> Option<f64> {
        if let Pacing::Delay(delay) = self.0.pacing { Some(seconds(delay.as_ps())) } else { None }
    }

    /// Rate in bits per second.
    #[getter]
    fn rate(&self) -> Option<f64> {
        if let Pacing::Rate(rate) = self.0.pacing { Some(rate.as_bps() as f64) } else { None }
    }

    fn __repr__(&self) -> String {
        let mut text = format!("Allowance({:?}", self.0.window);
        if let Some(delay) = self.delay() {
            text += &format!(", delay={delay:?}");
        }
        if let Some(rate) = self.rate() {
            text += &format!(", rate={rate:?}");
        }
        text + ")"
    }
}

/// Returns a window.
///
/// # Errors
/// If it is not above 0.
pub fn window_of(window: f64) -> PyResult<f64> {
    if window > 0.0 {
        return Ok(window);
    }
    let message = format!("the window of an allowance must be above 0 packets, not {window}");
    Err(PyValueError::new_err(message))
}
