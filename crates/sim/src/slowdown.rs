//! Slowdown: latency of an op over its ideal completion time. All tables, charts and checks use this definition.

use apus_cc::SwitchHalf;
use apus_fabric::{Network, RouteError, Terminal};
use apus_units::{Bytes, Rate, Span};
use apus_wire::Header;

use crate::packets::PacketSizes;

/// Best performance of a pair of hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ideal {
    /// Time of a full data packet and its acknowledgement, without other packets and without the
    /// processing of hosts.
    pub base_rtt: Span,
    /// Rate of the slowest link of the path.
    pub line_rate: Rate,
}

impl Ideal {
    /// Returns the best performance of the pair whose data goes from `source` to `sink`.
    ///
    /// # Errors
    /// If there is no path.
    pub(crate) fn of<W: SwitchHalf>(
        network: &Network<Header, W>,
        (source, sink): (Terminal, Terminal),
        (key, spreads): (u64, bool),
        sizes: PacketSizes,
    ) -> Result<Self, RouteError> {
        let data = Bytes::new(u64::from(sizes.payload + sizes.header));
        let control = Bytes::new(u64::from(sizes.control));
        let base_rtt = network.unloaded_rtt(source, sink, data, control)?;
        let path = network.path(source, sink, key, 0)?;
        let rates = path.into_iter().map(|port| network.rate(port));
        let line_rate = rates.min_by_key(|rate| rate.as_bps()).unwrap_or(Rate::from_gbps(1));
        // If packets take several paths, they use all ports of the hosts.
        let ports = if spreads { network.common_ports(source, sink) } else { 1 };
        Ok(Self { base_rtt, line_rate: line_rate.saturating_mul(u64::from(ports)) })
    }

    /// Returns the ideal completion time of an op of `size` bytes of payload: the base RTT, plus the time of
    /// the op with the headers of its packets at line rate.
    ///
    /// This is the definition of HPCC's simulator and of the authors of Bolt: the base RTT contains a full
    /// packet even if the op is shorter.
    #[must_use]
    pub fn completion_time(&self, size: u64, sizes: PacketSizes) -> Span {
        let packets = size.div_ceil(u64::from(sizes.payload)).max(1);
        let wire = size.saturating_add(packets.saturating_mul(u64::from(sizes.header)));
        self.base_rtt + self.line_rate.serialization_time(Bytes::new(wire))
    }

    /// Returns the slowdown of an op with this `latency`: latency over ideal completion time, at least 1.
    #[must_use]
    pub fn slowdown(&self, latency: Span, size: u64, sizes: PacketSizes) -> f64 {
        let ideal = self.completion_time(size, sizes);
        (latency.as_ps_f64() / ideal.as_ps_f64().max(1.0)).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the authors of Bolt for a star: MTU 5000 B with headers of 41 B and acknowledgements of
    /// 41 B, links of 100 Gb/s and 1048 ns. 10 000 B are 3 packets, 10 123 B with headers.
    #[test]
    fn the_ideal_is_that_of_the_authors_of_bolt() {
        let sizes = PacketSizes { payload: 4959, header: 41, control: 41 };
        let both_ways = 2 * (5000 + 41) * 80;
        let ideal = Ideal {
            base_rtt: Span::from_ns(4 * 1048) + Span::from_ps(both_ways),
            line_rate: Rate::from_gbps(100),
        };
        assert_eq!(ideal.completion_time(10_000, sizes), Span::from_ps(4_998_560 + 809_840));
    }

    /// 10 packets of 1000 B with 64 B of header at 100 Gb/s are 851.2 ns; with a base RTT of 5 us
    /// the ideal is 5.8512 us.
    #[test]
    fn slowdown_by_hand() {
        let sizes = PacketSizes { payload: 1000, header: 64, control: 84 };
        let ideal = Ideal { base_rtt: Span::from_us(5), line_rate: Rate::from_gbps(100) };
        assert_eq!(ideal.completion_time(10_000, sizes), Span::from_ps(5_851_200));
        let twice = ideal.slowdown(Span::from_ps(11_702_400), 10_000, sizes);
        assert!((twice - 2.0).abs() < 1e-12, "{twice}");
        assert!((ideal.slowdown(Span::from_us(1), 10_000, sizes) - 1.0).abs() < 1e-12);
    }
}
