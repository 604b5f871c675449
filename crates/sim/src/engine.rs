//! Engine of a host: one thread (or one per direction) that processes all packets.

use apus_cc::AlgorithmFactory;
use apus_transport::Handled;
use apus_units::{Span, Time};
use apus_wire::{Body, Header};

use crate::host::{Host, Thread, begins_op};
use crate::host_model::EngineCosts;
use crate::random::Stream;
use crate::world::World;

/// A batch of received packets. It takes effect when the engine has processed it.
#[derive(Clone, Copy, Debug)]
struct Batch {
    started: Time,
    ends: Time,
    packets: u32,
}

/// State of a host's engine.
#[derive(Debug)]
pub(crate) struct Engine {
    costs: EngineCosts,
    random: Stream,
    batch: Option<Batch>,
    /// Time at which the receiving (or only) thread is free.
    free_at: Time,
    /// Time at which the sending thread is free, if there is one.
    send_free_at: Time,
    /// Remaining work until the next stall.
    until_stall: Span,
    /// Work since the last count, without stalls.
    worked: Span,
}

impl Engine {
    pub(crate) fn new(costs: EngineCosts, mut random: Stream) -> Self {
        let until_stall = costs.stall_every.mul_f64(random.exponential());
        Self {
            costs,
            random,
            batch: None,
            free_at: Time::ZERO,
            send_free_at: Time::ZERO,
            until_stall,
            worked: Span::ZERO,
        }
    }

    /// Returns the time that work of this `cost` takes, including noise and stalls.
    fn spend(&mut self, cost: Span) -> Span {
        let noise = self.costs.noise;
        let mut spent = cost;
        if noise > 0.0 {
            spent = cost.mul_f64(1.0 - noise + noise * self.random.exponential());
        }
        self.worked += spent;
        if self.costs.stall_every.is_zero() {
            return spent;
        }
        if spent < self.until_stall {
            self.until_stall -= spent;
            return spent;
        }
        self.until_stall = self.costs.stall_every.mul_f64(self.random.exponential());
        spent + self.costs.stall.mul_f64(self.random.exponential())
    }

    /// Returns the time of the engine's next action. `waiting`: whether packets are queued; `send`: the time
    /// at which a packet to send or a timer is due.
    pub(crate) fn next_step(&self, now: Time, waiting: bool, send: Time) -> Time {
        if self.costs.shared {
            return match self.batch {
                Some(batch) => batch.ends,
                None if waiting => self.free_at.max(now),
                None => self.free_at.max(send),
            };
        }
        let receive = match self.batch {
            Some(batch) => batch.ends,
            None if waiting => self.free_at.max(now),
            None => Time::MAX,
        };
        receive.min(self.send_free_at.max(send))
    }
}

impl<F: AlgorithmFactory> Host<F> {
    /// Runs the engine at `now`, as far as its threads are free.
    pub(crate) fn run_engine(&mut self, now: Time, world: &mut World<F>) {
        let Some(mut engine) = self.engine.take() else { return };
        if let Some(batch) = engine.batch.take_if(|b| b.ends <= now) {
            let done = self.finish_batch(&mut engine, batch, world);
            engine.free_at =
                if engine.costs.shared { self.send_round(&mut engine, done, world) } else { done };
        }
        if engine.batch.is_none() && engine.free_at <= now {
            let waiting = self.receive_queue.packets.len() as u32;
            if waiting > 0 {
                let packets = waiting.min(engine.costs.batch);
                engine.batch = Some(self.begin_batch(&mut engine, now, packets, world));
            } else if engine.costs.shared {
                engine.free_at = self.send_round(&mut engine, now, world);
            }
        }
        if !engine.costs.shared && engine.send_free_at <= now {
            engine.send_free_at = self.send_round(&mut engine, now, world);
        }
        world.metrics.warm.engine_time += core::mem::take(&mut engine.worked);
        self.engine = Some(engine);
    }

    /// Takes packets from the receive queue. Their sizes determine the processing time.
    fn begin_batch(&self, engine: &mut Engine, now: Time, packets: u32, world: &World<F>) -> Batch {
        let mut cost = Span::ZERO;
        for queued in self.receive_queue.packets.iter().take(packets as usize) {
            cost += receive_cost(&engine.costs, world.network.pool().payload(queued.packet));
        }
        let spent = engine.spend(cost);
        Batch { started: now, ends: now + spent, packets }
    }

    /// Ends a batch: its packets take effect, spread evenly over the time of the batch, and one
    /// acknowledgement per flow is sent. Returns the time at which this work is done.
    fn finish_batch(&mut self, engine: &mut Engine, batch: Batch, world: &mut World<F>) -> Time {
        let took = batch.ends.since(batch.started);
        let mut ops = 0;
        for index in 1..=batch.packets {
            let level = self.receiver_level();
            let Some(queued) = self.receive_queue.pop() else { break };
            let processed = batch.started + took * u64::from(index) / u64::from(batch.packets);
            world.metrics.on_processed(processed.since(queued.received_at));
            let handled = self.process(processed, queued.received_at, queued.packet, level, world);
            ops += u64::from(matches!(handled, Handled::Data { finished: true, .. }));
        }
        let mut now = batch.ends;
        if ops > 0 {
            now += engine.spend(engine.costs.receive_op * ops);
        }
        let thread = if engine.costs.shared { Thread::Sending } else { Thread::Receiving };
        while self.endpoint.has_ack() {
            // t4 is read when the acknowledgement is ready for the NIC, so its cost, stalls
            // included, is part of `remote_queuing`.
            now += engine.spend(engine.costs.send_ack);
            let Some(transmit) = self.endpoint.poll_ack(self.clocks.host.read(now)) else { break };
            self.hand_to_nic(now, thread, &transmit, world);
        }
        self.complete(now, self.clocks.host.read(now), world);
        now
    }

    /// Runs timers and sends a batch of data packets, as many as the NIC accepts. Returns the time at which
    /// this work is done.
    fn send_round(&mut self, engine: &mut Engine, start: Time, world: &mut World<F>) -> Time {
        let mut now = start;
        self.endpoint.handle_timeout(self.clocks.host.read(now));
        self.complete(now, self.clocks.host.read(now), world);
        for _ in 0..engine.costs.batch {
            if !self.endpoint.has_transmit() || !self.nic_has_room(now) {
                break;
            }
            // t1 is read when the packet is ready for the NIC, so the cost of sending is host delay.
            let ready = now + engine.spend(engine.costs.send_packet);
            let local = self.clocks.host.read(ready);
            let ack = self.endpoint.poll_ack(local);
            let Some(transmit) = ack.or_else(|| self.poll_data(now, local, world)) else { break };
            now = ready;
            self.hand_to_nic(now, Thread::Sending, &transmit, world);
            if begins_op(&transmit.header) {
                now += engine.spend(engine.costs.send_op);
            }
        }
        now + engine.spend(engine.costs.round)
    }
}

fn receive_cost(costs: &EngineCosts, header: &Header) -> Span {
    match &header.body {
        Body::Ack(_)
        | Body::Control(_)
        | Body::Reject(_)
        | Body::Signal(_)
        | Body::Trimmed(_)
        | Body::Nack(_) => costs.receive_ack,
        Body::Data(segment) => {
            costs.receive_packet + costs.copy_kib.mul_f64(f64::from(segment.length) / 1024.0)
        }
    }
}
