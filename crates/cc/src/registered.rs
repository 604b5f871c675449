//! What an algorithm says of itself, so that the table can build it by name.

use alloc::sync::Arc;

use crate::expresspass::CreditLimit;
use crate::{
    AlgorithmInfo, Derivation, FlowInfo, ReceiverAlgorithm, Sender, SettingError, Settings,
    SwitchAlgorithm, SwitchInfo, Tunable,
};

/// A sender half that the table can build by name.
pub trait Registered: Sender + Sized {
    /// Its parameters, checked and shared by all flows that use them.
    type Params;
    /// Its name, profiles and parameters.
    const INFO: AlgorithmInfo;
    /// Rules that set parameters from the network, in the order in which they apply.
    const DERIVED: &'static [Derivation] = &[];
    /// Settings that a search for the best operating point varies, at most one per profile.
    const TUNED: &'static [Tunable] = &[];

    /// Reads its parameters, and says which ones are without effect.
    ///
    /// # Errors
    /// If a value is impossible, contradicts another or was set without effect.
    fn params(settings: &mut Settings) -> Result<Self::Params, SettingError>;

    /// The sender half of a new flow.
    fn new(params: Arc<Self::Params>, flow: &FlowInfo) -> Self;

    /// The receiver half of a new flow; the default acknowledges all data.
    #[must_use]
    fn receiver(_params: &Arc<Self::Params>, _flow: &FlowInfo) -> ReceiverAlgorithm {
        ReceiverAlgorithm::Acknowledging
    }

    /// The switch half of one class of a port; the default takes no part.
    #[must_use]
    fn switch(_params: &Arc<Self::Params>, _port: &SwitchInfo) -> SwitchAlgorithm {
        SwitchAlgorithm::Plain
    }

    /// Whether flows lean on gaps between packets, or credits, as short as a packet of a fast link
    /// takes: a simulator then times them to some nanoseconds.
    const FINE_TIMERS: bool = false;

    /// What ports do to the algorithm's credits, if it lives on credits.
    #[must_use]
    fn credit_limit(_params: &Self::Params) -> Option<CreditLimit> {
        None
    }

    /// Whether it reads how full the receiver's buffer is ([`AckEvent::receiver_level`](crate::AckEvent)).
    #[must_use]
    fn reads_receiver_level(_params: &Self::Params) -> bool {
        false
    }
}
