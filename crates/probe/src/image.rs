//! The images of the process, from the dynamic linker's own list: no `dlsym`, no libc.

use crate::syscall::{self, O_RDONLY};
use crate::text::{Text, until_zero};
use lockstep_format::check::{crc32c, extend};
use lockstep_format::plan;

/// Longest path of an image.
pub const PATH: usize = 4096;

/// A program header.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Segment {
    kind: u32,
    flags: u32,
    /// Where it begins in the file.
    pub offset: u64,
    /// Address in the file.
    pub address: u64,
    physical: u64,
    file_size: u64,
    /// Bytes in memory.
    pub size: u64,
    align: u64,
}

impl Segment {
    const LOAD: u32 = 1;
    const DYNAMIC: u32 = 2;
    const NOTE: u32 = 4;
    const HEADERS: u32 = 6;

    /// Whether it is loaded and executable, and not writable.
    pub fn is_text(&self) -> bool {
        self.kind == Self::LOAD && self.flags & 3 == 1
    }
}

/// A loaded image.
#[derive(Clone, Copy)]
pub struct Image {
    /// Load bias: address in memory = bias + address in the file.
    pub bias: u64,
    segments: *const Segment,
    count: usize,
}

impl Image {
    /// Its program headers.
    pub fn segments(&self) -> &'static [Segment] {
        // SAFETY: mapped with the image, for as long as it is there.
        unsafe { core::slice::from_raw_parts(self.segments, self.count) }
    }

    /// Lowest and highest address of its segments in memory.
    pub fn extent(&self) -> (u64, u64) {
        let loaded = || self.segments().iter().filter(|s| s.kind == Segment::LOAD);
        let low = loaded().map(|s| s.address).min().unwrap_or(0) & !4095;
        let high = loaded()
            .map(|s| s.address.wrapping_add(s.size))
            .max()
            .unwrap_or(0);
        (
            self.bias.wrapping_add(low),
            self.bias.wrapping_add(high).next_multiple_of(4096),
        )
    }

    /// The main program, from the auxiliary vector.
    pub fn main() -> Option<Self> {
        const AT_PHDR: u64 = 3;
        const AT_PHNUM: u64 = 5;
        let file = syscall::open(b"/proc/self/auxv\0", O_RDONLY).ok()?;
        let mut bytes = [0u8; 1024];
        let length = file.read(&mut bytes).ok()?;
        let mut headers = 0;
        let mut count = 0;
        let (pairs, _) = bytes.get(..length)?.as_chunks::<16>();
        for pair in pairs {
            let word = |at| lockstep_format::bytes::u64_at(pair, at).unwrap_or(0);
            match word(0) {
                AT_PHDR => headers = word(8),
                AT_PHNUM => count = word(8) as usize,
                _ => {}
            }
        }
        if headers == 0 || count == 0 {
            return None;
        }
        let mut image = Self {
            bias: 0,
            segments: headers as *const Segment,
            count,
        };
        let own = image.segments().iter().find(|s| s.kind == Segment::HEADERS);
        image.bias = headers.wrapping_sub(own?.address);
        Some(image)
    }

    /// A library, from its load address.
    pub fn library(bias: u64) -> Option<Self> {
        if !bias.is_multiple_of(4096) || !syscall::is_readable(bias) {
            return None;
        }
        // SAFETY: a page can be read there. Libraries are linked from address 0, so that their first
        // page is their header.
        let header = unsafe { core::slice::from_raw_parts(bias as *const u8, 64) };
        if header.get(..5)? != b"\x7fELF\x02" {
            return None;
        }
        let at = lockstep_format::bytes::u64_at(header, 32)?;
        let count = usize::from(u16::from_le_bytes([*header.get(56)?, *header.get(57)?]));
        if at + (count * size_of::<Segment>()) as u64 > 4096 {
            return None;
        }
        Some(Self {
            bias,
            segments: (bias + at) as *const Segment,
            count,
        })
    }

    /// The header of its frame descriptions.
    pub fn frame_header(&self) -> Option<&'static [u8]> {
        const FRAMES: u32 = 0x6474_e550;
        let frames = self.segments().iter().find(|s| s.kind == FRAMES)?;
        self.from(self.bias.wrapping_add(frames.address))
    }

    /// Its memory from `address` to the end of the segment's file contents.
    pub fn from(&self, address: u64) -> Option<&'static [u8]> {
        let loaded = self.segments().iter().filter(|s| s.kind == Segment::LOAD);
        let room = |segment: &Segment| {
            let within = address.checked_sub(self.bias.wrapping_add(segment.address))?;
            segment.file_size.checked_sub(within)
        };
        let length = loaded.filter_map(room).find(|room| *room > 0)?;
        // SAFETY: mapped with the image, for as long as it is there.
        Some(unsafe { core::slice::from_raw_parts(address as *const u8, length as usize) })
    }

    /// Its dynamic section.
    pub fn dynamic(&self) -> Option<*const [u64; 2]> {
        let segments = self.segments();
        let segment = segments.iter().find(|s| s.kind == Segment::DYNAMIC)?;
        Some(self.bias.wrapping_add(segment.address) as *const [u64; 2])
    }

    /// The build id in its notes; empty where there is none.
    pub fn build_id(&self) -> &'static [u8] {
        self.segments()
            .iter()
            .filter(|segment| segment.kind == Segment::NOTE)
            .find_map(|segment| {
                let at = self.bias.wrapping_add(segment.address) as *const u8;
                // SAFETY: a note segment lies inside a loaded one.
                build_id_in(unsafe { core::slice::from_raw_parts(at, segment.size as usize) })
            })
            .unwrap_or(&[])
    }

    /// The name of its plan: as `lockstep_patch::image_key` has it.
    pub fn key(&self, path: &[u8]) -> Option<Text<128>> {
        let mut key = Text::new();
        let build_id = self.build_id();
        if build_id.len() >= 8 {
            for byte in build_id {
                key.push_hexadecimal_byte(*byte);
            }
            return key.is_whole().then_some(key);
        }
        let mut name = Text::<{ PATH + 1 }>::new();
        name.push(path);
        name.push(b"\0");
        let stat = syscall::open(name.bytes(), O_RDONLY).ok()?.stat().ok()?;
        let check = extend(crc32c(path), &stat.modified_seconds.to_le_bytes());
        let check = extend(check, &stat.modified_nanoseconds.to_le_bytes());
        let check = extend(check, env!("CARGO_PKG_VERSION").as_bytes());
        let check = extend(check, &plan::VERSION.to_le_bytes());
        key.push(b"file-");
        key.push_hexadecimal(stat.size);
        key.push(b"-");
        for byte in check.to_be_bytes() {
            key.push_hexadecimal_byte(byte);
        }
        Some(key)
    }
}

/// Looks for note type 3 of owner "GNU".
fn build_id_in(notes: &'static [u8]) -> Option<&'static [u8]> {
    let mut rest = notes;
    loop {
        let word = |at| lockstep_format::bytes::u32_at(rest, at).map(|value| value as usize);
        let (name, length, kind) = (word(0)?, word(4)?, word(8)?);
        let content = 12 + name.next_multiple_of(4);
        let id = rest.get(content..content.checked_add(length)?)?;
        if kind == 3 && rest.get(12..12 + name)? == b"GNU\0" {
            return Some(id);
        }
        rest = rest.get(content + length.next_multiple_of(4)..)?;
    }
}

/// An entry of the dynamic linker's list.
#[repr(C)]
pub struct Link {
    /// Load bias.
    pub bias: u64,
    name: *const u8,
    /// Its dynamic section.
    pub dynamic: *const [u64; 2],
    next: *const Link,
}

impl Link {
    /// The path by which it was found; empty for the main program.
    pub fn name(&self) -> &'static [u8] {
        // SAFETY: a zero-terminated string that lives as long as the image is loaded.
        unsafe { c_string(self.name) }
    }
}

/// What the dynamic linker keeps for debuggers: `struct r_debug_extended`, one for each namespace.
#[repr(C)]
pub struct Rendezvous {
    version: i32,
    first: *const Link,
    breakpoint: u64,
    state: i32,
    linker: u64,
    /// From version 2 on.
    next: *const Rendezvous,
}

impl Rendezvous {
    /// The one that the main program's dynamic section leads to.
    pub fn find(main: &Image) -> Option<*const Self> {
        const DT_DEBUG: u64 = 21;
        let mut at = main.dynamic()?;
        // SAFETY: the dynamic section of a running program ends with a null entry.
        let found = unsafe {
            loop {
                match *at {
                    [0, _] => return None,
                    [DT_DEBUG, list] => break list,
                    _ => at = at.add(1),
                }
            }
        };
        (found != 0).then_some(found as *const Self)
    }

    fn each_namespace(this: *const Self, mut visit: impl FnMut(&Self)) {
        let mut at = this;
        // SAFETY: the linker's own structures, while it runs our code and changes nothing.
        while let Some(namespace) = unsafe { at.as_ref() } {
            visit(namespace);
            if namespace.version < 2 {
                return;
            }
            at = namespace.next;
        }
    }

    /// Whether no list is being changed.
    pub fn is_consistent(this: *const Self) -> bool {
        let mut consistent = true;
        Self::each_namespace(this, |namespace| consistent &= namespace.state == 0);
        consistent
    }

    /// Calls `visit` for every image but the main program.
    pub fn each_library(this: *const Self, mut visit: impl FnMut(&'static Link)) {
        let mut is_main = true;
        Self::each_namespace(this, |namespace| {
            let mut link = namespace.first;
            // SAFETY: as above.
            while let Some(entry) = unsafe { link.as_ref() } {
                link = entry.next;
                if !core::mem::take(&mut is_main) {
                    visit(entry);
                }
            }
        });
    }
}

/// The bytes of a C string, at most [`PATH`].
unsafe fn c_string(at: *const u8) -> &'static [u8] {
    if at.is_null() {
        return &[];
    }
    let mut length = 0;
    // SAFETY: zero-terminated, so every byte up to the zero may be read.
    unsafe {
        while length < PATH && *at.add(length) != 0 {
            length += 1;
        }
        until_zero(core::slice::from_raw_parts(at, length))
    }
}
