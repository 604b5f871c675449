//! Devices that answer reads: disks behind a host.
//!
//! A device serves up to `parallel` reads at a time, the others first come, first served. It is what
//! makes the ops of a storage server take their time, so that ops per second follow from how many a
//! client has under way and how long they take (Little's law), not from the rate of its link alone.

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
    /// When each of its places is free, the first one first.
    free: BinaryHeap<Reverse<Time>>,
    random: Stream,
}

impl Device {
    /// When a read that comes at `now`, after all before it, is served.
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

/// The devices of a host.
#[derive(Debug)]
pub(crate) struct Devices {
    host: HostId,
    seed: u64,
    devices: BTreeMap<u32, Device>,
    /// The device of each flow that has one.
    of_flow: BTreeMap<FlowId, u32>,
    /// Reads under way: when each is served, and which of `asked` it is.
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

    /// Reads over `flow` are served by the device of `service`.
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

    /// A read has been asked for at the true time `now`, `local` on the host's clock. Without a device
    /// it is answered at once.
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

    /// When the next read is served; [`Time::MAX`] if none is under way.
    pub(crate) fn next_at(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    /// Answers what is served at the true time `now`, `local` on the host's clock.
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
