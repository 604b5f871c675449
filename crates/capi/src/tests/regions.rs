//! Regions that their owner locks, and regions that only some peers may use.

use std::ptr::null;

use super::*;

/// `apus_grant`, as C sees it.
#[repr(C)]
struct Grant {
    connection: *const apus_connection,
    keys: *const [u8; 32],
    count: usize,
}

#[allow(improper_ctypes)] // to C, handles are opaque
unsafe extern "C" {
    fn apus_region_register_for(
        host: *const apus_host,
        memory: *mut c_void,
        length: usize,
        access: i32,
        grant: *const Grant,
        region: *mut *mut apus_region,
    ) -> i32;
    fn apus_region_set_grant(region: *const apus_region, grant: *const Grant) -> i32;
    fn apus_region_lock(region: *const apus_region, timeout_ns: u64) -> i32;
    fn apus_region_unlock(region: *const apus_region) -> i32;
    fn apus_connection_peer_key(connection: *const apus_connection, key: *mut [u8; 32]) -> i32;
    fn apus_connection_peer_name(connection: *const apus_connection) -> *const c_char;
    fn apus_connection_state(
        connection: *const apus_connection,
        flow: u32,
        state: *mut [u64; 7],
    ) -> i32;
}

const INVALID: i32 = Status::Invalid as i32;

#[test]
fn a_region_is_locked_by_one_thread_for_a_bounded_time_and_unlocked_by_it() {
    let host = host(&[]);
    let mut memory = [0u8; 16];
    let mut region = null_mut();
    // SAFETY: handles, and memory that outlives the region.
    unsafe {
        ok(apus_region_register(host, memory.as_mut_ptr().cast(), 16, 7, &raw mut region));
        assert_eq!(apus_region_unlock(region), INVALID, "nobody has locked it");
        ok(apus_region_lock(region, FOREVER));
        let mut word = 0;
        assert_eq!(apus_region_lock(region, 0), INVALID, "this thread would wait for itself");
        assert_eq!(apus_region_load(region, 0, &raw mut word), INVALID);
        assert_eq!(apus_region_store(region, 0, 1), INVALID);
        let text = CStr::from_ptr(apus_last_error()).to_str().expect("UTF-8");
        assert!(text.contains("this thread has locked the region"), "{text}");
        let other = Shared(region);
        let beside = thread::spawn(move || {
            let region = other.get();
            let timed_out = apus_region_lock(region, 1_000_000);
            (timed_out, apus_region_unlock(region))
        });
        let (timed_out, unlocked) = beside.join().expect("no panic");
        assert_eq!((timed_out, unlocked), (Status::Timeout as i32, INVALID));
        memory.as_mut_ptr().write(7);
        ok(apus_region_unlock(region));
        ok(apus_region_load(region, 0, &raw mut word));
        assert_eq!(word, 7);
        // A locked region may be freed by the thread that locked it.
        ok(apus_region_lock(region, 0));
        apus_region_free(region);
        apus_host_free(host);
    }
}

#[test]
fn a_grant_names_a_connection_or_keys_and_counts_at_once() {
    let [server, client] = [host(&[]), host(&[])];
    let [here, there] = connect(client, server);
    let mut memory = [5u8; 16];
    let memory = memory.as_mut_ptr().cast();
    let nobody = Grant { connection: null(), keys: null(), count: 0 };
    let of_there = Grant { connection: there, keys: null(), count: 0 };
    let both = Grant { connection: there, keys: null(), count: 1 };
    let no_keys = Grant { connection: null(), keys: null(), count: 1 };
    let low_order = [0u8; 32];
    let wrong = Grant { connection: null(), keys: &raw const low_order, count: 1 };
    // SAFETY: handles, and memory that outlives the region.
    unsafe {
        let (mut region, mut queue) = (null_mut(), null_mut());
        for grant in [&both, &no_keys, &wrong] {
            let refused = apus_region_register_for(server, memory, 16, 1, grant, &raw mut region);
            assert_eq!(refused, INVALID);
        }
        for access in [0, 8, -1] {
            let refused = apus_region_register_for(
                server,
                memory,
                16,
                access,
                &raw const nobody,
                &raw mut region,
            );
            assert_eq!(refused, INVALID);
        }
        ok(apus_region_register_for(server, memory, 16, 1, &raw const nobody, &raw mut region));
        ok(apus_queue_create(client, 4, &raw mut queue));
        let read = || {
            let (mut buffer, mut end, mut count) = ([0u8; 16], Completion::default(), 0);
            let (target, key) = (buffer.as_mut_ptr().cast(), apus_region_key(region));
            let op = Op::to(queue);
            ok(apus_read(here, &raw const op, key, 0, target, 16, null_mut()));
            ok(apus_poll(queue, &raw mut end, 1, FOREVER, &raw mut count));
            (end.status, buffer[15])
        };
        let refused = (Status::OpRefused as i32, 0);
        assert_eq!(read(), refused);
        ok(apus_region_set_grant(region, &raw const of_there));
        assert_eq!(read(), (Status::Ok as i32, 5));
        ok(apus_region_set_grant(region, &raw const nobody));
        assert_eq!(read(), refused);
        apus_region_free(region);
        ok(apus_region_register(server, memory, 16, 1, &raw mut region));
        assert_eq!(apus_region_set_grant(region, &raw const nobody), INVALID, "it is for all");
        let mut key = [0; 32];
        assert_eq!(apus_connection_peer_key(there, &raw mut key), Status::NoKey as i32);
        assert_eq!(CStr::from_ptr(apus_connection_peer_name(there)), c"");
        apus_region_free(region);
        apus_queue_free(queue);
        apus_connection_free(here);
        apus_connection_free(there);
        apus_host_free(client);
        apus_host_free(server);
    }
}

/// Runs `calls` with a host that has a locked region, a connection of the host, and a queue of the host. A write to the
/// region was submitted at the other end of the connection.
fn under_a_lock(
    mode: &CStr,
    calls: impl FnOnce(*mut apus_host, *mut apus_connection, *mut apus_queue),
) {
    let patient = (c"idle_timeout", c"3600s");
    let (server, client) = (host(&[(c"mode", mode), patient]), host(&[patient]));
    let (mut here, mut there) = (null_mut(), null_mut());
    let mut memory = [0u8; 16];
    let (mut region, mut queue, mut remote) = (null_mut(), null_mut(), null_mut());
    // SAFETY: handles, memory that outlives its uses, and room for results.
    unsafe {
        // The server connects, so that its engine also runs in the mode "inline".
        ok(apus_connect(server, apus_host_address(client), 1, FOREVER, &raw mut there));
        ok(apus_accept(client, FOREVER, &raw mut here));
        ok(apus_region_register(server, memory.as_mut_ptr().cast(), 16, 7, &raw mut region));
        ok(apus_queue_create(server, 1, &raw mut queue));
        ok(apus_queue_create(client, 1, &raw mut remote));
        ok(apus_region_lock(region, FOREVER));
        let op = Op::to(remote);
        let bytes = [9u8; 16];
        let key = apus_region_key(region);
        ok(apus_write(here, &raw const op, key, 0, bytes.as_ptr().cast(), 16, null_mut()));
        // The write is in flight, or has arrived.
        let mut stats = Stats::default();
        while stats.payload_sent == 0 {
            ok(apus_host_stats(client, &raw mut stats));
            thread::yield_now();
        }
        calls(server, there, queue);
        assert_eq!(memory[0], 0, "it is locked");
        ok(apus_region_unlock(region));
        let (mut ended, mut count) = ([Completion::default()], 0);
        while apus_poll(remote, ended.as_mut_ptr(), 1, 1_000_000, &raw mut count) != 0 {
            ok(apus_host_drive(server));
        }
        ok(ended[0].status);
        apus_region_free(region);
        apus_queue_free(queue);
        apus_queue_free(remote);
    }
    assert_eq!(memory, [9; 16]);
    free([here, there], [client, server]);
}

#[test]
fn calls_that_wait_are_refused_in_a_thread_that_has_locked_a_region_of_the_host() {
    for mode in [c"shared", c"spinning", c"inline"] {
        under_a_lock(mode, |host, connection, queue| {
            let (mut other, mut count, mut state) = (null_mut(), 0, [0; 7]);
            let mut end = Completion::default();
            // SAFETY: handles, and room for results.
            unsafe {
                for timeout in [0, FOREVER] {
                    let refused = [
                        apus_accept(host, timeout, &raw mut other),
                        apus_connect(host, apus_host_address(host), 1, timeout, &raw mut other),
                        apus_host_drain(host, timeout),
                        apus_poll(queue, &raw mut end, 1, timeout, &raw mut count),
                        receive(connection, 8, timeout).0,
                        apus_connection_state(connection, 0, &raw mut state),
                        apus_connection_ports(
                            connection,
                            null_mut(),
                            0,
                            &raw mut count,
                            null_mut(),
                        ),
                        apus_close(connection, timeout),
                    ];
                    assert_eq!(refused, [INVALID; 8], "{mode:?}");
                    let text = last_error();
                    assert!(text.contains("holds the memory of a region of this host"), "{text}");
                }
                ok(apus_host_drive(host));
            }
        });
    }
}

#[test]
fn a_grant_names_a_connection_of_the_host_of_its_region() {
    let [server, other, client] = [host(&[]), host(&[]), host(&[])];
    let [here, there] = connect(client, server);
    let [beside, theirs] = connect(client, other);
    let mut memory = [5u8; 16];
    let memory = memory.as_mut_ptr().cast();
    let wrong = Grant { connection: theirs, keys: null(), count: 0 };
    let right = Grant { connection: there, keys: null(), count: 0 };
    let mut region = null_mut();
    // SAFETY: handles, and memory that outlives the region.
    unsafe {
        let register = |grant: &Grant, region: &mut *mut apus_region| {
            apus_region_register_for(server, memory, 16, 1, grant, &raw mut *region)
        };
        assert_eq!(register(&wrong, &mut region), INVALID);
        assert!(last_error().contains("a connection of another host"), "{}", last_error());
        ok(register(&right, &mut region));
        assert_eq!(apus_region_set_grant(region, &raw const wrong), INVALID);
        assert!(last_error().contains("a connection of another host"), "{}", last_error());
        ok(apus_region_set_grant(region, &raw const right));
        apus_region_free(region);
        apus_connection_free(beside);
        apus_connection_free(theirs);
        apus_host_free(other);
    }
    free([here, there], [client, server]);
}

/// The header forbids this. Nevertheless, the thread that frees the region can still wait.
#[test]
fn a_region_whose_locker_has_ended_can_be_freed_and_leaves_other_threads_as_they_are() {
    let host = host(&[]);
    let mut memory = [0u8; 16];
    let mut region = null_mut();
    // SAFETY: handles, and memory that outlives the region.
    unsafe {
        ok(apus_region_register(host, memory.as_mut_ptr().cast(), 16, 7, &raw mut region));
        let shared = Shared(region);
        let locker = thread::spawn(move || apus_region_lock(shared.get(), FOREVER));
        ok(locker.join().expect("no panic"));
        apus_region_free(region);
        let mut connection = null_mut();
        assert_eq!(apus_accept(host, 0, &raw mut connection), Status::Timeout as i32);
        apus_host_free(host);
    }
}
