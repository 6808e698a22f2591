//! Applies a plan to a copy of its image, as the probe would, and decodes the result again: the slow
//! oracle of this crate. It knows the picture in `lockstep_format::plan` and the instruction set,
//! and shares no code with what makes plans.
//!
//! What has several forms that do the same (inline code) is checked by what it may do: it saves what
//! it uses, touches nothing else, goes on where it should, and records the right symbol.

mod bind;
mod counted;
mod exits;
mod inline;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use lockstep_binary::{Image, Kind, RangeKind};
use lockstep_format::bytes::{u32_at, u64_at};
use lockstep_format::hold;
use lockstep_format::plan::{
    Origins, Plan, Site, StandsFor, fixup, origin, routine, site as row, stub as layout,
};
use lockstep_format::symbol::{FIRST_FUNCTION, event_word, from_staging_word};

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
    /// Returns and tail jumps that lead to an exit.
    pub exits: usize,
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
    let mut windows = Vec::new();
    for sites in groups(plan).values() {
        memory.check_group(sites, &mut checked, &mut windows)?;
    }
    windows.sort_unstable();
    memory.check_branches(&windows)?;
    memory.check_computed(&windows)?;
    memory.check_whole(plan, &windows)?;
    Ok(checked)
}

fn groups(plan: &Plan<'_>) -> BTreeMap<u32, Vec<Site>> {
    let mut groups: BTreeMap<u32, Vec<Site>> = BTreeMap::new();
    for site in plan.sites() {
        groups.entry(site.group).or_default().push(site);
    }
    groups
}

/// Offsets at which stubs begin: those with a symbol, and those of entries that run a routine.
fn stubs(plan: &Plan<'_>, code: &[u8]) -> HashSet<u64> {
    let aligned = |start: &u64| start.is_multiple_of(u64::from(layout::ALIGNMENT));
    // A symbol in the midst of inline code may be aligned by chance: what follows it is no WAITS, and no OBJECT.
    let begins = |start: &u64| {
        let at = *start as usize + layout::WAITS as usize;
        let does = 0..=hold::code::AWAIT_THROUGH;
        matches!(code.get(at..at + 4), Some([0 | 1, object, _, 0]) if does.contains(&(object & 15)))
    };
    let with_symbol = plan
        .fixups()
        .filter(|f| matches!(f.kind, fixup::SYMBOL_32 | fixup::LEAF_32))
        .map(|f| u64::from(f.at));
    let calls_routine = |start: &u64| {
        let at = *start as usize + layout::ENTRY as usize;
        code.get(at..at + 2) == Some(&[0xff, 0x15])
    };
    let hooks = plan
        .sites()
        .filter(|site| site.new != site.old)
        .map(|site| u64::from(site.target).wrapping_sub(u64::from(layout::ENTRY)))
        .filter(calls_routine);
    let all = with_symbol.chain(hooks);
    all.filter(aligned).filter(begins).collect()
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
    /// Address and length of each function, by its symbol.
    functions: Vec<(u64, u64)>,
    /// Where the page of counters lies.
    counters: u64,
    /// Where stubs begin.
    stubs: HashSet<u64>,
    /// Dynamic symbol of each slot.
    imports: HashMap<u64, u32>,
    /// Stub (offset of its start) of the function whose patched entry leads there, by address.
    entries: HashMap<u64, u64>,
    /// Addresses in the image that moved code leads to.
    leads: RefCell<Vec<u64>>,
    /// Slots of functions that the image defines itself.
    defined: HashSet<u64>,
    /// Words in data that point into code: place -> target.
    words: HashMap<u64, u64>,
    /// Where functions and their parts begin and end.
    ranges: Vec<(u64, u64)>,
    /// The image's lowest address, and what pieces of the arena stand for.
    low: u64,
    origins: Vec<[u8; origin::SIZE]>,
}

/// What was overwritten or moved: first byte, end of what nothing may lead into, end of what moved.
type Window = (u64, u64, u64);

/// What a stub's fixed part says.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// Run-time address of the body.
    body: u64,
    /// Records by inline code.
    is_inline: bool,
    /// Run-time address where it is entered.
    entry: u64,
    routine: usize,
}

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
            let mut new = site.new;
            if site.field != row::NO_FIELD {
                let next = bias + site.address + field as u64 + 4;
                let value = (arena + u64::from(site.target)).wrapping_sub(next) as i64;
                let value = i32::try_from(value)
                    .map_err(|_| format!("the site at {:#x} does not reach", site.address))?;
                new[field..field + 4].copy_from_slice(&value.to_le_bytes());
            }
            let segment = patched
                .iter_mut()
                .rev()
                .find(|(start, _)| *start <= site.address);
            let (start, bytes) = segment.ok_or("a site outside the image")?;
            let at = (site.address - *start) as usize;
            bytes[at..at + length].copy_from_slice(&new[..length]);
        }
        let mut memory = Self {
            image,
            patched,
            stubs: stubs(plan, plan.code()),
            arena_bytes: code,
            bias,
            arena,
            symbols: plan.symbols(),
            functions: plan.functions().map(|it| (it.address, it.length)).collect(),
            counters,
            imports: image.imports().iter().map(|i| (i.slot, i.symbol)).collect(),
            entries: HashMap::new(),
            leads: RefCell::default(),
            defined: image
                .imports()
                .iter()
                .filter(|import| import.is_defined)
                .map(|import| import.slot)
                .collect(),
            words: image.code_pointers().into_iter().collect(),
            ranges: Self::range_bounds(image),
            low: plan.extent().0,
            origins: plan.origins().rows().to_vec(),
        };
        for site in plan.sites().filter(|site| site.new != site.old) {
            if let Some(start) = memory.stub_entered_at(arena + u64::from(site.target)) {
                memory.entries.insert(site.address, start);
            }
        }
        Ok(memory)
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

    /// Offset of the stub that is entered at a run-time address.
    fn stub_entered_at(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.arena);
        let start = [layout::INLINE, layout::ENTRY]
            .iter()
            .map(|entry| offset.wrapping_sub(u64::from(*entry)))
            .find(|start| self.stubs.contains(start))?;
        let head = self.head(start).ok()?;
        (head.entry == address).then_some(start)
    }

    /// The stub whose entry the `jmp` at a site leads to, with what was moved.
    fn check_entry(
        &self,
        site: &Site,
        checked: &mut Checked,
    ) -> Result<(Window, HashMap<u64, u64>), String> {
        let stub = self.arena + u64::from(site.target);
        let jump = self.decode_after(self.bias + site.address)?;
        let start = self.stub_entered_at(stub).ok_or("leads to no stub")?;
        if jump.code() != Code::Jmp_rel32_64 || jump.near_branch_target() != stub {
            return Err(format!("{:#x} does not jump to its stub", site.address));
        }
        let head = self.head(start)?;
        checked.entries += 1;
        // A routine may run before the stub that records.
        let body = self.decode_after(head.body)?;
        let next = match body.code() {
            Code::Jmp_rel32_64 => self.stub_entered_at(body.near_branch_target()),
            _ => None,
        };
        let head = next.map_or(Ok(head), |next| self.head(next))?;
        let (end, copies) = self.check_body(site.address, &head, checked)?;
        Ok(((site.address, site.address + 5, end), copies))
    }

    /// Whether a run-time address is where calls of the function at another shall go: the entry of a
    /// stub whose body goes on at the entry, which stays, or to which the patched entry leads.
    fn is_stub_of(&self, stub: u64, entry: u64) -> bool {
        if self.counts(stub, entry) {
            return true;
        }
        let Some(start) = self.stub_entered_at(stub) else {
            return false;
        };
        let Ok(head) = self.head(start) else {
            return false;
        };
        if self.decode_after(head.body).is_ok_and(|body| {
            body.code() == Code::Jmp_rel32_64 && body.near_branch_target() == entry
        }) {
            return true;
        }
        let address = entry.wrapping_sub(self.bias);
        let patched = self.entries.get(&address).or_else(|| {
            let first = self.decode_before(address).ok()?;
            (first.code() == Code::Endbr64).then(|| self.entries.get(&(address + 4)))?
        });
        patched == Some(&start)
    }

    /// The fixed part of the stub that begins at an offset.
    fn head(&self, offset: u64) -> Result<Head, String> {
        let wrong = |what: &str| Err(format!("the stub at +{offset:#x}: {what}"));
        let start = self.arena + offset;
        let stub = start + u64::from(layout::ENTRY);
        let word = u32_at(self.after(start)?, 0).map(u64::from);
        let symbols = FIRST_FUNCTION..FIRST_FUNCTION + self.symbols;
        let staged = word.and_then(from_staging_word);
        let is_symbol = staged.is_some_and(|staged| symbols.contains(&staged.symbol));
        let first = self.decode_after(stub)?;
        if first.code() != Code::Call_rm64 || !first.is_ip_rel_memory_operand() {
            let entry = start + u64::from(layout::INLINE);
            let gate = self.gate_at(entry)?.map(|gate| (gate.end, gate.saved));
            let (begin, saved) = gate.unwrap_or((entry, 0));
            let inline = self.check_inline_behind(begin, saved)?;
            let routine = inline.routine;
            let is_leaf = routine == routine::LEAF;
            if inline.slow != stub || !(is_leaf || routine == routine::OPEN) {
                return wrong("its slow way is another");
            }
            if inline.slow_then != start + u64::from(layout::AFTER_OPEN)
                || self.decode_after(inline.slow_then)?.near_branch_target() != inline.then
            {
                return wrong("its slow way does not go on at its body");
            }
            let symbol = staged.map_or(0, |it| it.symbol.wrapping_sub(FIRST_FUNCTION));
            if !is_leaf && self.functions.get(symbol as usize) != Some(&self.range_in(start)?) {
                return wrong("tells another range");
            }
            if !is_symbol
                || staged.is_some_and(|staged| staged.is_leaf != is_leaf)
                || inline.words.iter().copied().map(u64::from).ne(word)
            {
                return wrong("records another symbol");
            }
            return Ok(Head {
                body: inline.then,
                is_inline: true,
                entry: start + u64::from(layout::INLINE),
                routine,
            });
        }
        let body = start + u64::from(layout::INLINE);
        let routine = self.routine_at(first.ip_rel_memory_address());
        match routine {
            routine::ENTER => {
                let shape = self.after(stub)?;
                if shape[6..11] != [0x48, 0x8d, 0x64, 0x24, 8]
                    || shape[17..22] != [0x48, 0x8d, 0x64, 0x24, 0xf8]
                    || shape[28] != 0xc3
                {
                    return wrong("is no call-through");
                }
                // What reads the time at the begin of a call does so at its end.
                let begin = self.decode_after(body)?;
                let ends: &[usize] = match self.begins_by(&begin) {
                    // What gives back is over.
                    Some(routine::ENTER_HOLD) => &[routine::EXIT_HOLD, routine::EXIT_TIMED],
                    Some(_) => &[routine::EXIT_TIMED],
                    None => &[routine::EXIT],
                };
                let end = self.decode_after(stub + 22)?;
                if !ends.iter().any(|it| self.calls_routine(&end, *it)) {
                    return wrong("does not end as it begins");
                }
                if !is_symbol {
                    return wrong("has no symbol");
                }
            }
            routine::INSTANT | routine::JUMP | routine::VFORK if !is_symbol => {
                return wrong("has no symbol");
            }
            // Its body is for calls that are recorded elsewhere.
            routine::BIND => {}
            _ => {
                let (address, length) = self.range_in(start)?;
                let symbol = staged.map_or(0, |it| it.symbol.wrapping_sub(FIRST_FUNCTION));
                let function = self.functions.get(symbol as usize);
                if length > 0 && function != Some(&(address, length)) {
                    return wrong("tells another range");
                }
                let jump = self.decode_after(stub + 6)?;
                if jump.near_branch_target() != body {
                    return wrong("does not go on at its body");
                }
            }
        }
        Ok(Head {
            body,
            is_inline: false,
            entry: stub,
            routine,
        })
    }

    /// Which code a stub says is its function's: address in the file, length.
    fn range_in(&self, start: u64) -> Result<(u64, u64), String> {
        let field = |at: u32| -> Result<u32, String> {
            let bytes = self.after(start + u64::from(at))?;
            u32_at(bytes, 0).ok_or_else(|| format!("the stub at {start:#x} is cut off"))
        };
        let distance = i64::from(field(layout::RANGE)? as i32);
        let behind = start + u64::from(layout::RANGE) + 4;
        let first = behind.wrapping_add_signed(distance);
        Ok((first.wrapping_sub(self.bias), field(layout::LENGTH)?.into()))
    }

    /// Index of the routine whose address is kept at a run-time address.
    fn routine_at(&self, address: u64) -> usize {
        (address.wrapping_sub(self.arena) / 8) as usize
    }

    /// Compares the moved instructions of the entry at `from` with their copy in the body. Returns the
    /// end of the moved originals, and the copy of each original (run-time addresses).
    fn check_body(
        &self,
        from: u64,
        head: &Head,
        checked: &mut Checked,
    ) -> Result<(u64, HashMap<u64, u64>), String> {
        self.check_stands_before(from, head)?;
        // First pass: which copy belongs to which original.
        let mut copies = HashMap::new();
        let mut pairs = Vec::new();
        let (mut at, mut here) = (from, head.body);
        let end = loop {
            let before = self.decode_before(at)?;
            let after = self.decode_after(here)?;
            if after.code() == Code::Jmp_rel32_64 && after.near_branch_target() == self.bias + at {
                self.check_stands(here, after.next_ip(), self.bias + at)?;
                // Behind what raises an exception there need be nothing.
                let goes_on =
                    |pair: &(Instruction, _)| pair.0.flow_control() != FlowControl::Exception;
                if pairs.last().is_none_or(goes_on) {
                    self.leads.borrow_mut().push(self.bias + at);
                }
                break at;
            }
            copies.insert(self.bias + at, here);
            let pieces = self.pieces(&before, here)?;
            here = pieces.last().map_or(here, Instruction::next_ip);
            // A way out may have become a jump to an exit.
            let last = pieces.last().copied().unwrap_or_default();
            let leads = last.near_branch_target();
            if head.routine == routine::OPEN
                && is_near_branch(&last)
                && self.is_exit(&before, leads)
            {
                let is_kept = before.mnemonic() == pieces[0].mnemonic()
                    || last.code() == Code::Jmp_rel32_64 && !is_conditional(&before);
                if !is_kept {
                    return Err(format!("the copy of {at:#x} leaves on another condition"));
                }
                self.check_exit(&before, leads)?;
                checked.exits += 1;
            } else {
                pairs.push((before, pieces));
            }
            at += before.len() as u64;
            // A call stands last. What never goes on may have more behind it: up to the padding.
            let next_stub = || self.stubs.contains(&(here - self.arena));
            let is_exit = || self.is_slow_way(here);
            let is_padding = || self.after(here).map_or(true, |bytes| bytes[0] == 0xcc);
            let is_over = || next_stub() || is_exit() || is_padding();
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

    /// Each copy stands for its original, and an original that is not led to by a jump is found by its copy.
    fn check_origins(&self, copies: &HashMap<u64, u64>) -> Result<(), String> {
        let origins = Origins::new(&self.origins);
        let mut told: HashMap<u64, Vec<u64>> = HashMap::new();
        for (original, copy) in copies {
            told.entry(*copy).or_default().push(original - self.bias);
        }
        for (copy, originals) in told {
            let offset = u32::try_from(copy - self.arena).unwrap_or(u32::MAX);
            let stands_for = match origins.stands_for(offset) {
                Some(StandsFor::Address(distance)) => self.low + distance,
                other => return Err(format!("the copy at {offset:#x} stands for {other:?}")),
            };
            // An endbr64 that stays has none of its own.
            if !originals.contains(&stands_for) {
                return Err(format!(
                    "the copy at {offset:#x} of {originals:x?} stands for {stands_for:#x}"
                ));
            }
            let moved = origins.moved(stands_for - self.low);
            if moved.is_some_and(|moved| moved != offset) {
                return Err(format!("{stands_for:#x} is at {offset:#x}, not {moved:x?}"));
            }
        }
        Ok(())
    }

    /// All of a stub that is executed before its body stands for the entry, up to where the return address is replaced.
    fn check_stands_before(&self, from: u64, head: &Head) -> Result<(), String> {
        let from = self.bias + from;
        let slow = |end: u32| {
            let start = head.body - u64::from(layout::INLINE);
            let start = if head.is_inline {
                head.entry - u64::from(layout::INLINE)
            } else {
                start
            };
            self.check_stands(
                start + u64::from(layout::ENTRY),
                start + u64::from(end),
                from,
            )
        };
        if head.is_inline {
            slow(layout::AFTER_OPEN + 5)?;
            return self.check_stands(head.entry, head.body, from);
        }
        slow(layout::AFTER_ENTRY + 1)
    }

    /// Every instruction in `start..end`, run-time addresses, stands for the image's at `original`.
    fn check_stands(&self, start: u64, end: u64, original: u64) -> Result<(), String> {
        let origins = Origins::new(&self.origins);
        let expected = StandsFor::Address(original.wrapping_sub(self.bias + self.low));
        let mut at = start;
        while at < end {
            let offset = u32::try_from(at - self.arena).unwrap_or(u32::MAX);
            let found = origins.stands_for(offset);
            if found != Some(expected) {
                return Err(format!(
                    "the code at {offset:#x} stands for {found:x?}, not for {original:#x}"
                ));
            }
            at = self.decode_after(at)?.next_ip();
        }
        Ok(())
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
            self.leads.borrow_mut().push(leads);
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
        if !self.is_stub_of_slot(stub, real)? {
            return Err(format!("the stub of slot {real:#x} uses another slot"));
        }
        match self.stub_entered_at(stub).map(|start| self.head(start)) {
            Some(Ok(head)) if head.routine == routine::BIND => self.check_bind(stub, shadow, real),
            _ => Ok(()),
        }
    }

    /// Whether a stub goes on at the function of a slot: at once, or behind the routine that reads the time.
    fn is_stub_of_slot(&self, stub: u64, real: u64) -> Result<bool, String> {
        let start = self.stub_entered_at(stub);
        let head = self.head(start.ok_or("a shadow slot leads to no stub")?)?;
        let mut body = self.decode_after(head.body)?;
        let is_timed = self.begins_by(&body).is_some();
        if is_timed {
            body = self.decode_after(body.next_ip())?;
        }
        let goes =
            body.code() == Code::Jmp_rm64 && self.same_import(body.ip_rel_memory_address(), real);
        let first = self.decode_after(stub)?;
        if !goes || !self.calls_routine(&first, routine::ENTER) {
            return Ok(goes);
        }
        let call = self.decode_after(stub + 11)?;
        if !is_timed {
            return Ok(call.code() == Code::Call_rm64
                && self.same_import(call.ip_rel_memory_address(), real));
        }
        // nop; call body
        let call = self.decode_after(call.next_ip())?;
        Ok(call.code() == Code::Call_rel32_64 && call.near_branch_target() == head.body)
    }

    /// Which of the routines that read the time an instruction calls.
    fn begins_by(&self, instruction: &Instruction) -> Option<usize> {
        let mut all = [routine::ENTER_TIMED, routine::ENTER_HOLD].into_iter();
        all.find(|it| self.calls_routine(instruction, *it))
    }

    /// Whether an instruction is `call *[routine]`.
    fn calls_routine(&self, instruction: &Instruction, routine: usize) -> bool {
        instruction.code() == Code::Call_rm64
            && instruction.is_ip_rel_memory_operand()
            && self.routine_at(instruction.ip_rel_memory_address()) == routine
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
                // What was moved, or padding that was overwritten.
                let is_gone = |(start, overwritten, end): Window| {
                    let end = if end > start + 5 { end } else { overwritten };
                    (start..end).contains(&at)
                };
                if window_of(at).is_some_and(is_gone) {
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

fn is_conditional(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::ConditionalBranch
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
