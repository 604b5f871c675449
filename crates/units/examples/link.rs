//! Quantities with units, and the time that a packet takes on a link.

use apus_units::{Bytes, Rate, Span, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rate: Rate = "100Gbps".parse()?;
    let packet: Bytes = "1500B".parse()?;
    let time = rate.serialization_time(packet);
    assert_eq!(time, Span::from_ns(120)); // 12,000 bits at 100 Gb/s
    let departure = Time::ZERO + Span::from_us(1);
    let arrival = departure + time;
    assert_eq!(arrival.since(departure), time);
    // A number without a unit is an error, which lists the units.
    let error = "25".parse::<Span>().expect_err("no unit").to_string();
    assert!(error.contains("the unit is missing"), "{error}");
    Ok(())
}
