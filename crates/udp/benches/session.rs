//! Cost of sealing and opening one packet, by payload and by cipher or mode, header and numbers included. A packet is copied
//! before it is opened in place; the copy is included.

use core::hint::black_box;
use std::net::SocketAddr;

use apus_udp::session::{Cipher, Config, Event, KeyRing, Received, SessionId, Sessions, SharedKey};
use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{Body, Header, Segment, SegmentKind};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const NOW: Time = Time::from_ps(1_000_000);
/// Number of packets sealed before they are opened: fewer than the replay window, so that none is refused.
const BATCH: usize = 256;

fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 7000))
}

/// Returns two tables with a session between them; the first one is the initiator.
fn pair(ring: &KeyRing, cipher: Cipher) -> ([Sessions; 2], SessionId) {
    let (tables, [id, _]) = pair_with(&Config::default(), ring, cipher);
    (tables, id)
}

/// As [`pair`], with these settings, and with the session of each table.
fn pair_with(config: &Config, ring: &KeyRing, cipher: Cipher) -> ([Sessions; 2], [SessionId; 2]) {
    let config = Config { cipher, ..config.clone() };
    let table = |n| Sessions::new(config.clone(), ring.clone(), [n; 32]).expect("defaults");
    let mut tables = [table(1), table(2)];
    let key = ring.ids().next().expect("a key");
    let id = tables[0].connect(NOW, address(2), key, b"").expect("room");
    let mut theirs = None;
    for _ in 0..8 {
        for side in 0..2 {
            let mut out = [0; 512];
            while let Some((_, length)) = tables[side].poll_transmit(NOW, &mut out) {
                let from = address(side as u8 + 1);
                tables[1 - side].receive(NOW, from, &mut out[..length]);
                while let Some(event) = tables[1 - side].poll_event() {
                    match event {
                        Event::Incoming { session, .. } => {
                            tables[1 - side].accept(NOW, session, b"").expect("it waits");
                        }
                        Event::Connected { session, .. } if side == 0 => theirs = Some(session),
                        _ => {}
                    }
                }
            }
        }
    }
    assert!(tables[0].is_connected(id));
    (tables, [id, theirs.expect("connected")])
}

fn header(seq: u64, length: usize) -> Header {
    let body = Body::Data(Segment {
        op: OpId::new(0),
        kind: SegmentKind::Message,
        offset: 0,
        length: length as u32,
        op_length: length as u64,
        attached: None,
    });
    Header { flow: FlowId::new(0), seq: PacketNumber::new(seq), body }
}

fn cost_per_packet(c: &mut Criterion) {
    let sealed = KeyRing::new([SharedKey::new([1; 32])]).expect("one key");
    let [aes, aegis] = Cipher::ALL;
    let insecure = KeyRing::insecure();
    for (mode, ring, cipher) in
        [(aes.name(), &sealed, aes), (aegis.name(), &sealed, aegis), ("insecure", &insecure, aes)]
    {
        let mut group = c.benchmark_group(mode);
        for length in [0, 64, 256, 1_400, 4_096, 8_900] {
            group.throughput(Throughput::Bytes(length as u64));
            let ([mut sender, _], id) = pair(ring, cipher);
            let mut buffer = vec![7; header(0, length).encoded_len() + length + sender.overhead()];
            let mut seq = 0;
            // The payload comes from memory outside the fastest caches, like an application's payload.
            let source = vec![5; (4 << 20) + length];
            group.bench_function(format!("seal {length} B"), |b| {
                b.iter(|| {
                    seq += 1;
                    let at = seq as usize * length.max(64) % (4 << 20);
                    let payload = &source[at..at + length];
                    let header = header(seq, length);
                    sender.seal(NOW, id, &header, payload, black_box(&mut buffer))
                });
            });
            // A separate pair, because the first receiver has not seen the packets above.
            let ([mut sender, mut receiver], id) = pair(ring, cipher);
            let mut packets = Vec::new();
            group.bench_function(format!("copy and open {length} B"), |b| {
                b.iter_custom(|count| {
                    let mut spent = std::time::Duration::ZERO;
                    for _ in 0..count.div_ceil(BATCH as u64) {
                        packets.clear();
                        for seq in 0..BATCH as u64 {
                            let header = header(seq, length);
                            sender
                                .seal(NOW, id, &header, &source[..length], &mut buffer)
                                .expect("connected");
                            packets.push(buffer.clone());
                        }
                        let start = std::time::Instant::now();
                        for packet in &packets {
                            buffer.copy_from_slice(packet);
                            let received = receiver.receive(NOW, address(1), &mut buffer);
                            assert!(matches!(received, Received::Packet { .. }));
                        }
                        spent += start.elapsed();
                    }
                    spent.mul_f64(
                        count as f64 / (count.div_ceil(BATCH as u64) * BATCH as u64) as f64,
                    )
                });
            });
        }
        group.finish();
    }
}

/// Cost that unauthenticated senders can cause at a table: per datagram, and per handshake with a key (both sides).
fn cost_of_strangers(c: &mut Criterion) {
    let ring = KeyRing::new([SharedKey::new([1; 32])]).expect("one key");
    let ([mut sender, mut receiver], id) = pair(&ring, Cipher::Aes256Gcm);
    let mut group = c.benchmark_group("strangers");
    let mut forged = vec![7; header(0, 1_400).encoded_len() + 1_400 + sender.overhead()];
    sender.seal(NOW, id, &header(0, 1_400), &[7; 1_400], &mut forged).expect("connected");
    let last = forged.len() - 9;
    forged[last] ^= 1;
    let mut buffer = forged.clone();
    group.bench_function("forged packet of 1400 B", |b| {
        b.iter(|| {
            buffer.copy_from_slice(&forged);
            receiver.receive(NOW, address(1), black_box(&mut buffer));
        });
    });
    let mut noise = vec![0xa5; 1_400];
    group.bench_function("random 1400 B", |b| {
        b.iter(|| {
            receiver.receive(NOW, address(1), black_box(&mut noise));
        });
    });
    let stranger = KeyRing::new([SharedKey::new([2; 32])]).expect("one key");
    for (name, ring) in [("Hello without the key", stranger), ("Hello with the key", ring.clone())]
    {
        let mut table = Sessions::new(Config::default(), ring, [9; 32]).expect("defaults");
        let key = table.key_ids().next().expect("a key");
        table.connect(NOW, address(2), key, b"").expect("room");
        let mut hello = [0; 512];
        let (_, length) = table.poll_transmit(NOW, &mut hello).expect("a Hello");
        let mut out = [0; 512];
        group.bench_function(name, |b| {
            b.iter(|| {
                receiver.receive(NOW, address(9), black_box(&mut hello[..length]));
                receiver.poll_transmit(NOW, &mut out)
            });
        });
    }
    group.bench_function("whole handshake, both sides", |b| {
        b.iter(|| pair(&ring, Cipher::Aes256Gcm))
    });
    group.finish();
}

/// Cost that a peer can cause at a table if it changes its key with each packet: opening the packet, and sealing an answer
/// under a new key.
fn cost_of_new_keys(c: &mut Criterion) {
    let ring = KeyRing::new([SharedKey::new([1; 32])]).expect("one key");
    for cipher in Cipher::ALL {
        let mut group = c.benchmark_group(format!("{}, packet and answer", cipher.name()));
        for (name, life) in [("one key", Span::MAX), ("a new key each", Span::from_ps(1))] {
            // The initiator replaces its key once the peer has the latest one.
            let config = Config { key_life: life, ..Config::default() };
            let ([mut peer, mut table], [ours, theirs]) = pair_with(&config, &ring, cipher);
            let length = header(0, 64).encoded_len() + 64 + table.overhead();
            let (mut packet, mut answer) = (vec![7; length], vec![7; length]);
            let mut now = NOW;
            group.bench_function(name, |b| {
                b.iter_custom(|count| {
                    let mut spent = std::time::Duration::ZERO;
                    for seq in 0..count {
                        now += Span::from_ns(1);
                        let header = header(seq, 64);
                        peer.seal(now, ours, &header, &[7; 64], &mut packet).expect("connected");
                        let start = std::time::Instant::now();
                        let received = table.receive(now, address(1), &mut packet);
                        assert!(matches!(received, Received::Packet { .. }));
                        table.seal(now, theirs, &header, &[7; 64], &mut answer).expect("connected");
                        spent += start.elapsed();
                        let received = peer.receive(now, address(2), &mut answer);
                        assert!(matches!(received, Received::Packet { .. }));
                        while peer.poll_event().or_else(|| table.poll_event()).is_some() {}
                    }
                    spent
                });
            });
            let changes = table.counters().key_changes;
            // With one key: after 2^22 packets.
            assert_eq!(changes > 100, life < Span::MAX, "{changes}");
        }
        group.finish();
    }
}

criterion_group!(benches, cost_per_packet, cost_of_strangers, cost_of_new_keys);
criterion_main!(benches);
