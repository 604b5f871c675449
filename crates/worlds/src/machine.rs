//! A machine of a world: its clock, its sockets, and the host that runs on it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::virtual_host::{Received, VirtualHost};
use apus_udp::{Access, Config, Grant, Memory, Region, RegionKey};
use apus_units::{Span, Time};

use crate::app::App;
use crate::clock::HostClock;
use crate::content::OWN_BYTES;
use crate::ledger::{Incarnation, Ledger, Regions};
use crate::plan::{HostPlan, Plan, What};
use crate::settle::SLOWEST_PACE;

/// Number of the second port of the first engine of a host that spreads packets.
pub(crate) const FIRST_PORT: u16 = 30_000;
/// Number that a NAT adds to a port whose mapping it has lost.
pub(crate) const MOVED: u16 = 1000;

/// Maximum number of datagrams, or aggregates, that one call receives.
const BATCH: usize = 4;
/// Maximum number of bytes of an aggregate.
const AGGREGATE: usize = 60_000;

/// Region keys of an incarnation, as peers know them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) of: Incarnation,
    pub(crate) slots: RegionKey,
    pub(crate) pattern: RegionKey,
    pub(crate) words: RegionKey,
    pub(crate) secret: RegionKey,
    /// Key of the region of the insider, if there is one.
    pub(crate) own: Option<RegionKey>,
}

impl Keys {
    /// Returns the region key that an op names; `None` if it names no region.
    pub(crate) fn of_op(&self, what: What) -> Option<RegionKey> {
        Some(match what {
            What::Write | What::Beyond => self.slots,
            What::Read | What::Overflow | What::Forbidden => self.pattern,
            What::Add | What::Swap => self.words,
            What::StrangeKey => {
                // The identifier of a region with another secret.
                RegionKey::new(self.secret.get() ^ 0x5a5a_0000_0000_0000)
            }
            What::Message | What::TooLong => return None,
        })
    }
}

/// Faults of the memory of regions that occur when an engine uses it.
#[derive(Debug, Default)]
pub(crate) struct Bomb {
    pub(crate) armed: AtomicBool,
    pub(crate) in_engine: AtomicBool,
    /// Whether engines find the region of known content at half its registered length.
    pub(crate) short: AtomicBool,
}

/// Memory of a region.
struct Bytes {
    bytes: Vec<u8>,
    bomb: Arc<Bomb>,
    /// Whether the memory may be shortened.
    shrinks: bool,
}

impl Bytes {
    fn use_once(&self) {
        // The panic hook is bypassed, because the panic is intended.
        if self.bomb.in_engine.load(Ordering::Relaxed)
            && self.bomb.armed.swap(false, Ordering::Relaxed)
        {
            resume_unwind(Box::new("the memory of a region panics"));
        }
    }
}

impl Memory for Bytes {
    fn bytes(&self) -> &[u8] {
        self.use_once();
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let short = self.shrinks && is(&self.bomb.in_engine) && is(&self.bomb.short);
        if short { &self.bytes[..self.bytes.len() / 2] } else { &self.bytes }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.use_once();
        &mut self.bytes
    }
}

/// The socket of an engine, with the state of the engine that the kernel would know.
#[derive(Default)]
pub(crate) struct Socket {
    queue: VecDeque<Received>,
    bytes: usize,
    /// Time of the engine's next run.
    pub(crate) run_at: Option<Time>,
    /// Number of that run; runs with other numbers are obsolete.
    pub(crate) run: u64,
    /// Deadline of the timer until which the engine sleeps, by its host's clock.
    pub(crate) asleep: Option<Time>,
    /// Whether room in the send buffer ends its sleep.
    pub(crate) sending: bool,
}

/// A machine.
pub(crate) struct Machine {
    pub(crate) number: usize,
    pub(crate) plan: HostPlan,
    /// `None` while the machine is down.
    pub(crate) host: Option<VirtualHost>,
    pub(crate) incarnation: u32,
    pub(crate) clock: HostClock,
    pub(crate) sockets: Vec<Socket>,
    pub(crate) app: App,
    /// Address to which peers connect.
    pub(crate) address: SocketAddr,
    /// Source address of its datagrams, if it differs from `address`.
    pub(crate) external: Option<SocketAddr>,
    pub(crate) paused_until: Time,
    pub(crate) slow_until: Time,
    pub(crate) full_until: Time,
    /// Region keys of the last incarnation.
    pub(crate) keys: Option<Keys>,
    pub(crate) bomb: Arc<Bomb>,
    /// Whether the memory of regions was made to panic in this incarnation.
    pub(crate) panicked: bool,
    /// Number of datagrams until the crash, and time for which the machine is down afterwards.
    pub(crate) crash_after: Option<(u64, Span)>,
    /// Maximum error of its kernel's timestamps.
    pub(crate) stamp_error: Span,
    /// MTU of its interface.
    pub(crate) interface: u32,
    /// Whether it lacks the keys of the other hosts.
    pub(crate) keyless: bool,
    /// Time of the application's next run.
    pub(crate) app_at: Option<Time>,
    pub(crate) app_run: u64,
}

/// Returns the shared key of this number.
pub(crate) fn shared_key(seed: u64, number: u64) -> SharedKey {
    let mut secret = [0; 32];
    secret[..8].copy_from_slice(&seed.to_le_bytes());
    secret[8..16].copy_from_slice(&number.to_le_bytes());
    SharedKey::new(secret)
}

impl Machine {
    pub(crate) fn new(number: usize, plan: &Plan, now: Time) -> Self {
        let host = plan.hosts[number].clone();
        // Clocks start at different times.
        let start = Time::ZERO + Span::from_ms(100) * (1 + plan.seed % 1000 + 77 * number as u64);
        Self {
            number,
            clock: HostClock::new(now, start, host.drift_ppm),
            sockets: Vec::new(),
            host: None,
            incarnation: 0,
            app: App::default(),
            address: ([10, 0, 0, number as u8 + 1], 7000).into(),
            external: None,
            paused_until: Time::ZERO,
            slow_until: Time::ZERO,
            full_until: Time::ZERO,
            keys: None,
            bomb: Arc::default(),
            panicked: false,
            crash_after: None,
            stamp_error: Span::ZERO,
            interface: host.mtu,
            keyless: false,
            app_at: None,
            app_run: 0,
            plan: host,
        }
    }

    /// Returns the current incarnation.
    pub(crate) fn of(&self) -> Incarnation {
        (self.number, self.incarnation)
    }

    /// Returns `true` if the machine's host runs and its engines have taken all commands, such as new keys.
    pub(crate) fn knows_commands(&self) -> bool {
        let knows = |host: &VirtualHost| (0..host.engines()).all(|e| !host.has_commands(e));
        self.host.as_ref().is_some_and(knows)
    }

    /// Returns the engine that owns a port other than the first, and the number of the port at that engine.
    pub(crate) fn owner_of(&self, port: u16) -> Option<(usize, u8)> {
        let ports = self.plan.ports.as_ref()?;
        let more = usize::from(ports.balancer?.1) - 1;
        let place = usize::from(port.checked_sub(FIRST_PORT)?);
        let engine = place / more;
        (engine < self.sockets.len()).then_some((engine, (place % more + 1) as u8))
    }

    /// Returns the source address of the machine's datagrams.
    pub(crate) fn source(&self) -> SocketAddr {
        self.external.unwrap_or(self.address)
    }

    fn config(&self, plan: &Plan, keys: KeyRing) -> Result<Config, String> {
        let host = &self.plan;
        let mut config = Config::new(self.address, keys).map_err(|error| error.to_string())?;
        config.mode = apus_udp::Mode::Spinning;
        config.engines = host.engines;
        let pace = SLOWEST_PACE.to_string();
        let settings: &[_] = match host.algorithm {
            // Without a limited window it would never give way to another flow.
            "constant" => &[("window", "32")],
            "swift" => &[("max_pacing_delay", &pace)],
            "mswift" => &[("base_target", "10ms")],
            _ => &[],
        };
        config.set_algorithm(Some(host.algorithm), settings).map_err(|error| error.to_string())?;
        config.max_mtu = host.mtu;
        config.max_flows = 8;
        config.max_ops = host.max_ops;
        config.max_message = host.max_message;
        config.max_queued_bytes = host.max_queued_bytes();
        config.max_queued_messages = host.max_queued_messages;
        config.max_unaccepted = host.max_unaccepted;
        config.submission_ring = host.submission_ring;
        config.departure_timestamps = host.stamps;
        if let Some(ports) = &host.ports {
            if let Some((balancer, count)) = ports.balancer {
                let set = config.set_balancer(Some(balancer), Some(count));
                set.map_err(|error| error.to_string())?;
                config.departure_timestamps = false;
            }
            if let Some(spreading) = &mut config.spreading {
                spreading.loss = ports.loss;
                spreading.next_port = Some(FIRST_PORT);
            }
            config.accept_ports = (host.engines == 1).then_some(ports.accepts);
            (config.range, config.ack_path) = (ports.range, ports.ack_path);
        }
        let session = &mut config.session;
        let [retry, keepalive, idle, handshake, life] = plan.timeouts;
        (session.retry, session.keepalive, session.idle_timeout) = (retry, keepalive, idle);
        (session.handshake_timeout, session.key_life) = (handshake, life);
        session.cipher = host.cipher;
        session.max_sessions = 64;
        session.max_pending = 16;
        if let Some(quotas) = &host.quotas {
            session.quota_sessions = Some(quotas.sessions);
            config.quota_queued_bytes = Some(quotas.queued_bytes);
            config.quota_ops = Some(quotas.ops);
        }
        Ok(config)
    }

    /// Starts a host on the machine.
    pub(crate) fn start(
        &mut self,
        now: Time,
        plan: &Plan,
        keys: KeyRing,
        grant: Option<Grant>,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        self.incarnation += 1;
        let config = self.config(plan, keys)?;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&plan.seed.to_le_bytes());
        seed[8] = self.number as u8;
        seed[9..13].copy_from_slice(&self.incarnation.to_le_bytes());
        let host = VirtualHost::start(&config, seed, self.clock.at(now));
        let host = host.map_err(|error| error.to_string())?;
        self.bomb = Arc::default();
        let register = |bytes, access, grant| {
            let shrinks = access == Access::READ;
            let memory = Bytes { bytes, bomb: Arc::clone(&self.bomb), shrinks };
            let region = match grant {
                Some(grant) => host.register_for(memory, access, grant),
                None => host.register(memory, access),
            };
            region.map_err(|error| format!("a region cannot be registered: {error}"))
        };
        let [slots, pattern, words, secret] = ledger.contents(self.of());
        let own = || register(vec![0; OWN_BYTES as usize], Access::ALL, None);
        let regions = Regions {
            slots: register(slots, Access::ALL, grant)?,
            pattern: register(pattern, Access::READ, None)?,
            words: register(words, Access::ALL, None)?,
            secret: register(secret, Access::ALL, None)?,
            own: plan.insider().map(|_| own()).transpose()?,
        };
        self.keys = Some(Keys {
            of: self.of(),
            slots: regions.slots.key(),
            pattern: regions.pattern.key(),
            words: regions.words.key(),
            secret: regions.secret.key(),
            own: regions.own.as_ref().map(Region::key),
        });
        ledger.regions.insert(self.of(), regions);
        self.sockets = (0..host.engines()).map(|_| Socket::default()).collect();
        self.host = Some(host);
        self.app.restart();
        self.crash_after = None;
        self.set_kernel();
        Ok(())
    }

    /// Passes the kernel's knowledge about the interface to the host.
    pub(crate) fn set_kernel(&self) {
        let Some(host) = &self.host else { return };
        let longest = self.interface as usize - 28; // headers of IPv4 and UDP
        host.set_kernel(Some(self.interface), longest, self.plan.segmentation, self.plan.stamps);
    }

    /// Puts a datagram into the socket of an engine. Returns `false` if it is lost because the socket is full.
    pub(crate) fn put(&mut self, engine: usize, received: Received) -> bool {
        let Some(socket) = self.sockets.get_mut(engine) else { return false };
        // The kernel charges more than the payload.
        let room = self.plan.socket_buffer.saturating_sub(socket.bytes);
        if room < received.bytes.len() + 200 {
            return false;
        }
        socket.bytes += received.bytes.len() + 200;
        socket.queue.push_back(received);
        true
    }

    /// Passes the datagrams in the socket of an engine to the engine, as aggregates where possible.
    fn hand_over(&mut self, engine: usize) {
        let (Some(host), Some(socket)) = (&self.host, self.sockets.get_mut(engine)) else { return };
        socket.bytes = 0;
        let mut batch: Vec<Received> = Vec::new();
        for next in socket.queue.drain(..) {
            if let Some(last) = batch.last_mut()
                && self.plan.aggregates
                && (last.from, last.port, last.tos, last.ttl)
                    == (next.from, next.port, next.tos, next.ttl)
                && last.bytes.len() % last.segment.max(1) == 0
                && next.bytes.len() <= last.segment
                && !next.bytes.is_empty()
                && last.bytes.len() + next.bytes.len() <= AGGREGATE
            {
                last.bytes.extend(next.bytes);
                continue;
            }
            if batch.len() == BATCH {
                host.put(engine, std::mem::take(&mut batch));
            }
            batch.push(next);
        }
        if !batch.is_empty() {
            host.put(engine, batch);
        }
    }

    /// Runs one step of an engine at the time `now` of the world.
    pub(crate) fn step(&mut self, engine: usize, now: Time) {
        self.hand_over(engine);
        let at = self.clock.at(now);
        let Some(host) = &mut self.host else { return };
        host.set_now(at);
        if let Some(due) = self.sockets[engine].asleep.take() {
            host.slept(engine, due);
        }
        self.bomb.in_engine.store(true, Ordering::Relaxed);
        host.step(engine);
        self.bomb.in_engine.store(false, Ordering::Relaxed);
    }
}
