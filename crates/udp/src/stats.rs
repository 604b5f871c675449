//! Counters and delays of an engine, readable while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

use apus_units::Span;

use crate::session::Counters;

/// Number of buckets per doubling.
const SUB: usize = 64;
/// Number of doublings: up to 2^36 ns, about a minute.
const DOUBLINGS: usize = 31;

/// A histogram of time spans, written by one thread and read by others without locks.
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: (0..SUB * DOUBLINGS).map(|_| AtomicU64::new(0)).collect() }
    }
}

/// Returns the bucket of a value. Each value below 2 * SUB has a bucket of its own; larger values share SUB buckets per
/// doubling.
fn bucket(value: u64) -> usize {
    let value = value.min((1 << 36) - 1);
    let doubling = (64 - (value / (2 * SUB as u64)).leading_zeros()) as usize;
    (SUB * doubling + (value >> doubling) as usize).min(SUB * DOUBLINGS - 1)
}

/// Returns the middle of a bucket.
fn middle(bucket: usize) -> f64 {
    if bucket < 2 * SUB {
        return bucket as f64;
    }
    let doubling = bucket / SUB - 1;
    let low = (SUB + bucket % SUB) << doubling;
    low as f64 + ((1u64 << doubling) - 1) as f64 / 2.0
}

impl Histogram {
    /// Maximum width of a bucket relative to its values. Values below 128 ns are exact.
    pub const RESOLUTION: f64 = 1.0 / SUB as f64;

    /// Records a time span.
    #[inline]
    pub fn record(&self, span: Span) {
        add(&self.buckets[bucket(span.as_ps() / 1_000)], 1);
    }

    /// Removes all recorded spans.
    pub fn clear(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the buckets that are not empty: the middle of each in microseconds, and its number of spans.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).enumerate();
        counts.filter(|&(_, count)| count > 0).map(|(i, count)| (middle(i) / 1_000.0, count))
    }

    /// Returns the number of recorded spans.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|b| b.load(Ordering::Relaxed)).sum()
    }

    /// Returns the sum of the recorded spans in seconds, within [`Histogram::RESOLUTION`].
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        let of = |(index, bucket): (usize, &AtomicU64)| {
            middle(index) * bucket.load(Ordering::Relaxed) as f64
        };
        self.buckets.iter().enumerate().map(of).sum::<f64>() / 1e9
    }

    /// Returns the quantile `share` (0 to 1) in microseconds, within [`Histogram::RESOLUTION`]. Returns `None` if no span was
    /// recorded.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        let count = self.count();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += bucket.load(Ordering::Relaxed);
            if seen >= rank {
                return Some(middle(index) / 1_000.0);
            }
        }
        None
    }
}

/// Counters of an engine since its start.
#[derive(Default)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams received.
    pub datagrams_received: AtomicU64,
    /// Datagrams sent.
    pub datagrams_sent: AtomicU64,
    /// Number of system calls that received datagrams.
    pub receive_calls: AtomicU64,
    /// Number of system calls that sent datagrams.
    pub send_calls: AtomicU64,
    /// Bursts whose departure the kernel or the NIC reported.
    pub departures: AtomicU64,
    /// Datagrams that could not be captured, for example because the disk is full. The first one ends the capture.
    pub capture_failures: AtomicU64,
    /// Datagrams that the kernel refused: the device's queue was full, or there was no route.
    pub send_failures: AtomicU64,
    /// Payload bytes received for the first time.
    pub payload_received: AtomicU64,
    /// Payload bytes sent, including retransmissions.
    pub payload_sent: AtomicU64,
    /// Ops that have ended.
    pub ops: AtomicU64,
    /// Atomic ops of peers that were executed on regions of this host.
    pub atomics_executed: AtomicU64,
    /// Number of times that the engine slept.
    pub sleeps: AtomicU64,
    /// Open connections.
    pub connections: AtomicU64,
    /// Counters of the session layer.
    pub sessions: SessionStats,
    /// End-to-end RTT, t6 - t1, of acknowledged packets (Swift Fig. 2).
    pub end_to_end_rtt: Histogram,
    /// Fabric RTT, NIC to NIC: end-to-end RTT minus endpoint delay (Swift §3.3).
    pub fabric_rtt: Histogram,
    /// Endpoint delay: time in the receive queues and engines of both hosts (Swift §3.3).
    pub endpoint_delay: Histogram,
}

/// The [`Counters`] of an engine, readable while the engine runs.
#[derive(Default)]
pub struct SessionStats([AtomicU64; Counters::COUNT]);

impl SessionStats {
    /// Publishes these counters.
    pub(crate) fn publish(&self, counters: &Counters) {
        for (place, (_, value)) in self.0.iter().zip(counters.iter()) {
            place.store(value, Ordering::Relaxed);
        }
    }

    /// Returns each counter with its name in [`Counters`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = Counters::default();
        let names: Vec<_> = names.iter().map(|(name, _)| name).collect();
        names.into_iter().zip(self.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

/// Adds to a counter whose only writer is this thread, so that no atomic read-modify-write instruction is needed.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_64th() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile_us(0.5), None);
        for ns in 1..=100_000 {
            histogram.record(Span::from_ns(ns));
        }
        for (share, expected) in [(0.5, 50.0), (0.99, 99.0), (0.001, 0.1)] {
            let got = histogram.quantile_us(share).expect("values");
            assert!((got / expected - 1.0f64).abs() < Histogram::RESOLUTION, "{share}: {got}");
        }
        assert_eq!(histogram.count(), 100_000);
        // 1 + ... + 100,000 ns.
        assert!((histogram.sum_seconds() / 5.000_05 - 1.0).abs() < Histogram::RESOLUTION);
        histogram.record(Span::from_secs(1000));
        assert!(histogram.quantile_us(1.0).expect("values") > 6e7);
    }
}
