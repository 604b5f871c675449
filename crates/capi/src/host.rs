//! `apus_host`.

use std::ffi::{CString, c_char};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use apus_udp::{ConnectError, Connection, Host, Mode, Stats, keyfile};

use crate::config::{apus_config, settings};
use crate::connection::apus_connection;
use crate::failure::{Failure, Status, call};
use crate::pointer::{Foreign, get, hand_out, put, take_back, text};
use crate::wait::wait;

/// A host. Handles created from it keep it running.
pub struct apus_host {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) host: Host,
    /// Whether waiting calls must drive the engine.
    pub(crate) inline: bool,
    address: CString,
}

/// `apus_stats`: sums over engines; of delays the median and the 99th percentile, 0 without any.
#[repr(C)]
#[derive(Default)]
#[allow(dead_code)] // C reads them
pub struct apus_stats {
    datagrams_sent: u64,
    datagrams_received: u64,
    payload_sent: u64,
    payload_received: u64,
    ops: u64,
    connections: u64,
    fabric_rtt_p50_us: f64,
    fabric_rtt_p99_us: f64,
    endpoint_delay_p50_us: f64,
    endpoint_delay_p99_us: f64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_host_start(config: *const apus_config, host: *mut *mut apus_host) -> i32 {
    call(|| {
        let make = || {
            // SAFETY: the header requires a handle.
            let config = unsafe { settings(config) }?;
            let inline = config.mode == Mode::Inline;
            let host = Host::start(config)?;
            let address = CString::new(host.local_addr().to_string()).unwrap_or_default();
            Ok(apus_host { shared: Arc::new(Shared { host, inline, address }) })
        };
        // SAFETY: the header requires room for a pointer.
        unsafe { hand_out(host, "host", make) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_host_address(host: *const apus_host) -> *const c_char {
    // SAFETY: the header requires a handle; the text lives as long as it.
    let host = unsafe { get(host, "host") };
    host.map_or(c"".as_ptr(), |host| host.shared.address.as_ptr())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_host_set_keys(host: *const apus_host, key_file: *const c_char) -> i32 {
    call(|| {
        // SAFETY: the header requires a handle and a text.
        let (host, path) = unsafe { (get(host, "host")?, text(key_file, "key_file")?) };
        let keys = keyfile::read(Path::new(path));
        let keys = keys.map_err(|error| Failure::invalid(error.to_string()))?;
        Ok(host.shared.host.set_keys(&keys)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_host_drive(host: *const apus_host) -> i32 {
    call(|| {
        // SAFETY: the header requires a handle.
        unsafe { get(host, "host") }?.shared.host.drive();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_host_stats(host: *const apus_host, stats: *mut apus_stats) -> i32 {
    call(|| {
        // SAFETY: the header requires a handle.
        let host = unsafe { get(host, "host") }?;
        let mut sums = apus_stats::default();
        let mut busiest: Option<&Stats> = None;
        for engine in host.shared.host.stats() {
            let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            sums.datagrams_sent += read(&engine.datagrams_sent);
            sums.datagrams_received += read(&engine.datagrams_received);
            sums.payload_sent += read(&engine.payload_sent);
            sums.payload_received += read(&engine.payload_received);
            sums.ops += read(&engine.ops);
            sums.connections += read(&engine.connections);
            if busiest.is_none_or(|b| b.fabric_rtt.count() < engine.fabric_rtt.count()) {
                busiest = Some(engine);
            }
        }
        if let Some(engine) = busiest {
            let quantile = |h: &apus_udp::Histogram, share| h.quantile_us(share).unwrap_or(0.0);
            sums.fabric_rtt_p50_us = quantile(&engine.fabric_rtt, 0.5);
            sums.fabric_rtt_p99_us = quantile(&engine.fabric_rtt, 0.99);
            sums.endpoint_delay_p50_us = quantile(&engine.endpoint_delay, 0.5);
            sums.endpoint_delay_p99_us = quantile(&engine.endpoint_delay, 0.99);
        }
        // SAFETY: the header requires room for the structure.
        unsafe { put(stats, sums, "stats") }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_connect(
    host: *const apus_host,
    peer: *const c_char,
    flows: u32,
    timeout_ns: u64,
    connection: *mut *mut apus_connection,
) -> i32 {
    call(|| {
        let make = || {
            // SAFETY: the header requires a handle and a text.
            let (host, peer) = unsafe { (get(host, "host")?, address(peer)?) };
            let connecting = host.shared.host.connect_async(peer, flows, None);
            host.connected(connecting, timeout_ns)
        };
        // SAFETY: the header requires room for a pointer.
        unsafe { hand_out(connection, "connection", make) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_connect_classes(
    host: *const apus_host,
    peer: *const c_char,
    classes: *const u8,
    flows: u32,
    timeout_ns: u64,
    connection: *mut *mut apus_connection,
) -> i32 {
    call(|| {
        let make = || {
            // SAFETY: the header requires a handle, a text and as many classes as flows.
            let (host, peer, classes) = unsafe {
                let classes = Foreign::new(classes.cast(), flows as usize, "classes")?;
                (get(host, "host")?, address(peer)?, classes)
            };
            let connecting = host.shared.host.connect_classes_async(peer, classes.as_ref(), None);
            host.connected(connecting, timeout_ns)
        };
        // SAFETY: the header requires room for a pointer.
        unsafe { hand_out(connection, "connection", make) }
    })
}

/// A peer's address.
///
/// # Safety
/// NULL or a text.
unsafe fn address(peer: *const c_char) -> Result<SocketAddr, Failure> {
    // SAFETY: as the caller promises.
    let peer = unsafe { text(peer, "peer") }?;
    peer.parse().map_err(|_| {
        Failure::invalid(format!("`{peer}` is not an address; use one like 10.0.0.1:48700"))
    })
}

impl apus_host {
    fn connected(
        &self,
        connecting: impl Future<Output = Result<Connection, ConnectError>>,
        timeout_ns: u64,
    ) -> Result<apus_connection, Failure> {
        let connected = wait(connecting, timeout_ns).ok_or_else(Failure::timeout)?;
        Ok(apus_connection::new(connected?, &self.shared))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_accept(
    host: *const apus_host,
    timeout_ns: u64,
    connection: *mut *mut apus_connection,
) -> i32 {
    call(|| {
        let make = || {
            // SAFETY: the header requires a handle.
            let host = unsafe { get(host, "host") }?;
            let accepted = wait(host.shared.host.accept_async(), timeout_ns);
            let accepted = accepted.ok_or_else(Failure::timeout)?;
            let accepted =
                accepted.map_err(|error| Failure::new(Status::Stopped, error.to_string()))?;
            Ok(apus_connection::new(accepted, &host.shared))
        };
        // SAFETY: the header requires room for a pointer.
        unsafe { hand_out(connection, "connection", make) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_host_free(host: *mut apus_host) {
    // SAFETY: the header requires a handle or NULL.
    unsafe { take_back(host) };
}
