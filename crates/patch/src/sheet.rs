//! What is written out for functions: code of the arena, and the rows of the plan that belong to it.
//!
//! Several threads write, each on a *sheet* of its own, whose offsets begin at 0. When all are done, the sheets get their
//! places in the arena one behind the other, as *pages*, and whatever a page says is told from there.
//!
//! ```text
//!  arena   ┌── page ──┬───── page ─────┬────── page ──────┬── sheet ...
//!  base    0          1920             7104
//!  rows    as they are, offsets and groups told from the page's base and first group
//! ```

use lockstep_binary::Image;
use lockstep_format::bytes::{put, u32_at};
use lockstep_format::plan::{fixup, mechanism, origin, site, stub};

use crate::arena::{Arena, Fixup, Head, Stub};
use crate::entry::{JUMP, Window};
use crate::exits::{Exit, Write};
use crate::flow::Leaving;
use crate::inline::Then;
use crate::library;
use crate::make::Subject;
use crate::own::{Decision, Way};
use crate::reach::Window as Span;
use crate::relocate::Moved;
use crate::survey::Branch;
use crate::write::{OriginRow, SiteBytes, SiteRow};

/// Longest site.
const SITE: u64 = 16;

/// What is being written.
pub(crate) struct Sheet {
    pub arena: Arena,
    pub sites: Vec<SiteRow>,
    /// What pieces of the arena stand for, by their place.
    pub origins: Vec<OriginRow>,
    groups: u32,
    /// Fields that may stand on other sheets, and where they lead.
    pub late: Vec<(u32, u32)>,
}

/// What was written, in its place.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Where its code begins in the arena, and the number of its first group.
    pub base: u32,
    pub group: u32,
    pub code: Vec<u8>,
    /// Fields of the code that lead out of it: they are told as if the page began at 0.
    pub outward: Vec<u32>,
    pub fixups: Vec<Fixup>,
    pub sites: Vec<SiteRow>,
    pub origins: Vec<OriginRow>,
    /// Addresses of the image that the code and the sites refer to, or stand at: lowest and highest.
    pub span: Option<Span>,
    late: Vec<(u32, u32)>,
}

/// A tail jump whose code waits for the stubs of all functions.
pub(crate) struct Tail<'v> {
    pub exit: &'v Exit,
    pub moved: &'v Moved,
    pub group: u32,
    /// The field in the function's own body that leads there.
    pub from_body: Option<u32>,
}

/// A function's stub, as tail jumps find it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub stub: Stub,
    /// Where it is entered, a routine before it included.
    pub entry: u32,
}

impl Target {
    /// The same so much further on.
    pub(crate) fn moved(self, by: u32) -> Self {
        Self {
            stub: self.stub.moved(by),
            entry: self.entry + by,
        }
    }
}

impl Page {
    /// The end of its code.
    pub(crate) fn end(&self) -> u32 {
        self.base + self.code.len() as u32
    }

    /// The offset in the arena of what is told from the page's base.
    pub(crate) fn place(&self, at: u32) -> u32 {
        self.base.wrapping_add(at)
    }

    /// Copies its code to where it belongs.
    pub(crate) fn put_code(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.code);
        for at in &self.outward {
            let at = *at as usize;
            let value = u32_at(bytes, at).map(|value| value.wrapping_sub(self.base));
            put(bytes, at, &value.unwrap_or(0).to_le_bytes());
        }
    }

    /// Sets the field at `at` in the arena to lead to another offset.
    fn set_displacement(&mut self, at: u32, to: u32) {
        let value = (i64::from(to) - i64::from(at) - 4) as i32;
        let place = (at - self.base) as usize;
        if let Some(field) = self.code.get_mut(place..place + 4) {
            field.copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// All pages, in their places.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub all: Vec<Page>,
    /// Where the code of the last one ends.
    end: u32,
    /// Groups of them all.
    groups: u32,
}

impl Pages {
    /// Adds a page that has its place.
    pub(crate) fn add(&mut self, mut page: Page) {
        // Without groups of its own, its sites belong to those of other pages.
        if page.group > 0 {
            (page.group, self.groups) = (self.groups, self.groups + page.group);
        }
        if !page.code.is_empty() {
            self.end = page.end();
        }
        self.all.push(page);
    }

    /// Adds pages where there is place, each at a multiple of `alignment`. Where each of them begins, and its first group.
    pub(crate) fn add_parts(&mut self, pages: Vec<Page>, alignment: u32) -> Vec<(u32, u32)> {
        let mut places = Vec::with_capacity(pages.len());
        for mut page in pages {
            // Rows without code are about that of other pages.
            if !page.code.is_empty() {
                page.base = self.end.next_multiple_of(alignment);
            }
            places.push((page.base, self.groups));
            self.add(page);
        }
        places
    }

    /// Where a sheet that follows begins.
    pub(crate) fn next_sheet(&self) -> u32 {
        self.end.next_multiple_of(stub::ALIGNMENT)
    }

    /// Sets the fields that waited for their pages' places.
    pub(crate) fn settle(&mut self) {
        for index in 0..self.all.len() {
            let base = self.all[index].base;
            for (field, to) in std::mem::take(&mut self.all[index].late) {
                // Pages without code hold nothing.
                let holds = |page: &&mut Page| (page.base..page.end()).contains(&field);
                if let Some(page) = self.all.iter_mut().find(holds) {
                    page.set_displacement(field, base + to);
                }
            }
        }
    }

    /// Addresses of the image that all of them refer to, or stand at: lowest and highest.
    pub(crate) fn span(&self) -> Span {
        let spans = || self.all.iter().filter_map(|page| page.span);
        let low = spans().map(|it| it.0).min();
        let high = spans().map(|it| it.1).max();
        (low.unwrap_or(0), high.unwrap_or(0))
    }
}

/// Addresses of sites, and those that fix-ups lead to: lowest and highest.
fn span(sites: &[SiteRow], fixups: &[Fixup]) -> Option<Span> {
    let sites = sites.iter().map(|site| site.address as i64);
    let near = fixups.iter().filter(|it| it.kind == fixup::RELATIVE_32);
    // A field's value is less than its target by what follows it.
    let near = near.map(|it| (it.value as i64).saturating_add(4));
    let all = || sites.clone().chain(near.clone());
    Some((all().min()?, all().max()?))
}

impl Sheet {
    pub(crate) fn new(arena: Arena) -> Self {
        Self {
            arena,
            sites: Vec::new(),
            origins: Vec::new(),
            groups: 0,
            late: Vec::new(),
        }
    }

    /// Ends it. Its page begins where the arena of a sheet that had a place did; else it is put somewhere later.
    pub(crate) fn end(self) -> Page {
        let base = self.arena.base();
        let (code, outward, mut fixups) = self.arena.into_bytes();
        let span = span(&self.sites, &fixups);
        let (mut sites, mut origins, mut late) = (self.sites, self.origins, self.late);
        // All is told from the page's base.
        if base == 0 {
            return Page {
                group: self.groups,
                code,
                outward,
                fixups,
                sites,
                origins,
                span,
                late,
                ..Page::default()
            };
        }
        fixups
            .iter_mut()
            .for_each(|it| it.at = it.at.wrapping_sub(base));
        sites
            .iter_mut()
            .for_each(|it| it.target = it.target.wrapping_sub(base));
        origins.iter_mut().for_each(|it| it.at -= base);
        late.iter_mut().for_each(|it| it.1 -= base);
        Page {
            base,
            group: self.groups,
            code,
            outward,
            fixups,
            sites,
            origins,
            span,
            late,
        }
    }

    pub(crate) fn next_group(&mut self) -> u32 {
        self.groups += 1;
        self.groups - 1
    }

    /// A function's stub, where it is entered by way of the routine `before`, and the group of sites
    /// that leads there.
    pub(crate) fn patch_entry(
        &mut self,
        subject: &Subject<'_, '_>,
        window: &Window,
        moved: &Moved,
        head: Head,
        before: Option<usize>,
    ) -> (Stub, u32, u32) {
        let start = self.arena.next_stub();
        let stub = self.arena.add_stub(head, &moved.code);
        self.copied(start, stub.body, moved, window.end, flags_of(head));
        let entry = match before {
            Some(routine) => {
                let start = self.arena.next_stub();
                self.stands_for(start, Some(window.start), 0);
                let body = Arena::leading_on();
                let before = self.arena.add_stub(Head::Before { routine }, &body);
                let field = before.body + 1;
                self.arena.set_displacement(field, u64::from(stub.entry));
                before.entry
            }
            None => stub.entry,
        };
        let group = self.next_group();
        self.sites
            .extend(entry_site(subject.image, window, entry, group));
        for branch in &window.redirected {
            let offset = moved.offset_of(window.copy_of(branch.target));
            let target = stub.body + offset.unwrap_or(0);
            self.sites
                .extend(branch_site(subject.image, branch, target, group));
        }
        for jump in &window.lengthened {
            let offset = moved.offset_of(window.copy_of(jump.target));
            let target = stub.body + offset.unwrap_or(0);
            let old = subject.image.bytes_at(jump.from, JUMP);
            let site = old.map(|old| jump_site(jump.from, old.into(), target, group));
            self.sites.extend(site);
        }
        (stub, entry, group)
    }

    /// A function's stub, its exits that return, and the group of its sites.
    pub(crate) fn add_function<'v>(
        &mut self,
        subject: &Subject<'_, '_>,
        range: usize,
        decision: &'v Decision,
        tails: &mut Vec<Tail<'v>>,
        is_moved: impl Fn(u64) -> bool,
    ) -> Target {
        let head = match decision.mechanism {
            mechanism::CALL_THROUGH => Head::Through,
            mechanism::PATCHED_RETURNS => Head::Open,
            mechanism::LEAF => Head::Leaf,
            other => Head::Before {
                routine: library::routine(other),
            },
        };
        let (stub, entry, group, from_body) = match &decision.way {
            Way::Entry(window, moved) => {
                let before = subject.watched.get(&range).copied();
                let (stub, entry, group) = self.patch_entry(subject, window, moved, head, before);
                (stub, entry, group, moved.exits.as_slice())
            }
            Way::Callers(callers) => {
                let address = subject.survey.ranges[range].address;
                let start = self.arena.next_stub();
                self.stands_for(start, Some(address), flags_of(head));
                let stub = self.arena.add_stub(head, &Arena::whole_body(address));
                let (entry, group) = (stub.entry, self.next_group());
                self.arena.lead_calls(address, entry);
                for branch in callers {
                    // Those that were moved go there already.
                    if !is_moved(branch.from) {
                        self.sites
                            .extend(branch_site(subject.image, branch, entry, group));
                    }
                }
                (stub, entry, group, &[][..])
            }
        };
        let length = subject.survey.ranges[range].size;
        self.arena.set_length(&stub, length);
        let mut in_entry = 0;
        for (exit, moved) in &decision.exits {
            let field = if exit.write == Write::Entry {
                let field = from_body.iter().find(|(_, index)| *index == in_entry);
                in_entry += 1;
                field.map(|(at, _)| stub.body + at)
            } else {
                None
            };
            match exit.way.leaving {
                Leaving::Return { pops } => {
                    let start = self.arena.next_exit();
                    let at = self.arena.add_return(&moved.code, Then::Return { pops });
                    self.copied(start, at, moved, exit.way.at, origin::EXIT);
                    self.lead_out(subject, exit, moved, at, group);
                    if let Some(field) = field {
                        self.arena.set_displacement(field, u64::from(at));
                    }
                }
                _ => tails.push(Tail {
                    exit,
                    moved,
                    group,
                    from_body: field,
                }),
            }
        }
        Target { stub, entry }
    }

    /// Leads a way out to its exit at `at` in the arena.
    pub(crate) fn lead_out(
        &mut self,
        subject: &Subject<'_, '_>,
        exit: &Exit,
        moved: &Moved,
        at: u32,
        group: u32,
    ) {
        let image = subject.image;
        let way = &exit.way;
        let size = (exit.end() - exit.start).min(SITE);
        let old = |address: u64, size: u64| image.bytes_at(address, size).map(SiteBytes::from);
        let short = |from: u64, to: u64| (to as i64 - from as i64) as u8;
        let row = |address: u64, field: u32, old: SiteBytes, new: SiteBytes| SiteRow {
            address,
            field,
            target: at,
            group,
            old,
            new,
        };
        let jump =
            |from: u64, size: u64| old(from, size).map(|old| jump_site(from, old, at, group));
        let field = || old(way.at, u64::from(way.length));
        match exit.write {
            // The field in the body leads there.
            Write::Entry => {}
            Write::Displacement => {
                let new = field().map(|old| row(way.at, u32::from(way.field), old, old));
                self.sites.extend(new);
            }
            Write::Jump => self.sites.extend(jump(exit.start, size)),
            Write::Short { padding } => {
                self.sites.extend(old(exit.start, size).map(|old| {
                    let mut new = old;
                    new[..2].copy_from_slice(&[0xeb, short(exit.start + 2, padding)]);
                    row(exit.start, site::NO_FIELD, old, new)
                }));
                self.sites.extend(jump(padding, JUMP));
            }
            Write::ShortDisplacement { padding } => {
                self.sites.extend(field().map(|old| {
                    let mut new = old;
                    if let Some(last) = new.last_mut() {
                        *last = short(way.end(), padding);
                    }
                    row(way.at, site::NO_FIELD, old, new)
                }));
                self.sites.extend(jump(padding, JUMP));
            }
        }
        for branch in &exit.redirected {
            let offset = if branch.target == way.at {
                Some(moved.code.bytes.len() as u32)
            } else {
                moved.offset_of(branch.target)
            };
            let target = at + offset.unwrap_or(0);
            self.sites.extend(branch_site(image, branch, target, group));
        }
    }
}

/// What the rows of a stub say beside where it comes from.
pub(crate) fn flags_of(head: Head) -> u32 {
    match head {
        Head::Through
        | Head::ThroughSlot { .. }
        | Head::ThroughArguments
        | Head::ThroughTimed { .. }
        | Head::ThroughHold { .. } => origin::THROUGH,
        Head::Before { .. } | Head::Open | Head::Leaf => 0,
    }
}

/// `jmp stub` at the window's start; what else was moved is checked and left as it is.
fn entry_site(image: &Image<'_>, window: &Window, stub: u32, group: u32) -> Option<SiteRow> {
    let length = (window.end - window.start).clamp(JUMP, SITE);
    let old = SiteBytes::from(image.bytes_at(window.start, length)?);
    Some(jump_site(window.start, old, stub, group))
}

/// A branch with another target.
pub(crate) fn branch_site(
    image: &Image<'_>,
    branch: &Branch,
    target: u32,
    group: u32,
) -> Option<SiteRow> {
    let old = image.bytes_at(branch.from, u64::from(branch.length))?;
    Some(SiteRow {
        address: branch.from,
        field: u32::from(branch.field),
        target,
        group,
        old: old.into(),
        new: old.into(),
    })
}

/// `jmp` to the arena; what else is checked stays as it is.
pub(crate) fn jump_site(address: u64, old: SiteBytes, target: u32, group: u32) -> SiteRow {
    let mut new = old;
    new[..JUMP as usize].copy_from_slice(&[0xe9, 0, 0, 0, 0]);
    SiteRow {
        address,
        field: 1,
        target,
        group,
        old,
        new,
    }
}
