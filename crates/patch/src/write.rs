//! The plan's bytes.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use lockstep_format::bytes::put;
use lockstep_format::check;
use lockstep_format::plan::{
    MAGIC, Role, VERSION, call_site, choice, closed, export, fixup, function, header, origin,
    refusal, section, site,
};
use rustc_hash::FxHashMap;

use crate::arena::Fixup;
use crate::choice::ChoiceRow;
use crate::reach::Window;

/// The bytes of a site: there are many, and none is longer than a row has room for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SiteBytes {
    held: [u8; site::NEW - site::OLD],
    length: u8,
}

impl From<&[u8]> for SiteBytes {
    fn from(bytes: &[u8]) -> Self {
        let mut site = Self::default();
        let length = bytes.len().min(site.held.len());
        site.length = length as u8;
        site.copy_from_slice(&bytes[..length]);
        site
    }
}

impl Deref for SiteBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.held[..usize::from(self.length)]
    }
}

impl DerefMut for SiteBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.held[..usize::from(self.length)]
    }
}

/// A row of the plan's sites.
#[derive(Debug, Clone)]
pub(crate) struct SiteRow {
    pub address: u64,
    pub field: u32,
    pub target: u32,
    pub group: u32,
    pub old: SiteBytes,
    pub new: SiteBytes,
}

/// A row of the plan's functions.
#[derive(Debug, Clone)]
pub(crate) struct FunctionRow<'a> {
    pub address: u64,
    pub length: u64,
    pub name: Cow<'a, [u8]>,
    pub origin: u32,
    pub mechanism: u32,
}

/// A row of the plan's origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OriginRow {
    /// Offset in the arena.
    pub at: u32,
    /// Of `origin`'s.
    pub flags: u32,
    /// From there to the copy.
    pub body: u16,
    pub length: u16,
    /// In the image; `None` where the piece stands for nothing there.
    pub address: Option<u64>,
}

/// A row of the plan's refusals.
#[derive(Debug, Clone)]
pub(crate) struct RefusalRow<'a> {
    pub address: u64,
    pub name: Cow<'a, [u8]>,
    pub reason: String,
    /// One of `refusal`'s.
    pub kind: u32,
    /// What counts its direct calls.
    pub counter: Option<u32>,
    /// Whether it may be called in other ways too.
    pub more: bool,
}

/// A row of the plan's call sites.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallSiteRow {
    pub return_address: u64,
    pub caller: u32,
    pub callee: u32,
}

/// All that a plan says.
#[derive(Debug)]
pub(crate) struct Content<'a> {
    pub role: Role,
    pub is_traced: bool,
    /// The probe is told before a signal's handler is set.
    pub tells_of_signals: bool,
    pub extent: (u64, u64),
    /// What the arena must reach.
    pub reach: Window,
    pub is_fixed: bool,
    pub build_id: &'a [u8],
    pub code: Vec<u8>,
    pub fixups: Vec<Fixup>,
    pub sites: Vec<SiteRow>,
    pub functions: Vec<FunctionRow<'a>>,
    pub refusals: Vec<RefusalRow<'a>>,
    /// In their order, some at a time.
    pub call_sites: Vec<Vec<CallSiteRow>>,
    /// How many counters refusals have.
    pub counters: u32,
    /// Functions and library calls that were not chosen.
    pub left_out: u32,
    pub choices: Vec<ChoiceRow>,
    /// Name and row, by name.
    pub exports: Vec<(&'a [u8], u32)>,
    /// Bytes at the arena's start that are no code.
    pub head: u32,
    /// What pieces of the arena stand for, by their place.
    pub origins: Vec<OriginRow>,
    /// Entries of closed functions, ascending, with the slots that they go on through.
    pub closed: Vec<(u64, u64)>,
}

impl Content<'_> {
    /// Lays the plan out.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut strings = Strings::default();
        let mut named: [Vec<u8>; section::COUNT] = Default::default();
        self.write_named(&mut named, &mut strings);
        named[section::STRINGS] = strings.bytes;

        let mut plan = self.header();
        for (index, bytes) in named.iter().enumerate() {
            // Rows are read in place by the probe: keep them aligned.
            plan.resize(plan.len().next_multiple_of(8), 0);
            let start = plan.len() as u32;
            plan.extend_from_slice(bytes);
            self.write_section(index, &mut plan);
            let length = plan.len() as u32 - start;
            let at = header::SECTIONS + 8 * index;
            put(&mut plan, at, &start.to_le_bytes());
            put(&mut plan, at + 4, &length.to_le_bytes());
        }
        let check = check::crc32c(&plan[header::ROLE..]);
        put(&mut plan, header::CHECK, &check.to_le_bytes());
        plan
    }

    fn header(&self) -> Vec<u8> {
        let mut plan = vec![0; header::SIZE];
        let build_id = &self.build_id[..self.build_id.len().min(32)];
        put(&mut plan, header::MAGIC, &MAGIC);
        put(&mut plan, header::VERSION, &VERSION.to_le_bytes());
        put(&mut plan, header::ROLE, &(self.role as u32).to_le_bytes());
        let traced = u32::from(self.is_traced);
        put(&mut plan, header::TRACED, &traced.to_le_bytes());
        let tells = u32::from(self.tells_of_signals);
        put(&mut plan, header::SIGNALS, &tells.to_le_bytes());
        let symbols = self.functions.len() as u32;
        put(&mut plan, header::SYMBOLS, &symbols.to_le_bytes());
        put(&mut plan, header::LOW, &self.extent.0.to_le_bytes());
        put(&mut plan, header::HIGH, &self.extent.1.to_le_bytes());
        put(&mut plan, header::REACH_LOW, &self.reach.0.to_le_bytes());
        put(&mut plan, header::REACH_HIGH, &self.reach.1.to_le_bytes());
        let fixed = u32::from(self.is_fixed);
        put(&mut plan, header::FIXED, &fixed.to_le_bytes());
        let length = build_id.len() as u32;
        put(&mut plan, header::BUILD_ID_LENGTH, &length.to_le_bytes());
        put(&mut plan, header::BUILD_ID, build_id);
        put(&mut plan, header::HEAD, &self.head.to_le_bytes());
        put(&mut plan, header::COUNTERS, &self.counters.to_le_bytes());
        put(&mut plan, header::LEFT_OUT, &self.left_out.to_le_bytes());
        plan
    }

    /// The sections with texts, which say where these stand.
    fn write_named<'c>(&'c self, sections: &mut [Vec<u8>], strings: &mut Strings<'c>) {
        let functions = &mut sections[section::FUNCTIONS];
        rows(functions, &self.functions, function::SIZE, |row, f| {
            put(row, function::ADDRESS, &f.address.to_le_bytes());
            put(row, function::LENGTH, &f.length.to_le_bytes());
            put(row, function::NAME, &strings.put(&f.name));
            put(row, function::ORIGIN, &f.origin.to_le_bytes());
            put(row, function::MECHANISM, &f.mechanism.to_le_bytes());
        });
        let refusals = &mut sections[section::REFUSALS];
        rows(refusals, &self.refusals, refusal::SIZE, |row, r| {
            put(row, refusal::ADDRESS, &r.address.to_le_bytes());
            put(row, refusal::NAME, &strings.put(&r.name));
            put(row, refusal::REASON, &strings.put(r.reason.as_bytes()));
            put(row, refusal::KIND, &r.kind.to_le_bytes());
            let counter = r.counter.map_or(0, |counter| counter + 1);
            put(row, refusal::COUNTER, &counter.to_le_bytes());
            put(row, refusal::MORE, &u32::from(r.more).to_le_bytes());
        });
        let choices = &mut sections[section::CHOICES];
        rows(choices, &self.choices, choice::SIZE, |row, c| {
            put(row, choice::KIND, &c.kind.to_le_bytes());
            put(row, choice::FOUND, &c.found.to_le_bytes());
            put(row, choice::PATTERN, &strings.put(c.pattern.as_bytes()));
        });
        let exports = &mut sections[section::EXPORTS];
        rows(exports, &self.exports, export::SIZE, |row, e| {
            put(row, export::NAME, &strings.put(e.0));
            put(row, export::FUNCTION, &e.1.to_le_bytes());
        });
    }

    /// Adds a section without texts to the plan.
    fn write_section(&self, index: usize, plan: &mut Vec<u8>) {
        match index {
            section::CODE => plan.extend_from_slice(&self.code),
            section::FIXUPS => rows(plan, &self.fixups, fixup::SIZE, |row, f| {
                put(row, fixup::AT, &f.at.to_le_bytes());
                put(row, fixup::KIND, &f.kind.to_le_bytes());
                put(row, fixup::VALUE, &f.value.to_le_bytes());
            }),
            section::SITES => rows(plan, &self.sites, site::SIZE, |row, s| {
                put(row, site::ADDRESS, &s.address.to_le_bytes());
                put(row, site::LENGTH, &(s.new.len() as u32).to_le_bytes());
                put(row, site::FIELD, &s.field.to_le_bytes());
                put(row, site::TARGET, &s.target.to_le_bytes());
                put(row, site::GROUP, &s.group.to_le_bytes());
                put(row, site::OLD, &s.old);
                put(row, site::NEW, &s.new);
            }),
            section::CALL_SITES => self.call_sites.iter().for_each(|some| {
                rows(plan, some, call_site::SIZE, |row, c| {
                    put(row, call_site::RETURN, &c.return_address.to_le_bytes());
                    put(row, call_site::CALLER, &c.caller.to_le_bytes());
                    put(row, call_site::CALLEE, &c.callee.to_le_bytes());
                })
            }),
            section::CLOSED => rows(plan, &self.closed, closed::SIZE, |row, c| {
                put(row, closed::ADDRESS, &c.0.to_le_bytes());
                put(row, closed::SLOT, &c.1.to_le_bytes());
            }),
            section::ORIGINS => self.write_origins(plan),
            _ => {}
        }
    }

    fn write_origins(&self, plan: &mut Vec<u8>) {
        let address = |row: &OriginRow| {
            let distance = row.address?.checked_sub(self.extent.0)?;
            u32::try_from(distance).ok()
        };
        // Copies first, by their addresses.
        let key = |(index, row): (usize, &OriginRow)| {
            let is_copy = row.flags & origin::SLOT == 0;
            let address = address(row).unwrap_or(origin::NOWHERE);
            (!is_copy, address, index as u32)
        };
        let mut order: Vec<(bool, u32, u32)> = self.origins.iter().enumerate().map(key).collect();
        order.sort_unstable();
        let order = order.into_iter().map(|(.., index)| index);
        let ordered: Vec<(&OriginRow, u32)> = self.origins.iter().zip(order).collect();
        rows(plan, &ordered, origin::SIZE, |bytes, (row, number)| {
            put(bytes, origin::AT, &(row.at | row.flags).to_le_bytes());
            put(bytes, origin::BODY, &row.body.to_le_bytes());
            put(bytes, origin::LENGTH, &row.length.to_le_bytes());
            let address = address(row).unwrap_or(origin::NOWHERE);
            put(bytes, origin::ADDRESS, &address.to_le_bytes());
            put(bytes, origin::ORDER, &number.to_le_bytes());
        })
    }
}

/// Adds a row of `size` bytes for each item.
fn rows<'t, T>(
    bytes: &mut Vec<u8>,
    items: &'t [T],
    size: usize,
    mut fill: impl FnMut(&mut [u8], &'t T),
) {
    let start = bytes.len();
    bytes.resize(start + items.len() * size, 0);
    for (row, item) in bytes[start..].chunks_exact_mut(size).zip(items) {
        fill(row, item);
    }
}

/// Each text once.
#[derive(Debug, Default)]
struct Strings<'c> {
    bytes: Vec<u8>,
    known: FxHashMap<&'c [u8], u32>,
}

impl<'c> Strings<'c> {
    /// Offset and length of `text`, as a row has them.
    fn put(&mut self, text: &'c [u8]) -> [u8; 8] {
        let at = *self.known.entry(text).or_insert_with(|| {
            let at = self.bytes.len() as u32;
            self.bytes.extend_from_slice(text);
            at
        });
        (u64::from(at) | (text.len() as u64) << 32).to_le_bytes()
    }
}
