//! The same network and traffic under another algorithm, for comparisons.

use apus_cc::dctcp::switch::EcnMarker;
use apus_cc::registry::build;
use apus_units::{Bytes, Rate, Span};

use super::algorithm::{NamedAlgorithm, needs_marks};
use super::ecn::Marking;
use super::read::{Options, Scenario};
use super::setup::Setup;
use super::source::Source;
use crate::build::build_network;
use crate::measure::{NamedWorkload, SizeRange};
use crate::slowdown::Ideal;

/// Least marking threshold: 65 packets of an Ethernet MTU, DCTCP's K at 10 Gb/s (Alizadeh et al.,
/// SIGCOMM 2010, §3.4: large enough for the bursts of hosts).
const LEAST_THRESHOLD: Bytes = Bytes::new(65 * 1538);
/// Marks begin at a seventh of the bandwidth-delay product (ibid. eq. 13).
const BDP_PARTS: f64 = 7.0;
/// Sizes of ops that a comparison tells apart, unless the scenario names its own: the classes of
/// ExpressPass's figures (10 kB, 100 kB, 1 MB).
const SIZES: [(u64, Option<u64>); 4] =
    [(0, Some(10_000)), (10_000, Some(100_000)), (100_000, Some(1_000_000)), (1_000_000, None)];
/// Pairs of hosts looked at for the longest RTT.
const PAIRS: usize = 256;

impl Setup {
    /// The same run with the algorithm `name` for all of its traffic, and what its switches then need
    /// or no longer need: marks. Every workload is measured by itself. Returns besides what has
    /// changed but for the algorithm, in words.
    ///
    /// # Errors
    /// Why the algorithm cannot run there.
    pub fn under(&self, name: &str, profile: Option<&str>) -> Result<(Self, Vec<String>), String> {
        let config = build(name, profile, &[]).map_err(|error| error.message)?;
        let mut setup = self.clone();
        setup.algorithms = vec![NamedAlgorithm { label: name.to_owned(), config }];
        for (index, workload) in setup.workloads.iter_mut().enumerate() {
            workload.algorithm = 0;
            let unnamed = || NamedWorkload { name: format!("workload-{index}"), deadline: None };
            workload.named.get_or_insert_with(unnamed);
        }
        if setup.measure.sizes.is_empty() {
            let range = |(from, to): (u64, Option<u64>)| SizeRange {
                from: Bytes::new(from),
                to: to.map(Bytes::new),
            };
            setup.measure.sizes = SIZES.map(range).into();
        }
        let mut notes = Vec::new();
        match (needs_marks(&setup.algorithms[0].config), setup.topology.marks()) {
            (true, false) => {
                let threshold = setup.default_threshold()?;
                setup.topology.ecn = Some(Marking::Threshold(EcnMarker::new(threshold)));
                notes.push(format!("switches mark from {threshold} on"));
            }
            (false, true) => {
                setup.topology.ecn = None;
                for class in &mut setup.topology.classes {
                    class.ecn = None;
                }
                notes.push("switches do not mark".to_owned());
            }
            _ => {}
        }
        // What the reader would refuse is refused here as well.
        let source = Source { name: self.name.clone(), text: setup.to_toml() };
        let no_testbed = |name: &str| Err(format!("there is no testbed `{name}` here"));
        let read = Scenario::read(&source, &no_testbed, &Options::default());
        read.map_err(|error| error.to_string())?;
        Ok((setup, notes))
    }

    /// A marking threshold for this network: a seventh of the bandwidth-delay product of the pair
    /// farthest apart, and no less than [`LEAST_THRESHOLD`].
    fn default_threshold(&self) -> Result<Bytes, String> {
        let plan = self.plan().map_err(|error| error.to_string())?;
        let mut network = build_network(&plan).map_err(|error| error.to_string())?;
        let step = plan.connections.len().div_ceil(PAIRS).max(1);
        let (mut rtt, mut rate) = (Span::ZERO, Rate::from_bps(0));
        for connection in plan.connections.iter().step_by(step) {
            let pair = (connection.from, connection.to);
            let ideal = Ideal::of(&mut network, pair, 0, plan.sizes);
            let ideal = ideal.map_err(|error| error.to_string())?;
            (rtt, rate) = (rtt.max(ideal.base_rtt), rate.max(ideal.line_rate));
        }
        let bdp = rate.as_bps() as f64 / 8.0 * rtt.as_secs_f64();
        Ok(Bytes::new((bdp / BDP_PARTS) as u64).max(LEAST_THRESHOLD))
    }
}
