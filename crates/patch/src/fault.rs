//! Where a fault can happen: the calls of the routine FAULT, at every way into the function that it
//! is put into.
//!
//! The bytes are part of the contract in [`lockstep_format::plan`]. A function with a fault is
//! recorded by call-through, whatever its code allows, and its code is never entered behind the call of FAULT, so that whatever
//! leads to the function meets it.

use std::cell::Cell;

use lockstep_binary::{c_name, display_name, original_name};
use lockstep_format::fault::{Kind, place};
use lockstep_format::plan::{mechanism, routine, stub};

use rustc_hash::FxHashSet;

use crate::arena::{Arena, Code, Head, Link, Stub};
use crate::choice::ChoiceRow;

/// A fault, as far as planning goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The function that it is put into: the name that people write, the linkage name, or the name
    /// that C has for a Fortran binding. A C++ name may lack its parameters.
    pub at: String,
    /// What happens.
    pub kind: Kind,
    /// Of a redirection: the function that is called instead.
    pub to: String,
    /// Whether anything is recorded. If not, nothing but this function is touched, and what the next
    /// field says.
    pub records: bool,
    /// Whether threads must be told apart: functions in which a thread may begin are noticed.
    pub tells_threads: bool,
}

/// How the next stub calls FAULT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Faulted {
    routine: usize,
    is_instead: bool,
    leads_elsewhere: bool,
    /// Recorded arguments are those before it.
    takes_arguments_first: bool,
    flags: u32,
}

/// The fault of a plan, and in how many functions it can happen.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    fault: Option<Fault>,
    found: Cell<u32>,
    /// Functions in which a thread may begin.
    beginnings: FxHashSet<Vec<u8>>,
    /// The image is a library.
    is_library: bool,
}

impl Faults {
    pub(crate) fn new(
        fault: Option<&Fault>,
        beginnings: FxHashSet<Vec<u8>>,
        is_library: bool,
    ) -> Self {
        Self {
            beginnings,
            fault: fault.cloned(),
            found: Cell::new(0),
            is_library,
        }
    }

    /// Whether there is a fault.
    pub(crate) fn is_any(&self) -> bool {
        self.fault.is_some()
    }

    /// How the function of this linkage name is to be faulted; each is asked for once.
    pub(crate) fn of(&self, linkage: &[u8]) -> Option<Faulted> {
        let fault = self.fault.as_ref()?;
        let routine = if fault.is_at(linkage) {
            self.found.set(self.found.get() + 1);
            routine::FAULT
        } else if fault.kind == Kind::Swap || self.beginnings.contains(linkage) {
            routine::FOLLOW
        } else {
            return None;
        };
        let linkage = String::from_utf8_lossy(linkage);
        let is_fortran = c_name(&linkage) != linkage;
        let flag = |holds: bool, flag: u32| if holds { flag } else { 0 };
        Some(Faulted {
            routine,
            is_instead: routine == routine::FOLLOW || fault.kind.is_instead(),
            leads_elsewhere: routine == routine::FAULT && fault.kind == Kind::Redirect,
            // What the function gets is what is recorded.
            takes_arguments_first: fault.kind != Kind::Argument,
            flags: flag(is_fortran, place::BY_REFERENCE) | flag(self.is_library, place::LIBRARY),
        })
    }

    /// Whether the function of this linkage name is to be faulted.
    pub(crate) fn is_at(&self, linkage: &[u8]) -> bool {
        self.fault
            .as_ref()
            .is_some_and(|fault| fault.is_at(linkage))
    }

    /// The same of a library function. One that returns twice, or reads its return address, cannot
    /// change places with another.
    pub(crate) fn of_import(&self, name: &[u8], mechanism: u32) -> Option<Faulted> {
        let is_swap = self
            .fault
            .as_ref()
            .is_some_and(|fault| fault.kind == Kind::Swap);
        let is_bound = matches!(mechanism, mechanism::INSTANT | mechanism::VFORK);
        if is_swap && is_bound {
            return None;
        }
        self.of(name)
    }

    /// Why this library function is not faulted although it should be.
    pub(crate) fn refused(&self, name: &[u8], mechanism: u32) -> Option<String> {
        let fault = self.fault.as_ref().filter(|fault| fault.is_at(name))?;
        let is_bound = matches!(mechanism, mechanism::INSTANT | mechanism::VFORK);
        (fault.kind == Kind::Swap && is_bound)
            .then(|| "it returns twice or reads its return address: it cannot change places".into())
    }

    /// What the plan says of it.
    pub(crate) fn row(&self) -> Option<ChoiceRow> {
        self.fault.as_ref().map(|fault| ChoiceRow {
            kind: lockstep_format::plan::choice::FAULT,
            pattern: fault.at.clone(),
            found: self.found.get(),
        })
    }
}

impl Fault {
    /// Whether the fault is put into the function of this linkage name.
    pub(crate) fn is_at(&self, linkage: &[u8]) -> bool {
        is_named(linkage, &self.at)
    }

    /// The image whose nameless function is meant: `IMAGE` of `IMAGE+0x1234`.
    #[must_use]
    pub fn image(&self) -> Option<&str> {
        let (image, address) = self.at.rsplit_once("+0x")?;
        let is_number = !address.is_empty() && address.bytes().all(|it| it.is_ascii_hexdigit());
        (is_number && !image.is_empty()).then_some(image)
    }

    /// Whether this function is patched, whatever else is chosen; `None` where the choice decides.
    pub(crate) fn wants(&self, linkage: &[u8]) -> Option<bool> {
        if self.is_at(linkage) {
            Some(true)
        } else if self.records {
            None
        } else {
            // Any call may be the next one.
            Some(self.kind == Kind::Swap)
        }
    }

    /// Everything that makes one plan differ from another.
    pub(crate) fn parts(&self) -> [&[u8]; 4] {
        let records: &[u8] = match (self.records, self.tells_threads) {
            (true, true) => b"rt",
            (true, false) => b"r",
            (false, true) => b"t",
            (false, false) => b"-",
        };
        [
            self.kind.word().as_bytes(),
            self.at.as_bytes(),
            self.to.as_bytes(),
            records,
        ]
    }
}

/// Whether people may mean the function of this linkage name by `wanted`.
pub fn is_named(linkage: &[u8], wanted: &str) -> bool {
    let linkage = String::from_utf8_lossy(linkage);
    let original = original_name(&linkage);
    if [&*linkage, original, &c_name(&linkage)].contains(&wanted) {
        return true;
    }
    // Without a name: `IMAGE+0x1234`.
    if linkage.starts_with("+0x") && wanted.ends_with(&*linkage) {
        return true;
    }
    let display = display_name(original);
    display == wanted || without_parameters(&display) == wanted
}

/// `f` of `f(int, g(char)) const`.
fn without_parameters(display: &str) -> &str {
    let Some(end) = display.rfind(')') else {
        return display;
    };
    let mut depth = 0usize;
    for (at, byte) in display.bytes().enumerate().take(end + 1).rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &display[..at];
        }
    }
    display
}

impl Arena {
    /// A stub with a call of FAULT: before it, or at the head of the body.
    pub(crate) fn add_faulted(&mut self, fault: Faulted, head: Head, body: &Code) -> Stub {
        let add = |arena: &mut Self, body: &Code| match (arena.is_plain, head) {
            (true, _) => arena.add_plain(body),
            // The body must be gone through.
            (false, Head::ThroughSlot { .. }) if !fault.is_instead => {
                arena.add_ordinary(Head::Through, body)
            }
            (false, _) => arena.add_ordinary(head, body),
        };
        let mut call = call_of(fault.routine, fault.flags);
        let mut stub;
        if fault.is_instead {
            stub = add(self, body);
            self.align();
            let entry = self.here();
            let next = Link::Arena {
                offset: u64::from(stub.entry),
            };
            call.links.push((call.bytes.len() as u32 + 1, next));
            call.bytes.extend_from_slice(&[0xe9, 0, 0, 0, 0]);
            self.place(&call);
            if fault.leads_elsewhere {
                self.elsewhere.push(self.here());
                self.bytes.extend_from_slice(&[0xcc; 6]);
            }
            stub.entry = entry;
        } else if fault.takes_arguments_first
            && let Some(late) = behind_arguments(&call, body)
        {
            stub = add(self, &late);
        } else {
            let length = call.bytes.len() as u32;
            stub = add(self, &followed_by(call, body));
            stub.body += length;
        }
        // Its body is entered through FAULT only.
        (stub.is_inline, stub.has_range) = (false, false);
        stub
    }

    /// A stub of an import. Where its calls are recorded elsewhere, the probe leads them past it to the body, which
    /// stands behind the entry as in every stub: no call of FAULT is on that way.
    pub(crate) fn add_import(&mut self, head: Head, body: &Code) -> Stub {
        const TO_BODY: u32 = stub::INLINE - stub::ENTRY;
        let fault = self.fault.take();
        let Some(fault) = fault else {
            if !self.is_plain {
                return self.add_ordinary(head, body);
            }
            let stub = self.add_plain(body);
            self.pad(stub.entry + TO_BODY);
            self.place(body);
            return stub;
        };
        let call = call_of(fault.routine, fault.flags);
        if !fault.is_instead && !self.is_plain {
            // The stub goes on where FAULT is called, and that leads to the body.
            let late = Some(&call).filter(|_| fault.takes_arguments_first);
            let late = late.and_then(|call| behind_arguments(call, body));
            let late = late.unwrap_or_else(|| followed_by(call, body));
            let head = match head {
                Head::ThroughSlot { .. } => Head::Through,
                head => head,
            };
            let stub = self.add_ordinary(head, body);
            self.align();
            let at = self.here();
            self.place(&late);
            self.lead_to_body(&stub, head, at);
            return stub;
        }
        let mut stub = if self.is_plain {
            self.add_plain(body)
        } else {
            self.add_ordinary(head, body)
        };
        let mut call = call;
        self.align();
        let entry = self.here();
        let next = Link::Arena {
            offset: u64::from(stub.entry),
        };
        call.links.push((call.bytes.len() as u32 + 1, next));
        call.bytes.extend_from_slice(&[0xe9, 0, 0, 0, 0]);
        self.place(&call);
        if fault.leads_elsewhere {
            self.elsewhere.push(self.here());
        }
        self.pad(entry + TO_BODY);
        self.place(body);
        stub.entry = entry;
        stub
    }

    fn pad(&mut self, end: u32) {
        self.bytes.resize((end - self.base()) as usize, 0xcc);
    }

    /// Code that records nothing: a body.
    pub(crate) fn add_plain(&mut self, body: &Code) -> Stub {
        self.align();
        let at = self.here();
        self.place(body);
        Stub {
            start: at,
            entry: at,
            body: at,
            words: [None; 2],
            is_leaf: false,
            is_inline: false,
            has_range: false,
        }
    }

    fn place(&mut self, code: &Code) {
        let at = self.here();
        self.bytes.extend_from_slice(&code.bytes);
        for (offset, link) in &code.links {
            self.link(at + offset, *link);
        }
    }

    /// Leads every redirected call to `to`, when all stubs are known.
    pub(crate) fn lead_elsewhere(&mut self, to: Link) {
        for at in std::mem::take(&mut self.elsewhere) {
            let (opcode, field): (&[u8], u32) = match to {
                Link::Slot { .. } => (&[0xff, 0x25], 2),
                _ => (&[0xe9], 1),
            };
            let place = (at - self.base()) as usize;
            self.bytes[place..place + opcode.len()].copy_from_slice(opcode);
            self.link(at + field, to);
        }
    }
}

/// One piece of code behind another.
fn followed_by(mut first: Code, second: &Code) -> Code {
    let length = first.bytes.len() as u32;
    let links = second.links.iter().map(|(at, link)| (at + length, *link));
    first.links.extend(links);
    first.bytes.extend_from_slice(&second.bytes);
    first
}

/// A body that takes arguments ([`Arena::arguments_body`]) or reads the time, with the call between that and the rest, so
/// that the arguments of a call that hangs are known, and a delay is part of the call; `None` for other bodies.
///
/// ```text
/// B+0   ff 15 ..     call *[ENTER_ARGUMENTS | ENTER_TIMED | ENTER_HOLD]
/// B+6   e9 .. 90     jmp C
/// B+12  the capture program
/// C+0   the call
/// C+13  ff 25 ..     jmp *[real slot]
/// ```
fn behind_arguments(call: &Code, body: &Code) -> Option<Code> {
    const TAKE: usize = 6;
    const JUMP: usize = 6;
    let routines = [
        routine::ENTER_ARGUMENTS,
        routine::ENTER_TIMED,
        routine::ENTER_HOLD,
    ];
    let tables = routines.map(|it| 8 * it as u64);
    let takes = |(at, link): &(u32, Link)| {
        *at == 2 && matches!(link, Link::Arena { offset } if tables.contains(offset))
    };
    let (take, jump) = (body.links.iter().find(|it| takes(it))?, body.links.get(1)?);
    let program = body.bytes.get(TAKE + JUMP..)?;
    let mut bytes = body.bytes.get(..TAKE)?.to_vec();
    bytes.push(0xe9);
    bytes.extend_from_slice(&(program.len() as u32 + 1).to_le_bytes());
    bytes.push(0x90);
    bytes.extend_from_slice(program);
    let length = bytes.len() as u32;
    let mut links = vec![*take];
    links.extend(call.links.iter().map(|(at, link)| (at + length, *link)));
    bytes.extend_from_slice(&call.bytes);
    links.push((bytes.len() as u32 + 2, jump.1));
    bytes.extend_from_slice(body.bytes.get(TAKE..TAKE + JUMP)?);
    Some(Code { bytes, links })
}

/// `call *[routine]` and the flags in an instruction that does nothing.
fn call_of(routine: usize, flags: u32) -> Code {
    let mut bytes = vec![0xff, 0x15, 0, 0, 0, 0, 0x0f, 0x1f, 0x80];
    debug_assert_eq!(bytes.len(), 6 + place::FLAGS);
    bytes.extend_from_slice(&flags.to_le_bytes());
    debug_assert_eq!(bytes.len(), 6 + place::NEXT);
    let table = Link::Arena {
        offset: 8 * routine as u64,
    };
    Code {
        bytes,
        links: vec![(2, table)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_write() {
        let cases = [
            ("step", "step", true),
            ("step.constprop.0", "step", true),
            ("step.isra.0.constprop.1", "step", true),
            ("step.cold", "step", false),
            ("step.isra.0.cold", "step", false),
            ("inner.3", "inner", true),
            ("steps", "step", false),
            ("mpi_send_", "MPI_Send", true),
            ("mpi_send_", "mpi_send_", true),
            ("_ZN3foo3barEv", "foo::bar()", true),
            ("_ZN3foo3barEv", "foo::bar", true),
            ("_ZN3foo3barEv", "bar", false),
            ("_ZN3foo3barEv", "_ZN3foo3barEv", true),
            ("_ZN1aclEi", "a::operator()", true),
        ];
        for (linkage, wanted, expected) in cases {
            assert_eq!(
                is_named(linkage.as_bytes(), wanted),
                expected,
                "{linkage} {wanted}"
            );
        }
        assert_eq!(without_parameters("f(int, g(char)) const"), "f");
        assert_eq!(without_parameters("a)b"), "a)b");
    }
}
