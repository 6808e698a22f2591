//! The plan's bytes.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use crc32c::crc32c;
use lockstep_format::bytes::put;
use lockstep_format::check;
use lockstep_format::plan::{
    MAGIC, Role, VERSION, call_site, choice, closed, export, fixup, function, header, origin,
    refusal, section, site,
};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::arena::INT3;
use crate::choice::ChoiceRow;
use crate::parallel;
use crate::reach::Window;
use crate::sheet::Page;
use crate::sorted::Sorted;

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

impl OriginRow {
    /// How far from the image's lowest address it is; `None` where the piece stands for nothing there.
    fn from(&self, low: u64) -> Option<u32> {
        u32::try_from(self.address?.checked_sub(low)?).ok()
    }
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
    /// Size of the arena.
    pub code: u32,
    /// Its code, and the rows of fix-ups, sites and origins.
    pub pages: Vec<Page>,
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
    /// Entries of closed functions, ascending, with the slots that they go on through.
    pub closed: Vec<(u64, u64)>,
}

impl Content<'_> {
    /// Lays the plan out.
    pub(crate) fn write(&self) -> Vec<u8> {
        let (order, named) = parallel::both(|| self.order_of_origins(), || self.named());
        let mut jobs: Vec<Job<'_>> = Vec::new();
        let mut table = [(0, 0); section::COUNT];
        let mut end = header::SIZE;
        for (index, place) in table.iter_mut().enumerate() {
            // Rows are read in place by the probe: keep them aligned.
            let start = end.next_multiple_of(8);
            jobs.push(Job::of(Rows::Zeros, start - end));
            let first = jobs.len();
            self.add_jobs(index, (&named[index], &order), &mut jobs);
            let length: usize = jobs[first..].iter().map(|job| job.size).sum();
            *place = (start as u32, length as u32);
            end = start + length;
        }
        let mut plan = vec![0; end];
        let (head, mut rest) = plan.split_at_mut(header::SIZE);
        self.put_header(head, &table);
        let mut slices = Vec::with_capacity(jobs.len());
        for job in jobs.into_iter().filter(|job| job.size > 0) {
            let (bytes, behind) = rest.split_at_mut(job.size);
            slices.push((bytes, job.rows));
            rest = behind;
        }
        // The check of the whole is made of those of pieces, which are in the cache when they have been written.
        let checks = parallel::all(slices, |(bytes, rows)| {
            rows.put(bytes, self.extent.0);
            (crc32c(bytes), bytes.len())
        });
        let start = crc32c(&head[header::ROLE..]);
        let join = |check, (more, size)| check::join(check, more, size);
        let check = checks.into_iter().fold(start, join);
        put(&mut plan, header::CHECK, &check.to_le_bytes());
        plan
    }

    fn put_header(&self, plan: &mut [u8], table: &[(u32, u32); section::COUNT]) {
        let build_id = &self.build_id[..self.build_id.len().min(32)];
        put(plan, header::MAGIC, &MAGIC);
        put(plan, header::VERSION, &VERSION.to_le_bytes());
        put(plan, header::ROLE, &(self.role as u32).to_le_bytes());
        let traced = u32::from(self.is_traced);
        put(plan, header::TRACED, &traced.to_le_bytes());
        let tells = u32::from(self.tells_of_signals);
        put(plan, header::SIGNALS, &tells.to_le_bytes());
        let symbols = self.functions.len() as u32;
        put(plan, header::SYMBOLS, &symbols.to_le_bytes());
        put(plan, header::LOW, &self.extent.0.to_le_bytes());
        put(plan, header::HIGH, &self.extent.1.to_le_bytes());
        put(plan, header::REACH_LOW, &self.reach.0.to_le_bytes());
        put(plan, header::REACH_HIGH, &self.reach.1.to_le_bytes());
        let fixed = u32::from(self.is_fixed);
        put(plan, header::FIXED, &fixed.to_le_bytes());
        let length = build_id.len() as u32;
        put(plan, header::BUILD_ID_LENGTH, &length.to_le_bytes());
        put(plan, header::BUILD_ID, build_id);
        put(plan, header::HEAD, &self.head.to_le_bytes());
        put(plan, header::COUNTERS, &self.counters.to_le_bytes());
        put(plan, header::LEFT_OUT, &self.left_out.to_le_bytes());
        for (index, (start, length)) in table.iter().enumerate() {
            let at = header::SECTIONS + 8 * index;
            put(plan, at, &start.to_le_bytes());
            put(plan, at + 4, &length.to_le_bytes());
        }
    }

    /// The sections with texts, and those.
    fn named(&self) -> [Vec<u8>; section::COUNT] {
        let mut strings = Strings::with_room_for(self.functions.len() + self.exports.len());
        let mut named: [Vec<u8>; section::COUNT] = Default::default();
        self.write_named(&mut named, &mut strings);
        named[section::STRINGS] = strings.bytes;
        named
    }

    /// Adds what fills a section.
    fn add_jobs<'c>(
        &'c self,
        index: usize,
        (named, order): (&'c [u8], &'c [u32]),
        jobs: &mut Vec<Job<'c>>,
    ) {
        const AT_ONCE: usize = 1 << 20;
        let chunks = named.chunks(AT_ONCE);
        jobs.extend(chunks.map(|some| Job::of(Rows::Bytes(some), some.len())));
        let pages = self.pages.iter();
        match index {
            section::CODE => {
                let mut end = 0;
                for page in pages.filter(|page| !page.code.is_empty()) {
                    let gap = page.base.saturating_sub(end);
                    jobs.push(Job::of(Rows::Gap, gap as usize));
                    jobs.push(Job::of(Rows::Code(page), page.code.len()));
                    end = page.end();
                }
                let gap = self.code.saturating_sub(end);
                jobs.push(Job::of(Rows::Gap, gap as usize));
            }
            section::FIXUPS => jobs.extend(pages.map(|page| {
                let size = page.fixups.len() * fixup::SIZE;
                Job::of(Rows::Fixups(page), size)
            })),
            section::SITES => jobs.extend(pages.map(|page| {
                let size = page.sites.len() * site::SIZE;
                Job::of(Rows::Sites(page), size)
            })),
            section::CALL_SITES => jobs.extend(self.call_sites.iter().map(|some| {
                let size = some.len() * call_site::SIZE;
                Job::of(Rows::CallSites(some), size)
            })),
            section::CLOSED => {
                let size = self.closed.len() * closed::SIZE;
                jobs.push(Job::of(Rows::Closed(&self.closed), size));
            }
            section::ORIGINS => {
                let mut rest = order;
                for page in pages {
                    let (own, behind) = rest.split_at(page.origins.len());
                    let size = own.len() * origin::SIZE;
                    jobs.push(Job::of(Rows::Origins(page, own), size));
                    rest = behind;
                }
            }
            _ => {}
        }
    }

    /// Rows of origins in the order of addresses, copies first.
    fn order_of_origins(&self) -> Vec<u32> {
        let place = |row: &OriginRow| {
            let is_slot = u64::from(row.flags & origin::SLOT != 0);
            let address = row.from(self.extent.0).unwrap_or(origin::NOWHERE);
            is_slot << 32 | u64::from(address)
        };
        let rows = self.pages.iter().flat_map(|page| &page.origins);
        let rows: Vec<(u64, u32)> = rows.map(place).zip(0..).collect();
        let sorted = Sorted::sort(&[&rows[..]], |row| *row);
        sorted.iter().map(|(_, index)| *index).collect()
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
}

/// Bytes of the plan that are written in one go.
struct Job<'c> {
    rows: Rows<'c>,
    size: usize,
}

/// What they hold.
enum Rows<'c> {
    Zeros,
    Bytes(&'c [u8]),
    /// Where no code lies.
    Gap,
    Code(&'c Page),
    Fixups(&'c Page),
    Sites(&'c Page),
    /// With their numbers in the order of addresses.
    Origins(&'c Page, &'c [u32]),
    CallSites(&'c [CallSiteRow]),
    Closed(&'c [(u64, u64)]),
}

impl<'c> Job<'c> {
    fn of(rows: Rows<'c>, size: usize) -> Self {
        Self { rows, size }
    }
}

impl Rows<'_> {
    /// Fills bytes that are zero. `low` is the image's lowest address.
    fn put(&self, bytes: &mut [u8], low: u64) {
        match self {
            Self::Zeros => {}
            Self::Bytes(from) => bytes.copy_from_slice(from),
            Self::Gap => bytes.fill(INT3),
            Self::Code(page) => page.put_code(bytes),
            Self::Fixups(page) => fill(bytes, &page.fixups, fixup::SIZE, |row, f| {
                put(row, fixup::AT, &page.place(f.at).to_le_bytes());
                put(row, fixup::KIND, &f.kind.to_le_bytes());
                put(row, fixup::VALUE, &f.value.to_le_bytes());
            }),
            Self::Sites(page) => fill(bytes, &page.sites, site::SIZE, |row, s| {
                put(row, site::ADDRESS, &s.address.to_le_bytes());
                put(row, site::LENGTH, &(s.new.len() as u32).to_le_bytes());
                put(row, site::FIELD, &s.field.to_le_bytes());
                put(row, site::TARGET, &page.place(s.target).to_le_bytes());
                put(row, site::GROUP, &(page.group + s.group).to_le_bytes());
                put(row, site::OLD, &s.old);
                put(row, site::NEW, &s.new);
            }),
            Self::Origins(page, order) => {
                let rows: Vec<(&OriginRow, &u32)> = page.origins.iter().zip(*order).collect();
                fill(bytes, &rows, origin::SIZE, |row, (o, number)| {
                    let at = page.place(o.at) | o.flags;
                    let address = o.from(low).unwrap_or(origin::NOWHERE);
                    put(row, origin::AT, &at.to_le_bytes());
                    put(row, origin::BODY, &o.body.to_le_bytes());
                    put(row, origin::LENGTH, &o.length.to_le_bytes());
                    put(row, origin::ADDRESS, &address.to_le_bytes());
                    put(row, origin::ORDER, &number.to_le_bytes());
                });
            }
            Self::CallSites(rows) => fill(bytes, rows, call_site::SIZE, |row, c| {
                put(row, call_site::RETURN, &c.return_address.to_le_bytes());
                put(row, call_site::CALLER, &c.caller.to_le_bytes());
                put(row, call_site::CALLEE, &c.callee.to_le_bytes());
            }),
            Self::Closed(rows) => fill(bytes, rows, closed::SIZE, |row, c| {
                put(row, closed::ADDRESS, &c.0.to_le_bytes());
                put(row, closed::SLOT, &c.1.to_le_bytes());
            }),
        }
    }
}

/// Fills a row of `size` bytes for each item.
fn fill<'t, T>(
    bytes: &mut [u8],
    items: &'t [T],
    size: usize,
    mut put: impl FnMut(&mut [u8], &'t T),
) {
    for (row, item) in bytes.chunks_exact_mut(size).zip(items) {
        put(row, item);
    }
}

/// Adds a row of `size` bytes for each item.
fn rows<'t, T>(
    bytes: &mut Vec<u8>,
    items: &'t [T],
    size: usize,
    fill: impl FnMut(&mut [u8], &'t T),
) {
    let start = bytes.len();
    bytes.resize(start + items.len() * size, 0);
    self::fill(&mut bytes[start..], items, size, fill);
}

/// Each text once.
#[derive(Debug)]
struct Strings<'c> {
    bytes: Vec<u8>,
    known: FxHashMap<&'c [u8], u32>,
}

impl<'c> Strings<'c> {
    /// With room for so many texts.
    fn with_room_for(count: usize) -> Self {
        Self {
            bytes: Vec::new(),
            known: FxHashMap::with_capacity_and_hasher(count, FxBuildHasher),
        }
    }

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
