//! Contestants without Apus: echo over the kernel's UDP and TCP sockets, written as in a small program.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::spec::{BULK, SMALL};

/// Time without an answer after which a datagram counts as lost. Loopback loses datagrams only if a buffer is full.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of empty polls between two reads of the clock, which is not part of a round trip.
const POLLS_PER_CLOCK_READ: u32 = 1 << 16;

/// A client's socket.
pub enum Client {
    /// A UDP socket; `true` if it is polled without sleeping.
    Udp(UdpSocket, bool),
    /// A TCP stream.
    Tcp(TcpStream),
}

impl Client {
    /// Connects a UDP socket.
    pub fn udp(bind: IpAddr, server: SocketAddr, polls: bool) -> io::Result<Self> {
        let socket = UdpSocket::bind((bind, 0))?;
        socket.connect(server)?;
        if polls {
            socket.set_nonblocking(true)?;
        } else {
            socket.set_read_timeout(Some(PATIENCE))?;
        }
        Ok(Self::Udp(socket, polls))
    }

    /// Connects a TCP socket.
    pub fn tcp(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self::Tcp(stream))
    }

    /// Sends 64 B and waits for the echo.
    pub fn round_trip(&mut self) -> io::Result<()> {
        let mut buffer = [0x61; SMALL];
        let length = match self {
            Self::Udp(socket, polls) => {
                socket.send(&buffer)?;
                if *polls { poll(socket, &mut buffer)? } else { socket.recv(&mut buffer)? }
            }
            Self::Tcp(stream) => {
                stream.write_all(&buffer)?;
                stream.read_exact(&mut buffer)?;
                SMALL
            }
        };
        if length == SMALL { Ok(()) } else { Err(io::Error::other("the echo has another length")) }
    }
}

/// Receives a datagram without sleeping.
fn poll(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    let from = Instant::now();
    let mut polls = 0u32;
    loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            received => return received,
        }
        polls = polls.wrapping_add(1);
        if polls.is_multiple_of(POLLS_PER_CLOCK_READ) && from.elapsed() > PATIENCE {
            return Err(io::Error::other("a datagram was lost"));
        }
    }
}

/// Writes over TCP for `duration`, with a chunk of 1 MiB per call. Returns the bytes and the seconds until the server
/// has read all of them.
pub fn write_stream(server: SocketAddr, duration: Duration) -> io::Result<(u64, f64)> {
    let mut stream = TcpStream::connect(server)?;
    let chunk = vec![0x61; BULK];
    let from = Instant::now();
    let mut written = 0;
    while from.elapsed() < duration {
        stream.write_all(&chunk)?;
        written += chunk.len() as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut read = [0; 8];
    stream.read_exact(&mut read)?;
    if u64::from_be_bytes(read) != written {
        return Err(io::Error::other("the server has read other bytes than were written"));
    }
    Ok((written, from.elapsed().as_secs_f64()))
}

/// Starts a thread that echoes datagrams; `bytes` counts the received bytes.
pub fn serve_udp(bind: IpAddr, polls: bool, bytes: Arc<AtomicU64>) -> io::Result<SocketAddr> {
    let socket = UdpSocket::bind((bind, 0))?;
    socket.set_nonblocking(polls)?;
    let address = socket.local_addr()?;
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                bytes.fetch_add(length as u64, Ordering::Relaxed);
                // If the answer is missing, the client reports it.
                let _ = socket.send_to(&buffer[..length], from);
            }
        }
    });
    Ok(address)
}

/// Starts a TCP server with a thread per client: an echo, or a sink that reports the length of the stream at its end.
pub fn serve_tcp(bind: IpAddr, echo: bool, bytes: Arc<AtomicU64>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((bind, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let bytes = Arc::clone(&bytes);
            // If the stream ends early, the client reports it.
            thread::spawn(move || if echo { answer(stream, &bytes) } else { sink(stream, &bytes) });
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, bytes: &AtomicU64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; SMALL];
    loop {
        stream.read_exact(&mut buffer)?;
        bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        stream.write_all(&buffer)?;
    }
}

fn sink(mut stream: TcpStream, bytes: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; BULK];
    let mut all = 0u64;
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return stream.write_all(&all.to_be_bytes());
        }
        all += length as u64;
        bytes.fetch_add(length as u64, Ordering::Relaxed);
    }
}
