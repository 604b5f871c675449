//! Atomic ops between whole engines, in virtual time.

mod faults;

use std::collections::BTreeSet;

use apus_wire::RegionKey;

use super::*;
use crate::atomic::{AtomicBuffers, AtomicOp, WordError};
use crate::error::{Refusal, SubmitError};
use crate::pending::Done;
use crate::session::SharedKey;

/// Timeouts of a millisecond, so that virtual runs with losses end soon.
fn lossy_config() -> Config {
    let mut config = config();
    let settings = [("window", "64"), ("min_rto", "1ms"), ("initial_rto", "1ms")];
    config.set_algorithm(Some("constant"), &settings).expect("constant");
    config
}

fn add(region: RegionKey, address: u64, delta: u64) -> (OpKind, Buffers) {
    let buffers = AtomicBuffers::new(AtomicOp::FetchAdd { delta });
    (OpKind::FetchAdd { region, address }, Buffers::Atomic(buffers))
}

fn swap(region: RegionKey, address: u64, expected: u64, new: u64) -> (OpKind, Buffers) {
    let buffers = AtomicBuffers::new(AtomicOp::CompareAndSwap { expected, new });
    (OpKind::CompareAndSwap { region, address }, Buffers::Atomic(buffers))
}

fn old(end: OpResult) -> u64 {
    end.expect("executed").old.expect("an atomic op")
}

#[test]
fn atomic_ops_return_the_word_before_and_change_only_their_word() {
    let mut pair = Pair::connect(&config());
    let mut bytes = vec![0xee; 40];
    bytes[16..24].copy_from_slice(&7u64.to_le_bytes());
    let region = pair.register(1, bytes, Access::ALL);
    let mut run = |(kind, buffers)| {
        let end = submit(&pair.client, kind, buffers);
        pair.run(Span::from_us(10));
        let Done { bytes, old, .. } = end.try_recv().expect("ended").expect("executed");
        assert!(bytes.is_empty());
        old.expect("an atomic op")
    };
    assert_eq!(run(add(region.key(), 16, 5)), 7);
    assert_eq!(run(swap(region.key(), 16, 11, 1)), 12, "not replaced");
    assert_eq!(run(swap(region.key(), 16, 12, u64::MAX)), 12);
    assert_eq!(run(add(region.key(), 16, 3)), u64::MAX);
    assert_eq!(region.load(16), Ok(2));
    assert_eq!(region.compare_and_swap(16, 2, 9), Ok(2));
    assert_eq!(run(add(region.key(), 16, 1)), 9, "the owner's value");
    assert_eq!(region.fetch_add(16, 1), Ok(10));
    assert_eq!(region.store(16, 0x0807_0605_0403_0201), Ok(()));
    region.read(|memory| {
        assert_eq!(memory[16..24], [1, 2, 3, 4, 5, 6, 7, 8], "little-endian");
        assert!(memory[..16].iter().chain(&memory[24..]).all(|&byte| byte == 0xee));
    });
    let stats = |host: usize| &pair.hosts[host].engine.protocol.status.stats;
    assert_eq!(stats(1).atomics_executed.load(std::sync::atomic::Ordering::Relaxed), 5);
    assert_eq!(stats(0).atomics_executed.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn the_owner_accesses_whole_words_within_the_region() {
    let regions = Arc::new(Regions::new(1, [0; 32]));
    let region = Region::new(&regions, Box::new(vec![1; 20]), Access::READ, None).expect("room");
    assert_eq!(region.fetch_add(8, 1), Ok(0x0101_0101_0101_0101), "peers' access is no limit");
    for address in [16, 24, u64::MAX - 7] {
        let error = WordError::OutOfBounds { address, length: 20 };
        assert_eq!(region.load(address), Err(error));
        assert_eq!(region.store(address, 1), Err(error));
        assert_eq!(region.fetch_add(address, 1), Err(error));
    }
    for address in [1, 12, 17, u64::MAX] {
        let error = WordError::Unaligned { address };
        assert_eq!(region.load(address), Err(error));
        assert_eq!(region.store(address, 1), Err(error));
        assert_eq!(region.compare_and_swap(address, 0, 1), Err(error));
    }
    let text = WordError::OutOfBounds { address: 16, length: 20 }.to_string();
    assert_eq!(text, "address 16 + 8 bytes: the word reaches beyond the region's 20 bytes");
    let text = WordError::Unaligned { address: 12 }.to_string();
    assert_eq!(text, "address 12: the address of a word must be a multiple of 8");
}

#[test]
fn atomic_ops_that_are_not_allowed_change_nothing() {
    let mut pair = Pair::connect(&config());
    let read_write = Access::READ_WRITE;
    let [read, write, plain, both] = [Access::READ, Access::WRITE, read_write, Access::ALL]
        .map(|access| pair.register(1, vec![0; 20], access));
    let mut run = |(kind, buffers)| {
        let end = submit(&pair.client, kind, buffers);
        pair.run(Span::from_ms(1));
        end.try_recv().expect("ended").expect_err("refused")
    };
    let unknown = RegionKey::new(both.key().get() ^ 1 << 40);
    for (key, address, refusal) in [
        (read.key(), 0, Refusal::NotAllowed),
        (write.key(), 0, Refusal::NotAllowed),
        (plain.key(), 0, Refusal::NotAllowed),
        (both.key(), 16, Refusal::OutOfBounds),
        (both.key(), 1 << 40, Refusal::OutOfBounds),
        (unknown, 0, Refusal::NoRegion),
    ] {
        assert_eq!(run(add(key, address, 1)), OpError::Refused(refusal));
        assert_eq!(run(swap(key, address, 0, 1)), OpError::Refused(refusal));
    }
    for region in [&read, &write, &both] {
        assert!(region.read(|memory| memory.iter().all(|&byte| byte == 0)));
    }
    let state = &pair.client.state;
    for address in [1, 4, 9] {
        let kind = OpKind::FetchAdd { region: both.key(), address };
        let error = state.check(kind, 8).expect_err("not a word");
        assert_eq!(error, SubmitError::Unaligned { address });
        assert_eq!(
            error.to_string(),
            format!("address {address}: the address of an atomic op must be a multiple of 8")
        );
    }
    let kind = OpKind::CompareAndSwap { region: both.key(), address: u64::MAX - 7 };
    let overflow = SubmitError::AddressOverflow { address: u64::MAX - 7, length: 8 };
    assert_eq!(state.check(kind, 8), Err(overflow));
}

/// Memory that has no bytes left when it is changed.
struct Shrinking(Vec<u8>);

impl crate::region::Memory for Shrinking {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0[..4]
    }
}

#[test]
fn an_atomic_op_on_memory_that_has_shrunk_is_refused() {
    let mut pair = Pair::connect(&config());
    let memory = Box::new(Shrinking(vec![0; 8]));
    let region = Region::new(&pair.hosts[1].regions, memory, Access::ALL, None).expect("room");
    let (kind, buffers) = add(region.key(), 0, 1);
    let end = submit(&pair.client, kind, buffers);
    pair.run(Span::from_ms(1));
    let end = end.try_recv().expect("ended").expect_err("refused");
    assert_eq!(end, OpError::Refused(Refusal::OutOfBounds));
    assert!(region.read(|memory| memory.iter().all(|&byte| byte == 0)));
}

#[test]
fn operands_and_answers_are_encrypted() {
    let mut sealed = config();
    sealed.keys = KeyRing::new([SharedKey::new([3; 32])]).expect("one key");
    for (config, is_readable) in [(config(), true), (sealed, false)] {
        let mut pair = Pair::connect(&config);
        let region = pair.register(1, b"old word".to_vec(), Access::ALL);
        let word = |text: &[u8; 8]| u64::from_le_bytes(*text);
        let (kind, buffers) = swap(region.key(), 0, word(b"old word"), word(b"new word"));
        let end = submit(&pair.client, kind, buffers);
        let mut seen = BTreeSet::new();
        while let Err(oneshot::TryRecvError::Empty) = end.try_recv() {
            for host in 0..2 {
                while pair.hosts[host].engine.step(true) {}
                let [to, from] = [1 - host, host].map(|h| &pair.hosts[h].engine.network);
                for datagram in from.sent.borrow().iter().flat_map(|burst| &burst.datagrams) {
                    let words = datagram.windows(8).filter(|bytes| bytes.ends_with(b" word"));
                    seen.extend(words.map(|bytes| (host, bytes.to_vec())));
                }
                to.deliver_from(from);
                from.advance(Span::from_us(1));
            }
        }
        let expected = [(0, &b"new word"[..]), (0, b"old word"), (1, b"old word")];
        let expected = expected.map(|(host, word)| (host, word.to_vec()));
        assert_eq!(seen, expected.into_iter().filter(|_| is_readable).collect());
    }
}

/// The peer has executed the op, and its answers are lost. The region may be removed; the answer is kept.
#[test]
fn the_answer_outlives_its_region_and_is_sent_until_it_arrives() {
    let mut pair = Pair::connect(&lossy_config());
    let region = pair.register(1, vec![0; 8], Access::ALL);
    region.store(0, 41).expect("a word");
    let (kind, buffers) = add(region.key(), 0, 1);
    let end = submit(&pair.client, kind, buffers);
    let [client, server] = &mut pair.hosts;
    while client.engine.step(true) {}
    server.engine.network.deliver_from(&client.engine.network);
    for _ in 0..3 {
        while server.engine.step(true) {}
        server.engine.network.sent.take();
        server.engine.network.advance(Span::from_ms(3));
    }
    assert_eq!(region.load(0), Ok(42), "executed");
    region.revoke();
    while server.engine.step(true) {}
    assert!(region.is_free(), "the answer does not need the memory");
    assert!(matches!(end.try_recv(), Err(oneshot::TryRecvError::Empty)));
    client.engine.network.now.set(server.engine.network.now.get());
    pair.run(Span::from_ms(50));
    assert_eq!(old(end.try_recv().expect("ended")), 41);
    assert_eq!(region.load(0), Ok(42), "executed once");
}

#[test]
fn datagrams_that_arrive_again_later_execute_nothing() {
    let mut sealed = config();
    sealed.keys = KeyRing::new([SharedKey::new([3; 32])]).expect("one key");
    for config in [config(), sealed] {
        let mut pair = Pair::connect(&config);
        let region = pair.register(1, vec![0; 8], Access::ALL);
        let mut recorded = Vec::new();
        let ops: Vec<_> = (0..20)
            .map(|_| {
                let (kind, buffers) = add(region.key(), 0, 1);
                submit(&pair.client, kind, buffers)
            })
            .collect();
        while pair.hosts[0].engine.step(true) {}
        for burst in pair.hosts[0].engine.network.sent.borrow().iter() {
            recorded.extend(burst.datagrams.iter().map(|datagram| (burst.tos, datagram.clone())));
        }
        pair.run(Span::from_ms(1));
        ops.iter().for_each(|op| _ = old(op.try_recv().expect("ended")));
        let from = pair.hosts[0].engine.network.local;
        for (tos, datagram) in recorded.iter().chain(&recorded) {
            pair.hosts[1].engine.network.put_datagram(from, *tos, datagram.clone());
        }
        pair.run(Span::from_ms(1));
        assert_eq!(region.load(0), Ok(20));
        // The same host after a restart, with a region in the same slot.
        let mut hosts = [1, 2].map(|n| VirtualHost::seeded([10, 0, 0, n], &config, 10 + n));
        let memory = Box::new(vec![0; 8]);
        let again = Region::new(&hosts[1].regions, memory, Access::ALL, None).expect("room");
        assert_ne!(again.key(), region.key());
        for (tos, datagram) in recorded {
            hosts[1].engine.network.put_datagram(from, tos, datagram);
        }
        run(&mut hosts, Span::from_ms(1));
        assert_eq!(again.load(0), Ok(0));
    }
}
