//! Notifications to the service manager (sd_notify(3)): a datagram to the socket that `NOTIFY_SOCKET` names.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// Environment variable with the path of the service manager's socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Sends a state such as `READY=1` to the service manager, if there is one. A failure is only logged, because the
/// service works without the notification.
pub fn notify(state: &str) {
    let Some(path) = env::var_os(VARIABLE) else { return };
    if let Err(error) = send(path.as_bytes(), state) {
        tracing::warn!(target: "apus::service", %error, state, "{VARIABLE} cannot be notified");
    }
}

/// Tells the service manager that the service reads its files again; `READY=1` must follow. The manager needs the time to
/// distinguish this reload from earlier ones (`Type=notify-reload`).
pub fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
}

fn send(path: &[u8], state: &str) -> io::Result<()> {
    let address = match path.split_first() {
        // An abstract socket (unix(7)).
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reaches_sockets_with_a_path_and_with_an_abstract_name() {
        let name = format!("apus-notify-{}", std::process::id());
        let path = env::temp_dir().join(&name);
        let of_path = UnixDatagram::bind(&path).expect("a socket");
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let of_name = UnixDatagram::bind_addr(&address).expect("a socket");
        let mut bytes = [0; 64];
        for (socket, at) in [(of_path, path.display().to_string()), (of_name, format!("@{name}"))] {
            send(at.as_bytes(), "READY=1").expect("sent");
            let length = socket.recv(&mut bytes).expect("a state");
            assert_eq!(&bytes[..length], b"READY=1");
        }
        std::fs::remove_file(&path).expect("the socket");
        assert!(send(path.display().to_string().as_bytes(), "READY=1").is_err());
    }
}
