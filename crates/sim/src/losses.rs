//! The losses of a run by cause and by port.

use apus_fabric::{DropReason, Drops};
use serde::Serialize;

use crate::columns::{ratio, summary};
use crate::error::RunError;

/// Maximum number of ports in a summary.
const MAX_PORTS: usize = 8;

/// Scope of counts of the warm-up and the measured phase.
const WHOLE_RUN: &str = "sum over the warm-up and the measured phase";

summary! {
    /// Packets lost, by cause.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct Causes {
        /// packets for which a port or switch had no buffer memory
        pub buffer: u64 = number(WHOLE_RUN),
        /// packets lost because a link was down
        pub link_down: u64 = number(WHOLE_RUN),
        /// packets that links lost at random
        pub link_loss: u64 = number(WHOLE_RUN),
        /// packets that links corrupted
        pub corruption: u64 = number(WHOLE_RUN),
        /// packets whose TTL reached 0
        pub ttl: u64 = number(WHOLE_RUN),
        /// packets that the switch half of the algorithm dropped
        pub switch_half: u64 = number(WHOLE_RUN),
        /// credits dropped because they exceeded their share of a link; dropping them divides the link among flows
        pub credit_limit: u64 = number(WHOLE_RUN),
        /// packets dropped because the receive queue of a NIC was full
        pub nic_queue: u64 = number(WHOLE_RUN),
    }
}

impl Causes {
    /// Returns the causes of drops in the fabric.
    #[must_use]
    pub fn of(drops: &Drops) -> Self {
        let mut causes = Self::default();
        for reason in DropReason::ALL {
            *causes.of_reason(reason) += drops[reason as usize];
        }
        causes
    }

    fn of_reason(&mut self, reason: DropReason) -> &mut u64 {
        match reason {
            DropReason::Buffer => &mut self.buffer,
            DropReason::Ttl => &mut self.ttl,
            DropReason::SwitchHalf => &mut self.switch_half,
            DropReason::LinkDown => &mut self.link_down,
            DropReason::Loss => &mut self.link_loss,
            DropReason::Corruption => &mut self.corruption,
            DropReason::RateLimit => &mut self.credit_limit,
        }
    }

    /// Returns all causes with their names.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("buffer overflow", self.buffer),
            ("link down", self.link_down),
            ("random loss", self.link_loss),
            ("corruption", self.corruption),
            ("TTL", self.ttl),
            ("dropped by the algorithm", self.switch_half),
            ("credit limit", self.credit_limit),
            ("NIC receive queue", self.nic_queue),
        ]
    }

    /// Returns the number of packets lost for any cause.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, packets)| packets).sum()
    }
}

/// The losses at one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortLosses {
    /// Name of the egress port, such as "leaf 0 -> spine 1".
    pub port: String,
    /// All packets lost there.
    pub packets: u64,
    /// Packets lost there, by cause.
    #[serde(flatten)]
    pub causes: Causes,
}

summary! {
    /// The losses of a run, warm-up included.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct Losses {
        /// packets lost, all causes together
        pub packets: u64 = number(WHOLE_RUN),
        /// `losses.packets` / `packets.sent`
        pub loss_rate: f64 = fraction(WHOLE_RUN),
        /// Packets lost by cause.
        #[serde(flatten)]
        pub causes: Causes = flat(),
        /// number of ports at which packets were dropped
        pub lossy_ports: u64 = number(WHOLE_RUN),
        /// the ports that lost the most packets, each with `port`, `packets` and the packets by cause; at most 8;
        /// ports.csv has all ports
        pub ports: Vec<PortLosses> = list(WHOLE_RUN),
    }
}

impl Losses {
    /// Adds up the drops by port. `total` is the network's own count of drops, out of `sent` packets.
    ///
    /// # Errors
    /// If the ports do not account for all drops of the network.
    pub(crate) fn new(
        by_port: impl Iterator<Item = (String, Drops)>,
        total: &Drops,
        sent: u64,
        nic_queue: u64,
    ) -> Result<Self, RunError> {
        let mut sum = Drops::default();
        let mut ports = Vec::new();
        for (port, drops) in by_port {
            sum.iter_mut().zip(drops).for_each(|(sum, more)| *sum += more);
            let causes = Causes::of(&drops);
            ports.push(PortLosses { port, packets: causes.total(), causes });
        }
        if sum != *total {
            return Err(RunError::bug(format!(
                "the network dropped {total:?} packets by reason, but its ports {sum:?}"
            )));
        }
        let lossy_ports = ports.len() as u64;
        ports.sort_by_key(|port| core::cmp::Reverse(port.packets));
        ports.truncate(MAX_PORTS);
        let causes = Causes { nic_queue, ..Causes::of(total) };
        let packets = causes.total();
        Ok(Self { packets, loss_rate: ratio(packets, sent), causes, lossy_ports, ports })
    }
}
