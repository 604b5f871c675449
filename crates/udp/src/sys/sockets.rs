//! The sockets of an engine: one at its address and, if the engine spreads packets over source ports, one for each
//! further port.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{Timespec, epoll};

use super::socket::{Socket, SocketOptions};

/// Maximum number of sockets that one call reports. deviation: no source; the next call reports the others.
const EVENTS: usize = 32;

/// The sockets of an engine.
#[derive(Debug)]
pub(crate) struct Sockets {
    first: Socket,
    more: Option<More>,
}

/// Further sockets.
#[derive(Debug)]
struct More {
    sockets: Box<[Socket]>,
    /// An epoll instance that reports which of all sockets have datagrams.
    epoll: OwnedFd,
}

impl Sockets {
    /// Opens `ports` sockets: the first at `address`, the others at the same IP address. The ports of the others are
    /// `next`, `next + 1` and so on, or are chosen by the system.
    ///
    /// # Errors
    /// The address that cannot be bound, and the reason.
    pub(crate) fn open(
        address: SocketAddr,
        ports: u16,
        next: Option<u16>,
        options: SocketOptions,
    ) -> Result<Self, (SocketAddr, io::Error)> {
        let first = Socket::open(address, options).map_err(|error| (address, error))?;
        if ports <= 1 {
            return Ok(Self { first, more: None });
        }
        let own = SocketOptions { shared: false, ..options };
        let open = |number: u16| {
            let port = next.map_or(0, |next| next.saturating_add(number - 1));
            let address = SocketAddr::new(address.ip(), port);
            let mut socket = Socket::open(address, own).map_err(|error| (address, error))?;
            socket.number = number as u8; // `ports` is at most 256
            Ok(socket)
        };
        let sockets: Box<[Socket]> = (1..ports).map(open).collect::<Result<_, _>>()?;
        let watch = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            for socket in std::iter::once(&first).chain(&sockets) {
                let number = epoll::EventData::new_u64(socket.number.into());
                epoll::add(&epoll, socket, number, epoll::EventFlags::IN)?;
            }
            Ok(epoll)
        };
        let epoll = watch().map_err(|error: rustix::io::Errno| (address, error.into()))?;
        Ok(Self { first, more: Some(More { sockets, epoll }) })
    }

    /// Returns the socket at the engine's address.
    #[inline]
    pub(crate) fn first(&self) -> &Socket {
        &self.first
    }

    /// Returns `true` if there is more than one socket.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.more.is_some()
    }

    /// Returns a socket by number, or the first one if there is no such socket.
    #[inline]
    pub(crate) fn get(&self, number: u8) -> &Socket {
        let more = self.more.as_ref().filter(|_| number > 0);
        more.and_then(|more| more.sockets.get(usize::from(number) - 1)).unwrap_or(&self.first)
    }

    /// Returns all sockets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Socket> {
        let more = self.more.iter().flat_map(|more| &more.sockets);
        std::iter::once(&self.first).chain(more)
    }

    /// Appends the numbers of further sockets with datagrams to `ready`.
    pub(crate) fn poll(&self, ready: &mut Vec<u8>) {
        let Some(more) = &self.more else { return };
        let none =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let (mut events, at_once) = ([none; EVENTS], Timespec { tv_sec: 0, tv_nsec: 0 });
        // This fails only if a signal interrupts it. The next call then reports the same sockets.
        let count = epoll::wait(&more.epoll, &mut events[..], Some(&at_once)).unwrap_or(0);
        let numbers = events[..count].iter().map(|event| event.data.u64() as u8); // below 256
        ready.extend(numbers.filter(|&number| number > 0));
    }

    /// Sets whether room to send in a socket is also an event.
    pub(crate) fn watch_room(&self, number: u8, watch: bool) {
        let Some(more) = &self.more else { return };
        let room = if watch { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        let data = epoll::EventData::new_u64(number.into());
        // This fails only for lack of memory.
        let _ = epoll::modify(&more.epoll, self.get(number), data, epoll::EventFlags::IN | room);
    }
}

/// The descriptor becomes readable when a datagram has arrived at a socket.
impl AsFd for Sockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.more.as_ref().map_or_else(|| self.first.as_fd(), |more| more.epoll.as_fd())
    }
}
