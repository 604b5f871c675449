//! Packets of the transport, and control packets: sealed and opened in place.

use apus_units::Time;
use apus_wire::{
    Body, Decoded, EncodeError, Extension, Header, decode_extended, encode_extended, open,
};

use super::event::{Dropped, End, Received, SealError, SessionId};
use super::guard::{Guard, guard_bytes, numbers};
use super::packet::{CONTROL_BYTES, Command, KIND_AT, is_own, kind};
use super::peer::Peer;
use super::state::{Session, Stage, want};
use super::table::Sessions;
use super::window::expand;

/// A header with the fields of its flow's algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Extended<'a> {
    /// The header.
    pub header: &'a Header,
    /// The fields.
    pub extension: Extension<'a>,
}

impl<'a> From<&'a Header> for Extended<'a> {
    fn from(header: &'a Header) -> Self {
        Self { header, extension: Extension::None }
    }
}

/// What an authentic packet asks of the table, beyond being delivered.
struct Opened {
    id: SessionId,
    /// It is the first of a session.
    confirms: bool,
}

impl Sessions {
    /// Takes in one datagram, which is opened where it lies. Poll events and packets to send
    /// afterwards. A datagram that is dropped may be overwritten.
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
            return self.drop(Dropped::Malformed);
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
                    self.confirm(now, opened.id);
                }
                let extension = if extended {
                    // Once more, as the datagram was opened in place meanwhile.
                    decode_extended(datagram).map_or(Extension::None, |decoded| decoded.extension)
                } else {
                    Extension::None
                };
                Received::Packet {
                    session: opened.id,
                    header,
                    extension,
                    payload: &datagram[header_end..payload_end],
                }
            }
        }
    }

    /// A switch's word: a datagram of its own with a checksum and no more (Bolt §4.3). It says nothing of
    /// the peer, so the session is as it was.
    #[cold]
    fn on_signal(&mut self, from: Peer, datagram: &[u8]) -> Received<'static> {
        let Ok((header, _)) = open(datagram) else { return self.drop(Dropped::Malformed) };
        let session = self.by_peer.get(&from).copied().filter(|&id| self.is_connected(id));
        match session {
            Some(session) => Received::Signal { session, header },
            None => self.drop(Dropped::UnknownSession),
        }
    }

    /// Seals a packet in place: writes the header to the start of `buffer`, where its payload follows
    /// already (at [`Header::encoded_len`] and [`Extension::encoded_len`]), and the guard ([`Sessions::overhead`] bytes) behind.
    /// Returns the length of the datagram.
    ///
    /// # Errors
    /// If the session is not connected, the header is illegal, or the buffer too short.
    #[inline]
    pub fn seal<'p>(
        &mut self,
        now: Time,
        id: SessionId,
        packet: impl Into<Extended<'p>>,
        buffer: &mut [u8],
    ) -> Result<usize, SealError> {
        self.seal_with(now, id, packet.into(), buffer, |guard, remote, header_end, packet| {
            guard.seal(remote, header_end, packet)
        })
    }

    /// As [`Sessions::seal`], with the payload from elsewhere, which saves a copy of it.
    ///
    /// # Errors
    /// As [`Sessions::seal`], and if the payload is not as long as the header says.
    #[inline]
    pub fn seal_from<'p>(
        &mut self,
        now: Time,
        id: SessionId,
        packet: impl Into<Extended<'p>>,
        payload: &[u8],
        buffer: &mut [u8],
    ) -> Result<usize, SealError> {
        let packet = packet.into();
        let (needed, available) = (packet.header.payload_len(), payload.len());
        if needed != available {
            return Err(EncodeError::BufferTooSmall { needed, available }.into());
        }
        self.seal_with(now, id, packet, buffer, |guard, remote, header_end, packet| {
            guard.seal_from(remote, header_end, payload, packet)
        })
    }

    #[inline]
    fn seal_with(
        &mut self,
        now: Time,
        id: SessionId,
        Extended { header, extension }: Extended<'_>,
        buffer: &mut [u8],
        seal: impl FnOnce(&mut Guard, u32, usize, &mut [u8]) -> bool,
    ) -> Result<usize, SealError> {
        let headers = header.encoded_len() + extension.encoded_len();
        let needed = headers + header.payload_len() + self.overhead();
        let available = buffer.len();
        let Some(packet) = buffer.get_mut(..needed) else {
            return Err(EncodeError::BufferTooSmall { needed, available }.into());
        };
        let life = self.config.key_life;
        let session =
            self.get_mut(id).filter(|s| s.is_connected()).ok_or(SealError::NotConnected)?;
        let remote = session.remote;
        let guard = session.guard.as_mut().ok_or(SealError::NotConnected)?;
        let header_end = encode_extended(header, &extension, packet)?;
        let renewed = guard.renew(now, life);
        if !seal(guard, remote, header_end, packet) {
            return Err(SealError::Exhausted);
        }
        self.counters.sealed += 1;
        self.counters.key_changes += u64::from(renewed);
        Ok(needed)
    }

    /// A packet whose kind is the session layer's.
    #[cold]
    fn receive_own(&mut self, now: Time, from: Peer, datagram: &mut [u8]) -> Received<'static> {
        match datagram[KIND_AT] {
            kind::CONTROL => self.on_control(now, from, datagram),
            kind::UNKNOWN => self.on_unknown(now, from, datagram),
            _ => self.on_handshake(now, from, datagram),
        }
    }

    fn on_control(&mut self, now: Time, from: Peer, datagram: &mut [u8]) -> Received<'static> {
        let carried = datagram.len().checked_sub(CONTROL_BYTES + self.overhead());
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
            self.confirm(now, opened.id);
        }
        match command {
            Command::Ping => self.want(opened.id, want::PONG),
            Command::Pong => {}
            Command::Close => self.end(opened.id, End::Closed),
            Command::Probe => {
                return Received::Probe { session: opened.id, length: datagram.len() };
            }
            Command::ProbeAnswer => {
                let length = [datagram[CONTROL_BYTES], datagram[CONTROL_BYTES + 1]];
                let length = usize::from(u16::from_be_bytes(length));
                return Received::ProbeAnswer { session: opened.id, length };
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
        let Some(session) = self.get_mut(SessionId(id)) else {
            self.reply_unknown(now, from, id, short);
            return Err(Dropped::UnknownSession);
        };
        if session.peer != from {
            return Err(Dropped::Address);
        }
        let Some(guard) = session.guard.as_mut() else { return Err(Dropped::UnknownSession) };
        let number = expand(short, session.window.largest());
        if !session.window.is_new(number) {
            return Err(Dropped::Replay);
        }
        if !guard.open(number, header_end, datagram) {
            return Err(Dropped::Forged);
        }
        session.window.accept(number);
        session.last_received = now;
        session.doubt = None;
        let confirms = matches!(session.stage, Stage::Answered { .. } | Stage::Confirming);
        let opened = Opened { id: session.id, confirms };
        if matches!(session.stage, Stage::Closing) {
            return Err(Dropped::UnknownSession);
        }
        self.counters.opened += 1;
        Ok(opened)
    }

    /// Writes a control packet of a session that has keys.
    pub(crate) fn write_control(
        &mut self,
        now: Time,
        id: SessionId,
        command: Command,
        out: &mut [u8],
    ) -> Option<usize> {
        let packet = out.get_mut(..CONTROL_BYTES + self.overhead())?;
        self.guard_control(now, id, command, packet).then_some(packet.len())
    }

    /// Makes `packet` a probe of the path, of its length. False if it is too short (a control packet
    /// takes [`Sessions::overhead`] and 4 bytes) or the session is not connected.
    pub fn seal_probe(&mut self, now: Time, id: SessionId, packet: &mut [u8]) -> bool {
        packet.fill(0);
        self.guard_control(now, id, Command::Probe, packet)
    }

    /// Writes the answer to a probe of `length` bytes to the start of `out` and returns its own length;
    /// `None` if `out` is too short or the session is not connected.
    pub fn seal_probe_answer(
        &mut self,
        now: Time,
        id: SessionId,
        length: usize,
        out: &mut [u8],
    ) -> Option<usize> {
        let packet = out.get_mut(..CONTROL_BYTES + 2 + self.overhead())?;
        let length = u16::try_from(length).ok()?;
        packet[CONTROL_BYTES..CONTROL_BYTES + 2].copy_from_slice(&length.to_be_bytes());
        self.guard_control(now, id, Command::ProbeAnswer, packet).then_some(packet.len())
    }

    /// Writes the header of a control packet, whose payload is there, and guards it.
    fn guard_control(
        &mut self,
        now: Time,
        id: SessionId,
        command: Command,
        packet: &mut [u8],
    ) -> bool {
        let (life, sealed) = (self.config.key_life, self.is_sealed());
        if packet.len() < CONTROL_BYTES + guard_bytes(sealed) {
            return false;
        }
        packet[..CONTROL_BYTES].copy_from_slice(&command.header());
        let Some(Session { guard: Some(guard), remote, .. }) = self.get_mut(id) else {
            return false;
        };
        let renewed = guard.renew(now, life);
        let sent = guard.seal(*remote, CONTROL_BYTES, packet);
        self.counters.key_changes += u64::from(sent && renewed);
        self.counters.sealed += u64::from(sent);
        sent
    }
}
