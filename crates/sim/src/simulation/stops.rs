//! Stops of a run, for samples and for changes of links.

use apus_cc::AlgorithmFactory;
use apus_units::Time;

use super::Simulation;
use crate::measure::{GroupQueues, Look, PortWindows, SeriesSampler};
use crate::record::Sampler;
use crate::watch::Tell;

impl<F: AlgorithmFactory> Simulation<F> {
    /// Returns the next stop for a sample or for a change of a link or a path.
    pub(super) fn next_sample(&self) -> Option<Time> {
        let recorded = self.sampler.as_ref().map(Sampler::next_sample);
        let changes = self.changes();
        let window = self.port_windows.as_ref().map(PortWindows::next);
        let queues = self.group_queues.as_ref().map(GroupQueues::next);
        let series = self.series.as_ref().map(SeriesSampler::next);
        let parts = queues.into_iter().chain(series).filter(|at| *at < Time::MAX);
        let others = recorded.into_iter().chain(changes).chain(window).chain(parts);
        let stalls = Some(self.stalls.next());
        self.fair_share.next_sample().into_iter().chain(others).chain(stalls).min()
    }

    /// Returns the next changes of links and paths.
    fn changes(&self) -> impl Iterator<Item = Time> + use<F> {
        let changes = self.faults.next().into_iter().chain(self.reroutes.next());
        changes.chain(self.detours.next())
    }

    /// Returns the time of the next change of a link or a path.
    pub(super) fn next_change(&self) -> Option<Time> {
        let changes = self.changes();
        changes.chain(Some(self.stalls.next())).min()
    }

    /// Looks for stalled flows if a check is due at `now`.
    pub(super) fn look_for_stalls(&mut self, now: Time, name: &str) {
        if self.stalls.next() == now {
            self.look_for_stalls_now(now, name);
        }
    }

    /// Looks for stalled flows now.
    pub(super) fn look_for_stalls_now(&mut self, now: Time, name: &str) {
        let tell = |text: &str| {
            if let Some(Tell(tell)) = &self.watch.tell {
                tell(name, text);
            }
        };
        self.stalls.look(now, &self.parts, &self.plan, &tell);
    }

    /// Stops the samples of ports and quantities: the measured phase has ended, although its step has not.
    pub(super) fn end_samples(&mut self) {
        self.port_windows.iter_mut().for_each(PortWindows::end);
        self.group_queues.iter_mut().for_each(GroupQueues::end);
        self.series.iter_mut().for_each(SeriesSampler::end);
    }

    /// Ends the time window of the measured ports that is due at `now`.
    pub(super) fn end_port_window(&mut self, now: Time) {
        let Some(mut windows) = self.port_windows.take() else { return };
        if windows.next() == now {
            windows.sample(|port, class| self.network_of(port).class_counters(port, class, now));
        }
        self.port_windows = Some(windows);
    }

    /// Takes the samples of queues and quantities that are due at `now`.
    pub(super) fn sample_parts(&mut self, now: Time) {
        if let Some(mut queues) = self.group_queues.take_if(|queues| queues.next() == now) {
            queues.sample(|port| self.network_of(port).queue_bytes(port, now).get());
            self.group_queues = Some(queues);
        }
        if let Some(mut series) = self.series.take_if(|series| series.next() == now) {
            let ports = |port| self.counters_of(port, now);
            let delivered = |connection| self.delivered(connection);
            series.sample(now, &Look { ports: &ports, delivered: &delivered });
            self.series = Some(series);
        }
    }

    /// Returns the payload that a connection has delivered once since the metrics last restarted.
    pub(super) fn delivered(&self, connection: usize) -> u64 {
        self.parts.iter().map(|part| part.world.metrics.connections[connection].new_bytes).sum()
    }

    /// Applies the changes of links and detours that are due at `now`.
    pub(super) fn change_links(&mut self, now: Time) {
        while let Some(change) = self.faults.pop(now) {
            let owner = self.partition.of_port(change.fault.port) as usize;
            self.faults.apply(&change, &mut self.parts, owner);
        }
        self.detours.apply(now, &mut self.parts);
    }

    /// Takes the samples of the recording that are due at `now`.
    pub(super) fn sample_recording(&mut self, now: Time) {
        let Some(mut sampler) = self.sampler.take() else { return };
        if sampler.next_sample() == now {
            sampler.sample(now, &self.parts, |port| self.counters_of(port, now));
        }
        self.sampler = Some(sampler);
    }
}
