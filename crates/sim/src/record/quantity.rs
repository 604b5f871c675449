//! Columns of samples.csv that describe the state of a flow.

use apus_cc::Snapshot;
use apus_units::Span;

/// State of the side of a flow that sends the data, at a sample time.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// State that the algorithm reports.
    pub algorithm: Snapshot,
    /// Data packets in flight, if they are known.
    pub in_flight: Option<u32>,
    /// Payload delivered once over the interval, Gb/s.
    pub goodput_gbps: f64,
}

/// Sample of a flow; NaN if the algorithm has no such value.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample {
    /// By [`Quantity`].
    pub values: [f64; Quantity::ALL.len()],
    /// Whether the flow had an outstanding op or delivered data.
    pub active: bool,
}

impl FlowSample {
    /// Returns one of the values.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> f64 {
        self.values[quantity as usize]
    }
}

/// Declares the quantities in the order of the columns: definition, name, column, aggregation and value.
macro_rules! quantities {
    ($($(#[doc = $doc:literal])+ $name:ident = $column:literal, $aggregation:literal, $value:expr;)*) => {
        /// Quantity that is sampled for a flow.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Quantity {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Quantity {
            /// All quantities, in the order of the table.
            pub const ALL: [Self; [$($column),*].len()] = [$(Self::$name),*];

            /// Returns the name of the column.
            #[must_use]
            pub const fn column(self) -> &'static str {
                match self {
                    $(Self::$name => $column,)*
                }
            }

            /// Returns the definition and the aggregation.
            #[must_use]
            pub const fn definition(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$name => (concat!($($doc),+), $aggregation),)*
                }
            }
        }

        impl FlowSample {
            /// Samples a flow in this state.
            #[must_use]
            pub fn new(state: &FlowState, active: bool) -> Self {
                let values: [fn(&FlowState) -> f64; Quantity::ALL.len()] = [$($value),*];
                Self { values: values.map(|value| value(state)), active }
            }
        }
    };
}

quantities! {
    /// congestion window in force; for Swift min(fabric_cwnd, endpoint_cwnd)
    Cwnd = "cwnd_packets", "instant", |flow| flow.algorithm.cwnd;
    /// congestion window that follows the fabric delay (Swift §3.3)
    FabricCwnd = "fabric_cwnd_packets", "instant", |flow| or_nan(flow.algorithm.fabric_cwnd);
    /// congestion window that follows the endpoint delay (Swift §3.3)
    EndpointCwnd = "endpoint_cwnd_packets", "instant", |flow| or_nan(flow.algorithm.endpoint_cwnd);
    /// fabric target delay at the last acknowledgement: base_target + hops * hop_scale + flow scaling (Swift §3.5)
    TargetDelay = "target_delay_us", "instant", |flow| us(flow.algorithm.target_delay);
    /// time between packets while the flow is paced: rtt / cwnd (Swift §3.4)
    PacingDelay = "pacing_delay_us", "instant", |flow| us(flow.algorithm.pacing_delay);
    /// smoothed end-to-end RTT
    SmoothedRtt = "smoothed_rtt_us", "instant", |flow| us(flow.algorithm.smoothed_rtt);
    /// data packets sent and neither acknowledged nor declared lost
    InFlight = "in_flight_packets", "instant", |flow| or_nan(flow.in_flight.map(f64::from));
    /// payload bytes delivered once in the interval * 8 / interval
    Goodput = "goodput_gbps", "mean over the interval", |flow| flow.goodput_gbps;
}

fn or_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn us(span: Option<Span>) -> f64 {
    or_nan(span.map(Span::as_us_f64))
}
