//! Freed memory contains no secret of a key file. A custom allocator keeps the blocks that a test frees, with their content.
#![expect(unsafe_code, reason = "a global allocator that keeps blocks is unsafe by its interface")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use apus_udp::keyfile;
use apus_udp::session::{Config, KeyRing, Randomness, Sessions};
use apus_units::Time;

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

/// Returns `true` if a block contains a part of a secret, as bytes or as digits.
fn shows(block: &[u8], digits: &str) -> bool {
    let bytes: Vec<u8> =
        (0..32).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect();
    [&bytes, digits.as_bytes()].into_iter().any(|secret| {
        let is_part = |window: &[u8]| secret.windows(PART).any(|part| part == window);
        block.windows(PART).any(is_part)
    })
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
