//! The measuring end.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use apus_udp::{Bytes, Completion, Connection, Host, RegionKey, Request, async_channel};
use serde::Serialize;

use super::super::any;
use super::server::{ECHO, END_OF_ECHO, REGION};
use crate::bench::cpu_seconds;
use crate::failure::Failure;

/// Bytes of a round trip and of a small write.
const SMALL: usize = 64;
/// Bytes of a bulk write.
const BULK: usize = 1 << 20;
/// Number of round trips of one kind per turn.
const TURN: u32 = 1000;
/// Number of round trips of a turn that are not counted, because the other kind has filled the
/// caches.
const WARM_UP: u32 = 20;
/// Number of outstanding small writes: fewer than a flow takes.
const SMALL_OUTSTANDING: usize = 512;
/// Number of outstanding bulk writes.
const BULK_OUTSTANDING: usize = 4;

/// A distribution of round trips.
#[derive(Serialize)]
struct RoundTrips {
    count: usize,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
}

/// Writes in one direction.
#[derive(Serialize)]
struct Writes {
    bytes_each: usize,
    ops: u64,
    seconds: f64,
    ops_per_second: f64,
    goodput_gbps: f64,
    /// CPU seconds of this process (of both ends, if the other is its thread) per 10^9 bytes.
    cpu_s_per_gb: f64,
}

/// Output.
#[derive(Serialize)]
pub(super) struct Results {
    /// Round trip of a bare datagram.
    raw: RoundTrips,
    /// A one-sided write and its acknowledgement.
    write: RoundTrips,
    p50_ratio: f64,
    p99_ratio: f64,
    small: Writes,
    bulk: Writes,
}

impl Results {
    pub(super) fn text(&self) -> String {
        let round_trips = |name: &str, of: &RoundTrips| {
            format!(
                "{name:<22} p50 {:6.2}, p99 {:6.2}, p99.9 {:7.2} us\n",
                of.p50_us, of.p99_us, of.p999_us
            )
        };
        let writes = |of: &Writes| {
            format!(
                "writes of {:>7} B     {:.0} per second, goodput {:.2} Gb/s, \
                 {:.3} CPU s per GB\n",
                of.bytes_each, of.ops_per_second, of.goodput_gbps, of.cpu_s_per_gb
            )
        };
        let ratio = format!(
            "{:<22} p50 {:6.2}, p99 {:6.2}\n",
            "write / raw", self.p50_ratio, self.p99_ratio
        );
        round_trips("raw UDP, 64 B", &self.raw)
            + &round_trips("write, 64 B", &self.write)
            + &ratio
            + &writes(&self.small)
            + &writes(&self.bulk)
    }
}

/// Connected, with the first message received.
pub(super) struct Client<'h> {
    host: &'h Host,
    connection: Connection,
    region: RegionKey,
    raw: UdpSocket,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(error.to_string())
}

impl<'h> Client<'h> {
    pub(super) fn connect(host: &'h Host, peer: SocketAddr) -> Result<Self, Failure> {
        let connection = host.connect(peer).map_err(failed)?;
        let message = connection.receive().map_err(failed)?;
        let numbers: Vec<u64> = message
            .bytes
            .chunks_exact(8)
            .filter_map(|b| b.first_chunk().map(|b| u64::from_be_bytes(*b)))
            .collect();
        let [region, length, port] = numbers[..] else {
            return Err(failed("the peer is no `apus bench udp --listen`"));
        };
        if length != REGION as u64 {
            return Err(failed("the peer is another version of `apus bench udp`"));
        }
        let raw = UdpSocket::bind(any(&[peer])).map_err(failed)?;
        raw.connect(SocketAddr::new(peer.ip(), port as u16)).map_err(failed)?;
        raw.set_nonblocking(true).map_err(failed)?;
        Ok(Self { host, connection, region: RegionKey::new(region), raw })
    }

    pub(super) fn measure(&self, round_trips: u32, duration: Duration) -> Result<Results, Failure> {
        let (mut raw, mut write) = (Vec::new(), Vec::new());
        // The first turn of each kind is a warm-up.
        self.raw_turn(&mut Vec::new())?;
        self.write_turn(&mut Vec::new())?;
        for _ in 0..round_trips / TURN {
            self.raw_turn(&mut raw)?;
            self.write_turn(&mut write)?;
        }
        let small = self.writes(SMALL, SMALL_OUTSTANDING, duration)?;
        let bulk = self.writes(BULK, BULK_OUTSTANDING, duration)?;
        let (raw, write) = (distribution(raw), distribution(write));
        Ok(Results {
            p50_ratio: write.p50_us / raw.p50_us,
            p99_ratio: write.p99_us / raw.p99_us,
            raw,
            write,
            small,
            bulk,
        })
    }

    pub(super) fn close(&self) {
        self.connection.close();
    }

    fn raw_turn(&self, times: &mut Vec<Duration>) -> Result<(), Failure> {
        let asked = self.connection.submit(Request::message(ECHO)).map_err(failed)?;
        asked.wait().map_err(failed)?;
        let mut buffer = [0; SMALL];
        for i in 0..WARM_UP + TURN {
            let from = Instant::now();
            self.raw.send(&buffer).map_err(failed)?;
            let mut polls = 0u32;
            while self.raw.recv(&mut buffer).is_err() {
                polls += 1;
                if polls.is_multiple_of(1 << 16) && from.elapsed() > Duration::from_secs(1) {
                    return Err(failed("a bare datagram was lost; is a firewall in between?"));
                }
            }
            if i >= WARM_UP {
                times.push(from.elapsed());
            }
        }
        self.raw.send(&buffer[..END_OF_ECHO]).map(drop).map_err(failed)
    }

    fn write_turn(&self, times: &mut Vec<Duration>) -> Result<(), Failure> {
        let payload = Bytes::from(vec![0x61; SMALL]);
        for i in 0..WARM_UP + TURN {
            let from = Instant::now();
            let request = Request::write(self.region, 0, payload.clone());
            self.connection.submit(request).map_err(failed)?.wait().map_err(failed)?;
            if i >= WARM_UP {
                times.push(from.elapsed());
            }
        }
        Ok(())
    }

    fn writes(
        &self,
        bytes: usize,
        outstanding: usize,
        duration: Duration,
    ) -> Result<Writes, Failure> {
        let (queue, ends) = async_channel::bounded::<Completion>(outstanding);
        let payload = Bytes::from(vec![0x61; bytes]);
        let submit = |n: u64| {
            let address = n * bytes as u64 % (REGION - bytes + 1) as u64;
            let request = Request::write(self.region, address, payload.clone());
            self.connection.submit_queued(0, request, &queue, n).map(drop).map_err(failed)
        };
        let mut submitted = 0;
        while submitted < outstanding as u64 {
            submit(submitted)?;
            submitted += 1;
        }
        let mut ops = 0;
        let (from, cpu) = (Instant::now(), cpu_seconds());
        while from.elapsed() < duration {
            self.host.drive();
            while let Ok(end) = ends.try_recv() {
                end.result.map_err(failed)?;
                ops += 1;
                submit(submitted)?;
                submitted += 1;
            }
        }
        let (seconds, cpu) = (from.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        for _ in 0..outstanding {
            while ends.is_empty() {
                self.host.drive();
            }
            ends.try_recv().map_err(failed)?.result.map_err(failed)?;
        }
        let gigabytes = ops as f64 * bytes as f64 / 1e9;
        Ok(Writes {
            bytes_each: bytes,
            ops,
            seconds,
            ops_per_second: ops as f64 / seconds,
            goodput_gbps: gigabytes * 8.0 / seconds,
            cpu_s_per_gb: cpu / gigabytes,
        })
    }
}

fn distribution(mut times: Vec<Duration>) -> RoundTrips {
    times.sort_unstable();
    let of = |share: f64| {
        let at = (times.len() as f64 * share) as usize;
        times[at.min(times.len() - 1)].as_secs_f64() * 1e6
    };
    RoundTrips { count: times.len(), p50_us: of(0.5), p99_us: of(0.99), p999_us: of(0.999) }
}
