//! The output that a host writes about itself contains neither keys nor payload: the log, captures, and records of
//! connections.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use apus_udp::session::{Entry, EntryKey, KeyPair, KeyRing, SharedKey};
use apus_udp::{
    Access, Capture, ConnectError, Host, Mode, OpError, Qlog, Refusal, RegionKey, Request,
};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::pair::{Pair, submit};
use crate::support::{config, drive, host, pattern};

/// Returns 32 pseudorandom bytes with this number.
fn secret(n: u8) -> [u8; 32] {
    pattern(n.into(), 32).try_into().expect("32 bytes")
}

fn pair(n: u8) -> KeyPair {
    KeyPair::new(secret(n)).expect("not zeros")
}

/// Returns the ring of host `n` in a group, which lists these peers.
fn ring(group: u8, n: u8, peers: &[u8]) -> KeyRing {
    let shared = EntryKey::Shared(SharedKey::new(secret(group)));
    let own = EntryKey::Own(format!("host-{n}"), pair(n));
    let peer = |&p: &u8| EntryKey::Peer(format!("host-{p}"), pair(p).public());
    let keys = [shared, own].into_iter().chain(peers.iter().map(peer));
    KeyRing::of(keys.map(Entry::new)).expect("sound")
}

const GROUP: u8 = 100;
const OTHER_GROUP: u8 = 101;
const PAYLOAD: &[u8] = b"what nobody else is to read, and no line is to show";
const OPERAND: u64 = u64::from_be_bytes(*b"OPERAND!");

/// Returns the bytes that must not be found, with their names.
fn hidden() -> Vec<(&'static str, Vec<u8>)> {
    let keys = [GROUP, OTHER_GROUP, 1, 2, 3].map(|n| ("a secret", secret(n).to_vec()));
    let public = [1, 2, 3].map(|n| ("a public key", pair(n).public().bytes().to_vec()));
    let carried =
        [("the payload", PAYLOAD.to_vec()), ("the operand", OPERAND.to_be_bytes().into())];
    keys.into_iter().chain(public).chain(carried).collect()
}

/// Returns the name of hidden bytes that are found in parts of eight: as they are, as digits, or as a list of numbers.
fn found(text: &[u8]) -> Option<&'static str> {
    let is_in = |form: &[u8]| text.windows(form.len()).any(|window| window == form);
    let shows = |part: &[u8]| {
        let hex: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
        let list: Vec<String> = part.iter().map(u8::to_string).collect();
        is_in(part)
            || is_in(hex.as_bytes())
            || is_in(hex.to_uppercase().as_bytes())
            || is_in(list.join(", ").as_bytes())
    };
    let operand = OPERAND.to_string();
    let mut all = hidden().into_iter();
    all.find(|(_, bytes)| bytes.chunks_exact(8).any(shows))
        .map(|(name, _)| name)
        .or_else(|| is_in(operand.as_bytes()).then_some("the operand as a number"))
}

/// Makes two hosts with keys of their own connect and execute every kind of op. They are also refused, misused, given other
/// keys, and closed.
fn converse(capture: Option<&Capture>, qlog: Option<&Qlog>) {
    converse_before(capture, qlog, |_, _| {});
}

/// As [`converse`]. Calls `look` with the hosts and the key of their region, first while the hosts are connected and then after
/// the end.
fn converse_before(
    capture: Option<&Capture>,
    qlog: Option<&Qlog>,
    mut look: impl FnMut([&Host; 2], RegionKey),
) {
    let count = Cell::new(0);
    let (pair, [ours, theirs]) = Pair::connect(|config| {
        count.set(count.get() + 1);
        config.keys = match count.get() {
            1 => ring(GROUP, 1, &[2]),
            _ => ring(GROUP, 2, &[1]),
        };
        config.capture = capture.cloned();
        config.qlog = qlog.cloned();
    });
    let (client, server) = (&pair.client, &pair.server);
    let region = server.register(vec![0; 1024], Access::ALL).expect("room");
    let done = |request| pair.until(1, submit(&ours, request));
    done(Request::message(PAYLOAD)).expect("a message");
    drive(
        &[client, server],
        "the message",
        || matches!(theirs.try_receive(), Ok(Some(message)) if message.bytes == PAYLOAD),
    );
    done(Request::write(region.key(), 8, PAYLOAD)).expect("a write");
    done(Request::fetch_add(region.key(), 0, OPERAND)).expect("an atomic op");
    let swap = Request::compare_and_swap(region.key(), 0, OPERAND, OPERAND + 1);
    done(swap).expect("an atomic op");
    let read = done(Request::read(region.key(), 8, PAYLOAD.len())).expect("a read");
    assert_eq!(read.bytes, PAYLOAD);
    let missing = RegionKey::new(region.key().get() ^ 1);
    let refused = done(Request::write(missing, 0, PAYLOAD)).map(drop);
    assert_eq!(refused, Err(OpError::Refused(Refusal::NoRegion)));

    // A host that is not listed, and a host without the key.
    let third = |group: u8, peer: u8| {
        let mut config = config(Mode::Inline);
        config.keys = ring(group, 3, &[peer]);
        host(config)
    };
    let unlisted = third(GROUP, 2);
    let answer = poll_with(&unlisted, server, || false);
    assert_eq!(answer, Some(ConnectError::Unlisted));
    let stranger = third(OTHER_GROUP, 2);
    let is_noted = || server.dropped_handshake().is_some();
    assert_eq!(poll_with(&stranger, server, is_noted), None);

    look([client, server], region.key());
    // A ring that differs only in its order, and a ring that ends the connection.
    server.set_keys(&ring(GROUP, 2, &[3, 1])).expect("keys");
    server.set_keys(&ring(GROUP, 2, &[3])).expect("keys");
    drive(&[client, server], "the end", || ours.ended().is_some() && theirs.ended().is_some());
    let mut drain = pin!(server.drain_async());
    let mut context = Context::from_waker(Waker::noop());
    drive(&[server], "drained", || drain.as_mut().poll(&mut context).is_ready());
    look([client, server], region.key());
}

/// Connects one host to another until there is an answer, or `done` states that there will be none. Returns the reason of a
/// refusal.
fn poll_with(from: &Host, to: &Host, done: impl Fn() -> bool) -> Option<ConnectError> {
    let mut asked = pin!(from.connect_async(to.local_addr(), &[0], None));
    let mut context = Context::from_waker(Waker::noop());
    let mut answer = None;
    drive(&[from, to], "an answer", || {
        if let std::task::Poll::Ready(ready) = asked.as_mut().poll(&mut context) {
            answer = Some(ready.map(drop).expect_err("refused"));
        }
        answer.is_some() || done()
    });
    answer
}

/// The bytes that a log subscriber writes.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("lines").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// A file or directory of a test, which is removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("apus-secrets-{name}-{}", std::process::id())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Logs at the most verbose level, for all targets.
#[test]
fn no_line_of_the_log_has_a_key_or_payload() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .finish();
    // The hosts have no threads: this thread drives them. If another test reaches a line for the first time while the
    // subscriber is set, `tracing` may take the line for one that nobody reads. The second conversation has all lines.
    tracing::subscriber::with_default(subscriber, || {
        converse(None, None);
        tracing::callsite::rebuild_interest_cache();
        converse(None, None);
    });
    let bytes = lines.0.lock().expect("lines").clone();
    let text = String::from_utf8_lossy(&bytes);
    for event in [
        "engine started",
        "connection opened",
        "connection could not be opened",
        "handshake from",
        "op refused",
        "ring of keys replaced",
        "connection lost",
        "drained",
    ] {
        assert!(text.to_lowercase().contains(event), "no line with `{event}`:\n{text}");
    }
    assert_eq!(found(&bytes), None, "{text}");
    // The search finds bytes of the kind that it is meant for.
    let key = pair(1).public().to_string();
    for shown in [key.as_bytes(), PAYLOAD, OPERAND.to_string().as_bytes()] {
        assert!(found(&[&bytes, shown].concat()).is_some());
    }
    assert!(found(format!("{:?}", secret(GROUP)).as_bytes()).is_some());
}

#[test]
fn a_capture_of_sealed_connections_and_their_records_have_no_payload_and_no_key() {
    let (file, folder) = (Place::new("pcap"), Place::new("qlog"));
    let capture = Capture::create(&file.0).expect("a capture");
    let qlog = Qlog::new(&folder.0).expect("a directory");
    converse(Some(&capture), Some(&qlog));
    drop((capture, qlog));
    let records = std::fs::read_dir(&folder.0).expect("a directory");
    let records: Vec<PathBuf> = records.map(|record| record.expect("a record").path()).collect();
    assert_eq!(records.len(), 2, "one of each side");
    for file in records.iter().chain([&file.0]) {
        let bytes = std::fs::read(file).expect("a file");
        assert!(bytes.len() > 1000, "{}: {} bytes", file.display(), bytes.len());
        assert_eq!(found(&bytes), None, "{}", file.display());
    }
}

/// Ops of every kind are counted on the pages by connection and by peer. Neither page has a key, a name of a host, a payload or
/// the key of a region.
#[test]
fn no_page_of_metrics_has_a_key_name_or_payload() {
    let mut pages = Vec::new();
    converse_before(None, None, |hosts, region| {
        for host in hosts {
            let page = host.metrics().page();
            assert_eq!(found(page.as_bytes()), None, "{page}");
            let region = region.get();
            for form in [region.to_string(), format!("{region:x}"), format!("{region:X}")] {
                assert!(!page.contains(&form), "the region's key {form}: {page}");
            }
            assert!(!page.contains("host-"), "a name: {page}");
            pages.push(page);
        }
    });
    let [client, server, ..] = &pages[..] else { panic!("{} pages", pages.len()) };
    assert_eq!(pages.len(), 4, "before and after the end");
    for kind in ["write", "read", "message", "fetch_add", "compare_and_swap"] {
        let done = format!("kind=\"{kind}\",outcome=\"done\"}} 1\n");
        assert!(client.contains(&done), "{kind}: {client}");
    }
    assert!(server.contains("apus_connection_flows"), "{server}");
    // The search finds what it is meant for.
    for shown in [PAYLOAD, &secret(GROUP)[..8], OPERAND.to_string().as_bytes()] {
        assert!(found(&[client.as_bytes(), shown].concat()).is_some());
    }
}
