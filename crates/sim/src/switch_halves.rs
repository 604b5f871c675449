//! The switch halves of algorithms at the ports of a topology.

use apus_cc::{AlgorithmFactory, SwitchFeedback, SwitchHalf, SwitchInfo};
use apus_fabric::{Node, Topology};
use apus_units::Bytes;

use crate::packets::PacketSizes;
use crate::random::{Purpose, Stream};

/// Maximum number of classes of a port, for the keys of random streams.
const CLASSES: u64 = 256;

/// Returns `true` if an algorithm has a switch half.
#[must_use]
pub fn has_switch_half(algorithm: &impl AlgorithmFactory) -> bool {
    let info = SwitchInfo { packet: Bytes::new(1), seed: 0, nic: false };
    !algorithm.switch(&info).is_plain()
}

/// Returns `true` if the switch half of an algorithm marks packets.
#[must_use]
pub fn gives_marks(algorithm: &impl AlgorithmFactory) -> bool {
    let info = SwitchInfo { packet: Bytes::new(1), seed: 0, nic: false };
    algorithm.switch(&info).feedback() == SwitchFeedback::Marks
}

/// Returns `true` if switches act in the same way for both algorithms.
#[must_use]
pub fn have_same_switch_half<F: AlgorithmFactory>(a: &F, b: &F) -> bool {
    let info = SwitchInfo { packet: Bytes::new(1500), seed: 0, nic: false };
    format!("{:?}", a.switch(&info)) == format!("{:?}", b.switch(&info))
}

/// Sets the switch half of each class of a port, if `halves` has one for the class and the node of the port
/// takes part. Ports that mark or trim at random get their own random streams.
pub fn place_switch_halves<F: AlgorithmFactory>(
    topology: &mut Topology<F::Switch>,
    halves: &[Option<&F>],
    sizes: &PacketSizes,
    seed: u64,
    takes_part: &dyn Fn(&Topology<F::Switch>, Node) -> bool,
) {
    let part = |node| takes_part(topology, node);
    let parts: Vec<_> = topology.links.iter().map(|link| (part(link.a), part(link.b))).collect();
    for (index, (link, parts)) in (0u64..).zip(topology.links.iter_mut().zip(parts)) {
        let is_nic = |node| matches!(node, Node::Host(_));
        let sides = [
            (2 * index, &mut link.ab, parts.0, is_nic(link.a)),
            (2 * index + 1, &mut link.ba, parts.1, is_nic(link.b)),
        ];
        for (port, config, takes_part, nic) in sides {
            for (class, config) in (0u64..).zip(config.classes.iter_mut()) {
                if let Some(trim) = &mut config.trim {
                    let key = port * CLASSES + class;
                    trim.seed = Stream::new(seed, Purpose::Trim, key).bits();
                }
            }
            for (class, (config, half)) in (0u64..).zip(config.classes.iter_mut().zip(halves)) {
                let key = port * CLASSES + class;
                let bits = || Stream::new(seed, Purpose::Switch, key).bits();
                if let Some(algorithm) = half.filter(|_| takes_part) {
                    let packet = Bytes::new(u64::from(sizes.payload + sizes.header));
                    let half = algorithm.switch(&SwitchInfo { packet, seed: bits(), nic });
                    config.algorithm = if config.algorithm.is_plain() {
                        half
                    } else {
                        // Keys count down from the maximum, far from the keys of ports and classes, which
                        // count up from 0.
                        let seed = Stream::new(seed, Purpose::Switch, u64::MAX - key).bits();
                        config.algorithm.reseed(seed);
                        F::beside(config.algorithm.clone(), half)
                    };
                } else {
                    config.algorithm.reseed(bits());
                }
            }
        }
    }
}
