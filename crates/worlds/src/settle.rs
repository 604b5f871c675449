//! Phases of a world: faults until its horizon; then all ops end, connections work again, and no state is left.

use std::collections::BTreeMap;

use apus_udp::virtual_host::Usage;
use apus_units::{Span, Time};

use crate::ledger::State;
use crate::plan::{OpPlan, What};
use crate::world::World;

/// Time within which every op must end after faults have stopped. deviation: no source; timeouts of the
/// transport double up to seconds, and a session without its peer ends after `idle_timeout` and three pings.
const TO_END: Span = Span::from_secs(120);
/// Additional time for each packet that a host with Swift must send to a peer for open ops: the longest delay
/// between packets of a flow in worlds (`max_pacing_delay`). RTTs of up to 5 ms, far above Swift's target
/// delay, keep congestion windows at their minimum.
pub(crate) const SLOWEST_PACE: Span = Span::from_ms(100);
/// Minimum number of bytes of an op that a packet carries. deviation: no source; the smallest MTU of hosts,
/// 1280 bytes, less 280 for headers.
const PACKET: u64 = 1000;
/// Maximum further time for which an application takes no messages, if the plan has such an application.
/// deviation: no source; half of [`TO_END`].
const TO_ACKNOWLEDGE: Span = Span::from_secs(60);
/// Further time within which every pair of hosts must have done new ops. deviation: no source; several handshakes.
const TO_WORK: Span = Span::from_secs(60);
/// Time within which all state of closed connections must be gone. deviation: no source; several idle timeouts.
const TO_FORGET: Span = Span::from_secs(120);
/// Further time within which the last timer must have run. deviation: no source; the timer wheel of the transport
/// spans 2.5 hours, and an engine learns only when it wakes that a timer in the wheel is no longer needed.
const TO_REST: Span = Span::from_secs(3 * 3600);
/// Time between two rounds of ops that show that the connections of a pair of hosts work.
const BETWEEN: Span = Span::from_ms(500);

/// Returns `true` if an engine holds what it must not hold any more.
type Held = fn(&Usage) -> bool;

impl World<'_> {
    /// Runs the world.
    pub(crate) fn run(&mut self) {
        self.run_until(Time::ZERO + self.plan.horizon, |_| false);
        self.become_quiet();
        self.take_again();
        self.end_ops();
        self.end_closings();
        self.work_again();
        if self.violation.is_none() {
            self.check_current_keys();
        }
        self.close_all();
        for of in self.ledger.regions.keys().copied().collect::<Vec<_>>() {
            let checked = match self.plan.hosts[of.0].insider {
                true => Ok(()),
                false => self.ledger.check_regions(of),
            };
            self.check("memory", checked);
        }
        let own = self.ledger.regions.values().filter_map(|regions| regions.own.as_ref());
        let changed = own.filter(|own| own.read(|memory| memory.iter().any(|&byte| byte != 0)));
        self.counts.by_insiders = changed.count() as u64;
        self.counts.steps = self.steps();
    }

    fn is_honest(&self, op: &OpPlan) -> bool {
        !self.plan.hosts[op.from].insider && !self.plan.hosts[op.to].insider
    }

    /// Returns the resources that the engines of a host use.
    fn usage(&self, host: usize) -> impl Iterator<Item = Usage> {
        let up = self.machines[host].host.as_ref();
        up.into_iter().flat_map(|up| (0..up.engines()).map(|engine| up.usage(engine)))
    }

    /// Returns the unfinished ops between honest hosts.
    fn open(&self) -> impl Iterator<Item = usize> + '_ {
        self.ledger.open(|op| self.is_honest(op))
    }

    /// Lets the application of the plan take messages again. Before that, messages that had arrived must have
    /// ended at their senders: otherwise an application that waits for its own ops before it takes messages,
    /// and a peer that does the same, would wait for each other.
    fn take_again(&mut self) {
        let Some((host, _)) = self.plan.hold else { return };
        self.run_until(self.now + TO_ACKNOWLEDGE, |world| world.open().next().is_none());
        self.takes_again = true;
        self.log.note(self.now, || format!("host {host} takes messages again"));
        self.take_messages(host);
        let here = Some(self.machines[host].of());
        let mut open = self.open();
        let unknown = open.find(|&op| {
            let entry = &self.ledger.entries[op];
            entry.target == here && entry.received > 0
        });
        drop(open);
        let checked = match unknown {
            Some(op) => Err(format!("message {op} has come, and its op has no end")),
            None => Ok(()),
        };
        self.check("acknowledgement", checked);
    }

    /// Returns the maximum number of packets that a host with Swift must send to a peer for open ops.
    fn packets_of_swift(&self) -> u64 {
        let mut packets: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for op in self.open() {
            let OpPlan { from, to, what, length, .. } = self.ledger.entries[op].plan;
            let way = if what == What::Read { (to, from) } else { (from, to) };
            if self.plan.hosts[way.0].algorithm == "swift" {
                *packets.entry(way).or_default() += length / PACKET + 1;
            }
        }
        packets.into_values().max().unwrap_or(0)
    }

    fn end_ops(&mut self) {
        let time = TO_END + SLOWEST_PACE * self.packets_of_swift();
        self.run_until(self.now + time, |world| world.open().next().is_none());
        let open: Vec<usize> = self.open().collect();
        if !open.is_empty() {
            let hosts = 0..self.machines.len();
            let held: Vec<Vec<_>> = hosts.map(|host| self.usage(host).collect()).collect();
            let what =
                format!("ops {open:?} have no end {time} after the last fault; held: {held:?}");
            self.check("liveness", Err(what));
        }
    }

    /// Checks that the connections that applications began to close have closed, because their ops have ended.
    fn end_closings(&mut self) {
        let closing = |world: &Self| {
            let honest = |host: &usize| !world.plan.hosts[*host].insider;
            let of = |host: usize| world.machines[host].app.closing().map(move |peer| (host, peer));
            let mut all = (0..world.machines.len()).filter(honest).flat_map(of);
            all.find(|(_, peer)| honest(peer))
        };
        self.run_until(self.now + TO_FORGET, |world| closing(world).is_none());
        let checked = match closing(self) {
            Some((host, peer)) => {
                let held: Vec<_> = self.usage(host).collect();
                Err(format!(
                    "a connection of host {host} with host {peer} does not close; held: {held:?}"
                ))
            }
            None => Ok(()),
        };
        self.check("close", checked);
    }

    /// Makes each pair of hosts do new ops.
    fn work_again(&mut self) {
        let hosts = self.machines.len();
        let pairs = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
        let mut pairs: Vec<(usize, usize)> = pairs.filter(|(a, b)| a != b).collect();
        let honest = |host: usize| !self.plan.hosts[host].insider;
        pairs.retain(|&(a, b)| honest(a) && honest(b));
        let end = self.now + TO_WORK;
        while !pairs.is_empty() && self.violation.is_none() {
            if self.now >= end {
                let what = format!("pairs {pairs:?} have done no op within {TO_WORK}");
                return self.check("recovery", Err(what));
            }
            let mut ops: Vec<usize> = Vec::new();
            for &(from, to) in &pairs {
                for what in [What::Message, What::Add] {
                    // The atomic op needs no slot of its own. If the peer has withdrawn its regions, the
                    // refusal is a valid end too.
                    let plan = OpPlan {
                        at: self.now.since(Time::ZERO),
                        from,
                        to,
                        what,
                        length: 2000,
                        place: 0,
                        deadline: None,
                        cancel: None,
                    };
                    let op = self.ledger.add(plan, 0);
                    self.machines[from].app.waiting.insert((self.now, op));
                    ops.push(op);
                }
                self.schedule_app(from, self.now);
            }
            let ended = |world: &Self| {
                let open = |op: &usize| {
                    matches!(world.ledger.entries[*op].state, State::Planned | State::Submitted)
                };
                !ops.iter().any(open)
            };
            self.run_until(end, ended);
            let works =
                |op: usize| matches!(self.ledger.entries[op].state, State::Done | State::Refused);
            let mut answers = ops.chunks(2);
            pairs.retain(|_| !answers.next().is_some_and(|ops| ops.iter().all(|&op| works(op))));
            if !pairs.is_empty() {
                let next = (self.now + BETWEEN).min(end);
                self.run_until(next, |_| false);
            }
        }
        // Takes all connections and messages that are ready, before the deliveries are checked.
        for host in 0..hosts {
            self.accept(host);
            self.take_messages(host);
        }
        let running = |(host, incarnation): (usize, u32)| {
            let machine = &self.machines[host];
            machine.host.is_some() && machine.incarnation == incarnation
        };
        let insider = |(host, _): (usize, u32)| self.plan.hosts[host].insider;
        let checked = self.ledger.check_messages(|of| running(of) && !insider(of));
        if self.violation.is_none() {
            self.check("delivery", checked);
        }
    }

    /// Closes all connections and checks that no state of them is left.
    fn close_all(&mut self) {
        if self.violation.is_some() {
            return;
        }
        for host in 0..self.machines.len() {
            if self.plan.hosts[host].insider {
                self.machines[host].host = None;
                self.machines[host].sockets.clear();
            }
            self.machines[host].app.waiting.clear();
            self.machines[host].app.restart();
            self.wake_commanded(host);
        }
        let hosts = 0..self.machines.len();
        let without = |world: &Self, held: Held| {
            hosts.clone().all(|host| !world.usage(host).any(|usage| held(&usage)))
        };
        let phases: [(Span, Held); 2] = [
            (TO_FORGET, |usage| !usage.is_empty()),
            (TO_REST, |usage| usage.next_timer != Time::MAX),
        ];
        for (time, held) in phases {
            self.run_until(self.now + time, |world| without(world, held));
            for host in 0..self.machines.len() {
                let left = self.usage(host).find(held);
                if let Some(usage) = left {
                    let what =
                        format!("host {host} holds {usage:?} after all connections were closed");
                    return self.check("remains", Err(what));
                }
            }
        }
    }
}
