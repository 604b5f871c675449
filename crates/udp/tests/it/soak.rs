//! Ops of every kind over sockets, through a network that loses, duplicates, reorders and corrupts datagrams (1 % each). Each
//! op is done, its bytes are present, and nothing is lost or doubled.
//!
//! This run is short; `APUS_SOCKET_OPS=100000000 cargo test --release -p apus-udp --test it over_sockets -- --nocapture` is
//! the long run.

use std::time::Instant;

use apus_udp::{
    Access, Completion, Connection, Done, Host, Region, Request, SubmitError, async_channel,
};

use crate::support::{Faults, PATIENCE, Random, Relay, SHARED, host, pattern, steady};

const FAULTS: Faults = Faults { loss: 10, duplication: 10, corruption: 10, reordering: 10 };
const FLOWS: usize = 4;
/// Maximum number of outstanding ops.
const OUTSTANDING: u64 = 256;
/// Number of slots for writes in the region. An op is submitted when the op with the same slot has ended.
const PLACES: u64 = 1024;
/// Bytes of a slot, and of the longest op: three packets.
const PLACE: u64 = 3000;
/// Words after the slots: first those for additions, then one per slot for compare-and-swap.
const WORDS: u64 = 8;
const WORDS_AT: u64 = PLACES * PLACE;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Write,
    Message,
    Read,
    Add,
    Swap,
}

/// Returns the kind and the length of op `n`.
fn op(n: u64) -> (Kind, usize) {
    let random = Random(n).next();
    let kind = match random % 10 {
        0..=3 => Kind::Write,
        4..=6 => Kind::Message,
        7 => Kind::Read,
        8 => Kind::Add,
        _ => Kind::Swap,
    };
    // One op in a hundred has several packets. All ops have room for a number.
    let length = if (random >> 8).is_multiple_of(100) { PLACE } else { 8 + (random >> 16) % 120 };
    (kind, length as usize)
}

/// Returns the bytes that op `n` writes or sends: its number, and bytes that follow from it.
fn bytes(n: u64, length: usize) -> Vec<u8> {
    let mut bytes = pattern(n, length);
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    bytes
}

struct Soak {
    region: Region,
    /// The region that reads fetch from.
    known: Region,
    here: Connection,
    there: Connection,
    /// One bit per op: whether its message has arrived.
    arrived: Vec<u64>,
    /// Per slot: whether the last op there has ended.
    ended: Vec<bool>,
    /// Per slot: its last write that is done.
    written: Vec<Option<u64>>,
    /// Per word: the number of additions or swaps that are done.
    words: Vec<u64>,
    /// Number of ops that are done, by kind, and of messages that have arrived.
    done: [u64; 5],
    messages: u64,
}

impl Soak {
    /// Submits op `n`. Returns `false` if there is no room.
    fn submit(&mut self, n: u64, queue: &async_channel::Sender<Completion>) -> bool {
        let (kind, length) = op(n);
        let key = self.region.key();
        let place = n % PLACES * PLACE;
        let request = match kind {
            Kind::Write => Request::write(key, place, bytes(n, length)),
            Kind::Message => Request::message(bytes(n, length)),
            Kind::Read => Request::read(self.known.key(), n % PLACES, length),
            // The swaps of a word are executed one after the other, because the ops of a slot are.
            Kind::Swap => {
                let word = WORDS + n % PLACES;
                let old = self.words[word as usize];
                Request::compare_and_swap(key, WORDS_AT + 8 * word, old, old + 1)
            }
            Kind::Add => Request::fetch_add(key, WORDS_AT + 8 * (n % WORDS), 1),
        };
        match self.here.submit_queued(n as usize % FLOWS, request, queue, n) {
            Ok(_) => {}
            Err(SubmitError::Full) => return false,
            Err(error) => panic!("op {n}: {error}"),
        }
        self.ended[(n % PLACES) as usize] = false;
        true
    }

    fn end(&mut self, n: u64, done: &Done) {
        let place = (n % PLACES) as usize;
        assert!(!self.ended[place], "op {n} ends twice");
        self.ended[place] = true;
        let (kind, length) = op(n);
        self.done[kind as usize] += 1;
        match kind {
            Kind::Write => {
                self.written[place] = Some(n);
                self.check_place(place);
            }
            Kind::Message => {}
            Kind::Read => {
                let known = pattern(0, (PLACES + PLACE) as usize);
                assert!(known[place..].starts_with(&done.bytes), "op {n}: other bytes");
                assert_eq!(done.bytes.len(), length, "op {n}");
            }
            Kind::Add => self.words[(n % WORDS) as usize] += 1,
            Kind::Swap => {
                let word = &mut self.words[WORDS as usize + place];
                assert_eq!(done.old, Some(*word), "op {n}: the swap before it was lost or doubled");
                *word += 1;
            }
        }
    }

    /// Checks that the bytes of the last completed write to a slot are present.
    fn check_place(&self, place: usize) {
        let Some(n) = self.written[place] else { return };
        let bytes = bytes(n, op(n).1);
        let at = place * PLACE as usize;
        self.region.read(|memory| {
            assert!(memory[at..].starts_with(&bytes), "write {n} is done, its bytes are not there");
        });
    }

    /// Receives the messages that have arrived. Returns `true` if there were any.
    fn take(&mut self) -> bool {
        let before = self.messages;
        while let Some(message) = self.there.try_receive().expect("a connection") {
            let n = u64::from_le_bytes(message.bytes[..8].try_into().expect("a number"));
            let (kind, length) = op(n);
            assert!(kind == Kind::Message, "nobody sent message {n}");
            assert_eq!(&message.bytes[..], bytes(n, length), "message {n}");
            let (word, bit) = ((n / 64) as usize, 1 << (n % 64));
            assert_eq!(self.arrived[word] & bit, 0, "message {n} arrives twice");
            self.arrived[word] |= bit;
            self.messages += 1;
        }
        self.messages > before
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a long run says what it did")]
fn ops_over_sockets_are_done_once_each_whatever_the_network_does() {
    let total: u64 =
        std::env::var("APUS_SOCKET_OPS").map_or(20_000, |text| text.parse().expect("a number"));
    let mut settings = steady(SHARED);
    // A relay has no buffer for jumbo bursts, and a busy machine loses datagrams that it cannot buffer.
    settings.max_mtu = 1500;
    let (server, client): (Host, Host) = (host(settings.clone()), host(settings));
    let relay = Relay::new(server.local_addr(), FAULTS, 7);
    let known = pattern(0, (PLACES + PLACE) as usize);
    let memory = vec![0; (WORDS_AT + 8 * (WORDS + PLACES)) as usize];
    let here = client.connect_with(relay.address, &[0; FLOWS], None).expect("connect");
    let mut soak = Soak {
        region: server.register(memory, Access::ALL).expect("region"),
        known: server.register(known, Access::READ).expect("region"),
        here,
        there: server.accept().expect("accept"),
        arrived: vec![0; total.div_ceil(64) as usize],
        ended: vec![true; PLACES as usize],
        written: vec![None; PLACES as usize],
        words: vec![0; (WORDS + PLACES) as usize],
        done: [0; 5],
        messages: 0,
    };
    let (queue, ends) = async_channel::bounded(OUTSTANDING as usize);
    let (mut next, mut ended) = (0, 0);
    let (began, mut last) = (Instant::now(), Instant::now());
    while ended < total || soak.messages < soak.done[Kind::Message as usize] {
        while next < total
            && next - ended < OUTSTANDING
            && soak.ended[(next % PLACES) as usize]
            && soak.submit(next, &queue)
        {
            next += 1;
        }
        let before = ended;
        while let Ok(Completion { user, result, .. }) = ends.try_recv() {
            soak.end(user, &result.unwrap_or_else(|error| panic!("op {user}: {error}")));
            ended += 1;
        }
        if soak.take() || ended > before {
            last = Instant::now();
        } else {
            assert!(
                last.elapsed() < PATIENCE,
                "{ended} of {total} ops have ended, and no further one in a minute"
            );
            std::thread::sleep(std::time::Duration::from_micros(20));
        }
    }
    // No data of an older write arrived late, and no addition was lost or doubled.
    (0..PLACES as usize).for_each(|place| soak.check_place(place));
    for (word, count) in soak.words.iter().enumerate() {
        let address = WORDS_AT + 8 * word as u64;
        assert_eq!(soak.region.fetch_add(address, 0), Ok(*count), "word {word}");
    }
    assert!(ends.try_recv().is_err() && !soak.take(), "an op ends twice, or a message comes twice");
    let [writes, messages, reads, adds, swaps] = soak.done;
    eprintln!(
        "{total} ops done in {:.0} s: {writes} writes, {messages} messages, {reads} reads, {adds} additions, {swaps} swaps; \
         the relay took {} datagrams",
        began.elapsed().as_secs_f64(),
        relay.taken(),
    );
}
