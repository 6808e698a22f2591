//! The stubs of the image's own functions, their exits and sites, once it is decided what is done to each.

use std::ops::Range;

use lockstep_format::plan::{fixup, function, origin, stub};

use crate::Unpatched;
use crate::arena::{Code, Fixup, Link};
use crate::exits::Write;
use crate::flow::Leaving;
use crate::imports::Imports;
use crate::inline::Then;
use crate::make::{Builder, Subject};
use crate::own::{Decide, Decision, Verdict, Way, verdicts};
use crate::parallel;
use crate::scratch::Free;
use crate::sheet::{Page, Sheet, Tail, Target};
use crate::write::FunctionRow;

/// Exits begin at multiples of it.
const EXIT: u32 = 8;

/// What is known of the functions when their stubs are there, by index.
struct Known<'k> {
    verdicts: &'k [Verdict],
    targets: Vec<Option<Target>>,
    /// Rows of those that are recorded.
    rows: Vec<Option<u32>>,
}

impl<'a> Builder<'a> {
    /// The image's own functions. Returns the row of each function of the domain.
    pub(crate) fn add_own(
        &mut self,
        subject: &Subject<'_, 'a>,
        calls: &Imports<'a>,
        own_unwinder: bool,
        wants: impl Fn(&[u8]) -> bool,
    ) -> Vec<Option<u32>> {
        let arena = &self.sheet.arena;
        let shadow = |address: u64| {
            let row = calls.row_of_instruction(address)?;
            Some(arena.shadow_slot(row))
        };
        let (functions, faults) = (&subject.domain.functions, &self.faults);
        let decide = Decide {
            subject,
            shadow,
            faulted: functions
                .iter()
                .map(|own| faults.is_at(&own.name))
                .collect(),
            only_faults: arena.is_plain && !self.is_silent,
            own_unwinder,
            room: self.room,
        };
        let verdicts = verdicts(&decide, wants);
        self.refuse_all(subject, &verdicts);
        self.note_moved(&verdicts);
        self.lead_counted(subject);
        let mut known = Known {
            targets: verdicts.iter().map(|_| None).collect(),
            rows: self.add_rows(subject, &verdicts),
            verdicts: &verdicts,
        };
        let tails = self.add_functions(subject, &mut known);
        self.add_symbols(subject, &known);
        self.add_tails(subject, calls, &known, &tails);
        let rows = known.rows;
        drop(tails);
        // They are many, and were made by all processors.
        let mut verdicts = verdicts;
        let pieces = parallel::pieces(verdicts.len()).into_iter().rev();
        let pieces = pieces
            .map(|piece| verdicts.split_off(piece.start))
            .collect();
        parallel::all(pieces, drop::<Vec<Verdict>>);
        rows
    }

    fn refuse_all(&mut self, subject: &Subject<'_, 'a>, verdicts: &[Verdict]) {
        for (own, verdict) in subject.domain.functions.iter().zip(verdicts) {
            if let Verdict::Refuse(reason) = verdict {
                let address = subject.survey.ranges[own.range].address;
                self.refuse(address, own.name.clone(), reason.clone());
                // Counting changes the flags before the call.
                if !subject.survey.bodies[own.range].traits.reads_flags {
                    self.count_calls(subject, own.range);
                }
            }
        }
    }

    fn note_moved(&mut self, verdicts: &[Verdict]) {
        for decision in verdicts.iter().filter_map(Verdict::decision) {
            if let Way::Entry(window, _) = &decision.way {
                self.moved.push((window.start, window.end));
            }
            let sites = decision.exits.iter().map(|(exit, _)| exit);
            let sites = sites.filter(|exit| exit.write != Write::Entry);
            self.moved
                .extend(sites.map(|exit| (exit.start, exit.way.end())));
        }
        self.moved.sort_unstable();
    }

    /// Rows of the functions that are recorded.
    fn add_rows(&mut self, subject: &Subject<'_, 'a>, verdicts: &[Verdict]) -> Vec<Option<u32>> {
        let mut rows = vec![None; verdicts.len()];
        for (index, own) in subject.domain.functions.iter().enumerate() {
            let Some(decision) = verdicts[index].decision() else {
                continue;
            };
            let range = subject.survey.ranges[own.range];
            let row = self.functions.len() as u32;
            rows[index] = Some(row);
            self.functions.push(FunctionRow {
                address: range.address,
                length: range.size,
                name: own.name.clone(),
                origin: function::OWN,
                mechanism: decision.mechanism,
            });
            if let Some(unpatchable) = &decision.unpatchable {
                let reason = unpatchable.reason.clone();
                self.unpatched.push(Unpatched { row, reason });
            }
        }
        rows
    }

    /// The functions' stubs, and their exits that return. Those that callers are led to come first: moved code may call them.
    fn add_functions<'v>(
        &mut self,
        subject: &Subject<'_, 'a>,
        known: &mut Known<'v>,
    ) -> Vec<Vec<Tail<'v>>> {
        let verdicts = known.verdicts;
        let moved = std::mem::take(&mut self.moved);
        let by_entry = |index: usize| {
            let decision = verdicts[index].decision()?;
            let by_entry = matches!(decision.way, Way::Entry(..));
            Some((subject.domain.functions[index].range, decision, by_entry))
        };
        let add = |sheet: &mut Sheet, range, decision: &'v Decision, tails: &mut Vec<Tail<'v>>| {
            sheet.arena.free = subject.scratch.free(range);
            sheet.add_function(subject, range, decision, tails, |at| is_moved(&moved, at))
        };
        let mut tails = Vec::new();
        let is_one_by_one = self.faults.is_any();
        for wanted in [false, true]
            .into_iter()
            .take(1 + usize::from(is_one_by_one))
        {
            for index in 0..verdicts.len() {
                if let Some((range, decision, by_entry)) = by_entry(index)
                    && by_entry == wanted
                {
                    let name = &subject.domain.functions[index].name;
                    self.sheet.arena.fault = self.faults.of(name);
                    let target = add(&mut self.sheet, range, decision, &mut tails);
                    known.targets[index] = Some(target);
                }
            }
        }
        self.sheet.arena.free = Free::default();
        let mut all = vec![tails];
        if !is_one_by_one {
            let arena = &self.sheet.arena;
            let parts = parallel::by_pieces(verdicts.len(), |piece| {
                let mut sheet = Sheet::new(arena.following(None));
                let (mut targets, mut tails) = (Vec::new(), Vec::new());
                for index in piece {
                    if let Some((range, decision, true)) = by_entry(index) {
                        let target = add(&mut sheet, range, decision, &mut tails);
                        targets.push((index, target));
                    }
                }
                (sheet.end(), targets, tails)
            });
            let mut found = Vec::with_capacity(parts.len());
            let (mut pages, mut more) = (Vec::new(), Vec::new());
            for (page, targets, tails) in parts {
                pages.push(page);
                found.push(targets);
                more.push(tails);
            }
            let places = self.add_pages(pages, stub::ALIGNMENT);
            let found = found.into_iter().zip(&mut more);
            for ((base, group), (targets, tails)) in places.into_iter().zip(found) {
                for (index, target) in targets {
                    known.targets[index] = Some(target.moved(base));
                }
                for tail in tails {
                    tail.group += group;
                    tail.from_body = tail.from_body.map(|field| field + base);
                }
            }
            all.extend(more);
        }
        self.moved = moved;
        all
    }

    /// Says which symbols the stubs record, and where their functions begin.
    fn add_symbols(&mut self, subject: &Subject<'_, 'a>, known: &Known<'_>) {
        let count = known.targets.len();
        if self.faults.is_any() {
            return self.sheet.add_symbols(subject, known, 0..count);
        }
        let arena = &self.sheet.arena;
        let pages = parallel::by_pieces(count, |piece| {
            let mut sheet = Sheet::new(arena.following(None));
            sheet.add_symbols(subject, known, piece);
            sheet.end()
        });
        self.add_pages(pages, 1);
    }

    /// The tail jumps, when all stubs are known.
    fn add_tails(
        &mut self,
        subject: &Subject<'_, 'a>,
        calls: &Imports<'a>,
        known: &Known<'_>,
        tails: &[Vec<Tail<'_>>],
    ) {
        let add = |sheet: &mut Sheet, tails: &[Tail<'_>]| {
            for tail in tails {
                sheet.add_tail(subject, calls, known, tail);
            }
        };
        if self.faults.is_any() {
            return tails.iter().for_each(|some| add(&mut self.sheet, some));
        }
        let arena = &self.sheet.arena;
        let pages = parallel::all(tails.iter().collect(), |some: &Vec<Tail<'_>>| {
            let mut sheet = Sheet::new(arena.following(None));
            add(&mut sheet, some);
            sheet.end()
        });
        self.add_pages(pages, EXIT);
    }

    /// Ends the sheet, and adds pages behind it, each at a multiple of `alignment`. Where they begin, and their first groups.
    fn add_pages(&mut self, pages: Vec<Page>, alignment: u32) -> Vec<(u32, u32)> {
        self.end_sheet();
        let places = self.pages.add_parts(pages, alignment);
        self.begin_sheet();
        places
    }

    /// Ends the sheet that is written on.
    pub(crate) fn end_sheet(&mut self) {
        let next = Sheet::new(self.sheet.arena.following(Some(0)));
        let ended = std::mem::replace(&mut self.sheet, next);
        self.pages.add(ended.end());
    }

    fn begin_sheet(&mut self) {
        let base = Some(self.pages.next_sheet());
        self.sheet = Sheet::new(self.sheet.arena.following(base));
    }
}

impl Sheet {
    fn add_symbols(&mut self, subject: &Subject<'_, '_>, known: &Known<'_>, piece: Range<usize>) {
        for index in piece {
            let (Some(target), Some(row)) = (&known.targets[index], known.rows[index]) else {
                continue;
            };
            self.arena.set_symbol(&target.stub, row);
            let range = subject.domain.functions[index].range;
            let start = subject.survey.ranges[range].address;
            self.arena.set_start(&target.stub, start);
        }
    }

    fn add_tail(
        &mut self,
        subject: &Subject<'_, '_>,
        calls: &Imports<'_>,
        known: &Known<'_>,
        tail: &Tail<'_>,
    ) {
        let survey = subject.survey;
        // Whoever applies the plan may lead a shadow slot past the recording.
        let import = |sheet: &Self, slot: u64| {
            let row = calls.row_of_slot(slot)?;
            let offset = sheet.arena.shadow_slot(row);
            Some(Link::Shadow { offset })
        };
        let code: &Code = &tail.moved.code;
        let (target, slot) = match tail.exit.way.leaving {
            Leaving::Slot { slot } => (0, Some(slot)),
            Leaving::Jump { target } | Leaving::Conditional { target } => {
                (target, survey.slot_of_stub(target))
            }
            Leaving::Return { .. } | Leaving::Computed(_) | Leaving::Odd => return,
        };
        // A slot of a function that the image defines itself leads there, or to what takes its
        // place.
        let defined = slot.and_then(|slot| subject.defined.get(&slot).copied());
        let own = subject
            .domain
            .function_at(survey, defined.unwrap_or(target));
        let row = own.and_then(|own| known.rows[own as usize]);
        let to = own.and_then(|own| known.targets[own as usize].as_ref());
        let by_slot = |slot: u64| Link::Slot { address: slot };
        let start = self.arena.next_exit();
        let at = match (to.zip(row), slot) {
            (_, Some(slot)) if calls.row_of_slot(slot).is_some() => {
                let to = import(self, slot).unwrap_or(by_slot(slot));
                self.arena.add_hand_over(code, to)
            }
            (Some(_), Some(slot)) => self.arena.add_hand_over(code, by_slot(slot)),
            (None, Some(slot)) => self.arena.add_return(code, Then::Jump(by_slot(slot))),
            (Some((to, row)), None) => {
                if to.stub.is_inline && to.entry == to.stub.entry {
                    let (at, word) = self.arena.add_tail_inline(code, &to.stub);
                    self.arena.fixups.push(Fixup {
                        at: word,
                        kind: fixup::SYMBOL_32,
                        value: u64::from(row),
                    });
                    at
                } else {
                    let offset = u64::from(to.entry);
                    self.arena.add_hand_over(code, Link::Arena { offset })
                }
            }
            (None, None) => {
                let to = Link::Branch { address: target };
                self.arena.add_return(code, Then::Jump(to))
            }
        };
        self.copied(start, at, tail.moved, tail.exit.way.at, origin::EXIT);
        self.lead_out(subject, tail.exit, tail.moved, at, tail.group);
        self.late.extend(tail.from_body.map(|field| (field, at)));
    }
}

/// Whether the instruction at `address` was moved into a stub.
pub(crate) fn is_moved(moved: &[(u64, u64)], address: u64) -> bool {
    let after = moved.partition_point(|(start, _)| *start <= address);
    after > 0 && address < moved[after - 1].1
}
