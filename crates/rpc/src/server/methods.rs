//! The methods of a server.

use std::future::Future;
use std::sync::atomic::AtomicBool;

use super::incoming::Incoming;
use super::link::Reply;
use super::tasks::HandlerFuture;
use crate::error::Failure;

type Blocking = dyn Fn(&mut Incoming) -> Result<Reply, Failure> + Send + Sync;

/// The handler of a method, with the duration of its last call.
pub(super) struct Handler {
    pub(super) code: Code,
    /// Whether the last call took less than [`SHORT`](super::pool::SHORT) of a worker's time.
    pub(super) short: AtomicBool,
}

/// The code of a method.
pub(super) enum Code {
    Blocking(Box<Blocking>),
    Async(Box<dyn Fn(Incoming) -> HandlerFuture + Send + Sync>),
    Owning(Box<dyn Fn(Incoming) + Send + Sync>),
}

/// The methods of a server: names and handlers. A handler may run in several threads at the same time.
///
/// Each method must have its own name: a server with two methods of the same name does not start.
#[derive(Default)]
pub struct Methods {
    pub(super) names: Vec<String>,
    pub(super) handlers: Vec<Handler>,
}

impl Methods {
    /// Returns an empty table of methods.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn add(mut self, name: &str, code: Code) -> Self {
        self.names.push(name.to_owned());
        self.handlers.push(Handler { code, short: AtomicBool::new(false) });
        self
    }

    /// Adds a method whose handler runs in a worker of the server until it returns the answer. The handler may block: other
    /// workers serve other calls during that time ([`ServerOptions::workers`](crate::ServerOptions::workers)).
    #[must_use]
    pub fn with<R: Into<Reply>>(
        self,
        name: &str,
        handler: impl Fn(&mut Incoming) -> Result<R, Failure> + Send + Sync + 'static,
    ) -> Self {
        let run = move |call: &mut Incoming| handler(call).map(Into::into);
        self.add(name, Code::Blocking(Box::new(run)))
    }

    /// Adds a method whose handler is a future, which the workers of the server poll. The future must not block. If the call is
    /// cancelled or its deadline passes, the future is dropped. To use types of tokio that need its runtime, spawn a task on the
    /// runtime with [`Methods::with_answer`].
    #[must_use]
    pub fn with_async<R: Into<Reply>, F>(
        self,
        name: &str,
        handler: impl Fn(Incoming) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let begin = move |call: Incoming| -> HandlerFuture {
            let future = handler(call);
            Box::pin(async move { future.await.map(Into::into) })
        };
        self.add(name, Code::Async(Box::new(begin)))
    }

    /// Adds a method whose handler takes the call and answers it later, in any thread or runtime ([`Incoming::answer`]).
    #[must_use]
    pub fn with_answer(
        self,
        name: &str,
        handler: impl Fn(Incoming) + Send + Sync + 'static,
    ) -> Self {
        self.add(name, Code::Owning(Box::new(handler)))
    }
}
