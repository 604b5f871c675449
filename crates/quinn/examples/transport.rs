//! Swift in the transport configuration of quinn.

use std::sync::Arc;

use apus_quinn::SwiftConfig;
use quinn_proto::{AckFrequencyConfig, TransportConfig}; // also exported by quinn

fn main() -> Result<(), apus_quinn::SettingError> {
    let swift = SwiftConfig::new(&[("base_target", "400us"), ("max_cwnd", "1000")])?;
    // Peers that support this extension then acknowledge every packet at once, as Swift expects (§3.6).
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(0u32.into());
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(swift)).ack_frequency_config(Some(acks));
    // Pass it to `ClientConfig::transport_config` and `ServerConfig::transport_config`.
    Ok(())
}
