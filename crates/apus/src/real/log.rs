//! Log of the transport's commands, on standard error.

use std::ffi::OsStr;
use std::io::stderr;

use clap::{Args, ValueEnum};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::Failure;

/// Environment variable with the filter, as in other programs that log with `tracing`.
const VARIABLE: &str = "RUST_LOG";

/// Format of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Time, level, target, message and fields as text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Options of the log.
#[derive(Args)]
pub struct LogOptions {
    /// Level of the log on standard error: off, error, warn, info or debug, or levels of targets as in
    /// warn,apus_udp::connection=info [default: the variable RUST_LOG, or warn].
    #[arg(long = "log", value_name = "FILTER", value_parser = filter)]
    filter: Option<Targets>,
    /// Format of the log [default: text].
    #[arg(long = "log-format", value_enum)]
    format: Option<Format>,
}

impl LogOptions {
    /// Starts logging. Only the first call in a process has an effect.
    pub fn install(&self) -> Result<(), Failure> {
        let filter = match &self.filter {
            Some(filter) => filter.clone(),
            None => filter_of_variable(std::env::var_os(VARIABLE).as_deref())?,
        };
        let is_off =
            filter.default_level() == Some(LevelFilter::OFF) && filter.iter().next().is_none();
        if is_off && self.format.is_some() {
            return Err(Failure::Input(
                "--log-format has no effect with --log off; remove one".to_owned(),
            ));
        }
        let lines = layer().with_ansi(false).with_writer(stderr);
        let lines = match self.format {
            None | Some(Format::Text) => lines.boxed(),
            Some(Format::Json) => lines.json().flatten_event(true).boxed(),
        };
        let installed = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
        installed.map_err(|error| Failure::Run(format!("the log cannot begin: {error}")))
    }
}

/// Reads the variable. If it is absent or empty, the level is warn.
fn filter_of_variable(value: Option<&OsStr>) -> Result<Targets, Failure> {
    let value = value.unwrap_or_default();
    let fail = |why: String| Failure::Input(format!("{VARIABLE}={}: {why}", value.display()));
    match value.to_str() {
        Some("") => Ok(Targets::new().with_default(LevelFilter::WARN)),
        Some(text) => text.parse().map_err(|error| fail(format!("{error}"))),
        None => Err(fail("it is not text (UTF-8); write a level such as info".to_owned())),
    }
}

/// Reads `--log`. Unlike in RUST_LOG, every part must have an effect: each target must be one of Apus.
fn filter(text: &str) -> Result<Targets, String> {
    for part in text.split(',') {
        let target = part.split('=').next().unwrap_or(part).trim();
        let is_level = !part.is_empty() && part.parse::<LevelFilter>().is_ok();
        if !is_level && !target.starts_with("apus") {
            return Err(format!(
                "`{part}` is neither off, error, warn, info, debug nor trace, nor TARGET=LEVEL with a target of Apus, \
                 such as apus_udp::connection=info"
            ));
        }
    }
    text.parse().map_err(|error| format!("{error}"))
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::{OsStr, filter, filter_of_variable};

    #[test]
    fn a_filter_is_a_level_or_levels_of_targets_and_anything_else_is_an_error() {
        let max = |text| filter(text).map(|targets| targets.default_level());
        assert_eq!(max("info"), Ok(Some(LevelFilter::INFO)));
        assert_eq!(max("off"), Ok(Some(LevelFilter::OFF)));
        let targets = filter("warn,apus_udp::connection=debug").expect("a filter");
        assert!(targets.would_enable("apus_udp::connection", &tracing::Level::DEBUG));
        assert!(!targets.would_enable("apus_udp::packet", &tracing::Level::INFO));
        for wrong in ["verbose", "hyper=info", "apus_udp=loud", ""] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_variable_is_a_filter_or_an_error() {
        let level = |value: Option<&str>| {
            let targets = filter_of_variable(value.map(OsStr::new));
            targets.map(|targets| targets.default_level()).map_err(|why| why.to_string())
        };
        assert_eq!(level(None), Ok(Some(LevelFilter::WARN)));
        assert_eq!(level(Some("")), Ok(Some(LevelFilter::WARN)));
        assert_eq!(level(Some("debug")), Ok(Some(LevelFilter::DEBUG)));
        let why = level(Some("apus=loud")).expect_err("no level");
        assert!(why.contains("RUST_LOG=apus=loud: "), "{why}");
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_no_text_is_an_error() {
        use std::os::unix::ffi::OsStrExt;

        let value = OsStr::from_bytes(b"debug\xff");
        let why = filter_of_variable(Some(value)).expect_err("no text").to_string();
        assert!(why.contains("RUST_LOG=debug\u{fffd}: it is not text (UTF-8)"), "{why}");
    }
}
