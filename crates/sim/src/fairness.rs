//! Rates over time against the max-min fair share.

use apus_cc::AlgorithmFactory;
use apus_fabric::Network;
use apus_units::{Span, Time};

use crate::distribution::jain;
use crate::plan::{OpType, Plan};

/// Returns the max-min fair rates of flows over links of given capacities, by progressive filling (Bertsekas
/// and Gallager, Data Networks, §6.5.2): all rates rise together, and the flows of a link are frozen when it
/// is full.
///
/// `paths[f]` lists the links of flow `f`; a flow without links gets an infinite rate.
#[must_use]
pub fn max_min_shares(capacities: &[f64], paths: &[Vec<usize>]) -> Vec<f64> {
    let mut shares = vec![f64::INFINITY; paths.len()];
    let mut left = capacities.to_vec();
    let mut open: Vec<usize> = (0..paths.len()).filter(|&f| !paths[f].is_empty()).collect();
    while !open.is_empty() {
        let mut users = vec![0u32; capacities.len()];
        for &flow in &open {
            for &link in &paths[flow] {
                users[link] += 1;
            }
        }
        // The link with the smallest rate per flow is the first to be full.
        let share_of = |link: usize| left[link] / f64::from(users[link]);
        let used = (0..capacities.len()).filter(|&link| users[link] > 0);
        let Some(tightest) = used.min_by(|&a, &b| share_of(a).total_cmp(&share_of(b))) else {
            break;
        };
        let share = share_of(tightest);
        let (frozen, rest): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|&flow| paths[flow].contains(&tightest));
        for flow in frozen {
            shares[flow] = share;
            for &link in &paths[flow] {
                left[link] = (left[link] - share).max(0.0);
            }
        }
        open = rest;
    }
    shares
}

/// Compares each connection's rate with its fair share in windows of the sample interval. After each change
/// of the set of active connections, windows count again after a settling time.
#[derive(Debug)]
pub(crate) struct FairShare {
    plan: Option<Settings>,
    next_sample: Time,
    worst: Option<f64>,
    /// Minimum over windows of Jain's index of rate over fair share.
    lowest_jain: Option<f64>,
}

#[derive(Debug)]
struct Settings {
    interval: Span,
    after: Span,
    warmup: Time,
    /// Wire bytes per payload byte of a full packet.
    overhead: f64,
    /// Per connection: its start, its stop, and its links.
    connections: Vec<(Time, Time, Vec<usize>)>,
    /// Per port, in wire bytes per second.
    capacities: Vec<f64>,
}

impl FairShare {
    pub(crate) fn new<F: AlgorithmFactory>(
        plan: &Plan<F>,
        network: &Network<apus_wire::Header, F::Switch>,
    ) -> Self {
        let settings = plan.sample_interval.zip(plan.fair_share_after).map(|(interval, after)| {
            let connections = plan.connections.iter().enumerate().map(|(index, c)| {
                // The data of a read comes from the peer.
                let ends = plan.terminals(c);
                let (src, dst) = if c.kind == OpType::Read { (ends.1, ends.0) } else { ends };
                let links = network.path(src, dst, index as u64, 0).unwrap_or_default();
                (c.start, c.stop, links.into_iter().map(|port| port.index()).collect())
            });
            let connections = connections.collect();
            let per_second = |port| network.rate(port).as_bps() as f64 / 8.0;
            Settings {
                interval,
                after,
                warmup: Time::ZERO + plan.warmup,
                overhead: f64::from(plan.sizes.payload + plan.sizes.header)
                    / f64::from(plan.sizes.payload),
                connections,
                capacities: network.ports().map(per_second).collect(),
            }
        });
        Self { plan: settings, next_sample: Time::ZERO, worst: None, lowest_jain: None }.advanced()
    }

    fn advanced(mut self) -> Self {
        self.advance();
        self
    }

    fn advance(&mut self) {
        match &self.plan {
            Some(plan) => self.next_sample += plan.interval,
            None => self.next_sample = Time::MAX,
        }
    }

    /// Returns the end of the next window, if there is one.
    pub(crate) fn next_sample(&self) -> Option<Time> {
        self.plan.is_some().then_some(self.next_sample)
    }

    /// Evaluates the window that ends at `now`; `bytes` has the bytes that each connection
    /// delivered in it.
    pub(crate) fn sample(&mut self, now: Time, bytes: &[u64]) {
        self.advance();
        let Some(plan) = &self.plan else { return };
        let begin = now.saturating_sub(plan.interval);
        if begin < plan.warmup || plan.changed_within(begin, now) {
            return;
        }
        let active: Vec<usize> = (0..bytes.len())
            .filter(|&c| plan.connections[c].0 <= begin && plan.connections[c].1 >= now)
            .collect();
        let paths: Vec<Vec<usize>> =
            active.iter().map(|&c| plan.connections[c].2.clone()).collect();
        let shares = max_min_shares(&plan.capacities, &paths);
        let of_share = |(&connection, share): (&usize, &f64)| {
            bytes[connection] as f64 * plan.overhead / plan.interval.as_secs_f64() / share
        };
        let of_share: Vec<f64> = active.iter().zip(&shares).map(of_share).collect();
        for part in &of_share {
            let deviation = (part - 1.0).abs();
            self.worst = Some(self.worst.map_or(deviation, |worst| worst.max(deviation)));
        }
        if !of_share.is_empty() {
            let index = jain(&of_share);
            self.lowest_jain = Some(self.lowest_jain.map_or(index, |lowest| lowest.min(index)));
        }
    }

    /// Returns the minimum over windows of Jain's index of the connections' rates, each over its fair share.
    pub(crate) fn lowest_jain(&self) -> Option<f64> {
        self.lowest_jain
    }

    /// Returns the largest deviation of any connection in any window.
    pub(crate) fn worst(&self) -> Option<f64> {
        self.worst
    }
}

impl Settings {
    /// Returns `true` if a connection starts or stops within the window, or so shortly before it that rates
    /// may still be settling.
    fn changed_within(&self, begin: Time, end: Time) -> bool {
        let changes = self.connections.iter().flat_map(|(start, stop, _)| [*start, *stop]);
        changes.into_iter().any(|at| at < end && at.saturating_add(self.after) > begin)
    }
}

#[cfg(test)]
mod tests {
    use super::max_min_shares;

    #[test]
    fn flows_over_one_link_share_it_equally() {
        assert_eq!(max_min_shares(&[12.0], &[vec![0], vec![0], vec![0]]), [4.0, 4.0, 4.0]);
    }

    /// An example of the kind of Bertsekas and Gallager, Example 6.8: a long flow over two links of capacity
    /// 1, two local flows on the first link and one on the second get 1/3, 1/3, 1/3 and 2/3.
    #[test]
    fn what_a_bottleneck_leaves_goes_to_the_others() {
        let shares = max_min_shares(&[1.0, 1.0], &[vec![0, 1], vec![0], vec![0], vec![1]]);
        for (share, expected) in shares.iter().zip([1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]) {
            assert!((share - expected).abs() < 1e-12, "{shares:?}");
        }
    }
}
