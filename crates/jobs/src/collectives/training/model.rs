//! Transformers and their sizes.

/// A transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Name in files.
    pub name: &'static str,
    /// Number of layers.
    pub layers: u32,
    /// Size of an activation (h).
    pub hidden: u32,
    /// Size within a feed-forward network.
    pub feed_forward: u32,
    /// Number of matrices of a feed-forward network: 2, or 3 if it is gated.
    pub matrices: u32,
    /// Number of query heads per head of keys and values.
    pub heads_per_key: u32,
    /// Number of words of the vocabulary.
    pub vocabulary: u32,
    /// Number of tokens of a sequence (s).
    pub sequence: u32,
    /// Number of experts of a layer; 1: no experts.
    pub experts: u32,
    /// Number of experts of a token (k).
    pub chosen: u32,
    /// Whether the output layer shares the weights of the embedding.
    pub tied: bool,
}

const fn llama(name: &'static str, layers: u32, hidden: u32, feed_forward: u32) -> Model {
    Model {
        name,
        layers,
        hidden,
        feed_forward,
        matrices: 3,
        heads_per_key: 1,
        vocabulary: 32_000,
        sequence: 2048,
        experts: 1,
        chosen: 1,
        tied: false,
    }
}

/// The models with a name. LLaMA: Touvron et al., arXiv 2302.13971, Table 2 (feed-forward networks of 8/3 h,
/// rounded up to 256). GPT-3: Brown et al., NeurIPS 2020, Table 2.1. Mixtral: Jiang et al., arXiv 2401.04088,
/// Table 1; deviation: sequences of 4096 tokens instead of its longest one of 32768.
pub const MODELS: [Model; 5] = [
    llama("llama-7b", 32, 4096, 11_008),
    llama("llama-13b", 40, 5120, 13_824),
    llama("llama-65b", 80, 8192, 22_016),
    Model {
        name: "gpt3-175b",
        layers: 96,
        hidden: 12_288,
        feed_forward: 4 * 12_288,
        matrices: 2,
        vocabulary: 50_257,
        tied: true,
        ..llama("", 0, 0, 0)
    },
    Model {
        name: "mixtral-8x7b",
        heads_per_key: 4,
        sequence: 4096,
        experts: 8,
        chosen: 2,
        ..llama("", 32, 4096, 14_336)
    },
];

impl Model {
    /// Returns the number of parameters of the attention of a layer.
    pub(super) fn attention(&self) -> u128 {
        let square = u128::from(self.hidden) * u128::from(self.hidden);
        2 * square + 2 * square / u128::from(self.heads_per_key.max(1))
    }

    /// Returns the number of parameters of a feed-forward network. A layer with experts has several of them.
    pub(super) fn network(&self) -> u128 {
        u128::from(self.matrices) * u128::from(self.hidden) * u128::from(self.feed_forward)
    }

    pub(super) fn embedding(&self) -> u128 {
        u128::from(self.vocabulary) * u128::from(self.hidden)
    }

    /// Returns the number of parameters, without those of norms and of routers of experts; at most [`u64::MAX`].
    #[must_use]
    pub fn parameters(&self) -> u64 {
        let experts = self.network() * u128::from(self.experts);
        let layer = self.attention().saturating_add(experts);
        let embeddings = if self.tied { 1 } else { 2 };
        let layers = u128::from(self.layers).saturating_mul(layer);
        let all = layers.saturating_add(embeddings * self.embedding());
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}
