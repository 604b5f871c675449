//! Declarations of algorithms in Python.

use apus_cc::rtt;
use apus_cc::settings::{
    ANY, AT_LEAST_1, FRACTION, Limits, NOT_NEGATIVE, POSITIVE, PROBABILITY, PROPER_FRACTION,
    choice, count, flag, number, rate, size, time,
};
use apus_cc::{AlgorithmInfo, ParamInfo, ProfileInfo, Settings};
use pyo3::prelude::*;

/// Ranges of parameters, described in the words of the error messages.
const LIMITS: [Limits; 6] =
    [NOT_NEGATIVE, POSITIVE, AT_LEAST_1, FRACTION, PROPER_FRACTION, PROBABILITY];

/// The description of a class, as `_native.pyi` declares it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Declaration {
    pub description: Description,
    methods: Vec<String>,
    ecn: bool,
    /// Hash of the code of the class.
    pub implementation: String,
}

/// Part of a declaration that is kept until the process ends.
#[derive(Clone, PartialEq, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Description {
    summary: String,
    source: String,
    parameters: Vec<Parameter>,
}

/// The declaration of a parameter.
#[derive(Clone, PartialEq, FromPyObject)]
#[pyo3(from_item_all)]
struct Parameter {
    name: String,
    kind: String,
    must: String,
    doc: String,
    default: String,
    source: String,
    words: Vec<String>,
}

/// Optional methods that the class defines, and whether its packets are ECN-capable.
#[derive(Clone, Copy, Default)]
pub struct Hooks {
    pub on_transmit: bool,
    pub on_idle: bool,
    pub on_signal: bool,
    pub on_packet_size: bool,
    pub on_timer: bool,
    pub rto: bool,
    pub path_label: bool,
    /// Whether switches may mark its packets instead of dropping them.
    pub ecn: bool,
}

fn keep(text: String) -> &'static str {
    text.leak()
}

impl Declaration {
    pub fn hooks(&self) -> Hooks {
        let has = |name: &str| self.methods.iter().any(|method| method == name);
        Hooks {
            on_transmit: has("on_transmit"),
            on_idle: has("on_idle"),
            on_signal: has("on_signal"),
            on_packet_size: has("on_packet_size"),
            on_timer: has("on_timer"),
            rto: has("rto"),
            path_label: has("path_label"),
            ecn: self.ecn,
        }
    }
}

impl Description {
    /// Returns the description of the algorithm `name`, which stays until the process ends.
    ///
    /// # Errors
    /// If the default of a parameter is not a valid value of that parameter.
    pub fn info(self, name: String) -> Result<&'static AlgorithmInfo, String> {
        let as_swift = "deviation: no paper; Swift's value, so that runs are comparable";
        let mut parameters = Vec::new();
        for parameter in self.parameters {
            parameters.push(parameter.info()?);
        }
        parameters.extend([
            rtt::RTO_GAIN.default("0.25", as_swift),
            rtt::RTO_MULTIPLIER.default("2", as_swift),
            rtt::MIN_RTO.default("1ms", as_swift),
            rtt::INITIAL_RTO.default("1ms", as_swift),
            rtt::MAX_RTO,
        ]);
        let info = AlgorithmInfo {
            name: keep(name),
            summary: keep(self.summary),
            source: keep(self.source),
            profiles: &[ProfileInfo { name: "python", doc: "the defaults of the class" }],
            parameters: parameters.leak(),
        };
        let info = Box::leak(Box::new(info));
        // Reads every default.
        Settings::read(info, None, &[]).map_err(|error| error.message)?;
        Ok(info)
    }
}

impl Parameter {
    fn info(self) -> Result<ParamInfo, String> {
        let limits = match LIMITS.iter().find(|limits| limits.must == self.must) {
            Some(limits) => *limits,
            None if self.must.is_empty() => ANY,
            None => {
                let words = LIMITS.map(|limits| limits.must).join("\", \"");
                let (name, must) = (self.name, self.must);
                return Err(format!("`{name}`: must={must:?} is not one of \"{words}\""));
            }
        };
        let (name, doc) = (keep(self.name), keep(self.doc));
        let words = || -> &'static [&'static str] {
            self.words.into_iter().map(keep).collect::<Vec<_>>().leak()
        };
        let info = match self.kind.as_str() {
            "number" => number(name, limits, doc),
            "count" => count(name, limits, doc),
            "time" => time(name, limits, doc),
            "size" => size(name, limits, doc),
            "rate" => rate(name, limits, doc),
            "flag" => flag(name, doc),
            "choice" => choice(name, words(), doc),
            other => return Err(format!("`{name}`: unknown kind of parameter `{other}`")),
        };
        Ok(info.default(keep(self.default), keep(self.source)))
    }
}
