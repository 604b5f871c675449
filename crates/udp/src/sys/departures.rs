//! Departures of datagrams: timestamps of the kernel and the NIC, read from the socket's error queue.
#![expect(unsafe_code, reason = "system calls take pointers")]

use std::io;
use std::mem;

use super::control::{CONTROL_BYTES, Control};
use super::receive::instant;
use super::socket::{Socket, check};

/// Timestamps that a stamped send requests (a control message of type SO_TIMESTAMPING): from the NIC's driver and from
/// the NIC.
pub(super) const ASKED: u32 =
    libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_TX_HARDWARE;

/// Options of the socket: timestamps are numbered, and reported without the datagram.
pub(super) const REPORTED: u32 = libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// The report of a burst's departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// Number of the burst among the stamped ones, from 0, modulo 2^32.
    pub(crate) number: u32,
    /// The kernel's timestamp in nanoseconds of the real-time clock, if there is one.
    pub(crate) left_at: Option<i128>,
    /// The NIC's timestamp in nanoseconds of its clock, if there is one.
    pub(crate) nic_left_at: Option<i128>,
}

impl Socket {
    /// Returns the next report, if one has arrived.
    pub(crate) fn departure(&self) -> io::Result<Option<Departure>> {
        let mut control = Control::EMPTY;
        loop {
            // SAFETY: all-zero bytes are a valid msghdr: null pointers and zero lengths.
            let mut header: libc::msghdr = unsafe { mem::zeroed() };
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
            // SAFETY: the header points to controls of the length given, which live until the call
            // returns, and to nothing else.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_recvmsg,
                    self.raw(),
                    &raw mut header,
                    libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
                )
            };
            match check(result as i32) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
                // Other errors in the queue (ICMP) are ignored: timers detect lost packets.
                Ok(_) => {
                    if let Some(departure) = departure(&control, header.msg_controllen) {
                        return Ok(Some(departure));
                    }
                }
            }
        }
    }
}

fn departure(control: &Control, length: usize) -> Option<Departure> {
    let (mut number, mut stamps) = (None, None);
    for (level, kind, data) in control.messages(length) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                stamps = Some((instant(data, 0), instant(data, 2)));
            }
            // A sock_extended_err: errno (4 bytes), origin, type, code, padding, info, data.
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                let origin = data.get(4).copied();
                if origin == Some(libc::SO_EE_ORIGIN_TIMESTAMPING) {
                    number = data.get(12..16).and_then(|b| b.first_chunk().copied());
                }
            }
            _ => {}
        }
    }
    let (left_at, nic_left_at) = stamps?;
    Some(Departure { number: u32::from_ne_bytes(number?), left_at, nic_left_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports have the form in which the kernel writes them (Documentation/networking/timestamping.rst, §2.1.3 and
    /// §1.3.3).
    #[test]
    fn a_report_is_distinguished_from_other_errors() {
        let error = |origin: u8, number: u32| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&libc::ENOMSG.to_ne_bytes());
            bytes[4] = origin;
            bytes[12..].copy_from_slice(&number.to_ne_bytes());
            bytes
        };
        let mut stamps = [0; 48];
        stamps[..8].copy_from_slice(&5i64.to_ne_bytes());
        stamps[8..16].copy_from_slice(&7i64.to_ne_bytes());
        let mut control = Control::EMPTY;
        let end = control.put(0, libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &stamps);
        let end = control.put(end, libc::IPPROTO_IP, libc::IP_RECVERR, &error(4, 9));
        let expected = Departure { number: 9, left_at: Some(5_000_000_007), nic_left_at: None };
        assert_eq!(departure(&control, end), Some(expected));
        let icmp = 2;
        let mut control = Control::EMPTY;
        let end = control.put(0, libc::IPPROTO_IP, libc::IP_RECVERR, &error(icmp, 9));
        assert_eq!(departure(&control, end), None);
    }
}
