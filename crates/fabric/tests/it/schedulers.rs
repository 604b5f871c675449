//! Schedulers of classes with the same priority. The first tests hold for every scheduler.

use crate::support::{ClassConfig, PortConfig, Sim, UNLIMITED, gbps, ps, wire};
use apus_fabric::{RateLimit, SchedulerKind};
use apus_units::{Bytes, ClassId, PortId, Span, Time};
use proptest::prelude::*;

const PORT: PortId = PortId::new(0);
/// Delay of the link.
const DELAY: Span = Span::from_us(1);
/// Time of 1 B at 100 Gb/s, in picoseconds.
const BYTE: u64 = 80;
/// Largest packet.
const MAX: u32 = 9000;

fn any_scheduler() -> impl Strategy<Value = SchedulerKind> {
    prop::sample::select(SchedulerKind::WORDS.map(|(_, kind)| kind).to_vec())
}

/// Schedulers that share the link in proportion to the weights.
fn weighted() -> impl Strategy<Value = SchedulerKind> {
    prop::sample::select(vec![SchedulerKind::StartTime, SchedulerKind::DeficitRoundRobin])
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1..10_u32, 2..5)
}

fn port(scheduler: SchedulerKind, weights: &[u32]) -> PortConfig {
    let class = |weight: &u32| ClassConfig { weight: *weight, ..ClassConfig::default() };
    PortConfig {
        classes: weights.iter().map(class).collect(),
        scheduler,
        ..PortConfig::new(gbps(100), UNLIMITED)
    }
}

fn send(sim: &mut Sim, class: usize, bytes: u32, id: u32) {
    let route = sim.route(0, 1);
    let mut packet = sim.packet(route, bytes, id);
    packet.class = ClassId::new(class as u8);
    sim.send(packet);
}

/// Returns class and bytes of the packets, in the order of service.
fn served(sim: &Sim) -> impl Iterator<Item = (usize, u64)> {
    let packets = sim.delivered.iter().map(|delivery| &delivery.packet);
    packets.map(|packet| (packet.class.index(), u64::from(packet.wire_bytes)))
}

/// Time since the previous packet, class, and bytes.
fn arrivals() -> impl Strategy<Value = Vec<(u64, usize, u32)>> {
    let gap = prop_oneof![3 => Just(0), 3 => 0..400_000_u64, 1 => 0..4_000_000_u64];
    prop::collection::vec((gap, 0..4_usize, 64..=MAX), 1..200)
}

proptest! {
    /// Busy periods depend on arrivals alone. Each therefore ends when it would with a single queue
    /// (Lindley 1952). By then all of its packets have left, each once and in the order of its
    /// class.
    #[test]
    fn every_scheduler_is_work_conserving(
        scheduler in any_scheduler(),
        weights in weights(),
        arrivals in arrivals(),
    ) {
        let mut sim = Sim::build(&wire(port(scheduler, &weights)));
        // End of each busy period, and the packets until then.
        let mut periods: Vec<(Time, usize)> = Vec::new();
        let mut sent: Vec<Vec<u32>> = vec![Vec::new(); weights.len()];
        let mut now = Time::ZERO;
        for (id, (gap, class, bytes)) in (0..).zip(&arrivals) {
            now += Span::from_ps(*gap);
            sim.run_before(now);
            let class = class % weights.len();
            send(&mut sim, class, *bytes, id);
            sent[class].push(id);
            let service = Span::from_ps(u64::from(*bytes) * BYTE);
            match periods.last_mut() {
                Some((end, packets)) if *end > now => {
                    (*end, *packets) = (*end + service, *packets + 1);
                }
                _ => periods.push((now + service, id as usize + 1)),
            }
        }
        sim.run();
        prop_assert_eq!(sim.net.check_conservation(), Ok(()));
        for (end, packets) in periods {
            let left = sim.delivered.iter().filter(|delivery| delivery.at <= end + DELAY).count();
            prop_assert_eq!(left, packets, "by {}", end);
        }
        for (class, sent) in sent.into_iter().enumerate() {
            let of_class = sim.delivered.iter().filter(|d| d.packet.class.index() == class);
            prop_assert_eq!(of_class.map(|d| d.packet.payload).collect::<Vec<_>>(), sent);
        }
    }

    /// Paused classes and classes without tokens delay no other class, and are served again later.
    #[test]
    fn every_scheduler_passes_over_classes_that_may_not_send(
        scheduler in any_scheduler(),
        weights in weights(),
        arrivals in arrivals(),
        pauses in prop::collection::vec((0..4_usize, any::<bool>()), 200),
    ) {
        let mut config = port(scheduler, &weights);
        config.pausable = true;
        // 5 of 100 Gb/s, 6000 B at once.
        config.classes[0].rate_limit = Some(RateLimit { rate: gbps(5), burst: Bytes::new(6000) });
        let mut sim = Sim::build(&wire(config));
        let mut now = Time::ZERO;
        let pause = |sim: &mut Sim, class: usize, paused| {
            let (now, class) = (sim.now(), ClassId::new(class as u8));
            sim.net.set_paused(now, PORT, class, paused, &mut sim.engine).expect("pausable");
        };
        for (id, ((gap, class, bytes), (of, paused))) in (0..).zip(arrivals.iter().zip(&pauses)) {
            now += Span::from_ps(*gap);
            sim.run_before(now);
            pause(&mut sim, of % weights.len(), *paused);
            send(&mut sim, class % weights.len(), *bytes, id);
            prop_assert_eq!(sim.net.check_conservation(), Ok(()));
        }
        for class in 0..weights.len() {
            pause(&mut sim, class, true);
        }
        sim.run();
        let waiting = sim.net.port_counters(PORT, sim.now()).queued;
        prop_assert_eq!(arrivals.len() as u64, sim.delivered.len() as u64 + waiting.packets);
        // Class 1 alone has no tokens to wait for, so its packets leave back to back.
        pause(&mut sim, 1, false);
        let (start, before) = (sim.now(), sim.delivered.len());
        sim.run();
        let bytes: u64 = served(&sim).skip(before).map(|(_, bytes)| bytes).sum();
        prop_assert!(served(&sim).skip(before).all(|(class, _)| class == 1));
        prop_assert!(bytes == 0 || sim.now() == start + Span::from_ps(bytes * BYTE) + DELAY);
        for class in 0..weights.len() {
            pause(&mut sim, class, false);
        }
        sim.run();
        prop_assert_eq!(sim.delivered.len(), arrivals.len());
        prop_assert_eq!(sim.net.check_conservation(), Ok(()));
    }

    /// In n rounds of deficit round robin a backlogged class sends n quanta, minus its deficit at
    /// the end (below Max), plus its deficit at the start. The rounds of two classes differ by at
    /// most one. Their bytes, divided by weight over smallest weight, therefore differ by at most
    /// the smallest quantum (Max) and 2 * Max. Start-time fair queueing has a tighter bound: one
    /// packet of each class.
    #[test]
    fn backlogged_classes_share_by_weight(
        scheduler in weighted(),
        weights in weights(),
        sizes in prop::collection::vec(prop::collection::vec(64..=MAX, 1..20), 4),
    ) {
        let mut sim = Sim::build(&wire(port(scheduler, &weights)));
        // The largest packet first, so that quanta are constant.
        send(&mut sim, 0, MAX, 0);
        let mut backlog = vec![0; weights.len()];
        for (class, sizes) in sizes.iter().enumerate().take(weights.len()) {
            for &bytes in sizes.iter().cycle().take(200) {
                send(&mut sim, class, bytes, 0);
                backlog[class] += u64::from(bytes);
            }
        }
        sim.run();
        let smallest = *weights.iter().min().expect("two or more");
        let mut sent = vec![0_u64; weights.len()];
        for (class, bytes) in served(&sim).skip(1) {
            sent[class] += bytes;
            // From here on the class is not backlogged.
            if sent[class] == backlog[class] {
                break;
            }
            let normal = |class: usize| {
                sent[class] as f64 * f64::from(smallest) / f64::from(weights[class])
            };
            let shares = (0..weights.len()).map(normal);
            let (least, most) = shares.fold((f64::MAX, 0.0), |(least, most): (f64, f64), share| {
                (least.min(share), most.max(share))
            });
            prop_assert!(most - least <= 3.0 * f64::from(MAX), "{sent:?} by {weights:?}");
        }
    }

    /// A packet of a class that was idle waits at most for the packet in service and one turn of
    /// every other class: the quantum of that class, and a deficit below Max.
    #[test]
    fn no_class_starves(
        scheduler in weighted(),
        weights in weights(),
        late in 0..4_usize,
        at in 0..2_000_000_u64,
        bytes in 64..=MAX,
    ) {
        let late = late % weights.len();
        let mut sim = Sim::build(&wire(port(scheduler, &weights)));
        for _ in 0..100 {
            for class in (0..weights.len()).filter(|class| *class != late) {
                send(&mut sim, class, MAX, 0);
            }
        }
        sim.run_before(ps(at));
        send(&mut sim, late, bytes, 1);
        sim.run();
        let arrived = sim.delivered.iter().find(|d| d.packet.payload == 1).expect("delivered").at;
        let smallest = *weights.iter().min().expect("two or more");
        let others = (0..weights.len()).filter(|class| *class != late);
        let turns = others.map(|class| u64::from(MAX) * u64::from(weights[class]) / u64::from(smallest));
        let turns: u64 = turns.map(|quantum| quantum + u64::from(MAX)).sum();
        let longest = (u64::from(MAX) + turns + u64::from(bytes)) * BYTE;
        let waited = arrived.since(ps(at) + DELAY);
        prop_assert!(waited <= Span::from_ps(longest), "{waited} of {longest} ps");
    }
}

/// Weights 2 and 1, the largest packet 1500 B: quanta of 3000 and 1500 B.
#[test]
fn deficit_round_robin_keeps_the_rest_of_a_quantum() {
    let mut sim = Sim::build(&wire(port(SchedulerKind::DeficitRoundRobin, &[2, 1])));
    for _ in 0..6 {
        send(&mut sim, 0, 1500, 0);
        send(&mut sim, 1, 1000, 0);
    }
    sim.run();
    // Class 1 sends one packet of its first quantum and keeps 500 B. Its second turn has 2000 B:
    // two packets. At the end class 0 has no packets left.
    let order: Vec<usize> = served(&sim).map(|(class, _)| class).collect();
    assert_eq!(order, [0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1]);
}

/// With quanta of 1500 B each, a class whose queue becomes empty in its turn does not keep the
/// rest.
#[test]
fn deficit_round_robin_takes_the_deficit_of_an_empty_class() {
    let mut sim = Sim::build(&wire(port(SchedulerKind::DeficitRoundRobin, &[1, 1])));
    for _ in 0..4 {
        send(&mut sim, 0, 1500, 0);
    }
    send(&mut sim, 1, 100, 0);
    // First class 0, then class 1 with 1400 B left, then class 0 from 1600 B on.
    sim.run_before(ps(2000 * BYTE));
    send(&mut sim, 1, 1450, 0);
    send(&mut sim, 1, 1450, 0);
    sim.run();
    // With a deficit of 1400 B, class 1 would send both packets in one turn.
    let order: Vec<(usize, u64)> = served(&sim).collect();
    let (a, b) = ((0, 1500), (1, 1450));
    assert_eq!(order, [a, (1, 100), a, b, a, b, a]);
}
