//! Freed memory contains no secret of a key file or of a session. A custom allocator keeps the blocks that a test frees, with
//! their content. Memory that C code allocates (AWS-LC, AEGIS) and the stack are not searched.
#![expect(unsafe_code, reason = "a global allocator that keeps blocks is unsafe by its interface")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use apus_udp::keyfile;
use apus_udp::session::{
    Cipher, Config, Event, KeyRing, Randomness, Received, SessionId, Sessions, SharedKey,
};
use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{Body, Header, Segment, SegmentKind};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::{aead, hmac};

/// Number of freed blocks that are kept.
const KEPT: usize = 1 << 16;

static BLOCKS: [AtomicPtr<u8>; KEPT] = [const { AtomicPtr::new(ptr::null_mut()) }; KEPT];
static LENGTHS: [AtomicUsize; KEPT] = [const { AtomicUsize::new(0) }; KEPT];
/// Number of blocks freed by watched threads.
static FREED: AtomicUsize = AtomicUsize::new(0);
/// Held by one test at a time, because tests share the lists.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether blocks that this thread frees are kept.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator, which additionally keeps the blocks that watched threads free. New blocks are zeroed, so that all
/// their bytes may be read.
struct Keeping;

// SAFETY: blocks come from the system's allocator, and are given back to it at most once. The default `realloc` calls both.
unsafe impl GlobalAlloc for Keeping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller makes the promises that `System` requires.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if WATCHED.get() {
            let place = FREED.fetch_add(1, Ordering::Relaxed);
            if let (Some(block), Some(length)) = (BLOCKS.get(place), LENGTHS.get(place)) {
                block.store(pointer, Ordering::Relaxed);
                length.store(layout.size(), Ordering::Relaxed);
                return;
            }
        }
        // SAFETY: the caller makes the promises that `System` requires.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Keeping = Keeping;

/// Runs a function. Returns its result and copies of the blocks that were freed meanwhile.
fn freed_by<T>(run: impl FnOnce() -> T) -> (T, Vec<Vec<u8>>) {
    FREED.store(0, Ordering::Relaxed);
    WATCHED.set(true);
    let result = run();
    WATCHED.set(false);
    let count = FREED.load(Ordering::Relaxed);
    assert!(count <= KEPT, "{count} blocks");
    let copy = |i: usize| {
        let (pointer, length) = (&BLOCKS[i], LENGTHS[i].load(Ordering::Relaxed));
        let pointer = pointer.load(Ordering::Relaxed);
        // SAFETY: the block is kept, no other code uses it any more, and all its bytes had a value from the start.
        unsafe { std::slice::from_raw_parts(pointer, length) }.to_vec()
    };
    (result, (0..count).map(copy).collect())
}

/// Number of consecutive bytes or digits of a secret that cannot match by chance.
const PART: usize = 12;

/// Returns `true` if a block contains a part of these bytes.
fn has_part(block: &[u8], secret: &[u8]) -> bool {
    let is_part = |window: &[u8]| secret.windows(PART).any(|part| part == window);
    block.windows(PART).any(is_part)
}

/// Returns `true` if a block contains a part of a secret, as bytes or as digits.
fn shows(block: &[u8], digits: &str) -> bool {
    let bytes: Vec<u8> =
        (0..32).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect();
    has_part(block, &bytes) || has_part(block, digits.as_bytes())
}

/// Asserts that there are freed blocks, and that none contains one of these secrets.
fn assert_wiped(what: &str, blocks: &[Vec<u8>], secrets: &[String]) {
    assert!(!blocks.is_empty() && !secrets.is_empty(), "{what}");
    for (block, digits) in blocks.iter().flat_map(|b| secrets.iter().map(move |s| (b, s))) {
        assert!(!shows(block, digits), "{what}: {} bytes with a secret", block.len());
    }
}

/// Returns the private keys of a key file, as digits.
fn secrets(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.contains("apus-peer-1"));
    lines.map(|line| line.split(' ').next_back().expect("a secret").to_owned()).collect()
}

fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("apus-wiped-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// The search finds the values that a vector leaves behind after they were moved out, and a text that was dropped.
#[test]
fn what_is_not_wiped_is_found() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let digits = "5a".repeat(32);
    let (_, blocks) = freed_by(|| vec![[0x5a_u8; 32]].into_iter().next());
    assert!(blocks.iter().any(|block| shows(block, &digits)), "bytes");
    let (_, blocks) = freed_by(|| drop(digits.clone()));
    assert!(blocks.iter().any(|block| shows(block, &digits)), "digits");
    let (_, blocks) = freed_by(|| drop(vec![[0xa5_u8; 32]]));
    assert!(!blocks.iter().any(|block| shows(block, &digits)), "another secret");
}

#[test]
fn keys_of_a_file_are_overwritten_in_all_memory_that_is_freed() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let [group, a, b, lone, wrong] = ["group", "a", "b", "lone", "wrong"].map(path);
    let text = |file: &PathBuf| fs::read_to_string(file).expect("a key file");
    let (_, blocks) = freed_by(|| keyfile::create(&group).expect("a key"));
    assert_wiped("a new shared key", &blocks, &secrets(&text(&group)));
    for (file, of) in [(&lone, None), (&a, Some(&group)), (&b, Some(&a))] {
        let make = || keyfile::create_pair(file, "host", of.map(PathBuf::as_path)).expect("a pair");
        let (_, blocks) = freed_by(make);
        let all = secrets(&text(file));
        assert_eq!(all.len(), 2, "a shared key and a pair");
        assert_wiped("a new pair", &blocks, &all);
    }

    let of_a = secrets(&text(&a));
    let (ring, blocks) = freed_by(|| keyfile::read(&a).expect("a ring"));
    assert_wiped("a file that is read", &blocks, &of_a);
    // A ring is wiped when its last copy is dropped, here when another ring replaces it in a table.
    let mut table = Sessions::new(Config::default(), ring, Randomness::System).expect("a table");
    let others = keyfile::read(&lone).expect("another ring");
    let (_, blocks) = freed_by(|| table.set_keys(Time::ZERO, others).expect("two rings of keys"));
    assert_wiped("a ring that was replaced", &blocks, &of_a);
    let (_, blocks) = freed_by(|| drop(table));
    assert_wiped("a ring that is dropped", &blocks, &secrets(&text(&lone)));
    let whole = text(&a);
    let (_, blocks) = freed_by(|| drop(KeyRing::parse(&whole).expect("a ring")));
    assert_wiped("a text that is read", &blocks, &of_a);

    // A ring that is refused, and an invalid line after valid ones.
    for line in [whole.lines().last().expect("the pair"), "apus-key-1 short"] {
        fs::copy(&a, &wrong).expect("a copy");
        fs::write(&wrong, format!("{whole}{line}\n")).expect("a line more");
        let (refused, blocks) = freed_by(|| keyfile::read(&wrong).map(drop));
        refused.unwrap_err();
        assert_wiped("a file that is refused", &blocks, &of_a);
    }
    for file in [group, a, b, lone, wrong] {
        fs::remove_file(file).expect("it was made");
    }
}

const SHARED: [u8; 32] = *b"a shared key of thirty-two bytes";
/// Seeds of the two tables: the ephemeral keys follow from them.
const SEEDS: [[u8; 32]; 2] = [[81; 32], [82; 32]];
/// Epochs of each direction's keys, of which the last one is the current one at the end.
const EPOCHS: usize = 4;
const KEY_LIFE: Span = Span::from_secs(1);

fn hmac_of(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    context.sign().as_ref().try_into().expect("32 bytes")
}

/// Returns the two outputs of Noise's HKDF (§4.3).
fn hkdf(chaining: [u8; 32], input: &[u8]) -> [[u8; 32]; 2] {
    let key = hmac_of(&chaining, &[input]);
    let first = hmac_of(&key, &[&[1]]);
    [first, hmac_of(&key, &[&first, &[2]])]
}

/// The packets of a session that an observer sees.
#[derive(Default)]
struct Seen {
    init: Vec<u8>,
    response: Vec<u8>,
    /// The initiator's data packets, by epoch.
    data: Vec<Vec<u8>>,
}

fn message(seq: u64) -> (Header, &'static [u8]) {
    let payload = b"the payload";
    let length = payload.len() as u32;
    let body = Body::Data(Segment {
        op: OpId::new(seq),
        kind: SegmentKind::Message,
        offset: 0,
        length,
        op_length: length.into(),
        attached: None,
    });
    (Header { flow: FlowId::new(0), seq: PacketNumber::new(seq), body }, payload)
}

/// Passes all packets of the session layer between two tables; returns the session that has been connected at each.
fn pass(now: Time, tables: &mut [Sessions; 2], seen: &mut Seen) -> [Option<SessionId>; 2] {
    let address = |side: usize| std::net::SocketAddr::from(([10, 0, 0, 1 + side as u8], 7000));
    let mut connected = [None; 2];
    for side in [0, 1, 0, 1, 0, 1, 0, 1] {
        let mut out = [0; 512];
        while let Some((_, length)) = tables[side].poll_transmit(now, &mut out) {
            match out[2] {
                0x42 => seen.init = out[..length].to_vec(),
                0x43 => seen.response = out[..length].to_vec(),
                _ => {}
            }
            let peer = &mut tables[1 - side];
            peer.receive(now, address(side), &mut out[..length]);
            while let Some(event) = peer.poll_event() {
                match event {
                    Event::Incoming { session, .. } => {
                        peer.accept(now, session, b"welcome").expect("it waits");
                    }
                    Event::Connected { session, .. } => connected[1 - side] = Some(session),
                    _ => {}
                }
            }
        }
    }
    connected
}

/// Runs two tables through a whole session: handshake, a packet of each side in each epoch, and the end.
fn session(cipher: Cipher) -> Seen {
    let mut seen = Seen::default();
    let mut now = Time::ZERO + Span::from_secs(1);
    let config = Config { cipher, key_life: KEY_LIFE, ..Config::default() };
    let mut tables = SEEDS.map(|seed| {
        let ring = KeyRing::new([SharedKey::new(SHARED)]).expect("one key");
        Sessions::new(config.clone(), ring, seed).expect("a table")
    });
    let key = tables[0].key_ids().next().expect("a key");
    let to: std::net::SocketAddr = ([10, 0, 0, 2], 7000).into();
    tables[0].connect(now, to, key, b"hello").expect("room");
    let ids = pass(now, &mut tables, &mut seen).map(|id| id.expect("connected"));
    for epoch in 0..EPOCHS as u64 {
        for side in 0..2 {
            let (header, payload) = message(epoch);
            let mut packet = [0; 256];
            let length = tables[side].seal(now, ids[side], &header, payload, &mut packet);
            let packet = &mut packet[..length.expect("connected")];
            if side == 0 {
                seen.data.push(packet.to_vec());
            }
            let from: std::net::SocketAddr = ([10, 0, 0, 1 + side as u8], 7000).into();
            let received = tables[1 - side].receive(now, from, packet);
            assert!(matches!(received, Received::Packet { .. }), "{received:?}");
        }
        now += KEY_LIFE * 2;
    }
    // Both sides change keys with each round: 3 changes in both directions, at both sides.
    let changes = tables.iter().map(|table| table.counters().key_changes).collect::<Vec<_>>();
    assert_eq!(changes, [EPOCHS as u64 - 1; 2]);
    tables[0].close(now, ids[0]);
    pass(now, &mut tables, &mut seen);
    for table in &mut tables {
        table.handle_timeout(now + Span::from_secs(100));
        assert!(table.is_empty(), "the session has ended");
    }
    seen
}

/// Returns the private key that a table with this seed has drawn for the public key at the start of a Noise message.
fn ephemeral(seed: [u8; 32], noise: &[u8]) -> [u8; 32] {
    let drawn = (0..64u64).map(|n| hmac_of(&seed, &[&n.to_be_bytes()]));
    let public = |secret: &[u8; 32]| {
        let key = PrivateKey::from_private_key(&X25519, secret).expect("a key");
        key.compute_public_key().expect("a key").as_ref().to_vec()
    };
    drawn.into_iter().find(|secret| public(secret) == noise[..32]).expect("drawn from the seed")
}

/// Returns the secrets of a session that follow from what an observer sees, the shared key and the ephemeral keys.
/// The first ones are the secrets of the initiator's epochs.
fn secrets_of(seen: &Seen, cipher: Cipher) -> Vec<Vec<u8>> {
    // Behind the header of 16 bytes; an Init contains a cookie of 16 bytes too.
    let [ours, theirs] = [&seen.init[32..], &seen.response[16..]];
    let own = [ephemeral(SEEDS[0], ours), ephemeral(SEEDS[1], theirs)];
    let private = PrivateKey::from_private_key(&X25519, &own[0]).expect("a key");
    let public = UnparsedPublicKey::new(&X25519, &theirs[..32]);
    let shared = agreement::agree(&private, public, (), |shared| Ok(shared.to_vec()));
    let shared = shared.expect("two keys");
    // Noise §5.2 with tokens psk, e; e, ee.
    let name = *b"Noise_NNpsk0_25519_AESGCM_SHA256";
    let inputs = [&SHARED[..], &ours[..32], &theirs[..32], &shared];
    let chaining = inputs.into_iter().fold(name, |chaining, input| hkdf(chaining, input)[0]);
    let labels: &[&[u8]] = match cipher {
        Cipher::Aes256Gcm => &[b"apus key\x01", b"apus iv\x01"],
        Cipher::Aegis128X => {
            &[b"apus aegis-128l key\x01", b"apus aegis-128x4 key\x01", b"apus aegis iv\x01"]
        }
    };
    let mut secrets = Vec::new();
    let mut keys = Vec::new();
    for mut secret in hkdf(chaining, &[]) {
        // The receiver has derived the next epoch too.
        for _ in 0..=EPOCHS {
            secrets.push(secret.to_vec());
            let length = |label: &[u8]| match (cipher, label.ends_with(b"iv\x01")) {
                (Cipher::Aes256Gcm, false) => 32,
                (Cipher::Aes256Gcm, true) => 12,
                (Cipher::Aegis128X, _) => 16,
            };
            keys.extend(labels.iter().map(|l| hmac_of(&secret, &[l])[..length(l)].to_vec()));
            secret = hmac_of(&secret, &[b"apus next\x01"]);
        }
    }
    [secrets, keys, own.map(|key| key.to_vec()).into()].concat()
}

/// Asserts that a packet of the initiator was sealed under this secret (AES-256-GCM).
fn assert_opens(secret: &[u8], packet: &[u8], epoch: usize) {
    let (header, payload) = message(epoch as u64);
    let (at, end) = (header.encoded_len(), packet.len() - 8);
    let key = hmac_of(secret, &[b"apus key\x01"]);
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_256_GCM, &key).unwrap());
    let iv = hmac_of(secret, &[b"apus iv\x01"]);
    let mut nonce = *iv.first_chunk::<12>().unwrap();
    // The upper half of the number follows from the epoch, of 2^22 numbers each.
    let low = u32::from_be_bytes(*packet.last_chunk().unwrap());
    let number = ((epoch as u64) << 22) & !0xffff_ffff | u64::from(low);
    nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, n)| *byte ^= n);
    let mut bytes = packet[at..end].to_vec();
    let aad = aead::Aad::from(&packet[apus_wire::authenticated_from(packet)..at]);
    let nonce = aead::Nonce::assume_unique_for_key(nonce);
    let opened = key.open_in_place(nonce, aad, &mut bytes).expect("the key of this epoch");
    assert_eq!(opened, payload);
}

/// Computes all secrets of a session from its packets and its seeds, and searches the memory that the session has freed: the
/// secret of each epoch, the packet keys, the initialisation vectors, and the ephemeral keys.
#[test]
fn secrets_of_a_session_are_overwritten_in_all_memory_that_is_freed() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for cipher in Cipher::available() {
        let (seen, blocks) = freed_by(|| session(cipher));
        let secrets = secrets_of(&seen, cipher);
        if cipher == Cipher::Aes256Gcm {
            for (epoch, packet) in seen.data.iter().enumerate() {
                assert_opens(&secrets[epoch], packet, epoch);
            }
        }
        assert!(blocks.len() > 20, "{} blocks", blocks.len());
        let found = |block: &[u8]| secrets.iter().position(|secret| has_part(block, secret));
        let shown: Vec<_> =
            blocks.iter().filter_map(|block| Some((block.len(), found(block)?))).collect();
        assert_eq!(shown, [], "{cipher}: bytes of a block, and the secret in it");
    }
}
