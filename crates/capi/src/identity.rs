//! Keys of hosts, and the callback that accepts or refuses connections.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;

use apus_udp::session::{Entry, MAX_REASON_BYTES};
use apus_udp::{AcceptHook, Incoming, keyfile};

use crate::config::apus_config;
use crate::connection::apus_connection;
use crate::failure::{Failure, Status, call};
use crate::host::{apus_host, handle};
use crate::pointer::{Out, given, hand_out, put, text};

/// A number of flows above every limit.
const TOO_MANY_FLOWS: u32 = 65_536;
/// Bytes of a reason including its zero byte: `APUS_REASON_BYTES`.
const REASON_BYTES: usize = MAX_REASON_BYTES + 1;

/// `apus_incoming`: a connection that a peer requests.
#[repr(C)]
#[allow(dead_code)] // C reads them
pub struct apus_incoming {
    address: *const c_char,
    name: *const c_char,
    key: *const u8,
    flows: u32,
}

/// `apus_accept_callback`.
type Callback = unsafe extern "C" fn(
    context: *mut c_void,
    incoming: *const apus_incoming,
    reason: *mut c_char,
    capacity: usize,
) -> i32;

/// A callback of the caller.
struct Hook {
    callback: Callback,
    context: *mut c_void,
}

// SAFETY: the header requires that any thread may call it.
unsafe impl Send for Hook {}
// SAFETY: as above, and several threads may call it at the same time.
unsafe impl Sync for Hook {}

impl Hook {
    fn decide(&self, incoming: &Incoming<'_>) -> Result<(), String> {
        let address = CString::new(incoming.from.to_string()).unwrap_or_default();
        let name = CString::new(incoming.peer_name.unwrap_or_default()).unwrap_or_default();
        let key = incoming.peer_key.map(|key| *key.bytes());
        let request = apus_incoming {
            address: address.as_ptr(),
            name: name.as_ptr(),
            key: key.as_ref().map_or(std::ptr::null(), |key| key.as_ptr()),
            flows: incoming.flows as u32, // at most 1024
        };
        let mut reason: [c_char; REASON_BYTES] = [0; REASON_BYTES];
        // SAFETY: the header requires a function of this type, which writes at most `capacity` bytes.
        let accepted = unsafe {
            (self.callback)(self.context, &raw const request, reason.as_mut_ptr(), REASON_BYTES)
        };
        if accepted != 0 {
            return Ok(());
        }
        reason[REASON_BYTES - 1] = 0;
        // SAFETY: the text ends with a zero byte.
        let reason = unsafe { CStr::from_ptr(reason.as_ptr()) };
        Err(reason.to_string_lossy().into_owned())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_config_set_accept(
    config: Option<&mut apus_config>,
    callback: Option<Callback>,
    context: *mut c_void,
) -> i32 {
    call(|| {
        let config = given(config, "config")?;
        config.config.accept = callback.map(|callback| {
            let hook = Hook { callback, context };
            AcceptHook::new(move |incoming| hook.decide(incoming))
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_key_create_pair(
    path: *const c_char,
    name: *const c_char,
    group_file: *const c_char,
) -> i32 {
    call(|| {
        // SAFETY: the header requires texts.
        let (path, name) = unsafe { (text(path, "path")?, text(name, "name")?) };
        let group = match group_file.is_null() {
            true => None,
            // SAFETY: as above.
            false => Some(Path::new(unsafe { text(group_file, "group_file") }?)),
        };
        keyfile::create_pair(Path::new(path), name, group)?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_key_public(
    path: *const c_char,
    line: *mut c_char,
    capacity: usize,
) -> i32 {
    call(|| {
        // SAFETY: the header requires a text.
        let path = unsafe { text(path, "path") }?;
        if line.is_null() {
            return Err(Failure::invalid("`line` is NULL"));
        }
        let entries = keyfile::read_entries(Path::new(path));
        let entries = entries.map_err(|error| Failure::invalid(error.to_string()))?;
        let mut own = entries.iter().filter(|entry| !entry.retired).filter_map(Entry::public);
        let public = own
            .next()
            .ok_or_else(|| Failure::new(Status::NoKey, format!("{path}: no key pair of a host")))?;
        let bytes = CString::new(public.to_line().as_str()).unwrap_or_default();
        let bytes = bytes.as_bytes_with_nul();
        if bytes.len() > capacity {
            let what = format!("the line has {} bytes, `line` {capacity}", bytes.len());
            return Err(Failure::new(Status::TooSmall, what));
        }
        // SAFETY: the header requires `capacity` bytes, which suffice; memory of two owners does not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), line.cast(), bytes.len()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_connect_to(
    host: Option<&apus_host>,
    peer: *const c_char,
    name: *const c_char,
    flows: u32,
    timeout_ns: u64,
    connection: Out<'_, Box<apus_connection>>,
) -> i32 {
    hand_out(connection, "connection", || {
        let host = handle(host, "host")?;
        // SAFETY: the header requires texts.
        let (peer, name) = unsafe { (text(peer, "peer")?, text(name, "name")?) };
        let address = crate::host::address(peer)?;
        let classes = vec![0; flows.min(TOO_MANY_FLOWS) as usize];
        let connecting = host.shared.host.connect_to_async(address, name, &classes);
        let connected = host.shared.wait(connecting, timeout_ns)??;
        Ok(apus_connection::new(connected, &host.shared))
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_connection_peer_key(
    connection: Option<&apus_connection>,
    key: Out<'_, [u8; 32]>,
) -> i32 {
    call(|| {
        let connection = handle(connection, "connection")?;
        let proved = connection.connection.peer_key().ok_or_else(|| {
            let what =
                "the peer has proved no key of its own: there is a shared key alone, or none";
            Failure::new(Status::NoKey, what)
        })?;
        put(key, *proved.bytes(), "key")
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_connection_peer_name(connection: Option<&apus_connection>) -> *const c_char {
    // The text lives as long as the handle.
    connection.map_or(c"".as_ptr(), |connection| connection.name.as_ptr())
}
