//! The ways out of a function, and where each can be rewritten.
//!
//! A way out is a `ret`, or a jump to another function (a tail call). Each is led to an *exit* in the
//! arena, which records the return and then returns, or jumps on. All of a function's ways out are
//! rewritten, parts included, or none: a patched return behind an unpatched entry would make returns
//! without calls.
//!
//! ```text
//!      image                                arena
//!      lea  ...      ┐                      the moved instructions
//! S    add  $8,%rsp  │ jmp exit  ─────────► record the return
//!      pop  %rbx     │                      ret
//!      ret           ┘
//!      nop             padding
//! ```
//! In this order:
//!
//! 1. a branch with a 32-bit displacement gets the exit as its target;
//! 2. five bytes for a jump: the `ret` with the padding behind it, or a *window* that ends there and
//!    begins with straight instructions before it, which move into the exit;
//! 3. two to four bytes for a short jump to a near jump in the padding between functions; a short
//!    branch is led there itself.
//!
//! What was moved with the function's entry ends in the exit without a site of its own.
//!
//! Nothing may lead into a window but to its start: no branch, table, pointer, symbol, label or
//! landing pad. Branches of the function itself with a 32-bit displacement are led to the moved copy.
//! Moved instructions may fault: then an unwinder looks at an address in the arena, so programs that
//! throw from signal handlers at a load just before a `ret` lose that exception. Calls are never
//! moved.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use lockstep_binary::{Image, RangeKind};

use crate::computed::{Inside, inside};
use crate::domain::Domain;
use crate::entry::{JUMP, Window};
use crate::flow::{Leaving, WayOut};
use crate::padding::{Padding, behind};
use crate::part::has_near_branch;
use crate::survey::{Branch, BranchKind, Survey};

/// Bytes of `jmp rel8`.
const SHORT: u64 = 2;

/// How a way out is led to its exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// It moves with the function's entry.
    Entry,
    /// By another displacement of 32 bits.
    Displacement,
    /// By a jump at the window's start.
    Jump,
    /// By a short jump at the window's start to a jump in padding.
    Short { padding: u64 },
    /// By another displacement of 8 bits, to a jump in padding.
    ShortDisplacement { padding: u64 },
}

/// A way out and how it is rewritten.
#[derive(Debug, Clone)]
pub(crate) struct Exit {
    pub way: WayOut,
    pub write: Write,
    /// First of the instructions that move; the way out itself where none do.
    pub start: u64,
    /// Those before the way out.
    pub moved: Vec<Instruction>,
    /// Branches elsewhere in the function to lead to the copy of one of them.
    pub redirected: Vec<Branch>,
}

impl Exit {
    /// End of the bytes that are rewritten or dead.
    pub(crate) fn end(&self) -> u64 {
        let written = match self.write {
            Write::Jump => JUMP,
            Write::Short { .. } => SHORT,
            _ => 0,
        };
        self.way.end().max(self.start + written)
    }
}

/// Why a function's returns cannot be patched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unpatchable {
    pub reason: String,
    /// Room in padding nearby would help, or an entry window up to this address.
    pub help: Option<Help>,
}

/// What would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Help {
    /// Room in padding nearby.
    Padding,
}

impl From<String> for Unpatchable {
    fn from(reason: String) -> Self {
        Self { reason, help: None }
    }
}

/// What choosing works with.
pub(crate) struct Exits<'c, 'i, 'a> {
    pub image: &'i Image<'a>,
    pub survey: &'c Survey<'a>,
    pub domain: &'c Domain<'a>,
    pub function: u32,
    /// The function's entry window, where its entry is patched.
    pub entry: Option<&'c Window>,
    /// Landing pads of its ranges.
    pads: Vec<u64>,
    /// Nothing is known of where its computed jumps lead.
    is_anywhere: bool,
}

impl<'c, 'i, 'a> Exits<'c, 'i, 'a> {
    /// Looks at a function as a whole.
    ///
    /// # Errors
    /// Why none of its ways out shall be rewritten.
    pub(crate) fn new(
        image: &'i Image<'a>,
        survey: &'c Survey<'a>,
        domain: &'c Domain<'a>,
        function: u32,
        entry: Option<&'c Window>,
    ) -> Result<Self, Unpatchable> {
        let mut exits = Self {
            image,
            survey,
            domain,
            function,
            entry,
            pads: Vec::new(),
            is_anywhere: false,
        };
        for range in domain.ranges_of(function) {
            exits.look_at(range)?;
        }
        Ok(exits)
    }

    fn look_at(&mut self, range: usize) -> Result<(), Unpatchable> {
        let (survey, domain) = (self.survey, self.domain);
        let whole = &survey.ranges[range];
        let body = &survey.bodies[range];
        if body.undecodable.is_some() {
            return Err("not all of it is instructions".to_owned().into());
        }
        if body.traits.falls_out {
            return Err("it goes on behind its end".to_owned().into());
        }
        if survey.symbol_in(whole.address + 1, whole.end()).is_some() {
            return Err("it has several entries".to_owned().into());
        }
        // Its first byte is for all to jump to; a part's is not.
        let is_entry = domain.functions[self.function as usize].range == range;
        let from = whole.address + u64::from(is_entry);
        let is_foreign = |branch: &&Branch| {
            domain.owner[branch.range as usize] != Some(self.function)
                && branch.kind != BranchKind::Table
        };
        let branches = survey.arriving_at(from, whole.end());
        if branches
            .iter()
            .any(|branch| branch.kind == BranchKind::Call)
        {
            return Err("it is called in its middle".to_owned().into());
        }
        if let Some(branch) = branches.iter().find(is_foreign) {
            return Err(format!(
                "the branch at {:#x}, in another function, leads into it",
                branch.from
            )
            .into());
        }
        match self.image.landing_pads(whole) {
            Some(pads) => self.pads.extend(pads),
            None => self.is_anywhere = true,
        }
        for way in survey.ways_out_of(range) {
            self.check_way(way)?;
        }
        Ok(())
    }

    fn check_way(&mut self, way: &WayOut) -> Result<(), Unpatchable> {
        let survey = self.survey;
        match way.leaving {
            Leaving::Return { .. } | Leaving::Slot { .. } => Ok(()),
            Leaving::Odd => Err("it returns in an unusual way".to_owned().into()),
            Leaving::Jump { target } | Leaving::Conditional { target } => {
                let Some(range) = survey.range_of(target) else {
                    return if self.image.is_code(target) {
                        Ok(())
                    } else {
                        Err("it jumps out of the image's code".to_owned().into())
                    };
                };
                let is_own = self.domain.owner[range] == Some(self.function);
                let whole = &survey.ranges[range];
                let is_function = whole.address == target && whole.kind != RangeKind::Part;
                let is_other_part = || {
                    let owner = self.domain.owner[range];
                    owner.is_some_and(|owner| self.domain.functions[owner as usize].range != range)
                };
                if is_own || whole.kind == RangeKind::Plt || is_function && !is_other_part() {
                    Ok(())
                } else {
                    Err("it jumps into another function".to_owned().into())
                }
            }
            Leaving::Computed(jump) => {
                match inside(self.image, survey, self.domain, way, &jump) {
                    Some(Inside::Known) => {}
                    Some(Inside::Anywhere) => self.is_anywhere = true,
                    None => {
                        return Err("a computed jump may be a tail call".to_owned().into());
                    }
                }
                Ok(())
            }
        }
    }

    /// Whether a way out leaves the function: jumps to other parts do not.
    fn leaves(&self, way: &WayOut) -> bool {
        match way.leaving {
            Leaving::Jump { target } | Leaving::Conditional { target } => {
                self.domain.function_at(self.survey, target) != Some(self.function)
            }
            Leaving::Computed(_) => false,
            Leaving::Return { .. } | Leaving::Slot { .. } | Leaving::Odd => true,
        }
    }

    /// Chooses how each way out is rewritten. `padding` is room for short jumps to lead to; what was
    /// taken from it stays taken.
    ///
    /// # Errors
    /// Why one of them cannot be.
    pub(crate) fn choose(
        &self,
        mut padding: Option<&mut Padding>,
    ) -> Result<Vec<Exit>, Unpatchable> {
        let mut exits: Vec<Exit> = Vec::new();
        let window = self.entry.map_or((0, 0), |entry| (entry.start, entry.end));
        for range in self.domain.ranges_of(self.function) {
            let mut floor = self.survey.ranges[range].address;
            for way in self.survey.ways_out_of(range) {
                if !self.leaves(way) {
                    continue;
                }
                let exit = if (window.0..window.1).contains(&way.at) {
                    plain(way, Write::Entry)
                } else {
                    if (window.0..window.1).contains(&floor) {
                        floor = window.1;
                    }
                    self.choose_one(way, floor, padding.as_deref_mut())?
                };
                floor = exit.end();
                exits.push(exit);
            }
        }
        self.check_together(&exits)?;
        Ok(exits)
    }

    fn choose_one(
        &self,
        way: &WayOut,
        floor: u64,
        padding: Option<&mut Padding>,
    ) -> Result<Exit, Unpatchable> {
        let is_conditional = matches!(way.leaving, Leaving::Conditional { .. });
        let is_branch = matches!(way.leaving, Leaving::Jump { .. }) || is_conditional;
        if is_branch && way.field != 0 {
            return Ok(plain(way, Write::Displacement));
        }
        let length = u64::from(way.length);
        if length >= JUMP && !is_conditional {
            return Ok(plain(way, Write::Jump));
        }
        let behind = self.padding_behind(way, is_conditional);
        let mut short = None;
        let mut why = None;
        if !is_conditional {
            let mut start = way.at;
            let mut before = way.before;
            loop {
                let room = way.end() - start + behind;
                if room >= SHORT && short.is_none() {
                    short = Some(start);
                }
                if room >= JUMP {
                    return self.window(way, start, Write::Jump);
                }
                let size = before & 0xff;
                before >>= 8;
                let next = start - size;
                if size == 0 || next < floor {
                    why.get_or_insert_with(|| "a return has no room before it".to_owned());
                    break;
                }
                if let Err(reason) = self.check_inside(way, next, start) {
                    why = Some(reason);
                    break;
                }
                start = next;
            }
        }
        let reason = why.unwrap_or_else(|| "a conditional jump out of it is short".to_owned());
        if is_branch {
            let Some(padding) = padding else {
                return Err(helped(reason));
            };
            return match padding.take(way.end()) {
                Some(padding) => Ok(plain(way, Write::ShortDisplacement { padding })),
                None => Err((reason + ", and no padding near enough").into()),
            };
        }
        let Some(start) = short else {
            return Err(reason.into());
        };
        let Some(padding) = padding else {
            return Err(helped(reason));
        };
        match padding.take(start + SHORT) {
            Some(padding) => self.window(way, start, Write::Short { padding }),
            None => Err((reason + ", and no padding near enough").into()),
        }
    }

    fn padding_behind(&self, way: &WayOut, is_conditional: bool) -> u64 {
        let length = u64::from(way.length);
        if is_conditional || length >= JUMP || self.is_anywhere {
            return 0;
        }
        let size = behind(self.image, self.survey, way.end(), JUMP - length);
        let pad = self.pads.iter().filter(|pad| **pad >= way.end()).min();
        pad.map_or(size, |pad| size.min(pad - way.end()))
    }

    /// Whether a window of `way` may begin at `start`, one instruction before `former`: nothing may
    /// lead to `former` but what can be led elsewhere.
    fn check_inside(&self, way: &WayOut, start: u64, former: u64) -> Result<(), String> {
        let led = |what: &str| {
            Err(format!(
                "{what} leads between a return and what is before it"
            ))
        };
        if self.is_anywhere {
            return led("perhaps a computed jump");
        }
        if self.survey.pointed_in(start + 1, former + 1).is_some() {
            return led("a pointer or a symbol");
        }
        if self
            .pads
            .iter()
            .any(|pad| (start + 1..=former).contains(pad))
        {
            return led("an unwinder");
        }
        for branch in self.survey.branches_to(start + 1, former + 1) {
            if branch.kind == BranchKind::Table {
                return led("a jump table");
            }
            if branch.kind == BranchKind::Call {
                return led("a call");
            }
            let window = self.entry.map_or((0, 0), |entry| (entry.start, entry.end));
            let is_moved = (window.0..window.1).contains(&branch.from)
                || (start..way.end()).contains(&branch.from);
            if branch.field == 0 || is_moved {
                return led("a short branch");
            }
        }
        Ok(())
    }

    fn window(&self, way: &WayOut, start: u64, write: Write) -> Result<Exit, Unpatchable> {
        let mut exit = plain(way, write);
        exit.start = start;
        if start == way.at {
            return Ok(exit);
        }
        let bytes = self
            .image
            .bytes_at(start, way.at - start)
            .unwrap_or_default();
        exit.moved = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE)
            .into_iter()
            .collect();
        if exit.moved.iter().any(Instruction::is_invalid) {
            return Err("not all of it is instructions".to_owned().into());
        }
        let inside = self.survey.branches_to(start + 1, way.end());
        exit.redirected = inside.collect();
        Ok(exit)
    }

    /// Windows do not know of each other while they are chosen.
    fn check_together(&self, exits: &[Exit]) -> Result<(), Unpatchable> {
        let mut windows: Vec<(u64, u64)> = exits
            .iter()
            .filter(|exit| exit.write != Write::Entry)
            .map(|exit| (exit.start, exit.end()))
            .collect();
        let mut redirected: Vec<&Branch> = exits.iter().flat_map(|exit| &exit.redirected).collect();
        if let Some(entry) = self.entry {
            windows.push((entry.start, entry.end));
            redirected.extend(&entry.redirected);
        }
        windows.sort_unstable();
        let conflict =
            || Unpatchable::from("two of its windows are in each other's way".to_owned());
        if windows.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(conflict());
        }
        let window_of = |address: u64| {
            let after = windows.partition_point(|window| window.0 <= address);
            let window = windows[after.checked_sub(1)?];
            (address < window.1).then_some(window)
        };
        if redirected
            .iter()
            .any(|branch| window_of(branch.from).is_some())
        {
            return Err(conflict());
        }
        let entry = self.domain.functions[self.function as usize].range;
        let entry = self.survey.ranges[entry].address;
        for moved in exits.iter().flat_map(|exit| &exit.moved) {
            let is_branch = has_near_branch(moved) && moved.flow_control() != FlowControl::Next;
            if !is_branch {
                continue;
            }
            let target = moved.near_branch_target();
            let is_inside = window_of(target).is_some_and(|window| window.0 < target);
            if is_inside || target == entry {
                return Err(conflict());
            }
        }
        Ok(())
    }
}

fn helped(reason: String) -> Unpatchable {
    Unpatchable {
        reason,
        help: Some(Help::Padding),
    }
}

fn plain(way: &WayOut, write: Write) -> Exit {
    Exit {
        way: *way,
        write,
        start: way.at,
        moved: Vec::new(),
        redirected: Vec::new(),
    }
}
