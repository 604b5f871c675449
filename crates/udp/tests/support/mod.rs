//! Hosts on the loopback interface, and a network between them that loses, duplicates, reorders and
//! corrupts.
#![allow(dead_code)] // each test binary uses its own part

pub mod hand;
pub mod pair;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Config, Host, Mode};

pub fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

pub fn keys() -> KeyRing {
    KeyRing::new([SharedKey::new([7; 32])]).expect("a key")
}

pub fn config(mode: Mode) -> Config {
    let mut config = Config::new(any(), keys()).expect("defaults");
    config.mode = mode;
    config
}

/// As [`config`], with a window that a machine too busy to run the engines does not shrink.
pub fn steady(mode: Mode) -> Config {
    let mut config = config(mode);
    config.algorithm =
        apus_cc::registry::build("constant", None, &[("window", "16")]).expect("constant");
    config
}

pub fn host(config: Config) -> Host {
    Host::start(config).expect("host")
}

pub const HYBRID: Mode = Mode::HYBRID;

/// Bytes that show where they belong.
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

/// What the network does, in thousandths of the datagrams.
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
    /// Longer datagrams vanish.
    longest: Arc<AtomicUsize>,
    /// The longest that it has handed to the server.
    seen: Arc<AtomicUsize>,
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
        let [to_client, to_server] =
            [&front, &back].map(|socket| socket.try_clone().expect("a second handle"));
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
                    client = Some(from);
                    if length > takes.load(Ordering::Relaxed) {
                        continue;
                    }
                    seen_by_thread.fetch_max(length, Ordering::Relaxed);
                    relay(&mut random, faults, &mut buffer[..length], &mut held[0], |bytes| {
                        let _ = back.send(bytes);
                    });
                }
                while let Ok(length) = back.recv(&mut buffer) {
                    idle = false;
                    if length > takes.load(Ordering::Relaxed) {
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
            stop,
            thread: Some(thread),
        }
    }

    /// The longest datagram that it has handed to the server, in bytes.
    pub fn longest_seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// From now on what it hands on looks as if it had come over `hops` switches, of which one had the
    /// last word on DSCP and ECN.
    pub fn mark(&self, hops: u32, tos: u8) {
        for socket in [&self.front, &self.back] {
            socket.set_ttl(64 - hops).expect("TTL"); // what hosts send begins with 64
            rustix::net::sockopt::set_ip_tos(socket, tos).expect("TOS");
        }
    }

    /// From now on it drops datagrams of more than `bytes`, without a word.
    pub fn drop_longer(&self, bytes: usize) {
        self.longest.store(bytes, Ordering::Relaxed);
    }

    /// From now on everything goes to another host: to its clients, the host was restarted.
    pub fn redirect(&self, server: SocketAddr) {
        self.back.connect(server).expect("connect");
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
