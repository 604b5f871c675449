//! The importers: files of other simulators that they read, errors of files that they refuse, and the absence
//! of panics.

use apus_scenario::import::hpcc::{FlowTime, render_fct};
use apus_scenario::import::{End, Graph, Traffic};
use apus_sim::sizes::Sizes;
use apus_units::{Rate, Span};
use proptest::prelude::*;

/// A topology in the form of htsim's files: 3 tiers, pods of 64 hosts, 8 hosts per switch.
fn topo(nodes: u32, cores_down: u32) -> String {
    let tier = |n: u32, down: u32, up: &str| {
        format!(
            "Tier {n}\nDownlink_speed_Gbps 100\nRadix_Down {down}\n{up}Downlink_Latency_ns 1000\n\
             Switch_Latency_ns 0\n\n"
        )
    };
    let up = "Radix_Up 8\nOversubscribed 1\n";
    format!(
        "# a comment\nNodes {nodes}\nTiers 3\nPodsize 64\n\n{}{}{}Bundle 1",
        tier(0, 8, up),
        tier(1, 8, up),
        tier(2, cores_down, "")
    )
}

#[test]
fn a_three_tier_topo_is_a_fat_tree() {
    let graph = Graph::parse(&topo(1024, 16)).expect("read");
    // k = 16: 1024 hosts, 128 + 128 + 64 switches, 1024 links in each of three tiers.
    assert_eq!((graph.hosts.len(), graph.switches.len(), graph.links.len()), (1024, 320, 3072));
    let degree = |switch: u32| {
        graph.links.iter().filter(|l| [l.a, l.b].contains(&End::Switch(switch))).count()
    };
    assert!((0..320).all(|switch| degree(switch) == 16));
    // The cores of an aggregation switch reach every pod once.
    let above = |switch: u32| {
        let links = graph.links.iter().filter(move |l| l.a == End::Switch(switch));
        links.map(|l| l.b).collect::<Vec<_>>()
    };
    assert_eq!(above(0).len(), 8);
    assert_eq!(above(128), above(136), "the same place in another pod, the same cores");
    assert!(above(128).iter().all(|core| !above(129).contains(core)));
}

#[test]
fn a_connection_matrix_is_read() {
    let text = "Nodes 128\nConnections 2\n14->127 id 1 start 0 size 2000000\n\
                46->43 id 2 start 5000000 size 10\n";
    let traffic = Traffic::parse(text).expect("read");
    assert_eq!(traffic.nodes, Some(128));
    let second = traffic.messages[1];
    assert_eq!((second.from, second.to, second.bytes), (46, 43, 10));
    assert_eq!(second.start, Span::from_us(5));
}

/// Two servers of two GPUs in SimAI's form: NVSwitches 4 and 5, a leaf per rail, a spine.
const SIMAI: &str = "9 2 2 3 10 H100\n4 5 6 7 8 \n\
    0 4 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n1 4 2880Gbps 0.000025ms 0\n1 7 400Gbps 0.0005ms 0\n\
    2 5 2880Gbps 0.000025ms 0\n2 6 400Gbps 0.0005ms 0\n3 5 2880Gbps 0.000025ms 0\n3 7 400Gbps 0.0005ms 0\n\
    6 8 400Gbps 0.0005ms 0\n7 8 400Gbps 0.0005ms 0\n";

#[test]
fn a_topology_of_simai_is_the_network_between_servers() {
    let graph = Graph::parse(SIMAI).expect("read");
    assert_eq!(graph.hosts, [0, 1, 2, 3]);
    assert_eq!(graph.switches, ["node6", "node7", "node8"]);
    let ends: Vec<_> = graph.links.iter().map(|link| (link.a, link.b)).collect();
    let host = |n, leaf| (End::Host(n), End::Switch(leaf));
    let up = |leaf| (End::Switch(leaf), End::Switch(2));
    assert_eq!(ends, [host(0, 0), host(1, 1), host(2, 0), host(3, 1), up(0), up(1)]);
    assert!(graph.links.iter().all(|link| link.rate == Rate::from_gbps(400)));
    assert!(graph.links.iter().all(|link| link.delay == Span::from_ns(500)));
    let left_out = graph.left_out.expect("NVSwitches");
    assert!(left_out.contains("2 NVSwitches and their 4 links"), "{left_out}");
    // Numbers of hosts after an NVSwitch do not count the NVSwitch.
    let moved = "5 2 1 1 3 H100\n1 3\n0 3 1Gbps 1us 0\n2 3 1Gbps 1us 0\n4 3 1Gbps 1us 0\n";
    let graph = Graph::parse(moved).expect("read");
    assert_eq!((graph.hosts, graph.links.len()), (vec![0, 2, 4], 3));
    assert_eq!(graph.links[2].a, End::Host(2));
}

/// Finding the end of a link takes no pass over the preceding switches: 50,000 NVSwitches, then as many GPUs,
/// with 200,000 links.
#[test]
fn a_topology_with_many_nvswitches_is_read_and_links_between_them_are_refused() {
    let count = 50_000;
    let mut text = format!("{} 1 {count} 1 {} H100\n", 2 * count + 1, 4 * count);
    (0..count).for_each(|node| text += &format!("{node} "));
    text += &format!("{}\n", 2 * count);
    for _ in 0..2 {
        for gpu in 0..count {
            let node = count + gpu;
            text += &format!("{node} {gpu} 1Gbps 1us 0\n{node} {} 1Gbps 1us 0\n", 2 * count);
        }
    }
    let graph = Graph::parse(&text).expect("read");
    assert_eq!((graph.hosts.len(), graph.links.len()), (count, 2 * count));
    assert_eq!(graph.links[7].a, End::Host(7));
    let error = Graph::parse("4 1 2 1 1 H100\n1 2 3\n1 2 1Gbps 1us 0\n").expect_err("two");
    assert!(error.to_string().starts_with("3: NVSwitch 2 has a link to switch 1"), "{error}");
}

/// 8 links of 100 Gb/s down and 2 of 200 Gb/s up are 2:1.
#[test]
fn a_topo_has_the_oversubscription_of_its_radixes_and_speeds() {
    let parse = |factor: u32| {
        Graph::parse(&format!(
            "Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n\
             Oversubscribed {factor}\nTier 1\nDownlink_speed_Gbps 200\nRadix_Down 4\n"
        ))
    };
    assert_eq!(parse(2).expect("2:1").hosts.len(), 32);
    for factor in [0, 1, 4] {
        let error = parse(factor).expect_err("another factor").to_string();
        let right = format!(
            "8: `Oversubscribed` is {factor}, but a switch of this tier has 8 links of 100 Gb/s down and 2 of 200 Gb/s up"
        );
        assert!(error.starts_with(&right), "{error}");
    }
}

#[test]
fn hpcc_files_are_read() {
    let flows = Traffic::parse(
        "2\n2 1 3 100 200000000 2\n5 1 3 100 5000000 2.0000005\n\nFirst line: # of flows\n",
    )
    .expect("read");
    assert!(flows.hpcc);
    assert_eq!(flows.messages[1].start, Span::from_secs(2) + Span::from_ns(500));
    let graph =
        Graph::parse("4 1 3\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 1us 0\n3 0 25Gbps 1000ns 0.0\n")
            .expect("read");
    assert_eq!(graph.hosts, [1, 2, 3]);
    assert_eq!((graph.links[2].a, graph.links[2].b), (End::Host(2), End::Switch(0)));
    assert_eq!(
        (graph.links[2].rate, graph.links[2].delay),
        (Rate::from_gbps(25), Span::from_us(1))
    );
}

/// Host 2 of the HPCC simulator is 11.0.2.1, host 257 is 11.1.1.1.
#[test]
fn fct_txt_has_the_columns_of_the_hpcc_simulator() {
    let flow = FlowTime {
        from: 2,
        to: 257,
        index: 1,
        bytes: 5000,
        start: Span::from_us(7),
        took: Span::from_ns(2500),
        ideal: Span::from_ns(2400),
    };
    assert_eq!(render_fct(&[flow]), "0b000201 0b010101 10001 100 5000 7000 2500 2400\n");
}

#[test]
fn wrong_traffic_is_refused_with_line_and_remedy() {
    for (text, message) in [
        ("", "1: unknown traffic format"),
        ("hello", "1: unknown traffic format"),
        ("Nodes x\n", "1: `x` is not a number of nodes"),
        ("Nodes 4\nConnections 1\n", "2: 1 connections are announced, but there are 0"),
        ("Nodes 4\n", "1: the file has no connections"),
        ("Nodes 4\nConnections 1\n0->4 id 1 start 0 size 1\n", "3: unknown node 4"),
        ("Nodes 4\n1->1 start 0 size 1\n", "2: node 1 sends to itself"),
        ("Nodes 4\n0->1 start 0\n", "2: the size is missing"),
        ("Nodes 4\n0->1 size 5\n", "2: the start time is missing"),
        ("Nodes 4\n0->1 start 0 size\n", "2: `size` has no value"),
        ("Nodes 4\n0->1 start 0 size 0\n", "2: the size is 0"),
        ("Nodes 4\n0->1 start 0 sise 9\n", "2: unknown word `sise`; did you mean `size`?"),
        ("Nodes 4\n0->1 trigger 1 size 9\n", "2: triggers are not supported"),
        ("Nodes 4\nTriggers 1\n", "2: triggers are not supported"),
        ("Nodes 4\nfailure 1 2\n", "2: failures are not read from this file"),
        ("Nodes 4\n0->1 start 0 size 9 prio 2\n", "2: `prio` is not read from this file"),
        ("0->1 start 0 size 9\n", "1: `Nodes N` must come before"),
        ("Nodes 4\nhello\n", "2: `hello` is unknown"),
        ("2\n0 1 3 100 5 0\n", "1: the first line announces 2 flows, but there are 1"),
        ("0\n", "1: the file has no flows"),
        ("1\n0 1 3 100 5\n", "2: 5 words; there must be six"),
        ("1\n0 1 3 100 5 x\n", "2: `x` is not a start time"),
        ("1\n0 0 3 100 5 0\n", "2: node 0 sends to itself"),
        ("1\n0 1 3 100 -5 0\n", "2: `-5` is not a size"),
    ] {
        let error = Traffic::parse(text).expect_err(text).to_string();
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

#[test]
fn wrong_topologies_are_refused_with_line_and_remedy() {
    let good = topo(128, 2);
    let with = |from: &str, to: &str| good.replacen(from, to, 1);
    for (text, message) in [
        (String::new(), "1: unknown topology format"),
        (with("Nodes 128", "Nodes"), "2: `Nodes` is not a key and a value"),
        (with("Nodes 128", "Nodes 0"), "2: `Nodes` is 0"),
        (with("Nodes 128", "Hosts 128"), "2: unknown key `Hosts`"),
        (with("Tiers 3", "Tiers 4"), "3: 4 tiers and 3 blocks"),
        (with("Tiers 3", "Tiers 2"), "3: 2 tiers and 3 blocks"),
        (with("Podsize 64", "Podsize 60"), "2: 128 nodes cannot be divided"),
        (with("Tier 1", "Tier 2"), "14: tier 2; the next one must be 1"),
        (with("Radix_Up 8", "Radix_Up 8\nRadix_Up 9"), "10: `Radix_Up` is set twice"),
        (with("Radix_Up 8", "Radix_Top 8"), "9: unknown key `Radix_Top`"),
        (with("Radix_Up 8\n", ""), "6: `Radix_Up` of this tier is missing"),
        (with("Radix_Down 8", "Radix_Down x"), "8: `x` is not a whole number"),
        (with("Bundle 1", "Bundle 0"), "28: `Bundle` is 0"),
        (
            with("Downlink_Latency_ns 1000", "Downlink_Latency_ns 1000000001"),
            "11: `Downlink_Latency_ns` is 1000000001; it must be at most 1000000000",
        ),
        (
            good.replace("Switch_Latency_ns 0", "Switch_Latency_ns 2000000000"),
            "12: `Switch_Latency_ns` is 2000000000; it must be at most 1000000000",
        ),
        (with("Radix_Down 2", "Radix_Down 3"), "17: 16 switches of tier 1"),
        ("1 2".to_owned(), "1: the first line must be three numbers"),
        ("3 1 2\n".to_owned(), "1: the node numbers of 1 switches must follow"),
        ("3 1 1 1 2\n".to_owned(), "1: the first line must be three numbers"),
        ("3 1 x 1 2 H100\n".to_owned(), "1: `x` is not a number of NVSwitches"),
        ("3 1 1 1 2 H100\n1\n".to_owned(), "2: the node numbers of 2 switches must follow"),
        ("3 1 2\n7\n".to_owned(), "2: unknown node 7"),
        ("3 2 2\n0 0\n".to_owned(), "2: switch 0 is listed twice"),
        ("3 1 2\n0\n0 1 1Gbps 1us 0\n".to_owned(), "1: the first line announces 2 links"),
        ("3 1 1\n0\n0 1 1Gbps 1us\n".to_owned(), "3: 4 words; there must be five"),
        ("3 1 1\n0\n0 1 1 1us 0\n".to_owned(), "3: `1` is not a rate"),
        ("3 1 1\n0\n0 1 1Gbps 1 0\n".to_owned(), "3: `1` is not a time"),
        ("3 1 1\n0\n0 0 1Gbps 1us 0\n".to_owned(), "3: a link of node 0 to itself"),
        ("3 1 1\n0\n0 1 1Gbps 1us 0.1\n".to_owned(), "3: the error rate is 0.1"),
        ("3 1 1\n0\n0 1 1Gbps 1us x\n".to_owned(), "3: `x` is not an error rate"),
        ("99999999 1 1\n0\n".to_owned(), "1: a topology has at most"),
    ] {
        let error = Graph::parse(&text).expect_err(&text).to_string();
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = (Traffic::parse(&text), Graph::parse(&text), Sizes::parse(&text));
    }

    #[test]
    fn any_numbers_are_read_or_refused(text in "([0-9]{1,20}([ ,.\n]|->)){0,30}") {
        let _ = (Traffic::parse(&text), Graph::parse(&text), Sizes::parse(&text));
    }

    /// A value of a valid file replaced by any number.
    #[test]
    fn any_number_in_a_topo_is_read_or_refused(word in 0..40usize, value in any::<u64>(), shift in 0..64u32) {
        let text = topo(128, 2);
        let mut words: Vec<String> = text.split_inclusive([' ', '\n']).map(str::to_owned).collect();
        let numbers: Vec<usize> = (0..words.len())
            .filter(|&w| words[w].trim().parse::<u64>().is_ok())
            .collect();
        let at = numbers[word % numbers.len()];
        words[at] = format!("{}\n", value >> shift);
        let _ = Graph::parse(&words.concat());
    }
}
