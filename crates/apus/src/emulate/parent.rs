//! What a host's process says to the one that started it, and where hosts listen.

use std::io::{self, Write};
use std::net::SocketAddr;

use super::network::address;
use super::spec::PORT;

/// Writes a line to whoever started this process; one that is gone ends it by closing its input.
pub fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Where a host listens.
pub fn socket(host: u32) -> Result<SocketAddr, String> {
    let address = address(host).parse().map_err(|error| format!("{error}"))?;
    Ok(SocketAddr::new(address, PORT))
}
