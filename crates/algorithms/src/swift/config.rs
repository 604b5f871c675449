//! The parameters of Swift as a program sets them, and their checks.

use apus_units::Span;

use super::params::{self, FALCON, PAPER};
use super::target::{TargetConfig, TargetRule};
use super::window::Aimd;
use crate::swift::Swift;
use apus_cc::settings::{SettingError, Settings, require};
use apus_cc::{Algorithm, RtoRule};

/// The rules in which the sources differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Algorithm 1 of the paper.
    Paper,
    /// The Swift of Google's published Falcon simulator: other timeouts and another guard.
    Falcon,
}

/// The signal that drives the second window of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostSignal {
    /// No second window: one window follows the whole end-to-end RTT (Swift-v0, §5.4).
    EndToEnd,
    /// The endpoint delay, filtered (Swift §3.3).
    EndpointDelay {
        /// Target of the endpoint delay.
        target: Span,
        /// Weight of a new sample in the average, in (0, 1].
        gain: f64,
        /// Smallest endpoint window in packets; 0 for the minimum of both windows.
        min_cwnd: f64,
    },
    /// The fill level of the receiver's buffer (Falcon).
    ReceiverBuffer {
        /// Target level in 32nds.
        target_level: u32,
        /// Packets added per ACK below it.
        increase: f64,
    },
}

/// The windows at which packets are paced rather than clocked by ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenToPace {
    /// Windows below one packet (Swift Alg. 1 l. 29).
    BelowOne,
    /// At every window, as Swift §3.4 discusses and rejects.
    Always,
}

/// When a flow changes its path (Falcon's PLB).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathChange {
    /// A packet counts as delayed above this multiple of the target.
    pub delay_factor: f64,
    /// Fraction of delayed packets from which a round counts as delayed.
    pub delayed_fraction: f64,
    /// Number of delayed rounds in a row that changes the path.
    pub rounds: u32,
}

/// The parameters of Swift. [`Config::paper`] and [`Config::falcon`] are the profiles' defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The rules in force.
    pub rules: Rules,
    /// Additive increment in packets per RTT (Alg. 1).
    pub ai: f64,
    /// Multiplicative decrease constant (Alg. 1).
    pub beta: f64,
    /// Largest fraction that one decrease takes away (Alg. 1).
    pub max_mdf: f64,
    /// Smallest window in packets (§3.4).
    pub min_cwnd: f64,
    /// Largest window in packets, of each of the two windows (§3.3 footnote 3).
    pub max_cwnd: f64,
    /// First window in packets.
    pub initial_cwnd: f64,
    /// Timeouts in a row after which the window falls to its minimum (Alg. 1 l. 17).
    pub retx_reset_threshold: u32,
    /// Whether a loss detected by SACK cuts the window (Alg. 1 l. 22-25).
    pub max_decrease_on_loss: bool,
    /// The target of the fabric delay (§3.5).
    pub target: TargetConfig,
    /// The signal that drives the second window.
    pub host: HostSignal,
    /// When packets are paced (§3.4).
    pub pacing: WhenToPace,
    /// Longest delay between two packets of a paced flow (deviation: Alg. 1 l. 30 has no bound).
    pub max_pacing_delay: Span,
    /// Path changes; `None` for never.
    pub path_change: Option<PathChange>,
    /// The retransmission timeout (§3.6).
    pub rto: RtoRule,
}

impl Config {
    /// The defaults of the profile `paper`.
    #[must_use]
    pub fn paper() -> Self {
        Self::profile(PAPER)
    }

    /// The defaults of the profile `falcon`.
    #[must_use]
    pub fn falcon() -> Self {
        Self::profile(FALCON)
    }

    fn profile(name: &str) -> Self {
        let info = &<Swift as Algorithm>::INFO;
        let settings = Settings::read(info, Some(name), &[]);
        let config = settings.and_then(|mut settings| Self::from_settings(&mut settings));
        config.unwrap_or_else(|error| panic!("the defaults of `{name}` must be sound: {error}"))
    }

    /// Reads the parameters, and reports settings without effect.
    ///
    /// # Errors
    /// If a setting would have no effect. Values are checked by [`Params::new`].
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let rules = if settings.profile() == FALCON { Rules::Falcon } else { Rules::Paper };
        let target = TargetConfig {
            base_target: settings.time("base_target"),
            hop_scale: settings.time("hop_scale"),
            fs_range: settings.time("fs_range"),
            fs_min_cwnd: settings.number("fs_min_cwnd"),
            fs_max_cwnd: settings.number("fs_max_cwnd"),
        };
        if target.fs_range.is_zero() {
            let scaling = ["fs_min_cwnd", "fs_max_cwnd"];
            settings.without_effect(&scaling, "while `fs_range` is 0 (no flow scaling)")?;
        }
        let host = match rules {
            Rules::Falcon => HostSignal::ReceiverBuffer {
                target_level: settings.count("buffer_target"),
                increase: settings.number("buffer_increase"),
            },
            Rules::Paper if settings.flag("decompose") => HostSignal::EndpointDelay {
                target: settings.time("endpoint_target"),
                gain: settings.number("endpoint_gain"),
                min_cwnd: settings.number("endpoint_min_cwnd"),
            },
            Rules::Paper => {
                let endpoint = ["endpoint_target", "endpoint_min_cwnd", "endpoint_gain"];
                settings.without_effect(&endpoint, "while `decompose` is false")?;
                HostSignal::EndToEnd
            }
        };
        let path_change = (rules == Rules::Falcon).then(|| PathChange {
            delay_factor: settings.number("plb_delay_factor"),
            delayed_fraction: settings.number("plb_delayed_fraction"),
            rounds: settings.count("plb_rounds"),
        });
        let pace_always = settings.choice("pacing") == params::PACE_ALWAYS;
        Ok(Self {
            rules,
            ai: settings.number("ai"),
            beta: settings.number("beta"),
            max_mdf: settings.number("max_mdf"),
            min_cwnd: settings.number("min_cwnd"),
            max_cwnd: settings.number("max_cwnd"),
            initial_cwnd: settings.number("initial_cwnd"),
            retx_reset_threshold: settings.count("retx_reset_threshold"),
            max_decrease_on_loss: settings.flag("max_decrease_on_loss"),
            target,
            host,
            pacing: if pace_always { WhenToPace::Always } else { WhenToPace::BelowOne },
            max_pacing_delay: settings.time("max_pacing_delay"),
            path_change,
            rto: RtoRule::from_settings(settings),
        })
    }

    fn validate(&self) -> Result<(), SettingError> {
        let positive = |name: &str, value: f64| {
            require(value > 0.0 && value.is_finite(), name, "above 0", value)
        };
        let fraction = |name: &str, value: f64| {
            require(value > 0.0 && value <= 1.0, name, "above 0 and at most 1", value)
        };
        positive("ai", self.ai)?;
        fraction("beta", self.beta)?;
        let cut = self.max_mdf > 0.0 && self.max_mdf < 1.0;
        require(cut, "max_mdf", "above 0 and below 1", self.max_mdf)?;
        positive("min_cwnd", self.min_cwnd)?;
        positive("max_cwnd", self.max_cwnd)?;
        let ordered = self.min_cwnd <= self.max_cwnd;
        require(ordered, "min_cwnd", "at most max_cwnd", self.min_cwnd)?;
        let inside = (self.min_cwnd..=self.max_cwnd).contains(&self.initial_cwnd);
        require(inside, "initial_cwnd", "between min_cwnd and max_cwnd", self.initial_cwnd)?;
        let threshold = self.retx_reset_threshold;
        require(threshold >= 1, "retx_reset_threshold", "at least 1", threshold)?;
        let longest = self.max_pacing_delay;
        require(!longest.is_zero(), "max_pacing_delay", "above 0", longest)?;
        let target = &self.target;
        require(!target.base_target.is_zero(), "base_target", "above 0", target.base_target)?;
        if !target.fs_range.is_zero() {
            positive("fs_min_cwnd", target.fs_min_cwnd)?;
            positive("fs_max_cwnd", target.fs_max_cwnd)?;
            let rising = target.fs_min_cwnd < target.fs_max_cwnd;
            require(rising, "fs_min_cwnd", "below fs_max_cwnd", target.fs_min_cwnd)?;
        }
        match self.host {
            HostSignal::EndToEnd => {}
            HostSignal::EndpointDelay { target, gain, min_cwnd } => {
                require(!target.is_zero(), "endpoint_target", "above 0", target)?;
                let own = (self.min_cwnd..=self.max_cwnd).contains(&min_cwnd);
                let range = "0, or between min_cwnd and max_cwnd";
                require(min_cwnd == 0.0 || own, "endpoint_min_cwnd", range, min_cwnd)?;
                fraction("endpoint_gain", gain)?;
            }
            HostSignal::ReceiverBuffer { target_level: level, increase } => {
                require((1..=31).contains(&level), "buffer_target", "from 1 to 31", level)?;
                positive("buffer_increase", increase)?;
            }
        }
        if let Some(change) = &self.path_change {
            positive("plb_delay_factor", change.delay_factor)?;
            fraction("plb_delayed_fraction", change.delayed_fraction)?;
            require(change.rounds >= 1, "plb_rounds", "at least 1", change.rounds)?;
        }
        self.rto.validate()
    }
}

/// The parameters of Swift, checked and with their constants computed: shared by all flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    pub(super) config: Config,
    pub(super) target: TargetRule,
    /// Parameters of the fabric window.
    pub(super) aimd: Aimd,
    /// Parameters of the endpoint window.
    pub(super) endpoint_aimd: Aimd,
}

impl Params {
    /// Checks `config`.
    ///
    /// # Errors
    /// If a value is out of its range or contradicts another; the error names the parameter.
    pub fn new(config: Config) -> Result<Self, SettingError> {
        config.validate()?;
        let target = TargetRule::new(&config.target);
        let aimd = Aimd {
            ai: config.ai,
            beta: config.beta,
            min_factor: 1.0 - config.max_mdf,
            min_cwnd: config.min_cwnd,
            max_cwnd: config.max_cwnd,
            rules: config.rules,
        };
        let endpoint_aimd = match config.host {
            HostSignal::EndpointDelay { min_cwnd, .. } if min_cwnd > 0.0 => {
                Aimd { min_cwnd, ..aimd }
            }
            HostSignal::EndToEnd
            | HostSignal::EndpointDelay { .. }
            | HostSignal::ReceiverBuffer { .. } => aimd,
        };
        Ok(Self { config, target, aimd, endpoint_aimd })
    }

    /// The configuration from which the parameters were made.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }
}
