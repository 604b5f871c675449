//! The clients of a switch. Each client has its own socket towards the server.

use std::collections::BTreeMap;

use apus_units::{Span, Time};

use crate::session::Peer;

/// Maximum number of clients. Each client needs a socket. deviation: no source; a quarter of the open files that Linux
/// allows a process by default.
pub(super) const MAX_CLIENTS: usize = 256;

/// The result of [`Clients::find`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A client that has a socket.
    Known(u32),
    /// A new client, which needs a socket. If there is a socket with this number already, the client replaces an idle
    /// one.
    New(u32),
    /// The switch has its maximum number of clients, and none of them is idle.
    Full,
}

struct Client {
    peer: Peer,
    last: Time,
}

/// The clients by number and by address.
pub(super) struct Clients {
    list: Vec<Client>,
    by_peer: BTreeMap<Peer, u32>,
    max: usize,
    /// Time without datagrams after which another client may replace a client.
    idle: Span,
}

impl Clients {
    pub(super) fn new(max: usize, idle: Span) -> Self {
        Self { list: Vec::new(), by_peer: BTreeMap::new(), max, idle }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the address of a client.
    pub(super) fn peer(&self, client: u32) -> Peer {
        self.list[client as usize].peer
    }

    /// Records that a datagram came from or for a client.
    pub(super) fn touch(&mut self, client: u32, now: Time) {
        self.list[client as usize].last = now;
    }

    /// Finds the client with this address, or adds it.
    pub(super) fn find(&mut self, peer: Peer, now: Time) -> Found {
        if let Some(&client) = self.by_peer.get(&peer) {
            self.touch(client, now);
            return Found::Known(client);
        }
        let new = Client { peer, last: now };
        let number = if self.list.len() < self.max {
            self.list.push(new);
            self.list.len() - 1
        } else {
            let oldest = self.list.iter().enumerate().min_by_key(|(_, client)| client.last);
            let Some((number, oldest)) = oldest.filter(|(_, it)| now.since(it.last) > self.idle)
            else {
                return Found::Full;
            };
            self.by_peer.remove(&oldest.peer);
            self.list[number] = new;
            number
        };
        // At most `max`, which fits.
        self.by_peer.insert(peer, number as u32);
        Found::New(number as u32)
    }

    /// Removes the client that was added last and for which no socket could be opened.
    pub(super) fn forget_last(&mut self) {
        if let Some(client) = self.list.pop() {
            self.by_peer.remove(&client.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Peer {
        Peer::from(std::net::SocketAddr::from(([10, 0, 0, 1], port)))
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn a_client_keeps_its_number_and_an_idle_one_loses_it_only_to_a_new_one() {
        let mut clients = Clients::new(2, Span::from_secs(15));
        assert_eq!(clients.find(peer(1), at(0)), Found::New(0));
        assert_eq!(clients.find(peer(2), at(1)), Found::New(1));
        assert_eq!(clients.find(peer(1), at(2)), Found::Known(0));
        assert_eq!(clients.find(peer(3), at(16)), Found::Full, "both came within 15 s");
        clients.touch(1, at(16));
        assert_eq!(clients.find(peer(3), at(18)), Found::New(0), "the first was idle for 16 s");
        assert_eq!((clients.peer(0), clients.len()), (peer(3), 2));
        assert_eq!(clients.find(peer(1), at(18)), Found::Full);
    }

    #[test]
    fn one_address_of_the_client_at_two_addresses_of_the_switch_is_two_clients() {
        let mut clients = Clients::new(8, Span::from_secs(15));
        let local = |last| Peer { local: Some([10, 0, 0, last].into()), ..peer(1) };
        assert_eq!(clients.find(local(1), at(0)), Found::New(0));
        assert_eq!(clients.find(local(2), at(0)), Found::New(1));
    }
}
