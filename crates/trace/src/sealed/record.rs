//! Numbers and texts in a row: what the text sections of a sealed run are made of.

use crate::stream::Growing;
use lockstep_format::codec::Sink;
use lockstep_format::sealed::bits::{Broken, Reader, Writer};
use lockstep_format::sealed::{most_text, text::Text};
use lockstep_format::side::{self, put_varint, read_varint};

/// Slots of the predictor of text, as the bits of their number.
const SLOTS: u32 = 18;

/// Bytes that grow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bytes(pub Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

impl Bytes {
    /// Seven bits a byte, low ones first.
    pub fn number(&mut self, number: u64) {
        put_varint(self, number);
    }

    /// Their number, and the bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// The same where most of them are zeros: rows of zeros and of others in turn.
    pub fn sparse(&mut self, bytes: &[u8]) {
        const ENOUGH: usize = 6;
        self.number(bytes.len() as u64);
        let mut rest = bytes;
        while !rest.is_empty() {
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            rest = &rest[zeros..];
            let others = rest
                .windows(ENOUGH)
                .position(|window| window.iter().all(|byte| *byte == 0))
                .unwrap_or(rest.len());
            self.number(zeros as u64);
            self.bytes(&rest[..others]);
            rest = &rest[others..];
        }
    }

    /// Coded: the number of bytes (8), then what they are.
    pub fn coded(&self) -> Vec<u8> {
        let mut sink = Self(Vec::new());
        sink.0
            .extend_from_slice(&(self.0.len() as u64).to_le_bytes());
        let mut coder = Box::new(Text::<Growing>::new(SLOTS));
        let mut writer = Writer::new(&mut sink);
        for byte in &self.0 {
            // Writing does not fail.
            let _ = coder.byte(&mut writer, *byte);
        }
        writer.finish();
        sink.0
    }
}

/// The bytes that were coded.
pub(crate) fn decoded(section: &[u8]) -> Result<Vec<u8>, Broken> {
    let (length, mut source) = section.split_first_chunk::<8>().ok_or(Broken::CutOff)?;
    let length = u64::from_le_bytes(*length);
    if length > most_text(source.len() as u64) {
        return Err(Broken::TooMuch);
    }
    let mut coder = Box::new(Text::<Growing>::new(SLOTS));
    let mut reader = Reader::new(&mut source);
    (0..length).map(|_| coder.byte(&mut reader, 0)).collect()
}

/// The other direction of [`Bytes`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Take<'a>(pub &'a [u8]);

impl<'a> Take<'a> {
    pub fn number(&mut self) -> Result<u64, Broken> {
        let byte = || {
            let (byte, rest) = self.0.split_first().ok_or(side::Broken::CutOff)?;
            self.0 = rest;
            Ok(*byte)
        };
        read_varint(byte).map_err(|broken| match broken {
            side::Broken::CutOff => Broken::CutOff,
            side::Broken::Wrong => Broken::Nothing("number"),
        })
    }

    pub fn small(&mut self) -> Result<u32, Broken> {
        u32::try_from(self.number()?).map_err(|_| Broken::Nothing("number"))
    }

    /// How many of something that takes at least a byte each.
    pub fn count(&mut self) -> Result<usize, Broken> {
        let count = self.number()?;
        if count > self.0.len() as u64 {
            return Err(Broken::CutOff);
        }
        Ok(count as usize)
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], Broken> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Broken::CutOff)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn text(&mut self) -> Result<String, Broken> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// At most `most` bytes, most of them zeros.
    pub fn sparse(&mut self, most: usize) -> Result<Vec<u8>, Broken> {
        let length = self.number()?;
        if length > most as u64 {
            return Err(Broken::TooMuch);
        }
        let length = length as usize;
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let zeros = self.number()?;
            if zeros > (length - bytes.len()) as u64 {
                return Err(Broken::TooMuch);
            }
            bytes.resize(bytes.len() + zeros as usize, 0);
            let others = self.bytes()?;
            if others.len() > length - bytes.len() || zeros == 0 && others.is_empty() {
                return Err(Broken::TooMuch);
            }
            bytes.extend_from_slice(others);
        }
        Ok(bytes)
    }
}
