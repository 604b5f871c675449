//! Calls the C interface of the transport in any order and with any handles: no undefined behaviour occurs, every
//! failure has a description, and each op ends at most once. The header's requirements are met: a handle is not used
//! after it has been freed, the memory of an op stays valid until the last handle is freed, and a locked region is
//! unlocked before other calls.
#![no_main]
#![expect(unsafe_code, reason = "calls of C")]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use apus as _;
use libfuzzer_sys::fuzz_target;

/// A C handle.
type Handle = *mut c_void;

/// `apus_op` of the header.
#[repr(C)]
struct Op {
    flow: u32,
    deadline_ns: u64,
    queue: Handle,
    user: u64,
}

/// `apus_completion` of the header.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Completion {
    user: u64,
    status: i32,
    reason: i32,
    latency_ns: u64,
    old: u64,
}

/// `apus_grant` of the header.
#[repr(C)]
struct Grant {
    connection: Handle,
    keys: *const [u8; 32],
    count: usize,
}

/// `apus_incoming` of the header.
#[repr(C)]
struct Incoming {
    address: *const c_char,
    name: *const c_char,
    key: *const u8,
    flows: u32,
}

/// `apus_port` of the header.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Port {
    port: u16,
    usable: u8,
    counters: [u64; 5],
}

/// `apus_accept_callback` of the header.
type Accept = unsafe extern "C" fn(*mut c_void, *const Incoming, *mut c_char, usize) -> c_int;
/// `apus_log_callback` of the header.
type Log = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *const c_char);

/// `apus_ack` of the header.
#[repr(C)]
struct Ack {
    now_ns: u64,
    rtt_ns: u64,
    endpoint_delay_ns: u64,
    acked_packets: u32,
    hops: u8,
}

unsafe extern "C" {
    fn apus_last_error() -> *const c_char;
    fn apus_reason_text(reason: c_int) -> *const c_char;
    fn apus_log(level: c_int, callback: Option<Log>, context: *mut c_void) -> c_int;
    fn apus_key_create(path: *const c_char) -> c_int;
    fn apus_key_create_pair(
        path: *const c_char,
        name: *const c_char,
        group_file: *const c_char,
    ) -> c_int;
    fn apus_key_public(path: *const c_char, line: *mut c_char, capacity: usize) -> c_int;
    fn apus_config_create(
        bind: *const c_char,
        key_file: *const c_char,
        config: *mut Handle,
    ) -> c_int;
    fn apus_config_create_insecure(bind: *const c_char, config: *mut Handle) -> c_int;
    fn apus_config_set(config: Handle, name: *const c_char, value: *const c_char) -> c_int;
    fn apus_config_set_accept(
        config: Handle,
        callback: Option<Accept>,
        context: *mut c_void,
    ) -> c_int;
    fn apus_config_free(config: Handle);
    fn apus_host_start(config: Handle, host: *mut Handle) -> c_int;
    fn apus_host_address(host: Handle) -> *const c_char;
    fn apus_host_set_keys(host: Handle, key_file: *const c_char) -> c_int;
    fn apus_host_drive(host: Handle) -> c_int;
    fn apus_host_drain(host: Handle, timeout_ns: u64) -> c_int;
    fn apus_host_stats(host: Handle, stats: *mut [u64; 10]) -> c_int;
    fn apus_host_free(host: Handle);
    fn apus_connect(
        host: Handle,
        peer: *const c_char,
        flows: u32,
        wait: u64,
        made: *mut Handle,
    ) -> c_int;
    fn apus_connect_classes(
        host: Handle,
        peer: *const c_char,
        classes: *const u8,
        flows: u32,
        wait: u64,
        made: *mut Handle,
    ) -> c_int;
    fn apus_connect_to(
        host: Handle,
        peer: *const c_char,
        name: *const c_char,
        flows: u32,
        wait: u64,
        made: *mut Handle,
    ) -> c_int;
    fn apus_accept(host: Handle, timeout_ns: u64, made: *mut Handle) -> c_int;
    fn apus_connection_peer(connection: Handle) -> *const c_char;
    fn apus_connection_peer_key(connection: Handle, key: *mut [u8; 32]) -> c_int;
    fn apus_connection_peer_name(connection: Handle) -> *const c_char;
    fn apus_connection_ports(
        connection: Handle,
        ports: *mut Port,
        capacity: usize,
        count: *mut usize,
        one_port: *mut *const c_char,
    ) -> c_int;
    fn apus_connection_max_message(connection: Handle) -> u64;
    fn apus_connection_state(connection: Handle, flow: u32, state: *mut [u64; 7]) -> c_int;
    fn apus_connection_record(connection: Handle, directory: *const c_char) -> c_int;
    fn apus_close(connection: Handle, timeout_ns: u64) -> c_int;
    fn apus_connection_free(connection: Handle);
    fn apus_receive(
        connection: Handle,
        buffer: *mut u8,
        capacity: usize,
        timeout_ns: u64,
        length: *mut usize,
        flow: *mut u32,
    ) -> c_int;
    fn apus_region_register(
        host: Handle,
        memory: *mut u8,
        length: usize,
        access: c_int,
        region: *mut Handle,
    ) -> c_int;
    fn apus_region_register_for(
        host: Handle,
        memory: *mut u8,
        length: usize,
        access: c_int,
        grant: *const Grant,
        region: *mut Handle,
    ) -> c_int;
    fn apus_region_set_grant(region: Handle, grant: *const Grant) -> c_int;
    fn apus_region_key(region: Handle) -> u64;
    fn apus_region_lock(region: Handle, timeout_ns: u64) -> c_int;
    fn apus_region_unlock(region: Handle) -> c_int;
    fn apus_region_load(region: Handle, address: u64, value: *mut u64) -> c_int;
    fn apus_region_store(region: Handle, address: u64, value: u64) -> c_int;
    fn apus_region_compare_and_swap(
        region: Handle,
        address: u64,
        expected: u64,
        desired: u64,
        old: *mut u64,
    ) -> c_int;
    fn apus_region_fetch_add(region: Handle, address: u64, delta: u64, old: *mut u64) -> c_int;
    fn apus_region_free(region: Handle);
    fn apus_queue_create(host: Handle, capacity: usize, queue: *mut Handle) -> c_int;
    fn apus_poll(
        queue: Handle,
        ends: *mut Completion,
        most: usize,
        timeout_ns: u64,
        count: *mut usize,
    ) -> c_int;
    fn apus_queue_free(queue: Handle);
    fn apus_write(
        connection: Handle,
        op: *const Op,
        region: u64,
        address: u64,
        bytes: *const u8,
        length: usize,
        ticket: *mut u64,
    ) -> c_int;
    fn apus_read(
        connection: Handle,
        op: *const Op,
        region: u64,
        address: u64,
        buffer: *mut u8,
        length: usize,
        ticket: *mut u64,
    ) -> c_int;
    fn apus_send(
        connection: Handle,
        op: *const Op,
        bytes: *const u8,
        length: usize,
        ticket: *mut u64,
    ) -> c_int;
    fn apus_compare_and_swap(
        connection: Handle,
        op: *const Op,
        region: u64,
        address: u64,
        expected: u64,
        desired: u64,
        ticket: *mut u64,
    ) -> c_int;
    fn apus_fetch_add(
        connection: Handle,
        op: *const Op,
        region: u64,
        address: u64,
        delta: u64,
        ticket: *mut u64,
    ) -> c_int;
    fn apus_cancel(connection: Handle, ticket: u64) -> c_int;
    fn apus_swift_create(settings: *const c_char, swift: *mut Handle) -> c_int;
    fn apus_swift_on_ack(swift: Handle, ack: *const Ack) -> c_int;
    fn apus_swift_on_loss(swift: Handle, now_ns: u64) -> c_int;
    fn apus_swift_on_timeout(swift: Handle, now_ns: u64) -> c_int;
    fn apus_swift_allowance(swift: Handle, allowance: *mut [u64; 8]) -> c_int;
    fn apus_swift_free(swift: Handle);
}

/// Maximum number of simultaneous handles of a kind.
const SLOTS: usize = 3;
/// Size of the largest op; longer lengths are refused by limits of hosts.
const MEMORY: usize = 4096;
/// Largest status of the header; statuses start at 0.
const LAST_STATUS: c_int = 27;
/// Limit of an attempt to connect: the peer answers immediately if it is driven.
const CONNECT_NS: u64 = 20_000_000;
/// Settings and values, some of them invalid.
const SETTINGS: [(&CStr, &CStr); 10] = [
    (c"mode", c"inline"),
    (c"mode", c"sideways"),
    (c"max_message", c"100"),
    (c"max_ops", c"4"),
    (c"engines", c"2"),
    (c"balancer", c"oblivious"),
    (c"ports", c"4"),
    (c"algorithm", c"dctcp"),
    (c"algorithm.base_target", c"50us"),
    (c"no such setting", c""),
];

/// Paths of the key files and of the directory of records.
struct Files {
    /// The key pairs of the two hosts, each with the other host as a peer.
    pairs: [CString; 2],
    /// All files: those of `pairs`, a shared key, the first pair with a retired peer, a file without a key, and a file
    /// that does not exist.
    all: Vec<CString>,
    records: CString,
}

impl Files {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("apus-fuzz-{}", std::process::id()));
        // Of a process that was killed, with the same number.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let path = |name: &str| {
            CString::new(folder.join(name).into_os_string().into_encoded_bytes()).expect("a path")
        };
        let [first, second, retired, shared, empty] =
            ["first", "second", "retired", "shared", "empty"].map(path);
        let public = |file: &CString| {
            let mut line = [0_u8; 256];
            // SAFETY: a path, and room for the line.
            let status =
                unsafe { apus_key_public(file.as_ptr(), line.as_mut_ptr().cast(), line.len()) };
            assert!(check(status));
            CStr::from_bytes_until_nul(&line).expect("a text").to_str().expect("UTF-8").to_owned()
        };
        let add = |file: &CString, line: &str| {
            let file = file.to_str().expect("UTF-8");
            let mut file = OpenOptions::new().append(true).open(file).expect("the file");
            writeln!(file, "{line}").expect("written");
        };
        // SAFETY: paths and texts.
        unsafe {
            assert!(check(apus_key_create(shared.as_ptr())));
            assert!(!check(apus_key_create(shared.as_ptr())), "the file exists");
            let status = apus_key_create_pair(first.as_ptr(), c"one".as_ptr(), shared.as_ptr());
            assert!(check(status));
            let status = apus_key_create_pair(second.as_ptr(), c"two".as_ptr(), first.as_ptr());
            assert!(check(status));
        }
        fs::copy(first.to_str().expect("UTF-8"), retired.to_str().expect("UTF-8")).expect("copied");
        // The copy has the mode of a key file.
        fs::copy(shared.to_str().expect("UTF-8"), empty.to_str().expect("UTF-8")).expect("copied");
        fs::write(empty.to_str().expect("UTF-8"), "# no key\n").expect("written");
        add(&retired, &format!("retired {}", public(&second)));
        add(&first, &public(&second));
        add(&second, &public(&first));
        let all = vec![first.clone(), second.clone(), retired, shared, empty, path("missing")];
        Self { pairs: [first, second], all, records: path("records") }
    }

    fn get() -> &'static Self {
        static FILES: OnceLock<Files> = OnceLock::new();
        FILES.get_or_init(Self::new)
    }
}

/// Refuses connections with three flows.
unsafe extern "C" fn accept(
    _: *mut c_void,
    incoming: *const Incoming,
    reason: *mut c_char,
    capacity: usize,
) -> c_int {
    // SAFETY: the header's guarantees for a requested connection, and for the buffer of the reason.
    unsafe {
        let incoming = &*incoming;
        assert!(!CStr::from_ptr(incoming.address).is_empty() && incoming.flows > 0);
        assert!(
            !incoming.key.is_null() || CStr::from_ptr(incoming.name).is_empty(),
            "a name belongs to a key"
        );
        assert_eq!(*reason, 0, "it is empty at first");
        if incoming.flows == 3 {
            reason.write_bytes(b'3', capacity - 1);
            return 0;
        }
    }
    1
}

/// Reads a line of the log.
unsafe extern "C" fn log(_: *mut c_void, level: c_int, target: *const c_char, text: *const c_char) {
    // SAFETY: texts.
    let [target, text] = [target, text].map(|text| unsafe { CStr::from_ptr(text) });
    assert!((1..=4).contains(&level) && !target.is_empty() && !text.is_empty());
}

/// Checks that a status is one of the header's; returns whether the call succeeded.
fn check(status: c_int) -> bool {
    assert!((0..=LAST_STATUS).contains(&status), "status {status}");
    if status != 0 {
        // SAFETY: a text that is valid until the next failed call.
        let text = unsafe { CStr::from_ptr(apus_last_error()) };
        assert!(!text.to_str().expect("UTF-8").is_empty(), "status {status} without a text");
    }
    status == 0
}

/// The handles made so far, and the rest of the input.
struct Calls<'a> {
    input: &'a [u8],
    hosts: [Handle; 2],
    connections: [Handle; SLOTS],
    regions: [Handle; SLOTS],
    queues: [Handle; SLOTS],
    swifts: [Handle; SLOTS],
    /// Memory for ops and regions, which stays until all handles are freed.
    memory: Vec<Box<[u8]>>,
    /// Outstanding ops, with the slot of their queue.
    ops: HashMap<u64, usize>,
    tickets: Vec<u64>,
    users: u64,
    /// The last key of a peer.
    key: [u8; 32],
}

impl Calls<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.input.split_first() else { return 0 };
        self.input = rest;
        *first
    }

    fn slot(&mut self) -> usize {
        usize::from(self.byte()) % SLOTS
    }

    fn host(&mut self) -> Handle {
        self.hosts[usize::from(self.byte() % 2)]
    }

    fn connection(&mut self) -> Handle {
        let slot = self.slot();
        self.connections[slot]
    }

    /// Returns a number: small, large, or next to a limit.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => u64::MAX - 7,
            253 => MEMORY as u64,
            252 => 1 << 32,
            n => u64::from(n),
        }
    }

    fn length(&mut self) -> usize {
        usize::from(self.byte()) * 17 % (MEMORY + 1)
    }

    /// Returns memory that stays valid; for some lengths of 0, NULL.
    fn fresh(&mut self, length: usize) -> *mut u8 {
        if length == 0 {
            return null_mut();
        }
        self.memory.push(vec![7; length].into());
        self.memory.last_mut().map_or(null_mut(), |memory| memory.as_mut_ptr())
    }

    /// Returns rights of a connection, of none to two of the keys, or of both.
    fn grant(&mut self, keys: &[[u8; 32]; 2]) -> Grant {
        let count = usize::from(self.byte() % 3);
        let connection = if self.byte() % 2 == 0 { self.connection() } else { null_mut() };
        Grant { connection, keys: if count == 0 { null() } else { keys.as_ptr() }, count }
    }

    fn region_key(&mut self) -> u64 {
        let slot = self.slot();
        // SAFETY: a handle or NULL.
        let key = unsafe { apus_region_key(self.regions[slot]) };
        if self.byte() == 0 { key ^ 1 } else { key }
    }

    fn start(&mut self, which: usize) {
        let mut config = null_mut();
        // SAFETY: texts, handles, and room for results.
        unsafe {
            let address = c"127.0.0.1:0".as_ptr();
            let files = Files::get();
            let status = match self.byte() % 4 {
                0 => {
                    let file = &files.all[usize::from(self.byte()) % files.all.len()];
                    apus_config_create(address, file.as_ptr(), &raw mut config)
                }
                1 | 2 => apus_config_create(address, files.pairs[which].as_ptr(), &raw mut config),
                _ => apus_config_create_insecure(address, &raw mut config),
            };
            if !check(status) {
                return;
            }
            for _ in 0..self.byte() % 3 {
                let (name, value) = SETTINGS[usize::from(self.byte()) % SETTINGS.len()];
                check(apus_config_set(config, name.as_ptr(), value.as_ptr()));
            }
            if self.byte() % 2 == 1 {
                check(apus_config_set_accept(config, Some(accept), null_mut()));
            }
            apus_host_free(std::mem::replace(&mut self.hosts[which], null_mut()));
            let mut host = null_mut();
            if check(apus_host_start(config, &raw mut host)) {
                self.hosts[which] = host;
            }
            apus_config_free(config);
        }
    }

    fn connect(&mut self) {
        let (from, slot, flows) = (self.byte() % 2, self.slot(), u32::from(self.byte() % 4));
        let from = usize::from(from);
        let classes = [self.byte() % 9, 0, 7];
        let name = [c"one", c"two", c"peer"][self.slot()];
        let mut made = null_mut();
        // SAFETY: handles or NULL, texts, classes of all flows, and room for the result.
        unsafe {
            let (host, address) = (self.hosts[from], apus_host_address(self.hosts[1 - from]));
            let status = match self.byte() % 4 {
                0 => apus_connect_classes(
                    host,
                    address,
                    classes.as_ptr(),
                    flows,
                    CONNECT_NS,
                    &raw mut made,
                ),
                1 => {
                    apus_connect_to(host, address, name.as_ptr(), flows, CONNECT_NS, &raw mut made)
                }
                _ => apus_connect(host, address, flows, CONNECT_NS, &raw mut made),
            };
            if check(status) {
                apus_connection_free(std::mem::replace(&mut self.connections[slot], made));
            }
        }
    }

    fn accept(&mut self) {
        let (host, slot) = (self.host(), self.slot());
        let mut made = null_mut();
        // SAFETY: a handle or NULL, and room for the result.
        unsafe {
            if check(apus_accept(host, 0, &raw mut made)) {
                apus_connection_free(std::mem::replace(&mut self.connections[slot], made));
            }
        }
    }

    fn register(&mut self) {
        let (host, slot, length) = (self.host(), self.slot(), self.length());
        let (access, granted) = (c_int::from(self.byte() % 16), self.byte() % 2 == 0);
        let memory = self.fresh(length);
        let keys = [self.key, [1; 32]];
        let grant = self.grant(&keys);
        let mut region = null_mut();
        // SAFETY: handles or NULL, memory that stays valid, and room for the result.
        unsafe {
            let status = if granted {
                apus_region_register_for(
                    host,
                    memory,
                    length,
                    access,
                    &raw const grant,
                    &raw mut region,
                )
            } else {
                apus_region_register(host, memory, length, access, &raw mut region)
            };
            if check(status) {
                apus_region_free(std::mem::replace(&mut self.regions[slot], region));
            }
        }
    }

    fn use_region(&mut self) {
        let (slot, address, value) = (self.slot(), self.number(), self.number());
        let region = self.regions[slot];
        let keys = [self.key, [1; 32]];
        let grant = self.grant(&keys);
        let mut word = 0;
        // SAFETY: handles or NULL, and room for results; a locked region is unlocked before any other call.
        unsafe {
            match self.byte() % 6 {
                5 => check(apus_region_compare_and_swap(region, address, value, 9, &raw mut word)),
                0 => check(apus_region_load(region, address, &raw mut word)),
                1 => check(apus_region_store(region, address, value)),
                2 => check(apus_region_fetch_add(region, address, value, &raw mut word)),
                3 => check(apus_region_set_grant(region, &raw const grant)),
                _ => {
                    if check(apus_region_lock(region, 0)) {
                        assert!(!check(apus_region_lock(region, 0)), "locked twice");
                        assert!(
                            !check(apus_region_load(region, 0, &raw mut word)),
                            "loaded under its lock"
                        );
                        check(apus_region_unlock(region))
                    } else {
                        !check(apus_region_unlock(region))
                    }
                }
            };
        }
    }

    fn submit(&mut self) {
        let (connection, queue, length) = (self.connection(), self.slot(), self.length());
        let (region, address) = (self.region_key(), self.number());
        let kind = self.byte();
        self.users += 1;
        let user = self.users;
        // The deadline ends the op whatever the peer does.
        let deadline_ns = 1 + u64::from(self.byte()) * 10_000;
        let op = Op { flow: u32::from(kind / 64), deadline_ns, queue: self.queues[queue], user };
        let (op, memory) = (&raw const op, self.fresh(length));
        let mut ticket = 0;
        let room = &raw mut ticket;
        // SAFETY: handles or NULL, memory that stays valid, and room for the ticket.
        let status = unsafe {
            match kind % 5 {
                0 => apus_write(connection, op, region, address, memory, length, room),
                1 => apus_read(connection, op, region, address, memory, length, room),
                2 => apus_send(connection, op, memory, length, room),
                3 => apus_compare_and_swap(connection, op, region, address, 7, 8, room),
                _ => apus_fetch_add(connection, op, region, address, 1, room),
            }
        };
        if check(status) {
            self.ops.insert(user, queue);
            self.tickets.push(ticket);
        }
    }

    fn poll(&mut self) {
        let (slot, most) = (self.slot(), usize::from(self.byte() % 9));
        let mut ends = [Completion::default(); 8];
        let mut count = 0;
        // SAFETY: a handle or NULL, and room for `most` completions.
        let polled = unsafe {
            check(apus_poll(self.queues[slot], ends.as_mut_ptr(), most.min(8), 0, &raw mut count))
        };
        if !polled {
            return;
        }
        assert!((1..=most.min(8)).contains(&count), "{count} of {most}");
        for end in &ends[..count] {
            assert_eq!(self.ops.remove(&end.user), Some(slot), "an end of op {}", end.user);
            assert!([0, 17, 18, 19].contains(&end.status), "an op ended with {}", end.status);
            assert_eq!(end.status == 0, end.reason == 0, "status and reason");
            // SAFETY: a static text.
            let text = unsafe { CStr::from_ptr(apus_reason_text(end.reason)) };
            assert!(!text.is_empty());
        }
    }

    fn make_queue(&mut self) {
        let (host, slot, capacity) = (self.host(), self.slot(), usize::from(self.byte() % 9));
        let mut queue = null_mut();
        // SAFETY: a handle or NULL, and room for the result.
        if unsafe { check(apus_queue_create(host, capacity, &raw mut queue)) } {
            self.free_queue(slot);
            self.queues[slot] = queue;
        }
    }

    fn free_queue(&mut self, slot: usize) {
        self.ops.retain(|_, queue| *queue != slot);
        // SAFETY: a handle or NULL, which is not used again.
        unsafe { apus_queue_free(std::mem::replace(&mut self.queues[slot], null_mut())) };
    }

    fn receive(&mut self) {
        let (connection, capacity) = (self.connection(), self.length());
        let (mut buffer, mut length, mut flow) = (vec![0; capacity], 0, 0);
        // SAFETY: a handle or NULL, and room for the results.
        let received = unsafe {
            check(apus_receive(
                connection,
                buffer.as_mut_ptr(),
                capacity,
                0,
                &raw mut length,
                &raw mut flow,
            ))
        };
        assert!(!received || length <= capacity);
        assert!(
            !received || buffer[..length].iter().all(|byte| *byte == 7),
            "other bytes than were sent"
        );
    }

    fn ask(&mut self) {
        let (host, connection, capacity) =
            (self.host(), self.connection(), usize::from(self.byte() % 9));
        let (mut ports, mut count, mut one_port) = ([Port::default(); 8], 0, null());
        // SAFETY: handles or NULL, and room for the results.
        unsafe {
            match self.byte() % 10 {
                0 => check(apus_host_drive(host)),
                8 => {
                    let files = &Files::get().all;
                    let file = &files[usize::from(self.byte()) % files.len()];
                    check(apus_host_set_keys(host, file.as_ptr()))
                }
                9 => check(apus_connection_record(connection, Files::get().records.as_ptr())),
                1 => check(apus_host_stats(host, &mut [0; 10])),
                2 => check(apus_connection_state(connection, u32::from(self.byte()), &mut [0; 7])),
                3 => apus_connection_max_message(connection) > 0,
                4 => check(apus_connection_ports(
                    connection,
                    ports.as_mut_ptr(),
                    capacity.min(8),
                    &raw mut count,
                    &raw mut one_port,
                )),
                5 => check(apus_connection_peer_key(connection, &mut self.key)),
                6 => CStr::from_ptr(apus_connection_peer_name(connection)).is_empty(),
                _ => apus_connection_peer(connection).is_null(),
            };
        }
    }

    fn cancel(&mut self) {
        let (connection, which) = (self.connection(), usize::from(self.byte()));
        let ticket = self.tickets.get(which).copied().unwrap_or(which as u64);
        // SAFETY: a handle or NULL.
        unsafe { check(apus_cancel(connection, ticket)) };
    }

    fn swift(&mut self) {
        let (slot, now_ns, delay) = (self.slot(), self.number(), self.number());
        let swift = self.swifts[slot];
        let ack = Ack {
            now_ns,
            rtt_ns: delay,
            endpoint_delay_ns: self.number(),
            acked_packets: 1,
            hops: self.byte(),
        };
        let mut made = null_mut();
        // SAFETY: handles or NULL, a text, and room for results.
        unsafe {
            match self.byte() % 5 {
                0 => {
                    if check(apus_swift_create(c"base_target=25us".as_ptr(), &raw mut made)) {
                        apus_swift_free(std::mem::replace(&mut self.swifts[slot], made));
                    }
                    true
                }
                1 => check(apus_swift_on_ack(swift, &raw const ack)),
                2 => check(apus_swift_on_loss(swift, now_ns)),
                3 => check(apus_swift_on_timeout(swift, now_ns)),
                _ => check(apus_swift_allowance(swift, &mut [0; 8])),
            };
        }
    }

    fn free(&mut self) {
        let slot = self.slot();
        // SAFETY: handles or NULL, which are not used again.
        unsafe {
            match self.byte() % 9 {
                0 => apus_host_free(std::mem::replace(&mut self.hosts[slot % 2], null_mut())),
                1 | 2 => {
                    apus_connection_free(std::mem::replace(&mut self.connections[slot], null_mut()))
                }
                3 | 4 => apus_region_free(std::mem::replace(&mut self.regions[slot], null_mut())),
                5 => self.free_queue(slot),
                6 => apus_swift_free(std::mem::replace(&mut self.swifts[slot], null_mut())),
                7 => {
                    check(apus_close(self.connections[slot], 0));
                }
                _ => {
                    check(apus_close(self.connections[slot], CONNECT_NS));
                }
            }
        }
    }

    fn call(&mut self) {
        match self.byte() % 32 {
            0 => {
                let which = usize::from(self.byte() % 2);
                self.start(which);
            }
            1 => {
                let host = self.host();
                // SAFETY: a handle or NULL.
                unsafe { check(apus_host_drain(host, 0)) };
            }
            2..=5 => self.connect(),
            6..=8 => self.accept(),
            9..=11 => self.register(),
            12..=14 => self.use_region(),
            15..=21 => self.submit(),
            22..=24 => self.poll(),
            25 => self.make_queue(),
            26 | 27 => self.receive(),
            28 => self.ask(),
            29 => self.cancel(),
            30 => self.swift(),
            _ => self.free(),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut calls = Calls {
        input,
        hosts: [null_mut(); 2],
        connections: [null_mut(); SLOTS],
        regions: [null_mut(); SLOTS],
        queues: [null_mut(); SLOTS],
        swifts: [null_mut(); SLOTS],
        memory: Vec::new(),
        ops: HashMap::new(),
        tickets: Vec::new(),
        users: 0,
        key: [0; 32],
    };
    // SAFETY: a function without a context.
    unsafe { check(apus_log(4, Some(log), null_mut())) };
    calls.start(0);
    calls.start(1);
    while !calls.input.is_empty() {
        calls.call();
    }
    for slot in 0..SLOTS {
        calls.free_queue(slot);
    }
    // SAFETY: handles or NULL, which are not used again. The memory of ops is freed last.
    unsafe {
        calls.hosts.into_iter().for_each(|host| apus_host_free(host));
        calls.connections.into_iter().for_each(|connection| apus_connection_free(connection));
        calls.regions.into_iter().for_each(|region| apus_region_free(region));
        calls.swifts.into_iter().for_each(|swift| apus_swift_free(swift));
    }
    // There is no directory if nothing was recorded.
    let _ = fs::remove_dir_all(Files::get().records.to_str().expect("UTF-8"));
});
