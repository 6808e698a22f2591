//! From a ring's records to an [`Execution`].
//!
//! Goroutines, objects and places get dense numbers; each record becomes the events that it stands for. What the
//! ring does not hold (how the program ended, what it printed) is told by who ran it.

use crate::execution::{
    Action, Case, End, Event, Execution, Goroutine, GoroutineId, Object, ObjectId, ObjectKind,
    Output, Site, SiteId, State, WaitReason, What,
};
use crate::ring::{Record, Ring, kind};
use crate::symbols::Symbols;
use crate::waits::{is_permanent, is_wait_of};
use std::collections::HashMap;

/// Statuses of goroutines by the runtime's numbers.
const RUNNABLE: u8 = 1;
const SYSCALL: u8 = 3;
const WAITING: u8 = 4;

/// What the ring of one execution tells.
///
/// `end` and `output` are what its parent saw.
#[must_use]
pub fn execution(ring: &Ring<'_>, symbols: &Symbols<'_>, end: End, output: Output) -> Execution {
    let mut capture = Capture {
        ring,
        symbols,
        sites: Sites::default(),
        objects: Vec::new(),
        by_address: HashMap::new(),
        goroutines: Vec::new(),
        by_number: HashMap::new(),
        facts: Vec::new(),
        events: Vec::new(),
        prints: Vec::new(),
        proven: Vec::new(),
        main_returned: false,
        told: false,
        told_at: 0,
    };
    // The first is the main one, whatever comes first.
    capture.goroutine(1);
    for record in &ring.records {
        capture.take(record);
    }
    capture.finish(end, output)
}

/// Places by number.
#[derive(Debug, Default)]
struct Sites {
    all: Vec<Site>,
    numbers: HashMap<Site, SiteId>,
    by_offset: HashMap<u32, Option<SiteId>>,
}

impl Sites {
    fn number(&mut self, site: Site) -> SiteId {
        if let Some(found) = self.numbers.get(&site) {
            return *found;
        }
        let id = SiteId(self.all.len() as u32);
        self.all.push(site.clone());
        self.numbers.insert(site, id);
        id
    }
}

/// What is known of a goroutine while records are read.
#[derive(Debug, Default)]
struct Facts {
    /// Usages that have begun: kind, place, and of selects how many send and how many there are.
    open: Vec<(u8, Option<SiteId>, u64, u64)>,
    ended: bool,
    /// Its state, as the runtime told it.
    told: bool,
}

struct Capture<'a, 'r, 's> {
    ring: &'a Ring<'r>,
    symbols: &'a Symbols<'s>,
    sites: Sites,
    objects: Vec<Object>,
    by_address: HashMap<(u8, u64), ObjectId>,
    goroutines: Vec<Goroutine>,
    by_number: HashMap<u64, GoroutineId>,
    facts: Vec<Facts>,
    events: Vec<Event>,
    prints: Vec<(usize, u32)>,
    proven: Vec<GoroutineId>,
    main_returned: bool,
    told: bool,
    told_at: u64,
}

impl Capture<'_, '_, '_> {
    fn goroutine(&mut self, number: u64) -> GoroutineId {
        if let Some(found) = self.by_number.get(&number) {
            return *found;
        }
        let id = GoroutineId(self.goroutines.len() as u32);
        self.by_number.insert(number, id);
        self.goroutines.push(Goroutine {
            number,
            parent: None,
            created_at: None,
            entry: if number == 1 {
                "main.main".to_owned()
            } else {
                String::new()
            },
            is_system: false,
            state: State::Runnable,
            stack: Vec::new(),
            own: None,
        });
        self.facts.push(Facts::default());
        id
    }

    /// The program's place of a return address.
    fn site(&mut self, offset: u32) -> Option<SiteId> {
        if let Some(found) = self.sites.by_offset.get(&offset) {
            return *found;
        }
        let place = self.symbols.place(offset);
        let users = place.filter(|it| self.symbols.is_user(&it.function));
        let site = users.map(|it| self.sites.number(it));
        self.sites.by_offset.insert(offset, site);
        site
    }

    fn object(&mut self, what: u8, address: u64, site: Option<SiteId>) -> Option<ObjectId> {
        if address == 0 {
            return None;
        }
        let family = match what {
            kind::SEND | kind::RECEIVE | kind::CLOSE | kind::SELECT | kind::MAKE => kind::SEND,
            kind::LOCK..=kind::UNLOCK => kind::LOCK,
            kind::R_LOCK..=kind::RW_UNLOCK => kind::RW_LOCK,
            kind::ADD..=kind::WAIT => kind::WAIT,
            kind::ONCE => kind::ONCE,
            _ => kind::COND_WAIT,
        };
        if let Some(found) = self.by_address.get(&(family, address)) {
            let first = &mut self.objects[found.0 as usize].first;
            *first = first.or(site);
            return Some(*found);
        }
        let id = ObjectId(self.objects.len() as u32);
        self.objects.push(Object {
            kind: match family {
                kind::SEND => ObjectKind::Channel { capacity: 0 },
                kind::LOCK => ObjectKind::Mutex,
                kind::RW_LOCK => ObjectKind::RwMutex,
                kind::WAIT => ObjectKind::WaitGroup,
                kind::ONCE => ObjectKind::Once,
                _ => ObjectKind::Cond,
            },
            first: site,
        });
        self.by_address.insert((family, address), id);
        Some(id)
    }

    fn event(&mut self, record: &Record<'_>, site: Option<SiteId>, what: What) {
        let goroutine = match record.goroutine {
            0 => None,
            number => Some(self.goroutine(u64::from(number))),
        };
        self.events.push(Event {
            time: self.ring.nanoseconds(record.time),
            goroutine,
            site,
            what,
        });
    }

    fn take(&mut self, record: &Record<'_>) {
        match record.kind {
            kind::SEND..=kind::BROADCAST => self.request(record),
            kind::COMPLETE => self.complete(record),
            kind::PARK => {
                let reason = wait_reason(record.extra);
                let id = self.goroutine(u64::from(record.goroutine));
                self.goroutines[id.0 as usize].state = State::Waiting(reason);
                let site = self.facts[id.0 as usize].open.last().and_then(|it| it.1);
                self.event(record, site, What::Park(reason));
            }
            kind::READY => {
                let id = self.goroutine(record.value);
                self.goroutines[id.0 as usize].state = State::Runnable;
                self.event(record, None, What::Ready(id));
            }
            kind::MAKE => {
                let site = self.site(record.place);
                self.by_address.remove(&(kind::SEND, record.value));
                // A library may make it for the program.
                let first = site.or_else(|| self.site(record.word(1) as u32));
                if let Some(id) = self.object(kind::MAKE, record.value, first) {
                    let made_by = self.symbols.places(record.place);
                    let is_timer = made_by
                        .first()
                        .is_some_and(|it| it.function.starts_with("time."));
                    self.objects[id.0 as usize].kind = if is_timer {
                        ObjectKind::Timer
                    } else {
                        ObjectKind::Channel {
                            capacity: record.word(0),
                        }
                    };
                    self.event(record, site, What::Make(id));
                }
            }
            kind::CREATE => self.create(record),
            kind::END => {
                let id = self.goroutine(u64::from(record.goroutine));
                self.facts[id.0 as usize].ended = true;
                self.goroutines[id.0 as usize].state = State::Ended;
                self.event(record, None, What::End);
            }
            kind::PANIC => {
                let site = self.site(record.place);
                self.event(record, site, What::Panic);
            }
            kind::GOES_ON => self.event(record, None, What::GoesOn),
            kind::STATE => self.state(record),
            kind::MAIN_ENDED => self.main_returned = true,
            kind::EXIT if record.goroutine == 1 => self.main_returned = true,
            _ => {}
        }
    }

    fn request(&mut self, record: &Record<'_>) {
        let site = self.site(record.place);
        let id = self.goroutine(u64::from(record.goroutine));
        let mut cases = Vec::new();
        let (mut sends, mut total) = (0, 0);
        if record.kind == kind::SELECT {
            let count = (record.value & 0xffff) as usize;
            sends = record.value >> 16 & 0xffff;
            total = record.value >> 32 & 0xffff;
            for index in 0..count {
                let action = if (index as u64) < sends {
                    Action::Send
                } else {
                    Action::Receive
                };
                let channel = self.object(kind::SELECT, record.word(index) & ((1 << 48) - 1), site);
                cases.push(Case { action, channel });
            }
            // Those that receive are told backwards.
            let receives = cases.get_mut(sends as usize..);
            receives.unwrap_or_default().reverse();
        }
        let object = match record.kind {
            kind::SELECT | kind::SLEEP | kind::BLOCK => None,
            what => self.object(what, record.value, site),
        };
        self.facts[id.0 as usize]
            .open
            .push((record.kind, site, sends, total));
        let what = What::Request {
            action: action(record.kind),
            object,
            cases,
            default: record.kind == kind::SELECT && record.extra & 1 != 0,
            amount: match record.kind {
                kind::SLEEP => record.value as i64,
                kind::ADD => record.word(0) as i64,
                _ => 0,
            },
            on_behalf: record.extra & 2 != 0,
        };
        self.event(record, site, what);
    }

    fn complete(&mut self, record: &Record<'_>) {
        let number = record.extra >> 1;
        let id = self.goroutine(u64::from(record.goroutine));
        let open = &mut self.facts[id.0 as usize].open;
        // What lies above it was left by a panic.
        let Some(at) = open.iter().rposition(|it| it.0 == number) else {
            return;
        };
        let (_, site, sends, total) = open[at];
        open.truncate(at);
        let index = record.value & 0xffff;
        let case = (number == kind::SELECT && index < total).then(|| {
            if index < sends {
                index
            } else {
                sends + (total - 1 - index)
            }
        });
        let what = What::Complete {
            action: action(number),
            case: case.and_then(|it| u32::try_from(it).ok()),
            ok: record.extra & 1 != 0,
        };
        let print = (record.value >> 16) as u32;
        if print != 0 {
            self.prints.push((self.events.len(), print));
        }
        self.event(record, site, what);
    }

    fn create(&mut self, record: &Record<'_>) {
        let site = self.site(record.word(1) as u32);
        let parent = match record.goroutine {
            0 => None,
            number => Some(self.goroutine(u64::from(number))),
        };
        // Numbers are not used twice.
        let id = self.goroutine(record.value);
        if id.0 != 0 {
            let entry = self.symbols.entry(record.word(0) as u32);
            let made = &mut self.goroutines[id.0 as usize];
            made.parent = parent;
            made.created_at = site;
            made.is_system = record.word(2) != 0 || is_system(&entry);
            made.entry = entry;
        }
        if record.extra & 1 != 0 {
            let request = What::Request {
                action: Action::Go,
                object: None,
                cases: Vec::new(),
                default: false,
                amount: 0,
                on_behalf: false,
            };
            self.event(record, site, request);
        }
        self.event(record, site, What::Create(id));
        if record.extra & 1 != 0 {
            let complete = What::Complete {
                action: Action::Go,
                case: None,
                ok: true,
            };
            self.event(record, site, complete);
        }
    }

    /// Where a goroutine stands, as the runtime told it at the end or when it was asked.
    fn state(&mut self, record: &Record<'_>) {
        self.told = true;
        self.told_at = self.told_at.max(self.ring.nanoseconds(record.time));
        let Some(id) = self.by_number.get(&u64::from(record.goroutine)).copied() else {
            return;
        };
        let mut stack: Vec<SiteId> = Vec::new();
        for index in 0..(record.value >> 8 & 0xff) as usize {
            for site in self.symbols.places(record.half(index)) {
                // The runtime's own frames, and those of the overlay's names for what has another.
                let is_hidden = ["runtime.", "internal/sync.", "internal/poll."]
                    .iter()
                    .any(|it| site.function.starts_with(it));
                let is_renamed = stack.last().is_some_and(|it| {
                    let inner = &self.sites.all[it.0 as usize].function;
                    site.function.starts_with("sync.") && *inner == site.function
                });
                if !is_hidden && !is_renamed {
                    stack.push(self.sites.number(site));
                }
            }
        }
        let own = stack
            .iter()
            .find(|it| {
                self.symbols
                    .is_user(&self.sites.all[it.0 as usize].function)
            })
            .copied();
        if record.value >> 16 & 1 != 0 {
            self.proven.push(id);
        }
        let facts = &mut self.facts[id.0 as usize];
        facts.told = true;
        let goroutine = &mut self.goroutines[id.0 as usize];
        goroutine.stack = stack;
        goroutine.own = own;
        goroutine.state = match record.extra {
            WAITING => State::Waiting(wait_reason(record.value as u8)),
            SYSCALL => State::Waiting(WaitReason::Call),
            RUNNABLE.. => State::Runnable,
            0 => State::Ended,
        };
    }

    /// Whether main waits for others in a usage of the program's.
    fn main_waits(&self) -> bool {
        let (Some(main), Some(facts)) = (self.goroutines.first(), self.facts.first()) else {
            return false;
        };
        let State::Waiting(reason) = main.state else {
            return false;
        };
        let open = facts.open.last();
        is_permanent(reason) && open.is_some_and(|it| is_wait_of(action(it.0), reason))
    }

    fn finish(mut self, end: End, output: Output) -> Execution {
        for (goroutine, facts) in self.goroutines.iter_mut().zip(&self.facts) {
            if facts.ended {
                goroutine.state = State::Ended;
                goroutine.stack.clear();
                goroutine.own = None;
            } else if goroutine.stack.is_empty() {
                goroutine.stack = facts.open.iter().rev().filter_map(|it| it.1).collect();
            }
        }
        let test = self
            .goroutines
            .iter()
            .position(|it| it.entry == "testing.tRunner")
            .map(|index| GoroutineId(index as u32));
        let test_ended = test.is_some_and(|it| self.facts[it.0 as usize].ended);
        // `TestMain` may wait for something of its own behind `m.Run`.
        let is_behind = matches!(end, End::Quiescent | End::TimedOut) && self.main_waits();
        if self.main_returned
            && matches!(end, End::Exited(_))
            && let Some(main) = self.goroutines.first_mut()
        {
            main.state = State::Ended;
        }
        Execution {
            sites: self.sites.all,
            objects: self.objects,
            goroutines: self.goroutines,
            test,
            events: self.events,
            prints: self.prints,
            main_ended: self.main_returned || test_ended && !is_behind,
            end,
            output,
            proven_leaks: self.ring.proven.then_some(self.proven),
            timers: u32::try_from(self.ring.timers).unwrap_or(u32::MAX),
            functions: u32::try_from(self.ring.functions).unwrap_or(u32::MAX),
            clock: self.ring.clock || !self.told,
            stretched: self.ring.stretched,
            looked: self.ring.looked,
            lost: self.ring.lost,
            told: self.told_at,
            outside: true,
        }
    }
}

fn is_system(entry: &str) -> bool {
    let own = [
        "runtime.",
        "os/signal.",
        "testing.(*M)",
        "testing.(*F)",
        "runtime/",
    ];
    own.iter().any(|it| entry.starts_with(it))
}

fn action(number: u8) -> Action {
    match number {
        kind::SEND => Action::Send,
        kind::RECEIVE => Action::Receive,
        kind::CLOSE => Action::Close,
        kind::LOCK | kind::RW_LOCK => Action::Lock,
        kind::TRY_LOCK | kind::RW_TRY_LOCK => Action::TryLock,
        kind::UNLOCK | kind::RW_UNLOCK => Action::Unlock,
        kind::R_LOCK => Action::RLock,
        kind::TRY_R_LOCK => Action::TryRLock,
        kind::R_UNLOCK => Action::RUnlock,
        kind::ADD => Action::Add,
        kind::DONE => Action::Done,
        kind::WAIT => Action::Wait,
        kind::ONCE => Action::Once,
        kind::COND_WAIT => Action::CondWait,
        kind::SLEEP => Action::Sleep,
        kind::SIGNAL => Action::Signal,
        kind::BROADCAST => Action::Broadcast,
        _ => Action::Select,
    }
}

/// Reasons by the overlay's numbers.
fn wait_reason(number: u8) -> WaitReason {
    match number {
        1 => WaitReason::Send,
        2 => WaitReason::Receive,
        3 => WaitReason::Select,
        4 => WaitReason::Forever,
        5 => WaitReason::Mutex,
        6 => WaitReason::RwMutexRead,
        7 => WaitReason::RwMutexWrite,
        8 => WaitReason::WaitGroup,
        9 => WaitReason::Cond,
        10 => WaitReason::Sleep,
        11 | 13 => WaitReason::Io,
        _ => WaitReason::Runtime,
    }
}
