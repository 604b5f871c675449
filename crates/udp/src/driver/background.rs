//! The events on which the background thread of an engine sleeps.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apus_units::Span;
use rustix::event::epoll;

use super::alarm::Alarm;
use crate::engine::Engine;
use crate::mailbox::Mailbox;
use crate::sys::Sockets;

/// Identifiers of the events.
const SOCKET: u64 = 0;
const WAKEUP: u64 = 1;
const ALARM: u64 = 2;
/// Number of identifiers.
const EVENTS: usize = 3;

/// The events on which the background thread sleeps: datagrams at the socket while no call leads, wake-ups by other
/// threads, and the alarm.
pub(super) struct Background {
    epoll: OwnedFd,
    /// The engine's sockets; `None` after the engine has ended.
    socket: Mutex<Option<Arc<Sockets>>>,
    /// Whether the socket reports departures.
    reports: bool,
    pub(super) alarm: Alarm,
}

/// Events that have ended a sleep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WokenBy {
    /// Whether another thread has woken this one.
    pub(crate) thread: bool,
    /// Whether the alarm has gone off.
    pub(super) alarm: bool,
}

impl Background {
    /// Returns the events for the background thread of `engine`. `soon` is the delay of [`Alarm::set_soon`].
    ///
    /// # Errors
    /// If the system cannot create an epoll instance or a timer.
    pub(super) fn new(engine: &Engine, soon: Span) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let alarm = Alarm::new(engine.epoch(), soon)?;
        let watch = |fd, event| {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(event), epoll::EventFlags::IN)
        };
        let socket = engine.sockets();
        watch(engine.mailbox.background_wakeup().as_fd(), WAKEUP)?;
        watch(alarm.as_fd(), ALARM)?;
        watch(socket.as_fd(), SOCKET)?;
        let reports = engine.reports_departures();
        Ok(Self { epoll, socket: Mutex::new(Some(socket)), reports, alarm })
    }

    /// Returns the locked socket; `None` after the engine has ended.
    pub(super) fn socket(&self) -> MutexGuard<'_, Option<Arc<Sockets>>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether datagrams wake the thread.
    pub(super) fn watch_socket(&self, watch: bool) {
        let Some(socket) = &*self.socket() else { return };
        let (epoll, socket, events) = (&self.epoll, socket.as_fd(), epoll::EventFlags::IN);
        let data = epoll::EventData::new_u64(SOCKET);
        // Each of these calls fails only for lack of memory.
        let _ = match (watch, self.reports) {
            (true, false) => epoll::modify(epoll, socket, data, events),
            (false, false) => epoll::modify(epoll, socket, data, epoll::EventFlags::empty()),
            // Reports of departures are socket errors, which epoll reports for every registered socket. Therefore the
            // socket is removed.
            (true, true) => epoll::add(epoll, socket, data, events),
            (false, true) => epoll::delete(epoll, socket),
        };
    }

    /// Sleeps until an event, and clears pending wake-ups. The caller must reset the alarm.
    pub(super) fn sleep(&self, mailbox: &Mailbox, idle: impl FnOnce() -> bool) -> WokenBy {
        mailbox.sleep_in_background(idle, || {
            let none = epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(SOCKET),
            };
            let mut events = [none; EVENTS];
            // This fails only if a signal interrupts it.
            let count = epoll::wait(&self.epoll, &mut events[..], None).unwrap_or(0);
            let has = |event| events[..count].iter().any(|woken| woken.data.u64() == event);
            WokenBy { thread: has(WAKEUP), alarm: has(ALARM) }
        })
    }
}
