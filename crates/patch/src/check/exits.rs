//! Groups of sites, and the exits that returns and tail jumps lead to.

use std::collections::{HashMap, HashSet};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};
use lockstep_binary::RangeKind;
use lockstep_format::plan::{Plan, Site, function, mechanism, routine, site as row};

use super::{Checked, Memory, Window, is_call, is_conditional, is_near_branch};

/// Longest window of an exit, in instructions.
const MOST_MOVED: usize = 16;

impl Memory<'_, '_> {
    /// Checks the sites of a group: an entry or its callers, redirected branches, ways out; or one use
    /// of a slot.
    pub(super) fn check_group(
        &self,
        sites: &[Site],
        checked: &mut Checked,
        windows: &mut Vec<Window>,
    ) -> Result<(), String> {
        let mut copies: HashMap<u64, u64> = HashMap::new();
        let mut branches = Vec::new();
        // Jumps in padding, by address; those that a short jump leads to.
        let mut padding: HashMap<u64, u64> = HashMap::new();
        let mut short = Vec::new();
        // Short jumps that are near jumps now.
        let mut lengthened = Vec::new();
        for site in sites {
            let before = self.decode_before(site.address)?;
            let after = self.decode_after(self.bias + site.address)?;
            let leads = after.near_branch_target();
            if site.field == row::NO_FIELD {
                short.push((site, before, after));
            } else if self.entries.contains_key(&site.address) {
                let (window, moved) = self.check_entry(site, checked)?;
                let entry = self.bias + site.address;
                copies.extend(moved);
                // A branch to an endbr64 that stays goes to what follows it.
                if let Some(first) = copies.get(&entry).copied() {
                    copies.insert(entry - 4, first);
                }
                windows.push(window);
            } else if is_near_branch(&before) && before.code() == after.code() {
                branches.push((before, leads));
            } else if after.code() != Code::Jmp_rel32_64 {
                if sites.len() > 1 {
                    return Err(format!("{:#x} is no part of a group", site.address));
                }
                self.check_slot_use(site.address)?;
                checked.slots += 1;
            } else if before.code() == Code::Jmp_rel8_64 && site.length == 5 {
                lengthened.push((site, before, leads));
            } else if self.is_in_function(site.address) {
                let end = self.check_window(site.address, leads, &mut copies, checked)?;
                let overwritten = end.max(site.address + 5);
                self.check_padding(end, overwritten)?;
                windows.push((site.address, overwritten, end));
            } else {
                let after = self.ranges.partition_point(|range| range.1 <= site.address);
                let before = after.checked_sub(1).ok_or("padding before all functions")?;
                self.check_padding(self.ranges[before].1, site.address + 5)?;
                padding.insert(site.address, leads);
                windows.push((site.address, site.address + 5, site.address));
            }
        }
        for (site, before, leads) in lengthened {
            let mut end = site.address + before.len() as u64;
            if copies.get(&before.near_branch_target()) == Some(&leads) {
                checked.redirected += 1;
            } else {
                end = self.check_window(site.address, leads, &mut copies, checked)?;
            }
            let overwritten = end.max(site.address + 5);
            self.check_padding(end, overwritten)?;
            windows.push((site.address, overwritten, end));
        }
        for (site, before, after) in short {
            let slot = after.near_branch_target().wrapping_sub(self.bias);
            let exit = padding.remove(&slot);
            let exit = exit
                .ok_or_else(|| format!("the short jump at {:#x} leads to no jump", site.address))?;
            if is_near_branch(&before) && before.code() == after.code() {
                self.check_exit(&before, exit)?;
                checked.exits += 1;
            } else if after.code() == Code::Jmp_rel8_64 {
                let end = self.check_window(site.address, exit, &mut copies, checked)?;
                let overwritten = end.max(site.address + 2);
                self.check_padding(end, overwritten)?;
                windows.push((site.address, overwritten, end));
            } else {
                return Err(format!("{:#x} is no short jump", site.address));
            }
        }
        if let Some(at) = padding.keys().next() {
            return Err(format!("nothing leads to the jump at {at:#x}"));
        }
        for (before, leads) in branches {
            let target = before.near_branch_target();
            if copies.get(&target) == Some(&leads) || self.is_stub_of(leads, target) {
                checked.redirected += 1;
            } else {
                self.check_exit(&before, leads)?;
                checked.exits += 1;
            }
        }
        self.check_origins(&copies)
    }

    /// From where an instruction begins: what is overwritten but not moved is padding.
    fn check_padding(&self, from: u64, to: u64) -> Result<(), String> {
        let mut at = from;
        while at < to {
            let instruction = self.decode_before(at)?;
            let is_nop = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            if !is_nop {
                return Err(format!("{at:#x} is overwritten and no padding"));
            }
            at = instruction.next_ip() - self.bias;
        }
        Ok(())
    }

    fn is_in_function(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= address);
        after > 0 && address < self.ranges[after - 1].1
    }

    /// Checks a window that ends with a way out, and its exit at `copy`. Returns the window's end.
    fn check_window(
        &self,
        from: u64,
        copy: u64,
        copies: &mut HashMap<u64, u64>,
        checked: &mut Checked,
    ) -> Result<u64, String> {
        let mut own = HashMap::new();
        let mut pairs = Vec::new();
        let (mut at, mut here) = (from, copy);
        loop {
            let before = self.decode_before(at)?;
            own.insert(self.bias + at, here);
            let target = before.near_branch_target();
            let is_inner =
                is_conditional(&before) && self.decode_after(here)?.mnemonic() == before.mnemonic();
            if before.flow_control() != FlowControl::Next && !is_inner {
                self.check_exit(&before, here)?;
                checked.exits += 1;
                break;
            }
            let _ = target;
            let pieces = self.pieces(&before, here)?;
            here = pieces.last().map_or(here, Instruction::next_ip);
            at += before.len() as u64;
            pairs.push((before, pieces));
            if pairs.len() > MOST_MOVED {
                return Err(format!("the window at {from:#x} does not come to an end"));
            }
        }
        for (before, pieces) in &pairs {
            if is_call(before) {
                return Err(format!("the call at {:#x} was moved", before.ip()));
            }
            self.check_same(before, pieces, &own)
                .map_err(|what| format!("the copy of {:#x}: {what}", before.ip()))?;
            checked.moved += 1;
        }
        copies.extend(own);
        let last = self.decode_before(at)?;
        Ok(at + last.len() as u64)
    }

    /// Whether `before` is a way out that leads to an exit at a run-time address.
    pub(super) fn is_exit(&self, before: &Instruction, exit: u64) -> bool {
        let may_leave = is_near_branch(before) && !is_call(before)
            || matches!(
                before.flow_control(),
                FlowControl::Return | FlowControl::IndirectBranch
            );
        may_leave && self.is_arena(exit) && self.check_inline(exit).is_ok()
    }

    /// Checks that the exit at a run-time address does what the way out `before` did, and records.
    pub(super) fn check_exit(&self, before: &Instruction, exit: u64) -> Result<(), String> {
        let at = before.ip() - self.bias;
        let wrong = |what: &str| Err(format!("the exit of {at:#x} {what}"));
        let inline = self.check_inline(exit)?;
        let fast = self.decode_after(inline.then)?;
        let slow = self.decode_after(inline.slow_then)?;
        self.check_stands(inline.slow, slow.next_ip(), before.ip())?;
        self.check_stands(exit, fast.next_ip(), before.ip())?;
        let is_return = inline.routine == routine::RETURN;
        if !is_return && inline.routine != routine::HAND_OVER {
            return wrong("calls another routine");
        }
        let symbols = inline.words.len();
        if before.flow_control() == FlowControl::Return {
            let is_same = |after: &Instruction| {
                after.code() == before.code() && after.immediate16() == before.immediate16()
            };
            return match is_return && is_same(&fast) && is_same(&slow) && symbols == 0 {
                true => Ok(()),
                false => wrong("returns in another way"),
            };
        }
        let through = |after: &Instruction| {
            (after.code() == Code::Jmp_rm64 && after.is_ip_rel_memory_operand())
                .then(|| after.ip_rel_memory_address())
        };
        let slot = self.slot_of(before)?;
        if let (Some(real), Some(place)) = (slot, through(&fast)) {
            if through(&slow) != Some(place) || symbols > 0 {
                return wrong("jumps through different slots");
            }
            // An import that is recorded has a shadow slot.
            return match is_return {
                true if place == real => Ok(()),
                false if self.is_arena(place) => self.check_shadow(place, real),
                // What it defines itself has no shadow, and is recorded at its entry.
                false if place == real && self.defined.contains(&real.wrapping_sub(self.bias)) => {
                    Ok(())
                }
                _ => wrong("jumps through another slot"),
            };
        }
        let mut target = before.near_branch_target();
        if let Some(real) = slot.filter(|_| !is_near_branch(before)) {
            // A word of the image's own that leads to one of its functions.
            match self.words.get(&real.wrapping_sub(self.bias)) {
                Some(address) => target = self.bias + address,
                None => return wrong("jumps to what no word names"),
            }
        }
        if fast.code() != Code::Jmp_rel32_64 || slow.code() != Code::Jmp_rel32_64 {
            return wrong("does not jump on");
        }
        let (fast, slow) = (fast.near_branch_target(), slow.near_branch_target());
        if is_return {
            // The target is not recorded.
            let leads = |to: u64| to == target || self.counts(to, target);
            let is_right = leads(fast) && leads(slow) && symbols == 0;
            let is_recorded = self.entries.contains_key(&target.wrapping_sub(self.bias));
            return match is_right && !is_recorded {
                true => Ok(()),
                false => wrong("does not jump to where it did"),
            };
        }
        let Some(start) = self.stub_entered_at(slow) else {
            return wrong("leads to no stub");
        };
        let head = self.head(start)?;
        let is_function = self.is_stub_of(slow, target);
        let is_right = match head.is_inline {
            // It records the call too.
            true => fast == head.body && symbols == 1 && self.is_word_of(inline.words[0], start)?,
            false => fast == head.entry && symbols == 0,
        };
        match is_function && is_right {
            true => Ok(()),
            false => wrong("leads to another function"),
        }
    }

    /// The slot that a tail jump goes through, by itself or by way of the linkage table.
    fn slot_of(&self, before: &Instruction) -> Result<Option<u64>, String> {
        let mut jump = *before;
        if is_near_branch(before) {
            let target = before.near_branch_target().wrapping_sub(self.bias);
            if self.is_in_function(target) {
                return Ok(None);
            }
            jump = self.decode_before(target)?;
            if jump.code() == Code::Endbr64 {
                jump = self.decode_before(jump.next_ip() - self.bias)?;
            }
        }
        let is_through = match jump.code() {
            Code::Jmp_rm64 => true,
            // A stub that no processor predicts: what is loaded becomes a return address.
            Code::Mov_r64_rm64 if is_near_branch(before) => {
                self.returns_to(jump.op0_register(), jump.next_ip())?
            }
            _ => false,
        };
        let is_through = is_through && jump.is_ip_rel_memory_operand();
        Ok(is_through.then(|| jump.ip_rel_memory_address()))
    }

    /// Whether the code at a run-time address calls, perhaps behind jumps, code that returns to what a register holds.
    fn returns_to(&self, register: Register, mut at: u64) -> Result<bool, String> {
        let mut has_called = false;
        for _ in 0..4 {
            let instruction = self.decode_before(at.wrapping_sub(self.bias))?;
            match instruction.code() {
                Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => {}
                Code::Call_rel32_64 => has_called = true,
                _ => {
                    let stores = instruction.code() == Code::Mov_rm64_r64
                        && instruction.memory_base() == Register::RSP
                        && instruction.memory_displacement64() == 0
                        && instruction.op1_register() == register;
                    let next = self.decode_before(instruction.next_ip() - self.bias)?;
                    return Ok(has_called && stores && next.code() == Code::Retnq);
                }
            }
            at = instruction.near_branch_target();
        }
        Ok(false)
    }

    /// Whether an event word names the symbol of the stub that begins at an offset.
    fn is_word_of(&self, word: u32, start: u64) -> Result<bool, String> {
        use lockstep_format::symbol::from_staging_word;
        let own = lockstep_format::bytes::u32_at(self.after(self.arena + start)?, 0);
        let symbol = |word: u32| from_staging_word(u64::from(word)).map(|staged| staged.symbol);
        Ok(own.and_then(symbol) == symbol(word))
    }

    /// Nothing but direct branches leads into windows either.
    pub(super) fn check_computed(&self, windows: &[Window]) -> Result<(), String> {
        let hits = |address: u64| {
            let after = windows.partition_point(|(start, ..)| *start < address);
            after > 0 && address < windows[after - 1].1
        };
        for lead in self.leads.borrow().iter() {
            if !self.is_arena(*lead) && hits(lead.wrapping_sub(self.bias)) {
                return Err(format!(
                    "moved code leads into what was moved, at {lead:#x}"
                ));
            }
        }
        for (place, target) in &self.words {
            if hits(*target) {
                return Err(format!("the word at {place:#x} leads into what was moved"));
            }
        }
        for symbol in self.image.function_symbols() {
            if hits(symbol.address) {
                return Err(format!("a symbol stands at {:#x}, moved", symbol.address));
            }
        }
        for range in self.image.ranges() {
            let pads = self.image.landing_pads(&range).unwrap_or_default();
            if let Some(pad) = pads.iter().find(|pad| hits(**pad)) {
                return Err(format!("the landing pad {pad:#x} was moved"));
            }
        }
        Ok(())
    }

    /// All or nothing: every `ret` of a function with patched returns, and every jump from it to
    /// another function, was rewritten; none of other functions was.
    pub(super) fn check_whole(&self, plan: &Plan<'_>, windows: &[Window]) -> Result<(), String> {
        let moved = |address: u64| {
            let after = windows.partition_point(|(start, ..)| *start <= address);
            after > 0 && address < windows[after - 1].2
        };
        let sites: HashSet<u64> = plan.sites().map(|site| site.address).collect();
        let own = || plan.functions().filter(|f| f.origin == function::OWN);
        let entries: HashSet<u64> = own().map(|f| f.address).collect();
        for f in own() {
            let bytes = self.image.bytes_at(f.address, f.length).unwrap_or_default();
            let is_patched = f.mechanism == mechanism::PATCHED_RETURNS;
            for instruction in Decoder::with_ip(64, bytes, f.address, DecoderOptions::NONE) {
                let at = instruction.ip();
                let target = instruction.near_branch_target();
                let leaves = instruction.flow_control() == FlowControl::Return
                    || is_near_branch(&instruction)
                        && !is_call(&instruction)
                        && target != f.address
                        && entries.contains(&target);
                let is_written = moved(at) || sites.contains(&at);
                if leaves && is_patched && !is_written {
                    return Err(format!("the way out at {at:#x} was left as it is"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn range_bounds(image: &lockstep_binary::Image<'_>) -> Vec<(u64, u64)> {
        let ranges = image.ranges();
        let code = ranges.iter().filter(|range| range.kind != RangeKind::Plt);
        code.map(|range| (range.address, range.end())).collect()
    }
}
