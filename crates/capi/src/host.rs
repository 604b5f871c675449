//! `apus_host`.

use std::ffi::{CString, c_char};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use apus_udp::{End, Host, Stats, forks};

use crate::config::{apus_config, read_keys};
use crate::connection::apus_connection;
use crate::failure::{Failure, call};
use crate::pointer::{Foreign, Out, given, hand_out, put, text};

/// A number of flows above every limit.
const TOO_MANY_FLOWS: u32 = 65_536;

/// A host. Handles created from it keep it running.
pub struct apus_host {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) host: Host,
    address: CString,
    /// [`forks`] in the process that started the host.
    forks: u32,
}

/// A handle of a host, or one that was created from it.
pub(crate) trait OfHost {
    /// Returns the state that the handle shares with all handles of its host.
    fn shared(&self) -> &Shared;
}

impl OfHost for apus_host {
    fn shared(&self) -> &Shared {
        &self.shared
    }
}

/// Returns the target of a handle. Fails if a parent process created the handle.
pub(crate) fn handle<'a, T: OfHost>(pointer: Option<&'a T>, name: &str) -> Result<&'a T, Failure> {
    let handle = given(pointer, name)?;
    if handle.shared().is_of_parent() {
        let what = format!(
            "`{name}` belongs to the process of which this one is a fork; start a host in this process"
        );
        return Err(Failure::invalid(what));
    }
    Ok(handle)
}

/// Frees a handle. A forked process does not drop the handles of its parent: it has none of the parent's threads, and would
/// end the parent's connections.
pub(crate) fn free<T: OfHost>(handle: Option<Box<T>>) {
    if handle.as_ref().is_some_and(|handle| handle.shared().is_of_parent()) {
        std::mem::forget(handle);
    }
}

/// `APUS_FOREVER`.
pub(crate) const FOREVER: u64 = u64::MAX;

impl Shared {
    /// Returns `true` if the host belongs to another process, and this process is a fork of it.
    fn is_of_parent(&self) -> bool {
        self.forks != forks()
    }

    /// Returns the output of the future. Fails after this timeout, or if this thread would wait for itself.
    pub(crate) fn wait<F: Future>(&self, future: F, timeout_ns: u64) -> Result<F::Output, Failure> {
        self.check_wait()?;
        let timeout = (timeout_ns != FOREVER).then(|| Duration::from_nanos(timeout_ns));
        self.host.block_on(future, timeout).ok_or_else(Failure::timeout)
    }

    /// Refuses a wait of a thread that has locked a region of this host, because an engine may wait for the region.
    fn check_wait(&self) -> Result<(), Failure> {
        if self.host.would_deadlock() { Err(End::WouldDeadlock.into()) } else { Ok(()) }
    }
}

/// Parses an address.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::invalid(format!("`{text}` is not an address; use one like 10.0.0.1:48700"))
    })
}

/// `apus_stats`: sums over engines. For delays: the median and the 99th percentile, or 0 without samples.
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
extern "C" fn apus_host_start(config: Option<&apus_config>, host: Out<'_, Box<apus_host>>) -> i32 {
    hand_out(host, "host", || {
        let config = given(config, "config")?.finish()?;
        let forks = forks();
        let host = Host::start(config)?;
        let address = CString::new(host.local_addr().to_string()).unwrap_or_default();
        Ok(apus_host { shared: Arc::new(Shared { host, address, forks }) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_host_address(host: Option<&apus_host>) -> *const c_char {
    // The text lives as long as the handle.
    host.map_or(c"".as_ptr(), |host| host.shared.address.as_ptr())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_host_set_keys(host: Option<&apus_host>, key_file: *const c_char) -> i32 {
    call(|| {
        // SAFETY: the header requires a text.
        let keys = read_keys(unsafe { text(key_file, "key_file") }?)?;
        Ok(handle(host, "host")?.shared.host.set_keys(&keys)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_host_drive(host: Option<&apus_host>) -> i32 {
    call(|| {
        handle(host, "host")?.shared.host.drive();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_host_drain(host: Option<&apus_host>, timeout_ns: u64) -> i32 {
    call(|| {
        let shared = &handle(host, "host")?.shared;
        shared.check_wait()?;
        // `APUS_FOREVER` is 584 years.
        let drained = shared.host.drain(Duration::from_nanos(timeout_ns));
        drained.then_some(()).ok_or_else(Failure::timeout)
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_host_stats(host: Option<&apus_host>, stats: Out<'_, apus_stats>) -> i32 {
    call(|| {
        let host = handle(host, "host")?;
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
        put(stats, sums, "stats")
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_connect(
    host: Option<&apus_host>,
    peer: *const c_char,
    flows: u32,
    timeout_ns: u64,
    connection: Out<'_, Box<apus_connection>>,
) -> i32 {
    let classes = vec![0; flows.min(TOO_MANY_FLOWS) as usize];
    // SAFETY: the header requires what `apus_connect_classes` requires, except for the classes.
    unsafe { apus_connect_classes(host, peer, classes.as_ptr(), flows, timeout_ns, connection) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_connect_classes(
    host: Option<&apus_host>,
    peer: *const c_char,
    classes: *const u8,
    flows: u32,
    timeout_ns: u64,
    connection: Out<'_, Box<apus_connection>>,
) -> i32 {
    hand_out(connection, "connection", || {
        let host = handle(host, "host")?;
        let flows = flows.min(TOO_MANY_FLOWS) as usize;
        // SAFETY: the header requires a text and as many classes as flows.
        let (peer, classes) =
            unsafe { (text(peer, "peer")?, Foreign::new(classes.cast(), flows, "classes")?) };
        let peer = address(peer)?;
        let connecting = host.shared.host.connect_async(peer, classes.as_ref(), None);
        let connected = host.shared.wait(connecting, timeout_ns)??;
        Ok(apus_connection::new(connected, &host.shared))
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_accept(
    host: Option<&apus_host>,
    timeout_ns: u64,
    connection: Out<'_, Box<apus_connection>>,
) -> i32 {
    hand_out(connection, "connection", || {
        let host = handle(host, "host")?;
        let accepted = host.shared.wait(host.shared.host.accept_async(), timeout_ns)??;
        Ok(apus_connection::new(accepted, &host.shared))
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_host_free(host: Option<Box<apus_host>>) {
    free(host);
}
