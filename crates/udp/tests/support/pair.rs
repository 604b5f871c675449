//! Two engines that one thread drives in turn, so that the content of each socket is known.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use apus_udp::{Config, Connection, Host, Mode, Op, Request, Stats};

use super::{config, host};

/// Maximum number of rounds without progress. Each round takes at least a microsecond.
pub const TOO_MANY: usize = 50_000_000;

pub struct Pair {
    pub client: Host,
    pub server: Host,
}

impl Pair {
    /// Returns two hosts and a connection; `configure` applies to both hosts.
    pub fn connect(configure: impl Fn(&mut Config)) -> (Self, [Connection; 2]) {
        let [client, server] = [(); 2].map(|()| {
            let mut config = config(Mode::Inline);
            configure(&mut config);
            host(config)
        });
        let pair = Self { client, server };
        let connection =
            pair.until(1, pair.client.connect_async(pair.server.local_addr(), &[0], None));
        let connection = connection.expect("a server");
        let accept = || {
            pair.client.drive();
            pair.server.drive();
            pair.server.try_accept()
        };
        let peer = std::iter::repeat_with(accept).take(TOO_MANY).flatten().next();
        (pair, [connection, peer.expect("a client")])
    }

    /// Drives both hosts, the client `steps` times as often, until a future of the client is ready.
    pub fn until<T>(&self, steps: usize, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..TOO_MANY {
            for _ in 0..steps {
                // Polling drives the client.
                if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                    return value;
                }
            }
            self.server.drive();
        }
        panic!("no progress");
    }

    pub fn stats(&self) -> [&Stats; 2] {
        [&self.client, &self.server].map(|host| host.stats().next().expect("an engine"))
    }
}

pub fn submit(connection: &Connection, request: Request) -> Op {
    connection.submit(request).expect("room")
}
