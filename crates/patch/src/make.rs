//! From a decoded image to the content of its plan.

use std::borrow::Cow;

use lockstep_api::mpi::{Function, is_called_by_programs};
use lockstep_binary::{Image, Import, Kind};
use lockstep_format::plan::{Role, function, mechanism, origin, refusal, routine};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::arena::{Arena, Head, Link};
use crate::bind::Candidate;
use crate::capture::capture;
use crate::choice::Choice;
use crate::closed::closed;
use crate::domain::Domain;
use crate::fault::{Faults, is_named};
use crate::imports::{Imports, has_own_unwinder};
use crate::library;
use crate::names::Names;
use crate::own::{Way, flag_users};
use crate::parallel;
use crate::part::Found;
use crate::reach::Reach;
use crate::relocate::Place;
use crate::scratch::Scratch;
use crate::sensitive::{self, Sensitive};
use crate::sheet::{Pages, Sheet, flags_of};
use crate::stubs::is_moved;
use crate::survey::{Branch, BranchKind, SlotUse, SlotUseKind, Survey};
use crate::write::{CallSiteRow, Content, FunctionRow, RefusalRow, SiteRow};
use crate::{Made, Options, PlanFailure, Scope, Unpatched};

/// Everything about the image that planning asks for.
pub(crate) struct Subject<'i, 'a> {
    pub image: &'i Image<'a>,
    pub survey: &'i Survey<'a>,
    pub domain: &'i Domain<'a>,
    pub place: Place,
    /// Slots of functions that the image defines itself, and where.
    pub defined: FxHashMap<u64, u64>,
    /// Functions that are not to be recorded whatever their code allows, by range.
    pub vetoed: FxHashMap<usize, &'static str>,
    /// Functions that run a routine first, by range.
    pub watched: FxHashMap<usize, usize>,
    /// Functions at whose entries and returns nobody waits for r10 and r11.
    pub scratch: Scratch,
}

impl<'a> Subject<'_, 'a> {
    /// Finds the functions of a library that must be left alone; returns the entries of those that
    /// may begin a process in this very memory.
    fn veto(&mut self, names: &Names<'a>, role: Role) -> Vec<u64> {
        let mut begins_child = Vec::new();
        let functions = &self.domain.functions;
        let all = parallel::each(functions.len(), |index| {
            let range = functions[index].range;
            let by_code = self.survey.bodies[range].sensitive;
            let names = names.all(self.survey.ranges[range].address);
            by_code.or_else(|| sensitive::by_name(names))
        });
        for (own, found) in functions.iter().zip(all) {
            let range = &self.survey.ranges[own.range];
            if found.is_some_and(|found| found.begins_child) {
                begins_child.push(range.address);
            }
            let reason = if role == Role::Unwinder {
                Some("it unwinds the stack, and must find it as the program made it")
            } else if names.is_resolver(range.address) {
                Some("it chooses an implementation while the image is being loaded")
            } else {
                found.map(|Sensitive { reason, .. }| reason)
            };
            self.vetoed.extend(reason.map(|reason| (own.range, reason)));
        }
        // Whether a call is recorded must not depend on the machine's choice.
        let reason =
            "one of its implementations cannot be: recorded where the main program calls it";
        loop {
            let before = self.vetoed.len();
            for choices in names.implementations() {
                let (good, bad): (Vec<usize>, Vec<usize>) = choices
                    .iter()
                    .filter_map(|address| self.survey.range_starting_at(*address))
                    .partition(|range| self.way(*range, |_| None, &[], 0).is_ok());
                if !bad.is_empty() {
                    let good = good.into_iter().map(|range| (range, reason));
                    self.vetoed.extend(good);
                }
            }
            if self.vetoed.len() == before {
                return begins_child;
            }
        }
    }

    /// Names of the functions that make these calls. Not of those that stand for MPI's own (a tool between the program and MPI):
    /// whoever calls them calls MPI.
    fn callers(&self, calls: &Imports<'_>) -> FxHashSet<Vec<u8>> {
        let to_stub = self.survey.arriving.iter().filter(|branch| {
            let slot = self.survey.slot_of_stub(branch.target);
            slot.is_some_and(|slot| calls.row_of_slot(slot).is_some())
        });
        let by_slot = calls.sites.iter();
        let by_slot = by_slot.filter_map(|(slot_use, _)| self.survey.range_of(slot_use.address));
        let ranges = to_stub.map(|branch| branch.range as usize).chain(by_slot);
        let owners = ranges.filter_map(|range| self.domain.owner.get(range).copied().flatten());
        let own = owners.filter_map(|owner| self.domain.functions.get(owner as usize));
        let names = own.map(|own| own.name.to_vec());
        names.filter(|name| !is_called_by_programs(name)).collect()
    }

    /// Names of the functions in which a thread may begin, where a fault must tell threads apart:
    /// those whose address is taken.
    fn beginnings(&self, options: &Options) -> FxHashSet<Vec<u8>> {
        let is_needed = options.fault.as_ref().is_some_and(|f| f.tells_threads);
        let own = self.domain.functions.iter().filter(|_| is_needed);
        own.filter(|own| {
            let entry = self.survey.ranges[own.range].address;
            self.survey.is_address_taken(entry)
        })
        .map(|own| own.name.to_vec())
        .collect()
    }
}

/// Makes the plan.
pub(crate) fn make(
    bytes: &[u8],
    debug: Option<&[u8]>,
    scope: Scope,
    options: &Options,
) -> Result<Made, PlanFailure> {
    let role = scope.role;
    let choice = Choice::new(options)?;
    let mut image = Image::parse(bytes)?;
    let compressed = match debug {
        Some(_) => None,
        None => image.compressed_names(),
    };
    if let Some(names) = debug.or(compressed.as_deref()) {
        image = image.with_names_of(names);
    }
    // Of a fault without recording, the linker's hook alone is needed: libraries that come later are patched, too.
    let is_bare = options.fault.as_ref().is_some_and(|it| !it.records);
    let is_hooked = !is_bare || role == Role::Linker;
    let has_hooks = role.has_hooks() && (is_hooked || role == Role::Main);
    // What is recorded itself is no leaf of whoever calls.
    let is_asked = matches!(role, Role::Libc | Role::Library) && !scope.own_functions;
    let closed = if is_asked && !is_bare && !options.silent {
        closed(&image)
    } else {
        Vec::new()
    };
    let imports = image.imports();
    let may_call_mpi = scope.mpi_calls && role == Role::Library && is_asked;
    let is_mpi = |it: &Import<'_>| !it.is_defined && is_called_by_programs(it.name);
    let calls_mpi = may_call_mpi && imports.iter().any(is_mpi);
    if !has_hooks && !scope.own_functions && !calls_mpi {
        let mut plan = Builder::new(0, 0);
        plan.end();
        let mut content = plan.content(&image, role);
        content.closed = closed;
        return Ok(Made {
            plan: content.write(),
            unpatched: Vec::new(),
        });
    }
    let reach = Reach::new(&image);
    let slots = imports.iter().map(|i| (i.slot, i.symbol)).collect();
    let is_library = calls_mpi || scope.own_functions && !matches!(role, Role::Main | Role::Linker);
    let survey = Survey::new(&image, &slots, is_library);
    let mut domain = Domain::new(&image, &survey);
    let names = is_library.then(|| Names::new(&image, &survey));
    if let Some(names) = &names {
        names.apply(&survey, &mut domain);
    }
    let mut subject = Subject {
        image: &image,
        survey: &survey,
        domain: &domain,
        place: Place::new(reach.window()),
        defined: imports
            .iter()
            .filter(|import| import.is_defined)
            .map(|import| (import.slot, import.address))
            .collect(),
        vetoed: flag_users(&survey, &domain),
        watched: FxHashMap::default(),
        scratch: Scratch::new(&image, &survey, &domain),
    };
    let making = Making {
        imports: &imports,
        choice: &choice,
        options,
        scope,
        own_unwinder: has_own_unwinder(&image, &imports),
        names: names.as_ref(),
        is_hooked,
        calls_mpi,
    };
    // Where free memory in reach is short, as many functions as find room in it.
    let mut room = domain.functions.len();
    let mut plan = loop {
        let plan = making.build(&mut subject, room);
        if room == 0 || reach.has_place(plan.pages.span(), plan.code as usize) {
            break plan;
        }
        room = room / 4 * 3;
    };
    let (left_out, mut choices) = choice.counts();
    choices.extend(plan.faults.row());
    let unpatched = std::mem::take(&mut plan.unpatched);
    let mut content = plan.content(&image, role);
    content.closed = closed;
    content.is_traced = role == Role::Main || names.is_some();
    (content.left_out, content.choices) = (left_out, choices);
    let plan = content.write();
    Ok(Made { plan, unpatched })
}

/// What a plan is made of besides its subject.
struct Making<'m, 'a> {
    imports: &'m [Import<'a>],
    choice: &'m Choice,
    options: &'m Options,
    scope: Scope,
    own_unwinder: bool,
    /// Of a library whose own functions are asked for.
    names: Option<&'m Names<'a>>,
    is_hooked: bool,
    calls_mpi: bool,
}

impl<'a> Making<'_, 'a> {
    /// Everything that is patched, but of the own functions no more than the first `room`.
    fn build(&self, subject: &mut Subject<'_, 'a>, room: usize) -> Builder<'a> {
        let (image, survey, domain) = (subject.image, subject.survey, subject.domain);
        let role = self.scope.role;
        let is_library = self.names.is_some();
        let wants = |name: &[u8]| self.choice.wants(name);
        let choose = |wants: &dyn Fn(&[u8]) -> bool| {
            Imports::choose(image, self.imports, survey, self.own_unwinder, wants)
        };
        let mut plan = Builder::new(0, 0);
        let mut calls = Imports::default();
        // Of a library's own functions those alone, where it is not asked for as a whole.
        let mut chosen = None;
        if role == Role::Main {
            let beginnings = subject.beginnings(self.options);
            self.choice.add(&beginnings);
            calls = choose(&wants);
            plan = Builder::new(calls.rows.len() as u32, calls.candidates());
            plan.choose_fault(subject, self.imports, self.options, beginnings, role);
            plan.room = room;
            let rows = plan.add_own(subject, &calls, self.own_unwinder, wants);
            plan.add_imports(subject, &calls);
            plan.add_call_sites(subject, &calls, &rows);
            plan.lead_elsewhere(&calls);
        } else {
            if is_library && self.scope.library_calls {
                calls = choose(&wants);
                plan = Builder::new(calls.rows.len() as u32, calls.candidates());
            } else if self.calls_mpi {
                calls = choose(&|name: &[u8]| is_called_by_programs(name) && wants(name));
                plan = Builder::new(calls.rows.len() as u32, 0);
            }
            plan.room = room;
            chosen = self.calls_mpi.then(|| subject.callers(&calls));
            let begins_child = match self.names {
                Some(names) => subject.veto(names, role),
                None => Vec::new(),
            };
            if is_library {
                let nobody = FxHashSet::default();
                plan.choose_fault(subject, self.imports, self.options, nobody, role);
            }
            if self.is_hooked {
                let is_own = |name: &[u8]| is_library && wants(name);
                plan.add_hooks(subject, role, begins_child, is_own);
            }
        }
        if let Some(names) = self.names {
            let is_chosen = |name: &[u8]| {
                chosen
                    .as_ref()
                    .is_none_or(|it: &FxHashSet<_>| it.contains(name))
            };
            let wants = |name: &[u8]| is_chosen(name) && wants(name);
            let rows = plan.add_own(subject, &calls, self.own_unwinder, wants);
            plan.add_imports(subject, &calls);
            plan.lead_elsewhere(&calls);
            plan.exports = names.exports(|address| {
                let range = survey.range_starting_at(address)?;
                let owner = domain.owner.get(range).copied().flatten()?;
                rows.get(owner as usize).copied().flatten()
            });
            if image.has_lines() {
                plan.add_call_sites(subject, &calls, &rows);
            }
        }
        plan.end();
        plan
    }
}

/// The plan while it is built.
pub(crate) struct Builder<'a> {
    /// How many of the image's own functions there is room for.
    pub room: usize,
    /// Size of the arena.
    code: u32,
    pub sheet: Sheet,
    pub pages: Pages,
    pub functions: Vec<FunctionRow<'a>>,
    pub refusals: Vec<RefusalRow<'a>>,
    /// In their order, some at a time.
    call_sites: Vec<Vec<CallSiteRow>>,
    exports: Vec<(&'a [u8], u32)>,
    /// Counters of calls that are not recorded.
    pub counters: u32,
    /// Such calls, and the stub that counts them.
    pub counted: Vec<(Vec<Branch>, u32)>,
    /// What was moved from function entries and returns, by address.
    pub moved: Vec<(u64, u64)>,
    /// Own functions whose returns are not patched, and why.
    pub unpatched: Vec<Unpatched>,
    pub faults: Faults,
    /// The routine SIGNALS is called before a handler is set.
    tells_of_signals: bool,
    /// All is patched as ever, and records nothing.
    pub is_silent: bool,
    /// Of a redirection: the function that is called instead.
    other: Option<Other>,
}

/// A function to call.
#[derive(Debug, Clone, Copy)]
enum Other {
    Own { entry: u64 },
    Import { slot: u64 },
}

impl<'a> Builder<'a> {
    pub(crate) fn new(shadow_slots: u32, leaves: u32) -> Self {
        Self {
            room: 0,
            code: 0,
            sheet: Sheet::new(Arena::new(shadow_slots, leaves)),
            pages: Pages::default(),
            functions: Vec::new(),
            refusals: Vec::new(),
            call_sites: Vec::new(),
            exports: Vec::new(),
            counters: 0,
            counted: Vec::new(),
            moved: Vec::new(),
            unpatched: Vec::new(),
            faults: Faults::default(),
            tells_of_signals: false,
            is_silent: false,
            other: None,
        }
    }

    /// Ends the arena.
    fn end(&mut self) {
        self.sheet.arena.align();
        self.code = self.sheet.arena.here();
        self.end_sheet();
        self.pages.settle();
    }

    fn content(self, image: &Image<'a>, role: Role) -> Content<'a> {
        Content {
            role,
            is_traced: false,
            tells_of_signals: self.tells_of_signals,
            extent: image.extent(),
            reach: self.pages.span(),
            is_fixed: image.kind() == Kind::Fixed,
            build_id: image.build_id(),
            head: self.sheet.arena.head(),
            closed: Vec::new(),
            code: self.code,
            pages: self.pages.all,
            functions: self.functions,
            refusals: self.refusals,
            call_sites: self.call_sites,
            exports: self.exports,
            counters: self.counters,
            left_out: 0,
            choices: Vec::new(),
        }
    }

    /// Takes the fault on, unless it needs a function that is not there.
    fn choose_fault(
        &mut self,
        subject: &Subject<'_, 'a>,
        imports: &[Import<'a>],
        options: &Options,
        beginnings: FxHashSet<Vec<u8>>,
        role: Role,
    ) {
        self.is_silent = options.silent;
        self.sheet.arena.is_plain = options.silent;
        let Some(fault) = &options.fault else { return };
        self.sheet.arena.is_plain |= !fault.records;
        if fault.kind == lockstep_format::fault::Kind::Redirect {
            let mut own = subject.domain.functions.iter();
            let own = own.find(|own| is_named(&own.name, &fault.to));
            let import = || {
                let named =
                    |import: &&Import<'_>| !import.is_defined && is_named(import.name, &fault.to);
                imports
                    .iter()
                    .filter(named)
                    .max_by_key(|import| import.is_for_calls)
            };
            self.other = match own {
                Some(own) => Some(Other::Own {
                    entry: subject.survey.ranges[own.range].address,
                }),
                None => import().map(|import| Other::Import { slot: import.slot }),
            };
            let names = subject.domain.functions.iter().map(|own| &*own.name);
            let mut names = names.chain(imports.iter().map(|import| import.name));
            if self.other.is_none() && names.any(|name| fault.is_at(name)) {
                let image = if role == Role::Main {
                    "program"
                } else {
                    "library"
                };
                let reason = format!(
                    "the {image} neither has nor calls {}, to which its call should be redirected",
                    fault.to
                );
                let name = fault.at.clone().into_bytes();
                return self.refuse(0, name.into(), reason);
            }
        }
        self.faults = Faults::new(options.fault.as_ref(), beginnings, role != Role::Main);
    }

    /// Leads redirected calls to the other function, recorded if it is.
    fn lead_elsewhere(&mut self, calls: &Imports<'_>) {
        let to = match self.other {
            None => return,
            Some(Other::Own { entry }) => Link::Branch { address: entry },
            Some(Other::Import { slot }) => match calls.row_of_slot(slot) {
                Some(row) => match self.sheet.arena.import_entry(row) {
                    Some(offset) => Link::Arena { offset },
                    None => Link::Slot { address: slot },
                },
                None => Link::Slot { address: slot },
            },
        };
        self.sheet.arena.lead_elsewhere(to);
    }

    pub(crate) fn refuse(&mut self, address: u64, name: Cow<'a, [u8]>, reason: String) {
        self.refusals.push(RefusalRow {
            address,
            name,
            reason,
            kind: refusal::CALLS,
            counter: None,
            more: true,
        });
    }

    fn add_imports(&mut self, subject: &Subject<'_, 'a>, calls: &Imports<'a>) {
        let first = self.functions.len() as u32;
        let mut leaves = Vec::new();
        let free = subject.scratch.free_imports(subject.survey, calls);
        for (index, row) in calls.rows.iter().enumerate() {
            let symbol = first + index as u32;
            let slot = row.slot;
            let function = FunctionRow {
                address: slot,
                length: 0,
                name: row.name.into(),
                origin: function::IMPORT,
                mechanism: row.mechanism,
            };
            let fault = self.faults.of_import(row.name, row.mechanism);
            let refused = self.faults.refused(row.name, row.mechanism);
            let is_ordinary = fault.is_none() && refused.is_none() && !self.sheet.arena.is_plain;
            let start = self.sheet.arena.next_stub();
            if row.may_be_leaf && is_ordinary {
                self.sheet
                    .stands_for(start, Some(slot), origin::SLOT | origin::THROUGH);
                let candidate = Candidate {
                    slot,
                    name: row.name,
                    shadow: index as u32,
                    row: leaves.len() as u32,
                    extent: subject.image.extent(),
                    is_free: free[index],
                };
                let stubs = self.sheet.arena.add_candidate(&candidate);
                let second = first + (calls.rows.len() + leaves.len()) as u32;
                self.sheet.arena.set_symbol(&stubs.through, symbol);
                self.sheet.arena.set_symbol(&stubs.bind, symbol);
                self.sheet.arena.set_symbol(&stubs.leaf, second);
                self.sheet.arena.set_shadow_slot(index as u32, &stubs.bind);
                leaves.push(FunctionRow {
                    mechanism: mechanism::LEAF,
                    ..function.clone()
                });
                self.functions.push(function);
                continue;
            }
            let mut body = Arena::import_body(slot);
            let is_plain = self.sheet.arena.is_plain;
            let capture = Function::of(row.name).and_then(|it| capture(&it));
            let head = match row.mechanism {
                mechanism::CALL_THROUGH if is_plain => Head::ThroughSlot { slot },
                mechanism::CALL_THROUGH => match capture {
                    Some(capture) => {
                        body = Arena::arguments_body(slot, capture.bytes());
                        Head::ThroughArguments
                    }
                    None => {
                        let (head, timed) = Arena::timed(slot, row.name);
                        body = timed;
                        head
                    }
                },
                other => Head::Before {
                    routine: library::routine(other),
                },
            };
            self.sheet.arena.fault = fault;
            if let Some(reason) = refused {
                self.refuse(slot, row.name.into(), reason);
            }
            self.sheet
                .stands_for(start, Some(slot), origin::SLOT | flags_of(head));
            let stub = self.sheet.arena.add_import(head, &body);
            self.sheet.arena.set_symbol(&stub, symbol);
            self.sheet.arena.set_shadow_slot(index as u32, &stub);
            self.functions.push(function);
        }
        self.functions.extend(leaves);
        for (slot_use, row) in &calls.sites {
            if is_moved(&self.moved, slot_use.address) {
                continue;
            }
            let group = self.sheet.next_group();
            let target = self.sheet.arena.shadow_slot(*row) as u32;
            self.sheet
                .sites
                .extend(slot_site(subject.image, slot_use, target, group));
        }
        for missed in &calls.missed {
            self.refuse(missed.slot, missed.name.into(), missed.reason.clone());
            if let Some(row) = self.refusals.last_mut() {
                row.kind = missed.kind;
            }
        }
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
        // What the image defines itself it may call by a slot all the same.
        let entered = |target: u64| {
            let slot = survey.slot_of_stub(target);
            let defined = slot.and_then(|slot| subject.defined.get(&slot));
            let range = survey.range_starting_at(*defined.unwrap_or(&target))?;
            let owner = subject.domain.owner.get(range).copied().flatten()?;
            let is_entry = subject.domain.functions[owner as usize].range == range;
            row_of_range(range).filter(|_| is_entry)
        };
        let row = |return_address, caller, callee| CallSiteRow {
            return_address,
            caller,
            callee,
        };
        let direct = |branch: &Branch| {
            let caller = row_of_range(branch.range as usize)?;
            let own = entered(branch.target);
            let callee = match branch.kind {
                BranchKind::Call => own
                    .or_else(|| {
                        let range = survey.range_starting_at(branch.target)?;
                        row_of_range(range)
                    })
                    .or_else(|| survey.slot_of_stub(branch.target).and_then(import))
                    .unwrap_or(u32::MAX),
                // To its own beginning it loops.
                BranchKind::Jump | BranchKind::Conditional => own.filter(|it| *it != caller)?,
                BranchKind::Table => return None,
            };
            let return_address = branch.from + u64::from(branch.length);
            Some(row(return_address, caller, callee))
        };
        let indirect = |(return_address, range): &(u64, u32)| {
            let caller = row_of_range(*range as usize)?;
            Some(row(*return_address, caller, u32::MAX))
        };
        let parts = survey.parts.iter().collect();
        let mut found = parallel::all(parts, |part: &Found| {
            let mut rows: Vec<CallSiteRow> = part.branches.iter().filter_map(direct).collect();
            rows.extend(part.indirect_calls.iter().filter_map(indirect));
            // Two runs: merged in one go.
            rows.sort_by_key(|row| row.return_address);
            rows
        });
        let uses = survey.slot_uses.iter();
        let by_slot = uses.filter(|it| it.kind == SlotUseKind::Call);
        let by_slot = by_slot.filter_map(|it| {
            let return_address = it.address + u64::from(it.length);
            Some((return_address, import(it.slot)?))
        });
        let hoisted = calls.hoisted_calls.iter();
        let hoisted = hoisted.map(|(return_address, row)| (*return_address, own + row));
        for (return_address, callee) in by_slot.chain(hoisted) {
            let range = return_address.checked_sub(1);
            let range = range.and_then(|last| survey.range_of(last));
            let part = range.and_then(|range| found.get_mut(range / parallel::PIECE));
            let Some(rows) = part else { continue };
            if let Ok(at) = rows.binary_search_by_key(&return_address, |row| row.return_address) {
                rows[at].callee = callee;
            }
        }
        let by_code = survey.takers.iter().map(|(address, range)| {
            let taker = row_of_range(*range as usize)?;
            Some((taker, entered(*address)?))
        });
        let by_data = survey.pointers.iter().map(|address| {
            let callee = entered(*address)?;
            Some((callee, callee))
        });
        let mut takers: Vec<(u32, u32)> = by_code.chain(by_data).flatten().collect();
        takers.sort_unstable();
        takers.dedup();
        let takers = takers.into_iter();
        let takers = takers.map(|(caller, callee)| row(0, caller, callee));
        self.call_sites.push(takers.collect());
        self.call_sites.extend(found);
    }

    /// The entries of a library that run a routine, each address once: those that have one for their
    /// name, and those in `begins_child`. What is recorded too (`is_own`) runs it before its stub.
    fn add_hooks(
        &mut self,
        subject: &mut Subject<'_, 'a>,
        role: Role,
        begins_child: Vec<u64>,
        is_own: impl Fn(&[u8]) -> bool,
    ) {
        let named = subject.image.function_symbols().iter();
        let named = named.filter(|symbol| !symbol.is_indirect);
        let named = named.filter_map(|symbol| {
            let routine = library::hook(role, symbol.name)?;
            Some((symbol.address, Cow::Borrowed(symbol.name), routine))
        });
        let suspend = |address| {
            let name = format!("+{address:#x}").into_bytes();
            (address, Cow::Owned(name), library::SUSPEND)
        };
        let mut hooks: Vec<(u64, Cow<'a, [u8]>, usize)> =
            named.chain(begins_child.into_iter().map(suspend)).collect();
        hooks.sort_by_key(|(address, ..)| *address);
        hooks.dedup_by_key(|(address, ..)| *address);
        for (address, name, hooked) in hooks {
            let Some(range) = subject.survey.range_starting_at(address) else {
                self.refuse(address, name, "no frame description begins there".into());
                continue;
            };
            let owner = subject.domain.owner.get(range).copied().flatten();
            let own = owner.and_then(|owner| subject.domain.functions.get(owner as usize));
            // What sets handlers is done by the recorder itself.
            if hooked != routine::SIGNALS
                && own.is_some_and(|own| own.range == range && is_own(&own.name))
                && matches!(subject.way(range, |_| None, &[], 0), Ok(Way::Entry(..)))
            {
                subject.watched.insert(range, hooked);
                continue;
            }
            match subject.entry(range, |_| None, &[], 0) {
                Ok((window, moved)) => {
                    let head = Head::Before { routine: hooked };
                    self.sheet.patch_entry(subject, &window, &moved, head, None);
                    self.tells_of_signals |= hooked == routine::SIGNALS;
                    let reason = "the recorder watches its entry";
                    subject.vetoed.entry(range).or_insert(reason);
                }
                Err(reason) => self.refuse(address, name, reason),
            }
        }
    }
}

/// A call or jump through a slot, with another slot.
fn slot_site(image: &Image<'_>, slot_use: &SlotUse, target: u32, group: u32) -> Option<SiteRow> {
    let old = image.bytes_at(slot_use.address, u64::from(slot_use.length))?;
    Some(SiteRow {
        address: slot_use.address,
        field: u32::from(slot_use.field),
        target,
        group,
        old: old.into(),
        new: old.into(),
    })
}
