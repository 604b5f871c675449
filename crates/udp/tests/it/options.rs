//! Settings of a host that are visible on the wire: captures, traffic classes, timestamps of departures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{Faults, Relay, SHARED, host, pattern, steady};
use apus_algorithms::registry::build;
use apus_udp::{Access, Capture, ConnectError, Connection, Request};
use apus_units::Span;
use apus_wire::Body;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGReader, traits::PcapReaderIterator};

/// The ECN codepoint "congestion experienced".
const CONGESTED: u8 = 3;

/// A file of this test, which is removed when dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("apus-{name}-{}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A datagram of a capture, as independent parsers read it.
struct Datagram {
    sent: bool,
    /// DSCP of its IP header.
    dscp: u8,
    /// ECN codepoint of its IP header (RFC 3168 §5).
    ecn: u8,
    bytes: Vec<u8>,
}

fn captured(file: &Path) -> Vec<Datagram> {
    let bytes = std::fs::read(file).expect("a capture");
    let mut reader = PcapNGReader::new(1 << 20, &bytes[..]).expect("a pcapng file");
    let mut datagrams = Vec::new();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                if let PcapBlockOwned::NG(Block::EnhancedPacket(packet)) = block {
                    let flags = packet.options.iter().find(|o| o.code.0 == 2).expect("flags");
                    let ip = SlicedPacket::from_ip(&packet.data[..packet.caplen as usize]);
                    let ip = ip.expect("an IP packet");
                    let Some(NetSlice::Ipv4(v4)) = &ip.net else { panic!("IPv4") };
                    let Some(TransportSlice::Udp(udp)) = &ip.transport else { panic!("UDP") };
                    datagrams.push(Datagram {
                        sent: flags.value()[0] == 2,
                        dscp: v4.header().dcp().value(),
                        ecn: v4.header().ecn().value(),
                        bytes: udp.payload().to_vec(),
                    });
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => return datagrams,
            Err(PcapError::Incomplete(_)) => reader.refill().expect("more"),
            Err(error) => panic!("not readable: {error:?}"),
        }
    }
}

/// Returns the DSCPs seen of each flow (as its receiver numbers it), either of data or of acknowledgements.
fn by_flow(datagrams: &[Datagram], sent: bool, data: bool) -> BTreeMap<u32, BTreeSet<u8>> {
    let mut seen: BTreeMap<u32, BTreeSet<u8>> = BTreeMap::new();
    for datagram in datagrams.iter().filter(|d| d.sent == sent) {
        let Ok((header, _)) = apus_wire::decode(&datagram.bytes) else { continue };
        if matches!(header.body, Body::Data(_)) == data {
            seen.entry(header.flow.get()).or_default().insert(datagram.dscp);
        }
    }
    seen
}

/// The receiver reads the DSCP that the kernel reports with each datagram (IP_TOS): expedited forwarding is 46 (RFC 3246),
/// AF21 is 18 (RFC 2597), low effort is 1 (RFC 8622).
#[test]
fn each_flow_goes_under_the_dscp_of_its_class_both_ways() {
    let file = File::new("classes");
    let (mut of_server, mut of_client) = (steady(SHARED), steady(SHARED));
    of_server.capture = Some(Capture::create(&file.0).expect("a capture"));
    of_client.dscp = [0, 46, 18, 0, 0, 0, 0, 0];
    of_server.dscp = [1, 46, 0, 0, 0, 0, 0, 0];
    let (server, client) = (host(of_server), host(of_client));
    let region = server.register(vec![0; 100_000], Access::ALL).expect("region");
    let none = client.connect_with(server.local_addr(), &[0, 8], None);
    assert!(matches!(none.err(), Some(ConnectError::Request(_))), "there is no class 8");
    let here = client.connect_with(server.local_addr(), &[0, 1, 2], None).expect("connect");
    let _there = server.accept().expect("accept");
    for flow in 0..3 {
        let write = Request::write(region.key(), 0, pattern(flow as u64, 100_000));
        here.submit_to(flow, write).expect("room").wait().expect("written");
    }
    drop((here, client, server)); // the capture is written
    let datagrams = captured(&file.0);
    // Both sides number the three flows from 0 upwards, because they are the first of their endpoints.
    let expected = |dscps: [u8; 3]| (0..3).zip(dscps.map(|dscp| BTreeSet::from([dscp]))).collect();
    assert_eq!(by_flow(&datagrams, false, true), expected([0, 46, 18]), "data that came in");
    assert_eq!(by_flow(&datagrams, true, false), expected([1, 46, 0]), "acknowledgements");
    assert!(datagrams.iter().any(|d| d.sent && d.bytes[2] == 0x41), "the handshake is there too");
}

/// RFC 3168 §5: a sender that understands marks sets ECT(0), 2; a switch marks with CE, 3. DCTCP §3.1: the window shrinks
/// with the share of marked packets. If all packets are marked, it is halved per window.
#[test]
fn ecn_marks_reach_the_algorithms_that_want_them() {
    let file = File::new("ecn");
    let settings = |algorithm| {
        let mut settings = steady(SHARED);
        settings.algorithm = build(algorithm, None, &[]).expect(algorithm);
        settings.max_mtu = 1500;
        settings
    };
    let mut of_server = settings("dctcp");
    of_server.capture = Some(Capture::create(&file.0).expect("a capture"));
    let (server, client) = (host(of_server), host(settings("dctcp")));
    let region = server.register(vec![0; 1 << 20], Access::ALL).expect("region");
    let write = |here: &Connection, times: u32| {
        for _ in 0..times {
            let write = Request::write(region.key(), 0, vec![1; 100_000]);
            here.submit(write).expect("room").wait().expect("written");
        }
        here.flow_state(0).expect("connected").0.cwnd
    };
    let direct = client.connect(server.local_addr()).expect("connect");
    write(&direct, 1);
    let relay = Relay::new(server.local_addr(), Faults::default(), 1);
    relay.mark(0, CONGESTED);
    let marked = client.connect(relay.address).expect("connect");
    // 70 packets each: the window is halved repeatedly, whatever its initial value.
    let cwnd = write(&marked, 20);
    assert!(cwnd < 3.0, "{cwnd} packets though every packet was marked");
    drop((direct, marked, client, server));
    let data = captured(&file.0).into_iter().filter(|d| !d.sent && d.dscp == 0);
    let data = data.filter(|d| {
        matches!(apus_wire::decode(&d.bytes), Ok((header, _)) if matches!(header.body, Body::Data(_)))
    });
    let seen: BTreeSet<u8> = data.map(|d| d.ecn).collect();
    assert_eq!(seen, BTreeSet::from([2, 3]), "what came straight, and what was marked");
}

/// Swift §3.5: hop-based scaling, `hop_scale` for each switch; its hops are counted by the TTL (App. B).
#[test]
fn hops_are_counted_by_the_ttl_and_raise_the_target() {
    let mut settings = steady(SHARED);
    let swift = [("base_target", "200us"), ("hop_scale", "7us"), ("fs_range", "0us")];
    settings.algorithm = build("swift", None, &swift).expect("swift");
    let (server, client) = (host(settings.clone()), host(settings));
    let relay = Relay::new(server.local_addr(), Faults::default(), 1);
    relay.mark(5, 0);
    let here = client.connect(relay.address).expect("connect");
    let _there = server.accept().expect("accept");
    here.submit(Request::message(vec![1; 1000])).expect("room").wait().expect("delivered");
    let target = here.flow_state(0).expect("connected").0.target_delay;
    assert_eq!(target, Some(Span::from_us(200 + 5 * 7)));
}

#[test]
fn departures_are_told_by_the_kernel_and_ops_go_on() {
    let mut settings = steady(SHARED);
    settings.departure_timestamps = true;
    let (server, client) = (host(settings.clone()), host(settings));
    let region = server.register(vec![0; 1 << 20], Access::ALL).expect("region");
    let here = client.connect(server.local_addr()).expect("connect");
    let _there = server.accept().expect("accept");
    for n in 0..20 {
        let bytes = pattern(n, 1 << 20);
        let write = Request::write(region.key(), 0, bytes.clone());
        here.submit(write).expect("room").wait().expect("written");
        region.read(|memory| assert!(memory == bytes, "round {n}"));
    }
    let stats = client.stats().next().expect("an engine");
    let departures = stats.departures.load(Ordering::Relaxed);
    // 20 MB take 2300 packets. With 4 packets per send (a quarter of the window of 16), these are about 600 sends. Reports of
    // a few sends may still be outstanding.
    assert!(departures > 100, "only {departures} sends were reported");
    let median = stats.end_to_end_rtt.quantile_us(0.5).expect("round trips");
    assert!(median > 0.0, "{median} us");
    std::thread::sleep(Duration::from_millis(1)); // reports of the last sends disturb nobody
    assert_eq!(stats.send_failures.load(Ordering::Relaxed), 0);
}
