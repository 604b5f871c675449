//! Calls that fail store nothing but what the header says.

use std::ptr::null;

use super::*;

#[allow(improper_ctypes)] // to C, handles are opaque
unsafe extern "C" {
    fn apus_key_create_pair(
        path: *const c_char,
        name: *const c_char,
        group_file: *const c_char,
    ) -> i32;
    fn apus_key_public(path: *const c_char, line: *mut c_char, capacity: usize) -> i32;
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
