//! Topologies of InfraGraph: a file that its package wrote, JSON, slices, and errors.

use apus_scenario::import::{End, Graph, GraphLink};
use apus_units::{Rate, Span};
use proptest::prelude::*;

/// 4 servers of 2 GPUs with a network card each, below 2 leaves and 2 spines.
const TWO_RACKS: &str = include_str!("two-racks.yaml");

/// Expected are the links that `infragraph` 3.1.0 itself makes of this file
/// (`InfraGraphService.get_networkx_graph`).
#[test]
fn a_file_of_the_package_gives_the_links_of_its_own_graph() {
    let graph = Graph::parse(TWO_RACKS).expect("read");
    assert_eq!(graph.hosts, [0, 1, 2, 3, 4, 5, 6, 7], "each card of each server");
    assert_eq!(graph.switches, ["leaf.0", "leaf.1", "spine.0", "spine.1"]);
    let (host, switch) = (End::Host, End::Switch);
    let down = |a, b| GraphLink {
        a: host(a),
        b: switch(b),
        rate: Rate::from_gbps(200),
        delay: Span::from_ns(500),
    };
    // 50 GB/s are 400 Gb/s.
    let up = |a, b| GraphLink {
        a: switch(a),
        b: switch(b),
        rate: Rate::from_gbps(400),
        delay: Span::from_ns(1500),
    };
    // Hosts of a leaf: card 0 of servers 0 and 1, then card 1 of both; servers 2 and 3 by server.
    let first = [down(0, 0), down(2, 0), down(1, 0), down(3, 0)];
    let second = [down(4, 1), down(5, 1), down(6, 1), down(7, 1)];
    assert_eq!(graph.links[..4], first);
    assert_eq!(graph.links[4..8], second);
    assert_eq!(graph.links[8..], [up(0, 2), up(1, 2), up(0, 3), up(1, 3)]);
    assert!(graph.left_out.expect("a note").contains("links within servers"));
}

/// Servers `h` with `nic`s, and a switch.
fn text(edges: &str) -> String {
    format!(
        r#"{{ "name": "small", "devices": [
{{ "name": "server", "components": [{{ "name": "nic", "count": 4, "choice": "nic" }}], "links": [], "edges": [] }},
{{ "name": "box", "components": [{{ "name": "port", "count": 8, "choice": "port" }}], "links": [], "edges": [] }}],
"links": [{{ "name": "wire", "physical": {{ "bandwidth": {{ "gigabits_per_second": 100 }},
  "latency": {{ "choice": "us", "us": 1 }} }} }},
{{ "name": "bare" }}],
"instances": [{{ "name": "h", "device": "server", "count": 2 }}, {{ "name": "s", "device": "box", "count": 1 }}],
"edges": [{edges}] }}"#
    )
}

fn edge(from: &str, to: &str, rest: &str) -> String {
    let end = |text: &str| {
        let (instance, component) = text.split_once(' ').expect("two words");
        format!(r#"{{ "instance": "{instance}", "component": "{component}" }}"#)
    };
    format!(r#"{{ "ep1": {}, "ep2": {}, {rest} }}"#, end(from), end(to))
}

const ONE: &str = r#""scheme": "one2one", "link": "wire""#;

/// Python's slices; the shorter side of `one2one` decides; equal edges count once.
#[test]
fn slices_choose_components() {
    for (edges, links) in [
        (edge("h nic", "s port", ONE), 8),
        (edge("h[1] nic[1:3]", "s[0] port", ONE), 2),
        (edge("h[:] nic[::2]", "s port", ONE), 4),
        (edge("h[-1] nic[:-1]", "s port", ONE), 3),
        (edge("h nic", "s port[0:3]", ONE), 3),
        (edge("h server.nic[2]", "s port", ONE), 2),
        (edge("h nic[2:2]", "s port", ONE), 0),
        (edge("h nic[0]", "s port[0:2]", &ONE.replace("one2one", "many2many")), 4),
        ([edge("h nic", "s port", ONE), edge("s port", "h nic", ONE)].join(","), 8),
    ] {
        let graph = Graph::parse(&text(&edges)).expect(&edges);
        assert_eq!(graph.links.len(), links, "{edges}");
    }
}

#[test]
fn mistakes_are_refused_with_line_and_remedy() {
    let fine = edge("h nic", "s port", ONE);
    let with = |from: &str, to: &str| {
        let text = text(&fine);
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    for (text, line, message) in [
        (text(&edge("h nic[4]", "s port", ONE)), 8, "`nic[4]`: there are 4 of `nic`"),
        (text(&edge("h[0:3] nic", "s port", ONE)), 8, "`h[0:3]`: there are 2 of `h`"),
        (text(&edge("h nic[x]", "s port", ONE)), 8, "`nic[x]`"),
        (text(&edge("h nic[0:4:0]", "s port", ONE)), 8, "`nic[0:4:0]`"),
        (text(&edge("h nic[0", "s port", ONE)), 8, "lacks `]`"),
        (text(&edge("k nic", "s port", ONE)), 8, "unknown instance `k`"),
        (text(&edge("h port", "s port", ONE)), 8, "device `server` has no component `port`"),
        (text(&edge("h nic.port", "s port", ONE)), 8, "device `server` has no component `port`"),
        (with("one2one", "ring"), 8, "the scheme must be `one2one` or `many2many`"),
        (with("one2one", "star"), 8, "star"),
        (with(r#""scheme": "one2one", "#, ""), 8, "the scheme must be"),
        (with(r#""link": "wire""#, r#""link": "wir""#), 8, "unknown link `wir`"),
        (
            with(r#""link": "wire""#, r#""link": "bare""#),
            6,
            "link `bare` needs `physical.bandwidth`",
        ),
        (with("gigabits_per_second", "gigatransfers_per_second"), 4, "link `wire` needs"),
        (with(r#""us": 1"#, r#""us": -1"#), 4, "link `wire`"),
        (with(r#""gigabits_per_second": 100"#, r#""gigabits_per_second": 0"#), 4, "link `wire`"),
        (with(r#""us": 1 "#, ""), 4, "link `wire` needs `physical.latency`"),
        (with(r#""device": "box""#, r#""device": "bag""#), 7, "unknown device `bag`"),
        (with(r#""name": "s""#, r#""name": "h""#), 7, "instance `h` is defined twice"),
        (with(r#""name": "s""#, r#""name": "s/1""#), 7, "instance `s/1`: a name must have"),
        (with(r#""count": 2"#, r#""count": 2000000000"#), 7, "a topology has at most 1000000"),
        (with(r#""choice": "port""#, r#""choice": "device""#), 3, "unknown device `port`"),
        (with(r#""edges": [{ "ep1""#, r#""connections": [{ "ep1""#), 8, "connections"),
        (with(r#""instance": "h", "#, ""), 8, "instance"),
        (
            with(
                r#""name": "nic", "count": 4, "choice": "nic""#,
                r#""name": "server", "count": 4, "choice": "device""#,
            ),
            2,
            "device `server` contains itself",
        ),
        (text(&format!("{fine}, {}", fine.replace("wire", "bare"))), 8, "has link `bare`"),
    ] {
        let error = Graph::parse(&text).expect_err(&text);
        assert_eq!(error.line, line, "{error} in {text}");
        assert!(error.message.contains(message), "{message}: {error}");
        assert!(!error.message.contains('\n'), "one line: {error}");
    }
}

/// A chain of devices, each within the previous one. Devices are read by name: from the outside, or from the
/// inside.
#[test]
fn devices_may_be_16_deep() {
    let chain = |count: usize, is_inside_first: bool| {
        let name = |n: usize| format!("d{:02}", if is_inside_first { count - n } else { n });
        let device = |n: usize| {
            let inner =
                format!(r#"{{ "name": "{}", "count": 1, "choice": "device" }}"#, name(n + 1));
            let inner = if n + 1 < count { inner } else { String::new() };
            format!(r#"{{ "name": "{}", "components": [{inner}] }}, "#, name(n))
        };
        let chain: String = (0..count).map(device).collect();
        let fine = text(&edge("h nic", "s port", ONE));
        Graph::parse(&fine.replace("\"devices\": [", &format!("\"devices\": [{chain}")))
    };
    for is_inside_first in [false, true] {
        assert_eq!(chain(16, is_inside_first).expect("a chain").links.len(), 8);
        let error = chain(17, is_inside_first).expect_err("too deep").to_string();
        assert!(error.contains("more than 16 devices within each other"), "{error}");
    }
}

/// Each count is allowed, but not their sum; no instance is created.
#[test]
fn instances_of_switches_are_bounded_together() {
    let instance = |n: usize| format!(r#"{{ "name": "s{n}", "device": "box", "count": 600000 }}"#);
    let more = |count: usize| {
        let more: String = (0..count).map(|n| instance(n) + ",\n").collect();
        let fine = text(&edge("h nic", "s port", ONE));
        Graph::parse(&fine.replace("\"instances\": [", &format!("\"instances\": [{more}")))
    };
    assert_eq!(more(1).expect("600001 switches").switches.len(), 600_001);
    let error = more(200).expect_err("too many");
    assert_eq!(error.line, 8, "{error}");
    assert!(error.message.contains("1200000 switches; a topology has at most 1000000"), "{error}");
}

/// Each edge joins one pair, but has an endpoint of a million components.
#[test]
fn components_that_endpoints_name_are_bounded_together() {
    let parse = |edges: usize| {
        let edges = vec![edge("h nic", "s port[0]", ONE); edges].join(",\n");
        Graph::parse(&text(&edges).replace(r#""count": 4"#, r#""count": 500000"#))
    };
    assert_eq!(parse(2).expect("two edges").links.len(), 1);
    let error = parse(20).expect_err("too many");
    assert_eq!(error.line, 15, "{error}");
    assert!(error.message.contains("8000007 components; at most 8000000 are read"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Replaces a character of a valid file by any other, or cuts the file there.
    #[test]
    fn any_damage_is_read_or_refused(at in 0..TWO_RACKS.len(), by in any::<char>(), cut in any::<bool>()) {
        let mut text = TWO_RACKS[..at].to_owned();
        text.push(by);
        if !cut {
            text.push_str(&TWO_RACKS[at + 1..]);
        }
        let _ = Graph::parse(&text);
    }
}
