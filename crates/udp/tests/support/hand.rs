//! A relay between two inline hosts. The thread that drives the hosts operates the relay.

use std::future::Future;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use apus_udp::{Connection, Host};

use super::any;
use super::pair::TOO_MANY;

/// A relay that forwards datagrams only on request.
pub struct Hand {
    front: UdpSocket,
    back: UdpSocket,
    client: Option<SocketAddr>,
}

impl Hand {
    pub fn new(server: SocketAddr) -> Self {
        let [front, back] = [(); 2].map(|()| UdpSocket::bind(any()).expect("a socket"));
        for socket in [&front, &back] {
            socket.set_nonblocking(true).expect("nonblocking");
        }
        back.connect(server).expect("connect");
        Self { front, back, client: None }
    }

    /// Returns the address to which clients connect.
    pub fn address(&self) -> SocketAddr {
        self.front.local_addr().expect("bound")
    }

    /// Makes a client connect to the server over the relay, with `flows` flows; both hosts are inline. Datagrams that the
    /// client sends after it is connected stay in the relay.
    pub fn connect(&mut self, client: &Host, server: &Host, flows: u32) -> Connection {
        let (address, classes) = (self.address(), vec![0; flows as usize]);
        let mut context = Context::from_waker(Waker::noop());
        let mut connecting = pin!(client.connect_async(address, &classes, None));
        for _ in 0..TOO_MANY {
            // Polling drives the client.
            if let Poll::Ready(connection) = connecting.as_mut().poll(&mut context) {
                return connection.expect("a server");
            }
            self.hand_on();
            server.drive();
            self.hand_back();
        }
        panic!("no answer");
    }

    /// Forwards the datagrams that the client has sent to the server.
    pub fn hand_on(&mut self) {
        for datagram in self.take() {
            self.back.send(&datagram).expect("sent");
        }
    }

    /// Returns the datagrams that the client has sent.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        let mut buffer = vec![0; 65_536];
        let mut all = Vec::new();
        while let Ok((length, from)) = self.front.recv_from(&mut buffer) {
            self.client = Some(from);
            all.push(buffer[..length].to_vec());
        }
        all
    }

    /// Forwards the datagrams that the server has sent to the client.
    pub fn hand_back(&self) {
        let mut buffer = vec![0; 65_536];
        while let (Ok(length), Some(client)) = (self.back.recv(&mut buffer), self.client) {
            self.front.send_to(&buffer[..length], client).expect("sent");
        }
    }

    /// Returns the datagrams that the server has sent.
    pub fn take_back(&self) -> Vec<Vec<u8>> {
        let mut buffer = vec![0; 65_536];
        let next = || self.back.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec());
        std::iter::from_fn(next).collect()
    }

    /// Forwards earlier datagrams of the server to the client.
    pub fn give_back(&self, datagrams: &[Vec<u8>]) {
        let client = self.client.expect("a client that has sent something");
        for datagram in datagrams {
            self.front.send_to(datagram, client).expect("sent");
        }
    }

    /// Forwards datagrams to the client as one aggregate: all but the last are as long as the first. Returns `true` if the
    /// kernel supports this.
    pub fn give_back_together(&self, datagrams: &[Vec<u8>]) -> bool {
        let length = datagrams.first().map_or(0, Vec::len) as i32;
        // SAFETY: the value is valid for the size of an int.
        #[expect(unsafe_code, reason = "the standard library does not have this option")]
        let set = unsafe {
            libc::setsockopt(
                self.front.as_raw_fd(),
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                (&raw const length).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
        let client = self.client.expect("a client that has sent something");
        set == 0 && self.front.send_to(&datagrams.concat(), client).is_ok()
    }
}
