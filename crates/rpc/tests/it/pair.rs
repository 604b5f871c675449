//! A server and a client in one process.

use std::sync::{Arc, Condvar, Mutex};

use apus_rpc::{Client, ClientOptions, Methods, Server, ServerOptions};
use apus_udp::{Config, Host};

use crate::support::{PATIENCE, SHARED, host, steady};

pub struct Pair {
    pub client: Client,
    pub server: Server,
    pub client_host: Arc<Host>,
    pub server_host: Arc<Host>,
}

pub fn settings() -> Config {
    steady(SHARED)
}

pub fn pair(methods: Methods) -> Pair {
    pair_with(methods, ServerOptions::default(), &ClientOptions::default())
}

pub fn pair_with(methods: Methods, server: ServerOptions, client: &ClientOptions) -> Pair {
    let [server_host, client_host] = [(); 2].map(|()| Arc::new(host(settings())));
    let server = Server::start_with(&server_host, methods, server).expect("a server");
    let client = Client::connect_with(&client_host, server_host.local_addr(), client);
    Pair { client: client.expect("connected"), server, client_host, server_host }
}

/// Returns a method that returns its payload.
pub fn echo() -> Methods {
    Methods::new().with("echo", |call| Ok(call.payload().clone()))
}

/// A door at which handlers wait until a test opens it.
#[derive(Default)]
pub struct Door {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Door {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Waits until the door is open.
    pub fn pass(&self) {
        let mut state = self.state.lock().expect("no panic");
        state.1 += 1;
        self.changed.notify_all();
        let state = self.changed.wait_timeout_while(state, PATIENCE, |state| !state.0);
        assert!(!state.expect("no panic").1.timed_out(), "the door stays closed");
    }

    /// Waits until `count` handlers have arrived at the door.
    pub fn wait_for(&self, count: usize) {
        let state = self.state.lock().expect("no panic");
        let state = self.changed.wait_timeout_while(state, PATIENCE, |state| state.1 < count);
        assert!(!state.expect("no panic").1.timed_out(), "fewer than {count} handlers came");
    }

    /// Returns the number of handlers that have arrived at the door.
    pub fn came(&self) -> usize {
        self.state.lock().expect("no panic").1
    }

    pub fn open(&self) {
        self.state.lock().expect("no panic").0 = true;
        self.changed.notify_all();
    }
}
