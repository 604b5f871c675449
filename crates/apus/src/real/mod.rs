//! The commands of the real transport: `apus serve`, `apus ping`, `apus perf`, `apus switch`,
//! `apus bench udp`.

pub mod bench;
mod closed_loop;
mod key_file;
mod latency;
mod log;
mod notify;
pub mod perf;
pub mod ping;
mod quotas;
mod record;
mod reload;
mod round_trips;
pub mod serve;
mod spread;
pub mod switch;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apus_udp::prometheus::Server;
use apus_udp::session::{Cipher, KeyRing};
use apus_udp::{
    CLASSES, Capture, Config, Connection, Dialer, Host, Mode, Qlog, RegionKey, StartError,
};
use clap::{Args, ValueEnum};
use key_file::KeyFile;

use crate::failure::Failure;

/// Default port of `apus serve`.
pub const PORT: u16 = 48_700;

/// Which thread drives the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// Waiting threads drive the engine and sleep in the kernel.
    Shared,
    /// Each engine has a thread that sleeps only while another thread wants its core.
    Spinning,
    /// The thread of the command drives the engine and never sleeps.
    Inline,
}

/// Options of all commands of the real transport.
#[derive(Args)]
pub struct Basics {
    /// Key file (see `apus key`): shared keys, and the keys of this host and its peers, if they have their own.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Disable encryption and authentication, for benchmarks.
    #[arg(long, conflicts_with = "key_file")]
    insecure: bool,
    /// Cipher: aes-256-gcm (default of clients) or aegis-128x. A server accepts every cipher unless one is given.
    #[arg(long, value_name = "CIPHER", conflicts_with = "insecure")]
    #[arg(value_parser = str::parse::<Cipher>)]
    cipher: Option<Cipher>,
    /// Maximum length of IP packets to send, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 9000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    mtu: u32,
}

impl Basics {
    /// Returns the keys of the file, or no keys with `--insecure`; `None` if neither option is given.
    fn keys(&self) -> Result<Option<(KeyRing, Option<KeyFile>)>, Failure> {
        if let Some(path) = &self.key_file {
            let (keys, file) = KeyFile::read(path)?;
            return Ok(Some((keys, Some(file))));
        }
        if !self.insecure {
            return Ok(None);
        }
        eprintln!("insecure: packets are not encrypted and anyone may connect");
        Ok(Some((KeyRing::insecure(), None)))
    }

    /// Returns the settings of a host that listens at `listen`.
    pub fn config(&self, listen: SocketAddr, keys: KeyRing) -> Result<Config, Failure> {
        let mut config = Config::new(listen, keys).map_err(failure)?;
        config.max_mtu = self.mtu;
        if let Some(cipher) = self.cipher {
            config.session.cipher = cipher;
            config.session.accept_ciphers = vec![cipher];
        }
        Ok(config)
    }
}

/// Returns as many bytes as an option gives, each with this value.
///
/// # Errors
/// If the system does not have enough memory.
fn filled(option: &str, bytes: usize, value: u8) -> Result<Vec<u8>, Failure> {
    // `vec!` would abort the process if the memory is insufficient.
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| {
        Failure::Input(format!(
            "{option} {bytes}: the system does not have this memory; give fewer bytes"
        ))
    })?;
    Ok(vec![value; bytes])
}

/// Converts a start error: invalid settings are errors of the input; errors of the system are not.
pub fn failure(error: StartError) -> Failure {
    match error {
        StartError::Setting(what) => Failure::Input(what),
        other => Failure::Run(other.to_string()),
    }
}

/// Options of commands that connect.
#[derive(Args)]
pub struct Towards {
    /// Name of the server in the key file, if the file lists several peers with keys of their own.
    #[arg(long, value_name = "NAME", conflicts_with = "insecure")]
    peer_name: Option<String>,
}

/// Options of `serve`, `ping` and `perf`.
#[derive(Args)]
pub struct Common {
    #[command(flatten)]
    basics: Basics,
    #[command(flatten)]
    log: log::LogOptions,
    /// Mode of the engine: which thread drives it, and how it waits for work.
    #[arg(long, value_enum, default_value = "shared")]
    mode: ModeName,
    /// Number of engines. If there are several, each has a thread and a socket, and the kernel divides the peers among them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    engines: u32,
    /// DSCP of all packets, 0 to 63.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=63))]
    dscp: u8,
    /// Write every datagram to FILE, in the pcapng format.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Record each connection in DIR, in the qlog format: at most 64 connections, 16 MiB each.
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// Serve Prometheus metrics at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Maximum number of connections, and of peers, that the metrics of an engine list individually [default: 64].
    #[arg(long, value_name = "N", requires = "metrics")]
    metrics_limit: Option<u32>,
    /// Use departure timestamps of the kernel or NIC, so that queues in this host do not count as fabric delay. Costs at least
    /// one microsecond per send.
    #[arg(long)]
    departure_timestamps: bool,
    /// Use the timestamps of the NIC whose clock is the device FILE, such as /dev/ptp0.
    #[arg(long, value_name = "FILE")]
    nic_clock: Option<PathBuf>,
    /// Congestion control algorithm [default: swift].
    #[arg(long)]
    algorithm: Option<String>,
    /// Set the parameter NAME of the algorithm to VALUE; docs/udp.md lists the defaults of Swift. May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// Allow an algorithm that needs fields written by switches (hpcc, rcp). Every path must lead through an `apus switch` with
    /// this algorithm.
    #[arg(long, requires = "algorithm")]
    behind_switch: bool,
    #[command(flatten)]
    spread: spread::SpreadOptions,
}

impl Common {
    /// Starts a host at these addresses.
    pub fn host(&self, listen: &[SocketAddr]) -> Result<Host, Failure> {
        self.host_with(listen, |_| Ok(()))
    }

    /// Starts a host at these addresses, after `change` has changed its settings.
    pub fn host_with(
        &self,
        listen: &[SocketAddr],
        change: impl FnOnce(&mut Config) -> Result<(), Failure>,
    ) -> Result<Host, Failure> {
        self.host_and_keys(listen, change).map(|(host, _)| host)
    }

    /// As [`Common::host_with`]; also returns the key file, if the host has keys.
    fn host_and_keys(
        &self,
        listen: &[SocketAddr],
        change: impl FnOnce(&mut Config) -> Result<(), Failure>,
    ) -> Result<(Host, Option<KeyFile>), Failure> {
        self.log.install()?;
        let (keys, file) = self.basics.keys()?.ok_or_else(|| {
            let what = "--key-file FILE is missing (`apus key FILE` makes one); --insecure does \
                        without: nothing is encrypted then and anyone may connect";
            Failure::Input(what.to_owned())
        })?;
        if self.is_inline() && self.engines != 1 {
            let message = format!(
                "--engines {}: `--mode inline` has no engine but that of the command's thread; remove one \
                 of them",
                self.engines
            );
            return Err(Failure::Input(message));
        }
        let mut config = self.basics.config(Config::any_address(0), keys)?;
        config.listen = listen.to_vec();
        config.mode = match self.mode {
            ModeName::Shared => Mode::Shared,
            ModeName::Spinning => Mode::Spinning,
            ModeName::Inline => Mode::Inline,
        };
        config.engines = self.engines;
        config.dscp = [self.dscp; CLASSES];
        config.departure_timestamps = self.departure_timestamps;
        config.nic_clock.clone_from(&self.nic_clock);
        config.metrics_limit = self.metrics_limit.unwrap_or(config.metrics_limit);
        if let Some(path) = &self.pcap {
            let failed = |e| Failure::Input(format!("--pcap {}: {e}", path.display()));
            config.capture = Some(Capture::create(path).map_err(failed)?);
        }
        if let Some(dir) = &self.qlog {
            let failed = |e| Failure::Input(format!("--qlog {}: {e}", dir.display()));
            config.qlog = Some(Qlog::new(dir).map_err(failed)?);
        }
        let pairs = pairs(&self.param)?;
        config.registry = crate::registry();
        config.behind_switch = self.behind_switch;
        config.set_algorithm(self.algorithm.as_deref(), &pairs).map_err(failure)?;
        self.spread.apply(&mut config)?;
        change(&mut config)?;
        Ok((Host::start(config).map_err(failure)?, file))
    }

    /// Returns `true` if the command's own thread runs the engine.
    pub fn is_inline(&self) -> bool {
        self.mode == ModeName::Inline
    }

    /// Returns the name of the algorithm of all flows.
    pub fn algorithm(&self) -> &str {
        self.algorithm.as_deref().unwrap_or("swift")
    }

    /// Serves the host's metrics, if requested, until the returned server is dropped.
    pub fn metrics(&self, host: &Host) -> Result<Option<Server>, Failure> {
        let Some(address) = self.metrics else { return Ok(None) };
        let metrics = host.metrics();
        let server = Server::start(address, move || metrics.page());
        let server = server.map_err(|e| Failure::Input(format!("--metrics {address}: {e}")))?;
        eprintln!("metrics at http://{}/metrics", server.address());
        Ok(Some(server))
    }
}

/// Returns the values of `--param`.
pub fn pairs(params: &[String]) -> Result<Vec<(&str, &str)>, Failure> {
    let pairs: Option<_> = params.iter().map(|pair| pair.split_once('=')).collect();
    pairs.ok_or_else(|| {
        Failure::Input("--param takes NAME=VALUE, as in base_target=200us".to_owned())
    })
}

/// Returns the first address of `text`; the default port is that of `apus serve`.
pub fn address(text: &str) -> Result<SocketAddr, Failure> {
    Ok(Peer::find(text)?.addresses[0])
}

/// A server that the user named.
pub struct Peer {
    /// Host name or address.
    pub name: String,
    /// Port; the default is that of `apus serve`.
    pub port: u16,
    /// Addresses, the preferred one first.
    pub addresses: Vec<SocketAddr>,
}

impl Peer {
    /// Reads HOST or HOST:PORT, and resolves the addresses.
    pub fn find(text: &str) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::Input(format!("`{text}`: {error}; give HOST or HOST:PORT"))
        };
        let (name, port) = match (text.parse::<SocketAddr>(), text.parse::<IpAddr>()) {
            (Ok(address), _) => (address.ip().to_string(), address.port()),
            (_, Ok(_)) => (text.to_owned(), PORT),
            _ => match text.rsplit_once(':') {
                Some((name, port)) => (name.to_owned(), port.parse().map_err(|e| wrong(&e))?),
                None => (text.to_owned(), PORT),
            },
        };
        let addresses: Vec<_> =
            (&*name, port).to_socket_addrs().map_err(|error| wrong(&error))?.collect();
        if addresses.is_empty() {
            return Err(wrong(&"it has no address"));
        }
        Ok(Self { name, port, addresses })
    }

    /// Tries the addresses in turn until one answers, and connects with this number of flows. The name is resolved
    /// again.
    pub fn connect(
        &self,
        host: &Arc<Host>,
        flows: u32,
        towards: &Towards,
    ) -> Result<Connection, Failure> {
        let mut dialer = Dialer::new(Arc::clone(host), &self.name, self.port);
        if let Some(name) = &towards.peer_name {
            dialer = dialer.peer_name(name);
        }
        let connection = dialer.classes(&vec![0; flows as usize]).connection();
        connection.map_err(|error| Failure::Run(error.to_string()))
    }
}

/// Returns an unspecified address of the peers' address family, or of both families.
pub fn any(peers: &[SocketAddr]) -> SocketAddr {
    if peers.iter().all(SocketAddr::is_ipv6) {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    } else if peers.iter().all(SocketAddr::is_ipv4) {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        Config::any_address(0)
    }
}

/// Returns the first message of a server on a connection: the key of its region and the region's length.
pub fn greeting(connection: &Connection) -> Result<(RegionKey, u64), Failure> {
    let message = connection.receive().map_err(|end| Failure::Run(end.to_string()))?;
    let number = |at: usize| {
        let bytes = message.bytes.get(at..at + 8).and_then(|b| b.first_chunk());
        bytes.map(|bytes| u64::from_be_bytes(*bytes))
    };
    match (number(0), number(8)) {
        (Some(key), Some(length)) => Ok((RegionKey::new(key), length)),
        _ => Err(Failure::Run("the peer is no `apus serve`".to_owned())),
    }
}

/// Reads a duration with its unit; it may be 0.
pub fn any_duration(text: &str) -> Result<Duration, String> {
    let span: apus_units::Span = text.parse().map_err(|e| format!("{e}"))?;
    Ok(Duration::from_nanos(span.as_ps() / 1_000))
}

/// Reads a duration with its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration = any_duration(text)?;
    if duration.is_zero() {
        return Err("it must be longer than 0".to_owned());
    }
    Ok(duration)
}
