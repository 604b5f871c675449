//! The settings of Swift that have an effect in quinn.

use std::sync::Arc;
use std::time::Instant;

use apus_algorithms::swift::{Config, Params, Swift as SwiftSender};
use apus_cc::Algorithm;
use apus_cc::settings::{SettingError, Settings, require};
use quinn_proto::congestion::{Controller, ControllerFactory};

use crate::Swift;

/// Smallest `min_cwnd`.
///
/// Rationale: RFC 9002 §7.2 recommends two packets. A peer may delay the acknowledgement of a single packet for
/// 25 ms (RFC 9000 §13.2.2). A window of one packet would take this delay for congestion, and never grow again.
const MIN_CWND: f64 = 2.0;

/// Maximum number of bytes of a first window of more than two packets (RFC 9002 §7.2).
const MAX_INITIAL_BYTES: f64 = 14720.0;

/// The values of this crate for parameters that the user does not set.
const DEFAULTS: [(&str, &str); 4] = [
    // QUIC measures one RTT, not the delays of hosts.
    ("decompose", "false"),
    // QUIC does not count switches.
    ("hop_scale", "0us"),
    ("min_cwnd", "2"),
    // deviation: Swift §3.2 gives no value, and Apus begins with 1. RFC 9002 §7.2 recommends 10 packets, in
    // which the first flight of a server's handshake fits; `initial_cwnd` below applies its limit in bytes.
    ("initial_cwnd", "10"),
];

const ONE_RTT: &str = "QUIC measures one RTT, which includes the delays of both hosts; remove it, and let \
                       `base_target` cover the hosts";
const OWN_TIMEOUTS: &str = "quinn has its own timeouts (RFC 9002 §6.2); remove it";

/// Parameters that have no effect in quinn, with the reason and what to do instead.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("decompose", ONE_RTT),
    ("endpoint_target", ONE_RTT),
    ("endpoint_min_cwnd", ONE_RTT),
    ("endpoint_gain", ONE_RTT),
    (
        "hop_scale",
        "QUIC does not count switches; remove it, and let `base_target` cover the longest path",
    ),
    ("pacing", "quinn paces packets by its own rule; remove it"),
    ("max_pacing_delay", "quinn paces packets by its own rule; remove it"),
    (
        "retx_reset_threshold",
        "quinn detects persistent congestion; set `TransportConfig::persistent_congestion_threshold` instead",
    ),
    ("rto_gain", OWN_TIMEOUTS),
    ("rto_multiplier", OWN_TIMEOUTS),
    ("min_rto", OWN_TIMEOUTS),
    ("initial_rto", OWN_TIMEOUTS),
    ("max_rto", OWN_TIMEOUTS),
];

/// Parameters of Swift in quinn, and the factory of its controllers.
#[derive(Clone, Debug)]
pub struct SwiftConfig {
    config: Config,
    /// Whether RFC 9002's limit of the first window in bytes applies, because the user has not set
    /// `initial_cwnd`.
    limits_initial_bytes: bool,
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
        let set = |name: &str| settings.iter().find(|(set, _)| *set == name);
        for &(name, reason) in WITHOUT_EFFECT {
            if let Some((_, value)) = set(name) {
                let message = format!("`{name} = {value}` has no effect in quinn: {reason}");
                return Err(SettingError::at(name, message));
            }
        }
        if set("base_target").is_none() {
            let message = "`base_target` is missing; set it to the unloaded RTT with both hosts, plus the \
                           acceptable queueing, such as `400us`";
            return Err(SettingError::at("base_target", message.to_owned()));
        }
        let defaults = DEFAULTS.into_iter().filter(|(name, _)| set(name).is_none());
        let with_defaults: Vec<_> = settings.iter().copied().chain(defaults).collect();
        let config = Config::from_settings(&mut Settings::read(info, None, &with_defaults)?)?;
        require(config.min_cwnd >= MIN_CWND, "min_cwnd", "at least 2 in quinn", config.min_cwnd)?;
        Params::new(config.clone())?;
        Ok(Self { config, limits_initial_bytes: set("initial_cwnd").is_none() })
    }

    /// Returns the parameters in force. Without a setting, `initial_cwnd` is that of packets up to 1472 bytes.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the first window in packets: the setting; or without one at most 14720 bytes or two packets,
    /// whichever is more (RFC 9002 §7.2).
    pub(crate) fn initial_cwnd(&self, mtu: u16) -> f64 {
        let Config { initial_cwnd, min_cwnd, .. } = self.config;
        if !self.limits_initial_bytes {
            return initial_cwnd;
        }
        // `min_cwnd` is at least two packets.
        initial_cwnd.min(MAX_INITIAL_BYTES / f64::from(mtu)).max(min_cwnd)
    }

    /// Returns the parameters of a sender with packets of this size.
    pub(crate) fn params(&self, mtu: u16) -> Arc<Params> {
        let initial_cwnd = self.initial_cwnd(mtu);
        // ECN marks always reduce the window; the controller decides about losses.
        let config = Config { initial_cwnd, max_decrease_on_loss: true, ..self.config.clone() };
        Arc::new(Params::new(config).expect("a first window between both bounds"))
    }
}

impl ControllerFactory for SwiftConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Swift::new(self, now, current_mtu))
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
    fn every_setting_without_effect_is_refused_with_value_reason_and_remedy() {
        let table = <SwiftSender as Algorithm>::INFO.parameters;
        for &(name, reason) in WITHOUT_EFFECT {
            let row = table.iter().find(|row| row.name == name).expect("a parameter of Swift");
            let value = row.defaults().next().expect("a default").value;
            let set = format!("`{name} = {value}`");
            refused(&[("base_target", "400us"), (name, value)], name, &[&set, reason]);
            assert!(reason.contains("; remove it") || reason.contains("; set `"), "{reason}");
        }
        let words = ["`endpoint_target = 100us`", "both hosts; remove it", "`base_target` cover"];
        refused(&[("base_target", "1ms"), ("endpoint_target", "100us")], "endpoint_target", &words);
    }

    /// RFC 9002 §7.2: min(10 packets, max(14720 bytes, 2 packets)).
    #[test]
    fn the_first_window_has_ten_packets_limited_in_bytes_unless_it_is_set() {
        let first = |settings: &[(&str, &str)], mtu| {
            let settings = [settings, &[("base_target", "400us")]].concat();
            SwiftConfig::new(&settings).expect("valid").initial_cwnd(mtu)
        };
        assert_eq!(first(&[], 1200), 10.0);
        assert_eq!(first(&[], 1472), 10.0);
        assert_eq!(first(&[], 2048), 7.1875);
        assert_eq!(first(&[], 7360), 2.0);
        assert_eq!(first(&[], 9000), 2.0);
        assert_eq!(first(&[("min_cwnd", "3")], 9000), 3.0);
        assert_eq!(first(&[("initial_cwnd", "10")], 9000), 10.0);
    }
}
