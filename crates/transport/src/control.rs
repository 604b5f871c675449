//! Control packets of a flow: credits, credit requests and stops, notifications.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use apus_cc::{AlgorithmFactory, CreditEvent, Receiver, ReceiverControl, Sender, SenderControl};
use apus_units::{FlowId, PacketNumber, Time};
use apus_wire::{Body, Control, Credit, CreditEcho, Header};

use crate::config::EndpointConfig;
use crate::endpoint::Handled;
use crate::flow::{Extra, Flow};
use crate::receive::Arrival;
use crate::received::{ReceivedPackets, Recorded};
use crate::streams::Finished;

/// State of a flow whose algorithm sends control packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlState {
    /// Unused credits, the oldest first: at most one per packet that waits to be sent.
    held: VecDeque<CreditEcho>,
    /// Number of the next control packet.
    next_seq: u64,
    /// Number of the next credit.
    next_credit: u32,
    /// Numbers of the control packets that arrived, so that each counts once.
    seen: ReceivedPackets,
    /// A request or a stop to be sent.
    pending: Option<SenderControl>,
    /// The queues of turns that contain the flow.
    listed: Listed,
}

/// The queues of turns that contain a flow. Each contains it at most once; an entry whose turn the
/// flow no longer waits for is skipped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) asked: bool,
    pub(crate) unasked: bool,
    /// The group of flows that take turns with this one.
    pub(crate) group: u8,
}

impl Listed {
    pub(crate) fn group(&self) -> usize {
        self.group.into()
    }
}

/// Returns a time in the format of credits.
fn stamp(now: Time) -> u32 {
    // Modulo 2^32 by intent.
    (now.as_ps() / 1_000) as u32
}

/// Returns the credit that a data packet echoes, for the receiver half; the packet arrived at `now`.
pub(crate) fn echoed(now: Time, echo: CreditEcho) -> apus_cc::CreditEcho {
    let rtt = stamp(now).wrapping_sub(echo.sent_at_ns);
    apus_cc::CreditEcho { number: echo.number, rtt: apus_units::Span::from_ns(u64::from(rtt)) }
}

/// Returns the state of control packets, if the flow has any.
#[inline]
fn control_of<P>(extra: &mut Option<Box<Extra<P>>>) -> Option<&mut ControlState> {
    extra.as_mut()?.control.as_mut()
}

impl<F: AlgorithmFactory> Flow<F> {
    /// Returns the time at which the receiver half has a control packet to send or a probe of a
    /// path is due.
    #[inline]
    pub(crate) fn next_control(&self) -> Time {
        // Most flows have no such state and need not ask their receiver half.
        let Some(extra) = &self.extra else { return Time::MAX };
        let probe = extra.spread.as_ref().map_or(Time::MAX, |spread| spread.losses.probe_at());
        match extra.control {
            Some(_) => self.receiver.next_control().min(probe),
            None => probe,
        }
    }

    /// Returns `true` if a credit is available for the next data packet.
    pub(crate) fn has_credit(&self) -> bool {
        self.extra
            .as_ref()
            .and_then(|extra| extra.control.as_ref())
            .is_some_and(|control| !control.held.is_empty())
    }

    /// Takes the credit for the next data packet.
    #[inline]
    pub(crate) fn take_credit(&mut self) -> Option<CreditEcho> {
        control_of(&mut self.extra)?.held.pop_front()
    }

    /// Returns `true` if a control packet of the sender half is ready to be polled.
    pub(crate) fn has_pending_control(&self) -> bool {
        let control = self.extra.as_ref().and_then(|extra| extra.control.as_ref());
        control.is_some_and(|control| control.pending.is_some())
    }

    /// Returns the queues of turns that contain the flow; `None` without control packets.
    pub(crate) fn listed(&mut self) -> Option<&mut Listed> {
        control_of(&mut self.extra).map(|control| &mut control.listed)
    }

    /// Polls the sender half for a control packet. Returns `true` if a control packet is due.
    #[inline]
    pub(crate) fn prepare_control(&mut self, now: Time) -> bool {
        let Some(extra) = &mut self.extra else { return false };
        let probes = extra.spread.as_ref().is_some_and(|spread| spread.losses.probe_at() <= now);
        let Some(control) = &mut extra.control else { return probes };
        if control.pending.is_none() {
            let backlog = self.send.backlog(self.max_payload);
            control.pending = self.algorithm.poll_control(now, &backlog);
        }
        probes || control.pending.is_some() || self.receiver.next_control() <= now
    }

    /// Returns the control packet that is due at `now`.
    pub(crate) fn poll_control(&mut self, now: Time) -> Option<Header> {
        let control = control_of(&mut self.extra)?;
        let body = match control.pending.take() {
            Some(SenderControl::CreditRequest) => {
                let packets = self.send.backlog(self.max_payload).packets;
                Control::CreditRequest { packets: u32::try_from(packets).unwrap_or(u32::MAX) }
            }
            Some(SenderControl::CreditStop) => Control::CreditStop,
            None => match self.receiver.poll_control(now)? {
                ReceiverControl::Notification => Control::Notification,
                ReceiverControl::Grant { total } => Control::Grant { total },
                ReceiverControl::Credit { padding } => {
                    let (number, received) = (control.next_credit, self.receive.received());
                    control.next_credit = number.wrapping_add(1);
                    let sent_at_ns = stamp(now);
                    Control::Credit(Credit { number, sent_at_ns, received, padding })
                }
            },
        };
        let seq = PacketNumber::new(control.next_seq);
        control.next_seq += 1;
        Some(Header { flow: self.peer, seq, body: Body::Control(body) })
    }

    /// Handles a control packet of flow `id`; calls `finish` for each op that ends with it.
    pub(crate) fn on_control(
        &mut self,
        arrival: &Arrival,
        (id, seq): (FlowId, PacketNumber),
        body: &Control,
        config: &EndpointConfig,
        finish: impl FnMut(Finished),
    ) -> Handled {
        debug_assert!(self.is_open(), "{id} is open");
        let Some(control) = control_of(&mut self.extra) else { return Handled::Refused };
        if control.seen.record(seq) != Recorded::New {
            return Handled::Refused;
        }
        match body {
            Control::Credit(credit) => return self.on_credit(arrival, credit, config, finish),
            Control::CreditRequest { packets } => {
                self.receiver.on_credit_request(arrival.now, *packets);
            }
            Control::CreditStop => self.receiver.on_credit_stop(arrival.now),
            Control::Notification => self.algorithm.on_notification(arrival.now),
            Control::Grant { total } => self.algorithm.on_grant(arrival.now, *total),
            // Probes have no numbers of this kind and are handled earlier.
            Control::Probe { .. } | Control::ProbeAnswer { .. } => return Handled::Refused,
        }
        Handled::Control
    }

    /// Handles a credit: it acknowledges data, and permits a packet if one waits to be sent.
    fn on_credit(
        &mut self,
        arrival: &Arrival,
        credit: &Credit,
        config: &EndpointConfig,
        finish: impl FnMut(Finished),
    ) -> Handled {
        if let Some(received) = &credit.received {
            let outcome = self.send.on_received(
                arrival.now,
                (received.largest, received.bitmap),
                config.reorder_threshold,
                finish,
            );
            self.on_lost(arrival.now, &outcome);
        }
        let mut backlog = self.send.backlog(self.max_payload);
        let Some(control) = control_of(&mut self.extra) else { return Handled::Refused };
        let used = (control.held.len() as u64) < backlog.packets;
        if used {
            let Credit { number, sent_at_ns, .. } = *credit;
            control.held.push_back(CreditEcho { number, sent_at_ns });
            backlog.packets -= control.held.len() as u64;
        }
        self.algorithm.on_credit(&CreditEvent { now: arrival.now, used, backlog });
        Handled::Credit { used }
    }
}

#[cfg(test)]
mod tests {
    use apus_units::Span;
    use proptest::prelude::*;

    use super::*;

    /// Picoseconds after which a stamp repeats: 2^32 ns, 4.29 s.
    const WRAPS: u64 = (1 << 32) * 1_000;

    /// Returns the RTT of a credit that was sent at `sent` and whose echo arrived at `now`.
    fn rtt(sent: Time, now: Time) -> Span {
        let echo = echoed(now, CreditEcho { number: 7, sent_at_ns: stamp(sent) });
        assert_eq!(echo.number, 7);
        echo.rtt
    }

    /// Returns the RTT in whole nanoseconds, as the difference of two times that do not wrap around.
    fn exact(sent: Time, now: Time) -> Span {
        Span::from_ns(now.as_ps() / 1_000 - sent.as_ps() / 1_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Credits that are sent near a wrap-around of the stamp, or at any time.
        #[test]
        fn the_rtt_of_an_echo_is_exact_below_2_to_the_32_ns(
            wraps in 1..=u64::MAX / WRAPS,
            near in -2_000_000i64..=2_000_000,
            at in any::<u64>(),
            is_near in any::<bool>(),
            elapsed in prop_oneof![0..WRAPS, 0u64..4_000_000],
        ) {
            let sent = if is_near { (wraps * WRAPS).saturating_add_signed(near) } else { at };
            let sent = Time::from_ps(sent);
            // A time of less than 2^32 ns, as the stamps count them.
            let now = sent.saturating_add(Span::from_ps(elapsed));
            prop_assume!(exact(sent, now) < Span::from_ns(1 << 32));
            prop_assert_eq!(rtt(sent, now), exact(sent, now));
            // Later, multiples of 2^32 ns are missing.
            if let Some(later) = now.as_ps().checked_add(WRAPS) {
                prop_assert_eq!(rtt(sent, Time::from_ps(later)), exact(sent, now));
            }
        }
    }

    #[test]
    fn stamps_wrap_around_at_2_to_the_32_ns() {
        let at = |ps| stamp(Time::from_ps(ps));
        assert_eq!([at(0), at(999), at(1_000)], [0, 0, 1]);
        assert_eq!([at(WRAPS - 1_000), at(WRAPS - 1)], [u32::MAX; 2]);
        assert_eq!([at(WRAPS), at(WRAPS + 1_000)], [0, 1]);
        // 2^64 - 1 ps are 18,446,744,073,709,551 ns = 4,294,967 * 2^32 + 1,271,310,319.
        assert_eq!(stamp(Time::MAX), 1_271_310_319);
        // Sent in the last nanosecond before the stamp wraps around, and echoed in the next one.
        assert_eq!(rtt(Time::from_ps(WRAPS - 1), Time::from_ps(WRAPS)), Span::from_ns(1));
    }
}
