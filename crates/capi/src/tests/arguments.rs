//! Failing calls store only results that the header documents for this case.

use std::ptr::null;

use super::*;

#[allow(improper_ctypes)] // to C, handles are opaque
unsafe extern "C" {
    fn apus_key_create(path: *const c_char) -> i32;
    fn apus_key_create_pair(
        path: *const c_char,
        name: *const c_char,
        group_file: *const c_char,
    ) -> i32;
    fn apus_key_public(path: *const c_char, line: *mut c_char, capacity: usize) -> i32;
    fn apus_connect_classes(
        host: *const apus_host,
        peer: *const c_char,
        classes: *const u8,
        flows: u32,
        timeout_ns: u64,
        connection: *mut *mut apus_connection,
    ) -> i32;
    fn apus_connect_to(
        host: *const apus_host,
        peer: *const c_char,
        name: *const c_char,
        flows: u32,
        timeout_ns: u64,
        connection: *mut *mut apus_connection,
    ) -> i32;
}

#[test]
fn a_message_that_does_not_fit_stores_its_length_alone() {
    let (client, server) = (host(&[]), host(&[]));
    let [here, there] = connect(client, server);
    send(server, there, &[5; 10]);
    let (mut buffer, mut length, mut flow) = ([0u8; 10], 0, 77);
    // SAFETY: a handle, a buffer of at least the capacity, and room for results.
    let mut receive = |capacity| unsafe {
        let buffer = buffer.as_mut_ptr().cast();
        let status = apus_receive(here, buffer, capacity, FOREVER, &raw mut length, &raw mut flow);
        (status, length, flow)
    };
    assert_eq!(receive(9), (Status::TooSmall as i32, 10, 77));
    assert_eq!(receive(10), (Status::Ok as i32, 10, 0));
    assert_eq!(buffer, [5; 10]);
    free([here, there], [client, server]);
}

#[test]
fn ports_without_room_for_their_number_store_nothing() {
    let (client, server) = (host(&[]), host(&[]));
    let [here, there] = connect(client, server);
    let (mut count, mut one_port) = (0, null());
    // SAFETY: a handle, and room for results.
    unsafe {
        let status = apus_connection_ports(here, null_mut(), 0, null_mut(), &raw mut one_port);
        assert_eq!((status, one_port), (Status::Invalid as i32, null()));
        ok(apus_connection_ports(here, null_mut(), 0, &raw mut count, &raw mut one_port));
        assert_eq!((count, CStr::from_ptr(one_port)), (1, c"off"));
    }
    free([here, there], [client, server]);
}

#[test]
fn the_line_of_a_key_needs_a_place_with_room() {
    let path = std::env::temp_dir().join(format!("apus-capi-line-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let text = CString::new(path.display().to_string()).expect("a path");
    let mut line: [c_char; 256] = [0; 256];
    // SAFETY: texts, and room for the line.
    unsafe {
        ok(apus_key_create_pair(text.as_ptr(), c"host".as_ptr(), null()));
        for capacity in [0, 256] {
            let status = apus_key_public(text.as_ptr(), null_mut(), capacity);
            assert_eq!(status, Status::Invalid as i32);
        }
        let status = apus_key_public(text.as_ptr(), line.as_mut_ptr(), 8);
        assert_eq!(status, Status::TooSmall as i32);
        ok(apus_key_public(text.as_ptr(), line.as_mut_ptr(), line.len()));
        assert!(CStr::from_ptr(line.as_ptr()).to_bytes().starts_with(b"apus-peer-1 host "));
    }
    std::fs::remove_file(path).expect("the file");
}

#[test]
fn a_poll_that_fails_stores_no_number() {
    let host = host(&[]);
    let (mut queue, mut count) = (null_mut(), 77);
    let mut end = Completion::default();
    // SAFETY: handles, and room for results.
    unsafe {
        ok(apus_queue_create(host, 1, &raw mut queue));
        let polled = apus_poll(queue, &raw mut end, 1, 0, &raw mut count);
        assert_eq!((polled, count), (Status::Timeout as i32, 77));
        apus_queue_free(queue);
        apus_host_free(host);
    }
}

#[test]
fn an_op_ends_at_a_queue_of_its_host_alone() {
    let [client, server] = [host(&[]), host(&[])];
    let [here, there] = connect(client, server);
    let mut queue = null_mut();
    // SAFETY: handles, an op, bytes that outlive it, and room for results.
    unsafe {
        ok(apus_queue_create(server, 1, &raw mut queue));
        let op = Op::to(queue);
        let refused = apus_send(here, &raw const op, [1u8; 8].as_ptr().cast(), 8, null_mut());
        assert_eq!(refused, Status::Invalid as i32);
        assert!(last_error().contains("a queue of another host"), "{}", last_error());
        // The refused op has not taken the room of an op of the queue's own host.
        let bytes = [2u8; 8];
        ok(apus_send(there, &raw const op, bytes.as_ptr().cast(), 8, null_mut()));
        let (mut end, mut count) = (Completion::default(), 0);
        ok(apus_poll(queue, &raw mut end, 1, FOREVER, &raw mut count));
        ok(end.status);
        apus_queue_free(queue);
    }
    free([here, there], [client, server]);
}

#[test]
fn impossible_flows_and_classes_are_invalid_arguments() {
    let host = host(&[(c"max_flows", c"4")]);
    let mut made = null_mut();
    // SAFETY: handles, texts, classes, and room for the result.
    unsafe {
        let peer = apus_host_address(host);
        for flows in [0, 5, u32::MAX] {
            let refused = [
                apus_connect(host, peer, flows, FOREVER, &raw mut made),
                apus_connect_to(host, peer, c"peer".as_ptr(), flows, FOREVER, &raw mut made),
            ];
            assert_eq!(refused, [Status::Invalid as i32; 2]);
            assert!(last_error().contains("max_flows allows 1 to 4"), "{}", last_error());
        }
        let refused = apus_connect_classes(host, peer, [0, 8].as_ptr(), 2, FOREVER, &raw mut made);
        assert_eq!(refused, Status::Invalid as i32);
        assert!(last_error().contains("class 8"), "{}", last_error());
        apus_host_free(host);
    }
}

#[test]
fn keys_with_a_wrong_name_or_group_are_invalid_arguments() {
    let path = |name: &str| {
        let path = std::env::temp_dir().join(format!("apus-capi-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    };
    let in_c = |path: &std::path::Path| CString::new(path.display().to_string()).expect("a path");
    let (new, group) = (path("pair"), path("group"));
    let create = |name: &CStr, group: *const c_char| {
        // SAFETY: texts.
        unsafe { apus_key_create_pair(in_c(&new).as_ptr(), name.as_ptr(), group) }
    };
    assert_eq!(create(c"a name", null()), Status::Invalid as i32, "{}", last_error());
    let group_in_c = in_c(&group);
    assert_eq!(create(c"host", group_in_c.as_ptr()), Status::System as i32, "there is none");
    // SAFETY: a text.
    ok(unsafe { apus_key_create(group_in_c.as_ptr()) });
    for content in [&b"no key"[..], b"\xff"] {
        std::fs::write(&group, content).expect("the group");
        assert_eq!(
            create(c"host", group_in_c.as_ptr()),
            Status::Invalid as i32,
            "{}",
            last_error()
        );
    }
    assert!(!new.exists());
    ok(create(c"host", null()));
    assert_eq!(create(c"host", null()), Status::System as i32, "it exists");
    for path in [&new, &group] {
        std::fs::remove_file(path).expect("the file");
    }
}
