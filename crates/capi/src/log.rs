//! The log of the transport, which goes to a function of the application or to standard error.

use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt::{Debug, Write as _};
use std::io::{Write as _, stderr};
use std::sync::{OnceLock, PoisonError, RwLock};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_global_default;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::failure::{Failure, Status, call};

/// Prefix of the targets of Apus. Other targets belong to Rust code of the application.
const OWN: &str = "apus";

/// `apus_log_callback`.
type Callback = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *const c_char);

/// Destination of log lines.
#[derive(Clone, Copy)]
struct Sink {
    level: LevelFilter,
    /// `None` for standard error.
    callback: Option<Callback>,
    context: *mut c_void,
}

// SAFETY: the header requires a context that the callback can use in any thread.
unsafe impl Send for Sink {}
// SAFETY: as above.
unsafe impl Sync for Sink {}

const OFF: Sink = Sink { level: LevelFilter::OFF, callback: None, context: std::ptr::null_mut() };

static SINK: RwLock<Sink> = RwLock::new(OFF);

fn sink() -> Sink {
    *SINK.read().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of a level in the header.
fn number(level: Level) -> c_int {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG | Level::TRACE => 4,
    }
}

/// The message of an event, followed by its fields, as in "connection opened peer=10.0.0.1:48700".
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// The subscriber of this process.
pub(crate) struct Log;

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= sink().level && metadata.target().starts_with(OWN)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(sink().level)
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let Sink { level, callback, context } = sink();
        // Another thread may have set the level since this event was enabled.
        if *metadata.level() > level {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let (target, text) = (metadata.target(), line.message + &line.fields);
        let Some(callback) = callback else {
            // There is no way to report that standard error fails.
            let _ = writeln!(stderr(), "{} {target}: {text}", metadata.level());
            return;
        };
        // A zero byte would end the text.
        let [target, text] = [target, &text].map(|text| CString::new(text.replace('\0', " ")));
        if let (Ok(target), Ok(text)) = (target, text) {
            // SAFETY: the header requires a function that takes these, in any thread.
            unsafe { callback(context, number(*metadata.level()), target.as_ptr(), text.as_ptr()) };
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // The transport has no spans; spans of other code share one number.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[unsafe(no_mangle)]
extern "C" fn apus_log(level: c_int, callback: Option<Callback>, context: *mut c_void) -> i32 {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    call(|| {
        let level = match level {
            0 => LevelFilter::OFF,
            1 => LevelFilter::ERROR,
            2 => LevelFilter::WARN,
            3 => LevelFilter::INFO,
            4 => LevelFilter::DEBUG,
            other => {
                let what =
                    format!("level {other} is none of APUS_LOG_OFF (0) to APUS_LOG_DEBUG (4)");
                return Err(Failure::invalid(what));
            }
        };
        if !INSTALLED.get_or_init(|| set_global_default(Log).is_ok()) {
            let what = "Rust code of this process has a log (a subscriber of `tracing`), which has the \
                        lines of Apus too";
            return Err(Failure::new(Status::System, what));
        }
        *SINK.write().unwrap_or_else(PoisonError::into_inner) = Sink { level, callback, context };
        tracing::callsite::rebuild_interest_cache();
        Ok(())
    })
}
