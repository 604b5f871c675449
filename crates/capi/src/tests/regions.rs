//! Regions that their owner locks, and those that only some peers may use.

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
    fn apus_last_error() -> *const c_char;
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
        // A region that is locked may be freed by its thread.
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
