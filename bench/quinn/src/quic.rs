//! Streams of quinn, from the runtime of a client to that of a server.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{
    ClientConfig, Connection, Endpoint, MtuDiscoveryConfig, RecvStream, SendStream, ServerConfig,
    TransportConfig,
};
use tokio::runtime::{Builder, Runtime};

use crate::WRITE;

/// Bytes of IPv4 and UDP headers, which QUIC's MTU does not include.
const HEADERS: u16 = 28;

/// First byte of a stream, which gives its kind.
const ECHO: u8 = 1;
const SINK: u8 = 2;

pub struct Pair {
    runtime: Runtime,
    connection: Connection,
    _endpoint: Endpoint,
}

impl Pair {
    /// Starts a server thread in this process and connects to it.
    pub fn connect(mtu: u16) -> Result<Self, Box<dyn Error>> {
        let (ready, is_ready) = std::sync::mpsc::channel();
        thread::spawn(move || {
            serve(mtu, |address, certificate| drop(ready.send((address, certificate))))
        });
        let (address, certificate) = is_ready.recv()?;
        Self::connect_to(mtu, address, certificate)
    }

    /// Connects to a server that has this certificate.
    pub fn connect_to(
        mtu: u16,
        address: SocketAddr,
        certificate: Vec<u8>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.into())?;
        let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
        client.transport_config(transport(mtu));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (endpoint, connection) = runtime.block_on(async {
            let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
            endpoint.set_default_client_config(client);
            let connection = endpoint.connect(address, "localhost")?.await?;
            Ok::<_, Box<dyn Error>>((endpoint, connection))
        })?;
        Ok(Self { runtime, connection, _endpoint: endpoint })
    }

    /// Opens a stream that the server echoes.
    pub fn echo(&self) -> Result<Echo<'_>, Box<dyn Error>> {
        let (out, back) = self.runtime.block_on(self.connection.open_bi())?;
        let mut echo = Echo { pair: self, out, back };
        let first = echo.pair.runtime.block_on(echo.out.write_all(&[ECHO]));
        first?;
        Ok(echo)
    }

    /// Writes until `end`, then waits until the server has read everything.
    pub fn write(&self, end: Instant) -> Result<u64, Box<dyn Error>> {
        let bytes = vec![0x61; WRITE];
        self.runtime.block_on(async {
            let (mut out, mut back) = self.connection.open_bi().await?;
            out.write_all(&[SINK]).await?;
            let mut written = 0;
            while Instant::now() < end {
                out.write_all(&bytes).await?;
                written += bytes.len() as u64;
            }
            out.finish()?;
            let read = back.read_to_end(8).await?;
            let read = read.first_chunk().map(|read| u64::from_be_bytes(*read));
            if read != Some(written) {
                return Err("the server has read other bytes than were written".into());
            }
            Ok(written)
        })
    }
}

fn transport(mtu: u16) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(mtu - HEADERS);
    transport.initial_mtu(mtu - HEADERS);
    transport.mtu_discovery_config(Some(discovery));
    Arc::new(transport)
}

/// A stream that the server echoes.
pub struct Echo<'p> {
    pair: &'p Pair,
    out: SendStream,
    back: RecvStream,
}

impl Echo<'_> {
    /// Sends bytes and waits for their echo.
    pub fn round_trip(&mut self, bytes: &mut [u8]) -> Result<(), Box<dyn Error>> {
        let Self { pair, out, back } = self;
        pair.runtime.block_on(async {
            out.write_all(bytes).await?;
            back.read_exact(bytes).await?;
            Ok(())
        })
    }
}

/// Serves one connection. The first byte of a stream gives its kind. `ready` receives the address and the certificate.
pub fn serve(mtu: u16, ready: impl FnOnce(SocketAddr, Vec<u8>)) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let certified = certified.expect("a certificate");
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into());
    let mut config = config.expect("a configuration");
    config.transport_config(transport(mtu));
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into());
        let endpoint = endpoint.expect("an endpoint");
        ready(endpoint.local_addr().expect("an address"), certificate.to_vec());
        let connection = endpoint.accept().await.expect("a client").await.expect("a handshake");
        while let Ok((mut back, mut stream)) = connection.accept_bi().await {
            let mut kind = [0];
            let read = stream.read_exact(&mut kind).await;
            let served = match (read, kind) {
                (Ok(()), [ECHO]) => echo(&mut stream, &mut back).await,
                (Ok(()), [SINK]) => count(&mut stream, &mut back).await,
                _ => return,
            };
            if served.is_none() {
                return;
            }
        }
    });
}

async fn echo(stream: &mut RecvStream, back: &mut SendStream) -> Option<()> {
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
        back.write_all(&chunk.bytes).await.ok()?;
    }
    Some(())
}

/// Reads a stream to its end, and answers with its length.
async fn count(stream: &mut RecvStream, back: &mut SendStream) -> Option<()> {
    let mut bytes = 0u64;
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, false).await {
        bytes += chunk.bytes.len() as u64;
    }
    back.write_all(&bytes.to_be_bytes()).await.ok()?;
    back.finish().ok()
}
