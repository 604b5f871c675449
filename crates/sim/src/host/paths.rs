//! From entropy values to paths.

use apus_fabric::{PathSet, RouteId};
use apus_transport::Path;
use apus_units::PacketNumber;
use apus_units::random::{INCREMENT, below, mix};

use crate::plan::{AckPath, EvForm};

/// The paths of a flow that spreads its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPaths {
    set: PathSet,
    /// Hash of the run and the connection, the same at both ends.
    key: u64,
    form: EvForm,
    ack_path: AckPath,
}

impl FlowPaths {
    pub(crate) fn new(set: PathSet, key: u64, form: EvForm, ack_path: AckPath) -> Self {
        Self { set, key, form, ack_path }
    }

    /// Returns the route of a packet of this number that the transport gave `path`.
    #[inline]
    pub(crate) fn route(&self, path: Path, seq: PacketNumber) -> RouteId {
        let count = self.set.count();
        let number = match (path, self.form) {
            (Path::Spread(ev), EvForm::Hashed) => self.hashed(u64::from(ev.get())),
            (Path::Spread(ev), EvForm::Indexed) => u32::from(ev.get()) % count,
            (Path::Back(number), _) if self.ack_path == AckPath::Symmetric => number % count,
            // Upper bits that no entropy value has.
            (Path::Back(_), _) => self.hashed(!seq.get()),
            (Path::Label(label), _) => label % count,
        };
        self.set.route(number)
    }

    /// Returns the number of the path by which a packet of the peer came.
    #[inline]
    pub(crate) fn came_by(&self, route: RouteId) -> u32 {
        self.set.number_of(route).unwrap_or(0)
    }

    #[inline]
    fn hashed(&self, word: u64) -> u32 {
        let hash = mix(self.key.wrapping_add(INCREMENT) ^ word);
        below(mix(hash.wrapping_add(INCREMENT)), u64::from(self.set.count())) as u32 // below the count
    }
}
