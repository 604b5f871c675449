//! Packets of the transport and control packets: they are sealed here, and opened in place.

use apus_units::Time;
use apus_units::planted::{Bug, is_planted};
use apus_wire::{
    Body, Decoded, EncodeError, Extension, Header, decode_extended, encode_extended, open,
};

use super::event::{Dropped, End, Event, Received, SealError, SessionId};
use super::guard::numbers;
use super::packet::{CONTROL_BYTES, Command, KIND_AT, REACH_PROBE, is_own, kind};
use super::peer::Peer;
use super::state::{Session, Stage, want};
use super::table::{Sessions, find};
use super::window::expand;

/// Header of a packet with the congestion fields of its flow's algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Extended<'a> {
    /// The header.
    pub header: &'a Header,
    /// The congestion fields.
    pub extension: Extension<'a>,
}

impl<'a> From<&'a Header> for Extended<'a> {
    fn from(header: &'a Header) -> Self {
        Self { header, extension: Extension::None }
    }
}

/// An authentic packet that was opened.
struct Opened {
    id: SessionId,
    /// Whether it is the first packet of its session, which connects it.
    confirms: bool,
    /// Number of the peer's port that it came from.
    path: u8,
}

/// Returns `true` if a datagram claims to prove the address from which it comes.
#[cold]
fn is_proof(datagram: &[u8]) -> bool {
    let command = datagram.get(..CONTROL_BYTES).and_then(Command::parse);
    matches!(command, Some(Command::Join | Command::Prove))
}

impl Sessions {
    /// Receives a datagram and opens it in place. Poll events and packets to send afterwards. A dropped datagram may have
    /// been overwritten.
    #[inline]
    pub fn receive<'d>(
        &mut self,
        now: Time,
        from: impl Into<Peer>,
        datagram: &'d mut [u8],
    ) -> Received<'d> {
        let from = from.into();
        if datagram.first() == Some(&0) && datagram.get(KIND_AT).copied().is_some_and(is_own) {
            return self.receive_own(now, from, datagram);
        }
        let Ok(decoded) = decode_extended(datagram) else {
            return self.on_undecodable(datagram);
        };
        let Decoded { header, length: header_end, .. } = decoded;
        if let Body::Signal(_) = header.body {
            return self.on_signal(from, datagram);
        }
        let extended = decoded.extension != Extension::None;
        let payload_end = header_end + header.payload_len();
        if datagram.len() != payload_end + self.overhead() {
            return self.drop(Dropped::Malformed);
        }
        match self.open(now, from, header_end, datagram) {
            Err(why) => self.drop(why),
            Ok(opened) => {
                if opened.confirms {
                    self.confirm(opened.id);
                }
                let extension = if extended {
                    // Decode again, because the datagram was opened in place since the first decoding.
                    decode_extended(datagram).map_or(Extension::None, |decoded| decoded.extension)
                } else {
                    Extension::None
                };
                Received::Packet {
                    session: opened.id,
                    path: opened.path,
                    header,
                    extension,
                    payload: &datagram[header_end..payload_end],
                }
            }
        }
    }

    /// Handles a datagram that is not a packet: a probe of a host that has no answer yet, or data of another protocol.
    #[cold]
    fn on_undecodable(&mut self, datagram: &[u8]) -> Received<'static> {
        if datagram != REACH_PROBE {
            return self.drop(Dropped::Malformed);
        }
        self.counters.reach_probes += 1;
        Received::Own
    }

    /// Receives a switch's signal: a separate datagram that only a checksum protects (Bolt §4.3). It proves nothing about the
    /// peer, so the session does not change.
    #[cold]
    fn on_signal(&mut self, from: Peer, datagram: &[u8]) -> Received<'static> {
        let Ok((header, _)) = open(datagram) else { return self.drop(Dropped::Malformed) };
        let session =
            self.by_peer.get(&from.at_first_port()).copied().filter(|&id| self.is_connected(id));
        match session {
            Some(session) => Received::Signal { session, header },
            None => self.drop(Dropped::UnknownSession),
        }
    }

    /// Writes a packet to the start of `buffer`: header, fields and sealed payload, and the guard ([`Sessions::overhead`] bytes).
    /// Returns the length of the datagram.
    ///
    /// # Errors
    /// If the session is not connected or has used up its packet numbers, the header is illegal, the payload is not as long as
    /// the header states, or the buffer is too short.
    #[inline]
    pub fn seal<'p>(
        &mut self,
        now: Time,
        id: SessionId,
        packet: impl Into<Extended<'p>>,
        payload: &[u8],
        buffer: &mut [u8],
    ) -> Result<usize, SealError> {
        let Extended { header, extension } = packet.into();
        let (stated, given) = (header.payload_len(), payload.len());
        if stated != given {
            return Err(EncodeError::PayloadLength { stated, given }.into());
        }
        let headers = header.encoded_len() + extension.encoded_len();
        let (needed, available) = (headers + stated + self.overhead(), buffer.len());
        let Some(packet) = buffer.get_mut(..needed) else {
            return Err(EncodeError::BufferTooSmall { needed, available }.into());
        };
        let life = self.config.key_life;
        let Self { slots, shares, .. } = self;
        let session =
            find(slots, id).filter(|s| s.is_connected()).ok_or(SealError::NotConnected)?;
        if shares.counts()
            && let Some(account) = session.account
        {
            shares.charge(account, needed);
        }
        let remote = session.remote;
        let guard = session.guard.as_mut().ok_or(SealError::NotConnected)?;
        let header_end = encode_extended(header, &extension, packet)?;
        let renewed = guard.renew(now, life);
        if !guard.seal(remote, header_end, payload, packet) {
            return Err(SealError::Exhausted);
        }
        self.counters.sealed += 1;
        if renewed {
            self.on_key_change(id);
        }
        Ok(needed)
    }

    #[cold]
    fn on_key_change(&mut self, id: SessionId) {
        if self.shares.counts()
            && let Some(account) = self.get(id).and_then(|session| session.account)
        {
            self.shares.charge_new_key(account);
        }
        self.counters.key_changes += 1;
        self.events.push_back(Event::KeyChanged { session: id });
    }

    /// Receives a packet of the session layer.
    #[cold]
    fn receive_own(&mut self, now: Time, from: Peer, datagram: &mut [u8]) -> Received<'static> {
        match datagram[KIND_AT] {
            kind::CONTROL => self.on_control(now, from, datagram),
            kind::UNKNOWN => self.on_unknown(now, from.at_first_port(), datagram),
            // Handshakes use only the first port, whose address all peers know.
            _ if from.port > 0 => self.drop(Dropped::Address),
            _ => self.on_handshake(now, from, datagram),
        }
    }

    fn on_control(&mut self, now: Time, from: Peer, datagram: &mut [u8]) -> Received<'static> {
        let carried = datagram.len().checked_sub(CONTROL_BYTES + self.overhead());
        if is_planted(Bug::ShortDatagram) {
            // The position of the numbers in a complete packet.
            let _ = datagram[CONTROL_BYTES + self.overhead() - 1];
        }
        let command = datagram.get(..CONTROL_BYTES).and_then(Command::parse);
        let fits = |command: &Command| carried.is_some_and(|bytes| command.may_carry(bytes));
        let Some(command) = command.filter(fits) else {
            return self.drop(Dropped::Malformed);
        };
        let opened = match self.open(now, from, CONTROL_BYTES, datagram) {
            Err(why) => return self.drop(why),
            Ok(opened) => opened,
        };
        if opened.confirms && command != Command::Close {
            self.confirm(opened.id);
        }
        let number = datagram.get(CONTROL_BYTES).copied().unwrap_or(0);
        let length = datagram.len();
        let carried = datagram.get(CONTROL_BYTES..).unwrap_or(&[]);
        match command {
            Command::Ping => {
                if let Some(session) = self.get_mut(opened.id) {
                    session.pinged_from = from;
                }
                self.want(opened.id, want::PONG);
            }
            Command::Pong => {}
            Command::Draining => self.events.push_back(Event::PeerDraining { session: opened.id }),
            Command::Idle => self.events.push_back(Event::PeerIdle { session: opened.id }),
            Command::Close => self.end(opened.id, End::Closed),
            Command::Probe => {
                return Received::Probe { session: opened.id, from, length: datagram.len() };
            }
            Command::ProbeAnswer => {
                let length = [datagram[CONTROL_BYTES], datagram[CONTROL_BYTES + 1]];
                let length = usize::from(u16::from_be_bytes(length));
                return Received::ProbeAnswer { session: opened.id, length };
            }
            Command::Join => self.on_join(opened.id, from, number, length),
            Command::Challenge => {
                if let Some(&proof) = carried.first_chunk() {
                    self.on_challenge(opened.id, from, proof);
                }
            }
            Command::Prove => {
                if let Some(&proof) = carried.first_chunk() {
                    self.on_prove(opened.id, from, proof);
                }
            }
            Command::Joined => {
                if let Some(&joined) = carried.first_chunk() {
                    return self.on_joined(opened.id, from, joined);
                }
            }
        }
        Received::Own
    }

    /// Finds the session of a well-formed packet and opens it.
    #[inline]
    fn open(
        &mut self,
        now: Time,
        from: Peer,
        header_end: usize,
        datagram: &mut [u8],
    ) -> Result<Opened, Dropped> {
        let (id, short) = numbers(self.is_sealed(), datagram).ok_or(Dropped::Malformed)?;
        let Self { slots, shares, .. } = self;
        let Some(session) = find(slots, SessionId(id)) else {
            self.reply_unknown(now, from, id, short);
            return Err(Dropped::UnknownSession);
        };
        let path = match session.peer == from {
            true => 0,
            false => match session.path_of(from) {
                Some(path) => path,
                None if is_proof(datagram) && session.may_prove(from) => 0,
                None => return Err(Dropped::Address),
            },
        };
        let Some(guard) = session.guard.as_mut() else { return Err(Dropped::UnknownSession) };
        let number = expand(short, session.window.largest());
        if !session.window.is_new(number) {
            return Err(Dropped::Replay);
        }
        let counted = if shares.counts() { session.account } else { None };
        if counted.is_some_and(|account| !shares.admits(account)) {
            return Err(Dropped::Share);
        }
        let under_new_key = counted.is_some() && guard.is_under_new_key(number);
        if !guard.open(number, header_end, datagram) {
            return Err(Dropped::Forged);
        }
        if let Some(account) = counted {
            shares.charge(account, datagram.len());
            if under_new_key {
                shares.charge_new_key(account);
            }
        }
        session.window.accept(number);
        session.last_received = now;
        session.doubt = None;
        let confirms = matches!(session.stage, Stage::Answered { .. } | Stage::Confirming);
        let opened = Opened { id: session.id, confirms, path };
        if matches!(session.stage, Stage::Closing) {
            return Err(Dropped::UnknownSession);
        }
        self.counters.opened += 1;
        Ok(opened)
    }

    /// Fills `packet` with a probe of the path; the probe is as long as `packet`. Returns `false` if `packet` is too short (a
    /// control packet takes 4 bytes and [`Sessions::overhead`]) or the session is not connected.
    pub fn seal_probe(&mut self, now: Time, id: SessionId, packet: &mut [u8]) -> bool {
        let carried = packet.len().checked_sub(CONTROL_BYTES + self.overhead());
        let zeros = carried.map(|bytes| vec![0; bytes]);
        zeros.is_some_and(|zeros| {
            self.seal_control(now, id, Command::Probe, &zeros, packet).is_some()
        })
    }

    /// Writes the answer to a probe of `length` bytes to the start of `out`. Returns the length of the answer, or `None` if `out`
    /// is too short or the session is not connected.
    pub fn seal_probe_answer(
        &mut self,
        now: Time,
        id: SessionId,
        length: usize,
        out: &mut [u8],
    ) -> Option<usize> {
        let length = u16::try_from(length).ok()?;
        self.seal_control(now, id, Command::ProbeAnswer, &length.to_be_bytes(), out)
    }

    /// Writes a control packet to the start of `out`. Returns its length; `None` if `out` is too short or the session has
    /// no keys.
    pub(crate) fn seal_control(
        &mut self,
        now: Time,
        id: SessionId,
        command: Command,
        payload: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        let packet = out.get_mut(..CONTROL_BYTES + payload.len() + self.overhead())?;
        packet[..CONTROL_BYTES].copy_from_slice(&command.header());
        let life = self.config.key_life;
        let Self { slots, shares, .. } = self;
        let session = find(slots, id)?;
        if shares.counts()
            && let Some(account) = session.account
        {
            shares.charge(account, packet.len());
        }
        let Session { guard: Some(guard), remote, .. } = session else { return None };
        let renewed = guard.renew(now, life);
        if !guard.seal(*remote, CONTROL_BYTES, payload, packet) {
            return None;
        }
        self.counters.sealed += 1;
        if renewed {
            self.on_key_change(id);
        }
        Some(packet.len())
    }

    /// Seals a control packet with the command of this number and any content.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn seal_command(
        &mut self,
        now: Time,
        id: SessionId,
        command: u8,
        content: &[u8],
    ) -> Option<Vec<u8>> {
        let command = Command::of(command)?;
        let mut packet = vec![0; CONTROL_BYTES + content.len() + self.overhead()];
        let length = self.seal_control(now, id, command, content, &mut packet)?;
        packet.truncate(length);
        Some(packet)
    }
}
