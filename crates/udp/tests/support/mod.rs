//! Hosts on the loopback interface, and a network between them that loses, duplicates, reorders and corrupts datagrams.
#![allow(dead_code)] // each test binary uses its own part

pub mod hand;
pub mod pair;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Config, Host, Mode};
use apus_units::Span;

/// Upper limit of the wait for conditions that become true at once on an idle machine. No test asserts how long they take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds. If it never does, the test fails with `what`.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let from = Instant::now();
    while !done() {
        assert!(from.elapsed() < PATIENCE, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until a condition holds, and meanwhile drives hosts that have no threads.
#[track_caller]
pub fn drive(hosts: &[&Host], what: &str, mut done: impl FnMut() -> bool) {
    let from = Instant::now();
    while !done() {
        assert!(from.elapsed() < PATIENCE, "not within a minute: {what}");
        hosts.iter().for_each(|host| _ = host.drive());
        std::thread::yield_now();
    }
}

pub fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

pub fn keys() -> KeyRing {
    KeyRing::new([SharedKey::new([7; 32])]).expect("a key")
}

/// Returns default settings, except that no session ends because a busy machine rarely runs an engine.
pub fn config(mode: Mode) -> Config {
    let mut config = Config::new(any(), keys()).expect("defaults");
    config.mode = mode;
    config.session.handshake_timeout = Span::from_secs(60);
    config.session.idle_timeout = Span::from_secs(600);
    config
}

/// As [`config`], with a window that does not depend on how often a busy machine runs the engines.
pub fn steady(mode: Mode) -> Config {
    let mut config = config(mode);
    config.algorithm =
        apus_algorithms::registry::build("constant", None, &[("window", "16")]).expect("constant");
    config
}

pub fn host(config: Config) -> Host {
    Host::start(config).expect("host")
}

pub const SHARED: Mode = Mode::Shared;

/// Returns bytes that depend on their seed and position.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|i| ((seed * 31 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8)
        .collect()
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.next() % 1000 < per_mille
    }
}

/// Faults of the network, in thousandths of the datagrams.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub loss: u64,
    pub duplication: u64,
    pub corruption: u64,
    pub reordering: u64,
}

/// A relay in front of a host: its clients talk to [`Relay::address`].
pub struct Relay {
    pub address: SocketAddr,
    front: UdpSocket,
    back: UdpSocket,
    /// Longer datagrams are dropped.
    longest: Arc<AtomicUsize>,
    /// Length of the longest datagram that the relay has forwarded to the server.
    seen: Arc<AtomicUsize>,
    /// Number of datagrams from both sides.
    taken: Arc<AtomicU64>,
    /// Number of datagrams that the relay still forwards to the server before it is cut; `usize::MAX` for no limit.
    left: Arc<AtomicUsize>,
    /// Port of the server whose answers the relay forwards; 0 while it is cut.
    port: Arc<AtomicU16>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub fn new(server: SocketAddr, faults: Faults, seed: u64) -> Self {
        let front = UdpSocket::bind(any()).expect("front");
        let back = UdpSocket::bind(any()).expect("back");
        back.connect(server).expect("connect");
        for socket in [&front, &back] {
            socket.set_nonblocking(true).expect("nonblocking");
        }
        let address = front.local_addr().expect("address");
        let longest = Arc::new(AtomicUsize::new(usize::MAX));
        let takes = Arc::clone(&longest);
        let seen = Arc::new(AtomicUsize::new(0));
        let seen_by_thread = Arc::clone(&seen);
        let taken = Arc::new(AtomicU64::new(0));
        let taken_by_thread = Arc::clone(&taken);
        let [to_client, to_server] =
            [&front, &back].map(|socket| socket.try_clone().expect("a second handle"));
        let (left, port) = (AtomicUsize::new(usize::MAX), AtomicU16::new(server.port()));
        let (left, port) = (Arc::new(left), Arc::new(port));
        let (still_left, answers_from) = (Arc::clone(&left), Arc::clone(&port));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut random = Random(seed);
            let mut client = None;
            let mut held = [Vec::new(), Vec::new()];
            let mut buffer = vec![0; 65_536];
            while !stopped.load(Ordering::Relaxed) {
                let mut idle = true;
                while let Ok((length, from)) = front.recv_from(&mut buffer) {
                    idle = false;
                    taken_by_thread.fetch_add(1, Ordering::Relaxed);
                    client = Some(from);
                    if length > takes.load(Ordering::Relaxed) {
                        continue;
                    }
                    match still_left.load(Ordering::Relaxed) {
                        0 => continue,
                        usize::MAX => {}
                        left => {
                            if left == 1 {
                                answers_from.store(0, Ordering::Relaxed);
                            }
                            still_left.store(left - 1, Ordering::Release);
                        }
                    }
                    seen_by_thread.fetch_max(length, Ordering::Relaxed);
                    relay(&mut random, faults, &mut buffer[..length], &mut held[0], |bytes| {
                        let _ = back.send(bytes);
                    });
                }
                while let Ok((length, from)) = back.recv_from(&mut buffer) {
                    idle = false;
                    taken_by_thread.fetch_add(1, Ordering::Relaxed);
                    let wanted = from.port() == answers_from.load(Ordering::Relaxed);
                    if length > takes.load(Ordering::Relaxed) || !wanted {
                        continue;
                    }
                    relay(&mut random, faults, &mut buffer[..length], &mut held[1], |bytes| {
                        if let Some(client) = client {
                            let _ = front.send_to(bytes, client);
                        }
                    });
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        Self {
            address,
            front: to_client,
            back: to_server,
            longest,
            seen,
            taken,
            left,
            port,
            stop,
            thread: Some(thread),
        }
    }

    /// Returns the length in bytes of the longest datagram that the relay has forwarded to the server.
    pub fn longest_seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// Returns the number of datagrams that the relay has received from both sides.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// From now on, forwarded datagrams look as if they had passed `hops` switches, and the last one had set DSCP and ECN.
    pub fn mark(&self, hops: u32, tos: u8) {
        for socket in [&self.front, &self.back] {
            socket.set_ttl(64 - hops).expect("TTL"); // what hosts send begins with 64
            rustix::net::sockopt::set_ip_tos(socket, tos).expect("TOS");
        }
    }

    /// From now on, the relay silently drops datagrams of more than `bytes`.
    pub fn drop_longer(&self, bytes: usize) {
        self.longest.store(bytes, Ordering::Relaxed);
    }

    /// Cuts the server off after this number of further datagrams to it. From then on its answers are not forwarded either.
    pub fn cut_after(&self, datagrams: usize) {
        self.left.store(datagrams, Ordering::Relaxed);
    }

    /// Returns `true` if the server is cut off.
    pub fn is_cut(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// From now on, sends all datagrams to another host. To the clients it seems that the host was restarted.
    pub fn redirect(&self, server: SocketAddr) {
        self.back.connect(server).expect("connect");
        self.port.store(server.port(), Ordering::Relaxed);
        self.left.store(usize::MAX, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn relay(
    random: &mut Random,
    faults: Faults,
    bytes: &mut [u8],
    held: &mut Vec<Vec<u8>>,
    send: impl Fn(&[u8]),
) {
    if random.chance(faults.loss) {
        return;
    }
    if random.chance(faults.corruption) {
        let bit = random.next() as usize % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    if random.chance(faults.reordering) {
        held.push(bytes.to_vec());
        return;
    }
    send(bytes);
    if random.chance(faults.duplication) {
        send(bytes);
    }
    for late in held.drain(..) {
        send(&late);
    }
}
