//! Captures as other programs read them: `pcap-parser`, and `tshark` with the dissector of this project where it is
//! installed.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use apus_udp::pcapng::{Captured, Direction, Pcapng};
use apus_udp::session::{
    Config, Event, Extended, KeyRing, MAX_HANDSHAKE_BYTES, Sessions, SharedKey,
};
use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{
    Ack, Attached, Body, CreditEcho, Extension, Header, Hop, Hops, OwnFields, RegionKey, Segment,
    SegmentKind, SwitchView,
};
use pcap_parser::{PcapNGReader, traits::PcapReaderIterator};

/// 2026-11-21 12:00:00.123456789 UTC.
const START_NS: u64 = 1_795_262_400_123_456_789;

fn captured<'a>(n: u64, addresses: [SocketAddr; 2], datagram: &'a [u8]) -> Captured<'a> {
    Captured {
        interface: 0,
        unix_ns: START_NS + n,
        direction: if n.is_multiple_of(2) { Direction::Out } else { Direction::In },
        from: addresses[0],
        to: addresses[1],
        traffic_class: 0b1011_1001, // DSCP EF (46), ECT(1)
        ttl: 61,
        datagram,
        kept: usize::MAX,
    }
}

fn pcapng(snap: u32) -> Pcapng<Vec<u8>> {
    let mut file = Pcapng::new(Vec::new(), snap).unwrap();
    file.interface("engine 0").unwrap();
    file
}

/// Returns the content that an independent reader finds: nanoseconds, bytes kept, original length, direction.
fn read_back(file: &[u8]) -> Vec<(u64, Vec<u8>, u32, u32)> {
    let mut reader = PcapNGReader::new(1 << 20, file).expect("a pcapng file");
    let (mut resolution, mut packets) = (None, Vec::new());
    loop {
        match reader.next() {
            Ok((used, block)) => {
                use pcap_parser::{Block, PcapBlockOwned};
                match block {
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        assert_eq!(interface.linktype.0, 101);
                        assert_eq!(interface.if_tsresol, 9);
                        resolution = Some(interface.ts_resolution().expect("a resolution"));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        assert_eq!(resolution, Some(1_000_000_000));
                        let ns = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                        let flags = packet.options.iter().find(|o| o.code.0 == 2).expect("flags");
                        let flags = u32::from_le_bytes(flags.value()[..4].try_into().unwrap());
                        let kept = packet.data[..packet.caplen as usize].to_vec();
                        packets.push((ns, kept, packet.origlen, flags));
                    }
                    _ => {}
                }
                reader.consume(used);
            }
            Err(pcap_parser::PcapError::Eof) => return packets,
            Err(pcap_parser::PcapError::Incomplete(_)) => reader.refill().expect("more"),
            Err(error) => panic!("not readable: {error:?}"),
        }
    }
}

#[test]
fn another_reader_finds_times_addresses_marks_and_valid_checksums() {
    let v4 = ["10.0.0.1:7000", "192.168.1.2:8000"].map(|a| a.parse().unwrap());
    let v6 = ["[2001:db8::1]:7000", "[fe80::2]:8000"].map(|a| a.parse().unwrap());
    let datagrams: Vec<Vec<u8>> = (0..40).map(|n| (0..n * 37).map(|b| b as u8).collect()).collect();
    let mut file = pcapng(0);
    for (n, datagram) in datagrams.iter().enumerate() {
        let addresses = if n % 3 == 0 { v6 } else { v4 };
        file.write(&captured(n as u64, addresses, datagram)).unwrap();
    }
    let packets = read_back(&file.finish().unwrap());
    assert_eq!(packets.len(), 40);
    for (n, (ns, bytes, whole, flags)) in packets.iter().enumerate() {
        assert_eq!((*ns, *whole as usize), (START_NS + n as u64, bytes.len()));
        assert_eq!(*flags, if n % 2 == 0 { 2 } else { 1 });
        let (ip, udp) = bytes.split_at(if n % 3 == 0 { 40 } else { 20 });
        assert_eq!(
            (&udp[..2], &udp[2..4]),
            (&7000u16.to_be_bytes()[..], &8000u16.to_be_bytes()[..])
        );
        assert_eq!(usize::from(u16::from_be_bytes([udp[4], udp[5]])), 8 + datagrams[n].len());
        assert_eq!(udp[8..], datagrams[n]);
        // RFC 768: the sum over pseudo header and datagram, checksum included, is -0.
        let addresses = if n % 3 == 0 { &ip[8..] } else { &ip[12..] };
        let pseudo = [addresses, &[0, 17], &(udp.len() as u16).to_be_bytes()].concat();
        assert_eq!(internet_sum(&[&pseudo, udp]), 0xffff);
        if n % 3 == 0 {
            assert_eq!(ip[..4], [0x6b, 0x90, 0, 0], "version, traffic class, flow label");
            assert_eq!((ip[6], ip[7]), (17, 61), "UDP, hop limit");
            assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])), udp.len());
        } else {
            assert_eq!((ip[0], ip[1]), (0x45, 0b1011_1001), "version and length, DSCP and ECN");
            assert_eq!((ip[6], ip[8], ip[9]), (0x40, 61, 17), "don't fragment, TTL, UDP");
            assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), bytes.len());
            assert_eq!(internet_sum(&[ip]), 0xffff);
        }
    }
}

/// Returns the sum of the Internet checksum over these bytes (RFC 1071); each part is padded.
fn internet_sum(parts: &[&[u8]]) -> u64 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&b| u64::from(b));
    let mut sum: u64 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

#[test]
fn packets_are_cut_where_asked_and_their_length_is_kept() {
    let addresses = ["10.0.0.1:7000", "10.0.0.2:8000"].map(|a| a.parse().unwrap());
    let mut file = pcapng(100);
    file.write(&captured(0, addresses, &[7; 8_900])).unwrap();
    file.write(&captured(1, addresses, &[7; 10])).unwrap();
    let packets = read_back(&file.finish().unwrap());
    let lengths: Vec<_> = packets.iter().map(|p| (p.1.len(), p.2)).collect();
    assert_eq!(lengths, [(100, 8_928), (38, 38)]);
}

#[test]
fn what_cannot_be_a_packet_is_an_error_and_leaves_the_file_whole() {
    let v4: SocketAddr = "10.0.0.1:7000".parse().unwrap();
    let v6: SocketAddr = "[2001:db8::1]:7000".parse().unwrap();
    let mut file = pcapng(0);
    assert!(file.write(&captured(0, [v4, v6], b"x")).is_err());
    assert!(file.write(&captured(0, [v4, v4], &[0; 65_508])).is_err());
    file.write(&captured(0, [v4, v4], &[0; 65_507])).unwrap();
    assert_eq!(read_back(&file.finish().unwrap()).len(), 1);
}

/// An algorithm's own fields.
fn own<'a>(id: u8, is_echo: bool, writable: &'a [u8], authenticated: &'a [u8]) -> Extension<'a> {
    Extension::Own(OwnFields { id, is_echo, writable, authenticated })
}

/// A handshake, writes, a message, ACKs, a probe and a close between two tables, as a capture.
fn conversation(ring: &KeyRing) -> Vec<u8> {
    let addresses: [SocketAddr; 2] =
        ["10.0.0.1:48700", "10.0.0.2:48701"].map(|a| a.parse().unwrap());
    let now = Time::from_ps(0) + Span::from_secs(1);
    let mut tables =
        [1, 2].map(|n| Sessions::new(Config::default(), ring.clone(), [n; 32]).unwrap());
    let mut file = pcapng(0);
    let mut count = 0;
    let mut write = |from: usize, bytes: &[u8]| {
        let addresses = [addresses[from], addresses[1 - from]];
        file.write(&captured(count, addresses, bytes)).unwrap();
        count += 1;
    };
    let key = ring.ids().next().unwrap();
    let mut sessions = [Some(tables[0].connect(now, addresses[1], key, b"hello").unwrap()), None];
    let run = |tables: &mut [Sessions; 2],
               theirs: &mut Option<_>,
               write: &mut dyn FnMut(usize, &[u8])| {
        for _ in 0..4 {
            for from in 0..2 {
                let mut out = [0; MAX_HANDSHAKE_BYTES];
                while let Some((_, length)) = tables[from].poll_transmit(now, &mut out) {
                    write(from, &out[..length]);
                    tables[1 - from].receive(now, addresses[from], &mut out[..length]);
                    while let Some(event) = tables[1 - from].poll_event() {
                        if let Event::Incoming { session, .. } = event {
                            tables[1 - from].accept(now, session, b"welcome").unwrap();
                            *theirs = Some(session);
                        }
                    }
                }
            }
        }
    };
    let mut theirs = None;
    run(&mut tables, &mut theirs, &mut write);
    sessions[1] = theirs;
    let region = RegionKey::new(0xdead_beef);
    let segment = Segment {
        op: OpId::new(17),
        kind: SegmentKind::Write { region, address: 4096 },
        offset: 1000,
        length: 5,
        op_length: 2000,
        attached: Some(Attached::Credit(CreditEcho { number: 77, sent_at_ns: 88 })),
    };
    let message = Segment {
        op: OpId::new(40),
        kind: SegmentKind::Message,
        offset: 0,
        op_length: 5,
        attached: None,
        ..segment
    };
    let whole = Segment { op: OpId::new(105), offset: 0, op_length: 5, ..segment };
    let atomic = |kind, length: u32| Segment {
        op: OpId::new(50),
        kind,
        offset: 0,
        length,
        op_length: u64::from(length),
        attached: None,
    };
    let swap = atomic(SegmentKind::CompareAndSwap { region, address: 4096 }, 16);
    let add = atomic(SegmentKind::FetchAdd { region, address: 4104 }, 8);
    let ack = Ack {
        largest: PacketNumber::new(99),
        bitmap: 0b101,
        echo: PacketNumber::new(97),
        remote_queuing: Span::from_us(12),
        hops: 3,
        marked: 7,
        receiver_level: 9,
        echo_marked: false,
        missing: None,
    };
    // INC; FIRST, and 1234 = 0x04d2.
    let bolt = own(1, false, &[4], &[1, 0, 0, 0x04, 0xd2]);
    let granted = own(1, true, &[], &[0, 1, 0, 2]);
    let rcp = own(2, false, &[1, 2, 3], &[4, 5]);
    let rcp_echo = own(2, true, &[], &[1, 2, 4]);
    let foreign = own(64, false, &[0xaa, 0xbb], &[0xcc]);
    let foreign_echo = own(64, true, &[], &[]);
    let hop = Hop { link_rate: 6, at: 55, sent: 1 << 33, queue: 4321 }.to_bytes();
    let telemetry = Extension::TelemetryEcho(Hops::noted(0x0abc, &hop));
    for (from, flow, seq, body, extension) in [
        (0, 4, 99, Body::Data(segment), Extension::None),
        (1, 5, 6, Body::Ack(ack), Extension::None),
        (0, 4, 100, Body::Data(segment), bolt),
        (1, 5, 7, Body::Ack(ack), telemetry),
        (0, 4, 101, Body::Data(message), Extension::None),
        (0, 4, 102, Body::Data(whole), bolt),
        (1, 5, 8, Body::Ack(ack), granted),
        (0, 4, 103, Body::Data(segment), rcp),
        (1, 5, 9, Body::Ack(ack), rcp_echo),
        (0, 4, 104, Body::Data(segment), foreign),
        (1, 5, 10, Body::Ack(ack), foreign_echo),
        (0, 4, 105, Body::Data(swap), Extension::None),
        (0, 4, 106, Body::Data(add), bolt),
    ] {
        let header = Header { flow: FlowId::new(flow), seq: PacketNumber::new(seq), body };
        let mut buffer = [b'x'; 300];
        let id = sessions[from].expect("connected");
        let packet = Extended { header: &header, extension };
        let payload: Vec<u8> = match &header.body {
            Body::Data(segment) if segment.op == OpId::new(50) => {
                (1..=segment.length as u8).collect()
            }
            _ => vec![b'x'; header.payload_len()],
        };
        let length = tables[from].seal(now, id, packet, &payload, &mut buffer).unwrap();
        write(from, &buffer[..length]);
        // A switch answers packets that it can answer.
        if extension == bolt {
            let view = SwitchView::new(&mut buffer[..length]).expect("a packet of Bolt's");
            write(1, &view.signal(9_000, 6, 1234).expect("a signal"));
        }
    }
    let (ours, theirs_now) = (sessions[0].expect("connected"), sessions[1].expect("connected"));
    let mut probe = [0; 600];
    assert!(tables[0].seal_probe(now, ours, &mut probe));
    write(0, &probe);
    let mut answer = [0; 64];
    let length = tables[1].seal_probe_answer(now, theirs_now, probe.len(), &mut answer).unwrap();
    write(1, &answer[..length]);
    let mut join = [0; 600];
    assert!(tables[0].seal_join(now, ours, 5, &mut join));
    write(0, &join);
    tables[0].close(now, ours);
    run(&mut tables, &mut theirs, &mut write);
    file.finish().unwrap()
}

/// Returns the fields of every packet as tshark prints them with the dissector; `None` without tshark.
fn tshark(file: &[u8], name: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, file).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/apus.lua");
    let mut command = Command::new("tshark");
    command.arg("-X").arg(format!("lua_script:{script}")).arg("-r").arg(&path);
    command.args(["-T", "fields", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

#[test]
fn wireshark_shows_what_we_sent() {
    let sealed = KeyRing::new([SharedKey::new([1; 32])]).unwrap();
    for (name, ring, guard) in
        [("sealed", sealed, "apus.tag"), ("insecure", KeyRing::insecure(), "apus.checksum")]
    {
        let file = conversation(&ring);
        let fields = [
            "frame.time_epoch",
            "_ws.col.Protocol",
            "apus.kind",
            "apus.flow",
            "apus.seq",
            "apus.op",
            "apus.offset",
            "apus.length",
            "apus.op_length",
            "apus.region",
            "apus.address",
            "apus.credit.number",
            "apus.credit.sent_ns",
            "apus.ack.largest",
            "apus.ack.remote_queuing_ns",
            "apus.ack.hops",
            "apus.ack.receiver_level",
            "apus.extension",
            "apus.bolt.inc",
            "apus.bolt.dec",
            "apus.bolt.first",
            "apus.bolt.last",
            "apus.bolt.sent_ns",
            "apus.bolt.granted",
            "apus.rcp.rate",
            "apus.rcp.rtt",
            "apus.own.writable",
            "apus.own.authenticated",
            "apus.signal.queue",
            "apus.signal.rate",
            "apus.int.passed",
            "apus.int.path",
            "apus.int.rate",
            "apus.int.at_ns",
            "apus.int.sent",
            "apus.int.queue",
            "apus.command",
            "apus.probed",
            "apus.port.number",
            "apus.handshake.key",
            "apus.handshake.mode",
            "apus.atomic.expected",
            "apus.atomic.new",
            "apus.atomic.delta",
            "apus.payload",
            "apus.encrypted",
            guard,
            "_ws.expert",
        ];
        let file_name = format!("{name}.pcapng");
        let Some(rows) = tshark(&file, &file_name, &fields) else {
            // The test harness hides `eprintln` output of tests that pass.
            let _ = writeln!(std::io::stderr(), "skipped: tshark is not installed");
            return;
        };
        let column = |field: &str| {
            let at = fields.iter().position(|f| *f == field).expect("asked for");
            rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>()
        };
        assert!(rows.iter().all(|row| row[1] == "Apus"), "{rows:?}");
        assert_eq!(column("frame.time_epoch")[0], "1795262400.123456789");
        let kinds = [
            "0x40", "0x41", "0x42", "0x43", "0x46", "0x46", "0x01", "0x05", "0x01", "0x0c", "0x05",
            "0x02", "0x01", "0x0c", "0x05", "0x01", "0x05", "0x01", "0x05", "0x0d", "0x0e", "0x0c",
            "0x46", "0x46", "0x46", "0x46",
        ];
        assert_eq!(column("apus.kind"), kinds);
        let key = format!("0x{:016x}", ring.ids().next().unwrap().get());
        assert_eq!(column("apus.handshake.key")[..4], [&key[..], &key, &key, &key]);
        assert!(column("apus.handshake.key")[4..].iter().all(|key| key.is_empty()));
        let mode = if ring.is_insecure() { "0" } else { "1" };
        assert_eq!(column("apus.handshake.mode")[..5], [mode, mode, mode, mode, ""]);
        assert_eq!(
            column("apus.command")[4..],
            [
                "1", "2", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "4", "5",
                "8", "3"
            ]
        );
        let at = |field: &str, row: usize| column(field)[row].to_owned();
        for (field, value) in [
            ("apus.flow", "4"),
            ("apus.seq", "99"),
            ("apus.op", "17"),
            ("apus.offset", "1000"),
            ("apus.length", "5"),
            ("apus.op_length", "2000"),
            ("apus.region", "0x00000000deadbeef"),
            ("apus.address", "4096"),
            ("apus.credit.number", "77"),
            ("apus.credit.sent_ns", "88"),
        ] {
            assert_eq!(at(field, 6), value, "{field}");
        }
        for (field, value) in [
            ("apus.flow", "5"),
            ("apus.seq", "6"),
            ("apus.ack.largest", "99"),
            ("apus.ack.remote_queuing_ns", "12000"),
            ("apus.ack.hops", "3"),
            ("apus.ack.receiver_level", "9"),
        ] {
            assert_eq!(at(field, 7), value, "{field}");
        }
        for (field, row, value) in [
            ("apus.seq", 8, "100"),
            ("apus.op", 8, "17"),
            ("apus.length", 8, "5"),
            ("apus.credit.number", 8, "77"),
            ("apus.extension", 8, "1"),
            ("apus.bolt.inc", 8, "1"),
            ("apus.bolt.dec", 8, "0"),
            ("apus.bolt.first", 8, "1"),
            ("apus.bolt.last", 8, "0"),
            ("apus.bolt.sent_ns", 8, "1234"),
            ("apus.seq", 9, "100"),
            ("apus.signal.queue", 9, "9000"),
            ("apus.signal.rate", 9, "6"),
            ("apus.bolt.sent_ns", 9, "1234"),
            ("apus.seq", 10, "7"),
            ("apus.ack.largest", 10, "99"),
            ("apus.extension", 10, "254"),
            ("apus.int.passed", 10, "1"),
            ("apus.int.path", 10, "0x0abc"),
            ("apus.int.rate", 10, "6"),
            ("apus.int.at_ns", 10, "55"),
            ("apus.int.sent", 10, "8589934592"),
            ("apus.int.queue", 10, "4321"),
            // In the short form, 40 is encoded as 61 below 101, and 105 as 3 above 102.
            ("apus.seq", 11, "101"),
            ("apus.op", 11, "40"),
            ("apus.offset", 11, "0"),
            ("apus.length", 11, "5"),
            ("apus.op_length", 11, "5"),
            ("apus.region", 11, ""),
            ("apus.seq", 12, "102"),
            ("apus.op", 12, "105"),
            ("apus.offset", 12, "0"),
            ("apus.length", 12, "5"),
            ("apus.op_length", 12, "5"),
            ("apus.region", 12, "0x00000000deadbeef"),
            ("apus.address", 12, "4096"),
            ("apus.credit.number", 12, "77"),
            ("apus.credit.sent_ns", 12, "88"),
            ("apus.extension", 12, "1"),
            ("apus.bolt.sent_ns", 12, "1234"),
            ("apus.seq", 13, "102"),
            ("apus.signal.queue", 13, "9000"),
            ("apus.extension", 14, "129"),
            ("apus.bolt.granted", 14, "65538"),
            ("apus.ack.largest", 14, "99"),
            ("apus.extension", 15, "2"),
            ("apus.rcp.rate", 15, "66051"),
            ("apus.rcp.rtt", 15, "1029"),
            ("apus.op", 15, "17"),
            ("apus.extension", 16, "130"),
            ("apus.rcp.rate", 16, "66052"),
            ("apus.ack.largest", 16, "99"),
            ("apus.extension", 17, "64"),
            ("apus.own.writable", 17, "aabb"),
            ("apus.own.authenticated", 17, "cc"),
            ("apus.op", 17, "17"),
            ("apus.extension", 18, "192"),
            ("apus.own.writable", 18, ""),
            ("apus.ack.largest", 18, "99"),
            ("apus.op", 19, "50"),
            ("apus.length", 19, "16"),
            ("apus.op_length", 19, "16"),
            ("apus.region", 19, "0x00000000deadbeef"),
            ("apus.address", 19, "4096"),
            ("apus.op", 20, "50"),
            ("apus.length", 20, "8"),
            ("apus.address", 20, "4104"),
            ("apus.extension", 20, "1"),
        ] {
            assert_eq!(at(field, row), value, "{field} of row {row}");
        }
        for row in [6, 11, 12] {
            let (payload, encrypted) = (at("apus.payload", row), at("apus.encrypted", row));
            if ring.is_insecure() {
                assert_eq!(payload, "7878787878", "row {row}");
            } else {
                assert_eq!((payload, encrypted.len()), (String::new(), 10), "row {row}");
            }
        }
        // Little-endian.
        let operands = [
            ("apus.atomic.expected", 19, "0x0807060504030201"),
            ("apus.atomic.new", 19, "0x100f0e0d0c0b0a09"),
            ("apus.atomic.delta", 20, "578437695752307201"), // 0x0807060504030201
        ];
        for (field, row, value) in operands {
            assert_eq!(at(field, row), if ring.is_insecure() { value } else { "" }, "{field}");
        }
        let probed = if ring.is_insecure() { "600" } else { "" };
        assert_eq!(at("apus.probed", 23), probed, "encrypted if there is a key");
        let number = if ring.is_insecure() { "5" } else { "" };
        assert_eq!((&*at("apus.command", 24), &*at("apus.port.number", 24)), ("8", number));
        for row in [4, 5, 6, 7, 8, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24] {
            assert!(!at(guard, row).is_empty(), "row {row}");
        }
        assert!(column("_ws.expert").iter().all(|e| e.is_empty()));
    }
}
