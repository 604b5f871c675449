//! The settings of Swift that have an effect in quinn.

use std::sync::Arc;
use std::time::Instant;

use apus_algorithms::swift::{Config, Params, Swift as SwiftSender};
use apus_cc::Algorithm;
use apus_cc::settings::{SettingError, Settings, require};
use quinn_proto::congestion::{Controller, ControllerFactory};

use crate::Swift;

/// Smallest window in packets.
///
/// Rationale: RFC 9002 §7.2 recommends two packets. A peer may delay the acknowledgement of a single packet for
/// 25 ms (RFC 9000 §13.2.2), which a window of one packet would take for congestion, and never grow again.
const MIN_CWND: u32 = 2;

/// The values of this crate for parameters that the user does not set.
const DEFAULTS: [(&str, &str); 4] = [
    // QUIC reports one RTT, not the delays of hosts.
    ("decompose", "false"),
    // QUIC does not report the number of switches.
    ("hop_scale", "0us"),
    ("min_cwnd", "2"),
    // deviation: Swift §3.2 gives no value, and Apus begins with 1. RFC 9002 §7.2 recommends 10 packets, in
    // which the first flight of a server's handshake fits.
    ("initial_cwnd", "10"),
];

const ONE_RTT: &str = "quinn reports one RTT, without the delays of hosts";
const OWN_TIMEOUTS: &str = "quinn has its own timeouts";

/// Parameters that have no effect in quinn, with the reason.
const WITHOUT_EFFECT: [(&str, &str); 11] = [
    ("decompose", ONE_RTT),
    ("endpoint_target", ONE_RTT),
    ("endpoint_min_cwnd", ONE_RTT),
    ("endpoint_gain", ONE_RTT),
    ("hop_scale", "quinn does not report the number of switches"),
    ("pacing", "quinn paces packets by its own rule"),
    (
        "retx_reset_threshold",
        "`persistent_congestion_threshold` of quinn's transport takes its place",
    ),
    ("rto_gain", OWN_TIMEOUTS),
    ("rto_multiplier", OWN_TIMEOUTS),
    ("min_rto", OWN_TIMEOUTS),
    ("initial_rto", OWN_TIMEOUTS),
];

/// Parameters of Swift in quinn, and the factory of its controllers.
#[derive(Clone, Debug)]
pub struct SwiftConfig {
    params: Arc<Params>,
}

impl SwiftConfig {
    /// Reads settings: pairs of a parameter of the algorithm `swift` (profile `paper`) and its value, such as
    /// `("base_target", "400us")`, which is required.
    ///
    /// `base_target` is the RTT that a flow with a large window aims at. Choose the unloaded RTT of the path
    /// with both hosts, plus the queueing that is acceptable; below the unloaded RTT the window falls to its
    /// minimum.
    ///
    /// # Errors
    /// If `base_target` is missing, or if a setting is unknown, invalid, in contradiction to another or
    /// without effect in quinn.
    pub fn new(settings: &[(&str, &str)]) -> Result<Self, SettingError> {
        let info = &<SwiftSender as Algorithm>::INFO;
        // Unknown and unreadable settings are reported first.
        Settings::read(info, None, settings)?;
        let is_set = |name: &str| settings.iter().any(|(set, _)| *set == name);
        if let Some((name, reason)) = WITHOUT_EFFECT.iter().find(|(name, _)| is_set(name)) {
            let message = format!("`{name}` has no effect in quinn: {reason}; remove it");
            return Err(SettingError::at(name, message));
        }
        if !is_set("base_target") {
            let message = "`base_target` is missing; set it to the unloaded RTT with both hosts, plus the \
                           acceptable queueing, such as `400us`";
            return Err(SettingError::at("base_target", message.to_owned()));
        }
        let defaults = DEFAULTS.into_iter().filter(|(name, _)| !is_set(name));
        let settings: Vec<_> = settings.iter().copied().chain(defaults).collect();
        let config = Config::from_settings(&mut Settings::read(info, None, &settings)?)?;
        let smallest = f64::from(MIN_CWND);
        require(config.min_cwnd >= smallest, "min_cwnd", "at least 2 in quinn", config.min_cwnd)?;
        Ok(Self { params: Arc::new(Params::new(config)?) })
    }

    /// Returns the parameters in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.params.config()
    }
}

impl ControllerFactory for SwiftConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Swift::new(Arc::clone(&self.params), now, current_mtu))
    }
}

#[cfg(test)]
mod tests {
    use apus_algorithms::swift::HostSignal;
    use apus_units::Span;

    use super::*;

    #[track_caller]
    fn refused(settings: &[(&str, &str)], parameter: &str, words: &[&str]) {
        let error = SwiftConfig::new(settings).expect_err("refused");
        assert_eq!(error.parameter.as_deref(), Some(parameter), "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "`{word}` is missing in: {error}");
        }
    }

    #[test]
    fn defaults_are_those_of_apus_except_for_the_documented_ones() {
        let config = SwiftConfig::new(&[("base_target", "400us")]).expect("valid");
        let mut expected = Config::paper();
        expected.target.base_target = Span::from_us(400);
        expected.target.hop_scale = Span::ZERO;
        expected.host = HostSignal::EndToEnd;
        expected.min_cwnd = 2.0;
        expected.initial_cwnd = 10.0;
        assert_eq!(*config.config(), expected);
    }

    #[test]
    fn a_missing_target_is_refused() {
        refused(&[], "base_target", &["missing", "400us"]);
    }

    #[test]
    fn invalid_settings_are_refused_with_name_and_value() {
        let with = |setting| [("base_target", "400us"), setting];
        refused(&[("base_target", "400")], "base_target", &["400"]);
        refused(&with(("base_targt", "1us")), "base_targt", &["base_target"]);
        refused(&with(("base_target", "1us")), "base_target", &["twice"]);
        refused(&with(("min_cwnd", "1")), "min_cwnd", &["at least 2", "it is 1"]);
        refused(&with(("max_cwnd", "9")), "initial_cwnd", &["it is 10"]);
        refused(&with(("buffer_target", "8")), "buffer_target", &["paper"]);
    }

    #[test]
    fn every_setting_without_effect_is_refused_with_the_reason() {
        let table = <SwiftSender as Algorithm>::INFO.parameters;
        for (name, reason) in WITHOUT_EFFECT {
            let row = table.iter().find(|row| row.name == name).expect("a parameter of Swift");
            let value = row.defaults[0].value;
            refused(&[("base_target", "400us"), (name, value)], name, &[reason, "remove"]);
        }
    }
}
