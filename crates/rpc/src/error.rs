//! Errors of calls, clients, servers and bodies, and whether a call may have run.

use std::fmt;

use apus_udp::End;
use thiserror::Error;

/// Whether the handler of a failed call may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Executed {
    /// The handler has not run and will not run. The call can safely be repeated.
    NotRun,
    /// The handler has not run, is running, or has run: this is unknown. Repeat the call only if running it twice does no harm.
    MayHaveRun,
    /// The handler has run, in part or in full.
    Ran,
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRun => "the call did not run",
            Self::MayHaveRun => "the call may have run",
            Self::Ran => "the call ran",
        })
    }
}

/// Reason why a call failed. [`CallError::executed`] returns whether its handler may have run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The client has as many outstanding calls as the client or the server allows, or its connection has as many outstanding ops
    /// as the transport allows.
    #[error(
        "this client has {limit} outstanding calls or messages, as many as `max_calls`, the server or `max_ops` of the \
         transport allow; wait for one"
    )]
    Busy {
        /// Maximum number of outstanding calls or, if the transport is full, of outstanding ops.
        limit: usize,
    },
    /// The server has as many calls as its configuration allows.
    #[error("the server is overloaded (`max_calls` of the server); the call did not run")]
    Overloaded,
    /// The server is stopping, or its host drains ([`Host::drain`](apus_udp::Host::drain)).
    #[error("the server is stopping; the call did not run")]
    Stopping,
    /// The server has no method with this number. [`Client::method`](crate::Client::method) returns the numbers of the server's
    /// methods.
    #[error("the server has no such method")]
    UnknownMethod,
    /// The payload is longer than the maximum length of a message. Send it as a body.
    #[error("a payload of {length} B is longer than the limit of {limit} B; send it as a body")]
    TooLong {
        /// Length of the payload in bytes.
        length: usize,
        /// Maximum length in bytes.
        limit: usize,
    },
    /// The deadline of the call passed.
    #[error("the deadline passed; {0}")]
    Deadline(Executed),
    /// The call was cancelled.
    #[error("the call was cancelled; {0}")]
    Cancelled(Executed),
    /// The handler returned a failure.
    #[error("the handler failed with code {}: {}", .0.code, .0.message)]
    Failed(Failure),
    /// The handler panicked. The server continues.
    #[error("the handler panicked")]
    Panicked,
    /// The handler dropped the call without answering it.
    #[error("the handler gave no answer")]
    NoAnswer,
    /// The answer of the handler is longer than the maximum length of a message. The handler should send it as a body.
    #[error("the answer is longer than a message may be; the handler should send it as a body")]
    AnswerTooLong,
    /// The connection ended, or the wait was refused ([`End::WouldDeadlock`]).
    #[error("{0}; {1}")]
    Ended(End, Executed),
    /// The memory of a body could not be registered.
    #[error("the memory of the body could not be registered: the host has 65536 regions")]
    NoRegion,
}

impl CallError {
    /// Returns whether the handler may have run.
    #[must_use]
    pub fn executed(&self) -> Executed {
        match self {
            Self::Busy { .. }
            | Self::Overloaded
            | Self::Stopping
            | Self::UnknownMethod
            | Self::TooLong { .. }
            | Self::NoRegion => Executed::NotRun,
            Self::Failed(_) | Self::Panicked | Self::NoAnswer | Self::AnswerTooLong => {
                Executed::Ran
            }
            Self::Deadline(executed) | Self::Cancelled(executed) | Self::Ended(_, executed) => {
                *executed
            }
        }
    }
}

/// Failure of a handler: a number for programs and a text for people. Both are sent to the caller.
///
/// Every [`std::error::Error`] converts to a failure with code 0 and the text of the error, so that handlers can use `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Number whose meaning is defined by client and server.
    pub code: u32,
    /// Text for people.
    pub message: String,
}

impl Failure {
    /// Returns a failure with this code and text.
    #[must_use]
    pub fn new(code: u32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { code: 0, message: error.to_string() }
    }
}

/// Reason why a client could not connect.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The transport did not open the connection.
    #[error("{0}")]
    Transport(#[from] apus_udp::ConnectError),
    /// The connection ended before the server answered.
    #[error("the connection ended before the server answered: {0}")]
    Ended(#[from] End),
    /// The peer accepted the connection but did not answer as an RPC server in time.
    #[error(
        "the peer has accepted the connection but does not answer as an RPC server; check that a \
         `Server` serves the connection"
    )]
    NoServer,
    /// The peer's answer is not a message of this protocol.
    #[error("the peer does not speak the RPC protocol: {0}")]
    NotRpc(String),
    /// Client and server have no common version of the protocol.
    #[error(
        "the server speaks versions {min} to {max} of the RPC protocol, this client {}",
        crate::envelope::VERSION
    )]
    Version {
        /// Lowest version that the server supports.
        min: u8,
        /// Highest version that the server supports.
        max: u8,
    },
    /// A setting is impossible.
    #[error("{0}")]
    Setting(String),
}

/// Error: the server has no method with this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the server has no method `{name}`; it has: {known}")]
pub struct UnknownMethod {
    /// Name of the method that was requested.
    pub name: String,
    /// Names of the server's methods.
    pub known: String,
}

/// Reason why a server could not start or serve a connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A setting is impossible.
    #[error("{0}")]
    Setting(String),
    /// The system could not start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The table of methods is longer than the maximum length of a message to the peer.
    #[error("the names of the methods take {length} B, but the peer accepts messages of {limit} B")]
    TableTooLong {
        /// Length of the table in bytes.
        length: usize,
        /// Maximum length in bytes.
        limit: usize,
    },
}

/// Reason why a body ended early.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The other side has given up the body, or the call has ended.
    #[error("the other side has given up the body")]
    GivenUp,
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The deadline of the call passed.
    #[error("the deadline of the call passed")]
    Deadline,
    /// The connection ended, or the wait was refused ([`End::WouldDeadlock`]).
    #[error("{0}")]
    Ended(End),
    /// The body is longer than the caller accepts.
    #[error("the body is longer than {limit} B")]
    TooLong {
        /// Maximum length in bytes.
        limit: usize,
    },
    /// One of the hosts drains ([`Host::drain`](apus_udp::Host::drain)), so no further byte can be fetched. Drain the server
    /// first ([`Server::drain`](crate::Server::drain)).
    #[error(
        "a host is shutting down, so that no further byte can be fetched; drain the server first"
    )]
    Draining,
    /// The peer reported an impossible position.
    #[error("the peer has reported an impossible position of the body")]
    Invalid,
}
