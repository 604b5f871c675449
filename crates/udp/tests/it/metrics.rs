//! A host's metrics, scraped over HTTP and read by rules of the format.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

use crate::support;
use crate::support::{SHARED, config, host, pattern};
use apus_udp::prometheus::Server;
use apus_udp::{Access, Request};

/// Every sample of a page, by name and labels. Fails if a line is none, or its metric was not declared.
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
    let region = server.register(vec![0; 100_000], Access::ReadWrite).expect("region");
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
}
