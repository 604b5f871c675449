//! The table of algorithms by name.
//!
//! A new algorithm is one folder with a sender that implements [`Registered`], and one line in the
//! table at the end of this file.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use apus_units::{Span, Time, suggestion};

use crate::expresspass::CreditLimit;
use crate::{
    AckEvent, AlgorithmInfo, Allowance, Backlog, CongestionHeader, CreditEvent, Derivation,
    FlowInfo, LossEvent, NetworkInfo, Origin, PacketSizeEvent, Parameter, ReceiverAlgorithm,
    Registered, SendInfo, Sender, SenderControl, SettingError, Settings, SignalEvent, Snapshot,
    StateError, StateOverride, SwitchAlgorithm, SwitchInfo, TimeoutEvent, Tunable,
};

/// Every algorithm of the table.
#[must_use]
pub fn algorithms() -> &'static [AlgorithmInfo] {
    TABLE
}

/// Builds an algorithm by name: the defaults of `profile` (its first one if `None`) overlaid with
/// `settings`, pairs of parameter and value (`("base_target", "25us")`).
///
/// # Errors
/// An unknown algorithm, profile or parameter, a value of the wrong kind, out of range or in
/// contradiction to another, or a setting that would have no effect.
pub fn build(
    name: &str,
    profile: Option<&str>,
    settings: &[(&str, &str)],
) -> Result<AlgorithmConfig, SettingError> {
    build_for(name, profile, settings, None)
}

/// Builds an algorithm for a network, as [`build`] does: parameters that depend on the network and that
/// `settings` does not set follow from the algorithm's rules ([`derivations`]) instead of the profile's
/// defaults.
///
/// # Errors
/// As [`build`].
pub fn build_for(
    name: &str,
    profile: Option<&str>,
    settings: &[(&str, &str)],
    network: Option<&NetworkInfo>,
) -> Result<AlgorithmConfig, SettingError> {
    let Some(index) = position(name) else {
        let hint = suggestion(name, TABLE.iter().map(|info| info.name));
        return Err(SettingError::of_name(format!("there is no algorithm `{name}`{hint}")));
    };
    let info = &TABLE[index];
    let mut settings = Settings::read(info, profile, settings)?;
    if let Some(network) = network {
        settings.derive(DERIVED[index], network)?;
    }
    let params = SharedParams::read(index, &mut settings)?;
    let (profile, parameters) = (settings.profile(), settings.parameters());
    let network = network.copied();
    Ok(AlgorithmConfig(Arc::new(Shared { params, info, profile, parameters, network })))
}

fn position(name: &str) -> Option<usize> {
    TABLE.iter().position(|info| info.name == name)
}

/// The rules by which an algorithm's parameters follow from the network; none if there is no such
/// algorithm.
#[must_use]
pub fn derivations(name: &str) -> &'static [Derivation] {
    position(name).map_or(&[], |index| DERIVED[index])
}

/// The setting of an algorithm that a search varies in a profile.
#[must_use]
pub fn tunable(name: &str, profile: &str) -> Option<&'static Tunable> {
    tunables(name).iter().find(|tunable| tunable.profiles.contains(&profile))
}

/// The settings of an algorithm that a search varies, by profile.
#[must_use]
pub fn tunables(name: &str) -> &'static [Tunable] {
    position(name).map_or(&[], |index| TUNED[index])
}

/// An algorithm with its parameters, from which senders of flows are made. Cheap to clone.
#[derive(Clone)]
pub struct AlgorithmConfig(Arc<Shared>);

/// Shows the parameters without their origins: equal parameters behave alike wherever they come from.
impl fmt::Debug for AlgorithmConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, profile) = (self.info().name, self.profile());
        f.debug_tuple("AlgorithmConfig").field(&name).field(&profile).field(&self.0.params).finish()
    }
}

/// Each of a million connections names its algorithm: in one word.
struct Shared {
    params: SharedParams,
    info: &'static AlgorithmInfo,
    profile: &'static str,
    parameters: Vec<Parameter>,
    network: Option<NetworkInfo>,
}

impl AlgorithmConfig {
    /// The sender half of a new flow.
    #[must_use]
    pub fn sender(&self, flow: &FlowInfo) -> Algorithm {
        self.0.params.sender(flow)
    }

    /// The receiver half of a new flow.
    #[must_use]
    pub fn receiver(&self, flow: &FlowInfo) -> ReceiverAlgorithm {
        self.0.params.receiver(flow)
    }

    /// The switch half of one class of a port.
    #[must_use]
    pub fn switch(&self, port: &SwitchInfo) -> SwitchAlgorithm {
        self.0.params.switch(port)
    }

    /// What ports do to the algorithm's credits, if it lives on credits.
    #[must_use]
    pub fn credit_limit(&self) -> Option<CreditLimit> {
        self.0.params.credit_limit()
    }

    /// Whether it reads how full the receiver's buffer is.
    #[must_use]
    pub fn reads_receiver_level(&self) -> bool {
        self.0.params.reads_receiver_level()
    }

    /// Whether its gaps between packets must be timed to some nanoseconds.
    #[must_use]
    pub fn fine_timers(&self) -> bool {
        self.0.params.fine_timers()
    }

    /// What the algorithm is.
    #[must_use]
    pub fn info(&self) -> &'static AlgorithmInfo {
        self.0.info
    }

    /// The profile its defaults came from.
    #[must_use]
    pub fn profile(&self) -> &'static str {
        self.0.profile
    }

    /// Every parameter in force with its value, in a form that [`build`] reads back.
    #[must_use]
    pub fn effective(&self) -> Vec<(&'static str, String)> {
        self.parameters().iter().map(|one| (one.name, one.value.clone())).collect()
    }

    /// Every parameter in force, with its value and where that comes from.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.0.parameters
    }

    /// The network from which parameters were derived, if any was needed.
    #[must_use]
    pub fn network(&self) -> Option<&NetworkInfo> {
        self.0.network.as_ref()
    }

    /// Returns this algorithm with `changes`. Other parameters that the user set stay, except those of
    /// `dropped`; derived parameters are derived again.
    ///
    /// # Errors
    /// As [`build`].
    pub fn changed(
        &self,
        changes: &[(&str, &str)],
        dropped: &[&str],
    ) -> Result<Self, SettingError> {
        let set = self.parameters().iter().filter(|one| matches!(one.origin, Origin::Set));
        let kept = set.map(|one| (one.name, one.value.as_str())).filter(|(name, _)| {
            !dropped.contains(name) && changes.iter().all(|(changed, _)| changed != name)
        });
        let settings: Vec<(&str, &str)> = kept.chain(changes.iter().copied()).collect();
        build_for(self.info().name, Some(self.profile()), &settings, self.network())
    }
}

macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident($sender:ty);)+) => {
        /// The sender halves by kind: dispatch on an event is one branch.
        #[derive(Clone, Debug)]
        pub enum Algorithm {
            $($(#[$doc])* $variant($sender),)+
        }

        const TABLE: &[AlgorithmInfo] = &[$(<$sender as Registered>::INFO),+];
        const DERIVED: &[&[Derivation]] = &[$(<$sender as Registered>::DERIVED),+];
        const TUNED: &[&[Tunable]] = &[$(<$sender as Registered>::TUNED),+];

        #[derive(Clone, Debug)]
        enum SharedParams {
            $($variant(Arc<<$sender as Registered>::Params>),)+
        }

        impl SharedParams {
            /// Reads the parameters of the algorithm in row `index` of the table.
            fn read(index: usize, settings: &mut Settings) -> Result<Self, SettingError> {
                let readers = [$(
                    (|settings| {
                        <$sender as Registered>::params(settings).map(Arc::new).map(Self::$variant)
                    }) as fn(&mut Settings) -> Result<Self, SettingError>
                ),+];
                readers[index](settings)
            }

            fn sender(&self, flow: &FlowInfo) -> Algorithm {
                match self {
                    $(Self::$variant(params) => {
                        Algorithm::$variant(<$sender as Registered>::new(Arc::clone(params), flow))
                    })+
                }
            }

            fn receiver(&self, flow: &FlowInfo) -> ReceiverAlgorithm {
                match self {
                    $(Self::$variant(params) => <$sender as Registered>::receiver(params, flow),)+
                }
            }

            fn switch(&self, port: &SwitchInfo) -> SwitchAlgorithm {
                match self {
                    $(Self::$variant(params) => <$sender as Registered>::switch(params, port),)+
                }
            }
        }

        impl SharedParams {
            fn fine_timers(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <$sender as Registered>::FINE_TIMERS,)+
                }
            }

            fn credit_limit(&self) -> Option<CreditLimit> {
                match self {
                    $(Self::$variant(params) => <$sender as Registered>::credit_limit(params),)+
                }
            }

            fn reads_receiver_level(&self) -> bool {
                match self {
                    $(Self::$variant(params) => {
                        <$sender as Registered>::reads_receiver_level(params)
                    })+
                }
            }
        }

        impl Sender for Algorithm {
            #[inline]
            fn on_ack(&mut self, event: &AckEvent<'_>) {
                match self { $(Self::$variant(sender) => sender.on_ack(event),)+ }
            }

            #[inline]
            fn on_loss(&mut self, event: &LossEvent) {
                match self { $(Self::$variant(sender) => sender.on_loss(event),)+ }
            }

            #[inline]
            fn on_timeout(&mut self, event: &TimeoutEvent) {
                match self { $(Self::$variant(sender) => sender.on_timeout(event),)+ }
            }

            #[inline]
            fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
                match self { $(Self::$variant(sender) => sender.on_transmit(header, info),)+ }
            }

            #[inline]
            fn allowance(&self) -> Allowance {
                match self { $(Self::$variant(sender) => sender.allowance(),)+ }
            }

            #[inline]
            fn rto(&self) -> Span {
                match self { $(Self::$variant(sender) => sender.rto(),)+ }
            }

            #[inline]
            fn next_timer(&self) -> Option<Time> {
                match self { $(Self::$variant(sender) => sender.next_timer(),)+ }
            }

            #[inline]
            fn on_timer(&mut self, now: Time) {
                match self { $(Self::$variant(sender) => sender.on_timer(now),)+ }
            }

            #[inline]
            fn on_credit(&mut self, event: &CreditEvent) {
                match self { $(Self::$variant(sender) => sender.on_credit(event),)+ }
            }

            #[inline]
            fn on_signal(&mut self, event: &SignalEvent) {
                match self { $(Self::$variant(sender) => sender.on_signal(event),)+ }
            }

            #[inline]
            fn on_notification(&mut self, now: Time) {
                match self { $(Self::$variant(sender) => sender.on_notification(now),)+ }
            }

            fn on_packet_size(&mut self, event: &PacketSizeEvent) {
                match self { $(Self::$variant(sender) => sender.on_packet_size(event),)+ }
            }

            #[inline]
            fn poll_control(&mut self, now: Time, backlog: &Backlog) -> Option<SenderControl> {
                match self { $(Self::$variant(sender) => sender.poll_control(now, backlog),)+ }
            }

            #[inline]
            fn path_label(&self) -> u32 {
                match self { $(Self::$variant(sender) => sender.path_label(),)+ }
            }

            fn snapshot(&self) -> Snapshot {
                match self { $(Self::$variant(sender) => sender.snapshot(),)+ }
            }

            fn target_delay(&self, hops: u8) -> Option<Span> {
                match self { $(Self::$variant(sender) => sender.target_delay(hops),)+ }
            }

            fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
                match self { $(Self::$variant(sender) => sender.set_state(state),)+ }
            }

            fn set_latest_rtt(&mut self, rtt: Span) {
                match self { $(Self::$variant(sender) => sender.set_latest_rtt(rtt),)+ }
            }
        }
    };
}

algorithms! {
    /// Swift, as in the paper or as in Falcon.
    Swift(crate::swift::Swift);
    /// DCTCP, as in RFC 8257 or with GCN's faster response.
    Dctcp(crate::dctcp::Dctcp);
    /// Bolt: SRC, PRU and SM.
    Bolt(crate::bolt::Bolt);
    /// HPCC, by in-network telemetry.
    Hpcc(crate::hpcc::Hpcc);
    /// ExpressPass: credits.
    ExpressPass(crate::expresspass::ExpressPass);
    /// CUBIC.
    Cubic(crate::cubic::Cubic);
    /// TIMELY, as in its paper or patched.
    Timely(crate::timely::Timely);
    /// DX, by queueing delay.
    Dx(crate::dx::Dx);
    /// DCQCN, by notifications of marks.
    Dcqcn(crate::dcqcn::Dcqcn);
    /// RCP: the rate of the ports.
    Rcp(crate::rcp::Rcp);
    /// HULL: phantom queues.
    Hull(crate::hull::Hull);
    /// What the delay of notifications costs.
    Notified(crate::notified::Notified);
    /// A constant window or rate.
    Constant(crate::constant::Constant);
}
