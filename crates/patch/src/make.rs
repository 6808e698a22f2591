//! From a decoded image to the content of its plan.

use std::borrow::Cow;

use lockstep_binary::{Image, Kind, display_name};
use lockstep_format::plan::{Role, function, mechanism};
use regex::Regex;
use rustc_hash::FxHashMap;

use crate::arena::{Arena, BODY, Head};
use crate::domain::Domain;
use crate::entry::{JUMP, Window};
use crate::imports::{Imports, has_own_unwinder};
use crate::library;
use crate::relocate::{LARGEST_IMAGE, Moved, Place};
use crate::survey::{Branch, BranchKind, SlotUse, SlotUseKind, Survey};
use crate::write::{CallSiteRow, Content, FunctionRow, RefusalRow, SiteRow};
use crate::{Options, PlanFailure};

/// Longest site.
const SITE: u64 = 16;

/// Which functions are wanted, by the name that people write or the linkage name.
struct Selection {
    trace: Vec<Regex>,
    skip: Vec<Regex>,
}

impl Selection {
    fn new(options: &Options) -> Result<Self, PlanFailure> {
        let parse = |patterns: &[String]| -> Result<Vec<Regex>, PlanFailure> {
            let regex = |pattern: &String| {
                Regex::new(pattern).map_err(|error| PlanFailure::Pattern {
                    pattern: pattern.clone(),
                    reason: error.to_string(),
                })
            };
            patterns.iter().map(regex).collect()
        };
        Ok(Self {
            trace: parse(&options.trace)?,
            skip: parse(&options.skip)?,
        })
    }

    fn wants(&self, linkage: &[u8]) -> bool {
        if self.trace.is_empty() && self.skip.is_empty() {
            return true;
        }
        let linkage = String::from_utf8_lossy(linkage);
        let display = display_name(&linkage);
        let finds = |regex: &Regex| regex.is_match(&display) || regex.is_match(&linkage);
        (self.trace.is_empty() || self.trace.iter().any(finds)) && !self.skip.iter().any(finds)
    }
}

/// Everything about the image that planning asks for.
struct Subject<'i, 'a> {
    image: &'i Image<'a>,
    survey: &'i Survey<'a>,
    domain: &'i Domain<'a>,
    high: u64,
}

/// Makes the plan.
pub(crate) fn make(bytes: &[u8], role: Role, options: &Options) -> Result<Vec<u8>, PlanFailure> {
    let selection = Selection::new(options)?;
    let image = Image::parse(bytes)?;
    let (low, high) = image.extent();
    if high - low > LARGEST_IMAGE / 2 {
        return Err(PlanFailure::TooLarge(high - low));
    }
    let imports = image.imports();
    let slots = imports.iter().map(|i| (i.slot, i.symbol)).collect();
    let survey = Survey::new(&image, &slots);
    let domain = Domain::new(&image, &survey);
    let subject = Subject {
        image: &image,
        survey: &survey,
        domain: &domain,
        high,
    };
    let mut plan = Builder::new(0);
    if role == Role::Main {
        let own_unwinder = has_own_unwinder(&image, &imports);
        let wants = |name: &[u8]| selection.wants(name);
        let calls = Imports::choose(&imports, &survey, own_unwinder, wants);
        plan = Builder::new(calls.rows.len() as u32);
        let rows = plan.add_own(&subject, &calls, own_unwinder, wants);
        plan.add_imports(&subject, &calls);
        plan.add_call_sites(&subject, &calls, &rows);
    } else {
        plan.add_hooks(&subject, role);
    }
    Ok(Content {
        role,
        extent: (low, high),
        is_fixed: image.kind() == Kind::Fixed,
        build_id: image.build_id(),
        code: plan.arena.code.bytes,
        fixups: plan.arena.code.fixups,
        sites: plan.sites,
        functions: plan.functions,
        refusals: plan.refusals,
        call_sites: plan.call_sites,
    }
    .write())
}

/// The plan while it is built.
struct Builder<'a> {
    arena: Arena,
    sites: Vec<SiteRow>,
    functions: Vec<FunctionRow<'a>>,
    refusals: Vec<RefusalRow<'a>>,
    call_sites: Vec<CallSiteRow>,
    groups: u32,
    /// Overwritten bytes of function entries, by address.
    overwritten: Vec<(u64, u64)>,
}

impl<'a> Builder<'a> {
    fn new(shadow_slots: u32) -> Self {
        Self {
            arena: Arena::new(shadow_slots),
            sites: Vec::new(),
            functions: Vec::new(),
            refusals: Vec::new(),
            call_sites: Vec::new(),
            groups: 0,
            overwritten: Vec::new(),
        }
    }

    fn refuse(&mut self, address: u64, name: Cow<'a, [u8]>, reason: String) {
        self.refusals.push(RefusalRow {
            address,
            name,
            reason,
        });
    }

    /// The image's own functions. Returns the row of each function of the domain.
    fn add_own(
        &mut self,
        subject: &Subject<'_, 'a>,
        calls: &Imports<'a>,
        own_unwinder: bool,
        wants: impl Fn(&[u8]) -> bool,
    ) -> Vec<Option<u32>> {
        let mechanism = if own_unwinder {
            mechanism::JUMP
        } else {
            mechanism::CALL_THROUGH
        };
        let shadow = |address: u64| calls.row_of_instruction(address);
        let mut rows = vec![None; subject.domain.functions.len()];
        for (index, own) in subject.domain.functions.iter().enumerate() {
            if !wants(&own.name) {
                continue;
            }
            let symbol = self.functions.len() as u32;
            let head = if own_unwinder {
                let routine = library::routine(mechanism);
                Head::Before { routine, symbol }
            } else {
                Head::Through { symbol }
            };
            let range = subject.survey.ranges[own.range];
            let name = own.name.clone();
            match self.patch_entry(subject, own.range, head, shadow) {
                Ok(()) => {
                    rows[index] = Some(symbol);
                    self.functions.push(FunctionRow {
                        address: range.address,
                        length: range.size,
                        name,
                        origin: function::OWN,
                        mechanism,
                    });
                }
                Err(reason) => self.refuse(range.address, name, reason),
            }
        }
        rows
    }

    /// One function's stub and the group of sites that leads there.
    fn patch_entry(
        &mut self,
        subject: &Subject<'_, '_>,
        range: usize,
        head: Head,
        shadow: impl Fn(u64) -> Option<u32>,
    ) -> Result<(), String> {
        let window = Window::choose(subject.image, subject.survey, subject.domain, range)?;
        let place = Place::new(subject.high, self.arena.next_stub() + BODY);
        let moved = window.relocate(place, |address| {
            shadow(address).map(|slot| self.arena.shadow_slot(slot))
        })?;
        let group = self.groups;
        let entry = entry_site(subject.image, &window, self.arena.next_stub() as u32, group)?;
        let redirected: Option<Vec<SiteRow>> = window
            .redirected
            .iter()
            .map(|branch| {
                let stub = self.arena.next_stub() as u32;
                redirect_site(subject.image, &window, &moved, branch, stub, group)
            })
            .collect();
        let redirected = redirected.ok_or("a branch into its first bytes cannot be read")?;
        self.arena.add_stub(head, &moved.code);
        self.sites.push(entry);
        self.sites.extend(redirected);
        self.overwritten
            .push((window.start, window.overwritten_end()));
        self.groups += 1;
        Ok(())
    }

    fn add_imports(&mut self, subject: &Subject<'_, 'a>, calls: &Imports<'a>) {
        let first = self.functions.len() as u32;
        for (index, row) in calls.rows.iter().enumerate() {
            let symbol = first + index as u32;
            let slot = row.slot;
            let head = match row.mechanism {
                mechanism::CALL_THROUGH => Head::ThroughSlot { symbol, slot },
                other => Head::Before {
                    routine: library::routine(other),
                    symbol,
                },
            };
            let stub = self.arena.add_stub(head, &Arena::import_body(slot));
            self.arena.set_shadow_slot(index as u32, stub);
            self.functions.push(FunctionRow {
                address: slot,
                length: 0,
                name: row.name.into(),
                origin: function::IMPORT,
                mechanism: row.mechanism,
            });
        }
        for (slot_use, row) in &calls.sites {
            let (from, to) = (
                slot_use.address,
                slot_use.address + u64::from(slot_use.length),
            );
            // What an entry's jump overwrites was moved, and uses the shadow slot there.
            let after = self.overwritten.partition_point(|(_, end)| *end <= from);
            if self
                .overwritten
                .get(after)
                .is_some_and(|(start, _)| *start < to)
            {
                continue;
            }
            if let Some(site) = self.slot_site(subject.image, slot_use, *row) {
                self.sites.push(site);
                self.groups += 1;
            }
        }
        for missed in &calls.missed {
            self.refuse(missed.slot, missed.name.into(), missed.reason.clone());
        }
    }

    fn slot_site(&self, image: &Image<'_>, slot_use: &SlotUse, row: u32) -> Option<SiteRow> {
        let old = image.bytes_at(slot_use.address, u64::from(slot_use.length))?;
        Some(SiteRow {
            address: slot_use.address,
            field: u32::from(slot_use.field),
            target: self.arena.shadow_slot(row) as u32,
            group: self.groups,
            old: old.to_vec(),
            new: old.to_vec(),
        })
    }

    fn add_call_sites(
        &mut self,
        subject: &Subject<'_, '_>,
        calls: &Imports<'_>,
        rows: &[Option<u32>],
    ) {
        let own = rows.iter().flatten().count() as u32;
        let survey = subject.survey;
        let row_of_range = |range: usize| {
            let owner = subject.domain.owner.get(range).copied().flatten()?;
            rows.get(owner as usize).copied().flatten()
        };
        let import = |slot: u64| calls.row_of_slot(slot).map(|row| own + row);
        let mut found: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
        for branch in survey
            .branches
            .iter()
            .filter(|b| b.kind == BranchKind::Call)
        {
            let Some(caller) = row_of_range(branch.range as usize) else {
                continue;
            };
            let callee = survey
                .range_starting_at(branch.target)
                .and_then(row_of_range)
                .or_else(|| survey.plt.get(&branch.target).copied().and_then(import));
            let return_address = branch.from + u64::from(branch.length);
            found.insert(return_address, (caller, callee.unwrap_or(u32::MAX)));
        }
        for (return_address, range) in &survey.indirect_calls {
            if let Some(caller) = row_of_range(*range as usize) {
                found.insert(*return_address, (caller, u32::MAX));
            }
        }
        for slot_use in survey
            .slot_uses
            .iter()
            .filter(|u| u.kind == SlotUseKind::Call)
        {
            let return_address = slot_use.address + u64::from(slot_use.length);
            if let (Some((_, callee)), Some(row)) =
                (found.get_mut(&return_address), import(slot_use.slot))
            {
                *callee = row;
            }
        }
        self.call_sites = found
            .into_iter()
            .map(|(return_address, (caller, callee))| CallSiteRow {
                return_address,
                caller,
                callee,
            })
            .collect();
        self.call_sites
            .sort_unstable_by_key(|row| row.return_address);
    }

    /// The entries of a library that run a routine, each address once.
    fn add_hooks(&mut self, subject: &Subject<'_, 'a>, role: Role) {
        let mut last = None;
        for symbol in subject.image.function_symbols() {
            let Some(routine) = library::hook(role, symbol.name) else {
                continue;
            };
            if symbol.is_indirect || last == Some(symbol.address) {
                continue;
            }
            last = Some(symbol.address);
            let patched = match subject.survey.range_starting_at(symbol.address) {
                Some(range) => self.patch_entry(subject, range, Head::Hook { routine }, |_| None),
                None => Err("no frame description begins there".into()),
            };
            if let Err(reason) = patched {
                self.refuse(symbol.address, symbol.name.into(), reason);
            }
        }
    }
}

/// `jmp stub` at the window's start; what else was moved is checked and left as it is.
fn entry_site(
    image: &Image<'_>,
    window: &Window,
    stub: u32,
    group: u32,
) -> Result<SiteRow, String> {
    let length = (window.end - window.start).clamp(JUMP, SITE);
    let old = image.bytes_at(window.start, length);
    let old = old.ok_or("its bytes are not in the file")?.to_vec();
    let mut new = old.clone();
    new[0] = 0xe9;
    Ok(SiteRow {
        address: window.start,
        field: 1,
        target: stub,
        group,
        old,
        new,
    })
}

/// A branch with another target: the moved copy of what it led to.
fn redirect_site(
    image: &Image<'_>,
    window: &Window,
    moved: &Moved,
    branch: &Branch,
    stub: u32,
    group: u32,
) -> Option<SiteRow> {
    let old = image
        .bytes_at(branch.from, u64::from(branch.length))?
        .to_vec();
    let offset = moved.offset_of(window.copy_of(branch.target))?;
    Some(SiteRow {
        address: branch.from,
        field: u32::from(branch.field),
        target: stub + BODY as u32 + offset,
        group,
        new: old.clone(),
        old,
    })
}
