//! A key-value store. Reads are one-sided: the client fetches the place of a key from the server's memory, and the server's
//! threads take no part. Writes are calls, so that the server decides their order. Counters are changed by one-sided
//! compare-and-swap.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use apus_rpc::{CallError, Client, Failure, Method, Methods, Server};
use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Access, Config, Host, Region, RegionKey, Request};

/// The table is an array of places: version (u64), length of the key, length of the value, key, value.
/// The version is little-endian, as the words of atomic ops are.
const PLACE: usize = 128;
const KEY: usize = 10;
const VALUE: usize = 48;
const PLACES: usize = 1024;
/// A key is in one of these places after the place of its hash. Together they are as long as one packet may be on every
/// path, so a one-sided read returns all of them as they were at one time.
const PROBES: usize = 8;
/// Number of counters, which are words of a region of their own.
const COUNTERS: u64 = 64;
/// Codes of failures.
const FULL: u32 = 1;
const CONFLICT: u32 = 2;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Returns the first byte of the places of a key, by the hash FNV-1a, which is the same on both sides.
fn offset(key: &[u8]) -> usize {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash % (PLACES - PROBES + 1) as u64) as usize * PLACE
}

fn version(place: &[u8]) -> u64 {
    place[..8].try_into().map_or(0, u64::from_le_bytes)
}

fn key(place: &[u8]) -> &[u8] {
    &place[KEY..][..usize::from(place[8])]
}

fn value(place: &[u8]) -> &[u8] {
    &place[VALUE..][..usize::from(place[9])]
}

/// Returns the methods of a store with this table.
fn store(table: Arc<Region>, counters: &Region) -> Methods {
    let regions = [&*table, counters].map(|region| region.key().get().to_le_bytes()).concat();
    Methods::new().with("regions", move |_| Ok(regions.clone())).with("put", move |call| {
        // The request is the expected version (u64), the length of the key, the key, and the value.
        let wrong = || Failure::new(0, "a request is version, length, key, value");
        let (expected, rest) = call.payload().split_first_chunk().ok_or_else(wrong)?;
        let (&length, rest) = rest.split_first().ok_or_else(wrong)?;
        let (name, bytes) = rest.split_at_checked(length.into()).ok_or_else(wrong)?;
        if name.is_empty() || name.len() > VALUE - KEY || bytes.len() > PLACE - VALUE {
            return Err(Failure::new(0, "a key has 1 to 38 bytes, a value at most 80"));
        }
        // The region is locked meanwhile: no peer reads a half of the change.
        table.write(|table| {
            let mut places = table[offset(name)..][..PROBES * PLACE].chunks_mut(PLACE);
            let place = places.find(|place| key(place) == name || version(place) == 0);
            let place = place.ok_or(Failure::new(FULL, "no place for this key"))?;
            let found = version(place);
            if found != u64::from_le_bytes(*expected) {
                return Err(Failure::new(CONFLICT, format!("the version is {found}")));
            }
            place[..8].copy_from_slice(&(found + 1).to_le_bytes());
            (place[8], place[9]) = (length, bytes.len() as u8);
            place[KEY..][..name.len()].copy_from_slice(name);
            place[VALUE..][..bytes.len()].copy_from_slice(bytes);
            Ok((found + 1).to_le_bytes().to_vec())
        })
    })
}

/// A client of the store.
struct Store {
    client: Client,
    put: Method,
    table: RegionKey,
    counters: RegionKey,
}

impl Store {
    fn connect(host: &Arc<Host>, server: std::net::SocketAddr) -> Result<Self> {
        let client = Client::connect(host, server)?;
        let regions = client.call(client.method("regions")?, b"").wait()?;
        let region = |at: usize| -> Result<_> {
            Ok(RegionKey::new(u64::from_le_bytes(regions[at..at + 8].try_into()?)))
        };
        Ok(Self { put: client.method("put")?, client, table: region(0)?, counters: region(8)? })
    }

    /// Returns the version and the value of a key.
    fn get(&self, name: &str) -> Result<Option<(u64, Vec<u8>)>> {
        let at = offset(name.as_bytes()) as u64;
        let read = Request::read(self.table, at, PROBES * PLACE);
        let bytes = self.client.connection().submit(read)?.wait()?.bytes;
        let mut places = bytes.chunks(PLACE).filter(|place| version(place) > 0);
        let found = places.find(|place| key(place) == name.as_bytes());
        Ok(found.map(|place| (version(place), value(place).to_vec())))
    }

    /// Sets the value of a key if its version is `expected`, 0 for a new key. Returns the new version; `None` if another
    /// client was faster.
    fn put(&self, name: &str, expected: u64, value: &[u8]) -> Result<Option<u64>> {
        let length = [u8::try_from(name.len())?];
        let request = [&expected.to_le_bytes(), &length[..], name.as_bytes(), value].concat();
        match self.client.call(self.put, &request).wait() {
            Ok(version) => Ok(Some(u64::from_le_bytes(version[..].try_into()?))),
            Err(CallError::Failed(Failure { code: CONFLICT, .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds one to a counter below `limit`, however many clients do so at the same time. Returns the new value; `None` if the
    /// limit is reached. Without a limit, `Request::fetch_add` is one op.
    fn count(&self, counter: u64, limit: u64) -> Result<Option<u64>> {
        let mut expected = 0;
        while expected < limit {
            let address = counter % COUNTERS * 8;
            let swap = Request::compare_and_swap(self.counters, address, expected, expected + 1);
            match self.client.connection().submit(swap)?.wait()?.old {
                Some(old) if old == expected => return Ok(Some(old + 1)),
                old => expected = old.ok_or("no word")?,
            }
        }
        Ok(None)
    }
}

/// Runs a server and two clients.
pub fn main() -> Result<()> {
    let keys = KeyRing::new([SharedKey::new([7; 32])])?;
    let start = || Host::start(Config::new(([127, 0, 0, 1], 0).into(), keys.clone())?);

    let host = Arc::new(start()?);
    let table = Arc::new(host.register(vec![0; PLACES * PLACE], Access::READ)?);
    let counters = host.register(vec![0; COUNTERS as usize * 8], Access::ALL)?;
    let server = Server::start(&host, store(table, &counters))?;

    let store = Store::connect(&Arc::new(start()?), host.local_addr())?;
    assert_eq!(store.get("colour")?, None);
    assert_eq!(store.get("")?, None, "an empty place has no key");
    assert_eq!(store.put("colour", 0, b"red")?, Some(1));
    assert_eq!(store.get("colour")?, Some((1, b"red".to_vec())));
    assert_eq!(store.put("colour", 0, b"blue")?, None, "the version is 1 by now");
    assert_eq!(store.put("colour", 1, b"green")?, Some(2));

    // Two clients count at the same time, and no count is lost.
    let other = Store::connect(&Arc::new(start()?), host.local_addr())?;
    std::thread::scope(|scope| {
        let threads = [&store, &other].map(|store| {
            scope.spawn(|| {
                (0..50).try_for_each(|_| store.count(3, 1000).map(drop).map_err(|e| e.to_string()))
            })
        });
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a panic".to_owned())?)
    })?;
    assert_eq!(store.count(3, 1000)?, Some(101));
    assert_eq!(store.count(3, 101)?, None, "the limit is reached");

    // Shutdown of the server: calls end first, then ops and connections.
    let calls = server.drain(Duration::from_secs(5));
    assert!(store.get("colour")?.is_some(), "one-sided reads still work");
    let connections = host.drain(Duration::from_secs(5));
    assert!(calls && connections, "no call and no op was cut off");
    assert!(store.get("colour").is_err(), "the connection has ended");
    Ok(())
}
