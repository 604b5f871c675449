//! MSwift's sender half: Swift's sender half with the median of the delays as its input.

use alloc::boxed::Box;
use alloc::sync::Arc;

use apus_units::Span;

use super::delays::{Delays, MOST};
use super::params::{self, Params};
use crate::swift::Swift;
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Derivation,
    FlowInfo, LossEvent, PacketSizeEvent, Plain, ProfileInfo, ReplaySender, SendInfo, Sender,
    SettingError, Settings, Snapshot, SwitchInfo, TimeoutEvent,
};

/// The sender half of MSwift and LSwift.
#[derive(Clone, Debug)]
pub struct MSwift(Box<State>);

#[derive(Clone, Debug)]
struct State {
    params: Arc<Params>,
    swift: Swift,
    delays: Delays,
    /// Late acknowledgements in a row.
    late: u32,
}

impl Algorithm for MSwift {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = Plain;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "mswift",
        summary: "Swift with the median of the latest delays, for flows whose packets take several paths",
        source: "unverified: Gerstein, Silberstein, Keslassy, Congestion Control for Spraying with Congested \
                 Paths, arXiv 2509.07907",
        profiles: &[
            ProfileInfo { name: params::MSWIFT, doc: "the median of the delays of half a window" },
            ProfileInfo {
                name: params::LSWIFT,
                doc: "the latest delay; cuts after 5 consecutive late packets",
            },
        ],
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, flow: &FlowInfo) -> Self {
        let swift = Swift::new(Arc::clone(&params.swift), flow);
        Self(Box::new(State { params, swift, delays: Delays::new(), late: 0 }))
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> Acknowledging {
        Acknowledging
    }

    fn switch(_: &Arc<Params>, _: &SwitchInfo) -> Plain {
        Plain
    }
}

impl Sender for MSwift {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let State { params, swift, delays, late } = &mut *self.0;
        let mut heard = *event;
        if let Some(part) = params.history {
            // H = max(cwnd / 2, 1); the window is finite.
            let count = (swift.allowance().window * part) as usize;
            heard.fabric_delay = delays.add(event.fabric_delay, count.clamp(1, MOST));
        }
        let is_late = swift.target_delay(event.hops).is_some_and(|t| heard.fabric_delay >= t);
        *late = if is_late { late.saturating_add(1) } else { 0 };
        if is_late && *late < params.late_packets {
            // Neither a cut nor an increase: Swift gets a delay of zero and no acknowledged packet.
            (heard.fabric_delay, heard.acked_packets) = (Span::ZERO, 0);
        }
        swift.on_ack(&heard);
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.0.swift.on_loss(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.0.swift.on_timeout(event);
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.0.swift.on_packet_size(event);
    }

    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        self.0.swift.on_transmit(header, info);
    }

    fn allowance(&self) -> Allowance {
        self.0.swift.allowance()
    }

    fn rto(&self) -> Span {
        self.0.swift.rto()
    }

    fn snapshot(&self) -> Snapshot {
        self.0.swift.snapshot()
    }
}

impl ReplaySender for MSwift {
    fn target_delay(&self, hops: u8) -> Option<Span> {
        self.0.swift.target_delay(hops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_units::Time;

    fn flow(profile: &str, settings: &[(&str, &str)]) -> MSwift {
        static INFO: AlgorithmInfo = <MSwift as Algorithm>::INFO;
        let mut all =
            alloc::vec![("base_target", "20us"), ("hop_scale", "0us"), ("initial_cwnd", "20")];
        all.extend(settings);
        let mut settings = Settings::read(&INFO, Some(profile), &all).expect("settings");
        let params = Params::from_settings(&mut settings).expect("parameters");
        MSwift::new(Arc::new(params), &FlowInfo::default())
    }

    /// Acknowledges one packet with this delay, late enough after the previous acknowledgement that no guard
    /// applies.
    fn ack(flow: &mut MSwift, number: u64, delay_us: u64) -> f64 {
        let delay = Span::from_us(delay_us);
        let mut event = AckEvent::new(Time::ZERO + Span::from_us(100) * number, delay);
        (event.fabric_delay, event.acked_packets) = (delay, 1);
        flow.on_ack(&event);
        flow.allowance().window
    }

    /// Four late packets change nothing, the fifth cuts by max(1 - 0.8 (40 - 20) / 40, 0.5) = 0.6.
    #[test]
    fn lswift_cuts_at_the_fifth_late_packet_in_a_row() {
        let mut flow = flow("lswift", &[]);
        for number in 1..=4 {
            assert_eq!(ack(&mut flow, number, 40), 20.0, "{number}");
        }
        let early = ack(&mut flow, 5, 10);
        assert!((early - 20.05).abs() < 1e-9, "1 / 20 more: {early}");
        for number in 6..=9 {
            assert_eq!(ack(&mut flow, number, 40), early);
        }
        let cut = ack(&mut flow, 10, 40);
        assert!((cut - 0.6 * early).abs() < 1e-9, "{cut}");
    }

    /// One packet in four is late: LSwift with a patience of one packet collapses, MSwift grows.
    #[test]
    fn mswift_ignores_a_quarter_of_late_packets() {
        let mut latest = flow("lswift", &[("late_packets", "1")]);
        let mut median = flow("mswift", &[("late_packets", "1")]);
        for number in 1..=200 {
            // Early packets first, so that a median exists.
            let delay = if number > 10 && number % 4 == 0 { 60 } else { 10 };
            ack(&mut latest, number, delay);
            ack(&mut median, number, delay);
        }
        let windows = (latest.allowance().window, median.allowance().window);
        assert!(windows.0 < 2.0, "{windows:?}");
        assert!(windows.1 > 20.0, "{windows:?}");
    }

    /// With a history of one delay MSwift is LSwift.
    #[test]
    fn a_median_of_one_delay_is_lswift() {
        let mut random = apus_units::random::SplitMix64::new(2);
        let (mut lswift, mut mswift) =
            (flow("lswift", &[]), flow("mswift", &[("history", "1e-6")]));
        for number in 1..2000 {
            let delay = 10 + random.below(30);
            assert_eq!(ack(&mut lswift, number, delay), ack(&mut mswift, number, delay));
        }
    }
}
