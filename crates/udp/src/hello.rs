//! The hello of a host, which its handshake carries: flows and limits.
//!
//! ```text
//! offset size
//!      0    1  version = 2
//!      1    2  maximum length of an IP packet that the sender accepts
//!      3    4  maximum number of outstanding ops per flow that the sender accepts
//!      7    8  maximum length of a message that the sender accepts
//!     15    2  flows
//!     17    .  runs of flow numbers in the sender's table: first (4 bytes), count (2 bytes),
//!              traffic class (1 byte)
//!      .    .  a run without flows, which hosts without support for ports ignore; instead of `first`:
//!              1  kind = 1
//!              1  log2 of the number of ports that the sender sends from
//!              1  log2 of the maximum number of the receiver's ports from which it accepts packets
//!              1  log2 of the range of packet numbers that it remembers
//! ```

use apus_units::FlowId;

use crate::config::CLASSES;
use crate::spreading::Offer;

/// Version of this layout.
const VERSION: u8 = 2;
const FIXED: usize = 17;
const RUN: usize = 7;
/// Kind of a run that describes ports.
const PORTS: u8 = 1;

/// Flows and limits of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) max_mtu: u16,
    pub(crate) max_ops: u32,
    pub(crate) max_message: u64,
    /// Flows of the connection, by the sender's numbers.
    pub(crate) flows: Vec<FlowId>,
    /// Traffic class of each flow.
    pub(crate) classes: Vec<u8>,
    /// Ports of the sender; `None` if the sender does not support ports.
    pub(crate) ports: Option<Offer>,
}

impl Hello {
    /// Encodes the hello. Returns `None` if the flow numbers form too many runs.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = vec![VERSION];
        out.extend(self.max_mtu.to_be_bytes());
        out.extend(self.max_ops.to_be_bytes());
        out.extend(self.max_message.to_be_bytes());
        out.extend(u16::try_from(self.flows.len()).ok()?.to_be_bytes());
        let mut at = 0;
        while let (Some(first), Some(&class)) = (self.flows.get(at), self.classes.get(at)) {
            let goes_on = |&(i, (flow, &other)): &(usize, (&FlowId, &u8))| {
                u64::from(flow.get()) == u64::from(first.get()) + i as u64 && other == class
            };
            let rest = self.flows[at..].iter().zip(&self.classes[at..]);
            let run = rest.enumerate().take_while(goes_on).count();
            out.extend(first.get().to_be_bytes());
            out.extend((run as u16).to_be_bytes());
            out.push(class);
            at += run;
        }
        if let Some(Offer { sends, accepts, range }) = self.ports {
            let log2 = |number: u32| number.max(1).ilog2() as u8;
            out.extend([PORTS, log2(sends.into()), log2(accepts.into()), log2(range), 0, 0, 0]);
        }
        (out.len() <= crate::session::MAX_HELLO_BYTES).then_some(out)
    }

    /// Decodes the hello of a peer, which may consist of arbitrary bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let version = bytes.first().copied();
        if version != Some(VERSION) {
            return Err(match version {
                Some(other) => format!("the peer's hello has version {other}, not {VERSION}"),
                None => "the peer's hello is empty: it is not an Apus host".to_owned(),
            });
        }
        let broken = || "the peer's hello is malformed".to_owned();
        if bytes.len() < FIXED || !(bytes.len() - FIXED).is_multiple_of(RUN) {
            return Err(broken());
        }
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte))
        };
        let count = number(15..17) as usize;
        let (mut flows, mut classes, mut ports) = (Vec::new(), Vec::new(), None);
        for at in (FIXED..bytes.len()).step_by(RUN) {
            let (first, run) = (number(at..at + 4), number(at + 4..at + 6));
            let class = bytes[at + 6];
            if run == 0 && bytes[at] == PORTS {
                let offer = Offer::of_logarithms([bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
                ports = Some(offer.ok_or_else(broken)?);
                continue;
            }
            let many = flows.len() + run as usize > count || first + run > 1 << 32;
            if many || usize::from(class) >= CLASSES {
                return Err(broken());
            }
            flows.extend((first..first + run).map(|id| FlowId::new(id as u32)));
            classes.resize(flows.len(), class);
        }
        let hello = Self {
            max_mtu: number(1..3) as u16,
            max_ops: number(3..7) as u32,
            max_message: number(7..15),
            flows,
            classes,
            ports,
        };
        if hello.flows.len() != count || count == 0 || hello.max_mtu < 576 || hello.max_ops == 0 {
            return Err(broken());
        }
        Ok(hello)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hello(flows: &[u32]) -> Hello {
        let classes = vec![3; flows.len()];
        let flows = flows.iter().map(|&id| FlowId::new(id)).collect();
        let ports = Some(Offer { sends: 16, accepts: 256, range: 1024 });
        Hello { max_mtu: 9000, max_ops: 1024, max_message: 1 << 20, flows, classes, ports }
    }

    #[test]
    fn what_is_said_is_heard() {
        for flows in [&[0][..], &[5, 6, 7, 2, 9], &[u32::MAX]] {
            let said = hello(flows);
            let bytes = said.encode().expect("fits");
            assert_eq!(Hello::decode(&bytes), Ok(said));
        }
        let classes = Hello { classes: vec![1, 1, 0, 7], ..hello(&[5, 6, 7, 8]) };
        let bytes = classes.encode().expect("fits");
        assert_eq!((bytes.len(), Hello::decode(&bytes)), (FIXED + 4 * RUN, Ok(classes)));
        let unknown = Hello { classes: vec![8], ..hello(&[5]) };
        assert!(Hello::decode(&unknown.encode().expect("fits")).is_err(), "there is no class 8");
        let long: Vec<u32> = (7..1031).collect();
        assert_eq!(hello(&long).encode().expect("one run").len(), FIXED + 2 * RUN);
        let scattered: Vec<u32> = (0..100).map(|i| 2 * i).collect();
        assert_eq!(hello(&scattered).encode(), None);
    }

    /// A host without support for ports reads flows by run. The run for ports states 0 flows.
    #[test]
    fn ports_are_a_run_without_flows_for_older_hosts_which_say_nothing_of_theirs() {
        let said = hello(&[3, 4, 9]);
        let bytes = said.encode().expect("fits");
        let run = &bytes[bytes.len() - RUN..];
        assert_eq!(run, [1, 4, 8, 10, 0, 0, 0], "log2 of 16, 256 and 1024");
        let older = Hello { ports: None, ..said };
        assert_eq!(older.encode().as_deref(), Some(&bytes[..bytes.len() - RUN]));
        assert_eq!(Hello::decode(&bytes[..bytes.len() - RUN]), Ok(older));
        for (at, value) in [(1, 9), (2, 9), (3, 6), (3, 15)] {
            let mut wrong = bytes.clone();
            wrong[bytes.len() - RUN + at] = value;
            assert!(Hello::decode(&wrong).is_err(), "beyond 256 ports, or 128 to 16384 numbers");
        }
    }

    /// 17 bytes, 33 runs of 7 and one run for ports are 255 of 256 bytes. One more separate flow has no room.
    #[test]
    fn flows_in_33_runs_and_the_ports_fit_and_34_do_not() {
        let apart = |count: u32| hello(&(0..count).map(|i| 2 * i).collect::<Vec<u32>>());
        let most = apart(33);
        let bytes = most.encode().expect("fits");
        assert_eq!((bytes.len(), Hello::decode(&bytes)), (255, Ok(most)));
        assert_eq!(apart(34).encode(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever a peer sends, a decoded hello can be encoded again in at most the same number of bytes.
        #[test]
        fn what_is_understood_is_sound_and_is_said_again(
            fixed in prop::collection::vec(any::<u8>(), FIXED - 3),
            runs in prop::collection::vec((any::<u32>(), 0u8..20, 0u8..10), 0..8),
            off in -1i32..2,
        ) {
            let count: u32 = runs.iter().map(|&(_, run, _)| u32::from(run)).sum();
            let count = count.saturating_add_signed(off) as u16;
            let mut bytes = [&[VERSION], &fixed[..], &count.to_be_bytes()].concat();
            for (first, run, class) in runs {
                bytes.extend(first.to_be_bytes());
                bytes.extend(u16::from(run).to_be_bytes());
                bytes.push(class);
            }
            if let Ok(hello) = Hello::decode(&bytes) {
                prop_assert_eq!(hello.flows.len(), usize::from(count));
                prop_assert_eq!(hello.classes.len(), hello.flows.len());
                prop_assert!(hello.classes.iter().all(|&class| usize::from(class) < CLASSES));
                let again = hello.encode().expect("no longer than it came");
                prop_assert!(again.len() <= bytes.len());
                prop_assert_eq!(Hello::decode(&again), Ok(hello));
            }
        }

    }

    #[test]
    fn no_bytes_are_more_than_an_error() {
        let good = hello(&[3, 4, 9]).encode().expect("fits");
        let without_ports = good.len() - RUN;
        for length in (0..good.len()).filter(|&length| length != without_ports) {
            assert!(Hello::decode(&good[..length]).is_err(), "{length} bytes");
        }
        for at in 0..good.len() {
            for value in [0, 1, 127, 255] {
                let mut bytes = good.clone();
                bytes[at] = value;
                let _ = Hello::decode(&bytes);
            }
        }
        assert!(Hello::decode(&[9; 40]).unwrap_err().contains("version 9"));
    }
}
