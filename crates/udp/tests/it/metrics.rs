//! A host's metrics, read over HTTP and checked by the rules of the format.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

use crate::support;
use crate::support::{SHARED, config, host, pattern};
use apus_udp::prometheus::Server;
use apus_udp::{Access, Mode, Request};

/// Returns every sample of a page, by name and labels. Fails if a line is not a sample, or its metric was not declared.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let (mut declared, mut samples) = (Vec::new(), BTreeMap::new());
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            declared.push(kind.split(' ').next().expect("a name").to_owned());
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').expect("a sample");
        let bare = name.split('{').next().expect("a name");
        let known = declared.iter().any(|d| {
            bare.strip_prefix(d.as_str()).is_some_and(|rest| ["", "_sum", "_count"].contains(&rest))
        });
        assert!(known, "{line}");
        let value = value.parse().expect("a number");
        assert!(samples.insert(name.to_owned(), value).is_none(), "twice: {name}");
    }
    samples
}

#[test]
fn what_happened_is_on_the_page() {
    let (server, client) = (host(config(SHARED)), host(config(SHARED)));
    let region = server.register(vec![0; 100_000], Access::ALL).expect("region");
    let here = client.connect(server.local_addr()).expect("connect");
    let _there = server.accept().expect("accept");
    for n in 0..20 {
        let write = Request::write(region.key(), 0, pattern(n, 5_000));
        here.submit(write).expect("room").wait().expect("written");
    }
    let stranger = UdpSocket::bind(support::any()).expect("socket");
    stranger.send_to(b"nonsense", server.local_addr()).expect("sent");
    let (of_server, of_client) = (server.metrics(), client.metrics());
    let http = Server::start(support::any(), move || of_server.page()).expect("listens");
    let scrape = || {
        let mut stream = TcpStream::connect(http.address()).expect("connect");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answer");
        samples(answer.split_once("\r\n\r\n").expect("a body").1)
    };
    let malformed = "apus_session_events_total{engine=\"0\",event=\"dropped_malformed\"}";
    support::until("the page counts the malformed datagram", || scrape()[malformed] > 0.0);
    let server = scrape();
    assert_eq!(server[malformed], 1.0);
    assert_eq!(server["apus_payload_received_bytes_total{engine=\"0\"}"], 100_000.0);
    assert_eq!(server["apus_connections{engine=\"0\"}"], 1.0);
    let client = samples(&of_client.page());
    assert_eq!(client["apus_ops_total{engine=\"0\"}"], 20.0);
    assert!(client["apus_payload_sent_bytes_total{engine=\"0\"}"] >= 100_000.0);
    assert!(client["apus_end_to_end_rtt_seconds_count{engine=\"0\"}"] >= 20.0);
    let median = client["apus_end_to_end_rtt_seconds{engine=\"0\",quantile=\"0.5\"}"];
    assert!(median > 0.0, "{median} s");
    // The client's connection, and the same values, named by the server's IP address.
    let of_peer = "engine=\"0\",peer=\"127.0.0.1\"";
    let address = here.peer();
    let of_connection = format!("engine=\"0\",peer=\"{address}\",connection=\"1\"");
    for (prefix, labels) in [("apus_connection", &*of_connection), ("apus_peer", of_peer)] {
        let value = |name: &str, more: &str| client[&format!("{prefix}_{name}{{{labels}{more}}}")];
        assert_eq!(value("ops_total", ",kind=\"write\",outcome=\"done\""), 20.0);
        assert_eq!(value("ops_total", ",kind=\"read\",outcome=\"done\""), 0.0);
        assert_eq!(value("delivered_bytes_total", ",kind=\"write\""), 100_000.0);
        assert!(value("packets_sent_total", "") >= 20.0);
        assert!(value("retransmissions_total", "") < value("packets_sent_total", ""));
    }
    assert_eq!(client[&format!("apus_peer_connections{{{of_peer}}}")], 1.0);
    let gauge = |name: &str| client[&format!("apus_connection_{name}{{{of_connection}}}")];
    let (state, _) = here.flow_state(0).expect("connected");
    assert_eq!(gauge("flows"), 1.0);
    assert!(gauge("rtt_seconds") > 0.0 && gauge("path_mtu_bytes") >= 1280.0);
    assert!(gauge("cwnd_packets") > 0.0 && state.fabric_cwnd.is_some());
    assert!(gauge("fabric_cwnd_packets") > 0.0 && gauge("endpoint_cwnd_packets") > 0.0);
    let target = state.target_delay.expect("an acknowledgement").as_secs_f64();
    assert!((gauge("target_delay_seconds") / target - 1.0).abs() < 0.5, "near {target} s");
}

#[test]
fn connections_and_peers_beyond_the_limit_are_counted_together() {
    let mut settings = config(SHARED);
    settings.metrics_limit = 1;
    let client = host(settings);
    let servers: Vec<_> = [1, 2, 3]
        .map(|n| {
            let mut settings = config(SHARED);
            settings.listen = vec![([127, 0, 0, n], 0).into()];
            host(settings)
        })
        .into();
    let connections: Vec<_> = servers
        .iter()
        .map(|server| client.connect(server.local_addr()).expect("connect"))
        .collect();
    for connection in &connections {
        let message = connection.submit(Request::message(vec![1; 10])).expect("room");
        message.wait().expect("delivered");
    }
    let page = || samples(&client.metrics().page());
    let delivered = |page: &BTreeMap<String, f64>, peer: &str| {
        let labels = format!("engine=\"0\",peer=\"{peer}\",kind=\"message\"");
        page[&format!("apus_peer_delivered_bytes_total{{{labels}}}")]
    };
    let before = page();
    let rows = |name: &str| before.keys().filter(|row| row.starts_with(name)).count();
    assert_eq!((rows("apus_connection_flows"), rows("apus_peer_connections")), (1, 2));
    assert_eq!(before["apus_connections_unlisted{engine=\"0\"}"], 2.0);
    assert_eq!((delivered(&before, "127.0.0.1"), delivered(&before, "other")), (10.0, 20.0));
    drop(connections);
    support::until("the connections end", || page()["apus_connections{engine=\"0\"}"] == 0.0);
    let after = page();
    assert_eq!(
        delivered(&after, "127.0.0.1") + delivered(&after, "other"),
        30.0,
        "no count is lost"
    );
}

#[test]
fn a_page_outlives_its_host_and_does_not_wait_for_an_inline_engine() {
    let host = host(config(Mode::Inline));
    let metrics = host.metrics();
    assert_eq!(samples(&metrics.page())["apus_engine_report{engine=\"0\"}"], 1.0);
    drop(host);
    assert_eq!(samples(&metrics.page())["apus_engine_report{engine=\"0\"}"], 0.0);
}
