//! Calls of `apus-rpc`, and messages with answers, of which a number are outstanding.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use apus_rpc::{Call, Client, Method, Methods, Server};
use apus_udp::{Bytes, Connection, Host, Request};

use super::spec::SMALL;

/// Name of the server's method.
const ECHO: &str = "echo";

/// Serves calls to the host with default settings. Each answer is the payload of the call.
///
/// # Errors
/// If the system cannot start a thread.
pub fn serve(host: &Arc<Host>) -> Result<Server, String> {
    let echo = Methods::new().with(ECHO, |call| Ok(call.payload().clone()));
    Server::start(host, echo).map_err(|error| error.to_string())
}

/// Returns the payload bytes of the calls that a server has answered.
pub fn answered(server: &Server) -> u64 {
    server.metrics().answered.load(Ordering::Relaxed) * SMALL as u64
}

/// A client of such a server.
pub struct Calls {
    client: Client,
    echo: Method,
}

impl Calls {
    /// Connects to the server.
    ///
    /// # Errors
    /// If the server does not answer, or does not have the method.
    pub fn connect(host: &Arc<Host>, server: SocketAddr) -> Result<Self, String> {
        let client = Client::connect(host, server).map_err(|error| error.to_string())?;
        let echo = client.method(ECHO).map_err(|error| error.to_string())?;
        Ok(Self { client, echo })
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Connection {
        self.client.connection()
    }

    /// Calls and waits for the answer; returns its length.
    pub fn round_trip(&self) -> Result<usize, String> {
        let answer = self.client.call(self.echo, &[0x61; SMALL]).wait();
        Ok(answer.map_err(|error| error.to_string())?.len())
    }

    /// Returns the payload bytes of all answers.
    pub fn received(&self) -> u64 {
        self.client.metrics().answered.load(Ordering::Relaxed) * SMALL as u64
    }
}

/// Requests of one thread; answers may arrive in any order.
pub trait Pipeline {
    /// Begins another request.
    fn begin(&mut self) -> Result<(), String>;

    /// Waits until a request has ended, and returns the length of its answer.
    fn end(&mut self) -> Result<usize, String>;
}

/// Calls in the order in which they began.
pub struct Begun<'a>(pub &'a Calls, pub VecDeque<Call>);

impl Pipeline for Begun<'_> {
    fn begin(&mut self) -> Result<(), String> {
        let call = self.0.client.call(self.0.echo, &[0x61; SMALL]).start();
        self.1.push_back(call.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn end(&mut self) -> Result<usize, String> {
        let call = self.1.pop_front().ok_or("no call is outstanding")?;
        Ok(call.wait().map_err(|error| error.to_string())?.len())
    }
}

/// Messages of a connection.
pub struct Messages<'a>(pub &'a Connection, pub Bytes);

impl Pipeline for Messages<'_> {
    fn begin(&mut self) -> Result<(), String> {
        let message = Request::message(self.1.clone());
        self.0.submit_unreported(0, message).map(drop).map_err(|error| error.to_string())
    }

    fn end(&mut self) -> Result<usize, String> {
        Ok(self.0.receive().map_err(|end| end.to_string())?.bytes.len())
    }
}

/// Results of a pipeline.
pub struct Answered {
    /// Requests that ended in the measured time.
    pub ops: u64,
    /// All requests.
    pub all_ops: u64,
    /// Measured time, seconds.
    pub seconds: f64,
}

/// Keeps up to `outstanding` requests outstanding for `duration`, then waits until all have ended. The thread waits for
/// half of them before it begins as many new ones, like a thread that serves requests that arrive together.
///
/// # Errors
/// If a request fails, or its answer has a different length.
pub fn run(
    pipeline: &mut dyn Pipeline,
    outstanding: usize,
    duration: Duration,
) -> Result<Answered, String> {
    let from = Instant::now();
    let (mut under_way, mut ended) = (0, 0u64);
    let end = |pipeline: &mut dyn Pipeline, count: usize| {
        for _ in 0..count {
            match pipeline.end()? {
                SMALL => {}
                length => return Err(format!("an answer has {length} B, not {SMALL}")),
            }
        }
        Ok(())
    };
    while from.elapsed() < duration {
        for _ in under_way..outstanding {
            pipeline.begin()?;
        }
        let half = outstanding.div_ceil(2);
        end(pipeline, half)?;
        ended += half as u64;
        under_way = outstanding - half;
    }
    let seconds = from.elapsed().as_secs_f64();
    end(pipeline, under_way)?;
    Ok(Answered { ops: ended, all_ops: ended + under_way as u64, seconds })
}
