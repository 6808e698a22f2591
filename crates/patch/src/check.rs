//! Applies a plan to a copy of its image, as the probe would, and decodes the result again: the slow
//! oracle of this crate. It knows the picture in `lockstep_format::plan` and the instruction set,
//! and shares no code with what makes plans.

mod counted;

use std::collections::{BTreeMap, HashMap, HashSet};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use lockstep_binary::{Image, Kind, RangeKind};
use lockstep_format::bytes::{u32_at, u64_at};
use lockstep_format::plan::{Plan, Site, fixup, routine, stub as layout};
use lockstep_format::symbol::{FIRST_FUNCTION, event_word, from_staging_word};

/// From a stub's entry to its body.
const BODY: u64 = (layout::INLINE - layout::ENTRY) as u64;

/// What was checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// Function entries that lead to a stub.
    pub entries: usize,
    /// Instructions in stubs that do what the ones they stand for did.
    pub moved: usize,
    /// Branches that were led to a stub's copy.
    pub redirected: usize,
    /// Calls and jumps through a slot that use the shadow slot now.
    pub slots: usize,
}

/// Applies `plan` to the image in `file`, loaded at `bias` with its arena at `arena`, and compares
/// what the processor would execute with what it would have executed.
///
/// # Errors
/// The first thing that is not as it should be.
pub fn check(plan: &Plan<'_>, file: &[u8], bias: u64, arena: u64) -> Result<Checked, String> {
    let image = Image::parse(file).map_err(|error| error.to_string())?;
    if plan.is_fixed() != (image.kind() == Kind::Fixed) || plan.is_fixed() && bias != 0 {
        return Err("the plan and the image disagree on where the image lies".into());
    }
    let memory = Memory::new(plan, &image, bias, arena)?;
    let mut checked = Checked::default();
    let groups = groups(plan);
    let mut windows = Vec::new();
    for sites in groups.values() {
        if let Some(window) = memory.check_group(sites, &mut checked)? {
            windows.push(window);
        }
    }
    windows.sort_unstable();
    memory.check_branches(&windows)?;
    Ok(checked)
}

fn groups(plan: &Plan<'_>) -> BTreeMap<u32, Vec<Site>> {
    let mut groups: BTreeMap<u32, Vec<Site>> = BTreeMap::new();
    for site in plan.sites() {
        groups.entry(site.group).or_default().push(site);
    }
    groups
}

/// Offsets at which stubs are entered: those with a symbol, and those that entries jump to.
fn stubs(plan: &Plan<'_>) -> HashSet<u64> {
    let with_symbol = plan
        .fixups()
        .filter(|f| matches!(f.kind, fixup::SYMBOL_32 | fixup::LEAF_32))
        .filter(|f| f.at % layout::ALIGNMENT == 0)
        .map(|f| u64::from(f.at + layout::ENTRY));
    let entries = plan
        .sites()
        .filter(|site| site.new != site.old)
        .map(|site| u64::from(site.target));
    with_symbol.chain(entries).collect()
}

/// The loaded image before and after, and the arena.
struct Memory<'i, 'a> {
    image: &'i Image<'a>,
    /// Text after patching, by segment.
    patched: Vec<(u64, Vec<u8>)>,
    arena_bytes: Vec<u8>,
    bias: u64,
    arena: u64,
    symbols: u32,
    /// Where the page of counters lies.
    counters: u64,
    /// Where stubs begin.
    stubs: HashSet<u64>,
    /// Dynamic symbol of each slot.
    imports: HashMap<u64, u32>,
}

/// A patched entry: first byte overwritten, end of the overwritten, end of what was moved.
type Window = (u64, u64, u64);

impl<'i, 'a> Memory<'i, 'a> {
    fn new(plan: &Plan<'_>, image: &'i Image<'a>, bias: u64, arena: u64) -> Result<Self, String> {
        let mut code = plan.code().to_vec();
        let counters = arena + code.len().next_multiple_of(4096) as u64;
        for f in plan.fixups() {
            let at = f.at as usize;
            let here = arena.wrapping_add(u64::from(f.at));
            let value = match f.kind {
                fixup::RELATIVE_32 => {
                    let value = bias.wrapping_add(f.value).wrapping_sub(here) as i64;
                    let value = i32::try_from(value)
                        .map_err(|_| format!("fix-up at {:#x} does not reach", f.at))?;
                    code[at..at + 4].copy_from_slice(&value.to_le_bytes());
                    continue;
                }
                fixup::COUNTER_32 => {
                    let value = counters + 8 * f.value - (here + 4);
                    code[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
                    continue;
                }
                fixup::IMAGE_64 => bias.wrapping_add(f.value),
                fixup::ARENA_64 => arena.wrapping_add(f.value),
                fixup::THREAD_32 => {
                    code[at..at + 4].copy_from_slice(&(-8i32).to_le_bytes());
                    continue;
                }
                kind => {
                    let symbol = FIRST_FUNCTION + f.value as u32;
                    let word = event_word(symbol, kind == fixup::LEAF_32);
                    code[at..at + 4].copy_from_slice(&word.to_le_bytes());
                    continue;
                }
            };
            code[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let mut patched: Vec<(u64, Vec<u8>)> = image
            .segments()
            .iter()
            .map(|segment| (segment.address, segment.bytes.to_vec()))
            .collect();
        let mut last_end = 0;
        let mut sites: Vec<Site> = plan.sites().collect();
        sites.sort_by_key(|site| site.address);
        for site in sites {
            let (length, field) = (site.length as usize, site.field as usize);
            if site.address < last_end {
                return Err(format!("two sites overlap at {:#x}", site.address));
            }
            last_end = site.address + length as u64;
            let old = image.bytes_at(site.address, length as u64);
            if old != Some(&site.old[..length]) {
                return Err(format!(
                    "the site at {:#x} expects other bytes",
                    site.address
                ));
            }
            let next = bias + site.address + field as u64 + 4;
            let value = (arena + u64::from(site.target)).wrapping_sub(next) as i64;
            let value = i32::try_from(value)
                .map_err(|_| format!("the site at {:#x} does not reach", site.address))?;
            let mut new = site.new;
            new[field..field + 4].copy_from_slice(&value.to_le_bytes());
            let segment = patched
                .iter_mut()
                .rev()
                .find(|(start, _)| *start <= site.address);
            let (start, bytes) = segment.ok_or("a site outside the image")?;
            let at = (site.address - *start) as usize;
            bytes[at..at + length].copy_from_slice(&new[..length]);
        }
        Ok(Self {
            image,
            patched,
            arena_bytes: code,
            bias,
            arena,
            symbols: plan.symbols(),
            counters,
            stubs: stubs(plan),
            imports: image.imports().iter().map(|i| (i.slot, i.symbol)).collect(),
        })
    }

    /// The bytes from a run-time address on, after patching.
    fn after(&self, address: u64) -> Result<&[u8], String> {
        let none = || format!("{address:#x} is neither image nor arena");
        if let Some(bytes) = address
            .checked_sub(self.arena)
            .and_then(|offset| self.arena_bytes.get(offset as usize..))
            .filter(|bytes| !bytes.is_empty())
        {
            return Ok(bytes);
        }
        let inside = address.wrapping_sub(self.bias);
        let segment = self
            .patched
            .iter()
            .rev()
            .find(|(start, _)| *start <= inside);
        let (start, bytes) = segment.ok_or_else(none)?;
        bytes.get((inside - start) as usize..).ok_or_else(none)
    }

    fn decode_after(&self, address: u64) -> Result<Instruction, String> {
        let bytes = self.after(address)?;
        Ok(Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode())
    }

    /// The instruction that the file has at an address, as if loaded.
    fn decode_before(&self, address: u64) -> Result<Instruction, String> {
        let bytes = self.image.bytes_from(address).ok_or("outside the image")?;
        let ip = self.bias + address;
        Ok(Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode())
    }

    /// An entry with its redirected branches, or a use of a slot.
    fn check_group(&self, sites: &[Site], checked: &mut Checked) -> Result<Option<Window>, String> {
        // The entry's jump stands first. A group without one leads all branches to one function, or
        // one call or jump through a slot, elsewhere.
        let entry = match sites {
            [entry, ..] if entry.new != entry.old => entry,
            [first, ..] if is_near_branch(&self.decode_before(first.address)?) => {
                self.check_callers(sites)?;
                checked.redirected += sites.len();
                return Ok(None);
            }
            [site] => {
                self.check_slot_use(site.address)?;
                checked.slots += 1;
                return Ok(None);
            }
            _ => return Err("a group without entry has several sites".into()),
        };
        let stub = self.arena + u64::from(entry.target);
        let jump = self.decode_after(self.bias + entry.address)?;
        if jump.code() != Code::Jmp_rel32_64 || jump.near_branch_target() != stub {
            return Err(format!("{:#x} does not jump to its stub", entry.address));
        }
        self.check_head(u64::from(entry.target))?;
        checked.entries += 1;
        // A routine may run before the stub that records.
        let body = self.decode_after(stub + BODY)?;
        let next = body.near_branch_target();
        let leads_on = body.code() == Code::Jmp_rel32_64
            && self.is_arena(next)
            && self.stubs.contains(&(next - self.arena));
        let stub = if leads_on {
            self.check_head(next - self.arena)?;
            next
        } else {
            stub
        };
        let (end, copies) = self.check_body(entry.address, stub + BODY, checked)?;
        for site in &sites[1..] {
            let before = self.decode_before(site.address)?;
            let after = self.decode_after(self.bias + site.address)?;
            let target = before.near_branch_target().max(self.bias + entry.address);
            if before.code() != after.code()
                || copies.get(&target) != Some(&after.near_branch_target())
            {
                return Err(format!("the branch at {:#x} leads elsewhere", site.address));
            }
            checked.redirected += 1;
        }
        Ok(Some((entry.address, entry.address + 5, end)))
    }

    /// Branches to one function that lead to its stub.
    fn check_callers(&self, sites: &[Site]) -> Result<(), String> {
        for site in sites {
            let before = self.decode_before(site.address)?;
            let after = self.decode_after(self.bias + site.address)?;
            let stub = after.near_branch_target();
            if before.code() != after.code() || !self.is_stub_of(stub, before.near_branch_target())
            {
                return Err(format!("the branch at {:#x} leads elsewhere", site.address));
            }
        }
        Ok(())
    }

    /// Whether a run-time address is the stub of the function at another, whose entry stays.
    fn is_stub_of(&self, stub: u64, entry: u64) -> bool {
        if self.counts(stub, entry) {
            return true;
        }
        let body = || self.decode_after(stub + BODY).ok();
        self.is_arena(stub)
            && self.check_head(stub - self.arena).is_ok()
            && body().is_some_and(|body| {
                body.code() == Code::Jmp_rel32_64 && body.near_branch_target() == entry
            })
    }

    /// The fixed part of a stub.
    fn check_head(&self, offset: u64) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("the stub at +{offset:#x}: {what}"));
        let stub = self.arena + offset;
        let first = self.decode_after(stub)?;
        let routine_at = |address: u64| (address.wrapping_sub(self.arena) / 8) as usize;
        if first.code() != Code::Call_rm64 || !first.is_ip_rel_memory_operand() || first.len() != 6
        {
            return wrong("does not begin with a call of a routine");
        }
        let routine = routine_at(first.ip_rel_memory_address());
        let word = u32_at(self.after(stub - u64::from(layout::ENTRY))?, 0).map(u64::from);
        let symbols = FIRST_FUNCTION..FIRST_FUNCTION + self.symbols;
        let is_symbol = word
            .and_then(from_staging_word)
            .is_some_and(|staged| symbols.contains(&staged.symbol));
        match routine {
            routine::ENTER => {
                let shape = self.after(stub)?;
                if shape[6..11] != [0x48, 0x8d, 0x64, 0x24, 8]
                    || shape[17..22] != [0x48, 0x8d, 0x64, 0x24, 0xf8]
                    || shape[28] != 0xc3
                {
                    return wrong("is no call-through");
                }
                let exit = self.decode_after(stub + 22)?;
                if routine_at(exit.ip_rel_memory_address()) != routine::EXIT {
                    return wrong("does not end with EXIT");
                }
                if !is_symbol {
                    return wrong("has no symbol");
                }
            }
            routine::INSTANT | routine::JUMP | routine::VFORK if !is_symbol => {
                return wrong("has no symbol");
            }
            _ => {
                let jump = self.decode_after(stub + 6)?;
                if jump.near_branch_target() != stub + BODY {
                    return wrong("does not go on at its body");
                }
            }
        }
        Ok(())
    }

    /// Compares the moved instructions of the entry at `from` with their copy at `copy`. Returns the
    /// end of the moved originals, and the copy of each original (run-time addresses).
    fn check_body(
        &self,
        from: u64,
        copy: u64,
        checked: &mut Checked,
    ) -> Result<(u64, HashMap<u64, u64>), String> {
        // First pass: which copy belongs to which original.
        let mut copies = HashMap::new();
        let mut pairs = Vec::new();
        let (mut at, mut here) = (from, copy);
        let end = loop {
            let before = self.decode_before(at)?;
            let after = self.decode_after(here)?;
            if after.code() == Code::Jmp_rel32_64 && after.near_branch_target() == self.bias + at {
                break at;
            }
            copies.insert(self.bias + at, here);
            let pieces = self.pieces(&before, here)?;
            here = pieces.last().map_or(here, Instruction::next_ip);
            pairs.push((before, pieces));
            at += before.len() as u64;
            // A call stands last. What never goes on may have more behind it: up to the padding.
            let next_stub = || {
                let entry = here + u64::from(layout::ENTRY) - self.arena;
                self.stubs.contains(&entry)
            };
            let is_over = || next_stub() || self.after(here).map_or(true, |bytes| bytes[0] == 0xcc);
            if is_call(&before) || ends(&before) && is_over() {
                break at;
            }
            if pairs.len() > 400 {
                return Err(format!("the stub of {from:#x} does not come to an end"));
            }
        };
        for (before, pieces) in &pairs {
            self.check_same(before, pieces, &copies)
                .map_err(|what| format!("the copy of {:#x}: {what}", before.ip()))?;
            checked.moved += 1;
        }
        Ok((end, copies))
    }

    fn is_arena(&self, address: u64) -> bool {
        (self.arena..self.arena + self.arena_bytes.len() as u64).contains(&address)
    }

    /// The instructions at `here` that stand for `before`.
    fn pieces(&self, before: &Instruction, here: u64) -> Result<Vec<Instruction>, String> {
        let count = if is_call(before) {
            2
        } else if is_counted(before) {
            let first = self.decode_after(here)?;
            let second = self.decode_after(first.next_ip())?;
            // Alone where the target was moved too; else: to +2, over it, and the jump.
            if second.code() == Code::Jmp_rel8_64 && first.near_branch_target() == second.next_ip()
            {
                3
            } else {
                1
            }
        } else {
            1
        };
        let mut pieces = Vec::new();
        let mut at = here;
        for _ in 0..count {
            let piece = self.decode_after(at)?;
            at = piece.next_ip();
            pieces.push(piece);
        }
        Ok(pieces)
    }

    fn check_same(
        &self,
        before: &Instruction,
        pieces: &[Instruction],
        copies: &HashMap<u64, u64>,
    ) -> Result<(), String> {
        let last = pieces.last().ok_or("nothing stands for it")?;
        if is_call(before) {
            let push = &pieces[0];
            let literal = self.after(push.ip_rel_memory_address())?;
            if push.code() != Code::Push_rm64 || u64_at(literal, 0) != Some(before.next_ip()) {
                return Err("pushes another return address".into());
            }
            if last.flow_control() == FlowControl::IndirectBranch {
                let mut expected = *before;
                expected.set_code(Code::Jmp_rm64);
                return self.check_plain(&expected, last);
            }
            return self.check_target(last, before.near_branch_target());
        }
        if is_near_branch(before) {
            let target = before.near_branch_target();
            // Endbr64 stays behind: a loop to it goes to what follows it.
            let first = self.decode_before(target.wrapping_sub(self.bias));
            let stays = first.is_ok_and(|first| first.code() == Code::Endbr64);
            let expected = copies.get(&if stays { target + 4 } else { target });
            let is_condition =
                before.condition_code() == last.condition_code() || pieces.len() == 3;
            if !is_condition || before.mnemonic() != pieces[0].mnemonic() {
                return Err("branches on another condition".into());
            }
            return self.check_target(last, expected.copied().unwrap_or(target));
        }
        self.check_plain(before, last)
    }

    /// A branch to `target`, or to the stub that stands for it.
    fn check_target(&self, branch: &Instruction, target: u64) -> Result<(), String> {
        let leads = branch.near_branch_target();
        if is_near_branch(branch) && (leads == target || self.is_stub_of(leads, target)) {
            Ok(())
        } else {
            Err(format!("does not lead to {target:#x}"))
        }
    }

    /// The same instruction but for its place; a slot may have become its shadow.
    fn check_plain(&self, before: &Instruction, after: &Instruction) -> Result<(), String> {
        if before.is_ip_rel_memory_operand() && self.is_arena(after.ip_rel_memory_address()) {
            let shadow = after.ip_rel_memory_address();
            return self.check_shadow(shadow, before.ip_rel_memory_address());
        }
        if before == after {
            Ok(())
        } else {
            Err(format!("is {after:?} instead of {before:?}"))
        }
    }

    /// Whether the shadow slot leads to a stub that calls through the real one (run-time address).
    fn check_shadow(&self, shadow: u64, real: u64) -> Result<(), String> {
        let stub = u64_at(self.after(shadow)?, 0).ok_or("a shadow slot outside the arena")?;
        if !self.is_arena(stub) {
            return Err("a shadow slot leads out of the arena".into());
        }
        self.check_head(stub - self.arena)?;
        let body = self.decode_after(stub + BODY)?;
        let goes =
            body.code() == Code::Jmp_rm64 && self.same_import(body.ip_rel_memory_address(), real);
        let first = self.decode_after(stub)?;
        let is_through = first.ip_rel_memory_address() == self.arena;
        let call = self.decode_after(stub + 11)?;
        let calls = !is_through
            || call.code() == Code::Call_rm64
                && self.same_import(call.ip_rel_memory_address(), real);
        if goes && calls {
            Ok(())
        } else {
            Err(format!("the stub of slot {real:#x} uses another slot"))
        }
    }

    /// Two slots (run-time addresses) of one symbol are the same to a caller.
    fn same_import(&self, a: u64, b: u64) -> bool {
        let symbol = |slot: u64| self.imports.get(&slot.wrapping_sub(self.bias));
        a == b || symbol(a).is_some() && symbol(a) == symbol(b)
    }

    fn check_slot_use(&self, address: u64) -> Result<(), String> {
        let before = self.decode_before(address)?;
        let after = self.decode_after(self.bias + address)?;
        if before.len() != after.len() || before.code() != after.code() {
            return Err(format!("the call at {address:#x} is another instruction"));
        }
        self.check_shadow(
            after.ip_rel_memory_address(),
            before.ip_rel_memory_address(),
        )
    }

    /// No direct branch that can still be executed leads into overwritten bytes.
    fn check_branches(&self, windows: &[Window]) -> Result<(), String> {
        let window_of = |address: u64| {
            let after = windows.partition_point(|(start, ..)| *start <= address);
            after.checked_sub(1).map(|index| windows[index])
        };
        let ranges = self.image.ranges();
        for range in ranges.iter().filter(|range| range.kind != RangeKind::Plt) {
            let bytes = self.after(self.bias + range.address)?;
            let bytes = &bytes[..range.size as usize];
            let original = self.image.bytes_at(range.address, range.size);
            let original = original.unwrap_or_default();
            let ip = self.bias + range.address;
            for instruction in Decoder::with_ip(64, original, ip, DecoderOptions::NONE) {
                let at = instruction.ip() - self.bias;
                if window_of(at).is_some_and(|(start, _, end)| (start..end).contains(&at)) {
                    continue;
                }
                let offset = (at - range.address) as usize;
                let now =
                    Decoder::with_ip(64, &bytes[offset..], instruction.ip(), DecoderOptions::NONE)
                        .decode();
                if !is_near_branch(&now) {
                    continue;
                }
                let target = now.near_branch_target().wrapping_sub(self.bias);
                let hits =
                    window_of(target).is_some_and(|(start, end, _)| start < target && target < end);
                if hits {
                    return Err(format!(
                        "the branch at {at:#x} leads into overwritten bytes"
                    ));
                }
            }
        }
        Ok(())
    }
}

fn is_near_branch(instruction: &Instruction) -> bool {
    instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

/// loop, loope, loopne, jrcxz: they have a short form only.
fn is_counted(instruction: &Instruction) -> bool {
    instruction.is_jcx_short() || instruction.is_loop() || instruction.is_loopcc()
}

fn ends(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
    )
}
