//! Departures of bursts (t1 of Swift, Fig. 2), which the kernel and the NIC report after the send.

use std::collections::VecDeque;

use apus_units::{FlowId, PacketNumber, Time};

/// Maximum number of bursts whose report is awaited. Older bursts keep the t1 that the engine read. deviation: no
/// source; ten times the bursts of a step.
const MAX_AWAITED: usize = 1024;

/// A burst, and the time at which the engine handed it to the kernel.
#[derive(Debug)]
pub(super) struct SentBurst {
    pub(super) at: Time,
    pub(super) packets: Vec<(FlowId, PacketNumber)>,
}

/// Bursts whose reports are awaited, in the order of their numbers.
#[derive(Default)]
pub(super) struct Departures {
    awaited: VecDeque<SentBurst>,
    /// Number of the next burst.
    next: u32,
    /// Memory for reuse by further bursts.
    spare: Vec<Vec<(FlowId, PacketNumber)>>,
}

impl Departures {
    /// Records that the kernel accepted a burst of these packets at `at` and gave it the next number.
    pub(super) fn on_sent(&mut self, at: Time, packets: &[(FlowId, PacketNumber)]) {
        if self.awaited.len() == MAX_AWAITED
            && let Some(oldest) = self.awaited.pop_front()
        {
            self.spare.push(oldest.packets);
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(packets);
        self.awaited.push_back(SentBurst { at, packets: copy });
        self.next = self.next.wrapping_add(1);
    }

    /// Takes burst `number`, whose report has arrived. Reports arrive in order, so older bursts get no report any more
    /// and are removed.
    pub(super) fn take(&mut self, number: u32) -> Option<SentBurst> {
        // Distance from this number to the next one. Numbers wrap around.
        let back = self.next.wrapping_sub(number);
        if back == 0 || back as usize > self.awaited.len() {
            return None;
        }
        let older = self.awaited.len() - back as usize;
        self.spare.extend(self.awaited.drain(..older).map(|sent| sent.packets));
        self.awaited.pop_front()
    }

    /// Takes back the memory of a burst for reuse.
    pub(super) fn recycle(&mut self, sent: SentBurst) {
        self.spare.push(sent.packets);
    }

    /// Removes all bursts. The next burst has number 0.
    pub(super) fn reset(&mut self) {
        self.spare.extend(self.awaited.drain(..).map(|sent| sent.packets));
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(n: u64) -> [(FlowId, PacketNumber); 1] {
        [(FlowId::new(0), PacketNumber::new(n))]
    }

    #[test]
    fn a_report_finds_its_packets_if_other_reports_are_missing() {
        let mut departures = Departures { next: u32::MAX - 1, ..Departures::default() };
        for n in 0..5 {
            departures.on_sent(Time::ZERO, &packet(n)); // numbers MAX - 1, MAX, 0, 1, 2
        }
        let mut take = |number| departures.take(number).map(|sent| sent.packets);
        assert_eq!(take(u32::MAX).as_deref(), Some(&packet(1)[..]));
        assert_eq!(take(u32::MAX - 1), None, "given up, since a later report has arrived");
        assert_eq!(take(u32::MAX), None, "a second report of the same burst");
        assert_eq!(take(3), None, "not sent yet");
        assert_eq!(take(1).as_deref(), Some(&packet(3)[..]));
        assert_eq!(take(2).as_deref(), Some(&packet(4)[..]));
        assert_eq!(take(2), None);
    }

    #[test]
    fn the_number_of_awaited_bursts_is_bounded() {
        let mut departures = Departures::default();
        for n in 0..3 * MAX_AWAITED as u64 {
            departures.on_sent(Time::ZERO, &packet(n));
        }
        assert_eq!(departures.awaited.len(), MAX_AWAITED);
    }
}
