//! A world: machines, the network between them, and the order of events.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use apus_udp::virtual_host::Sent;
use apus_units::random::mix;
use apus_units::{Span, Time};

use crate::agenda::Agenda;
use crate::audit::Audit;
use crate::draw::Draw;
use crate::identity::{FrozenSlots, Identities};
use crate::ledger::{Ledger, State};
use crate::log::{Counts, Log};
use crate::machine::Machine;
use crate::network::Flight;
use crate::plan::Plan;

/// Maximum number of steps of all engines. deviation: no source; a world takes several thousand steps, and a
/// world that repeats a step without end is detected soon.
const MAX_STEPS: u64 = 3_000_000;

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Kind of check that failed.
    pub check: &'static str,
    /// Description of the observation.
    pub what: String,
    /// Time of the world at which the check failed.
    pub at: Time,
}

/// An event at an instant.
pub(crate) enum Event {
    /// A datagram reaches an address.
    Arrive(Flight),
    /// An engine runs, if its next run still has this number.
    Run { host: usize, engine: usize, run: u64 },
    /// An application runs.
    App { host: usize, run: u64 },
    /// A fault of the plan begins.
    Begin(usize),
    /// A fault of the plan ends.
    End(usize),
    /// An adversary of a fault acts.
    Act(usize),
    /// A host starts.
    Start(usize),
    /// A host stops in an orderly way and starts again.
    Stop(usize),
    /// A key is removed after another one has replaced it everywhere.
    Forget,
    /// The replacement of a host's key pair continues; the stage after this one follows after this time.
    NextStage(usize, Span),
}

/// A running world.
pub(crate) struct World<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) now: Time,
    agenda: Agenda,
    pub(crate) machines: Vec<Machine>,
    /// By address: the host that has or had it.
    pub(crate) owners: BTreeMap<SocketAddr, usize>,
    pub(crate) ledger: Ledger,
    audit: Audit,
    pub(crate) random: Draw,
    /// By fault of the plan: whether it is active.
    pub(crate) active: Vec<bool>,
    /// By fault: number of actions of its adversary.
    pub(crate) acts: Vec<u32>,
    /// Datagrams that adversaries have recorded.
    pub(crate) captured: Vec<Flight>,
    pub(crate) captures: bool,
    /// Number of the current shared key, and whether the previous key is also valid.
    pub(crate) key: (u64, bool),
    /// Keys of hosts, if they have keys of their own.
    pub(crate) identities: Option<Identities>,
    /// Slots that must not change while a peer has no right to them.
    pub(crate) frozen: FrozenSlots,
    pub(crate) counts: Counts,
    pub(crate) log: Log,
    pub(crate) violation: Option<Violation>,
    /// Whether faults have stopped.
    pub(crate) quiet: bool,
    /// Whether the application that takes no messages takes them again.
    pub(crate) takes_again: bool,
    steps: u64,
}

impl<'p> World<'p> {
    pub(crate) fn new(plan: &'p Plan, log: Log) -> Self {
        let now = Time::ZERO;
        let machines: Vec<Machine> =
            (0..plan.hosts.len()).map(|number| Machine::new(number, plan, now)).collect();
        let owners = machines.iter().map(|machine| (machine.address, machine.number)).collect();
        let mut world = Self {
            plan,
            now,
            agenda: Agenda::default(),
            machines,
            owners,
            ledger: Ledger::new(plan),
            audit: Audit::default(),
            random: Draw::new(plan.seed, 1),
            active: vec![false; plan.faults.len()],
            acts: vec![0; plan.faults.len()],
            captured: Vec::new(),
            captures: plan.faults.iter().any(|fault| fault.what.needs_captures()),
            key: (0, false),
            identities: Identities::of(plan),
            frozen: FrozenSlots::new(),
            counts: Counts::default(),
            log,
            violation: None,
            quiet: false,
            takes_again: false,
            steps: 0,
        };
        for (number, op) in plan.ops.iter().enumerate() {
            let waiting = &mut world.machines[op.from].app.waiting;
            waiting.insert((Time::ZERO + op.at, number));
        }
        for host in 0..plan.hosts.len() {
            world.start(host);
        }
        for (number, fault) in plan.faults.iter().enumerate() {
            world.push(Time::ZERO + fault.at, Event::Begin(number));
        }
        world
    }

    pub(crate) fn push(&mut self, at: Time, event: Event) {
        self.agenda.push(at.max(self.now), event);
    }

    /// Records the result of a check.
    pub(crate) fn check(&mut self, check: &'static str, result: Result<(), String>) {
        if let Err(what) = result {
            self.log.note(self.now, || format!("VIOLATION of {check}: {what}"));
            self.violation.get_or_insert(Violation { check, what, at: self.now });
        }
    }

    /// Runs until `end`, until a violation, or until `done` returns `true`.
    pub(crate) fn run_until(&mut self, end: Time, done: impl Fn(&Self) -> bool) {
        // A datagram that arrives in a socket changes nothing that `done` reads.
        let mut changed = true;
        while self.violation.is_none() && !(changed && done(self)) {
            let Some((at, event)) = self.agenda.pop(end) else {
                self.now = end;
                return;
            };
            self.now = at;
            changed = !matches!(event, Event::Arrive(_));
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(flight) => self.arrive(flight),
            Event::Run { host, engine, run } => {
                let socket = self.machines[host].sockets.get_mut(engine);
                if socket.is_some_and(|socket| socket.run == run && socket.run_at.take().is_some())
                {
                    self.run_engine(host, engine);
                }
            }
            Event::App { host, run } => {
                let machine = &mut self.machines[host];
                if machine.app_run != run {
                    return;
                }
                machine.app_at = None;
                let until = machine.paused_until.max(machine.slow_until);
                if until > self.now {
                    self.schedule_app(host, until);
                } else {
                    self.run_app(host);
                }
            }
            Event::Begin(fault) => self.begin_fault(fault),
            Event::End(fault) => self.end_fault(fault),
            Event::Act(fault) => self.act(fault),
            Event::Start(host) => self.start(host),
            Event::Stop(host) => self.stop(host),
            Event::Forget => self.forget_key(),
            Event::NextStage(host, pause) => self.next_stage(host, pause),
        }
    }

    /// Returns `true` while the application of a host takes no messages.
    pub(crate) fn takes_none(&self, host: usize) -> bool {
        let since = self.plan.hold.filter(|&(of, _)| of == host).map(|(_, at)| Time::ZERO + at);
        !self.takes_again && since.is_some_and(|at| at <= self.now)
    }

    /// Starts a host that is down.
    pub(crate) fn start(&mut self, host: usize) {
        if self.machines[host].host.is_some() {
            return;
        }
        self.machines[host].keyless = false;
        let (ring, grant) = (self.ring(host), self.grant(host));
        let machine = &mut self.machines[host];
        let started = machine.start(self.now, self.plan, ring, grant, &mut self.ledger);
        let incarnation = machine.incarnation;
        self.check("start", started);
        self.log.note(self.now, || format!("host {host} starts, incarnation {incarnation}"));
        self.restore_faults(host);
        for engine in 0..self.machines[host].sockets.len() {
            self.schedule_run(host, engine, self.now);
        }
        self.schedule_app(host, self.now);
    }

    /// Schedules a run of an engine at `at`, unless it runs earlier.
    pub(crate) fn schedule_run(&mut self, host: usize, engine: usize, at: Time) {
        let machine = &mut self.machines[host];
        let at = at.max(machine.paused_until).max(self.now);
        let Some(socket) = machine.sockets.get_mut(engine) else { return };
        if at == Time::MAX || socket.run_at.is_some_and(|before| before <= at) {
            return;
        }
        socket.run += 1;
        socket.run_at = Some(at);
        let run = socket.run;
        self.push(at, Event::Run { host, engine, run });
    }

    pub(crate) fn schedule_app(&mut self, host: usize, at: Time) {
        let machine = &mut self.machines[host];
        if machine.app_at.is_some_and(|before| before <= at) {
            return;
        }
        machine.app_run += 1;
        machine.app_at = Some(at);
        let run = machine.app_run;
        self.push(at, Event::App { host, run });
    }

    /// Wakes the engines that have pending commands.
    pub(crate) fn wake_commanded(&mut self, host: usize) {
        for engine in 0..self.machines[host].sockets.len() {
            let waits = self.machines[host].host.as_ref().is_some_and(|h| h.has_commands(engine));
            if waits {
                self.schedule_run(host, engine, self.now + Span::from_ns(200));
            }
        }
    }

    fn run_engine(&mut self, host: usize, engine: usize) {
        if self.machines[host].paused_until > self.now {
            return self.schedule_run(host, engine, self.machines[host].paused_until);
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return self.check("progress", Err(format!("{MAX_STEPS} steps, and no end")));
        }
        self.before_step(host);
        let machine = &mut self.machines[host];
        machine.step(engine, self.now);
        let Some(up) = &machine.host else { return };
        let sent = up.take_sent(engine);
        let failed = up.has_failed();
        self.transmit(host, engine, sent);
        if failed {
            return self.on_failure(host);
        }
        let cost = Span::from_ns(self.random.range(300, 4000));
        let (now, reaction) = (self.now, self.machines[host].plan.reaction);
        let machine = &mut self.machines[host];
        let Some(up) = &mut machine.host else { return };
        // Unsent bytes of an engine that sleeps although room in the socket would not wake it.
        let mut asleep_with = None;
        match up.rest(engine) {
            None => self.schedule_run(host, engine, now + cost),
            Some(rest) => {
                let socket = &mut machine.sockets[engine];
                (socket.asleep, socket.sending) = (Some(rest.due), rest.sending);
                asleep_with = (!rest.sending).then(|| up.usage(engine).unsent_bytes);
                // Room in a full socket ends the sleep.
                let has_room = rest.sending && machine.full_until <= now;
                let due = if has_room { now + cost } else { machine.clock.when(rest.due) };
                self.schedule_run(host, engine, due.max(now + cost));
            }
        }
        let waits = asleep_with.is_none_or(|unsent| unsent == 0);
        let told =
            || Err(format!("host {host} sleeps with bytes to send, and not until there is room"));
        self.check("wake-up", if waits { Ok(()) } else { told() });
        self.schedule_app(host, now + reaction);
        // A step may have posted commands to other engines of the host.
        self.wake_commanded(host);
        if self.steps.is_multiple_of(8) {
            self.check_usage(host, engine);
        }
    }

    /// Sends bursts of a host, unless it crashes in the meantime.
    fn transmit(&mut self, host: usize, engine: usize, sent: Vec<Sent>) {
        for Sent { from, to, tos, datagrams } in sent {
            for datagram in datagrams {
                if self.plan.sealed {
                    let up = self.machines[host].host.as_ref();
                    let nonce = up.and_then(|up| up.nonce_of(engine, &datagram));
                    let checked = self.audit.on_sent(nonce, &datagram);
                    self.check("secrecy", checked);
                }
                if let Some((left, down)) = &mut self.machines[host].crash_after {
                    if *left == 0 {
                        let down = *down;
                        return self.crash(host, down);
                    }
                    *left -= 1;
                }
                let by = self.machines[host].of();
                let checked = self.ledger.on_sent(by, &datagram, self.plan.sealed);
                self.check("trace", checked);
                let from = self.seen_from(host, from);
                self.send(host, Flight { from, to, tos, ttl: 64, bytes: datagram });
            }
        }
    }

    /// Returns the engine of a host that receives from an address; the kernel distributes peers among sockets
    /// in this way.
    pub(crate) fn engine_for(&self, host: usize, from: SocketAddr) -> usize {
        let SocketAddr::V4(v4) = from else { return 0 };
        let peer = u64::from(u32::from(*v4.ip())) << 16 | u64::from(v4.port());
        (mix(peer ^ mix(host as u64)) % self.machines[host].sockets.len().max(1) as u64) as usize
    }

    /// Ends the process of a host at once.
    pub(crate) fn crash(&mut self, host: usize, down: Span) {
        let machine = &mut self.machines[host];
        if machine.host.take().is_none() {
            return;
        }
        self.log.note(self.now, || format!("host {host} crashes"));
        self.end_process(host);
        self.push(self.now + down, Event::Start(host));
    }

    /// Stops a host in an orderly way and starts it again. Every op ends.
    fn stop(&mut self, host: usize) {
        if !self.halt(host) {
            return;
        }
        self.push(self.now + Span::from_ms(5), Event::Start(host));
    }

    /// Stops a host in an orderly way. Returns `false` if the host is down.
    pub(crate) fn halt(&mut self, host: usize) -> bool {
        let Some(up) = &self.machines[host].host else { return false };
        up.stop();
        self.log.note(self.now, || format!("host {host} stops"));
        for engine in 0..self.machines[host].sockets.len() {
            self.machines[host].step(engine, self.now);
            let sent = self.machines[host].host.as_ref().map(|up| up.take_sent(engine));
            self.machines[host].crash_after = None;
            self.transmit(host, engine, sent.unwrap_or_default());
        }
        self.take_messages(host);
        self.take_ends(host);
        let open: Vec<usize> = self.machines[host].app.outstanding.keys().copied().collect();
        let ended = if open.is_empty() {
            Ok(())
        } else {
            Err(format!("host {host} has stopped, and ops {open:?} have no end"))
        };
        self.check("stop", ended);
        self.machines[host].host = None;
        self.end_process(host);
        true
    }

    fn end_process(&mut self, host: usize) {
        let of = self.machines[host].of();
        for entry in &mut self.ledger.entries {
            if entry.state == State::Submitted && entry.by == Some(of) {
                entry.state = State::Abandoned;
            }
        }
        self.machines[host].sockets.clear();
        self.machines[host].app.restart();
        self.machines[host].crash_after = None;
    }

    /// Handles the panic of an engine. It is intended if the memory of a region panicked.
    fn on_failure(&mut self, host: usize) {
        let machine = &self.machines[host];
        let meant = machine.panicked;
        if !meant {
            return self.check("panic", Err(format!("an engine of host {host} panicked")));
        }
        self.stop(host);
    }

    /// Checks the bounds of the resources that an engine uses.
    fn check_usage(&mut self, host: usize, engine: usize) {
        let Some(up) = &self.machines[host].host else { return };
        let (usage, plan) = (up.usage(engine), &self.machines[host].plan);
        let flows = usage.connections * 8;
        let within = usage.sessions <= 64
            && usage.pending <= 16
            && usage.replies <= 4096
            && usage.flows <= flows
            && usage.ops + usage.waiting_ops <= flows * plan.max_ops as usize
            && usage.deadlines <= usage.ops + usage.waiting_ops
            && usage.queued_messages <= plan.max_queued_messages as usize
            && usage.queued_bytes <= plan.max_queued_bytes()
            && plan.quotas.as_ref().is_none_or(|q| usage.queued_by_key <= q.queued_bytes)
            && usage.refusals <= flows * plan.max_ops as usize;
        let result = if within { Ok(()) } else { Err(format!("host {host} holds {usage:?}")) };
        self.check("bounds", result);
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }
}
