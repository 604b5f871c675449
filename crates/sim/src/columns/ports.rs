//! `ports.csv` and `port_samples.csv`.

use super::declare::{gbps, ratio, row, us};
use crate::losses::Causes;
use crate::record::Recording;

const MEASURED: &str = "sum over the measured phase";
const WHOLE_RUN: &str = "sum over the warm-up and the measured phase";

row! {
    "ports.csv"
    /// One row per egress port, ports of NICs included, over the measured phase unless stated otherwise.
    #[derive(Clone, Debug)]
    pub struct PortRow {
        /// name of the egress port: `node -> peer`
        pub port: String = "key column",
        /// node to which the port belongs
        pub from: String = "key column",
        /// node at the other end of the link
        pub to: String = "key column",
        /// number of links from the port's node to the nearest host: 0 for a NIC, 1 for an edge switch
        pub tier: u32 = "-",
        /// rate of the link without faults
        pub rate_gbps: f64 = "-",
        /// wire bytes sent * 8 / length of the measured phase
        pub throughput_gbps: f64 = "mean over the measured phase",
        /// throughput_gbps / rate_gbps
        pub utilisation: f64 = "mean over the measured phase",
        /// packets whose last bit has left the port
        pub sent_packets: u64 = MEASURED,
        /// packets sent into the port's queue, dropped packets included, credits not included
        pub offered_packets: u64 = MEASURED,
        /// packets dropped at the port, credits not included
        pub drops: u64 = MEASURED,
        /// drops / offered_packets
        pub loss_rate: f64 = "over the measured phase",
        /// packets that the port marked: their ECN field was set to congestion experienced
        pub marked_packets: u64 = MEASURED,
        /// packets whose payload the port removed for lack of room
        pub trimmed_packets: u64 = MEASURED,
        /// headers of trimmed packets that the port dropped for lack of room; `drops` includes them
        pub headers_lost: u64 = MEASURED,
        /// wire bytes in the port, the packet in service included: (integral of occupancy over time) / time
        pub mean_queue_bytes: f64 = "time average over the measured phase",
        /// wire bytes in the port, the arriving packet included
        pub max_queue_bytes: u64 = "maximum over the measured phase",
        /// packets dropped for lack of buffer memory
        pub buffer_drops: u64 = WHOLE_RUN,
        /// packets dropped because the link was down
        pub link_down_drops: u64 = WHOLE_RUN,
        /// packets that the link lost at random
        pub link_loss_drops: u64 = WHOLE_RUN,
        /// packets that the link corrupted
        pub corruption_drops: u64 = WHOLE_RUN,
        /// packets whose TTL reached 0 at the far end of the port's link
        pub ttl_drops: u64 = WHOLE_RUN,
        /// packets that the switch half of the algorithm dropped
        pub switch_half_drops: u64 = WHOLE_RUN,
        /// credits dropped because they exceeded their share of the link
        pub credit_limit_drops: u64 = WHOLE_RUN,
    }
}

row! {
    "port_samples.csv"
    /// One row per sample time and sampled port. The sampled ports are those with the most traffic: switch ports, and with
    /// `nics = true` also ports of NICs. `[record] ports` sets their number.
    #[derive(Clone, Debug)]
    pub struct PortSampleRow {
        /// end of the sample interval, since the start of the run
        pub time_us: f64 = "-",
        /// name of the egress port: `node -> peer`
        pub port: String = "key column",
        /// wire bytes sent in the interval * 8 / interval
        pub throughput_gbps: f64 = "mean over the interval",
        /// wire bytes in the port, the packet in service included
        pub queue_bytes: u64 = "instant",
        /// wire bytes in the port: (integral of occupancy over the interval) / interval
        pub mean_queue_bytes: f64 = "time average over the interval",
        /// packets dropped at the port, credits not included
        pub drops: u64 = "sum over the interval",
    }
}

impl Recording {
    /// Returns the rows of ports.csv.
    pub fn port_rows(&self) -> impl Iterator<Item = PortRow> {
        let seconds = self.measured_seconds();
        self.ports.iter().map(move |port| {
            let (from, to) = (&self.nodes[port.from], &self.nodes[port.to]);
            let (throughput_gbps, rate_gbps) =
                (gbps(port.sent_bytes, seconds), port.rate.as_gbps_f64());
            // NICs drop what does not fit into their receive queue behind the port.
            let Causes {
                buffer,
                link_down,
                link_loss,
                corruption,
                ttl,
                switch_half,
                credit_limit,
                nic_queue: _,
            } = port.causes;
            PortRow {
                port: self.port_name(port.port),
                from: from.name.clone(),
                to: to.name.clone(),
                tier: from.tier,
                rate_gbps,
                throughput_gbps,
                utilisation: throughput_gbps / rate_gbps,
                sent_packets: port.sent_packets,
                offered_packets: port.offered_packets,
                drops: port.drops,
                loss_rate: ratio(port.drops, port.offered_packets),
                marked_packets: port.marked,
                trimmed_packets: port.trimmed,
                headers_lost: port.headers_lost,
                mean_queue_bytes: port.mean_queue_bytes,
                max_queue_bytes: port.max_queue.get(),
                buffer_drops: buffer,
                link_down_drops: link_down,
                link_loss_drops: link_loss,
                corruption_drops: corruption,
                ttl_drops: ttl,
                switch_half_drops: switch_half,
                credit_limit_drops: credit_limit,
            }
        })
    }

    /// Returns the rows of port_samples.csv.
    pub fn port_sample_rows(&self) -> impl Iterator<Item = PortSampleRow> {
        let seconds = self.record.interval.as_secs_f64();
        let names: Vec<String> =
            self.sampled_ports.iter().map(|port| self.port_name(*port)).collect();
        self.times.iter().zip(&self.port_samples).flat_map(move |(time, samples)| {
            let row = |(port, sample): (&String, &crate::record::PortSample)| PortSampleRow {
                time_us: us(*time),
                port: port.clone(),
                throughput_gbps: gbps(sample.sent_bytes, seconds),
                queue_bytes: sample.queue_bytes,
                mean_queue_bytes: sample.mean_queue_bytes,
                drops: sample.drops,
            };
            names.iter().zip(samples).map(row).collect::<Vec<_>>()
        })
    }
}
