//! Seeded runs with loss, duplication, reordering and corruption: every op is delivered exactly
//! once and completes exactly once, with the bytes that were sent.

use crate::support::{Faults, Pair, Random, byte};
use apus_algorithms::registry::build;
use apus_transport::{EndpointConfig, OpKind, Outcome, Recovery};
use apus_units::{Span, Time};
use apus_wire::RegionKey;

/// Time limit that no run reaches: 2000 timeouts in a row.
const LIMIT: Time = Time::from_ps(20_000_000_000_000);

fn run(seed: u64) {
    let mut choices = Random(seed ^ 0xa9f5);
    let (name, settings): (&str, &[(&str, &str)]) = match choices.below(4) {
        0 => ("constant", &[("window", "1")]),
        1 => ("constant", &[("window", "40")]),
        2 => ("dctcp", &[]),
        _ => ("swift", &[("min_cwnd", "0.1")]),
    };
    let algorithm = build(name, None, settings).expect(name);
    let max_payload = [100, 1000, 4096][choices.below(3) as usize];
    let recovery = match Random(seed ^ 0x6bac).below(3) {
        0 => Recovery::GoBackN,
        _ => Recovery::Selective,
    };
    let config = EndpointConfig { max_payload, recovery, ..EndpointConfig::default() };
    let mut pair = Pair::new(&algorithm, config, seed);
    pair.faults = Faults {
        loss: choices.below(150),
        duplication: choices.below(100),
        corruption: choices.below(100),
        // Half of the runs have no trimming.
        trimming: Random(seed ^ 0x7213).below(400).saturating_sub(200),
        reorder: Span::from_us(choices.below(60)),
    };
    let mut lengths = [Vec::new(), Vec::new()];
    for _ in 0..1 + choices.below(30) {
        let side = choices.below(2) as usize;
        let region = RegionKey::new(choices.next());
        let address = choices.below(1 << 40);
        let length = choices.below(20) * choices.below(1000);
        let word = address & !7;
        let (kind, length) = match choices.below(5) {
            0 => (OpKind::Write { region, address }, length),
            1 => (OpKind::Read { region, address }, length),
            2 => (OpKind::CompareAndSwap { region, address: word }, 8),
            3 => (OpKind::FetchAdd { region, address: word }, 8),
            _ => (OpKind::Message, length),
        };
        lengths[side].push((kind, length));
        pair.submit(side, kind, length);
        pair.run_until(pair.now + Span::from_us(choices.below(200)));
    }
    pair.run_until(LIMIT);
    for (side, ops) in lengths.iter().enumerate() {
        check_side(&pair, side, ops, seed);
    }
}

fn check_side(pair: &Pair, side: usize, ops: &[(OpKind, u64)], seed: u64) {
    let (ours, peer) = (&pair.sides[side], &pair.sides[1 - side]);
    assert_eq!(ours.completions.len(), ops.len(), "seed {seed}: each op completes once");
    let mut completed: Vec<u64> = ours.completions.iter().map(|c| c.op.get()).collect();
    completed.sort_unstable();
    assert!(completed.iter().copied().eq(0..ops.len() as u64), "seed {seed}: {completed:?}");
    assert!(ours.completions.iter().all(|c| c.outcome == Outcome::Done), "seed {seed}");
    let mut words = Vec::new();
    for (op, &(kind, length)) in ops.iter().enumerate() {
        let op = op as u64;
        assert_eq!(peer.finished.get(&op), Some(&1), "seed {seed}: op {op} delivered once");
        if kind.is_atomic() {
            words.extend(ours.stored.get(&(true, op)).map(|word| {
                let word: [u8; 8] = word[..].try_into().expect("a word");
                u64::from_le_bytes(word)
            }));
            continue;
        }
        let read = matches!(kind, OpKind::Read { .. });
        let (owner, holder) = if read { (1 - side, ours) } else { (side, peer) };
        let expected: Vec<u8> = (0..length).map(|i| byte(owner, read, op, i)).collect();
        let stored = holder.stored.get(&(read, op)).map_or(&[][..], Vec::as_slice);
        assert!(stored == expected, "seed {seed}: bytes of op {op}");
    }
    // Each atomic op has found the word as the previous one left it, in some order.
    words.sort_unstable();
    let atomics = ops.iter().filter(|(kind, _)| kind.is_atomic()).count() as u64;
    assert!(words.into_iter().eq(0..atomics), "seed {seed}");
    assert_eq!(peer.word, atomics, "seed {seed}: each atomic op is executed once");
    assert_eq!(ours.refused, 0, "seed {seed}: an honest peer is never refused");
    assert_eq!(ours.endpoint.in_flight(pair.flow), Some(0), "seed {seed}");
}

#[test]
fn every_op_is_delivered_exactly_once_despite_network_faults() {
    let seeds = std::env::var("APUS_FAULT_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(4000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || (0..seeds).filter(|s| s % threads == thread).for_each(run));
        }
    });
}

/// Equal seeds give equal runs, packet by packet.
#[test]
fn a_seed_fixes_a_run() {
    let log = || {
        let algorithm = build("swift", None, &[]).expect("swift");
        let mut pair = Pair::new(&algorithm, EndpointConfig::default(), 77);
        pair.faults = Faults {
            loss: 100,
            duplication: 50,
            corruption: 50,
            trimming: 50,
            reorder: Span::from_us(30),
        };
        pair.submit(0, OpKind::Message, 500_000);
        pair.run_until(LIMIT);
        pair.log
    };
    assert_eq!(log(), log());
}
