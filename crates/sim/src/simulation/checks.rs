//! Checks at the end of a run. If one fails, no number of the run is valid.

use std::collections::BTreeMap;

use apus_cc::AlgorithmFactory;
use apus_fabric::{Counters, Drops};
use apus_units::{Bytes, PortId, Time};

use super::Simulation;
use crate::credits::DATA_CLASS;
use crate::error::RunError;
use crate::losses::Losses;
use crate::record::drops_at;
use crate::summary::Summary;

impl<F: AlgorithmFactory> Simulation<F> {
    /// Checks that no data queue of a run with credits exceeds its bound by network calculus.
    pub(super) fn check_credits(&self, summary: &mut Summary) -> Result<(), RunError> {
        if self.plan.credits.is_none() {
            return Ok(());
        }
        let network = &self.parts[0].world.network;
        let unscheduled = |port| {
            let most = self.network_of(port).max_foreign_bytes(port, DATA_CLASS);
            most.map_or(0, Bytes::get)
        };
        // The first bound is known before the run, the second one with the unscheduled bytes of the run.
        let solve = |unscheduled: &dyn Fn(PortId) -> u64| {
            let solved = self.data_bounds.as_ref()?.solve(&self.plan, network, unscheduled);
            solved.ok()
        };
        let (scheduled, bounds) = (solve(&|_| 0), solve(&unscheduled));
        for port in network.ports() {
            let network = self.network_of(port);
            let end = Time::ZERO + self.plan.duration;
            let data = network.class_counters(port, DATA_CLASS, end);
            summary.credits.data_drops += data.dropped.packets;
            let Some(queued) = network.max_own_bytes(port, DATA_CLASS).map(Bytes::get) else {
                continue;
            };
            let at = |bounds: &Option<BTreeMap<PortId, u64>>| bounds.as_ref()?.get(&port).copied();
            let bound = at(&bounds);
            if let Some(bound) = bound {
                let used = queued as f64 / bound as f64;
                let credits = &mut summary.credits;
                credits.bound_used = Some(credits.bound_used.map_or(used, |u| u.max(used)));
                if queued > bound {
                    let name = network.port_name(port);
                    return Err(RunError::new(format!(
                        "the data queue of port {name} held {queued} B, but network calculus \
                         bounds it by {bound} B: credits do not schedule this run's data"
                    )));
                }
            }
            if self.is_switch_port(port) && queued >= summary.credits.max_data_queue_bytes {
                summary.credits.max_data_queue_bytes = queued;
                summary.credits.bound_bytes = at(&scheduled);
                summary.credits.unscheduled_bytes = unscheduled(port);
            }
        }
        Ok(())
    }

    /// Checks packets sent = delivered + dropped + in flight, at every port and in total.
    pub(super) fn check_conservation(&self) -> Result<Counters, RunError> {
        let mut counters = Counters::default();
        let (mut held, mut pooled) = (0, 0);
        for part in &self.parts {
            counters.add(part.world.network.counters());
            held += part.world.held();
            pooled += part.world.network.pool().len() as u64;
        }
        match counters.check(held, pooled) {
            Ok(()) => Ok(counters),
            Err(why) => Err(RunError::bug(why)),
        }
    }

    /// Returns the losses of the run, and checks that the ports account for all drops of the network.
    pub(super) fn losses(&self, counters: &Counters) -> Result<Losses, RunError> {
        let network = &self.parts[0].world.network;
        let drops = |port| {
            let sum = drops_at(&self.parts, port);
            (sum != Drops::default()).then(|| (network.port_name(port), sum))
        };
        let by_port = network.ports().filter_map(drops);
        let nic_drops = self.parts[0].world.metrics.nic_drops;
        Losses::new(by_port, &counters.dropped, counters.sent, nic_drops)
    }
}
