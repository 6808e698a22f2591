//! The oracle: what the events of a program are, found by running it one instruction at a time.
//!
//! Slow and simple on purpose. `stepper.c` tells instruction and stack pointer of every step in the
//! program's own code; from these alone:
//!
//! * arriving at a function's first byte with a return address freshly pushed, from anywhere, is a
//!   **call** (also out of a library, that is, a callback);
//! * arriving there with the stack as the innermost call left it, from another function, is a **tail**
//!   call: that frame hands over;
//! * a frame has **returned** when the stack pointer is above the place of its return address, however
//!   that came about (`ret`, an exception, `longjmp`);
//! * leaving the program's code through a slot of the dynamic linker is a call, or tail call, of the
//!   library function that the slot is for.
//!
//! A jump to the function's own first byte is a loop and no call. Programs with one thread and one
//! stack only.

use crate::elf::Elf;
use crate::{Recipe, Scratch, command};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use std::path::Path;

/// An event, as `lockstep` records them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A function of the program (by its first address) or of a library (by its name) is called.
    Call(Callee),
    /// The innermost open call returns.
    Return,
    /// The innermost open call hands over to the next and ends with it.
    Tail,
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Callee {
    /// The function with this index in [`Elf::functions`].
    Own(usize),
    /// A function of some library.
    Imported(String),
}

/// Calls that the start-up code and the tools of the compiler make, and that nobody wants to see.
const UNSEEN: &[&str] = &[
    "__libc_start_main",
    "__cxa_finalize",
    "__gmon_start__",
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "mcount",
    "_mcount",
    "__fentry__",
    "backtrace",
];

/// The instruction and stack pointer before a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Instruction pointer, as an address in the file.
    pub instruction: u64,
    /// Stack pointer.
    pub stack: u64,
}

/// Steps through `program`, of which `elf` says what its functions are, and gives its events and its
/// exit status.
///
/// # Panics
/// If it cannot be stepped through.
#[must_use]
pub fn events(elf: &Elf, program: &Path, arguments: &[&str]) -> (Vec<Event>, i32) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/stepper.c");
    let stepper = Recipe::new(&source.to_string_lossy()).flag("-O2").build();
    let scratch = Scratch::new("steps");
    let output = scratch.join("steps");
    let mut run = command::command(&[&stepper]);
    for address in [elf.entry, elf.code.0, elf.code.1] {
        run.arg(format!("{address:#x}"));
    }
    run.arg(&output).arg(program).args(arguments);
    let outcome = command::run(&mut run);
    assert!(
        outcome.status != 125 && !outcome.timed_out,
        "single-stepping failed: {outcome:#?}"
    );
    let bytes = std::fs::read(&output).expect("the stepper has written its steps");
    let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
    let steps = bytes.chunks_exact(16).map(|pair| Step {
        instruction: word(&pair[..8]),
        stack: word(&pair[8..]),
    });
    (follow(elf, steps), outcome.status)
}

/// The events that these steps make.
pub fn follow(elf: &Elf, steps: impl Iterator<Item = Step>) -> Vec<Event> {
    let mut walk = Walk::default();
    for step in steps {
        walk.step(elf, step);
    }
    walk.events
}

#[derive(Default)]
struct Walk {
    events: Vec<Event>,
    /// Where the return address of each open call lies.
    frames: Vec<u64>,
    /// The step before, if it was in the program's code.
    before: Option<Step>,
    /// The library function that the program is on its way to.
    leaving_for: Option<String>,
}

impl Walk {
    fn step(&mut self, elf: &Elf, now: Step) {
        while self.frames.last().is_some_and(|slot| now.stack > *slot) {
            self.frames.pop();
            self.events.push(Event::Return);
        }
        let inside = elf.code.0 <= now.instruction && now.instruction < elf.code.1;
        let here = elf.function_at(now.instruction);
        if let Some(entered) = elf.function_from(now.instruction) {
            let from = self
                .before
                .and_then(|step| elf.function_at(step.instruction));
            let tail = self.frames.last() == Some(&now.stack);
            // With the stack as it was, the same function's first byte is the head of a loop.
            if !(tail && from == Some(entered)) {
                self.enter(Callee::Own(entered), now.stack, tail);
            }
        } else if here.is_none() {
            if let Some(name) = inside.then(|| leads_to(elf, now.instruction)).flatten() {
                self.leaving_for = Some(name);
            }
            if !inside
                && let Some(name) = self.leaving_for.take()
                && !UNSEEN.contains(&name.as_str())
            {
                let tail = self.frames.last() == Some(&now.stack);
                self.enter(Callee::Imported(name), now.stack, tail);
            }
        }
        if here.is_some() {
            self.leaving_for = leads_to(elf, now.instruction);
        }
        self.before = inside.then_some(now);
    }

    fn enter(&mut self, callee: Callee, slot: u64, tail: bool) {
        if tail {
            self.events.push(Event::Tail);
        } else {
            self.frames.push(slot);
        }
        self.events.push(Event::Call(callee));
    }
}

/// The library function to which the instruction at `address` leads, if it is a call or jump through
/// a slot.
fn leads_to(elf: &Elf, address: u64) -> Option<String> {
    let instruction = decode(elf, address)?;
    let through_slot = matches!(
        instruction.flow_control(),
        FlowControl::IndirectCall | FlowControl::IndirectBranch
    ) && instruction.op0_kind() == OpKind::Memory
        && instruction.memory_base() == Register::RIP;
    through_slot
        .then(|| elf.slots.get(&instruction.ip_rel_memory_address()).cloned())
        .flatten()
}

fn decode(elf: &Elf, address: u64) -> Option<Instruction> {
    let code = elf.code_at(address);
    let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
    (instruction.code() != Code::INVALID).then_some(instruction)
}

/// `events` as text, one line each.
#[must_use]
pub fn lines(elf: &Elf, events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event {
            Event::Call(Callee::Own(index)) => format!("call {}", elf.functions[*index].label()),
            Event::Call(Callee::Imported(function)) => format!("call {function}"),
            Event::Return => "return".to_owned(),
            Event::Tail => "tail".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Function;

    /// Two functions, at 0x10 and 0x20, sixteen bytes each, of `nop`.
    fn two_functions() -> Elf {
        let function = |start: u64| Function {
            range: (start, start + 16),
            name: None,
        };
        Elf {
            name: "two".to_owned(),
            entry: 0x10,
            code: (0x10, 0x30),
            functions: vec![function(0x10), function(0x20)],
            cold: Vec::new(),
            slots: Default::default(),
            addresses: Default::default(),
            text: vec![(0x10, vec![0x90; 32])],
        }
    }

    fn follow_all(steps: &[(u64, u64)]) -> Vec<Event> {
        let steps = steps
            .iter()
            .map(|&(instruction, stack)| Step { instruction, stack });
        follow(&two_functions(), steps)
    }

    fn call(index: usize) -> Event {
        Event::Call(Callee::Own(index))
    }

    #[test]
    fn a_call_a_return_and_a_loop_to_the_first_byte() {
        let steps = [
            (0x10, 100),
            (0x11, 100),
            (0x20, 92),
            (0x21, 92),
            (0x20, 92),
            (0x12, 100),
            (0x500, 108),
        ];
        let expected = [call(0), call(1), Event::Return, Event::Return];
        assert_eq!(follow_all(&steps), expected);
    }

    #[test]
    fn a_tail_call_hands_over() {
        let steps = [(0x10, 100), (0x11, 100), (0x20, 100), (0x500, 108)];
        let expected = [call(0), Event::Tail, call(1), Event::Return];
        assert_eq!(follow_all(&steps), expected);
    }

    #[test]
    fn a_jump_over_frames_ends_them_all() {
        let steps = [(0x10, 100), (0x20, 80), (0x10, 60), (0x22, 80), (0x15, 100)];
        let expected = [call(0), call(1), call(0), Event::Return, Event::Return];
        assert_eq!(follow_all(&steps), expected);
    }
}
