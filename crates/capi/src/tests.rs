//! Blocking calls, from two sides at the same time.

mod arguments;
mod regions;
mod swift;

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Metadata, Subscriber};

use crate::config::apus_config;
use crate::connection::apus_connection;
use crate::failure::Status;
use crate::host::FOREVER;
use crate::host::apus_host;
use crate::log::Log;
use crate::queue::apus_queue;
use crate::region::apus_region;

/// `apus_op`, as C sees it.
#[repr(C)]
struct Op {
    flow: u32,
    deadline_ns: u64,
    queue: *const apus_queue,
    user: u64,
}

impl Op {
    fn to(queue: *const apus_queue) -> Self {
        Self { flow: 0, deadline_ns: 0, queue, user: 1 }
    }
}

/// `apus_completion`, as C sees it.
#[repr(C)]
#[derive(Default)]
struct Completion {
    user: u64,
    status: i32,
    reason: i32,
    latency_ns: u64,
    old: u64,
}

/// `apus_stats`, as C sees it.
#[repr(C)]
#[derive(Default)]
struct Stats {
    datagrams: [u64; 2],
    payload_sent: u64,
    others: [u64; 3],
    delays: [f64; 4],
}

// The functions are private to Rust, so these are the declarations of the header.
#[allow(improper_ctypes)] // to C, handles are opaque
unsafe extern "C" {
    fn apus_config_create_insecure(bind: *const c_char, config: *mut *mut apus_config) -> i32;
    fn apus_config_set(config: *mut apus_config, name: *const c_char, value: *const c_char) -> i32;
    fn apus_config_free(config: *mut apus_config);
    fn apus_last_error() -> *const c_char;
    fn apus_host_start(config: *const apus_config, host: *mut *mut apus_host) -> i32;
    fn apus_host_address(host: *const apus_host) -> *const c_char;
    fn apus_host_drive(host: *const apus_host) -> i32;
    fn apus_host_stats(host: *const apus_host, stats: *mut Stats) -> i32;
    fn apus_host_drain(host: *const apus_host, timeout_ns: u64) -> i32;
    fn apus_host_free(host: *mut apus_host);
    fn apus_log(
        level: i32,
        callback: Option<unsafe extern "C" fn(*mut c_void, i32, *const c_char, *const c_char)>,
        context: *mut c_void,
    ) -> i32;
    fn apus_connection_ports(
        connection: *const apus_connection,
        ports: *mut c_void,
        capacity: usize,
        count: *mut usize,
        one_port: *mut *const c_char,
    ) -> i32;
    fn apus_connection_record(connection: *const apus_connection, directory: *const c_char) -> i32;
    fn apus_connect(
        host: *const apus_host,
        peer: *const c_char,
        flows: u32,
        timeout_ns: u64,
        connection: *mut *mut apus_connection,
    ) -> i32;
    fn apus_accept(
        host: *const apus_host,
        timeout_ns: u64,
        connection: *mut *mut apus_connection,
    ) -> i32;
    fn apus_close(connection: *const apus_connection, timeout_ns: u64) -> i32;
    fn apus_connection_free(connection: *mut apus_connection);
    fn apus_receive(
        connection: *const apus_connection,
        buffer: *mut c_void,
        capacity: usize,
        timeout_ns: u64,
        length: *mut usize,
        flow: *mut u32,
    ) -> i32;
    fn apus_region_register(
        host: *const apus_host,
        memory: *mut c_void,
        length: usize,
        access: i32,
        region: *mut *mut apus_region,
    ) -> i32;
    fn apus_region_key(region: *const apus_region) -> u64;
    fn apus_region_load(region: *const apus_region, address: u64, value: *mut u64) -> i32;
    fn apus_region_store(region: *const apus_region, address: u64, value: u64) -> i32;
    fn apus_region_compare_and_swap(
        region: *const apus_region,
        address: u64,
        expected: u64,
        desired: u64,
        old: *mut u64,
    ) -> i32;
    fn apus_region_fetch_add(
        region: *const apus_region,
        address: u64,
        delta: u64,
        old: *mut u64,
    ) -> i32;
    fn apus_region_free(region: *mut apus_region);
    fn apus_queue_create(
        host: *const apus_host,
        capacity: usize,
        queue: *mut *mut apus_queue,
    ) -> i32;
    fn apus_poll(
        queue: *const apus_queue,
        completions: *mut Completion,
        most: usize,
        timeout_ns: u64,
        count: *mut usize,
    ) -> i32;
    fn apus_queue_free(queue: *mut apus_queue);
    fn apus_write(
        connection: *const apus_connection,
        op: *const Op,
        region: u64,
        address: u64,
        bytes: *const c_void,
        length: usize,
        ticket: *mut u64,
    ) -> i32;
    fn apus_read(
        connection: *const apus_connection,
        op: *const Op,
        region: u64,
        address: u64,
        buffer: *mut c_void,
        length: usize,
        ticket: *mut u64,
    ) -> i32;
    fn apus_compare_and_swap(
        connection: *const apus_connection,
        op: *const Op,
        region: u64,
        address: u64,
        expected: u64,
        desired: u64,
        ticket: *mut u64,
    ) -> i32;
    fn apus_fetch_add(
        connection: *const apus_connection,
        op: *const Op,
        region: u64,
        address: u64,
        delta: u64,
        ticket: *mut u64,
    ) -> i32;
    fn apus_send(
        connection: *const apus_connection,
        op: *const Op,
        bytes: *const c_void,
        length: usize,
        ticket: *mut u64,
    ) -> i32;
}

/// A time that is long compared with any operation on a loopback interface.
const PATIENCE: Duration = Duration::from_secs(60);

/// A pointer that another thread may use.
struct Shared<T>(*mut T);

// SAFETY: all functions except those that free a handle may be called from any thread.
unsafe impl<T> Send for Shared<T> {}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

fn ok(status: i32) {
    assert_eq!(status, Status::Ok as i32);
}

/// Returns a host with these settings.
fn host(settings: &[(&CStr, &CStr)]) -> *mut apus_host {
    let (mut config, mut host) = (null_mut(), null_mut());
    // SAFETY: texts, and room for results.
    unsafe {
        ok(apus_config_create_insecure(c"127.0.0.1:0".as_ptr(), &raw mut config));
        for (name, value) in settings {
            ok(apus_config_set(config, name.as_ptr(), value.as_ptr()));
        }
        ok(apus_host_start(config, &raw mut host));
        apus_config_free(config);
    }
    host
}

/// Returns the text of the last error of this thread.
fn last_error() -> String {
    // SAFETY: a text.
    unsafe { CStr::from_ptr(apus_last_error()) }.to_string_lossy().into_owned()
}

fn connect(client: *mut apus_host, server: *mut apus_host) -> [*mut apus_connection; 2] {
    let (mut here, mut there) = (null_mut(), null_mut());
    // SAFETY: handles, and room for results.
    unsafe {
        let address = apus_host_address(server);
        ok(apus_connect(client, address, 1, FOREVER, &raw mut here));
        ok(apus_accept(server, FOREVER, &raw mut there));
    }
    [here, there]
}

/// Runs a call that must return within `PATIENCE`, in a separate thread.
fn ends<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(run()));
    told.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the call does not return: {what}"))
}

fn receive(connection: *mut apus_connection, capacity: usize, timeout_ns: u64) -> (i32, usize) {
    let (mut buffer, mut length) = (vec![0u8; capacity], 0);
    let bytes = buffer.as_mut_ptr().cast::<c_void>();
    // SAFETY: a handle, a buffer of that capacity, and room for a number.
    let status = unsafe {
        apus_receive(connection, bytes, capacity, timeout_ns, &raw mut length, null_mut())
    };
    (status, length)
}

/// Sends a message and waits for its completion.
fn send(host: *mut apus_host, connection: *mut apus_connection, bytes: &[u8]) {
    let mut queue = null_mut();
    // SAFETY: handles, an op, bytes that outlive it, and room for results.
    unsafe {
        ok(apus_queue_create(host, 1, &raw mut queue));
        let op = Op::to(queue);
        ok(apus_send(connection, &raw const op, bytes.as_ptr().cast(), bytes.len(), null_mut()));
        let mut ended = [Completion::default()];
        let mut count = 0;
        ok(apus_poll(queue, ended.as_mut_ptr(), 1, FOREVER, &raw mut count));
        ok(ended[0].status);
        apus_queue_free(queue);
    }
}

fn free(connections: [*mut apus_connection; 2], hosts: [*mut apus_host; 2]) {
    // SAFETY: handles that no other thread uses any more.
    unsafe {
        connections.into_iter().for_each(|connection| apus_connection_free(connection));
        hosts.into_iter().for_each(|host| apus_host_free(host));
    }
}

#[test]
fn a_call_that_receives_does_not_wait_for_another_one() {
    let (client, server) = (host(&[]), host(&[]));
    let [here, there] = connect(client, server);
    let shared = Shared(here);
    let (begin, begun) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let waiting = shared.clone();
    thread::spawn(move || {
        begin.send(()).expect("the main thread receives");
        tell.send(receive(waiting.get(), 100, FOREVER))
    });
    begun.recv().expect("it begins");
    let polling = shared.clone();
    // Calls with a timeout of 0 return, whenever the other call begins to wait.
    ends("a call with a timeout of 0", move || {
        for _ in 0..200 {
            assert_eq!(receive(polling.get(), 100, 0).0, Status::Timeout as i32);
            thread::sleep(Duration::from_millis(1));
        }
    });
    send(server, there, &[5; 10]);
    let received = told.recv_timeout(PATIENCE).expect("the message");
    assert_eq!(received, (Status::Ok as i32, 10));
    free([here, there], [client, server]);
}

#[test]
fn a_message_that_does_not_fit_stays_for_a_call_that_waits_already() {
    let (client, server) = (host(&[]), host(&[]));
    let [here, there] = connect(client, server);
    send(server, there, &[5; 10]);
    assert_eq!(receive(here, 3, FOREVER), (Status::TooSmall as i32, 10));
    assert_eq!(receive(here, 9, FOREVER), (Status::TooSmall as i32, 10));
    let shared = Shared(here);
    let received = ends("a call that takes it", move || receive(shared.get(), 10, FOREVER));
    assert_eq!(received, (Status::Ok as i32, 10));
    free([here, there], [client, server]);
}

#[test]
fn an_address_beyond_2_to_the_64_is_invalid() {
    let (client, server) = (host(&[]), host(&[]));
    let [here, there] = connect(client, server);
    let mut queue = null_mut();
    let mut buffer = [0u8; 10];
    // SAFETY: handles, an op, memory that outlives it, and room for results.
    unsafe {
        ok(apus_queue_create(client, 1, &raw mut queue));
        let op = Op::to(queue);
        let bytes = buffer.as_mut_ptr().cast();
        // Repeated more often than the queue has room, because refused ops release their room.
        for _ in 0..3 {
            let status = [
                apus_write(here, &raw const op, 1, u64::MAX - 8, bytes, 10, null_mut()),
                apus_read(here, &raw const op, 1, u64::MAX - 8, bytes, 10, null_mut()),
            ];
            assert_eq!(status, [Status::Invalid as i32; 2]);
        }
        ok(apus_close(here, FOREVER));
        apus_queue_free(queue);
    }
    free([here, there], [client, server]);
}

#[test]
fn peers_and_the_owner_change_words() {
    let (client, server) = (host(&[]), host(&[]));
    let [here, there] = connect(client, server);
    let mut memory = vec![0u8; 24];
    let (mut region, mut queue) = (null_mut(), null_mut());
    // SAFETY: handles, an op, memory that outlives its uses, and room for results.
    unsafe {
        let bytes = memory.as_mut_ptr().cast();
        ok(apus_region_register(server, bytes, memory.len(), 7, &raw mut region));
        ok(apus_queue_create(client, 1, &raw mut queue));
        let key = apus_region_key(region);
        let op = Op::to(queue);
        let end = || {
            let (mut ended, mut count) = ([Completion::default()], 0);
            ok(apus_poll(queue, ended.as_mut_ptr(), 1, FOREVER, &raw mut count));
            let [Completion { status, old, .. }] = ended;
            (status, old)
        };
        ok(apus_region_store(region, 8, 5));
        ok(apus_fetch_add(here, &raw const op, key, 8, 7, null_mut()));
        assert_eq!(end(), (Status::Ok as i32, 5));
        ok(apus_compare_and_swap(here, &raw const op, key, 8, 12, 0x0102, null_mut()));
        assert_eq!(end(), (Status::Ok as i32, 12));
        ok(apus_compare_and_swap(here, &raw const op, key, 8, 12, 1, null_mut()));
        assert_eq!(end(), (Status::Ok as i32, 0x0102), "not replaced");
        let mut word = 0;
        ok(apus_region_fetch_add(region, 8, 1, &raw mut word));
        assert_eq!(word, 0x0102);
        ok(apus_region_compare_and_swap(region, 8, 0x0103, 9, &raw mut word));
        assert_eq!(word, 0x0103);
        ok(apus_region_load(region, 8, &raw mut word));
        assert_eq!(word, 9);
        let invalid = Status::Invalid as i32;
        // Repeated more often than the queue has room, because refused ops release their room.
        for _ in 0..2 {
            let status = [
                apus_fetch_add(here, &raw const op, key, 4, 1, null_mut()),
                apus_compare_and_swap(here, &raw const op, key, 1, 0, 1, null_mut()),
                apus_region_load(region, 4, &raw mut word),
                apus_region_store(region, 24, 1),
                apus_region_fetch_add(region, 20, 1, &raw mut word),
                apus_region_load(region, 8, null_mut()),
            ];
            assert_eq!(status, [invalid; 6]);
        }
        ok(apus_fetch_add(here, &raw const op, key, 24, 1, null_mut()));
        assert_eq!(end(), (Status::OpRefused as i32, 0));
        ok(apus_close(here, FOREVER));
        apus_queue_free(queue);
        apus_region_free(region);
    }
    assert_eq!(memory[8..16], [9, 0, 0, 0, 0, 0, 0, 0], "little-endian");
    free([here, there], [client, server]);
}

#[test]
fn draining_host_ends_its_connections_in_order() {
    let (client, server) = (host(&[]), host(&[]));
    let [here, there] = connect(client, server);
    // A message that the application has not received keeps the connection open.
    send(client, here, &[1; 8]);
    // SAFETY: handles, an op, bytes that outlive it, and room for results.
    unsafe {
        assert_eq!(apus_host_drain(server, 0), Status::Timeout as i32);
        let mut other = null_mut();
        assert_eq!(
            apus_connect(server, apus_host_address(client), 1, FOREVER, &raw mut other),
            Status::Draining as i32
        );
        let mut queue = null_mut();
        ok(apus_queue_create(client, 1, &raw mut queue));
        let op = Op::to(queue);
        let draining = Status::PeerDraining as i32;
        let refused = || {
            let mut bytes = [0u8; 8];
            let target = bytes.as_mut_ptr().cast();
            // The read is refused. If the client does not know of the drain yet, the server has no such region.
            let status = apus_read(here, &raw const op, 1, 0, target, 8, null_mut());
            if status == Status::Ok as i32 {
                let (mut ended, mut count) = ([Completion::default()], 0);
                ok(apus_poll(queue, ended.as_mut_ptr(), 1, FOREVER, &raw mut count));
                assert_eq!(ended[0].status, Status::OpRefused as i32);
            }
            status
        };
        while refused() != draining {
            thread::yield_now();
        }
        assert_eq!(receive(there, 8, FOREVER), (Status::Ok as i32, 8));
        let shared = Shared(server);
        ok(ends("the drain", move || apus_host_drain(shared.get(), FOREVER)));
        assert_eq!(receive(here, 8, FOREVER).0, Status::Ended as i32);
        apus_queue_free(queue);
    }
    free([here, there], [client, server]);
}

/// Adds a line to the vector to which the context points.
unsafe extern "C" fn add_line(
    context: *mut c_void,
    level: i32,
    target: *const c_char,
    text: *const c_char,
) {
    // SAFETY: the context of the test below, which is never freed, and texts.
    let (lines, target, text) = unsafe {
        let lines = &*context.cast::<Mutex<Vec<String>>>();
        (lines, CStr::from_ptr(target), CStr::from_ptr(text))
    };
    let line = format!("{level} {}: {}", target.to_string_lossy(), text.to_string_lossy());
    lines.lock().expect("no panic").push(line);
}

/// Passes all events to the log, as if they had been enabled before the level was set.
struct Late;

impl Subscriber for Late {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        Log.event(event);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The log exists once per process, so this is the only test that sets it.
#[test]
fn log_goes_to_the_function_of_the_application_up_to_its_level() {
    let lines: &'static Mutex<Vec<String>> = Box::leak(Box::default());
    let context = std::ptr::from_ref(lines).cast_mut().cast();
    // SAFETY: a function, and its context, which is never freed.
    let log = |level| unsafe { apus_log(level, Some(add_line), context) };
    assert_eq!([log(-1), log(5)], [Status::Invalid as i32; 2]);
    ok(log(3));
    let (client, server) = (host(&[]), host(&[]));
    let [here, there] = connect(client, server);
    // SAFETY: the address lives as long as the handle.
    let address = unsafe { CStr::from_ptr(apus_host_address(server)) }.to_string_lossy();
    let opened =
        |line: &String| line.starts_with("3 apus_udp::connection: ") && line.contains(&*address);
    while !lines.lock().expect("no panic").iter().any(opened) {
        thread::yield_now();
    }
    assert!(lines.lock().expect("no panic").iter().all(|line| !line.starts_with('4')));
    // Events that were enabled before the level was set.
    for level in [2, 0] {
        ok(log(level));
        with_default(Late, || tracing::info!(target: "apus_late", level));
    }
    assert!(lines.lock().expect("no panic").iter().all(|line| !line.contains("apus_late")));
    free([here, there], [client, server]);
}

#[test]
fn connections_are_recorded_on_request_and_by_the_setting() {
    let dir = std::env::temp_dir().join(format!("apus-capi-qlog-{}", std::process::id()));
    let text = CString::new(dir.display().to_string()).expect("a path");
    let (client, server) = (host(&[]), host(&[(c"qlog", &text)]));
    let [here, there] = connect(client, server);
    let files = || std::fs::read_dir(&dir).expect("the directory").count();
    // SAFETY: a handle, and texts.
    unsafe {
        ok(apus_connection_record(here, text.as_ptr()));
        let file = c"/dev/null/apus";
        assert_eq!(apus_connection_record(here, file.as_ptr()), Status::System as i32);
        ok(apus_close(here, FOREVER));
    }
    while files() < 2 {
        thread::yield_now();
    }
    free([here, there], [client, server]);
    std::fs::remove_dir_all(dir).expect("the directory");
}

#[test]
fn freeing_a_region_ends_though_a_peer_takes_no_answers() {
    let patient = [(c"idle_timeout", c"3600s")];
    let (server, client) = (host(&patient), host(&[(c"mode", c"inline"), patient[0]]));
    let [here, there] = connect(client, server);
    let mut memory = vec![7u8; 8 << 20];
    let mut target = vec![0u8; 8 << 20];
    let (mut region, mut queue) = (null_mut(), null_mut());
    // SAFETY: handles, memory that outlives its uses, and room for results.
    unsafe {
        let bytes = memory.as_mut_ptr().cast();
        ok(apus_region_register(server, bytes, memory.len(), 1, &raw mut region));
        ok(apus_queue_create(client, 1, &raw mut queue));
        let op = Op::to(queue);
        let (key, into) = (apus_region_key(region), target.as_mut_ptr().cast());
        ok(apus_read(here, &raw const op, key, 0, into, target.len(), null_mut()));
        let sent = || {
            let mut stats = Stats::default();
            ok(apus_host_stats(server, &raw mut stats));
            stats.payload_sent
        };
        while sent() == 0 {
            ok(apus_host_drive(client));
        }
        // No call drives the client any more, so it sends no acknowledgements.
        let region = Shared(region);
        ends("the free", move || apus_region_free(region.get()));
        memory.fill(0);
        let mut ended = [Completion::default()];
        let mut count = 0;
        ok(apus_poll(queue, ended.as_mut_ptr(), 1, FOREVER, &raw mut count));
        let Completion { status, reason, .. } = ended[0];
        assert_eq!((status, reason), (Status::Unknown as i32, 3), "it was withdrawn");
        apus_queue_free(queue);
    }
    free([here, there], [client, server]);
}

#[test]
fn closing_has_a_limit_though_the_peer_takes_no_messages() {
    let one = (c"max_queued_messages", c"1");
    let patient = (c"idle_timeout", c"3600s");
    let (client, server) = (host(&[patient]), host(&[one, patient]));
    let [here, there] = connect(client, server);
    // This message fills the queue of the server, so the next one is not acknowledged.
    send(client, here, &[1; 8]);
    let mut queue = null_mut();
    // SAFETY: handles, an op, bytes that outlive it, and room for results.
    unsafe {
        ok(apus_queue_create(client, 1, &raw mut queue));
        let op = Op::to(queue);
        let bytes = [2u8; 8];
        ok(apus_send(here, &raw const op, bytes.as_ptr().cast(), bytes.len(), null_mut()));
        assert_eq!(apus_close(here, 0), Status::Timeout as i32);
        assert_eq!(apus_close(here, 1_000_000), Status::Timeout as i32);
        assert_eq!(receive(there, 8, FOREVER), (Status::Ok as i32, 8));
        let shared = Shared(here);
        ok(ends("the close", move || apus_close(shared.get(), FOREVER)));
        assert_eq!(receive(there, 8, FOREVER), (Status::Ok as i32, 8));
        assert_eq!(apus_close(std::ptr::null(), 0), Status::Invalid as i32);
        apus_queue_free(queue);
    }
    free([here, there], [client, server]);
}
