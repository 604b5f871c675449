//! A cryptographic session without cryptography: a handshake of fixed size that carries the transport
//! parameters, and packets in plain text with a tag of zeros. This is enough for connections in virtual time.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Number of bytes of a message with transport parameters; fixed, because quinn pads these parameters at
/// random.
const WITH_PARAMETERS: usize = 600;
/// Number of bytes of a message without transport parameters.
const SHORT: usize = 64;
/// Number of bytes of a tag, as with AES-GCM.
const TAG: usize = 16;

/// Creates sessions of clients and servers, and all keys.
pub struct Plaintext;

impl ClientConfig for Plaintext {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(PlaintextSession::new(Side::Client, params)))
    }
}

impl ServerConfig for Plaintext {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(PlaintextSession::new(Side::Server, params))
    }
}

/// One end of a handshake of four messages: the client's and the server's hello, then both ends' last message.
struct PlaintextSession {
    side: Side,
    own_parameters: Vec<u8>,
    received: Vec<u8>,
    messages_written: u32,
}

impl PlaintextSession {
    fn new(side: Side, params: &TransportParameters) -> Self {
        let mut own_parameters = Vec::new();
        params.write(&mut own_parameters);
        let length = u16::try_from(own_parameters.len()).expect("short parameters");
        own_parameters.splice(0..0, length.to_be_bytes());
        assert!(own_parameters.len() <= WITH_PARAMETERS);
        own_parameters.resize(WITH_PARAMETERS, 0);
        Self { side, own_parameters, received: Vec::new(), messages_written: 0 }
    }

    /// Returns the number of bytes that the peer sends before its last message: its hello.
    fn hello(&self) -> usize {
        if self.side.is_client() { SHORT } else { WITH_PARAMETERS }
    }

    /// Returns the peer's transport parameters, once all of them have arrived.
    fn peer_parameters(&self) -> Option<&[u8]> {
        let from = if self.side.is_client() { SHORT } else { 0 };
        let message = self.received.get(from..from + WITH_PARAMETERS)?;
        let (length, params) = message.split_first_chunk::<2>()?;
        Some(&params[..u16::from_be_bytes(*length).into()])
    }
}

impl Session for PlaintextSession {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(false)
    }

    fn is_handshaking(&self) -> bool {
        self.received.len() < SHORT + WITH_PARAMETERS
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        // No handshake data for applications.
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = |bytes| TransportParameters::read(self.side, &mut Cursor::new(bytes));
        Ok(self.peer_parameters().map(read).transpose()?)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let has_hello = self.received.len() >= self.hello();
        let is_complete = !self.is_handshaking();
        let (ready, message, has_keys) = match (self.side, self.messages_written) {
            (Side::Client, 0) => (true, &self.own_parameters[..], false),
            // The client gets its keys for handshake packets without a message.
            (Side::Client, 1) => (has_hello, &[][..], true),
            (Side::Client, 2) => (is_complete, &[0; SHORT][..], true),
            (Side::Server, 0) => (has_hello, &[0; SHORT][..], true),
            (Side::Server, 1) => (true, &self.own_parameters[..], true),
            _ => (false, &[][..], false),
        };
        if !ready {
            return None;
        }
        buf.extend_from_slice(message);
        self.messages_written += 1;
        has_keys.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(Plaintext), remote: Box::new(Plaintext) },
        packet: KeyPair { local: Box::new(Plaintext), remote: Box::new(Plaintext) },
    }
}

impl HeaderKey for Plaintext {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl PacketKey for Plaintext {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Tokens of stateless resets: different for different connection identifiers.
impl HmacKey for Plaintext {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        for (index, byte) in signature.iter_mut().enumerate() {
            *byte = data.get(index % data.len().max(1)).map_or(1, |byte| byte.wrapping_add(1));
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }
}

impl HandshakeTokenKey for Plaintext {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

/// No tokens are issued.
impl AeadKey for Plaintext {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}
