//! From entropy values to paths.

use apus_cc::SwitchHalf;
use apus_fabric::{Network, PathSet, RouteId, Way};
use apus_transport::Path;
use apus_units::PacketNumber;
use apus_units::random::{INCREMENT, below, mix};
use apus_wire::Header;

use crate::plan::{AckPath, EvForm};

/// The paths of a flow that spreads its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPaths {
    set: PathSet,
    /// The paths of a network without failures.
    planned: PathSet,
    /// Hash of the run and the connection, the same at both ends.
    key: u64,
    form: EvForm,
    ack_path: AckPath,
    /// How data packets follow their route.
    way: Way,
}

impl FlowPaths {
    pub(crate) fn new(
        set: PathSet,
        key: u64,
        (form, ack_path): (EvForm, AckPath),
        way: Way,
    ) -> Self {
        Self { set, planned: set, key, form, ack_path, way }
    }

    /// Sets the paths that packets take from now on.
    pub(crate) fn set_current(&mut self, set: PathSet) {
        self.set = set;
    }

    /// Returns the route of a packet of this number that the transport gave `path`, and how it follows it.
    #[inline]
    pub(crate) fn route(&self, path: Path, seq: PacketNumber) -> (RouteId, Way) {
        let count = self.set.count();
        let number = match (path, self.form) {
            (Path::Spread(ev), EvForm::Hashed) => self.hashed(u64::from(ev.get())),
            (Path::Spread(ev), EvForm::Indexed) => self.indexed(u32::from(ev.get())),
            (Path::Back(number), _) if self.ack_path == AckPath::Symmetric => number % count,
            // Upper bits that no entropy value has.
            (Path::Back(_), _) => self.hashed(!seq.get()),
            (Path::Label(label), _) => label % count,
        };
        let way = if let Path::Spread(_) = path { self.way } else { Way::FORWARD };
        (self.set.route(number), way)
    }

    /// Returns the number of the path by which a packet of the peer came.
    #[inline]
    pub(crate) fn came_by<W: SwitchHalf>(
        &self,
        route: RouteId,
        network: &Network<Header, W>,
    ) -> u32 {
        match self.set.number_of(route) {
            Some(number) => number,
            None => self.came_by_former(route, network),
        }
    }

    /// Returns the number of the path of a packet that was sent before paths changed.
    #[cold]
    fn came_by_former<W: SwitchHalf>(&self, route: RouteId, network: &Network<Header, W>) -> u32 {
        let planned = self.planned.number_of(route).map(|number| (number, 1));
        let Some((number, variants)) = planned.or_else(|| network.detour_number(route)) else {
            return 0;
        };
        let now = self.set.variants();
        number / variants * now + number % variants % now
    }

    /// Paths of a network without failures count by the lower digits of the value, and detours of each by the
    /// upper ones.
    #[inline]
    fn indexed(&self, value: u32) -> u32 {
        let (count, variants) = (self.set.count(), self.set.variants());
        if variants == 1 {
            return value % count;
        }
        let planned = count / variants;
        value % planned * variants + value / planned % variants
    }

    #[inline]
    fn hashed(&self, word: u64) -> u32 {
        let hash = mix(self.key.wrapping_add(INCREMENT) ^ word);
        below(mix(hash.wrapping_add(INCREMENT)), u64::from(self.set.count())) as u32 // below the count
    }
}
