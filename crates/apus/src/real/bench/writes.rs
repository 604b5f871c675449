//! Writes of Apus, of which a number are outstanding.

use std::time::Duration;

use apus_udp::{Bytes, Connection, Host, RegionKey, Request};

use super::spec::REGION;
use crate::failure::Failure;
use crate::real::closed_loop::{ClosedLoop, Ops, Wait};

/// Time in which outstanding writes must end. Loopback needs only milliseconds.
const DRAIN: Duration = Duration::from_secs(60);

/// Writes of one connection to successive addresses of the peer's region.
pub struct Writes<'a> {
    load: ClosedLoop<'a>,
    region: RegionKey,
    payload: Bytes,
}

/// Results of the writes.
pub struct Written {
    /// Writes that ended in the measured time.
    pub ops: u64,
    /// All writes.
    pub all_ops: u64,
    /// Measured time.
    pub seconds: f64,
}

impl<'a> Writes<'a> {
    /// Returns writes of `bytes` each, of which `outstanding` are outstanding at a time.
    pub fn new(
        host: &'a Host,
        connection: &'a Connection,
        region: RegionKey,
        bytes: usize,
        outstanding: usize,
        wait: Wait,
    ) -> Self {
        let load = ClosedLoop {
            host,
            flows: vec![(connection, 0)],
            outstanding,
            duration: Duration::ZERO,
            drain: DRAIN,
            wait,
        };
        Self { load, region, payload: Bytes::from(vec![0x61; bytes]) }
    }

    /// Writes for `duration`, then waits until all writes have ended.
    ///
    /// # Errors
    /// If a write has failed or has not ended.
    pub fn run(&mut self, duration: Duration) -> Result<Written, Failure> {
        self.load.duration = duration;
        let mut ops = Successive { region: self.region, payload: self.payload.clone(), all: 0 };
        let outcome = self.load.run(&mut ops, |_, _| ())?;
        if let Some(failure) = outcome.failure {
            return Err(failure);
        }
        if !outcome.unfinished.is_empty() {
            let what = format!("{} writes have not ended in {DRAIN:?}", outcome.unfinished.len());
            return Err(Failure::Run(what));
        }
        Ok(Written { ops: outcome.ops[0], all_ops: ops.all, seconds: outcome.seconds })
    }
}

struct Successive {
    region: RegionKey,
    payload: Bytes,
    all: u64,
}

impl Ops for Successive {
    fn request(&mut self, _: usize, number: u64) -> Request {
        let bytes = self.payload.len();
        self.all += 1;
        let address = number * bytes as u64 % (REGION - bytes + 1) as u64;
        Request::write(self.region, address, self.payload.clone())
    }

    fn on_end(&mut self, _: usize, _: Duration, _: Duration, _: bool) {}

    fn check(&mut self, _: Duration, _: bool) -> Result<(), Failure> {
        Ok(())
    }
}
