//! Devices that answer reads: disks behind a host.
//!
//! A device serves up to `parallel` reads at a time, in order of arrival. With devices, the ops per second of
//! a storage server follow from the client's outstanding ops and their latency (Little's law), not only from
//! the rate of its link.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use apus_cc::AlgorithmFactory;
use apus_transport::Endpoint;
use apus_units::{FlowId, HostId, Time};
use apus_wire::Segment;

use crate::plan;
use crate::random::{Purpose, Stream};

/// One device of a host.
#[derive(Debug)]
struct Device {
    service: plan::Service,
    /// Times at which each of the device's `parallel` slots is free, the earliest first.
    free: BinaryHeap<Reverse<Time>>,
    random: Stream,
}

impl Device {
    /// Returns the time at which a read that arrives at `now` has been served, after all earlier reads.
    fn serve(&mut self, now: Time) -> Time {
        let plan::Service { time, noise, .. } = self.service;
        let mut takes = time;
        if noise > 0.0 {
            takes = time.mul_f64(1.0 - noise + noise * self.random.exponential());
        }
        let begins = match self.free.pop() {
            Some(Reverse(free)) => free.max(now),
            None => now,
        };
        self.free.push(Reverse(begins + takes));
        begins + takes
    }
}

/// Devices of a host.
#[derive(Debug)]
pub(crate) struct Devices {
    host: HostId,
    seed: u64,
    devices: BTreeMap<u32, Device>,
    /// Device of each flow that uses one.
    of_flow: BTreeMap<FlowId, u32>,
    /// Outstanding reads: time at which each is served, and its index in `asked`.
    due: BinaryHeap<Reverse<(Time, u64)>>,
    asked: BTreeMap<u64, (FlowId, Segment)>,
    count: u64,
}

impl Devices {
    pub(crate) fn new(host: HostId, seed: u64) -> Self {
        Self {
            host,
            seed,
            devices: BTreeMap::new(),
            of_flow: BTreeMap::new(),
            due: BinaryHeap::new(),
            asked: BTreeMap::new(),
            count: 0,
        }
    }

    /// Assigns the device of `service` to the reads on `flow`.
    pub(crate) fn add(&mut self, flow: FlowId, service: plan::Service) {
        let entity = u64::from(service.device) << 32 | u64::from(self.host.get());
        let seed = self.seed;
        self.devices.entry(service.device).or_insert_with(|| Device {
            service,
            free: (0..service.parallel).map(|_| Reverse(Time::ZERO)).collect(),
            random: Stream::new(seed, Purpose::Service, entity),
        });
        self.of_flow.insert(flow, service.device);
    }

    /// Handles a read request at the true time `now`, which is `local` on the host's clock. If the flow has
    /// no device, the read is answered at once.
    pub(crate) fn on_request<F: AlgorithmFactory>(
        &mut self,
        (now, local): (Time, Time),
        flow: FlowId,
        segment: &Segment,
        endpoint: &mut Endpoint<F>,
    ) {
        let device = self.of_flow.get(&flow).and_then(|number| self.devices.get_mut(number));
        let Some(device) = device else {
            endpoint.answer_read(local, flow, segment);
            return;
        };
        self.due.push(Reverse((device.serve(now), self.count)));
        self.asked.insert(self.count, (flow, *segment));
        self.count += 1;
    }

    /// Returns the time at which the next read is served; [`Time::MAX`] if none is outstanding.
    pub(crate) fn next_at(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    /// Answers the reads that are served at the true time `now`, which is `local` on the host's clock.
    pub(crate) fn answer_due<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        while self.next_at() <= now {
            let Some(Reverse((_, number))) = self.due.pop() else { break };
            if let Some((flow, segment)) = self.asked.remove(&number) {
                endpoint.answer_read(local, flow, &segment);
            }
        }
    }
}
