//! Simulations that a program drives, through a workload of kind `external`.

use apus_algorithms::AlgorithmConfig;
use apus_scenario::Simulation;
use apus_sim::live::{Key, Live, Next};
use apus_units::{Span, Time};

use crate::support::{assert_reads_back, good};

fn scenario(workload: &str) -> String {
    format!(
        "duration = \"10ms\"\npackets = {{ payload = \"4096B\", header = \"64B\" }}\n\
         topology = \"star hosts=4 100Gbps 1us 100MB\"\nalgorithm = {{ name = \"constant\", window = 64 }}\n\
         [[workload]]\nkind = \"external\"\n{workload}"
    )
}

fn live(workload: &str) -> Live<AlgorithmConfig> {
    good(&scenario(workload)).runs[0].setup.live().expect("a simulation")
}

const fn key(from: u32, to: u32, tag: u64) -> Key {
    Key { from, to, tag }
}

/// Returns all events with their times in nanoseconds, until none is left.
fn events(live: &mut Live<AlgorithmConfig>) -> Vec<(u64, f64)> {
    let mut all = Vec::new();
    while let Next::Event(token) = live.next(Time::MAX) {
        all.push((token, live.now().as_ps() as f64 / 1e3));
    }
    all
}

/// 1 MiB takes 87.5296 us over two links of 1 us at 100 Gb/s; the sender is informed 2 us later, after the
/// propagation delay.
#[test]
fn a_message_takes_its_closed_form_to_the_picosecond() {
    let mut live = live("");
    live.receive(key(0, 1, 7), 1 << 20, 1).expect("good");
    live.send(key(0, 1, 7), 1 << 20, Some(2)).expect("good");
    assert_eq!(live.next(Time::MAX), Next::Event(1));
    assert_eq!(live.now(), Time::from_ps(87_529_600));
    assert_eq!(live.next(Time::MAX), Next::Event(2));
    assert_eq!(live.now(), Time::from_ps(89_529_600));
    assert_eq!(live.next(Time::MAX), Next::Idle);
    assert_eq!(live.unfinished(), None);
    // With a time limit, the time passes.
    assert_eq!((live.next(Time::from_ps(1 << 40)), live.now()), (Next::Idle, live.end()));
}

/// A packet of 4160 B arrives after 2665.6 ns. A link that fails at exactly that time loses the packet, as in a
/// run without a program.
#[test]
fn a_fault_comes_before_what_is_due_at_its_time() {
    for (at, is_lost) in [("2665600ps", true), ("2665601ps", false)] {
        let fault = format!(
            "[[fault]]\nlink = \"switch 0 -> host 1\"\nkind = \"down\"\nat = \"{at}\"\nuntil = \"3us\"\n"
        );
        let mut live = live(&fault);
        live.send(key(0, 1, 7), 4096, None).expect("good");
        live.receive(key(0, 1, 7), 4096, 1).expect("good");
        let all = events(&mut live);
        assert_eq!(all[0].1 > 2_665.6, is_lost, "{at}: {all:?}");
    }
}

/// Four ports of each host are four pairs, for which two entropy values do not suffice.
#[test]
fn a_pair_of_ranks_whose_flows_cannot_be_opened_takes_no_message() {
    let text = scenario("balancer = \"oblivious evs=2\"\n");
    let planes = text.replace(
        "\"star hosts=4 100Gbps 1us 100MB\"",
        "{ kind = \"star\", hosts = 4, planes = 4, rate = \"100Gbps\", delay = \"1us\", buffer = \"100MB\" }",
    );
    let mut live = good(&planes).runs[0].setup.live().expect("a simulation");
    for _ in 0..2 {
        let error = live.send(key(0, 1, 7), 4096, None).expect_err("too few values").to_string();
        assert!(error.contains("has 2 entropy values for 4 pairs of ports"), "{error}");
    }
    assert_eq!((live.next(Time::MAX), live.unfinished()), (Next::Idle, None));
}

#[test]
fn the_rule_of_the_workload_says_when_a_send_is_done() {
    // The last byte leaves after 256 packets; an acknowledgement of 84 B crosses two links of 1 us.
    for (done, ns) in [("local", 85_196.8), ("delivered", 89_529.6), ("acknowledged", 89_543.04)] {
        let mut live = live(&format!("done = \"{done}\"\n"));
        live.send(key(2, 3, 0), 1 << 20, Some(5)).expect("good");
        let all = events(&mut live);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!((all[0].1 - ns).abs() < 1e-6, "{done}: {all:?}");
        let left = live.unfinished();
        assert_eq!(left, None, "a message without a receive has arrived");
    }
}

/// A receive takes the message that was sent first, even if a later one arrives earlier, and even if all have
/// arrived before the receives.
#[test]
fn equal_keys_match_in_the_order_of_sending() {
    for first in [true, false] {
        let mut live = live("flows_per_pair = 2\n");
        let receives = |live: &mut Live<AlgorithmConfig>| {
            live.receive(key(0, 1, 3), 1 << 20, 11).expect("good");
            live.receive(key(0, 1, 3), 100, 12).expect("good");
        };
        if first {
            receives(&mut live);
        }
        // Two flows: the short message overtakes the long one.
        live.send(key(0, 1, 3), 1 << 20, None).expect("good");
        live.send(key(0, 1, 3), 100, None).expect("good");
        live.send(key(0, 1, 4), 100, None).expect("good");
        if !first {
            assert_eq!(live.next(Time::MAX), Next::Idle);
            receives(&mut live);
        }
        let all = events(&mut live);
        let tokens: Vec<u64> = all.iter().map(|(token, _)| *token).collect();
        assert_eq!(tokens, if first { [12, 11] } else { [11, 12] }, "{all:?}");
        assert_eq!(live.unfinished(), None);
    }
}

#[test]
fn sizes_of_a_message_and_its_receive_must_agree() {
    let mut live = live("");
    live.receive(key(0, 1, 3), 200, 1).expect("good");
    let error = live.send(key(0, 1, 3), 100, None).expect_err("refused").to_string();
    assert!(error.contains("has 100 bytes, but its receive expects 200"), "{error}");
    // The refused call had no effect.
    live.send(key(0, 1, 3), 200, None).expect("good");
    live.send(key(0, 1, 3), 300, None).expect("good");
    let error = live.receive(key(0, 1, 3), 200, 2).expect_err("refused").to_string();
    assert!(error.contains("has 300 bytes, but its receive expects 200"), "{error}");
}

/// The longest op of the transport has 2^48 bytes.
#[test]
fn a_message_or_receive_that_is_longer_than_an_op_is_refused_and_blocks_nothing() {
    let mut live = live("");
    let expected = "a message has 281474976710657 bytes; give at most 281474976710656 (2^48)";
    let error = live.send(key(0, 1, 1), (1 << 48) + 1, Some(1)).expect_err("refused");
    assert!(error.to_string().contains(expected), "{error}");
    let error = live.receive(key(0, 1, 1), (1 << 48) + 1, 2).expect_err("refused");
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(live.unfinished(), None);
    live.send(key(0, 1, 1), 100, Some(3)).expect("good");
    assert_eq!(live.next(Time::MAX), Next::Event(3));
    live.send(key(2, 3, 1), 1 << 48, None).expect("the longest");
}

/// Delays of zero, and several events at one time, come in the order of the calls; the time does not advance.
#[test]
fn events_of_one_time_come_in_the_order_of_their_causes() {
    let mut live = live("");
    live.schedule(Span::from_ns(5), 1);
    live.schedule(Span::ZERO, 2);
    live.schedule(Span::from_ns(5), 3);
    assert_eq!(live.next(Time::MAX), Next::Event(2));
    live.schedule(Span::ZERO, 4);
    live.schedule(Span::from_ns(5), 5);
    assert_eq!(live.next(Time::MAX), Next::Event(4));
    assert_eq!((live.next(Time::from_ps(4_999)), live.now().as_ps()), (Next::Reached, 4_999));
    let all = events(&mut live);
    assert_eq!(all, [(1, 5.0), (3, 5.0), (5, 5.0)]);
}

#[test]
fn the_time_never_passes_the_end_of_the_scenario() {
    let mut live = live("");
    live.schedule(Span::from_ms(20), 1);
    assert_eq!(live.next(Time::MAX), Next::Reached);
    assert_eq!(live.now(), live.end());
    assert_eq!(live.end(), Time::ZERO + Span::from_ms(10));
}

#[test]
fn what_cannot_end_is_named() {
    let mut live = live("");
    live.receive(key(2, 1, 9), 77, 1).expect("good");
    assert_eq!(live.next(Time::MAX), Next::Idle);
    let text = live.unfinished().expect("a receive");
    assert!(text.contains("receive of 77 bytes from rank 2 to rank 1 with tag 9"), "{text}");
    for (wrong, why) in [(key(1, 1, 0), "both sender and receiver"), (key(0, 4, 0), "has 4 ranks")]
    {
        let error = live.send(wrong, 1, None).expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(live.send(key(0, 1, 0), 0, None).is_err());
}

/// Two ranks per host: 1 MiB at 400 Gb/s and 100 ns, without a packet.
#[test]
fn ranks_of_one_host_use_its_network() {
    let mut live = live("ranks_per_host = 2\nlocal_rate = \"400Gbps\"\nlocal_delay = \"100ns\"\n");
    assert_eq!(live.ranks(), 8);
    live.send(key(0, 1, 0), 1 << 20, None).expect("good");
    live.receive(key(0, 1, 0), 1 << 20, 1).expect("good");
    assert_eq!(live.next(Time::MAX), Next::Event(1));
    assert_eq!(live.now(), Time::from_ps(100_000 + 20_971_520));
}

/// A program that answers: ranks 0 and 1 exchange a message ten times, each sent when the previous one has
/// arrived.
#[test]
fn messages_are_sent_as_others_arrive_and_numbers_are_used_again() {
    let mut live = live("");
    let one = 2_000_000 + 2 * 13_120; // 100 + 64 B over two links of 1 us
    let acknowledgement = 6_720; // 84 B, which leave before each answer
    for round in 0..10_u32 {
        let (from, to) = (round % 2, (round + 1) % 2);
        live.receive(key(from, to, 0), 100, u64::from(round)).expect("good");
        live.send(key(from, to, 0), 100, None).expect("good");
        assert_eq!(live.next(Time::MAX), Next::Event(u64::from(round)));
        let (messages, others) = (u64::from(round + 1), u64::from(round));
        assert_eq!(live.now(), Time::from_ps(messages * one + others * acknowledgement));
    }
}

#[test]
fn a_scenario_for_a_program_is_not_a_run_and_the_reverse() {
    let read = good(&scenario(""));
    assert_reads_back(&read);
    let plan = read.runs[0].setup.plan().expect("plan");
    let error = Simulation::new(&plan).err().expect("refused").to_string();
    assert!(error.contains("a program sends its messages"), "{error}");
    let other = good(
        &scenario("").replace("kind = \"external\"", "kind = \"permutation\"\nsize = \"1MB\""),
    );
    let error = other.runs[0].setup.live().err().expect("refused").to_string();
    assert!(error.contains("exactly one workload of kind \"external\""), "{error}");
}

/// Two hosts on each of two leaves, and four spines whose links have a quarter of the hosts' rate.
fn leaf_spine(routing: &str, fault: &str) -> Live<AlgorithmConfig> {
    let text = format!(
        "duration = \"100ms\"\npackets = {{ payload = \"4096B\", header = \"64B\" }}\n\
         topology = {{ kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 2, rate = \"100Gbps\", \
         delay = \"1us\", buffer = \"100MB\", uplink = {{ rate = \"25Gbps\" }} }}\n\
         algorithm = {{ name = \"constant\", window = 256.0, min_rto = \"50ms\" }}\n\
         routing = {{ {routing} }}\n[[workload]]\nkind = \"external\"\nflows_per_pair = 16\n{fault}"
    );
    good(&text).runs[0].setup.live().expect("a simulation")
}

/// Sends 64 messages of 64 KiB between two hosts, and returns the microseconds until all have arrived.
fn transfer(live: &mut Live<AlgorithmConfig>, from: u32, to: u32) -> f64 {
    let begin = live.now();
    for message in 0..64 {
        live.receive(key(from, to, message), 1 << 16, message).expect("good");
        live.send(key(from, to, message), 1 << 16, None).expect("good");
    }
    (0..64).for_each(|_| assert!(matches!(live.next(Time::MAX), Next::Event(_))));
    live.now().since(begin).as_ps() as f64 * 1e-6
}

/// Flows that the program opens while switches avoid a dead link take other paths, so that no packet waits for
/// its timeout.
#[test]
fn flows_opened_while_a_link_is_avoided_take_other_paths() {
    let dead = "[[fault]]\nlink = \"leaf 0 <-> spine 1\"\nkind = \"down\"\nat = \"10us\"\n\
                [[fault]]\nlink = \"leaf 0 <-> spine 3\"\nkind = \"down\"\nat = \"5ms\"\n";
    for balancer in ["", ", balancer = \"oblivious evs=64\"", ", balancer = \"round-robin\""] {
        let told = "reroute_local = \"10us\", reroute_global = \"20us\"";
        let mut live = leaf_spine(&format!("{told}{balancer}"), dead);
        assert_eq!(live.next(Time::ZERO + Span::from_us(100)), Next::Idle);
        for (from, to) in [(0, 2), (3, 1), (2, 0)] {
            let took = transfer(&mut live, from, to);
            assert!(took < 2_000.0, "{balancer}: {took} us");
        }
        // The same flows, and new ones, in the next state.
        assert_eq!(live.next(Time::ZERO + Span::from_us(6_000)), Next::Idle);
        for (from, to) in [(0, 2), (1, 2)] {
            let took = transfer(&mut live, from, to);
            assert!(took < 2_500.0, "{balancer}: {took} us");
        }
    }
}

/// 4 MiB over four links of 25 Gb/s take as long as over one of 100 Gb/s, 341 us, if the switch takes them in turn.
#[test]
fn switches_choose_for_the_first_flows_of_a_program() {
    let mut live = leaf_spine("balancer = \"round-robin\"", "");
    let took = transfer(&mut live, 0, 2);
    assert!(took < 400.0, "{took} us");
}
