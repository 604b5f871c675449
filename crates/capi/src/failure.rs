//! Statuses, reasons, and the message of the last failure of each thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use apus_udp::keyfile::KeyFileError;
use apus_udp::{Cause, ConnectError, End, OpError, Refusal, StartError, SubmitError, WordError};

/// `apus_status`, with the numbers of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Ok = 0,
    Invalid = 1,
    System = 2,
    Stopped = 3,
    NoAnswer = 4,
    Refused = 5,
    PeerFull = 6,
    TooMany = 7,
    NoKey = 8,
    Exists = 9,
    Crossed = 10,
    Incompatible = 11,
    Full = 12,
    TooLong = 13,
    Ended = 14,
    Timeout = 15,
    TooSmall = 16,
    NotSent = 17,
    OpRefused = 18,
    Unknown = 19,
    CipherRefused = 20,
    OtherMode = 21,
    PortClosed = 22,
    NoRoute = 23,
    PeerDraining = 24,
    Draining = 25,
    Unlisted = 26,
    Quota = 27,
}

/// `apus_reason`, with its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Reason {
    None = 0,
    Cancelled = 1,
    Deadline = 2,
    Withdrawn = 3,
    ClosedHere = 4,
    ClosedByPeer = 5,
    Silent = 6,
    PeerRestarted = 7,
    Replaced = 8,
    Stopped = 9,
    NoRegion = 10,
    NotAllowed = 11,
    OutOfBounds = 12,
    TooLong = 13,
    KeyWithdrawn = 14,
    Unsendable = 15,
    EngineFailed = 16,
}

const REASONS: [(Reason, &CStr); 17] = [
    (Reason::None, c"none"),
    (Reason::Cancelled, c"it was cancelled"),
    (Reason::Deadline, c"its deadline passed"),
    (Reason::Withdrawn, c"the peer withdrew the region meanwhile"),
    (Reason::ClosedHere, c"the connection was closed here"),
    (Reason::ClosedByPeer, c"the peer closed the connection"),
    (Reason::Silent, c"the peer was silent for too long"),
    (Reason::PeerRestarted, c"the peer was restarted"),
    (Reason::Replaced, c"the peer opened another connection in its place"),
    (Reason::Stopped, c"the engine has stopped"),
    (Reason::NoRegion, c"the peer has no region with this key"),
    (Reason::NotAllowed, c"the region does not allow this kind of access"),
    (Reason::OutOfBounds, c"the op reaches beyond the region's end"),
    (Reason::TooLong, c"the message is longer than the peer accepts"),
    (Reason::KeyWithdrawn, c"the connection's key was withdrawn here"),
    (Reason::Unsendable, c"a packet of the op could not be built: its memory changed its length"),
    (Reason::EngineFailed, c"an engine of this host panicked"),
];

/// Status and message of a failed call.
pub(crate) struct Failure {
    status: Status,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::Invalid, message)
    }

    /// Returns the failure of an expired timeout.
    pub(crate) fn timeout() -> Self {
        Self::new(Status::Timeout, "the timeout expired")
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let status = match error {
            StartError::Setting(_) => Status::Invalid,
            StartError::Bind(..) | StartError::System(..) => Status::System,
        };
        Self::new(status, error.to_string())
    }
}

/// Errors while a key file is created.
impl From<KeyFileError> for Failure {
    fn from(error: KeyFileError) -> Self {
        let status = if error.is_of_system() { Status::System } else { Status::Invalid };
        Self::new(status, error.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let status = match error {
            ConnectError::TooMany => Status::TooMany,
            ConnectError::NoAnswer => Status::NoAnswer,
            ConnectError::Refused | ConnectError::RefusedBecause(_) => Status::Refused,
            ConnectError::Unlisted => Status::Unlisted,
            ConnectError::Quota => Status::Quota,
            ConnectError::PeerDraining => Status::PeerDraining,
            ConnectError::Draining => Status::Draining,
            ConnectError::PeerFull => Status::PeerFull,
            ConnectError::CipherRefused(_) => Status::CipherRefused,
            ConnectError::NoKey | ConnectError::Name(_) => Status::NoKey,
            ConnectError::Exists => Status::Exists,
            ConnectError::Crossed => Status::Crossed,
            ConnectError::Incompatible(_) => Status::Incompatible,
            ConnectError::OtherMode => Status::OtherMode,
            ConnectError::PortClosed => Status::PortClosed,
            ConnectError::NoRoute => Status::NoRoute,
            ConnectError::Request(_)
            | ConnectError::Family { .. }
            | ConnectError::WouldDeadlock => Status::Invalid,
            ConnectError::Stopped | ConnectError::EngineFailed => Status::Stopped,
        };
        Self::new(status, error.to_string())
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let status = match error {
            SubmitError::Full => Status::Full,
            SubmitError::TooLong { .. } => Status::TooLong,
            SubmitError::AddressOverflow { .. } | SubmitError::Unaligned { .. } => Status::Invalid,
            SubmitError::Ended(_) => Status::Ended,
            SubmitError::PeerDraining => Status::PeerDraining,
            SubmitError::Draining => Status::Draining,
        };
        Self::new(status, error.to_string())
    }
}

impl From<WordError> for Failure {
    fn from(error: WordError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<End> for Failure {
    fn from(end: End) -> Self {
        let status = if end == End::WouldDeadlock { Status::Invalid } else { Status::Ended };
        Self::new(status, end.to_string())
    }
}

/// Returns the status and the reason of an op that failed.
pub(crate) fn of_op(error: &OpError) -> (Status, Reason) {
    let cause = |cause: &Cause| match cause {
        Cause::Cancelled => Reason::Cancelled,
        Cause::Deadline => Reason::Deadline,
        Cause::Withdrawn => Reason::Withdrawn,
        Cause::Unsendable => Reason::Unsendable,
        Cause::Ended(End::EngineFailed) => Reason::EngineFailed,
        Cause::Ended(End::ClosedHere) => Reason::ClosedHere,
        Cause::Ended(End::ClosedByPeer) => Reason::ClosedByPeer,
        Cause::Ended(End::Silent) => Reason::Silent,
        Cause::Ended(End::PeerRestarted) => Reason::PeerRestarted,
        Cause::Ended(End::Replaced) => Reason::Replaced,
        Cause::Ended(End::Stopped) => Reason::Stopped,
        Cause::Ended(End::KeyWithdrawn) => Reason::KeyWithdrawn,
        // Only blocking calls end with this reason, never ops.
        Cause::Ended(End::WouldDeadlock) => Reason::None,
    };
    match error {
        OpError::NotSent(why) => (Status::NotSent, cause(why)),
        OpError::Unknown(why) => (Status::Unknown, cause(why)),
        OpError::Refused(refusal) => {
            let reason = match refusal {
                Refusal::NoRegion => Reason::NoRegion,
                Refusal::NotAllowed => Reason::NotAllowed,
                Refusal::OutOfBounds => Reason::OutOfBounds,
                Refusal::TooLong => Reason::TooLong,
            };
            (Status::OpRefused, reason)
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs a call and returns its status. The message of a failure is kept for [`apus_last_error`].
pub(crate) fn call(body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    match body() {
        Ok(()) => Status::Ok as i32,
        Err(Failure { status, message }) => {
            // A zero byte ends the message, as in C.
            let text = message.split('\0').next().unwrap_or_default();
            // A thread that is ending has no storage for the message any more.
            let _ =
                LAST.try_with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
            status as i32
        }
    }
}

/// Valid until the next call of this thread that fails; empty while the thread ends.
#[unsafe(no_mangle)]
extern "C" fn apus_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn apus_reason_text(reason: i32) -> *const c_char {
    let known = REASONS.iter().find(|(known, _)| *known as i32 == reason);
    known.map_or(c"unknown reason", |&(_, text)| text).as_ptr()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::sync::mpsc;

    use super::*;

    /// Returns the name in C: `PEER_FULL` for `PeerFull`.
    fn in_c(name: &impl Debug) -> String {
        let mut text = String::new();
        for (place, letter) in format!("{name:?}").char_indices() {
            if letter.is_ascii_uppercase() && place > 0 {
                text.push('_');
            }
            text.push(letter.to_ascii_uppercase());
        }
        text
    }

    #[test]
    fn calls_in_destructors_of_a_thread_fail_without_a_text() {
        /// Makes a call fail when its thread ends.
        struct Late(mpsc::Sender<(i32, CString)>);
        impl Drop for Late {
            fn drop(&mut self) {
                let status = call(|| Err(Failure::timeout()));
                // SAFETY: a text.
                let text = unsafe { CStr::from_ptr(apus_last_error()) };
                let _ = self.0.send((status, text.to_owned()));
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            // Destructors run in the reverse order of the first uses, so `LAST` is already gone then.
            LATE.with(|late| *late.borrow_mut() = Some(Late(tell)));
            assert_eq!(call(|| Err(Failure::invalid("early"))), Status::Invalid as i32);
        });
        thread.join().expect("no panic");
        assert_eq!(told.recv(), Ok((Status::Timeout as i32, CString::default())));
    }

    #[test]
    fn the_header_has_the_same_numbers() {
        let header = include_str!("../include/apus.h");
        let entries = header.lines().filter_map(|line| {
            let (name, rest) = line.trim().strip_prefix("APUS_")?.split_once(" = ")?;
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            Some((name.to_owned(), digits.parse::<i32>().ok()?))
        });
        let in_header: BTreeMap<String, i32> =
            entries.filter(|(name, _)| !name.starts_with("MODE_")).collect();
        let statuses = [
            Status::Ok,
            Status::Invalid,
            Status::System,
            Status::Stopped,
            Status::NoAnswer,
            Status::Refused,
            Status::PeerFull,
            Status::TooMany,
            Status::NoKey,
            Status::Exists,
            Status::Crossed,
            Status::Incompatible,
            Status::Full,
            Status::TooLong,
            Status::Ended,
            Status::Timeout,
            Status::TooSmall,
            Status::NotSent,
            Status::OpRefused,
            Status::Unknown,
            Status::CipherRefused,
            Status::OtherMode,
            Status::PortClosed,
            Status::NoRoute,
            Status::PeerDraining,
            Status::Draining,
            Status::Unlisted,
            Status::Quota,
        ];
        let reasons =
            REASONS.iter().map(|(reason, _)| (format!("REASON_{}", in_c(reason)), *reason as i32));
        let ours = statuses.iter().map(|status| (in_c(status), *status as i32)).chain(reasons);
        assert_eq!(in_header, ours.collect());
    }
}
