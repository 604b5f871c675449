//! Messages of a Chakra trace (et_def.proto of mlcommons/chakra, equal in 0.0.4 and 1.0.0), with the fields
//! that are read. Other fields are skipped.

use prost::Message;

/// `GlobalMetadata`, the first message.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub(super) version: String,
}

/// `Node`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, optional, tag = "8")]
    pub(super) inputs: Option<Values>,
    #[prost(message, repeated, tag = "10")]
    pub(super) attributes: Vec<Attribute>,
}

/// `IOInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Values {
    #[prost(string, tag = "1")]
    pub(super) values: String,
}

/// `AttributeProto`: its value is in the field of its type.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, optional, tag = "7")]
    int32: Option<i32>,
    #[prost(int64, optional, tag = "9")]
    int64: Option<i64>,
    #[prost(uint32, optional, tag = "11")]
    uint32: Option<u32>,
    #[prost(uint64, optional, tag = "13")]
    uint64: Option<u64>,
    #[prost(sint32, optional, tag = "15")]
    sint32: Option<i32>,
    #[prost(sint64, optional, tag = "17")]
    sint64: Option<i64>,
    #[prost(fixed32, optional, tag = "19")]
    fixed32: Option<u32>,
    #[prost(fixed64, optional, tag = "21")]
    fixed64: Option<u64>,
    #[prost(sfixed32, optional, tag = "23")]
    sfixed32: Option<i32>,
    #[prost(sfixed64, optional, tag = "25")]
    sfixed64: Option<i64>,
    #[prost(bool, optional, tag = "27")]
    flag: Option<bool>,
    #[prost(message, optional, tag = "28")]
    flags: Option<Flags>,
    #[prost(string, optional, tag = "29")]
    text: Option<String>,
}

/// `BoolList`.
#[derive(Clone, PartialEq, Message)]
struct Flags {
    #[prost(bool, repeated, tag = "1")]
    values: Vec<bool>,
}

impl Node {
    /// Returns an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// Returns an integer attribute, from whichever integer field holds it.
    pub(super) fn integer(&self, name: &str) -> Option<i128> {
        let of = self.attribute(name)?;
        let signed = [
            of.int32.map(i64::from),
            of.int64,
            of.sint32.map(i64::from),
            of.sint64,
            of.sfixed32.map(i64::from),
            of.sfixed64,
        ];
        let unsigned = [of.uint32.map(u64::from), of.uint64, of.fixed32.map(u64::from), of.fixed64];
        let signed = signed.into_iter().flatten().map(i128::from).next();
        signed.or_else(|| unsigned.into_iter().flatten().map(i128::from).next())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.attribute(name).and_then(|attribute| attribute.flag).unwrap_or(false)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attribute(name)?.text.as_deref()
    }

    /// Returns `true` if a list of flags contains `false`.
    pub(super) fn excludes(&self, name: &str) -> bool {
        let flags = self.attribute(name).and_then(|attribute| attribute.flags.as_ref());
        flags.is_some_and(|flags| flags.values.contains(&false))
    }
}

/// An attribute with a value of the type that ASTRA-sim's and mlcommons' feeders expect.
impl Attribute {
    pub(super) fn of_int64(name: &str, value: i64) -> Self {
        Self { name: name.to_owned(), int64: Some(value), ..Self::default() }
    }

    pub(super) fn of_int32(name: &str, value: i32) -> Self {
        Self { name: name.to_owned(), int32: Some(value), ..Self::default() }
    }

    pub(super) fn of_flag(name: &str, value: bool) -> Self {
        Self { name: name.to_owned(), flag: Some(value), ..Self::default() }
    }
}
