//! The plan's bytes.

use std::borrow::Cow;

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

/// A row of the plan's sites.
#[derive(Debug, Clone)]
pub(crate) struct SiteRow {
    pub address: u64,
    pub field: u32,
    pub target: u32,
    pub group: u32,
    pub old: Vec<u8>,
    pub new: Vec<u8>,
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
    pub call_sites: Vec<CallSiteRow>,
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
        let mut sections: [Vec<u8>; section::COUNT] = Default::default();
        sections[section::CODE].clone_from(&self.code);
        sections[section::FIXUPS] = rows(&self.fixups, fixup::SIZE, |row, f| {
            put(row, fixup::AT, &f.at.to_le_bytes());
            put(row, fixup::KIND, &f.kind.to_le_bytes());
            put(row, fixup::VALUE, &f.value.to_le_bytes());
        });
        sections[section::SITES] = rows(&self.sites, site::SIZE, |row, s| {
            put(row, site::ADDRESS, &s.address.to_le_bytes());
            put(row, site::LENGTH, &(s.new.len() as u32).to_le_bytes());
            put(row, site::FIELD, &s.field.to_le_bytes());
            put(row, site::TARGET, &s.target.to_le_bytes());
            put(row, site::GROUP, &s.group.to_le_bytes());
            put(row, site::OLD, &s.old);
            put(row, site::NEW, &s.new);
        });
        sections[section::FUNCTIONS] = rows(&self.functions, function::SIZE, |row, f| {
            put(row, function::ADDRESS, &f.address.to_le_bytes());
            put(row, function::LENGTH, &f.length.to_le_bytes());
            put(row, function::NAME, &strings.put(&f.name));
            put(row, function::ORIGIN, &f.origin.to_le_bytes());
            put(row, function::MECHANISM, &f.mechanism.to_le_bytes());
        });
        sections[section::REFUSALS] = rows(&self.refusals, refusal::SIZE, |row, r| {
            put(row, refusal::ADDRESS, &r.address.to_le_bytes());
            put(row, refusal::NAME, &strings.put(&r.name));
            put(row, refusal::REASON, &strings.put(r.reason.as_bytes()));
            put(row, refusal::KIND, &r.kind.to_le_bytes());
            let counter = r.counter.map_or(0, |counter| counter + 1);
            put(row, refusal::COUNTER, &counter.to_le_bytes());
            put(row, refusal::MORE, &u32::from(r.more).to_le_bytes());
        });
        sections[section::CALL_SITES] = rows(&self.call_sites, call_site::SIZE, |row, c| {
            put(row, call_site::RETURN, &c.return_address.to_le_bytes());
            put(row, call_site::CALLER, &c.caller.to_le_bytes());
            put(row, call_site::CALLEE, &c.callee.to_le_bytes());
        });
        sections[section::CHOICES] = rows(&self.choices, choice::SIZE, |row, c| {
            put(row, choice::KIND, &c.kind.to_le_bytes());
            put(row, choice::FOUND, &c.found.to_le_bytes());
            put(row, choice::PATTERN, &strings.put(c.pattern.as_bytes()));
        });
        sections[section::EXPORTS] = rows(&self.exports, export::SIZE, |row, (name, function)| {
            put(row, export::NAME, &strings.put(name));
            put(row, export::FUNCTION, &function.to_le_bytes());
        });
        sections[section::CLOSED] = rows(&self.closed, closed::SIZE, |row, (address, slot)| {
            put(row, closed::ADDRESS, &address.to_le_bytes());
            put(row, closed::SLOT, &slot.to_le_bytes());
        });
        sections[section::ORIGINS] = self.origin_rows();
        sections[section::STRINGS] = strings.bytes;

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
        put(
            &mut plan,
            header::FIXED,
            &u32::from(self.is_fixed).to_le_bytes(),
        );
        let length = build_id.len() as u32;
        put(&mut plan, header::BUILD_ID_LENGTH, &length.to_le_bytes());
        put(&mut plan, header::BUILD_ID, build_id);
        put(&mut plan, header::HEAD, &self.head.to_le_bytes());
        put(&mut plan, header::COUNTERS, &self.counters.to_le_bytes());
        put(&mut plan, header::LEFT_OUT, &self.left_out.to_le_bytes());
        for (index, bytes) in sections.iter().enumerate() {
            // Rows are read in place by the probe: keep them aligned.
            plan.resize(plan.len().next_multiple_of(8), 0);
            let start = plan.len() as u32;
            let at = header::SECTIONS + 8 * index;
            put(&mut plan, at, &start.to_le_bytes());
            put(&mut plan, at + 4, &(bytes.len() as u32).to_le_bytes());
            plan.extend_from_slice(bytes);
        }
        let check = check::crc32c(&plan[header::ROLE..]);
        put(&mut plan, header::CHECK, &check.to_le_bytes());
        plan
    }
}

impl Content<'_> {
    fn origin_rows(&self) -> Vec<u8> {
        let address = |row: &OriginRow| {
            let distance = row.address?.checked_sub(self.extent.0)?;
            u32::try_from(distance).ok()
        };
        // Copies first, by their addresses.
        let key = |index: &u32| {
            let row = &self.origins[*index as usize];
            let is_copy = row.flags & origin::SLOT == 0;
            (!is_copy, address(row).unwrap_or(origin::NOWHERE))
        };
        let mut order: Vec<u32> = (0..self.origins.len() as u32).collect();
        order.sort_by_key(key);
        let ordered: Vec<(&OriginRow, u32)> = self.origins.iter().zip(order).collect();
        rows(&ordered, origin::SIZE, |bytes, (row, number)| {
            put(bytes, origin::AT, &(row.at | row.flags).to_le_bytes());
            put(bytes, origin::BODY, &row.body.to_le_bytes());
            put(bytes, origin::LENGTH, &row.length.to_le_bytes());
            let address = address(row).unwrap_or(origin::NOWHERE);
            put(bytes, origin::ADDRESS, &address.to_le_bytes());
            put(bytes, origin::ORDER, &number.to_le_bytes());
        })
    }
}

fn rows<T>(items: &[T], size: usize, mut fill: impl FnMut(&mut [u8], &T)) -> Vec<u8> {
    let mut bytes = vec![0; items.len() * size];
    for (row, item) in bytes.chunks_exact_mut(size).zip(items) {
        fill(row, item);
    }
    bytes
}

/// Each text once.
#[derive(Debug, Default)]
struct Strings {
    bytes: Vec<u8>,
    known: FxHashMap<Vec<u8>, u32>,
}

impl Strings {
    /// Offset and length of `text`, as a row has them.
    fn put(&mut self, text: &[u8]) -> [u8; 8] {
        let at = *self.known.entry(text.to_vec()).or_insert_with(|| {
            let at = self.bytes.len() as u32;
            self.bytes.extend_from_slice(text);
            at
        });
        (u64::from(at) | (text.len() as u64) << 32).to_le_bytes()
    }
}
