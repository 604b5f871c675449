//! SIGHUP: a server reads its key file again.

use std::sync::Weak;
use std::thread;

use apus_udp::Host;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use super::key_file::{Changes, Counts, KeyFile};
use super::notify::{notify, reloading};
use crate::failure::Failure;

/// Watch for SIGHUP.
pub struct Reload(Signals);

impl Reload {
    /// Begins to watch. From now on SIGHUP does not end the process; [`Reload::start`] handles signals that arrive before it.
    pub fn watch() -> Result<Self, Failure> {
        let signals = Signals::new([SIGHUP]);
        let failed = |error| Failure::Run(format!("SIGHUP cannot be watched for: {error}"));
        signals.map(Self).map_err(failed)
    }

    /// Handles SIGHUP in a thread of its own, because reading a file may take long.
    pub fn start(mut self, mut keys: Keys) -> Result<(), Failure> {
        let handle = move || {
            for _ in self.0.forever() {
                let Some(host) = keys.host.upgrade() else { return };
                keys.reload(&host);
            }
        };
        let started = thread::Builder::new().name("apus-reload".to_owned()).spawn(handle);
        started.map(drop).map_err(|error| Failure::Run(format!("no thread for SIGHUP: {error}")))
    }
}

/// The keys of a running host.
pub struct Keys {
    pub host: Weak<Host>,
    /// The file as it was last read; `None` in the insecure mode.
    pub file: Option<KeyFile>,
    /// Names that `--accept` has given.
    pub accepted: Vec<String>,
    /// Status for the service manager while the keys are those of the file.
    pub status: String,
    /// Returns `true` once the host has begun to drain.
    pub stopping: Box<dyn Fn() -> bool + Send>,
}

impl Keys {
    /// Reads the key file again. If it is wrong, the host keeps its keys.
    fn reload(&mut self, host: &Host) {
        // After STOPPING=1 the service manager expects no other state.
        let tell = !(self.stopping)();
        if tell {
            reloading();
        }
        let mut status = self.status.clone();
        if let Err(failure) = self.replace(host) {
            let error = failure.to_string();
            tracing::error!(target: "apus::service", error, "SIGHUP: the keys stay as they were");
            // A state ends with its line.
            status += &format!("; the keys stay as they were: {}", error.replace('\n', " "));
        }
        if tell && !(self.stopping)() {
            notify(&format!("READY=1\nSTATUS={status}"));
        }
    }

    fn replace(&mut self, host: &Host) -> Result<(), Failure> {
        let Some(before) = &self.file else {
            let what = "SIGHUP: nothing to read again, because --insecure has no key file";
            tracing::warn!(target: "apus::service", "{what}");
            return Ok(());
        };
        let (ring, now) = before.read_again()?;
        host.set_keys(&ring).map_err(super::failure)?;
        let Counts { shared_keys, key_pairs, peers, retired } = now.counts();
        let Changes { added, removed, changed } = now.changes_since(before);
        tracing::info!(
            target: "apus::service", file = %now.path().display(), shared_keys, key_pairs, peers, retired, added, removed,
            changed, "SIGHUP: the keys of the file are in use"
        );
        for name in &self.accepted {
            if !ring.peers().any(|(_, listed)| listed == name) {
                tracing::warn!(
                    target: "apus::service", name,
                    "SIGHUP: the key file no longer lists this peer of --accept, which can therefore not connect"
                );
            }
        }
        self.file = Some(now);
        Ok(())
    }
}
