//! `apus_config`: settings by name.

use std::ffi::c_char;
use std::path::Path;

use apus_udp::session::KeyRing;
use apus_udp::{Config, Mode, Qlog, SpreadSettings, keyfile};

use crate::failure::{Failure, Status, call};
use crate::pointer::{Out, given, hand_out, text};

/// Settings of a host that is not started yet.
pub struct apus_config {
    pub(crate) config: Config,
    /// The algorithm, if it is not the default, and its parameters.
    algorithm: Option<String>,
    parameters: Vec<(String, String)>,
    ports: SpreadSettings,
}

/// Names that [`apus_config_set`] accepts.
const NAMES: &str = "mode, engines, max_mtu, max_flows, max_ops, max_message, max_queued_bytes, \
                     max_queued_messages, max_unaccepted, submission_ring, socket_buffer, \
                     max_sessions, max_pending, quota_sessions, quota_pending, quota_queued_bytes, quota_ops, handshake_rate, accept_unlisted, \
                     handshake_timeout, keepalive, idle_timeout, cipher, accept_ciphers, nic_clock, qlog, departure_timestamps, dscp, dscp.CLASS, line_rate, \
                     balancer, ports, source_port, accept_ports, range, ack_path, loss, loss_delay, algorithm, \
                     algorithm.PARAMETER";

impl apus_config {
    fn new(bind: &str, keys: KeyRing) -> Result<Self, Failure> {
        let address = |text: &str| {
            text.trim().parse().map_err(|_| {
                Failure::invalid(format!("`{text}` is not an address; use one like [::]:48700"))
            })
        };
        let listen = bind.split(',').map(address).collect::<Result<Vec<_>, _>>()?;
        let mut config = Config::new(listen[0], keys)?;
        config.listen = listen;
        Ok(Self {
            config,
            algorithm: None,
            parameters: Vec::new(),
            ports: SpreadSettings::default(),
        })
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Failure> {
            value.parse().map_err(|_| {
                Failure::invalid(format!("{name} must be a whole number in range, not `{value}`"))
            })
        }
        fn quantity<T>(name: &str, value: &str) -> Result<T, Failure>
        where
            T: std::str::FromStr<Err: std::fmt::Display>,
        {
            value.parse().map_err(|error| Failure::invalid(format!("{name}: {error}")))
        }
        fn truth(name: &str, value: &str) -> Result<bool, Failure> {
            value.parse().map_err(|_| {
                Failure::invalid(format!("{name} must be true or false, not `{value}`"))
            })
        }
        let config = &mut self.config;
        match name {
            "mode" => {
                config.mode = match value {
                    "spinning" => Mode::Spinning,
                    "shared" => Mode::Shared,
                    "inline" => Mode::Inline,
                    other => {
                        return Err(Failure::invalid(format!(
                            "mode must be shared, spinning or inline, not `{other}`"
                        )));
                    }
                };
            }
            "engines" => config.engines = number(name, value)?,
            "max_mtu" => config.max_mtu = number(name, value)?,
            "max_flows" => config.max_flows = number(name, value)?,
            "max_ops" => config.max_ops = number(name, value)?,
            "max_message" => config.max_message = number(name, value)?,
            "max_queued_bytes" => config.max_queued_bytes = number(name, value)?,
            "max_queued_messages" => config.max_queued_messages = number(name, value)?,
            "max_unaccepted" => config.max_unaccepted = number(name, value)?,
            "submission_ring" => config.submission_ring = number(name, value)?,
            "socket_buffer" => config.socket_buffer = number(name, value)?,
            "max_sessions" => {
                config.session.max_sessions = number(name, value)?;
                let pending = config.session.max_pending.min(config.session.max_sessions);
                config.session.max_pending = pending.max(1);
            }
            "max_pending" => config.session.max_pending = number(name, value)?,
            "quota_sessions" => config.session.quota_sessions = Some(number(name, value)?),
            "quota_pending" => config.session.quota_pending = Some(number(name, value)?),
            "quota_queued_bytes" => config.quota_queued_bytes = Some(number(name, value)?),
            "quota_ops" => config.quota_ops = Some(number(name, value)?),
            "handshake_rate" => config.session.handshake_rate = number(name, value)?,
            "accept_unlisted" => {
                if !config.keys.is_identified() {
                    return Err(Failure::invalid(format!(
                        "{name} has no effect: the key file has no key pair of this host (`apus key --name`)"
                    )));
                }
                config.session.accept_unlisted = truth(name, value)?;
            }
            "handshake_timeout" => config.session.handshake_timeout = quantity(name, value)?,
            "keepalive" => config.session.keepalive = quantity(name, value)?,
            "idle_timeout" => config.session.idle_timeout = quantity(name, value)?,
            "cipher" => {
                self.sealed_only(name)?;
                self.config.session.cipher = quantity(name, value)?;
            }
            "accept_ciphers" => {
                self.sealed_only(name)?;
                let ciphers = value.split(',').map(|cipher| quantity(name, cipher.trim()));
                self.config.session.accept_ciphers = ciphers.collect::<Result<_, _>>()?;
            }
            "qlog" => config.qlog = Some(qlog(name, value)?),
            "nic_clock" => config.nic_clock = Some(value.into()),
            "departure_timestamps" => {
                config.departure_timestamps = truth(name, value)?;
            }
            "dscp" => config.dscp.fill(number(name, value)?),
            "line_rate" => config.line_rate = quantity(name, value)?,
            "algorithm" => self.algorithm = Some(value.to_owned()),
            "balancer" => self.ports.balancer = Some(value.to_owned()),
            "ports" => self.ports.ports = Some(number(name, value)?),
            "source_port" => self.ports.source_port = Some(number(name, value)?),
            "accept_ports" => self.ports.accept_ports = Some(number(name, value)?),
            "range" => self.ports.range = Some(number(name, value)?),
            "ack_path" => self.ports.ack_path = Some(quantity(name, value)?),
            "loss" => self.ports.loss = Some(value.to_owned()),
            "loss_delay" => self.ports.loss_delay = Some(quantity(name, value)?),
            _ => match name.split_once('.') {
                Some(("algorithm", parameter)) => {
                    self.parameters.push((parameter.to_owned(), value.to_owned()));
                }
                Some(("dscp", class)) => {
                    let classes = config.dscp.len();
                    let class = class.parse().ok().and_then(|i: usize| config.dscp.get_mut(i));
                    *class.ok_or_else(|| {
                        let what = format!("{name}: the traffic classes are 0 to {}", classes - 1);
                        Failure::invalid(what)
                    })? = number(name, value)?;
                }
                _ => {
                    let what = format!("unknown setting `{name}`; the settings are {NAMES}");
                    return Err(Failure::invalid(what));
                }
            },
        }
        Ok(())
    }

    /// Rejects a cipher setting in the insecure mode, where the setting would have no effect.
    fn sealed_only(&self, name: &str) -> Result<(), Failure> {
        if self.config.keys.is_insecure() {
            let what =
                format!("{name}: nothing is sealed without keys; remove it, or give a key file");
            return Err(Failure::invalid(what));
        }
        Ok(())
    }

    /// Returns the settings, with the algorithm built.
    pub(crate) fn finish(&self) -> Result<Config, Failure> {
        let mut config = self.config.clone();
        let given: Vec<_> = self.parameters.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        config.set_algorithm(self.algorithm.as_deref(), &given)?;
        config.set_spreading(&self.ports)?;
        Ok(config)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_key_create(path: *const c_char) -> i32 {
    call(|| {
        // SAFETY: the header requires a text.
        let path = unsafe { text(path, "path") }?;
        keyfile::create(Path::new(path))?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_config_create(
    bind: *const c_char,
    key_file: *const c_char,
    config: Out<'_, Box<apus_config>>,
) -> i32 {
    hand_out(config, "config", || {
        // SAFETY: the header requires texts.
        let (bind, path) = unsafe { (text(bind, "bind")?, text(key_file, "key_file")?) };
        apus_config::new(bind, read_keys(path)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_config_create_insecure(
    bind: *const c_char,
    config: Out<'_, Box<apus_config>>,
) -> i32 {
    // SAFETY: the header requires a text.
    let make = || apus_config::new(unsafe { text(bind, "bind") }?, KeyRing::insecure());
    hand_out(config, "config", make)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_config_set(
    config: Option<&mut apus_config>,
    name: *const c_char,
    value: *const c_char,
) -> i32 {
    call(|| {
        // SAFETY: the header requires two texts.
        let (name, value) = unsafe { (text(name, "name")?, text(value, "value")?) };
        given(config, "config")?.set(name, value)
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_config_free(_: Option<Box<apus_config>>) {}

/// Returns records in a directory; `name` is the name of the setting or argument.
pub(crate) fn qlog(name: &str, directory: &str) -> Result<Qlog, Failure> {
    let qlog = Qlog::new(Path::new(directory));
    qlog.map_err(|error| Failure::new(Status::System, format!("{name} {directory}: {error}")))
}

/// Returns the keys of a file.
pub(crate) fn read_keys(path: &str) -> Result<KeyRing, Failure> {
    keyfile::read(Path::new(path)).map_err(|error| Failure::invalid(error.to_string()))
}
