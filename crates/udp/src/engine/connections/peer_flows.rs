//! The flows of a connection by the peer's numbers. A switch's signal names a flow by the number of its receiver.
//!
//! Anyone can forge a signal, so a search must not take longer with more flows. A hello has room for few runs of
//! consecutive flow numbers; a search compares a number with these runs.

use apus_units::FlowId;

/// The flows of a connection by the peer's numbers: runs of consecutive numbers, in the order of the peer's hello.
#[derive(Debug, Default)]
pub(super) struct PeerFlows(Box<[Run]>);

#[derive(Debug)]
struct Run {
    /// The peer's number of the first flow.
    first: u32,
    count: u32,
    /// The first flow's index within the connection.
    index: u32,
}

#[cfg(test)]
thread_local! {
    /// Number of runs that this thread has compared with numbers.
    pub(in crate::engine) static COMPARED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl PeerFlows {
    /// Returns the flows that the peer's hello names.
    pub(super) fn new(flows: &[FlowId]) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for (index, flow) in flows.iter().map(|flow| flow.get()).enumerate() {
            match runs.last_mut() {
                Some(run) if run.first.checked_add(run.count) == Some(flow) => run.count += 1,
                _ => runs.push(Run { first: flow, count: 1, index: index as u32 }),
            }
        }
        Self(runs.into())
    }

    /// Returns the peer's numbers of the flows.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn numbers(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.0.iter().flat_map(|run| (0..run.count).map(|place| FlowId::new(run.first + place)))
    }

    /// Returns the index within the connection of the flow with this number at the peer. If the peer has given several
    /// flows the same number, returns the first one.
    pub(super) fn index_of(&self, theirs: FlowId) -> Option<usize> {
        self.0.iter().find_map(|run| {
            #[cfg(test)]
            COMPARED.set(COMPARED.get() + 1);
            let offset = theirs.get().checked_sub(run.first)?;
            (offset < run.count).then_some((run.index + offset) as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hello::Hello;

    fn numbers(flows: &[u32]) -> Vec<FlowId> {
        flows.iter().map(|&flow| FlowId::new(flow)).collect()
    }

    /// Returns the number of comparisons of a search.
    fn comparisons(flows: &PeerFlows, theirs: u32) -> u64 {
        let before = COMPARED.get();
        flows.index_of(FlowId::new(theirs));
        COMPARED.get() - before
    }

    #[test]
    fn a_number_is_compared_with_the_runs_of_the_hello_whatever_the_number_of_flows() {
        let consecutive: Vec<u32> = (7..1031).collect();
        let flows = PeerFlows::new(&numbers(&consecutive));
        for theirs in [0, 6, 7, 1030, 1031, u32::MAX] {
            assert_eq!(comparisons(&flows, theirs), 1, "{theirs}");
        }
        // 256 bytes of a hello: 17, and 34 runs of 7 bytes, here of 30 flows each.
        let mut hello = vec![2, 5, 220, 0, 0, 4, 0];
        hello.extend(u64::MAX.to_be_bytes());
        hello.extend((34u16 * 30).to_be_bytes());
        for run in 0..34u32 {
            hello.extend((run * 100).to_be_bytes());
            hello.extend([0, 30, 0]);
        }
        assert!(hello.len() <= crate::session::MAX_HELLO_BYTES, "{} bytes", hello.len());
        assert!(hello.len() + 7 > crate::session::MAX_HELLO_BYTES, "no room for another run");
        let hello = Hello::decode(&hello).expect("sound");
        let flows = PeerFlows::new(&hello.flows);
        assert_eq!((hello.flows.len(), flows.index_of(FlowId::new(3329))), (1020, Some(1019)));
        assert_eq!(comparisons(&flows, 3330), 34);
    }

    #[test]
    fn the_last_number_belongs_to_a_run_and_none_follows_it() {
        let flows = PeerFlows::new(&numbers(&[u32::MAX - 1, u32::MAX, 0]));
        let found = [u32::MAX - 1, u32::MAX, 0, 1].map(|flow| flows.index_of(FlowId::new(flow)));
        assert_eq!(found, [Some(0), Some(1), Some(2), None]);
        assert_eq!(PeerFlows::default().index_of(FlowId::new(0)), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A peer may give its flows numbers in any order, and the same number to several.
        #[test]
        fn a_search_finds_the_first_flow_with_a_number(
            runs in prop::collection::vec((0u32..40, 1u32..6), 0..12),
            theirs in 0u32..50,
        ) {
            let flows: Vec<u32> =
                runs.into_iter().flat_map(|(first, count)| first..first + count).collect();
            let expected = flows.iter().position(|&flow| flow == theirs);
            let found = PeerFlows::new(&numbers(&flows)).index_of(FlowId::new(theirs));
            prop_assert_eq!(found, expected);
        }
    }
}
