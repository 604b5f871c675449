//! Failures of external algorithms.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Failure of an external algorithm. The contract of algorithms has no errors, so the run unwinds, as after a
/// panic but without a panic message. This requires `panic = "unwind"`.
pub struct Fault {
    /// Name of the algorithm, and its mistake.
    pub message: String,
    /// Error in the algorithm's own language.
    pub cause: Box<dyn Any + Send>,
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fault").field(&self.message).finish()
    }
}

impl Fault {
    /// Ends the run that called the algorithm.
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }

    /// Calls `run`, which may call algorithms.
    ///
    /// # Errors
    /// The fault that ended `run`.
    pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast::<Self>() {
            Ok(fault) => *fault,
            Err(panic) => resume_unwind(panic),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_caught_with_its_cause_and_a_panic_is_not() {
        let fault = Fault { message: "peak fails".to_owned(), cause: Box::new(7_u8) };
        let caught = Fault::caught(|| fault.raise()).map(|()| "nothing").unwrap_err();
        assert_eq!(caught.message, "peak fails");
        assert_eq!(caught.cause.downcast_ref(), Some(&7_u8));
        let panic = catch_unwind(|| Fault::caught(|| resume_unwind(Box::new("a panic"))));
        assert_eq!(panic.err().and_then(|p| p.downcast_ref().copied()), Some("a panic"));
    }
}
