//! The process of one emulated host whose data the kernel's TCP moves, for comparison.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};

use super::host::conclude;
use super::network::socket;
use super::spec::{AgentSpec, FlowSpec, HostResult, LoadSpec, PORT};
use crate::agent::say;

/// Bytes per call.
const CHUNK: usize = 64 << 10;

/// Received bytes of each flow while they are counted.
#[derive(Default)]
struct Counts {
    measuring: AtomicBool,
    flows: Mutex<BTreeMap<usize, Arc<AtomicU64>>>,
}

/// Runs the host. Each flow is a stream; the receiver counts the bytes.
pub fn run(spec: &AgentSpec, next: &mut dyn FnMut() -> Option<String>) -> Result<(), String> {
    let counts = Arc::new(Counts::default());
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], PORT)))
        .map_err(|error| format!("no TCP socket: {error}"))?;
    let server = Arc::clone(&counts);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counts = Arc::clone(&server);
            thread::spawn(move || receive(stream, &counts));
        }
    });
    say("ready");
    if next().is_none() {
        return Ok(());
    }
    let name = spec.tcp.as_deref().unwrap_or_default();
    let streams = spec.flows.iter().map(|flow| {
        let mut stream = TcpStream::connect(socket(flow.to)?).map_err(|error| error.to_string())?;
        let set = set_tcp_congestion(&stream, name).and_then(|()| tcp_congestion(&stream));
        let set =
            set.map_err(|error| format!("--tcp {name}: the kernel does not have it: {error}"))?;
        if set != name {
            return Err(format!("--tcp {name}: the kernel uses {set} instead"));
        }
        stream.write_all(&(flow.index as u64).to_be_bytes()).map_err(|error| error.to_string())?;
        Ok((flow.clone(), stream))
    });
    let streams = streams.collect::<Result<Vec<_>, String>>()?;
    say("connected");
    if next().is_none() {
        return Ok(());
    }
    let begin = Instant::now();
    let failed = Arc::new(Mutex::new(None));
    for (flow, mut stream) in streams {
        let failed = Arc::clone(&failed);
        thread::spawn(move || {
            if let Err(error) = send(&flow, &mut stream, begin) {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert_with(|| format!("the stream to host {}: {error}", flow.to));
            }
        });
    }
    let warmup = Duration::from_nanos(spec.warmup_ns);
    thread::sleep(warmup.saturating_sub(begin.elapsed()));
    counts.measuring.store(true, Ordering::Relaxed);
    thread::sleep(Duration::from_nanos(spec.duration_ns).saturating_sub(begin.elapsed()));
    counts.measuring.store(false, Ordering::Relaxed);
    let flows = counts.flows.lock().unwrap_or_else(PoisonError::into_inner);
    let result = HostResult {
        bytes: flows.iter().map(|(&i, bytes)| (i, bytes.load(Ordering::Relaxed))).collect(),
        seconds: (begin.elapsed().saturating_sub(warmup)).as_secs_f64(),
        failed: failed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        ..HostResult::default()
    };
    drop(flows);
    conclude(&result, next)
}

/// Sends without end, or sends the ops of an open loop at their times.
fn send(flow: &FlowSpec, stream: &mut TcpStream, begin: Instant) -> io::Result<()> {
    let wait = |until: u64| {
        thread::sleep(Duration::from_nanos(until).saturating_sub(begin.elapsed()));
    };
    let bytes = vec![0x61; CHUNK];
    match &flow.load {
        LoadSpec::Closed { .. } => {
            wait(flow.start_ns);
            while begin.elapsed() < Duration::from_nanos(flow.stop_ns) {
                stream.write_all(&bytes)?;
            }
        }
        LoadSpec::Open(ops) => {
            for &(at, size) in ops.iter().take_while(|&&(at, _)| at < flow.stop_ns) {
                wait(at);
                let mut left = size as usize;
                while left > 0 {
                    let next = left.min(CHUNK);
                    stream.write_all(&bytes[..next])?;
                    left -= next;
                }
            }
            // The stream stays open, because bytes in flight still count.
            wait(flow.stop_ns);
        }
    }
    Ok(())
}

/// Receives all bytes of a stream; the first bytes name the flow.
fn receive(mut stream: TcpStream, counts: &Counts) {
    let mut index = [0; 8];
    if stream.read_exact(&mut index).is_err() {
        return;
    }
    let bytes = Arc::new(AtomicU64::new(0));
    counts
        .flows
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(u64::from_be_bytes(index) as usize, Arc::clone(&bytes));
    let mut buffer = vec![0; CHUNK];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        if counts.measuring.load(Ordering::Relaxed) {
            bytes.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
}
