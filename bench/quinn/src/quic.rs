//! One stream of quinn, from a client's runtime to a server's.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{
    ClientConfig, Connection, Endpoint, MtuDiscoveryConfig, ServerConfig, TransportConfig,
};
use tokio::runtime::{Builder, Runtime};

use crate::WRITE;

/// Bytes of IPv4 and UDP headers: QUIC's MTU counts without.
const HEADERS: u16 = 28;

pub struct Pair {
    runtime: Runtime,
    connection: Connection,
    _endpoint: Endpoint,
}

impl Pair {
    pub fn connect(mtu: u16) -> Result<Self, Box<dyn Error>> {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        let certificate = certified.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
        server.transport_config(transport(mtu));
        let listening = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listening.local_addr()?;
        drop(listening);
        let (ready, is_ready) = std::sync::mpsc::channel();
        thread::spawn(move || serve(server, address, &ready));
        is_ready.recv()?;

        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
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

    /// Writes until `end`, and waits until the server has read everything.
    pub fn write(&self, end: Instant) -> Result<u64, Box<dyn Error>> {
        let bytes = vec![0x61; WRITE];
        self.runtime.block_on(async {
            let (mut out, mut back) = self.connection.open_bi().await?;
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

/// Reads streams and tells how long they were.
fn serve(config: ServerConfig, address: SocketAddr, ready: &std::sync::mpsc::Sender<()>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let endpoint = Endpoint::server(config, address).expect("an endpoint");
        ready.send(()).expect("the client waits");
        let connection = endpoint.accept().await.expect("a client").await.expect("a handshake");
        while let Ok((mut back, mut stream)) = connection.accept_bi().await {
            let mut bytes = 0u64;
            while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, false).await {
                bytes += chunk.bytes.len() as u64;
            }
            let told = back.write_all(&bytes.to_be_bytes()).await;
            if told.is_err() || back.finish().is_err() {
                return;
            }
        }
    });
}
