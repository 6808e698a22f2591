//! Patching a function's entry.
//!
//! ```text
//!        image                              arena
//!  E     endbr64 (stays)              S     head (see the plan's stubs)
//!  P     jmp S          ───────────►  S+40  the first instructions, relocated
//!  P+5   ...            ◄───────────        jmp W
//!  W     goes on here
//! ```
//! The *window* P..W holds the instructions that were moved: at least the five bytes that the jump
//! overwrites. Whatever else of the image branches into the overwritten bytes would execute rubbish,
//! so every such branch is found and led to the moved copy:
//!
//! * a branch with a 32-bit displacement gets the copy as target (a site of the same group);
//! * one with 8 bits cannot reach the arena: the window grows until it contains the branch, which is
//!   then moved with the rest. What it leaves behind must be dead, so nothing else may lead into a
//!   grown window;
//! * a jump from another function is led to the copy in the same way (it is no call: it does not lead to the
//!   first byte), and a short one becomes a near one where padding follows it. C libraries have many:
//!   `mempcpy` computes its result and goes on behind the first instruction of `memmove`;
//! * a jump from the function itself to its first byte is a loop, not a call, and led to the copy too;
//! * what is not a direct branch (jump tables, pointers in data, symbols inside) is not led
//!   anywhere. Then, or where another rule fails, the function's callers are led to its stub
//!   instead, if all are direct branches; else it is refused.
//!
//! Return addresses and landing pads cannot lie in the window: a call may only stand at its end.

use iced_x86::{Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction};
use lockstep_binary::Image;

use crate::domain::Domain;
use crate::padding;
use crate::relocate::{Moved, Place, relocate};
use crate::survey::{Branch, BranchKind, Survey};

/// The branches to lead to a function's stub where its entry cannot be patched: all that can reach
/// it, if they are direct and have a displacement of 32 bits.
///
/// # Errors
/// What else may reach it.
pub(crate) fn callers(
    survey: &Survey<'_>,
    domain: &Domain<'_>,
    range: usize,
) -> Result<Vec<Branch>, String> {
    let entry = survey.ranges[range].address;
    if survey.is_address_taken(entry) {
        return Err("its address is taken".into());
    }
    let mut callers = Vec::new();
    for branch in survey.arriving_at(entry, entry + 1) {
        let is_own = domain.owner[branch.range as usize] == domain.owner[range];
        if is_own && branch.kind != BranchKind::Call {
            continue;
        }
        if branch.field == 0 {
            return Err(format!("the branch to it at {:#x} is short", branch.from));
        }
        callers.push(*branch);
    }
    Ok(callers)
}

/// Bytes of `jmp rel32`.
pub(crate) const JUMP: u64 = 5;
/// A window that would have to grow beyond this is given up.
const LARGEST_WINDOW: u64 = 256;

/// What is to be moved for one function.
#[derive(Debug)]
pub(crate) struct Window {
    /// E: the function's first byte.
    entry: u64,
    /// P: where the jump is written.
    pub start: u64,
    /// W: where execution goes on behind the moved instructions.
    pub end: u64,
    /// Branches elsewhere to lead to the copy.
    pub redirected: Vec<Branch>,
    /// Short jumps of other functions that become near ones, to lead to the copy: padding follows them.
    pub lengthened: Vec<Branch>,
    /// A call is moved.
    pub has_call: bool,
    instructions: Vec<Instruction>,
}

impl Window {
    /// Chooses the window of the function whose entry is range `range`, to hold what stands before
    /// `until` at least.
    ///
    /// # Errors
    /// Why the function cannot be patched.
    pub(crate) fn choose(
        image: &Image<'_>,
        survey: &Survey<'_>,
        domain: &Domain<'_>,
        range: usize,
        until: u64,
    ) -> Result<Self, String> {
        let whole = survey.ranges[range];
        if let Some(at) = survey.bodies[range].undecodable {
            return Err(format!("the bytes at {at:#x} are no instruction"));
        }
        let bytes = image
            .bytes_at(whole.address, whole.size)
            .unwrap_or_default();
        let mut decoder = Decoder::with_ip(64, bytes, whole.address, DecoderOptions::NONE);
        let mut window = Self {
            entry: whole.address,
            start: whole.address,
            end: whole.address,
            redirected: Vec::new(),
            lengthened: Vec::new(),
            has_call: false,
            instructions: Vec::new(),
        };
        let mut goal = JUMP;
        loop {
            while window.end < until.max(window.start + goal) && decoder.can_decode() {
                let instruction = decoder.decode();
                window.end = instruction.next_ip();
                if instruction.code() == Opcode::Endbr64 && window.instructions.is_empty() {
                    window.start = window.end;
                } else {
                    window.instructions.push(instruction);
                }
            }
            if window.end < window.start + JUMP {
                check_padding(image, survey, window.end, window.start + JUMP)?;
            }
            match window.find_redirected(image, survey, domain, range)? {
                Some(last) if last - window.start > LARGEST_WINDOW => {
                    return Err(format!(
                        "the short branch at {last:#x} leads back into its first bytes from too far"
                    ));
                }
                Some(last) => goal = last - window.start + 1,
                None => break,
            }
        }
        window.check_computed(survey)?;
        window.has_call = window.instructions.iter().any(is_call);
        Ok(window)
    }

    /// Moves the window's instructions, and forgets them.
    ///
    /// # Errors
    /// Why they cannot be moved.
    pub(crate) fn relocate(
        &mut self,
        place: Place,
        shadow: impl Fn(u64) -> Option<u64>,
        ways_out: &[u64],
    ) -> Result<Moved, String> {
        let mut instructions = std::mem::take(&mut self.instructions);
        for instruction in &mut instructions {
            // A loop back to the endbr64 that stays behind goes to what follows it.
            let is_loop = crate::part::has_near_branch(instruction)
                && instruction.flow_control() != FlowControl::Call
                && instruction.near_branch_target() == self.entry;
            if is_loop {
                instruction.set_near_branch64(self.start);
            }
        }
        let moved = relocate(&instructions, self.end, place, shadow, ways_out)?;
        for branch in self.redirected.iter().chain(&self.lengthened) {
            if moved.offset_of(self.copy_of(branch.target)).is_none() {
                return Err(format!(
                    "the branch at {:#x} leads between its first instructions",
                    branch.from
                ));
            }
        }
        Ok(moved)
    }

    /// The instruction that a branch to `target` means: the endbr64 has no copy.
    pub(crate) fn copy_of(&self, target: u64) -> u64 {
        target.max(self.start)
    }

    /// End of the bytes that the jump overwrites.
    pub(crate) fn overwritten_end(&self) -> u64 {
        self.start + JUMP
    }

    fn has_grown(&self) -> bool {
        self.instructions
            .last()
            .is_some_and(|last| last.ip() >= self.overwritten_end())
    }

    /// Bytes of other functions that are rewritten: nothing else may touch them.
    pub(crate) fn elsewhere(&self, range: usize) -> impl Iterator<Item = (u64, u64)> {
        let is_other = move |branch: &&Branch| branch.range as usize != range;
        let near = self.redirected.iter().filter(is_other);
        let near = near.map(|branch| (branch.from, branch.from + u64::from(branch.length)));
        let short = self.lengthened.iter();
        near.chain(short.map(|branch| (branch.from, branch.from + JUMP)))
    }

    /// Fills `redirected` and `lengthened`; `Some(address)` where the window must grow to hold the branch
    /// there.
    fn find_redirected(
        &mut self,
        image: &Image<'_>,
        survey: &Survey<'_>,
        domain: &Domain<'_>,
        range: usize,
    ) -> Result<Option<u64>, String> {
        let limit = if self.has_grown() {
            self.end
        } else {
            self.overwritten_end()
        };
        let mut redirected = Vec::new();
        let mut lengthened = Vec::new();
        let mut grow = None;
        for branch in survey.branches_to(self.entry, limit) {
            let is_own = domain.owner[branch.range as usize] == domain.owner[range]
                && domain.owner[range].is_some()
                || branch.range as usize == range;
            let is_call = branch.kind == BranchKind::Call;
            let is_table = branch.kind == BranchKind::Table;
            if branch.target <= self.start && (is_call || is_table || !is_own) {
                continue;
            }
            let is_inside = (self.start..self.end).contains(&branch.from);
            if is_inside {
                continue;
            }
            if is_table {
                return Err("a jump table leads into its first bytes".into());
            }
            if !is_own {
                if is_call || is_at_entry(image, survey, &branch) {
                    return Err(format!(
                        "the branch at {:#x}, in another function, leads into its first bytes",
                        branch.from
                    ));
                }
                if branch.field != 0 {
                    redirected.push(branch);
                } else if has_room(image, survey, &branch) {
                    lengthened.push(branch);
                } else {
                    return Err(format!(
                        "the short branch at {:#x}, in another function, leads into its first bytes",
                        branch.from
                    ));
                }
                continue;
            }
            if branch.field == 0 {
                if branch.range as usize != range || branch.from < self.start {
                    return Err(format!(
                        "the short branch at {:#x} leads into its first bytes",
                        branch.from
                    ));
                }
                grow = grow.max(Some(branch.from));
            } else {
                redirected.push(branch);
            }
        }
        self.redirected = redirected;
        self.lengthened = lengthened;
        Ok(grow)
    }

    fn check_computed(&self, survey: &Survey<'_>) -> Result<(), String> {
        let end = if self.has_grown() {
            self.end
        } else {
            self.overwritten_end()
        };
        if let Some(address) = survey.pointed_in(self.start + 1, end) {
            return Err(format!(
                "a pointer or a symbol leads to {address:#x}, among its first bytes"
            ));
        }
        // In a grown window the original behind the five bytes must be dead.
        match self.instructions.iter().find(|i| is_call(i)) {
            Some(call) if self.has_grown() => Err(format!(
                "the call at {:#x} stands in a loop that leads back into its first bytes",
                call.ip()
            )),
            _ => Ok(()),
        }
    }
}

/// Whether a branch may be moved with the entry of the function that it stands in.
fn is_at_entry(image: &Image<'_>, survey: &Survey<'_>, branch: &Branch) -> bool {
    let whole = survey.ranges[branch.range as usize];
    let bytes = image.bytes_at(whole.address, whole.size);
    let bytes = bytes.unwrap_or_default();
    let mut start = whole.address;
    for instruction in Decoder::with_ip(64, bytes, whole.address, DecoderOptions::NONE) {
        if instruction.code() == Opcode::Endbr64 && instruction.ip() == whole.address {
            start = instruction.next_ip();
        }
        if instruction.next_ip() >= start + JUMP {
            return branch.from < instruction.next_ip();
        }
    }
    true
}

/// Whether a short jump can become a near one where it stands.
fn has_room(image: &Image<'_>, survey: &Survey<'_>, branch: &Branch) -> bool {
    let end = branch.from + u64::from(branch.length);
    let more = JUMP - u64::from(branch.length);
    branch.kind == BranchKind::Jump
        && branch.length == 2
        && padding::behind(image, survey, end, more) == more
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

/// Bytes `from..to` behind a short function must be padding that nothing leads to.
fn check_padding(image: &Image<'_>, survey: &Survey<'_>, from: u64, to: u64) -> Result<(), String> {
    let size = padding::behind(image, survey, from, to - from);
    if from + size == to {
        return Ok(());
    }
    let short = |why: &str| Err(format!("too short for a jump, and {why}"));
    if image.bytes_at(from, to - from).is_none() {
        return short("its segment ends");
    }
    let next = survey.ranges.first_from(from);
    let next = survey.ranges.get(next);
    if next.is_some_and(|range| range.address == from + size) {
        return short("the next function follows");
    }
    let (at, end) = (from + size, to);
    if survey.pointed_in(at, end).is_some() || survey.is_led_to(at, end) {
        return short("something leads to what follows");
    }
    short("what follows is no padding")
}
