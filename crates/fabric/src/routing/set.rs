//! All shortest paths between two hosts, for flows that choose a path per packet.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use apus_units::PortId;

use super::{
    Avoided, Ends, Node, Paths, RouteError, RouteId, RouteTable, Terminal, UNREACHABLE, opposite,
};
use apus_units::random::mix;

/// Maximum number of paths that are stored for a pair of hosts: an entropy value of 16 bits selects
/// no more.
const MAX_PATHS: usize = 1 << 16;

/// The shortest paths from one host to another, numbered from 0. The number of a path is the same in both
/// directions.
/// Paths whose numbers differ by one differ at the first node with a choice, as seen from the host
/// with the smaller number: the choice there is the lowest digit of the number. If that host has
/// several ports on equal networks ([`PathSet::port_pairs`]), this choice is that of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSet {
    /// The words of the table of routes at which the first path starts, in each direction.
    first: [u32; 2],
    /// Number of words between the starts of two paths.
    stride: u32,
    count: u32,
    /// Number of path numbers per path of a network without failures: 1, or several if some of
    /// these paths are avoided.
    variants: u32,
    /// See [`PathSet::port_pairs`].
    port_pairs: u32,
}

impl PathSet {
    /// Returns the number of pairs of ports of the two hosts that the paths use, if each pair has
    /// the same number of paths: path n of a network without failures then uses pair n modulo this
    /// number. Otherwise 1.
    #[inline]
    #[must_use]
    pub const fn port_pairs(&self) -> u32 {
        self.port_pairs
    }

    /// Returns the number of paths, at least 1.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of path numbers per path of a network without failures. With `v`
    /// variants, numbers `v p` to `v p + v - 1` are path `p`, or detours around a failed link of
    /// it: its packets then spread over several other paths.
    #[inline]
    #[must_use]
    pub const fn variants(&self) -> u32 {
        self.variants
    }

    /// Returns the route of path `number`, which is below [`PathSet::count`].
    #[inline]
    #[must_use]
    pub const fn route(&self, number: u32) -> RouteId {
        RouteId::new(self.first[0] + number * self.stride)
    }

    /// Returns the number of the path of a packet that arrived from the other host; `None` if its
    /// route is none of these paths.
    #[inline]
    #[must_use]
    pub fn number_of(&self, route: RouteId) -> Option<u32> {
        let words = route.get().checked_sub(self.first[1])?;
        let number = words / self.stride;
        // Another set may begin before the last path of the other direction of this set has ended.
        (number < self.count && number * self.stride == words).then_some(number)
    }

    /// Returns the paths in the opposite direction.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        Self { first: [self.first[1], self.first[0]], ..*self }
    }

    /// Returns the word of the table at which the first path of either direction starts.
    fn lowest(&self) -> u32 {
        self.first[0].min(self.first[1])
    }

    /// Lets switches choose among the paths of the set, in both directions.
    fn let_switches_choose(&self, routes: &mut RouteTable) {
        for set in [*self, self.reversed()] {
            routes.add_choices((0..set.count).map(|number| set.route(number)));
        }
    }
}

/// Maximum number of variants per path, and maximum number of paths of a set with detours if each
/// path has several. deviation: no source; rationale: of 16 paths one has failed, and each of its
/// packets takes one of 16 drawn numbers, so that its load spreads over most of the other paths.
const MAX_VARIANTS: u32 = 16;
const MAX_WITH_VARIANTS: u32 = 512;

/// Sets of paths by pair of hosts, the smaller host number first.
type ByPair = BTreeMap<(Terminal, Terminal), PathSet>;

/// The paths stored so far.
#[derive(Default)]
pub(crate) struct PathSets {
    planned: ByPair,
    /// For each state of the links: the links that switches avoid, and the sets that differ from
    /// `planned`. For pairs that were stored after [`PathSets::prepare`], only the sets that were
    /// requested in this state.
    states: Vec<(Avoided, ByPair)>,
    /// The sets of `states` by their first word.
    detours: BTreeMap<u32, PathSet>,
    /// Word of the table at or behind which the planned sets of later pairs begin.
    prepared: u32,
    state: Option<usize>,
}

impl PathSets {
    /// Sets the state of the links; returns the links that switches avoid in it.
    pub(crate) fn set_state(&mut self, state: Option<usize>) -> Option<&Avoided> {
        self.state = state.filter(|state| *state < self.states.len());
        self.state.map(|state| &self.states[state].0)
    }

    pub(crate) const fn is_avoiding(&self) -> bool {
        self.state.is_some()
    }

    /// Returns the number of a route within its set of detours, and the variants of that set.
    pub(crate) fn number_of(&self, route: RouteId) -> Option<(u32, u32)> {
        let (first, set) = self.detours.range(..=route.get()).next_back()?;
        let number = (route.get() - first) / set.stride;
        (number < set.count).then_some((number, set.variants))
    }

    /// Stores the detours of all pairs in these states, which are numbered from 0. If `chosen` is
    /// set, switches may choose among them.
    pub(crate) fn prepare(
        &mut self,
        states: &[Avoided],
        paths: &mut Paths,
        routes: &mut RouteTable,
        chosen: bool,
    ) -> Result<(), RouteError> {
        for avoided in states {
            paths.set_avoided(Some(avoided));
            let mut differ = ByPair::new();
            for (&pair, set) in &self.planned {
                if let Some(around) = set_around(avoided, (pair, set), paths, routes, chosen)? {
                    self.detours.insert(around.lowest(), around);
                    differ.insert(pair, around);
                }
            }
            self.states.push((avoided.clone(), differ));
        }
        paths.set_avoided(None);
        self.prepared = routes.end().get();
        Ok(())
    }

    /// Returns the paths of a network without failures. If `chosen` is set, switches may choose
    /// among them.
    pub(crate) fn planned(
        &mut self,
        paths: &Paths,
        routes: &mut RouteTable,
        (src, dst): (Terminal, Terminal),
        chosen: bool,
    ) -> Result<PathSet, RouteError> {
        let pair = (src.min(dst), src.max(dst));
        let set = match self.planned.get(&pair) {
            Some(set) => *set,
            None => {
                let set = store(paths.find_all(pair.0, pair.1)?, routes)?;
                if chosen {
                    set.let_switches_choose(routes);
                }
                *self.planned.entry(pair).or_insert(set)
            }
        };
        Ok(if src <= dst { set } else { set.reversed() })
    }

    /// Returns the paths that packets take now; `paths` must avoid the links of the current state.
    pub(crate) fn current(
        &mut self,
        paths: &Paths,
        routes: &mut RouteTable,
        (src, dst): (Terminal, Terminal),
        chosen: bool,
    ) -> Result<PathSet, RouteError> {
        let Some(state) = self.state else {
            return self.planned(paths, routes, (src, dst), chosen);
        };
        let pair = (src.min(dst), src.max(dst));
        let set = match self.states[state].1.get(&pair) {
            Some(set) => *set,
            None => {
                let planned = self.planned(paths, routes, pair, chosen)?;
                if planned.lowest() < self.prepared {
                    planned
                } else {
                    let (avoided, sets) = &mut self.states[state];
                    let around = set_around(avoided, (pair, &planned), paths, routes, chosen)?;
                    self.detours.extend(around.map(|around| (around.lowest(), around)));
                    *sets.entry(pair).or_insert(around.unwrap_or(planned))
                }
            }
        };
        Ok(if src <= dst { set } else { set.reversed() })
    }
}

/// Stores the detours of a pair of hosts with these planned paths, if the state of the links
/// affects any of them.
fn set_around(
    avoided: &Avoided,
    (pair, set): ((Terminal, Terminal), &PathSet),
    paths: &Paths,
    routes: &mut RouteTable,
    chosen: bool,
) -> Result<Option<PathSet>, RouteError> {
    let is_avoided = |number| routes.ports(set.route(number)).any(|port| avoided.concerns(port));
    if !(0..set.count).any(is_avoided) {
        return Ok(None);
    }
    let around = store_detours(pair, set, paths, routes)?;
    if chosen {
        around.let_switches_choose(routes);
    }
    Ok(Some(around))
}

/// Stores paths of equal length, each followed by its reverse.
fn store(
    (paths, port_pairs): (Vec<Vec<PortId>>, u32),
    routes: &mut RouteTable,
) -> Result<PathSet, RouteError> {
    let ids: Result<Vec<[u32; 2]>, RouteError> = paths
        .iter()
        .map(|path| {
            let back: Vec<PortId> = path.iter().rev().copied().map(opposite).collect();
            Ok([routes.insert(path)?.get(), routes.insert(&back)?.get()])
        })
        .collect();
    let ids = ids?;
    let stride = ids.get(1).map_or(1, |second| second[0] - ids[0][0]);
    // At most 65536.
    Ok(PathSet { first: ids[0], stride, count: ids.len() as u32, variants: 1, port_pairs })
}

/// Stores the paths of a pair of hosts around avoided links, each in the same number of words and
/// followed by its reverse. Each path keeps its ports at both hosts.
fn store_detours(
    (low, high): (Terminal, Terminal),
    set: &PathSet,
    paths: &Paths,
    routes: &mut RouteTable,
) -> Result<PathSet, RouteError> {
    let variants = (MAX_WITH_VARIANTS / set.count).clamp(1, MAX_VARIANTS);
    let pair = u64::from(low.host.get()) << 32 | u64::from(high.host.get());
    let mut all = Vec::new();
    for number in 0..set.count * variants {
        let planned: Vec<PortId> = routes.ports(set.route(number / variants)).collect();
        let mut back: Vec<PortId> = planned.iter().rev().copied().map(opposite).collect();
        let mut there = planned;
        let word = mix(mix(pair) ^ u64::from(number));
        paths.detour_between(low, high, word, &mut there);
        paths.detour_between(high, low, word, &mut back);
        all.extend([there, back]);
    }
    let room = all.iter().map(Vec::len).max().unwrap_or(0);
    let ids = all.iter().map(|path| Ok(routes.insert_in(path, room)?.get()));
    let ids: Vec<u32> = ids.collect::<Result<_, RouteError>>()?;
    let stride = (2 * room + 2) as u32; // at most 130
    let first = [ids[0], ids[1]];
    Ok(PathSet { first, stride, count: set.count * variants, variants, port_pairs: set.port_pairs })
}

/// A partial path.
struct Open {
    /// Choices made so far, the latest first, so that their order is that of the path numbers.
    choices: Vec<u32>,
    path: Vec<PortId>,
    at: Node,
    ends: Ends,
}

impl Paths {
    /// Returns all shortest paths from `low` to `high`, at least one and at most [`MAX_PATHS`],
    /// with [`PathSet::port_pairs`].
    fn find_all(
        &self,
        low: Terminal,
        high: Terminal,
    ) -> Result<(Vec<Vec<PortId>>, u32), RouteError> {
        let mut one = Vec::new();
        self.find(low, high, 0, 0, &mut one)?;
        let ends = self.ends(low, high);
        let begin = |(choice, ends): (u32, &Ends)| Open {
            choices: vec![choice],
            path: vec![ends.first.0],
            at: ends.first.1,
            ends: *ends,
        };
        let mut open: Vec<Open> = (0..).zip(&ends).map(begin).collect();
        while open
            .iter()
            .any(|open| open.at != open.ends.last.1 && matches!(open.at, Node::Switch(_)))
        {
            let mut longer = Vec::new();
            for open in &open {
                let (Node::Switch(switch), Node::Switch(to)) = (open.at, open.ends.last.1) else {
                    continue;
                };
                let Some(row) = self.rows[to.index()] else { continue };
                let row = row as usize * self.ranges.len();
                let (start, end) = self.ranges[switch.index()];
                let closer = self.distances[row + switch.index()].saturating_sub(1);
                let hops = self.uplinks[start as usize..end as usize]
                    .iter()
                    .filter(|(_, peer)| self.distances[row + peer.index()] == closer);
                for (choice, &(port, peer)) in (0..).zip(hops) {
                    if longer.len() == MAX_PATHS || closer == UNREACHABLE {
                        break;
                    }
                    let mut choices = open.choices.clone();
                    choices.insert(0, choice);
                    let mut path = open.path.clone();
                    path.push(port);
                    longer.push(Open { choices, path, at: Node::Switch(peer), ends: open.ends });
                }
            }
            open = longer;
        }
        open.sort_by(|a, b| a.choices.cmp(&b.choices));
        let is_regular =
            (0..ends.len()).cycle().zip(&open).all(|(plane, open)| {
                open.choices.last().is_some_and(|first| *first as usize == plane)
            }) && open.len().is_multiple_of(ends.len());
        let port_pairs = if is_regular { ends.len() as u32 } else { 1 };
        let complete = |mut open: Open| {
            if let Node::Switch(_) = open.at {
                open.path.push(opposite(open.ends.last.0));
            }
            open.path
        };
        Ok((open.into_iter().map(complete).collect(), port_pairs))
    }
}
