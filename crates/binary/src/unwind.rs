//! What unwinding knows of one function: where its frame is set up, and where its landing pads are.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, FrameDescriptionEntry, LittleEndian, Pointer,
    UnwindContext, UnwindSection, X86_64,
};
use lockstep_format::bytes::{u32_at, u64_at};

use crate::image::Image;
use crate::ranges::CodeRange;

type Section<'a> = gimli::EndianSlice<'a, LittleEndian>;

/// More landing pads than any function has.
const MOST_PADS: usize = 1 << 16;

impl<'a> Image<'a> {
    /// Whether the frame description says that something of the function's frame is still on the
    /// stack at `address`: there, rsp is not what it was at the entry. `None` where it does not say.
    #[must_use]
    pub fn is_framed_at(&self, range: &CodeRange<'_>, address: u64) -> Option<bool> {
        let (frame, bases, fde) = self.description(range)?;
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&frame, &bases, &mut context, address)
            .ok()?;
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(*register != X86_64::RSP || *offset != 8)
            }
            CfaRule::Expression(_) => None,
        }
    }

    /// The landing pads of a range: addresses that only an unwinder jumps to. `None` where the range
    /// has a table of them that cannot be read.
    #[must_use]
    pub fn landing_pads(&self, range: &CodeRange<'_>) -> Option<Vec<u64>> {
        if !range.has_pads {
            return Some(Vec::new());
        }
        let (_, _, fde) = self.description(range)?;
        let table = match fde.lsda()? {
            Pointer::Direct(address) => address,
            Pointer::Indirect(_) => return None,
        };
        if table == 0 {
            return Some(Vec::new());
        }
        let mut table = Reader {
            address: table,
            bytes: self.bytes_from(table)?,
        };
        let base = match table.byte()? {
            0xff => range.address,
            encoding => table.encoded(encoding)?,
        };
        if table.byte()? != 0xff {
            table.leb128()?;
        }
        let encoding = table.byte()?;
        let size = usize::try_from(table.leb128()?).ok()?;
        table.bytes = table.bytes.get(..size)?;
        let mut pads = Vec::new();
        while !table.bytes.is_empty() && pads.len() < MOST_PADS {
            table.encoded(encoding)?;
            table.encoded(encoding)?;
            let pad = table.encoded(encoding)?;
            table.leb128()?;
            if pad != 0 {
                pads.push(base.wrapping_add(pad));
            }
        }
        pads.sort_unstable();
        pads.dedup();
        Some(pads)
    }

    #[allow(clippy::type_complexity)]
    fn description(
        &self,
        range: &CodeRange<'_>,
    ) -> Option<(
        EhFrame<Section<'a>>,
        BaseAddresses,
        FrameDescriptionEntry<Section<'a>>,
    )> {
        let (bytes, address) = self.eh_frame()?;
        let frame = EhFrame::new(bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(address);
        let fde = frame
            .fde_from_offset(&bases, EhFrameOffset(range.frame), EhFrame::cie_from_offset)
            .ok()?;
        Some((frame, bases, fde))
    }
}

/// Reads the encodings of exception tables.
struct Reader<'a> {
    address: u64,
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes = self.bytes.get(count..)?;
        self.address += count as u64;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.first()?;
        self.skip(1)?;
        Some(byte)
    }

    fn leb128(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A value: unsigned LEB128, or 4 or 8 bytes, absolute or relative to its own address.
    fn encoded(&mut self, encoding: u8) -> Option<u64> {
        let here = self.address;
        let value = match encoding & 0x0f {
            0x01 => self.leb128()?,
            0x03 => self.fixed(4, |bytes| u32_at(bytes, 0).map(u64::from))?,
            0x0b => self.fixed(4, |bytes| {
                u32_at(bytes, 0).map(|word| i64::from(word as i32) as u64)
            })?,
            0x00 | 0x04 | 0x0c => self.fixed(8, |bytes| u64_at(bytes, 0))?,
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value),
            0x10 => Some(value.wrapping_add(here)),
            _ => None,
        }
    }

    fn fixed(&mut self, size: usize, read: impl Fn(&[u8]) -> Option<u64>) -> Option<u64> {
        let value = read(self.bytes)?;
        self.skip(size)?;
        Some(value)
    }
}
