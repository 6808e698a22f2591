//! Calls into libraries: which slots are called where, and which of those places can be rewritten.

use lockstep_binary::{Image, Import};
use lockstep_format::plan::{mechanism, refusal};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::hoisted::Loads;
use crate::library::{is_untouched, may_be_leaf, of_import};
use crate::survey::{SlotUse, SlotUseKind, Survey};

/// A library function that the image calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub name: &'a [u8],
    /// The slot that the stub calls through.
    pub slot: u64,
    pub mechanism: u32,
    /// Where its code allows it, it is recorded as a leaf.
    pub may_be_leaf: bool,
}

/// A library function whose uses cannot all be rewritten.
#[derive(Debug)]
pub(crate) struct Missed<'a> {
    pub name: &'a [u8],
    pub slot: u64,
    pub reason: String,
    /// What is missed: calls, or pointers that calls may go through.
    pub kind: u32,
}

/// The library functions that the image calls, by name, and the instructions to rewrite.
#[derive(Debug, Default)]
pub(crate) struct Imports<'a> {
    pub rows: Vec<Row<'a>>,
    /// Instructions whose displacement shall lead to a shadow slot: (instruction, row).
    pub sites: Vec<(SlotUse, u32)>,
    pub missed: Vec<Missed<'a>>,
    /// Calls through a register that a rewritten load serves: (address behind, row).
    pub hoisted_calls: Vec<(u64, u32)>,
    by_slot: FxHashMap<u64, u32>,
    by_address: FxHashMap<u64, u32>,
}

impl<'a> Imports<'a> {
    /// Chooses among the image's imports those that `wanted` accepts. `own_unwinder`: nothing may
    /// replace return addresses (see [`has_own_unwinder`]).
    pub(crate) fn choose(
        image: &Image<'a>,
        imports: &[Import<'a>],
        survey: &Survey<'a>,
        own_unwinder: bool,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Self {
        // By address, so that the loads of one function come one after the other.
        let mut loads = Loads::new(image, survey);
        let mut hoisted: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
        let mut unserved: FxHashSet<u64> = FxHashSet::default();
        for slot_use in survey.slot_uses.iter().filter(|u| u.field != 0) {
            if let Some(calls) = loads.calls_of(slot_use) {
                hoisted.insert(slot_use.address, calls);
            } else if loads.saw_call {
                unserved.insert(slot_use.address);
            }
        }
        let mut uses: FxHashMap<u64, Vec<SlotUse>> = FxHashMap::default();
        for slot_use in &survey.slot_uses {
            uses.entry(slot_use.slot).or_default().push(*slot_use);
        }
        // One symbol may have a slot for its PLT stub and another for its address: one row.
        let mut symbols: Vec<&Import<'a>> = imports
            .iter()
            .filter(|i| !i.is_defined && !is_untouched(i.name) && wanted(i.name))
            .collect();
        // The stub calls through the first: through the other kind it might meet the PLT stub, and
        // so itself, again.
        symbols.sort_by_key(|i| (i.name, i.symbol, !i.is_for_calls, i.slot));
        let mut chosen = Self::default();
        for slots in symbols.chunk_by(|a, b| (a.name, a.symbol) == (b.name, b.symbol)) {
            let (name, slot) = (slots[0].name, slots[0].slot);
            let row = chosen.rows.len() as u32;
            let before = chosen.sites.len();
            let (mut calls, mut pointers) = (0, 0);
            for slot_use in slots.iter().filter_map(|i| uses.get(&i.slot)).flatten() {
                let is_call = matches!(slot_use.kind, SlotUseKind::Call | SlotUseKind::Jump);
                let served = hoisted.get(&slot_use.address);
                if is_call && slot_use.field != 0 || served.is_some() {
                    let calls = served.into_iter().flatten();
                    chosen.hoisted_calls.extend(calls.map(|at| (*at, row)));
                    chosen.sites.push((*slot_use, row));
                    chosen.by_address.insert(slot_use.address, row);
                } else if is_call || slot_use.is_in_plt || unserved.contains(&slot_use.address) {
                    calls += 1;
                } else {
                    pointers += 1;
                }
            }
            let sites = chosen.sites.len() - before;
            if sites + calls + pointers == 0 {
                let reason = "where it is called was not found".to_owned();
                let kind = refusal::CALLS;
                chosen.missed.push(Missed {
                    name,
                    slot,
                    reason,
                    kind,
                });
            }
            let kinds = [(refusal::CALLS, calls), (refusal::POINTERS, pointers)];
            for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
                let all = sites + calls + pointers;
                let reason = match kind {
                    refusal::CALLS => {
                        format!("{count} of {all} places call it in a way that is not recorded")
                    }
                    _ => format!("{count} of {all} places take its address"),
                };
                chosen.missed.push(Missed {
                    name,
                    slot,
                    reason,
                    kind,
                });
            }
            if sites > 0 {
                let mechanism = match of_import(name) {
                    mechanism::CALL_THROUGH if own_unwinder => mechanism::JUMP,
                    mechanism => mechanism,
                };
                chosen.rows.push(Row {
                    name,
                    slot,
                    mechanism,
                    may_be_leaf: mechanism == mechanism::CALL_THROUGH && may_be_leaf(name),
                });
                chosen.by_slot.extend(slots.iter().map(|i| (i.slot, row)));
            }
        }
        chosen.sites.sort_by_key(|(slot_use, _)| slot_use.address);
        chosen
    }

    /// How many may be recorded as leaves.
    pub(crate) fn candidates(&self) -> u32 {
        self.rows.iter().filter(|row| row.may_be_leaf).count() as u32
    }

    /// The row whose shadow slot the instruction at `address` shall use.
    pub(crate) fn row_of_instruction(&self, address: u64) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// The row that a slot belongs to.
    pub(crate) fn row_of_slot(&self, slot: u64) -> Option<u32> {
        self.by_slot.get(&slot).copied()
    }
}

/// Whether the image has an unwinder of its own (`-static-libgcc`): then exceptions pass through its
/// frames without any entry that restores return addresses, so none may be replaced. Every function
/// is recorded by the routine JUMP instead: its call is an event, its return is inferred at the
/// thread's next event, and the stack stays as the program made it.
///
/// A statically linked unwinder finds frame descriptions by asking the loader, and imports none of
/// the unwinder's functions. That some other program does so too costs it nothing but exactness of
/// the last returns of a thread.
///
/// The collector of OCaml's native programs looks up each return address on the stack in a table of the compiler's: it
/// unwinds by itself as well.
pub(crate) fn has_own_unwinder(image: &Image<'_>, imports: &[Import<'_>]) -> bool {
    let imported: FxHashSet<&[u8]> = imports.iter().map(|import| import.name).collect();
    let imports_unwinder = imported.iter().any(|name| name.starts_with(b"_Unwind_"));
    let asks_loader = [&b"dl_iterate_phdr"[..], b"_dl_find_object"]
        .iter()
        .any(|name| imported.contains(name));
    let unwinders = [
        &b"_Unwind_RaiseException"[..],
        b"caml_init_frame_descriptors",
    ];
    let defines_unwinder = || {
        let symbols = image.function_symbols();
        symbols.iter().any(|it| unwinders.contains(&it.name))
    };
    (asks_loader && !imports_unwinder) || defines_unwinder()
}
