//! When packets left, as kernel and NIC say it afterwards (t1 of Swift, Fig. 2).

use std::collections::VecDeque;

use apus_units::{FlowId, PacketNumber, Time};

use super::Engine;
use crate::stats::add;

/// Sends that a timestamp may still come for; of older ones t1 stays as the engine saw it. deviation: no
/// source; ten times the bursts of a step.
const AWAITED: usize = 1024;

/// A send and when the engine handed it to the kernel.
struct Awaited {
    at: Time,
    packets: Vec<(FlowId, PacketNumber)>,
}

/// Sends whose timestamps are awaited, in the order in which they were numbered.
#[derive(Default)]
pub(super) struct Departures {
    awaited: VecDeque<Awaited>,
    next: u32,
    spare: Vec<Vec<(FlowId, PacketNumber)>>,
}

impl Departures {
    /// The kernel has taken a send of these packets, which asked for a timestamp.
    pub(super) fn on_sent(&mut self, at: Time, packets: &[(FlowId, PacketNumber)]) {
        if self.awaited.len() == AWAITED
            && let Some(oldest) = self.awaited.pop_front()
        {
            self.spare.push(oldest.packets);
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(packets);
        self.awaited.push_back(Awaited { at, packets: copy });
        self.next = self.next.wrapping_add(1);
    }

    /// The packets of send `number`, whose timestamp has come; older ones are given up, because
    /// timestamps come in order.
    fn take(&mut self, number: u32) -> Option<Awaited> {
        // How far back it lies, on the circle of numbers.
        let back = self.next.wrapping_sub(number);
        if back == 0 || back as usize > self.awaited.len() {
            return None;
        }
        let older = self.awaited.len() - back as usize;
        self.spare.extend(self.awaited.drain(..older).map(|sent| sent.packets));
        self.awaited.pop_front()
    }

    /// Counting has begun anew.
    fn reset(&mut self) {
        self.spare.extend(self.awaited.drain(..).map(|sent| sent.packets));
        self.next = 0;
    }
}

impl Engine {
    /// Takes the timestamps that have come and corrects t1 by them.
    pub(super) fn take_departures(&mut self, now: Time) {
        while let Some(departures) = &mut self.departures {
            let Ok(Some(departure)) = self.socket.departure() else { return };
            let Some(sent) = departures.take(departure.number) else { continue };
            // What left before it was sent is another's timestamp, or a clock that errs.
            if let Some(at) = self.clock.sent(&departure, now).filter(|&at| at >= sent.at) {
                add(&self.shared.stats.departures, 1);
                for &(flow, seq) in &sent.packets {
                    self.endpoint.on_sent(flow, seq, at);
                }
            }
            departures.spare.push(sent.packets);
        }
    }

    /// A send has failed, so that it is not known whether the kernel has counted it.
    pub(super) fn renumber_departures(&mut self) {
        let Some(departures) = &mut self.departures else { return };
        departures.reset();
        // If it cannot be asked for anew, nothing more will come, and t1 stays as the engine sees it.
        if self.socket.timestamp(true).is_err() {
            self.departures = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(n: u64) -> [(FlowId, PacketNumber); 1] {
        [(FlowId::new(0), PacketNumber::new(n))]
    }

    #[test]
    fn each_timestamp_finds_its_packets_whatever_is_missing() {
        let mut departures = Departures { next: u32::MAX - 1, ..Departures::default() };
        for n in 0..5 {
            departures.on_sent(Time::ZERO, &packet(n)); // numbered MAX - 1, MAX, 0, 1, 2
        }
        let mut take = |number| departures.take(number).map(|sent| sent.packets);
        assert_eq!(take(u32::MAX).as_deref(), Some(&packet(1)[..]));
        assert_eq!(take(u32::MAX - 1), None, "given up: a later one has come");
        assert_eq!(take(u32::MAX), None, "a second timestamp of the same");
        assert_eq!(take(3), None, "not sent yet");
        assert_eq!(take(1).as_deref(), Some(&packet(3)[..]));
        assert_eq!(take(2).as_deref(), Some(&packet(4)[..]));
        assert_eq!(take(2), None);
        for n in 0..3 * AWAITED as u64 {
            departures.on_sent(Time::ZERO, &packet(n));
        }
        assert_eq!(departures.awaited.len(), AWAITED, "bounded");
    }
}
