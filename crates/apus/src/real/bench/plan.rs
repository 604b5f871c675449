//! What `apus bench udp` measures: settings, and the contestants of each.

use std::thread::available_parallelism;
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use super::spec::{BULK, Contestant, Load, OpName, SMALL, Waiting};

/// Gaps between round trips.
pub const GAPS: [Duration; 3] =
    [Duration::ZERO, Duration::from_micros(100), Duration::from_millis(10)];
/// Shortest long gap: its measurement takes [`LONG`] times as long, so that it contains enough round trips.
const LONG_GAP: Duration = Duration::from_millis(1);
const LONG: u32 = 4;
/// Factor by which the single measurement of an idle process is longer than other measurements, so that it contains two
/// keepalives of each connection.
const IDLE: u32 = 140;
/// Outstanding small writes of inline mode, which other results are compared with: enough for its largest batches, and
/// fewer than a flow accepts.
const INLINE_OUTSTANDING: usize = 512;
/// Outstanding bulk writes.
const BULK_OUTSTANDING: usize = 4;
/// Outstanding calls of a client that has many outstanding calls.
const CALLS_OUTSTANDING: usize = 64;
/// Connections of a process without ops.
const IDLE_CONNECTIONS: u32 = 100;

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Round trips of one client, with gaps.
    RoundTrips,
    /// Round trips of several clients.
    Clients,
    /// Round trips of one client with more threads than cores.
    Threads,
    /// Round trips while other threads compute, one per core.
    Busy,
    /// Bulk writes and small writes.
    Writes,
    /// Calls of apus-rpc, compared with messages.
    Rpc,
    /// CPU time of a process with idle connections.
    Idle,
    /// Round trips with both ends spinning.
    Spinning,
    /// As `spinning`, with one thread at each end of Apus.
    Inline,
}

/// Selection of measurements.
pub struct Choice {
    /// `true` to measure all settings and contestants.
    pub full: bool,
    /// Parts to measure; all parts if empty.
    pub only: Vec<Part>,
    /// Gaps of a single client and, with `full`, of several clients.
    pub gaps: Vec<Duration>,
    /// Security of Apus: sealed, insecure, or both.
    pub sealed: Vec<bool>,
    /// Duration of a measurement.
    pub duration: Duration,
}

/// One contestant in a setting.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The contestant.
    pub contestant: Contestant,
    /// Its load.
    pub load: Load,
    /// Duration of the measurement.
    pub duration: Duration,
}

impl Entry {
    /// Returns the name of the entry, unique within the setting.
    pub fn name(&self) -> String {
        match self.load {
            Load::Writes { outstanding, .. } if self.contestant != Contestant::Tcp => {
                format!("{}, {outstanding} outstanding", self.contestant)
            }
            _ => self.contestant.to_string(),
        }
    }
}

/// Contestants that are compared with each other.
#[derive(Debug)]
pub struct Setting {
    /// Part to which the setting belongs.
    pub part: Part,
    /// Name of the setting.
    pub name: String,
    /// Contestants.
    pub entries: Vec<Entry>,
}

impl Setting {
    /// Returns the index of the contestant with which this one is compared: the first one, or the first with the same
    /// security.
    pub fn base(&self, entry: &Entry) -> usize {
        let first = &self.entries[0].contestant;
        let (Contestant::Apus { sealed, .. }, Contestant::Apus { .. }) = (entry.contestant, first)
        else {
            return 0;
        };
        let same = |other: &Entry| matches!(other.contestant, Contestant::Apus { sealed: s, .. } if s == sealed);
        self.entries.iter().position(same).unwrap_or(0)
    }

    /// Returns `true` if the setting is measured in one turn only.
    pub fn once(&self) -> bool {
        self.part == Part::Idle
    }
}

fn cores() -> u32 {
    available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok()).unwrap_or(1)
}

/// Returns a gap as text with its unit.
pub fn gap_text(gap: Duration) -> String {
    let us = gap.as_secs_f64() * 1e6;
    if us == 0.0 {
        "0".to_owned()
    } else if us < 1e3 {
        format!("{us} us")
    } else {
        format!("{} ms", us / 1e3)
    }
}

impl Choice {
    /// Returns the settings in the order of the table.
    pub fn settings(&self) -> Vec<Setting> {
        let mut all = self.round_trips();
        all.extend(self.clients());
        all.push(self.threads());
        all.push(self.busy());
        all.extend(self.writes());
        all.extend(self.rpc());
        all.push(self.idle());
        all.push(self.polling(Part::Spinning, Waiting::Spinning));
        all.push(self.polling(Part::Inline, Waiting::Inline));
        all.retain(|setting| self.only.is_empty() || self.only.contains(&setting.part));
        all
    }

    /// Returns the Apus contestants for these ops, one per kind of security.
    fn apus(&self, ops: &[OpName], waiting: Waiting) -> Vec<Contestant> {
        let sealed = self.sealed.iter();
        sealed
            .flat_map(|&sealed| ops.iter().map(move |&op| Contestant::Apus { op, waiting, sealed }))
            .collect()
    }

    fn entries(&self, contestants: Vec<Contestant>, load: Load) -> Vec<Entry> {
        let duration = self.duration
            * match load {
                Load::RoundTrips { gap, .. } if gap >= LONG_GAP => LONG,
                Load::Idle { .. } => IDLE,
                Load::RoundTrips { .. } | Load::Writes { .. } | Load::Answered { .. } => 1,
            };
        contestants.into_iter().map(|contestant| Entry { contestant, load, duration }).collect()
    }

    fn blocking(&self, ops: &[OpName], load: Load) -> Vec<Entry> {
        let mut contestants = vec![Contestant::Udp(Waiting::Blocking), Contestant::Tcp];
        contestants.extend(self.apus(ops, Waiting::Blocking));
        self.entries(contestants, load)
    }

    fn round_trips(&self) -> Vec<Setting> {
        let of = |&gap: &Duration| Setting {
            part: Part::RoundTrips,
            name: format!("1 client, gap {}", gap_text(gap)),
            entries: self
                .blocking(ALL_OPS, Load::RoundTrips { gap, clients: 1, threads: 1, busy: 0 }),
        };
        self.gaps.iter().map(of).collect()
    }

    fn clients(&self) -> Vec<Setting> {
        let of = |clients: u32, gap: Duration| Setting {
            part: Part::Clients,
            name: format!("{clients} clients, gap {}", gap_text(gap)),
            entries: self.blocking(ALL_OPS, Load::RoundTrips { gap, clients, threads: 1, busy: 0 }),
        };
        if !self.full {
            return vec![of(8, GAPS[0])];
        }
        let gaps = |clients| self.gaps.iter().map(move |&gap| of(clients, gap));
        [8, 64].into_iter().flat_map(gaps).collect()
    }

    /// Returns the setting with several threads. It has writes and reads only, because threads that wait for messages
    /// on one connection would take each other's messages.
    fn threads(&self) -> Setting {
        let (cores, threads) = (cores(), cores() * 4);
        let load = Load::RoundTrips { gap: GAPS[0], clients: 1, threads, busy: 0 };
        Setting {
            part: Part::Threads,
            name: format!("1 client with {threads} threads on {cores} cores, gap 0"),
            entries: self.blocking(&[OpName::Write, OpName::Read], load),
        }
    }

    fn busy(&self) -> Setting {
        let busy = cores();
        let load = Load::RoundTrips { gap: GAPS[1], clients: 1, threads: 1, busy };
        Setting {
            part: Part::Busy,
            name: format!("1 client, gap {}, {busy} busy threads", gap_text(GAPS[1])),
            entries: self.blocking(ALL_OPS, load),
        }
    }

    fn writes(&self) -> Vec<Setting> {
        let apus = |waiting| self.apus(&[OpName::Write], waiting);
        let entries = |waiting, bytes, outstanding| {
            self.entries(apus(waiting), Load::Writes { bytes, outstanding })
        };
        let mut bulk = entries(Waiting::Inline, BULK, BULK_OUTSTANDING);
        bulk.extend(entries(Waiting::Blocking, BULK, BULK_OUTSTANDING));
        let mut small = entries(Waiting::Inline, SMALL, INLINE_OUTSTANDING);
        small.extend(entries(Waiting::Blocking, SMALL, 64));
        small.extend(entries(Waiting::Blocking, SMALL, 1024));
        if self.full {
            bulk.extend(entries(Waiting::Spinning, BULK, BULK_OUTSTANDING));
            small.extend(entries(Waiting::Spinning, SMALL, 64));
            small.extend(entries(Waiting::Spinning, SMALL, 1024));
        }
        let tcp = Load::Writes { bytes: BULK, outstanding: 1 };
        bulk.extend(self.entries(vec![Contestant::Tcp], tcp));
        let setting =
            |name: &str, entries| Setting { part: Part::Writes, name: name.to_owned(), entries };
        vec![setting("writes of 1 MiB", bulk), setting("writes of 64 B", small)]
    }

    fn rpc(&self) -> Vec<Setting> {
        let of = |name: String, load| {
            let contestants = self.apus(&[OpName::Message, OpName::Call], Waiting::Blocking);
            Setting { part: Part::Rpc, name, entries: self.entries(contestants, load) }
        };
        let round_trips = Load::RoundTrips { gap: GAPS[0], clients: 1, threads: 1, busy: 0 };
        vec![
            of("1 outstanding".to_owned(), round_trips),
            of(
                format!("{CALLS_OUTSTANDING} outstanding"),
                Load::Answered { outstanding: CALLS_OUTSTANDING },
            ),
        ]
    }

    fn idle(&self) -> Setting {
        let load = Load::Idle { connections: IDLE_CONNECTIONS };
        let entries =
            self.apus(&[OpName::Message], Waiting::Blocking).into_iter().take(1).collect();
        Setting {
            part: Part::Idle,
            name: format!("{IDLE_CONNECTIONS} idle connections"),
            entries: self.entries(entries, load),
        }
    }

    fn polling(&self, part: Part, waiting: Waiting) -> Setting {
        let mut contestants = vec![Contestant::Udp(waiting)];
        contestants.extend(self.apus(ALL_OPS, waiting));
        let load = Load::RoundTrips { gap: GAPS[0], clients: 1, threads: 1, busy: 0 };
        let mode = if part == Part::Spinning { "both ends spin" } else { "inline, both ends spin" };
        Setting {
            part,
            name: format!("1 client, {mode}"),
            entries: self.entries(contestants, load),
        }
    }
}

const ALL_OPS: &[OpName] = &[OpName::Message, OpName::Write, OpName::Read];
