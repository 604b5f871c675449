//! Priority flow control (IEEE 802.1Qbb): a switch pauses a class of the port that fills its memory.
//!
//! A switch counts the bytes that it holds per class and per link over which they arrived. At
//! `pause` bytes it pauses that class of the port at the link's other end; at `resume` bytes it
//! ends the pause. Packets that arrive before the pause takes effect use the headroom; packets
//! beyond the headroom are dropped.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use apus_units::{Bytes, ClassId, PortId};

/// Thresholds of pauses, per ingress link of a switch and per class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcConfig {
    /// Number of bytes held at which the port at the other end is paused.
    pub pause: Bytes,
    /// Number of bytes held at or below which the port resumes.
    pub resume: Bytes,
    /// Maximum number of bytes held in excess of `pause`.
    pub headroom: Bytes,
    /// The classes that may be paused; other classes are not counted.
    pub classes: Vec<ClassId>,
}

impl PfcConfig {
    /// Wire bytes of a pause frame: 64 B of Ethernet, preamble and gap (IEEE 802.1Qbb).
    pub const FRAME: Bytes = Bytes::new(84);

    /// Checks the thresholds.
    ///
    /// # Errors
    /// If the thresholds contradict each other.
    pub fn check(&self) -> Result<(), String> {
        if self.pause == Bytes::ZERO {
            return Err("pauses at 0 bytes, so for ever; `pause` must be above 0".into());
        }
        if self.resume >= self.pause {
            let (resume, pause) = (self.resume, self.pause);
            return Err(format!("resumes at {resume}, which must be below the {pause} of `pause`"));
        }
        Ok(())
    }
}

/// A pause, or the end of one, for a class of the port that is paused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) port: PortId,
    pub(crate) class: ClassId,
    pub(crate) paused: bool,
}

/// Bytes that switches hold, per class and per link over which they arrived.
pub(crate) struct Pfc {
    config: PfcConfig,
    /// Whether each class can be paused.
    counted: Vec<bool>,
    /// Bytes held, indexed by class and port at the far end of the link.
    held: Vec<u64>,
    paused: Vec<bool>,
    /// Due pauses; the call that adds them also removes them.
    pub(crate) due: Vec<Pause>,
}

impl Pfc {
    pub(crate) fn new(config: PfcConfig, ports: usize) -> Self {
        let classes = config.classes.iter().map(|class| class.index() + 1).max().unwrap_or(0);
        let mut counted = vec![false; classes];
        for class in &config.classes {
            counted[class.index()] = true;
        }
        let cells = ports * classes;
        Self { config, counted, held: vec![0; cells], paused: vec![false; cells], due: Vec::new() }
    }

    fn cell(&self, port: PortId, class: ClassId) -> Option<usize> {
        let counted = self.counted.get(class.index()).is_some_and(|counted| *counted);
        counted.then(|| port.index() * self.counted.len() + class.index())
    }

    /// Returns `true` if the switch has room for a packet that arrived over the link behind `port`.
    pub(crate) fn admits(&self, port: PortId, class: ClassId, bytes: u32) -> bool {
        let limit = self.config.pause.get().saturating_add(self.config.headroom.get());
        self.cell(port, class).is_none_or(|cell| self.held[cell] + u64::from(bytes) <= limit)
    }

    /// Counts a packet that has entered the switch.
    pub(crate) fn enter(&mut self, port: PortId, class: ClassId, bytes: u32) {
        let Some(cell) = self.cell(port, class) else { return };
        self.held[cell] += u64::from(bytes);
        if !self.paused[cell] && self.held[cell] >= self.config.pause.get() {
            self.paused[cell] = true;
            self.due.push(Pause { port, class, paused: true });
        }
    }

    /// Removes a packet that has left the switch from the count.
    pub(crate) fn leave(&mut self, port: PortId, class: ClassId, bytes: u32) {
        let Some(cell) = self.cell(port, class) else { return };
        self.held[cell] -= u64::from(bytes);
        if self.paused[cell] && self.held[cell] <= self.config.resume.get() {
            self.paused[cell] = false;
            self.due.push(Pause { port, class, paused: false });
        }
    }
}
