//! Sizes of messages and times of computations of a training step.

use apus_units::Span;

use super::Training;
use crate::collectives::CollectiveError;

/// Maximum number of bytes of a collective or a message. Rationale: same limit as for sizes in scenarios;
/// about 200 times the gradients of a layer of GPT-3.
const MAX_BYTES: u64 = 1 << 40;

/// Returns a size that [`Training::check_sizes`] has found to be at most [`MAX_BYTES`].
pub(super) fn checked(bytes: u128) -> u64 {
    debug_assert!(bytes <= MAX_BYTES.into());
    bytes as u64
}

impl Training {
    /// Rejects sizes above [`MAX_BYTES`].
    pub(super) fn check_sizes(&self) -> Result<(), CollectiveError> {
        let sizes = [
            ("bytes of activations", self.activations()),
            ("bytes of tokens for experts", self.exchanged()),
            ("bytes of gradients", self.bytes_of(self.dense(2))),
            ("bytes of gradients of experts", self.bytes_of(self.experts())),
        ];
        match sizes.into_iter().find(|(_, bytes)| *bytes > MAX_BYTES.into()) {
            None => Ok(()),
            Some((what, bytes)) => {
                let value = u64::try_from(bytes).unwrap_or(u64::MAX);
                let range = alloc::format!("at most {MAX_BYTES} (2^40)");
                Err(CollectiveError::Range { what, value, range })
            }
        }
    }

    /// Returns the time that a rank takes for its share of a number of floating point operations of its tensor group.
    fn time(&self, operations: f64) -> Span {
        Span::from_ps_f64(operations / (f64::from(self.tp) * self.flops) * 1e12)
    }

    /// Returns the number of tokens of a micro-batch.
    fn tokens(&self) -> u64 {
        u64::from(self.micro_batch) * u64::from(self.model.sequence)
    }

    /// Returns the bytes of the activations of a micro-batch between layers.
    pub(super) fn activations(&self) -> u128 {
        let elements = u128::from(self.tokens()) * u128::from(self.model.hidden);
        elements.saturating_mul(self.element.into())
    }

    /// Returns the bytes that a rank has for the experts of a micro-batch in a layer.
    pub(super) fn exchanged(&self) -> u128 {
        self.activations().saturating_mul(self.model.chosen.into()) / u128::from(self.tp)
    }

    /// Returns the number of parameters of a layer that all ranks of a data group hold, including a number of
    /// embeddings.
    pub(super) fn dense(&self, embeddings: u32) -> u128 {
        let network = if self.model.experts == 1 { self.model.network() } else { 0 };
        let layer = self.model.attention().saturating_add(network);
        layer.saturating_add(u128::from(embeddings) * self.model.embedding())
    }

    /// Returns the number of parameters of the experts of a layer that a rank of an expert group holds.
    pub(super) fn experts(&self) -> u128 {
        match self.model.experts {
            1 => 0,
            count => self.model.network() * u128::from(count / self.ep),
        }
    }

    /// Returns the bytes of the gradients of parameters of a tensor group on one of its ranks.
    pub(super) fn bytes_of(&self, parameters: u128) -> u128 {
        (parameters / u128::from(self.tp)).saturating_mul(self.element.into())
    }

    /// Returns the time of the attention of a layer, forward.
    pub(super) fn attention_time(&self) -> Span {
        let tokens = self.tokens() as f64;
        let (sequence, hidden) = (f64::from(self.model.sequence), f64::from(self.model.hidden));
        let scores = 4.0 * tokens * sequence * hidden;
        self.time(2.0 * self.model.attention() as f64 * tokens + scores)
    }

    /// Returns the time of the feed-forward network of a layer, forward.
    pub(super) fn network_time(&self) -> Span {
        let parameters = self.model.network() as f64 * f64::from(self.model.chosen);
        self.time(2.0 * parameters * self.tokens() as f64)
    }

    /// Returns the time of the output layer, forward.
    pub(super) fn output_time(&self) -> Span {
        self.time(2.0 * self.model.embedding() as f64 * self.tokens() as f64)
    }
}
