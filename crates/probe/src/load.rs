//! Which images are patched, and when: those that are there when the program starts in the
//! constructor, later ones as soon as the dynamic linker tells debuggers about them. That is before
//! their constructors run and before anybody can call into them, so that no other thread executes
//! what is rewritten.
//!
//! ```text
//!  dlopen ─► ld.so maps the image ─► _dl_debug_state (hooked) ─► [changed] plans, patches
//!         ─► relocates it, runs its constructors (recorded)
//!  dlclose ─► destructors ─► ld.so unmaps it ─► _dl_debug_state ─► [changed] gives its arena back
//! ```
//!
//! The state lies in pages that a forked child has a copy of: it goes on from there.

use crate::arena::{self, Target};
use crate::closed;
use crate::debugger;
use crate::exec;
use crate::handles;
use crate::image::{Image, Link, Rendezvous};
use crate::imported::Imported;
use crate::maps::{Maps, Range};
use crate::origins;
use crate::pending::replace_return_addresses;
use crate::planner::{self, Candidate, Environment, Found, Missing};
use crate::process::Process;
use crate::scratch::Piece;
use crate::setup::Setup;
use crate::shortage::{self, MEMORY};
use crate::signals;
use crate::syscall;
use crate::text::{Text, file_name};
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use lockstep_format::codec::Kind;
use lockstep_format::plan::Role;
use lockstep_format::process::{fact, header};
use lockstep_format::symbol::FIRST_FUNCTION;

/// Images at one time, and plans in all, that a process may have.
const MOST: usize = 4096;
/// Places of an image that are remembered.
const PLACES: usize = 16;
/// Room for facts that come up later, at a time.
const LATE_FACTS: usize = 32 * 1024;

/// What is said of a library that does.
const OWN_UNWINDER: &str =
    "it unwinds by itself: the program's returns are seen at its next events";

/// An image that we have looked at.
#[derive(Clone, Copy)]
struct Known {
    link: u64,
    bias: u64,
    /// Where it lies.
    extent: Range,
    /// Its arena; nothing where it has none.
    arena: u64,
    size: u64,
    /// Bytes at the arena's start that are data.
    head: u64,
    /// Its page of counters; 0 where it has none.
    counters: u64,
    is_here: bool,
}

/// Symbols that were given to a plan: an image that comes back gets the same.
#[derive(Clone, Copy)]
struct Given {
    plan: Text<192>,
    first: u32,
    symbols: u32,
    /// Its first counter.
    counters: u32,
    /// Where the image was lately, as facts tell it.
    places: [u64; PLACES],
    next_place: usize,
}

/// What is known of the process's images.
struct Loader {
    environment: Environment,
    rendezvous: *const Rendezvous,
    /// Whether libraries without hooks are of interest.
    all: bool,
    /// Whether every library is.
    every: bool,
    /// The next symbol to give.
    next: u32,
    /// The next counter to give.
    next_counter: u32,
    /// The main program's page of counters; 0 where it has none.
    main_counters: u64,
    known_count: usize,
    given_count: usize,
    main_arena: u64,
    main_head: u64,
    maps: Maps,
    /// Facts that came up since the list was changed; null where it never was.
    late: *mut Text<LATE_FACTS>,
    known: [Known; MOST],
    given: [Given; MOST],
}

static LOADER: AtomicPtr<Loader> = AtomicPtr::new(null_mut());
/// The main program's arena, and its size; 0 where it has none.
pub static MAIN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Set while somebody works on it.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Patches the images that are there: called by the constructor.
///
/// # Errors
/// Why the main program is not recorded.
pub fn start(environment: Environment) -> Result<(), &'static str> {
    const NO_LIST: &str = "the dynamic linker's list of images was not found";
    let main = Image::main().ok_or(NO_LIST)?;
    let memory = syscall::map(size_of::<Loader>()).map_err(|_| MEMORY)?;
    let loader = memory.cast::<Loader>();
    let images = environment.variable("LOCKSTEP_IMAGES").unwrap_or(b"main");
    // SAFETY: just mapped, and of that size; all zeros is valid for the rest.
    let loader = unsafe {
        (&raw mut (*loader).environment).write(environment);
        (*loader).rendezvous = Rendezvous::find(&main).ok_or(NO_LIST)?;
        (*loader).all = !(images.is_empty() || images == b"main");
        (*loader).every = images == b"all";
        (*loader).next = FIRST_FUNCTION;
        LOADER.store(loader, Ordering::Release);
        &mut *loader
    };
    if let Some(link) = own_link(loader.rendezvous) {
        exec::know(environment, link.name());
    }
    let path = main_path().ok_or("the path of its file is not known")?;
    let main = Candidate {
        image: main,
        role: Role::Main,
        path,
        link: 0,
        is_only_called: false,
    };
    loader.look(Some(main), &mut Facts::Start)
}

/// Our own place in the linker's list.
fn own_link(rendezvous: *const Rendezvous) -> Option<&'static Link> {
    let own = changed as *const () as u64;
    let mut found = None;
    Rendezvous::each_library(rendezvous, |link| {
        let extent = Image::library(link.bias).map(|image| image.extent());
        if extent.is_some_and(|(low, high)| (low..high).contains(&own)) {
            found = Some(link);
        }
    });
    found
}

/// The main program's path, with a zero behind it, for ever.
fn main_path() -> Option<&'static [u8]> {
    let room = crate::image::PATH;
    let at = syscall::map(room).ok()?;
    // SAFETY: just mapped.
    let path = unsafe { core::slice::from_raw_parts_mut(at, room) };
    let length = syscall::read_link(b"/proc/self/exe\0", path.get_mut(..room - 1)?);
    // SAFETY: never unmapped.
    (length > 0).then(|| unsafe { core::slice::from_raw_parts(at, length) })
}

/// Visits the pages of counters behind arenas.
pub fn each_counters(mut visit: impl FnMut(u64)) {
    // SAFETY: null, or written by `start` for ever; in a forked child nobody else changes it.
    let Some(loader) = (unsafe { LOADER.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let known = loader.known.iter().take(loader.known_count.min(MOST));
    let pages = known.map(|known| known.counters);
    for page in pages
        .chain([loader.main_counters])
        .filter(|page| *page != 0)
    {
        visit(page);
    }
}

/// Whether a stub is one of the main program's, which is never unmapped.
pub fn stays(stub: u64) -> bool {
    let [arena, size] = &MAIN;
    stub.wrapping_sub(arena.load(Ordering::Relaxed)) < size.load(Ordering::Acquire)
}

/// The dynamic linker's list has changed, or is about to. Whether a library came that unwinds by itself: then
/// no return address may be elsewhere any more.
pub fn changed(process: &Process) -> bool {
    // A child of vfork runs in its parent's memory.
    if process.is_ready() && !process.is_own() || BUSY.swap(true, Ordering::Acquire) {
        return false;
    }
    let was_plain = Setup::get().plain;
    // SAFETY: null, or written by `start` for ever; `BUSY` and the linker's own lock keep others out.
    if let Some(loader) = unsafe { LOADER.load(Ordering::Acquire).as_mut() }
        && Rendezvous::is_consistent(loader.rendezvous)
    {
        if loader.late.is_null() {
            let memory = syscall::map(size_of::<Text<LATE_FACTS>>());
            loader.late = memory.map_or(null_mut(), |memory| memory.cast());
        }
        // SAFETY: null, or mapped for ever; zeros are an empty text. Nobody else uses it.
        if let Some(late) = unsafe { loader.late.as_mut() } {
            late.truncate(0);
            let _ = loader.look(None, &mut Facts::Late(late));
            if late.len() > 0 {
                let _ = process.add_facts(late.bytes());
                // SAFETY: one at a time, see above. Forked children write these facts in their files.
                unsafe { Setup::get_mut() }.facts.push(late.bytes());
            }
        }
    }
    BUSY.store(false, Ordering::Release);
    Setup::get().plain && !was_plain
}

/// Whether the library of this name runs code on accelerators.
fn runs_devices(name: &[u8]) -> bool {
    const STEMS: [&[u8]; 4] = [
        b"libcuda.so",
        b"libamdhip64.so",
        b"libze_loader.so",
        b"libOpenCL.so",
    ];
    STEMS.iter().any(|stem| name.starts_with(stem))
}

/// At the end of the process: says whether there is code that the program made as it ran.
pub fn tell_made_code(process: &Process) {
    // SAFETY: as in `changed`.
    let Some(loader) = (unsafe { LOADER.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let known = loader.known.get(..loader.known_count.min(MOST));
    let is_ours = |range: Range| {
        let arenas = known.unwrap_or(&[]).iter();
        let arenas = arenas.map(|known| known.arena + known.head);
        let mut arenas = arenas.chain([loader.main_arena + loader.main_head]);
        // Neighbours are one mapping.
        arenas.any(|arena| (range.0..range.1).contains(&arena))
    };
    let mut bytes = 0;
    crate::maps::each_made_code(|range| {
        if !is_ours(range) {
            bytes += range.1 - range.0;
        }
    });
    if bytes == 0 {
        return;
    }
    let mut reason = Text::<96>::new();
    reason.push(b"code that the program makes as it runs is not recorded (");
    reason.push_decimal(bytes);
    reason.push(b" bytes at the end)");
    let mut line = Text::<256>::new();
    line.push_line(fact::UNTRACED, &[b"memory", reason.bytes()]);
    let _ = process.add_facts(line.bytes());
}

/// Where facts about images go.
enum Facts<'a> {
    Start,
    Late(&'a mut Text<LATE_FACTS>),
}

impl Facts<'_> {
    fn add(&mut self, word: &str, values: &[&[u8]]) {
        match self {
            // SAFETY: this is the constructor, and the reference ends here.
            Self::Start => unsafe { Setup::get_mut() }.fact(word, values),
            Self::Late(text) => {
                text.push_line(word, values);
            }
        }
    }

    fn untraced(&mut self, path: &[u8], reason: &str) {
        self.add(fact::UNTRACED, &[path, shortage::in_words(reason).bytes()]);
    }
}

/// A piece of memory for values of one kind.
struct Room<T> {
    memory: Piece,
    count: usize,
    room: usize,
    kind: PhantomData<T>,
}

impl<T> Room<T> {
    fn new(room: usize) -> Option<Self> {
        Some(Self {
            memory: Piece::new(room * size_of::<T>())?,
            count: 0,
            room,
            kind: PhantomData,
        })
    }

    fn at(&self) -> *mut T {
        self.memory.at().cast()
    }

    fn push(&mut self, value: T) {
        if self.count < self.room {
            // SAFETY: inside the room.
            unsafe { self.at().add(self.count).write(value) };
            self.count += 1;
        }
    }

    fn all(&self) -> &[T] {
        // SAFETY: written up to here.
        unsafe { core::slice::from_raw_parts(self.at(), self.count) }
    }

    fn all_mut(&mut self) -> &mut [T] {
        // SAFETY: written up to here.
        unsafe { core::slice::from_raw_parts_mut(self.at(), self.count) }
    }
}

impl<T> Drop for Room<T> {
    fn drop(&mut self) {
        for index in 0..self.count {
            // SAFETY: written, and dropped once.
            unsafe { core::ptr::drop_in_place(self.at().add(index)) };
        }
    }
}

/// Whether the library of a link unwinds the program's stack, and we cannot see it do so.
fn has_own_unwinder(imported: Imported, link: &crate::image::Link, image: &Image) -> bool {
    let name = core::str::from_utf8(file_name(link.name())).unwrap_or("");
    Role::of_library(name) != Role::Unwinder && imported.has_own_unwinder(image)
}

impl Loader {
    fn known(&mut self) -> &mut [Known] {
        let count = self.known_count.min(MOST);
        self.known.get_mut(..count).unwrap_or(&mut [])
    }

    /// Compares the linker's list with what is known, and patches what is new.
    fn look(&mut self, main: Option<Candidate>, facts: &mut Facts<'_>) -> Result<(), &'static str> {
        let mut count = usize::from(main.is_some());
        for known in self.known() {
            known.is_here = false;
        }
        let rendezvous = self.rendezvous;
        let mut next = 0;
        Rendezvous::each_library(rendezvous, |link| match self.find(link, &mut next) {
            Some(known) => known.is_here = true,
            None => count += 1,
        });
        self.forget();
        if count == 0 {
            return Ok(());
        }
        next = 0;
        let mut candidates = Room::<Candidate>::new(count).ok_or(MEMORY)?;
        // Whoever unwinds first: once calls are redirected, they must restore. The main program last.
        let mut others = Room::<Candidate>::new(count).ok_or(MEMORY)?;
        Rendezvous::each_library(rendezvous, |link| {
            let address = core::ptr::from_ref(link) as u64;
            if self.find(link, &mut next).is_some() || self.known_count >= MOST {
                return;
            }
            let image = Image::library(link.bias);
            if let Some(place) = self.known.get_mut(self.known_count) {
                *place = Known {
                    link: address,
                    bias: link.bias,
                    extent: image.map_or((0, 0), |image| image.extent()),
                    arena: 0,
                    size: 0,
                    head: 0,
                    counters: 0,
                    is_here: true,
                };
                self.known_count += 1;
            }
            if runs_devices(file_name(link.name())) {
                facts.untraced(link.name(), "what it runs on a device is not recorded");
            }
            if Setup::get().arguments {
                handles::know(link, |word, values| facts.add(word, values));
            }
            let imported = Imported::of(link);
            if image.is_some_and(|image| has_own_unwinder(imported, link, &image)) {
                let why = match self.leave_return_addresses() {
                    Ok(()) => OWN_UNWINDER,
                    Err(reason) => reason,
                };
                facts.untraced(link.name(), why);
            }
            let Some(candidate) =
                image.and_then(|image| self.candidate(link, image, imported, main.is_some()))
            else {
                return;
            };
            if candidate.role == Role::Unwinder {
                candidates.push(candidate);
            } else {
                others.push(candidate);
            }
        });
        for candidate in others.all() {
            candidates.push(*candidate);
        }
        drop(others);
        if let Some(main) = main {
            candidates.push(main);
        }
        if candidates.all().is_empty() {
            return Ok(());
        }
        let mut maps = core::mem::replace(&mut self.maps, Maps::UNREAD);
        let patched = self.patch(candidates.all(), &mut maps, facts);
        self.maps = maps;
        patched
    }

    /// What is known of a link. Those that are asked for in the linker's order, `next` being 0 before,
    /// are found at once, as they became known in it.
    fn find(&mut self, link: &crate::image::Link, next: &mut usize) -> Option<&mut Known> {
        let address = core::ptr::from_ref(link) as u64;
        let is_it = |known: &Known| known.link == address && known.bias == link.bias;
        let all = self.known();
        if !all.get(*next).is_some_and(is_it) {
            *next = all.iter().position(is_it)?;
        }
        *next += 1;
        all.get_mut(*next - 1)
    }

    /// Return addresses stay where they are from now on, in what is patched already and in what will be. Frames
    /// of other threads that are open stay as they are.
    fn leave_return_addresses(&mut self) -> Result<(), &'static str> {
        if Setup::get().plain {
            return Ok(());
        }
        let main = (self.main_arena, self.main_head);
        let arenas = self.known().iter().map(|known| (known.arena, known.head));
        for (arena, head) in arenas.chain([main]).filter(|(arena, _)| *arena != 0) {
            arena::leave_return_addresses(arena, head)?;
        }
        // SAFETY: the constructor, or one at a time under the linker's lock; it is read where plans are
        // applied.
        unsafe { Setup::get_mut() }.plain = true;
        replace_return_addresses(false);
        Ok(())
    }

    /// Gives back what belonged to images that are gone.
    fn forget(&mut self) {
        let mut kept = 0;
        for index in 0..self.known_count.min(MOST) {
            let Some(known) = self.known.get(index).copied() else {
                break;
            };
            if known.is_here {
                if let Some(place) = self.known.get_mut(kept) {
                    *place = known;
                }
                kept += 1;
            } else {
                self.maps.remove(known.extent);
                if known.arena != 0 {
                    debugger::forget(known.arena);
                    origins::forget(known.arena);
                    // SAFETY: its image is unmapped, so that nothing leads there any more.
                    unsafe { syscall::unmap(known.arena as *mut u8, known.size as usize) };
                    self.maps.remove((known.arena, known.arena + known.size));
                }
            }
        }
        self.known_count = kept;
    }

    /// The image of a link, if it is one to have a plan.
    fn candidate(
        &self,
        link: &'static crate::image::Link,
        image: Image,
        imported: Imported,
        is_start: bool,
    ) -> Option<Candidate> {
        let path = link.name();
        // The kernel's own image has no file.
        if !path.contains(&b'/') {
            return None;
        }
        let name = core::str::from_utf8(file_name(path)).unwrap_or("");
        let role = Role::of_library(name);
        // Without recording nothing needs hooks.
        let calls_mpi =
            imported.may_call_mpi && role == Role::Library && !Role::is_part_of_mpi(name);
        let is_wanted = self.all || calls_mpi || role.has_hooks() && crate::fault::records();
        // What comes later may go again, and the slots that led there with it.
        let is_called = role == Role::Library && is_start && crate::fault::records();
        if !is_wanted && !is_called {
            return None;
        }
        let (low, high) = image.extent();
        let own = changed as *const () as u64;
        if (low..high).contains(&own) {
            return None;
        }
        Some(Candidate {
            image,
            role,
            path,
            link: core::ptr::from_ref(link) as u64,
            is_only_called: !is_wanted,
        })
    }

    /// Patches the candidates, the main program last. The error is the main program's.
    fn patch(
        &mut self,
        candidates: &[Candidate],
        maps: &mut Maps,
        facts: &mut Facts<'_>,
    ) -> Result<(), &'static str> {
        let environment = self.environment;
        let mut plans = Room::<Result<Found, Missing>>::new(candidates.len()).ok_or(MEMORY)?;
        for candidate in candidates {
            if candidate.role == Role::Libc {
                signals::found_libc();
            }
            plans.push(planner::find(environment, candidate));
        }
        let is_missing = |index: usize| {
            let found = plans.all().get(index);
            matches!(found, Some(Err(missing)) if missing.may_be_made())
        };
        if (0..candidates.len()).any(is_missing) {
            let made = planner::make(environment, candidates, is_missing);
            for (plan, candidate) in plans.all_mut().iter_mut().zip(candidates) {
                if matches!(plan, Err(missing) if missing.may_be_made()) {
                    *plan = match (planner::find(environment, candidate), made) {
                        (Err(missing), Err(reason)) if missing.may_be_made() => {
                            Err(Missing::Because(reason))
                        }
                        (found, _) => found,
                    };
                }
            }
        }
        // The main program's symbols come first: they are the same in all ranks.
        let total: u32 = plans
            .all()
            .iter()
            .flatten()
            .map(|found| found.plan.symbols())
            .sum();
        let largest = self.next.saturating_add(total) - 1;
        if matches!(facts, Facts::Start) && largest > Setup::get().codec.largest() {
            // SAFETY: as in `Facts::add`.
            let setup = unsafe { Setup::get_mut() };
            setup.codec = if setup.low_memory {
                Kind::LockstepLow
            } else {
                Kind::Lockstep
            };
        }
        let largest = Setup::get().codec.largest();
        let pairs = || candidates.iter().zip(plans.all());
        if let Some((_, Ok(found))) = pairs().find(|(candidate, _)| candidate.role == Role::Main) {
            self.give(found);
        }
        // Calls into libraries whose own functions are recorded are events of those.
        let earlier = self.earlier().ok_or(MEMORY)?;
        let is_recorded_elsewhere = |name: &[u8]| {
            let mut all = plans.all().iter().chain(earlier.all()).flatten();
            all.any(|library| library.plan.records_export(name))
        };
        if matches!(facts, Facts::Start) {
            for (candidate, found) in pairs() {
                if let Ok(found) = found {
                    // SAFETY: the constructor.
                    unsafe { closed::know(&found.plan, &candidate.image) };
                }
            }
        }
        let mut is_unwinder_patched = true;
        let mut main = Ok(());
        for (candidate, found) in pairs().filter(|(candidate, _)| !candidate.is_only_called) {
            let is_main = candidate.role == Role::Main;
            let result = match found {
                Err(reason) => Err(reason.reason()),
                // Nothing of it was chosen.
                Ok(found) if found.plan.sites().next().is_none() && !is_main => continue,
                Ok(_) if !is_unwinder_patched && candidate.role != Role::Linker => {
                    Err("the unwinder could not be patched")
                }
                Ok(found) => {
                    let first = self.give(found);
                    let end = first.saturating_add(found.plan.symbols());
                    if end - 1 > largest {
                        Err("the codec has no symbols left for its functions")
                    } else {
                        self.install(candidate, found, first, maps, facts, is_recorded_elsewhere)
                    }
                }
            };
            if let Err(reason) = result {
                is_unwinder_patched &= candidate.role != Role::Unwinder;
                if is_main {
                    main = Err(reason);
                } else {
                    facts.untraced(candidate.path, reason);
                }
            }
        }
        main
    }

    /// The plans that were applied before, where a library's calls into others may be recorded.
    fn earlier(&self) -> Option<Room<Result<Found, Missing>>> {
        let is_asked = self.all && !self.every;
        let count = if is_asked { self.given_count } else { 0 };
        let given = self.given.get(..count.min(MOST)).unwrap_or(&[]);
        let mut earlier = Room::new(given.len())?;
        for given in given {
            earlier.push(planner::read(given.plan));
        }
        Some(earlier)
    }

    /// The first symbol of a plan: what it has had before, or new ones.
    fn give(&mut self, found: &Found) -> u32 {
        let count = self.given_count.min(MOST);
        let given = self.given.get(..count).unwrap_or(&[]);
        let known = given.iter().find(|given| {
            given.plan.bytes() == found.name.bytes() && given.symbols == found.plan.symbols()
        });
        if let Some(known) = known {
            return known.first;
        }
        let first = self.next;
        if let Some(place) = self.given.get_mut(count) {
            *place = Given {
                plan: found.name,
                first,
                symbols: found.plan.symbols(),
                counters: self.next_counter,
                places: [u64::MAX; PLACES],
                next_place: 0,
            };
            self.given_count += 1;
        }
        self.next_counter = self.next_counter.saturating_add(found.plan.counters());
        self.next = first.saturating_add(found.plan.symbols());
        first
    }

    /// Applies a plan and says so in the facts.
    fn install(
        &mut self,
        candidate: &Candidate,
        found: &Found,
        first: u32,
        maps: &mut Maps,
        facts: &mut Facts<'_>,
        is_recorded_elsewhere: impl Fn(&[u8]) -> bool,
    ) -> Result<(), &'static str> {
        let count = self.given_count.min(MOST);
        let given = self.given.get(..count).unwrap_or(&[]);
        let given = given
            .iter()
            .find(|given| given.first == first && given.plan.bytes() == found.name.bytes());
        let counters = given.map_or(u32::MAX, |given| given.counters);
        let target = Target {
            image: &candidate.image,
            path: candidate.path,
            first,
            counters,
            is_pooled: candidate.role != Role::Main,
        };
        let applied = arena::apply(&found.plan, &target, maps, is_recorded_elsewhere)?;
        debugger::know(applied.arena, applied.size);
        let (rows, count) = applied.origins;
        let (low, high) = found.plan.extent();
        let bias = candidate.image.bias;
        let image = (bias.wrapping_add(low), bias.wrapping_add(high));
        // SAFETY: rows in the arena itself, written and never changed.
        unsafe {
            let rows = core::slice::from_raw_parts(rows as *const _, count);
            let arena = (applied.arena, applied.arena + applied.size);
            origins::know(arena, image, rows);
        }
        // SAFETY: in the constructor, or one at a time where images are loaded.
        unsafe { crate::fault::know(found.name, &candidate.image) };
        if candidate.role == Role::Libc && found.plan.tells_of_signals() && applied.unexpected == 0
        {
            signals::watch_libc();
        }
        let setup = Setup::get();
        setup
            .unexpected_text
            .fetch_add(applied.unexpected, Ordering::Relaxed);
        let link = candidate.link;
        if candidate.role == Role::Main {
            (self.main_arena, self.main_head) = (applied.arena, applied.head);
            MAIN[0].store(applied.arena, Ordering::Relaxed);
            MAIN[1].store(applied.size, Ordering::Release);
        }
        if let Some(known) = self.known().iter_mut().find(|known| known.link == link) {
            (known.arena, known.size) = (applied.arena, applied.size);
            (known.counters, known.head) = (applied.counters, applied.head);
        } else {
            self.main_counters = applied.counters;
        }
        // SAFETY: the arena's own page.
        let counts = applied.counters != 0
            && Process::get()
                .is_some_and(|process| unsafe { process.map_counters(applied.counters) }.is_ok());
        let bias = candidate.image.bias;
        let count = self.given_count.min(MOST);
        let given = self.given.get_mut(..count).unwrap_or(&mut []);
        let is_same = |given: &&mut Given| given.plan.bytes() == found.name.bytes();
        if let Some(given) = given.iter_mut().find(is_same) {
            if given.places.contains(&bias) {
                // It came back to where it was: nothing new.
                return Ok(());
            }
            if let Some(place) = given.places.get_mut(given.next_place % PLACES) {
                *place = bias;
            }
            given.next_place += 1;
        }
        let end = counters.saturating_add(found.plan.counters()) as usize;
        // The last is anybody's.
        if counts && end < header::COUNTER_COUNT {
            let mut number = Text::<24>::new();
            number.push_decimal(u64::from(counters));
            facts.add(fact::COUNTERS, &[found.name.bytes(), number.bytes()]);
        }
        let mut numbers = [Text::<24>::new(), Text::new(), Text::new()];
        numbers[0].push_decimal(u64::from(first));
        numbers[1].push_decimal(u64::from(found.plan.symbols()));
        numbers[2].push_hexadecimal(bias);
        facts.add(
            fact::IMAGE,
            &[
                candidate.path,
                found.name.bytes(),
                candidate.role.name().as_bytes(),
                numbers[0].bytes(),
                numbers[1].bytes(),
                numbers[2].bytes(),
            ],
        );
        Ok(())
    }
}
