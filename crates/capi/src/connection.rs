//! `apus_connection`: messages, state, and end of a connection.

use std::ffi::{CString, c_char, c_void};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::task::Poll;

use apus_udp::{Connection, End, Message, OnePort, async_channel};

use crate::config::qlog;
use crate::failure::{Failure, Status, call};
use crate::host::{OfHost, Shared, free, handle};
use crate::pointer::{Out, given, put, text};

/// A connection.
pub struct apus_connection {
    pub(crate) connection: Connection,
    /// Messages that did not fit into a caller's buffer. They are in a channel, so that a call that already waits also
    /// receives them.
    kept: (async_channel::Sender<Message>, async_channel::Receiver<Message>),
    peer: CString,
    pub(crate) name: CString,
    /// A reference that keeps the engines running.
    host: Arc<Shared>,
}

/// `apus_flow_state`: 0 where the algorithm lacks a value.
#[repr(C)]
#[derive(Default)]
#[allow(dead_code)] // C reads them
pub struct apus_flow_state {
    cwnd: f64,
    fabric_cwnd: f64,
    endpoint_cwnd: f64,
    target_ns: u64,
    pacing_ns: u64,
    smoothed_rtt_ns: u64,
    packets_lost: u64,
}

impl OfHost for apus_connection {
    fn shared(&self) -> &Shared {
        &self.host
    }
}

impl apus_connection {
    pub(crate) fn new(connection: Connection, host: &Arc<Shared>) -> Self {
        let peer = CString::new(connection.peer().to_string()).unwrap_or_default();
        let name = CString::new(connection.peer_name().unwrap_or_default()).unwrap_or_default();
        Self { connection, kept: async_channel::unbounded(), peer, name, host: Arc::clone(host) }
    }

    /// Returns `true` if the connection belongs to this host.
    pub(crate) fn is_of(&self, host: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.host, host)
    }

    /// Returns the next message; messages that did not fit into a buffer come first. No lock is
    /// held, so that concurrent calls continue and observe their own timeouts.
    async fn next(&self) -> Result<Message, End> {
        let mut kept = pin!(self.kept.1.recv());
        let mut fresh = pin!(self.connection.receive_async());
        poll_fn(|context| match kept.as_mut().poll(context) {
            // The sender is kept too, so the channel is never closed.
            Poll::Ready(Ok(message)) => Poll::Ready(Ok(message)),
            Poll::Ready(Err(_)) | Poll::Pending => fresh.as_mut().poll(context),
        })
        .await
    }

    /// Checks that the flow exists, and returns its index.
    pub(crate) fn check_flow(&self, flow: u32) -> Result<usize, Failure> {
        let flows = self.connection.flows();
        if (flow as usize) < flows {
            return Ok(flow as usize);
        }
        Err(Failure::invalid(format!("unknown flow {flow}: the connection has {flows}")))
    }
}

#[unsafe(no_mangle)]
extern "C" fn apus_connection_peer(connection: Option<&apus_connection>) -> *const c_char {
    // The text lives as long as the handle.
    connection.map_or(c"".as_ptr(), |connection| connection.peer.as_ptr())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_connection_record(
    connection: Option<&apus_connection>,
    directory: *const c_char,
) -> i32 {
    call(|| {
        // SAFETY: the header requires a text.
        let directory = unsafe { text(directory, "directory") }?;
        handle(connection, "connection")?.connection.record(&qlog("directory", directory)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_connection_max_message(connection: Option<&apus_connection>) -> u64 {
    connection.map_or(0, |connection| connection.connection.max_message())
}

#[unsafe(no_mangle)]
extern "C" fn apus_connection_state(
    connection: Option<&apus_connection>,
    flow: u32,
    state: Out<'_, apus_flow_state>,
) -> i32 {
    call(|| {
        let connection = handle(connection, "connection")?;
        let flow = connection.check_flow(flow)?;
        let (snapshot, counters) = connection.connection.flow_state(flow)?;
        let ns = |span: Option<apus_units::Span>| span.map_or(0, |span| span.as_ps() / 1_000);
        let read = apus_flow_state {
            cwnd: snapshot.cwnd,
            fabric_cwnd: snapshot.fabric_cwnd.unwrap_or(0.0),
            endpoint_cwnd: snapshot.endpoint_cwnd.unwrap_or(0.0),
            target_ns: ns(snapshot.target_delay),
            pacing_ns: ns(snapshot.pacing_delay),
            smoothed_rtt_ns: ns(snapshot.smoothed_rtt),
            packets_lost: counters.fast_losses + counters.timeout_losses,
        };
        put(state, read, "state")
    })
}

/// `apus_port`.
#[repr(C)]
#[derive(Default)]
#[allow(dead_code)] // C reads them
pub struct apus_port {
    port: u16,
    usable: u8,
    sent: u64,
    good: u64,
    marked: u64,
    lost: u64,
    timeouts: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_connection_ports(
    connection: Option<&apus_connection>,
    ports: *mut apus_port,
    capacity: usize,
    count: Out<'_, usize>,
    one_port: Out<'_, *const c_char>,
) -> i32 {
    call(|| {
        let connection = handle(connection, "connection")?;
        let count = given(count, "count")?;
        if ports.is_null() && capacity > 0 {
            return Err(Failure::invalid("`ports`, with a `capacity`, is NULL"));
        }
        let paths = connection.connection.paths()?;
        for (place, port) in paths.ports.iter().take(capacity).enumerate() {
            let counters = port.counters;
            let port = apus_port {
                port: port.port,
                usable: port.usable.into(),
                sent: counters.sent,
                good: counters.good,
                marked: counters.marked,
                lost: counters.lost,
                timeouts: counters.timeouts,
            };
            // SAFETY: the header requires room for `capacity` ports.
            unsafe { ports.add(place).write(port) };
        }
        if let Some(one_port) = one_port {
            one_port.write(match paths.one_port {
                None => ptr::null(),
                Some(OnePort::Off) => c"off".as_ptr(),
                Some(OnePort::PeerTooOld) => c"peer_too_old".as_ptr(),
                Some(OnePort::PeerAcceptsOne) => c"peer_accepts_one".as_ptr(),
                Some(OnePort::Unconfirmed) => c"unconfirmed".as_ptr(),
            });
        }
        count.write(paths.ports.len());
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_receive(
    connection: Option<&apus_connection>,
    buffer: *mut c_void,
    capacity: usize,
    timeout_ns: u64,
    length: Out<'_, usize>,
    flow: Out<'_, u32>,
) -> i32 {
    call(|| {
        let connection = handle(connection, "connection")?;
        if length.is_none() || (buffer.is_null() && capacity > 0) {
            return Err(Failure::invalid("`length`, or `buffer` with a `capacity`, is NULL"));
        }
        let message = connection.host.wait(connection.next(), timeout_ns)??;
        let bytes = message.bytes.len();
        put(length, bytes, "length")?;
        if bytes > capacity {
            // An unbounded channel that is never closed accepts it.
            let _ = connection.kept.0.try_send(message);
            let what = format!("the message has {bytes} bytes, the buffer {capacity}");
            return Err(Failure::new(Status::TooSmall, what));
        }
        // SAFETY: the header requires `capacity` bytes, which suffice; memory of two owners does not overlap.
        unsafe { ptr::copy_nonoverlapping(message.bytes.as_ptr(), buffer.cast(), bytes) };
        if let Some(flow) = flow {
            flow.write(message.flow as u32);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_close(connection: Option<&apus_connection>, timeout_ns: u64) -> i32 {
    call(|| {
        let connection = handle(connection, "connection")?;
        connection.host.wait(connection.connection.close_async(), timeout_ns)
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_connection_free(connection: Option<Box<apus_connection>>) {
    free(connection);
}
