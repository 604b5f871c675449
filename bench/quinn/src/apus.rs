//! Writes of Apus, from a client host to a server host.

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use apus_udp::session::{Cipher, KeyRing, SharedKey};
use apus_udp::{
    Access, Bytes, Completion, Config, Connection, Host, Mode, RegionKey, Request, async_channel,
};

use crate::WRITE;

/// Maximum number of outstanding writes.
const OUTSTANDING: u64 = 4;
/// Bytes of the region.
const REGION: usize = 16 << 20;

pub struct Pair {
    client: Host,
    connection: Connection,
    region: RegionKey,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Pair {
    pub fn connect(mtu: u16, cipher: Cipher, inline: bool) -> Result<Self, Box<dyn Error>> {
        let keys = KeyRing::new([SharedKey::new([7; 32])])?;
        let mut config = Config::new((Ipv4Addr::LOCALHOST, 0).into(), keys)?;
        config.max_mtu = mtu.into();
        config.session.cipher = cipher;
        if inline {
            config.mode = Mode::Inline;
        }
        let server = Host::start(config.clone())?;
        let client = Host::start(config)?;
        let region = server.register(vec![0; REGION], Access::WRITE)?;
        let (key, address) = (region.key(), server.local_addr());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let server = thread::spawn(move || {
            let _region = region;
            let _connection = server.accept();
            while !stopped.load(Ordering::Relaxed) {
                if inline {
                    server.drive();
                } else {
                    thread::park();
                }
            }
        });
        let connection = client.connect(address)?;
        Ok(Self { client, connection, region: key, stop, server: Some(server) })
    }

    /// Writes until `end`, then waits until all writes have ended.
    pub fn write(&self, end: Instant) -> Result<u64, Box<dyn Error>> {
        let (queue, ends) = async_channel::bounded::<Completion>(OUTSTANDING as usize);
        let bytes = Bytes::from(vec![0x61; WRITE]);
        let submit = |n: u64| {
            let at = n * WRITE as u64 % (REGION - WRITE + 1) as u64;
            let request = Request::write(self.region, at, bytes.clone());
            self.connection.submit_queued(0, request, &queue, n)
        };
        for n in 0..OUTSTANDING {
            submit(n)?;
        }
        let (mut submitted, mut ended) = (OUTSTANDING, 0);
        while ended < submitted {
            let completion = match ends.try_recv() {
                Ok(completion) => completion,
                Err(_) => self.client.block_on(ends.recv(), None).ok_or("no time limit")??,
            };
            completion.result?;
            ended += 1;
            if Instant::now() < end {
                submit(submitted)?;
                submitted += 1;
            }
        }
        Ok(ended * WRITE as u64)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            server.thread().unpark();
            // A thread that panicked has already printed the message.
            let _ = server.join();
        }
    }
}
