//! `samples.csv` and `sample_percentiles.csv`.

use super::cell::{Cell, Value};
use super::declare::{Cells, Columns, Declared, Row, row, us};
use crate::record::{FlowSample, Quantity, Recording};

/// State of a flow at a sample time.
#[derive(Clone, Debug)]
pub struct SampleRow {
    /// Time, microseconds.
    pub time_us: f64,
    /// The connection.
    pub flow: u32,
    /// State.
    pub sample: FlowSample,
}

impl Declared for SampleRow {
    fn declare(to: &mut Columns) {
        let time = "end of the sample interval, since the start of the run";
        to.column::<f64>("time_us", time, "-");
        let flow = "number of the connection, from 0 in the order of the scenario";
        to.column::<u32>("flow", flow, "key column");
        for quantity in Quantity::ALL {
            let (definition, aggregation) = quantity.definition();
            to.column::<f64>(quantity.column(), definition, aggregation);
        }
        let active = "whether the flow had an outstanding op, or delivered data in the interval; 1 or 0 in CSV";
        to.column::<bool>("active", active, "instant");
    }
}

impl Row for SampleRow {
    const FILE: &'static str = "samples.csv";
    const MEANING: &'static str = "\
        One row per sample time and sampled flow: the state of the side that sends the data. \
        `[record] flows` sets the number of sampled flows.";
}

impl Cells for SampleRow {
    fn cells(&self, put: &mut dyn FnMut(Value<'_>)) {
        put(self.time_us.value());
        put(self.flow.value());
        self.sample.values.iter().for_each(|value| put(value.value()));
        put(self.sample.active.value());
    }
}

row! {
    "sample_percentiles.csv"
    /// One row per sample time and column of samples.csv: statistics of the column over all active flows.
    #[derive(Clone, Debug)]
    pub struct BandRow {
        /// end of the sample interval, since the start of the run
        pub time_us: f64 = "-",
        /// name of the column of samples.csv; the values are in its unit
        pub column: &'static str = "key column",
        /// active flows for which the column has a value
        pub flows: u32 = "count over flows",
        /// value of the column
        pub mean: f64 = "mean over active flows" => "of the column",
        /// value of the column
        pub p5: f64 = "5th percentile over active flows, nearest rank" => "of the column",
        /// value of the column
        pub p25: f64 = "25th percentile over active flows, nearest rank" => "of the column",
        /// value of the column
        pub p50: f64 = "median over active flows, nearest rank" => "of the column",
        /// value of the column
        pub p75: f64 = "75th percentile over active flows, nearest rank" => "of the column",
        /// value of the column
        pub p95: f64 = "95th percentile over active flows, nearest rank" => "of the column",
    }
}

impl Recording {
    /// Returns the rows of samples.csv.
    pub fn sample_rows(&self) -> impl Iterator<Item = SampleRow> {
        self.times.iter().zip(&self.samples).flat_map(move |(time, samples)| {
            let time_us = us(*time);
            let flows = self.sampled_flows.iter().zip(samples);
            flows.map(move |(&flow, &sample)| SampleRow { time_us, flow, sample })
        })
    }

    /// Returns the rows of sample_percentiles.csv.
    pub fn band_rows(&self) -> impl Iterator<Item = BandRow> {
        self.times.iter().zip(&self.bands).flat_map(|(time, bands)| {
            let bands = Quantity::ALL.iter().zip(bands).filter(|(_, band)| band.flows > 0);
            bands.map(move |(quantity, band)| {
                let [p5, p25, p50, p75, p95] = band.percentiles;
                let (column, flows, mean) = (quantity.column(), band.flows, band.mean);
                BandRow { time_us: us(*time), column, flows, mean, p5, p25, p50, p75, p95 }
            })
        })
    }
}
