//! The parameters of DCTCP, each with its source.

use crate::bounds;
use crate::rtt::{self, RtoRule};
use crate::settings::{ParamDefault, ParamInfo, SettingError, Settings, number, require};

/// DCTCP as its RFC has it.
pub(super) const RFC8257: &str = "rfc8257";
/// Google's variant that Swift was compared with.
pub(super) const GCN: &str = "gcn";

const fn both(value: &'static str, source: &'static str) -> ParamDefault {
    ParamDefault { profiles: &[RFC8257, GCN], value, source }
}

/// Every parameter.
pub(super) const TABLE: &[ParamInfo] = &[
    number(
        "g",
        "weight of the newest window of data in the estimate of the marked fraction",
        &[
            ParamDefault {
                profiles: &[RFC8257],
                value: "0.0625",
                source: "RFC 8257 §4.2: 1/16 in the implementations it describes",
            },
            ParamDefault {
                profiles: &[GCN],
                value: "1",
                source: "Swift §4.1: the current mark rate rather than an EWMA",
            },
        ],
    ),
    number(
        "initial_alpha",
        "estimate of the marked fraction before the first window of data has been acknowledged",
        &[both("1", "RFC 8257 §3.3: DCTCP.Alpha is initialized to 1")],
    ),
    bounds::initial_cwnd(&[both("10", "RFC 6928 §2")]),
    number(
        "min_cwnd",
        "smallest window in packets, also the one after a timeout",
        &[both(
            "1",
            "RFC 5681 §3.1: the loss window is 1 segment; RFC 3168 §6.1.2 lets a cut go there",
        )],
    ),
    bounds::max_cwnd(&[both(
        "256",
        "deviation: an RFC window is bounded by the receiver; Swift's ceiling here, so that \
             runs compare",
    )]),
    rtt::rto_gain(&[both(
        "0.25",
        "deviation: RFC 6298 adds the variance; Swift's rule, so that runs compare",
    )]),
    rtt::rto_multiplier(&[both(
        "2",
        "deviation: RFC 6298 adds the variance; Swift's rule, so that runs compare",
    )]),
    rtt::min_rto(&[both(
        "1ms",
        "deviation: RFC 6298 §2.4 says 1 s, far too long in a datacenter; with 1 ms and 3.4 MB of \
         buffer the loss of Swift §5.3 (5.1 %) comes out for GCN",
    )]),
    rtt::initial_rto(&[both("1ms", "deviation: RFC 6298 §2.1 says 1 s; as min_rto")]),
];

/// The parameters of DCTCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Weight of the newest window of data in the marked fraction, in (0, 1] (RFC 8257 §3.3).
    pub g: f64,
    /// First estimate of the marked fraction (RFC 8257 §3.3).
    pub initial_alpha: f64,
    /// First window in packets (RFC 6928 §2).
    pub initial_cwnd: f64,
    /// Smallest window in packets, at least 1: DCTCP does not pace.
    pub min_cwnd: f64,
    /// Largest window in packets.
    pub max_cwnd: f64,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks them.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let params = Self {
            g: settings.number("g"),
            initial_alpha: settings.number("initial_alpha"),
            initial_cwnd: settings.number("initial_cwnd"),
            min_cwnd: settings.number("min_cwnd"),
            max_cwnd: settings.number("max_cwnd"),
            rto: RtoRule::from_settings(settings),
        };
        params.validate()?;
        Ok(params)
    }

    fn validate(&self) -> Result<(), SettingError> {
        require(self.g > 0.0 && self.g <= 1.0, "g", "above 0 and at most 1", self.g)?;
        let alpha = self.initial_alpha;
        require((0.0..=1.0).contains(&alpha), "initial_alpha", "between 0 and 1", alpha)?;
        bounds::check_unpaced(self.initial_cwnd, self.min_cwnd, self.max_cwnd)?;
        self.rto.validate()
    }
}
