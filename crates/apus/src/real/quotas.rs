//! Options that limit what one key may use.

use apus_udp::Config;
use clap::Args;

/// Limits of each key.
#[derive(Args)]
pub struct QuotaOptions {
    /// Maximum number of sessions of one key [default: a quarter of all for the key of a host, all for a shared key].
    #[arg(long, value_name = "N")]
    quota_sessions: Option<u32>,
    /// Maximum number of unconfirmed handshakes of one key [default: as for --quota-sessions].
    #[arg(long, value_name = "N")]
    quota_pending: Option<u32>,
    /// Maximum number of outstanding ops in all connections that a host with a key of its own has opened [default: 4194304].
    #[arg(long, value_name = "N")]
    quota_ops: Option<u64>,
    /// Maximum number of bytes of messages that wait to be taken, over all connections of a host with a key of its own
    /// [default: 67108864].
    #[arg(long, value_name = "BYTES")]
    quota_queued_bytes: Option<u64>,
    /// Maximum number of handshakes per second from one address, and of the key of a host [default: 256].
    #[arg(long, value_name = "N")]
    handshake_rate: Option<u32>,
}

impl QuotaOptions {
    /// Changes the settings of a host. [`apus_udp::Host::start`] checks them.
    pub fn apply(&self, config: &mut Config) {
        let session = &mut config.session;
        session.quota_sessions = self.quota_sessions;
        session.quota_pending = self.quota_pending;
        session.handshake_rate = self.handshake_rate.unwrap_or(session.handshake_rate);
        config.quota_ops = self.quota_ops;
        config.quota_queued_bytes = self.quota_queued_bytes;
    }
}
