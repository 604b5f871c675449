//! Parameters as text: the parameters of an algorithm, the values that a user set, and errors in
//! them.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use apus_units::{Bytes, ParseQuantityError, Rate, Span, suggestion};

use crate::rtt;

use crate::{Derivation, NetworkInfo, Origin, Parameter};

/// The description of an algorithm and of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmInfo {
    /// Name in files and on the command line.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// The publication that defines it.
    pub source: &'static str,
    /// Named sets of defaults; the first one applies if none is named.
    pub profiles: &'static [ProfileInfo],
    /// Parameters of the algorithm.
    pub parameters: &'static [ParamInfo],
}

/// A named set of defaults, and of rules where the sources differ in more than numbers.
#[derive(Clone, Copy, Debug)]
pub struct ProfileInfo {
    /// Name of the profile.
    pub name: &'static str,
    /// Meaning of the profile, in one line.
    pub doc: &'static str,
}

/// A parameter of an algorithm, built by the function of its kind: [`number`], [`count`], [`time`],
/// [`size`], [`rate`], [`flag`] or [`choice`].
#[derive(Clone, Copy, Debug)]
pub struct ParamInfo {
    /// Name, as in the paper.
    pub name: &'static str,
    /// Form of the value.
    pub kind: ParamKind,
    /// Accepted values.
    pub limits: Limits,
    /// Meaning, with the unit if the value is a bare number.
    pub doc: &'static str,
    defaults: [Option<ParamDefault>; MAX_DEFAULTS],
}

/// Maximum number of different defaults of one parameter.
const MAX_DEFAULTS: usize = 4;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $kind:ident;)+) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub const fn $name(
                name: &'static str,
                limits: Limits,
                doc: &'static str,
            ) -> ParamInfo {
                ParamInfo::new(name, ParamKind::$kind, limits, doc)
            }
        )+
    };
}

kinds! {
    /// Creates a parameter that is a dimensionless number.
    number: Number;
    /// Creates a parameter that is a whole number.
    count: Count;
    /// Creates a parameter that is a time.
    time: Time;
    /// Creates a parameter that is a size.
    size: Size;
    /// Creates a parameter that is a rate.
    rate: Rate;
}

/// Creates a parameter that is `true` or `false`.
#[must_use]
pub const fn flag(name: &'static str, doc: &'static str) -> ParamInfo {
    ParamInfo::new(name, ParamKind::Flag, ANY, doc)
}

/// Creates a parameter that is one of `words`.
#[must_use]
pub const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    doc: &'static str,
) -> ParamInfo {
    ParamInfo::new(name, ParamKind::Choice(words), ANY, doc)
}

/// The default of a parameter, in every profile or in one.
#[derive(Clone, Copy, Debug)]
pub struct ParamDefault {
    /// The profile in which it holds; `None` for every profile.
    pub profile: Option<&'static str>,
    /// The value, as a user would write it.
    pub value: &'static str,
    /// Source of the default (`Swift §3.4`, `RFC 8257 §3.3`), or `deviation:` and the reason.
    pub source: &'static str,
}

impl ParamDefault {
    /// Returns `true` if the default holds in `profile`.
    #[must_use]
    pub fn holds_in(&self, profile: &str) -> bool {
        self.profile.is_none_or(|own| own == profile)
    }
}

/// The quantities that a parameter accepts, in picoseconds, bytes or bit/s if it has a unit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The limits in words, such as `above 0`; empty without limits.
    pub must: &'static str,
    holds: fn(f64) -> bool,
}

impl Limits {
    /// Creates limits of a parameter: `must` states them in words, `holds` as a function.
    #[must_use]
    pub const fn new(must: &'static str, holds: fn(f64) -> bool) -> Self {
        Self { must, holds }
    }
}

/// No limits.
pub const ANY: Limits = Limits::new("", |_| true);
/// Not negative.
pub const NOT_NEGATIVE: Limits = Limits::new("0 or more", |x| x >= 0.0);
/// Positive.
pub const POSITIVE: Limits = Limits::new("above 0", |x| x > 0.0);
/// One or more, such as a window without pacing.
pub const AT_LEAST_1: Limits = Limits::new("at least 1", |x| x >= 1.0);
/// Part of a whole, such as a weight in an average.
pub const FRACTION: Limits = Limits::new("above 0 and at most 1", |x| x > 0.0 && x <= 1.0);
/// Part of a whole, less than the whole.
pub const PROPER_FRACTION: Limits = Limits::new("above 0 and below 1", |x| x > 0.0 && x < 1.0);
/// Probability.
pub const PROBABILITY: Limits = Limits::new("between 0 and 1", |x| (0.0..=1.0).contains(&x));

/// The form of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A dimensionless number: `0.8`.
    Number,
    /// A whole number: `3`.
    Count,
    /// A time with its unit: `25us`.
    Time,
    /// A size with its unit: `64KiB`.
    Size,
    /// A rate with its unit: `10Gbps`.
    Rate,
    /// `true` or `false`.
    Flag,
    /// One of the listed words.
    Choice(&'static [&'static str]),
}

/// Largest number without a unit. Rationale: numbers are windows in packets, gains and factors; 10^9
/// packets of 64 B fill a 400 Gb/s link for more than 1 s.
const MAX_NUMBER: f64 = 1e9;
/// Largest count. Rationale: counts are of packets, credits, rounds and timeouts in a row; a million of
/// each takes longer than any run.
const MAX_COUNT: u32 = 1_000_000;
/// Longest delay, target or interval. Rationale: an RTT around the Earth in fibre is 0.4 s.
const MAX_TIME: Span = Span::from_secs(1);
/// Longest retransmission timeout (RFC 6298 §2.5: a maximum must be at least 60 s).
const MAX_TIMEOUT: Span = Span::from_secs(60);
/// Largest size. Rationale: more than 10 s of an 800 Gb/s link.
const MAX_SIZE: Bytes = Bytes::new(1 << 40);
/// Highest rate. Rationale: about 60 times the fastest Ethernet (1.6 Tb/s, IEEE 802.3dj).
const MAX_RATE: Rate = Rate::from_gbps(100_000);

/// Reads a quantity that is at most `most`.
fn at_most<T>(text: &str, most: T) -> Result<T, String>
where
    T: core::str::FromStr<Err = ParseQuantityError> + PartialOrd + fmt::Display,
{
    match text.parse::<T>() {
        Ok(value) if value <= most => Ok(value),
        Ok(_) => Err(format!("it must be at most {most}")),
        Err(error) => Err(error.to_string()),
    }
}

/// A parameter value that has been read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Number(f64),
    Count(u32),
    Time(Span),
    Size(Bytes),
    Rate(Rate),
    Flag(bool),
    Choice(&'static str),
}

/// An invalid setting: names the parameter, the mistake and a valid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The parameter at fault, as the user wrote it, for pointing at its line; `None` if the name
    /// of the algorithm or of the profile is at fault.
    pub parameter: Option<String>,
    /// The mistake, in a sentence that names the parameter.
    pub message: String,
}

impl AlgorithmInfo {
    /// Returns the names of the profiles in which `default` holds.
    pub fn profiles_with(&self, default: &ParamDefault) -> impl Iterator<Item = &'static str> {
        self.profiles.iter().map(|profile| profile.name).filter(|name| default.holds_in(name))
    }
}

impl SettingError {
    /// Creates an error at `parameter`.
    #[must_use]
    pub fn at(parameter: &str, message: String) -> Self {
        Self { parameter: Some(parameter.to_owned()), message }
    }

    /// Creates an error of the name of the algorithm or of the profile.
    #[must_use]
    pub fn of_name(message: String) -> Self {
        Self { parameter: None, message }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for SettingError {}

/// Returns `Ok` if `holds`, otherwise an error at `parameter` with the requirement and the value
/// found.
pub fn require(
    holds: bool,
    parameter: &str,
    must: &str,
    value: impl fmt::Display,
) -> Result<(), SettingError> {
    if holds {
        return Ok(());
    }
    Err(SettingError::at(parameter, format!("`{parameter}` must be {must}, but it is {value}")))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(x) => x.fmt(f),
            Self::Count(n) => n.fmt(f),
            Self::Time(span) => span.fmt(f),
            Self::Size(bytes) => bytes.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Flag(on) => on.fmt(f),
            Self::Choice(word) => f.write_str(word),
        }
    }
}

impl ParamInfo {
    const fn new(name: &'static str, kind: ParamKind, limits: Limits, doc: &'static str) -> Self {
        Self { name, kind, limits, doc, defaults: [None; MAX_DEFAULTS] }
    }

    /// Returns this parameter with a default that holds in every profile.
    #[must_use]
    pub const fn default(self, value: &'static str, source: &'static str) -> Self {
        self.with(ParamDefault { profile: None, value, source })
    }

    /// Returns this parameter with a default that holds in one profile. A profile without a default does not
    /// have the parameter.
    #[must_use]
    pub const fn default_of(
        self,
        profile: &'static str,
        value: &'static str,
        source: &'static str,
    ) -> Self {
        self.with(ParamDefault { profile: Some(profile), value, source })
    }

    const fn with(mut self, default: ParamDefault) -> Self {
        let mut free = 0;
        while self.defaults[free].is_some() {
            free += 1;
        }
        self.defaults[free] = Some(default);
        self
    }

    /// Returns the defaults.
    pub fn defaults(&self) -> impl Iterator<Item = &ParamDefault> {
        self.defaults.iter().flatten()
    }

    /// Returns the default in `profile`; `None` if that profile does not have this parameter.
    #[must_use]
    pub fn default_in(&self, profile: &str) -> Option<&ParamDefault> {
        self.defaults().find(|default| default.holds_in(profile))
    }

    /// Returns an error if `value` is outside the limits.
    fn check(&self, value: Value) -> Result<Value, SettingError> {
        let number = match value {
            Value::Number(x) => x,
            Value::Count(n) => f64::from(n),
            Value::Time(span) => span.as_ps_f64(),
            Value::Size(bytes) => bytes.get() as f64,
            Value::Rate(rate) => rate.as_bps() as f64,
            Value::Flag(_) | Value::Choice(_) => return Ok(value),
        };
        require((self.limits.holds)(number), self.name, self.limits.must, value)?;
        Ok(value)
    }

    /// The largest value that a user can set; `None` for kinds that no rule exceeds.
    fn largest(&self) -> Option<Value> {
        match self.kind {
            ParamKind::Number => Some(Value::Number(MAX_NUMBER)),
            ParamKind::Time if rtt::is_timeout(self.name) => Some(Value::Time(MAX_TIMEOUT)),
            ParamKind::Time => Some(Value::Time(MAX_TIME)),
            ParamKind::Size => Some(Value::Size(MAX_SIZE)),
            ParamKind::Rate => Some(Value::Rate(MAX_RATE)),
            ParamKind::Count | ParamKind::Flag | ParamKind::Choice(_) => None,
        }
    }

    fn read(&self, text: &str) -> Result<Value, SettingError> {
        let fail = |why: String| {
            let name = self.name;
            Err(SettingError::at(name, format!("`{name}` cannot be `{text}`: {why}")))
        };
        let text = text.trim();
        match self.kind {
            ParamKind::Number => match text.parse::<f64>() {
                Ok(x) if x.abs() <= MAX_NUMBER => Ok(Value::Number(x)),
                Ok(x) if x.is_finite() => {
                    fail(format!("it must be from -{MAX_NUMBER} to {MAX_NUMBER}"))
                }
                _ => fail("it is a number without a unit, like `0.5`".to_owned()),
            },
            ParamKind::Count => match text.parse() {
                Ok(n) if n <= MAX_COUNT => Ok(Value::Count(n)),
                _ => fail(format!("it is a whole number from 0 to {MAX_COUNT}")),
            },
            ParamKind::Time => {
                let timeout = rtt::is_timeout(self.name);
                let most = if timeout { MAX_TIMEOUT } else { MAX_TIME };
                at_most(text, most).map(Value::Time).or_else(fail)
            }
            ParamKind::Size => at_most(text, MAX_SIZE).map(Value::Size).or_else(fail),
            ParamKind::Rate => at_most(text, MAX_RATE).map(Value::Rate).or_else(fail),
            ParamKind::Flag => match text {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => fail("it is `true` or `false`".to_owned()),
            },
            ParamKind::Choice(words) => match words.iter().find(|word| **word == text) {
                Some(word) => Ok(Value::Choice(word)),
                None => fail(format!("unknown word{}", suggestion(text, words.iter().copied()))),
            },
        }
    }
}

/// The parameters of one algorithm in one profile: defaults, overwritten by the user's values.
///
/// Reading a parameter by a name or kind that the algorithm's table does not have is a mistake in
/// the algorithm's code and panics; building each profile once in a test finds it.
#[derive(Clone, Debug)]
pub struct Settings {
    algorithm: &'static AlgorithmInfo,
    profile: &'static str,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: &'static str,
    value: Value,
    origin: Origin,
}

impl Entry {
    fn is_set(&self) -> bool {
        matches!(self.origin, Origin::Set)
    }
}

impl Settings {
    /// Reads `settings` over the defaults of `profile` (the first profile if `None`).
    ///
    /// # Errors
    /// An unknown profile; a parameter that is unknown, set twice, not of this profile or not
    /// readable.
    pub fn read(
        algorithm: &'static AlgorithmInfo,
        profile: Option<&str>,
        settings: &[(&str, &str)],
    ) -> Result<Self, SettingError> {
        let names = || algorithm.profiles.iter().map(|profile| profile.name);
        let wanted = profile.unwrap_or(algorithm.profiles[0].name);
        let Some(profile) = names().find(|name| *name == wanted) else {
            let hint = suggestion(wanted, names());
            let name = algorithm.name;
            return Err(SettingError::of_name(format!("`{name}` has no profile `{wanted}`{hint}")));
        };
        let mut entries = Vec::new();
        for info in algorithm.parameters {
            if let Some(default) = info.default_in(profile) {
                let value = info.read(default.value).and_then(|value| info.check(value))?;
                entries.push(Entry { name: info.name, value, origin: Origin::Default });
            }
        }
        let mut read = Self { algorithm, profile, entries };
        for (name, text) in settings {
            read.set(name, text)?;
        }
        Ok(read)
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        let (algorithm, profile) = (self.algorithm, self.profile);
        let Some(info) = algorithm.parameters.iter().find(|info| info.name == name) else {
            let hint = suggestion(name, self.entries.iter().map(|entry| entry.name));
            let message = format!("`{}` has no parameter `{name}`{hint}", algorithm.name);
            return Err(SettingError::at(name, message));
        };
        let value = info.read(text).and_then(|value| info.check(value))?;
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.name == name) else {
            let others = info.defaults().filter_map(|default| default.profile);
            let others = others.collect::<Vec<_>>().join(", ");
            let message = format!(
                "`{name}` has no effect in the profile `{profile}` of `{}`, only in {others}",
                algorithm.name
            );
            return Err(SettingError::at(name, message));
        };
        if entry.is_set() {
            return Err(SettingError::at(name, format!("`{name}` is set twice")));
        }
        *entry = Entry { name: info.name, value, origin: Origin::Set };
        Ok(())
    }

    /// Derives the parameters that the user did not set, by the `rules` that apply to the profile, in the
    /// order of the rules. A value is limited to the largest one that a user could set.
    ///
    /// # Errors
    /// If a rule gives a value of the wrong kind, which is a mistake in the algorithm's code.
    pub fn derive(
        &mut self,
        rules: &'static [Derivation],
        network: &NetworkInfo,
    ) -> Result<(), SettingError> {
        for rule in rules.iter().filter(|rule| rule.profiles.contains(&self.profile)) {
            if self.is_set(rule.parameter) {
                continue;
            }
            let text = (rule.value)(network, self);
            let info = self.algorithm.parameters.iter().find(|info| info.name == rule.parameter);
            let Some(info) = info else { continue };
            let value = info.read(&text).or_else(|error| info.largest().ok_or(error))?;
            let value = info.check(value)?;
            for entry in self.entries.iter_mut().filter(|entry| entry.name == rule.parameter) {
                *entry = Entry { name: entry.name, value, origin: Origin::Derived(rule) };
            }
        }
        Ok(())
    }

    /// Returns `true` if the user set the parameter.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name && entry.is_set())
    }

    /// States that `names` have no effect because of `reason`.
    ///
    /// # Errors
    /// If the user set one of them: a setting without effect is a mistake.
    pub fn without_effect(&mut self, names: &[&str], reason: &str) -> Result<(), SettingError> {
        if let Some(entry) = self.entries.iter().find(|e| e.is_set() && names.contains(&e.name)) {
            let message = format!("`{}` has no effect {reason}; remove one of them", entry.name);
            return Err(SettingError::at(entry.name, message));
        }
        self.entries.retain(|entry| !names.contains(&entry.name));
        Ok(())
    }

    /// Returns the profile from which these settings started.
    #[must_use]
    pub fn profile(&self) -> &'static str {
        self.profile
    }

    /// Returns every parameter that has an effect, with its value and the origin of the value.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        let parameter = |entry: &Entry| Parameter {
            name: entry.name,
            value: entry.value.to_string(),
            origin: entry.origin,
        };
        self.entries.iter().map(parameter).collect()
    }

    fn value(&self, name: &str) -> Value {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        entry.unwrap_or_else(|| panic!("{}: no parameter {name}", self.algorithm.name)).value
    }
}

macro_rules! getters {
    ($($(#[$doc:meta])* $get:ident: $variant:ident($type:ty);)+) => {
        impl Settings {
            $(
                $(#[$doc])*
                ///
                /// # Panics
                /// If the algorithm's table has no parameter of this name and kind.
                #[must_use]
                pub fn $get(&self, name: &str) -> $type {
                    match self.value(name) {
                        Value::$variant(value) => value,
                        other => panic!("{}: {name} is {other:?}", self.algorithm.name),
                    }
                }
            )+
        }
    };
}

getters! {
    /// Returns the value of a [`ParamKind::Number`].
    number: Number(f64);
    /// Returns the value of a [`ParamKind::Count`].
    count: Count(u32);
    /// Returns the value of a [`ParamKind::Time`].
    time: Time(Span);
    /// Returns the value of a [`ParamKind::Size`].
    size: Size(Bytes);
    /// Returns the value of a [`ParamKind::Rate`].
    rate: Rate(Rate);
    /// Returns the value of a [`ParamKind::Flag`].
    flag: Flag(bool);
    /// Returns the value of a [`ParamKind::Choice`].
    choice: Choice(&'static str);
}
