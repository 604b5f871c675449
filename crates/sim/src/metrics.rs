//! Measurements of a run. All counts begin at the end of the warm-up; earlier counts are kept separately.

use apus_transport::{Completion, Handled, Outcome, RttSample};
use apus_units::{Span, Time, prefetch};
use apus_wire::{Body, Control, Header};
use hdrhistogram::Histogram;

/// Values of one kind in millionths of their unit (times in picoseconds): exact count, sum and
/// extremes, percentiles to 0.1 %.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    /// Histogram of values over `divisor`.
    histogram: Histogram<u64>,
    divisor: u64,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Largest value over the divisor for which a histogram has room initially.
const ROOM: u64 = 10_000_000_000;
/// Largest value over the divisor for percentiles; larger values count as this one. Beyond [`ROOM`], each
/// doubling takes 8 kB once a value needs it, so no histogram takes more than 330 kB.
const LARGEST: u64 = 1 << 50;

impl Distribution {
    fn new(divisor: u64) -> Self {
        // Lower bound 1 and three digits are within the library's limits, so this cannot fail.
        let mut histogram = Histogram::new_with_bounds(1, ROOM, 3)
            .unwrap_or_else(|e| unreachable!("histogram bounds are valid: {e}"));
        histogram.auto(true);
        Self { histogram, divisor, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Creates a distribution of times in microseconds: percentiles from 1 ns to 13 days.
    pub(crate) fn of_times() -> Self {
        Self::new(1_000)
    }

    /// Creates a distribution of congestion windows in packets: percentiles from 10^-6 to 10^9.
    pub(crate) fn of_windows() -> Self {
        Self::new(1)
    }

    /// Creates a distribution of sizes in bytes: percentiles from 1 byte to 10^15.
    pub(crate) fn of_sizes() -> Self {
        Self::new(1_000_000)
    }

    /// Creates a distribution of ratios from 1 upwards: percentiles up to 10^12.
    pub(crate) fn of_ratios() -> Self {
        Self::new(1_000)
    }

    #[inline]
    pub(crate) fn record(&mut self, value: Span) {
        self.record_millionths(value.as_ps());
    }

    /// Records a number in the unit itself. A negative number counts as 0.
    #[inline]
    pub(crate) fn record_number(&mut self, value: f64) {
        // `as` saturates.
        self.record_millionths((value * 1e6) as u64);
    }

    #[inline]
    fn record_millionths(&mut self, value: u64) {
        // Times are the most frequent values: dividing by a constant is a multiplication.
        let scaled = if self.divisor == 1_000 { value / 1_000 } else { value / self.divisor };
        // The histogram has room for the value or grows, so this cannot fail.
        let recorded = self.histogram.record(scaled.min(LARGEST));
        debug_assert!(recorded.is_ok(), "{recorded:?}");
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Records this number of zeros.
    fn record_zeros(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        self.histogram.saturating_record_n(0, count);
        self.count += count;
        self.min = 0;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // The histogram grows for the values of the other one, so this cannot fail.
        let added = self.histogram.add(&other.histogram);
        debug_assert!(added.is_ok(), "{added:?}");
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Converts a value of the histogram to the unit.
    fn in_unit(&self, value: u64) -> f64 {
        value as f64 * (self.divisor as f64 * 1e-6)
    }

    /// Returns the mean; `None` without values.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 * 1e-6)
    }

    /// Returns points of the distribution function: a value, and the fraction of values that are not larger.
    /// Points are denser in the upper tail.
    pub(crate) fn cdf(&self) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        for step in self
            .histogram
            .iter_quantiles(20)
            .map(|step| (self.in_unit(step.value_iterated_to()), step.quantile_iterated_to()))
        {
            if points.last() != Some(&step) {
                points.push(step);
            }
        }
        points
    }

    pub(crate) fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max as f64 * 1e-6)
    }

    pub(crate) fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min as f64 * 1e-6)
    }

    /// Returns the `rank`-th smallest value, counted from 1; `None` if there are fewer.
    pub(crate) fn of_rank(&self, rank: u64) -> Option<f64> {
        let mut below = 0;
        let place = self.histogram.iter_recorded().find(|step| {
            below += step.count_since_last_iteration();
            below >= rank
        })?;
        Some(self.in_unit(place.value_iterated_to()).min(self.max as f64 * 1e-6))
    }

    /// Returns the value that `percent` of all values do not exceed.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        // The histogram returns the upper end of a bucket, which may be above the largest value.
        let value = || self.in_unit(self.histogram.value_at_percentile(percent));
        (self.count > 0).then(|| value().min(self.max as f64 * 1e-6))
    }
}

/// Counters between two times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Data packets sent by hosts, retransmissions included.
    pub(crate) data_packets: u64,
    /// Acknowledgements sent by hosts.
    pub(crate) acks: u64,
    /// Payload bytes delivered for the first time.
    pub(crate) new_bytes: u64,
    /// Delivered data packets without new payload, and their payload bytes.
    pub(crate) duplicate_packets: u64,
    pub(crate) duplicate_bytes: u64,
    /// Data packets delivered.
    pub(crate) delivered_packets: u64,
    /// Ops that completed, and those of them that did not succeed.
    pub(crate) ops: u64,
    pub(crate) ops_failed: u64,
    /// Work of the hosts' engines, without stalls.
    pub(crate) engine_time: Span,
    pub(crate) credits: CreditCounts,
}

/// Fate of credits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CreditCounts {
    /// Credits that receivers sent, credits that reached a sender, and the credits among these for which the
    /// sender had no data.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) wasted: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.data_packets += other.data_packets;
        self.acks += other.acks;
        self.new_bytes += other.new_bytes;
        self.duplicate_packets += other.duplicate_packets;
        self.duplicate_bytes += other.duplicate_bytes;
        self.delivered_packets += other.delivered_packets;
        self.ops += other.ops;
        self.ops_failed += other.ops_failed;
        self.engine_time += other.engine_time;
        self.credits.sent += other.credits.sent;
        self.credits.received += other.credits.received;
        self.credits.wasted += other.credits.wasted;
    }
}

/// One connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Connection {
    /// Payload bytes delivered for the first time since the end of the warm-up.
    pub(crate) new_bytes: u64,
    /// Payload bytes delivered for the first time since the last sample.
    pub(crate) since_sample: u64,
}

/// Delays of acknowledged packets.
#[derive(Debug)]
pub(crate) struct Rtts {
    fabric: Distribution,
    end_to_end: Distribution,
    endpoint: Distribution,
    /// Both RTTs of packets without endpoint delay. If hosts have no costs, this is the case for all packets,
    /// and each acknowledgement updates one distribution instead of three.
    without_endpoint_delay: Distribution,
}

impl Rtts {
    fn new() -> Self {
        Self {
            fabric: Distribution::of_times(),
            end_to_end: Distribution::of_times(),
            endpoint: Distribution::of_times(),
            without_endpoint_delay: Distribution::of_times(),
        }
    }

    #[inline]
    fn record(&mut self, sample: &RttSample) {
        if sample.endpoint_delay.is_zero() && sample.fabric_rtt == sample.end_to_end_rtt {
            return self.without_endpoint_delay.record(sample.fabric_rtt);
        }
        self.fabric.record(sample.fabric_rtt);
        self.end_to_end.record(sample.end_to_end_rtt);
        self.endpoint.record(sample.endpoint_delay);
    }

    fn add(&mut self, other: &Self) {
        self.fabric.add(&other.fabric);
        self.end_to_end.add(&other.end_to_end);
        self.endpoint.add(&other.endpoint);
        self.without_endpoint_delay.add(&other.without_endpoint_delay);
    }

    /// Returns the NIC-to-NIC RTTs.
    pub(crate) fn fabric(&self) -> Distribution {
        let mut all = self.fabric.clone();
        all.add(&self.without_endpoint_delay);
        all
    }

    /// Returns the RTTs between the timestamps of the stack.
    pub(crate) fn end_to_end(&self) -> Distribution {
        let mut all = self.end_to_end.clone();
        all.add(&self.without_endpoint_delay);
        all
    }

    /// Returns the endpoint delays.
    pub(crate) fn endpoint(&self) -> Distribution {
        let mut all = self.endpoint.clone();
        all.record_zeros(self.without_endpoint_delay.count);
        all
    }
}

/// Measurements of a run at hosts; ports have their own counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) warm: Counts,
    pub(crate) startup: Counts,
    /// Packets that a NIC's full receive queue dropped, over the whole run.
    pub(crate) nic_drops: u64,
    pub(crate) connections: Vec<Connection>,
    rtts: Rtts,
    pub(crate) nic_rx_delay: Distribution,
    in_warmup: bool,
}

impl Metrics {
    /// Adds a connection that an external program opened.
    pub(crate) fn add_connection(&mut self) {
        self.connections.push(Connection::default());
    }

    pub(crate) fn new(connections: usize, warmup_end: Time) -> Self {
        Self {
            warm: Counts::default(),
            startup: Counts::default(),
            nic_drops: 0,
            connections: vec![Connection::default(); connections],
            rtts: Rtts::new(),
            nic_rx_delay: Distribution::of_times(),
            in_warmup: warmup_end > Time::ZERO,
        }
    }

    /// Adds the measurements of another part of the network. All sums are of integers, so the order
    /// of the parts does not matter.
    pub(crate) fn add(&mut self, other: &Self) {
        self.warm.add(&other.warm);
        self.startup.add(&other.startup);
        self.nic_drops += other.nic_drops;
        for (connection, more) in self.connections.iter_mut().zip(&other.connections) {
            connection.new_bytes += more.new_bytes;
        }
        self.rtts.add(&other.rtts);
        self.nic_rx_delay.add(&other.nic_rx_delay);
    }

    /// Ends the warm-up: its counters are kept separately.
    pub(crate) fn end_warmup(&mut self) {
        self.startup = core::mem::take(&mut self.warm);
        self.in_warmup = false;
        for connection in &mut self.connections {
            connection.new_bytes = 0;
        }
    }

    /// Returns the delays of all acknowledged packets.
    pub(crate) fn rtts(&self) -> &Rtts {
        &self.rtts
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, body: &Body) {
        // Switches send signals and trimmed packets, not hosts.
        let answers = matches!(body, Body::Ack(_) | Body::Reject(_) | Body::Nack(_));
        self.warm.data_packets += u64::from(matches!(body, Body::Data(_)));
        self.warm.acks += u64::from(answers);
        self.warm.credits.sent += u64::from(matches!(body, Body::Control(Control::Credit(_))));
    }

    /// Records the processing of a packet that has waited for this time since its NIC received it.
    #[inline]
    pub(crate) fn on_processed(&mut self, waited: Span) {
        if !self.in_warmup {
            self.nic_rx_delay.record(waited);
        }
    }

    /// Prefetches the counters of a connection.
    #[inline]
    pub(crate) fn prefetch(&self, connection: u32) {
        if let Some(connection) = self.connections.get(connection as usize) {
            prefetch(connection);
        }
    }

    #[inline]
    pub(crate) fn on_handled(&mut self, connection: u32, handled: &Handled, header: &Header) {
        match handled {
            Handled::Data { bytes, .. } => {
                self.warm.delivered_packets += 1;
                self.warm.new_bytes += bytes;
                let connection = &mut self.connections[connection as usize];
                connection.new_bytes += bytes;
                connection.since_sample += bytes;
            }
            Handled::Duplicate => {
                self.warm.delivered_packets += 1;
                self.warm.duplicate_packets += 1;
                if let Body::Data(segment) = &header.body {
                    self.warm.duplicate_bytes += u64::from(segment.length);
                }
            }
            // The receiving NIC drops the packet: it was delivered, but will be retransmitted.
            Handled::OutOfOrder { .. } => self.warm.delivered_packets += 1,
            Handled::Ack(Some(sample)) if !self.in_warmup => {
                self.rtts.record(sample);
            }
            Handled::Credit { used } => {
                self.warm.credits.received += 1;
                self.warm.credits.wasted += u64::from(!used);
            }
            // Applications of the simulator do not cancel or reject ops, and submit no atomic ops.
            Handled::Control
            | Handled::Atomic
            | Handled::Ack(_)
            | Handled::Refused
            | Handled::Cancelled
            | Handled::Rejected
            | Handled::Signal
            | Handled::Trimmed
            | Handled::Nack { .. } => {}
        }
    }

    /// Records a completed op.
    pub(crate) fn on_completion(&mut self, completion: &Completion) {
        self.warm.ops += 1;
        if completion.outcome != Outcome::Done {
            self.warm.ops_failed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 17,000 to 21,000 packets. Initially the histogram has room up to 2^34 millionths, which are
    /// 17,180 packets.
    #[test]
    fn percentiles_beyond_the_first_room_are_in_order() {
        let (mut all, mut more) = (Distribution::of_windows(), Distribution::of_windows());
        for packets in [17_000, 18_000, 19_000] {
            all.record_number(f64::from(packets));
        }
        for packets in [20_000, 21_000] {
            more.record_number(f64::from(packets));
        }
        all.add(&more);
        for (percent, packets) in
            [(20.0, 17e3), (40.0, 18e3), (60.0, 19e3), (80.0, 20e3), (100.0, 21e3)]
        {
            let found = all.percentile(percent).expect("values");
            assert!((found / packets - 1.0).abs() < 1e-3, "{percent} %: {found}");
        }
        let third = all.of_rank(3).expect("values");
        assert!((third / 19e3 - 1.0).abs() < 1e-3, "{third}");
    }

    /// An hour, and the longest span, of 213 days, which counts as 2^50 ns.
    #[test]
    fn times_are_told_apart_up_to_13_days() {
        let mut times = Distribution::of_times();
        times.record(Span::from_secs(3_600));
        times.record(Span::MAX);
        for (percent, us) in [(50.0, 3.6e9), (100.0, (1_u64 << 50) as f64 * 1e-3)] {
            let found = times.percentile(percent).expect("values");
            assert!((found / us - 1.0).abs() < 1e-3, "{percent} %: {found}");
        }
        assert_eq!(times.max(), Some(u64::MAX as f64 * 1e-6));
    }
}
