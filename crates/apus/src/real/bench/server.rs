//! The other end: a region for writes, and an echo of bare datagrams on request.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use apus_udp::{Access, Connection, Host, Request};

use crate::failure::Failure;

/// Bytes of the region.
pub(super) const REGION: usize = 16 << 20;
/// Message that requests the echo.
pub(super) const ECHO: &[u8] = b"echo";
/// A datagram of this length ends the echo.
pub(super) const END_OF_ECHO: usize = 1;
/// Time without datagrams after which the echo ends: its end was lost.
const SILENCE: Duration = Duration::from_secs(1);

/// Serves one client until it closes.
pub(super) fn serve(host: &Host) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Run(error.to_string());
    let region = host.register(vec![0; REGION], Access::ReadWrite).map_err(failed)?;
    let bind = SocketAddr::new(host.local_addr().ip(), 0);
    let socket = UdpSocket::bind(bind).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let client = host.accept().map_err(|error| Failure::Run(error.to_string()))?;
    let port = socket.local_addr().map_err(failed)?.port();
    greet(&client, region.key().get(), port)?;
    loop {
        host.drive();
        match client.try_receive() {
            Ok(None) => {}
            Ok(Some(message)) if message.bytes == ECHO => echo(host, &socket),
            Ok(Some(_)) => return Err(Failure::Run("the peer is no `apus bench udp`".to_owned())),
            Err(_) => return Ok(()),
        }
    }
}

/// Sends the region, its length, and the address of the echo.
fn greet(client: &Connection, region: u64, port: u16) -> Result<(), Failure> {
    let port = u64::from(port);
    let greeting = [region, REGION as u64, port].map(u64::to_be_bytes).concat();
    let told = client.submit(Request::message(greeting));
    told.map(drop).map_err(|error| Failure::Run(error.to_string()))
}

/// Echoes every datagram. The engine is driven until the first one arrives, so that the request is
/// acknowledged, even if it was sent twice.
fn echo(host: &Host, socket: &UdpSocket) {
    let mut begun = false;
    let mut buffer = [0; 2048];
    let mut heard = Instant::now();
    let mut polls = 0u32;
    loop {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            if length == END_OF_ECHO {
                return;
            }
            begun = true;
            // A client reports missing answers.
            let _ = socket.send_to(&buffer[..length], from);
            polls = 0;
        }
        if !begun {
            host.drive();
        }
        // The clock is not part of the round trip.
        polls += 1;
        if polls.is_multiple_of(1 << 14) {
            if heard.elapsed() > SILENCE {
                return;
            }
        } else if polls == 1 {
            heard = Instant::now();
        }
    }
}
