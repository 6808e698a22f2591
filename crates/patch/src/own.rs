//! The image's own functions: which mechanism records each.

use lockstep_format::plan::mechanism;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::domain::{Domain, Function};
use crate::entry::{JUMP, Window, callers};
use crate::exits::{Exit, Exits, Help, Unpatchable, Write};
use crate::flow::Leaving;
use crate::leaf::is_leaf;
use crate::library;
use crate::make::Subject;
use crate::padding::{Near, Padding};
use crate::parallel;
use crate::relocate::{Moved, relocate_before};
use crate::survey::{Branch, Survey};

/// An entry window is made larger to hold a return up to here, where that return cannot be patched
/// otherwise.
const LARGEST_ENTRY: u64 = 32;

/// Longest site.
const SITE: u64 = 16;

/// How the calls of an own function come to its stub.
pub(crate) enum Way {
    /// Its entry jumps there.
    Entry(Window, Moved),
    /// These branches go there.
    Callers(Vec<Branch>),
}

/// What is done to a function.
pub(crate) struct Decision {
    pub way: Way,
    pub mechanism: u32,
    /// Of patched returns: every way out, with what moves there.
    pub exits: Vec<(Exit, Moved)>,
    /// Why its returns are not patched.
    pub unpatchable: Option<Unpatchable>,
}

/// What became of a function.
pub(crate) enum Verdict {
    Record(Box<Decision>),
    Refuse(String),
    Unwanted,
}

impl Verdict {
    pub(crate) fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Record(decision) => Some(decision),
            _ => None,
        }
    }
}

/// Decides for every function.
pub(crate) struct Decide<'s, 'i, 'a, S> {
    pub subject: &'s Subject<'i, 'a>,
    pub shadow: S,
    /// Functions that a fault is put into, by index.
    pub faulted: Vec<bool>,
    /// Nothing is recorded: ways out are left alone.
    pub only_faults: bool,
    pub own_unwinder: bool,
    /// How many functions there is room for.
    pub room: usize,
}

impl<S: Fn(u64) -> Option<u64> + Sync> Decide<'_, '_, '_, S> {
    fn verdict(&self, index: u32, own: &Function<'_>) -> Result<Decision, String> {
        if index as usize >= self.room {
            return Err("free memory that its code reaches is too small".to_owned());
        }
        let (survey, domain) = (self.subject.survey, self.subject.domain);
        let by_name = library::of_own(&own.name);
        if let Some(mechanism) = by_name {
            return Ok(Decision {
                way: self.way(own.range, &[], 0)?,
                mechanism,
                exits: Vec::new(),
                unpatchable: None,
            });
        }
        if self.only_faults || self.faulted[index as usize] {
            return Ok(self.by_hook(self.way(own.range, &[], 0)?, None));
        }
        if is_leaf(self.subject.image, survey, domain, index) {
            return Ok(Decision {
                way: self.way(own.range, &[], 0)?,
                mechanism: mechanism::LEAF,
                exits: Vec::new(),
                unpatchable: None,
            });
        }
        let mut way = self.way(own.range, &[], 0)?;
        Ok(match self.with_exits(index, own, &mut way, None) {
            Ok(exits) => Decision {
                way,
                mechanism: mechanism::PATCHED_RETURNS,
                exits,
                unpatchable: None,
            },
            Err(unpatchable) => self.by_hook(way, Some(unpatchable)),
        })
    }

    /// The function's return address is replaced, where that may be.
    fn by_hook(&self, way: Way, unpatchable: Option<Unpatchable>) -> Decision {
        Decision {
            way,
            mechanism: if self.own_unwinder {
                mechanism::JUMP
            } else {
                mechanism::CALL_THROUGH
            },
            exits: Vec::new(),
            unpatchable,
        }
    }

    /// How the function's returns are patched. The way changes if more must move with the entry.
    fn with_exits(
        &self,
        index: u32,
        own: &Function<'_>,
        way: &mut Way,
        padding: Option<&mut Padding>,
    ) -> Result<Vec<(Exit, Moved)>, Unpatchable> {
        let unpatchable = match self.choose(index, own, way, 0, padding) {
            Ok(exits) => return Ok(exits),
            Err(unpatchable) => unpatchable,
        };
        // A short function: all of it may move with its entry.
        let whole = &self.subject.survey.ranges[own.range];
        let until = whole.end();
        let is_short = matches!(way, Way::Entry(..)) && whole.size <= LARGEST_ENTRY;
        if is_short && let Ok(exits) = self.choose(index, own, way, until, None) {
            return Ok(exits);
        }
        Err(unpatchable)
    }

    fn choose(
        &self,
        index: u32,
        own: &Function<'_>,
        way: &mut Way,
        until: u64,
        padding: Option<&mut Padding>,
    ) -> Result<Vec<(Exit, Moved)>, Unpatchable> {
        let subject = self.subject;
        let larger;
        let window = match &*way {
            Way::Entry(window, _) if until == 0 => Some(window),
            Way::Entry(..) => {
                larger = subject.window(own.range, until)?;
                if larger.has_call {
                    return Err("a call in it cannot be moved".to_owned().into());
                }
                Some(&larger)
            }
            Way::Callers(_) => None,
        };
        let exits = Exits::new(subject.image, subject.survey, subject.domain, index, window)?;
        let exits = exits.choose(padding)?;
        let in_entry: Vec<u64> = exits
            .iter()
            .filter(|exit| exit.write == Write::Entry)
            .map(|exit| exit.way.at)
            .collect();
        let other = match &*way {
            Way::Entry(..) if until > 0 || !in_entry.is_empty() => {
                Some(self.way(own.range, &in_entry, until)?)
            }
            _ => None,
        };
        let exits = exits.into_iter().map(|mut exit| {
            let moved = relocate_before(&exit.moved, subject.place, &self.shadow)?;
            exit.moved = Vec::new();
            for branch in &exit.redirected {
                if branch.target != exit.way.at && moved.offset_of(branch.target).is_none() {
                    return Err("a branch leads between two instructions".to_owned());
                }
            }
            Ok((exit, moved))
        });
        let exits = exits.collect::<Result<_, String>>()?;
        if let Some(other) = other {
            *way = other;
        }
        Ok(exits)
    }

    fn way(&self, range: usize, ways_out: &[u64], until: u64) -> Result<Way, String> {
        self.subject.way(range, &self.shadow, ways_out, until)
    }
}

impl Subject<'_, '_> {
    /// How calls come to the stub of a function; `ways_out` become jumps to exits where they move
    /// with the entry, and all before `until` moves.
    pub(crate) fn way(
        &self,
        range: usize,
        shadow: impl Fn(u64) -> Option<u64>,
        ways_out: &[u64],
        until: u64,
    ) -> Result<Way, String> {
        if let Some(reason) = self.vetoed.get(&range) {
            return Err((*reason).into());
        }
        if self.survey.ranges[range].begins_framed {
            return Err("its frame is set up before its first instruction".into());
        }
        let entry = match self.entry(range, shadow, ways_out, until) {
            Ok((window, moved)) if !window.has_call => return Ok(Way::Entry(window, moved)),
            other => other,
        };
        // A moved call is a jump, which costs the processor its predictions of the returns above.
        match (callers(self.survey, self.domain, range), entry) {
            (Ok(callers), _) => Ok(Way::Callers(callers)),
            (Err(_), Ok((window, moved))) => Ok(Way::Entry(window, moved)),
            (Err(other), Err(reason)) => Err(format!("{reason}; {other}")),
        }
    }

    pub(crate) fn entry(
        &self,
        range: usize,
        shadow: impl Fn(u64) -> Option<u64>,
        ways_out: &[u64],
        until: u64,
    ) -> Result<(Window, Moved), String> {
        let mut window = self.window(range, until)?;
        let moved = window.relocate(self.place, shadow, ways_out)?;
        Ok((window, moved))
    }

    fn window(&self, range: usize, until: u64) -> Result<Window, String> {
        Window::choose(self.image, self.survey, self.domain, range, until)
    }
}

/// Functions that pass something in the flags: those whose caller looks at them after the call, with
/// all that they jump to, and those that look at them first.
pub(crate) fn flag_users(
    survey: &Survey<'_>,
    domain: &Domain<'_>,
) -> FxHashMap<usize, &'static str> {
    let owner = |address: u64| domain.function_at(survey, address);
    let mut open: Vec<u32> = survey
        .flag_users
        .iter()
        .filter_map(|at| owner(*at))
        .collect();
    let mut found = FxHashSet::default();
    while let Some(function) = open.pop() {
        if !found.insert(function) {
            continue;
        }
        for range in domain.ranges_of(function) {
            open.extend(
                survey
                    .ways_out_of(range)
                    .iter()
                    .filter_map(|way| match way.leaving {
                        Leaving::Jump { target } | Leaving::Conditional { target } => owner(target),
                        _ => None,
                    }),
            );
        }
    }
    for (index, own) in domain.functions.iter().enumerate() {
        if survey.bodies[own.range].traits.reads_flags {
            found.insert(index as u32);
        }
    }
    let range = |function: u32| domain.functions[function as usize].range;
    let reason = "it passes something in the flags";
    let found = found.into_iter();
    found.map(|function| (range(function), reason)).collect()
}

/// What is decided of every function of the domain.
pub(crate) fn verdicts<S: Fn(u64) -> Option<u64> + Sync>(
    decide: &Decide<'_, '_, '_, S>,
    wants: impl Fn(&[u8]) -> bool,
) -> Vec<Verdict> {
    let functions = &decide.subject.domain.functions;
    let wanted: Vec<bool> = functions.iter().map(|own| wants(&own.name)).collect();
    let mut verdicts: Vec<Verdict> = parallel::each(functions.len(), |index| {
        if !wanted[index] {
            return Verdict::Unwanted;
        }
        match decide.verdict(index as u32, &functions[index]) {
            Ok(decision) => Verdict::Record(Box::new(decision)),
            Err(reason) => Verdict::Refuse(reason),
        }
    });
    refuse_conflicts(decide.subject.domain, &mut verdicts);
    help_with_padding(decide, &mut verdicts);
    keep_open_beyond_gaps(decide, &mut verdicts);
    verdicts
}

/// What `look` finds in each function that is recorded, by index.
fn of_recorded<'v, T: Send, I: IntoIterator<Item = T>>(
    verdicts: &'v [Verdict],
    look: impl Fn(usize, &'v Decision) -> I + Sync,
) -> Vec<T> {
    let pieces = parallel::by_pieces(verdicts.len(), |piece| {
        let recorded = piece.filter_map(|index| Some((index, verdicts[index].decision()?)));
        let found = recorded.flat_map(|(index, decision)| look(index, decision));
        found.collect::<Vec<T>>()
    });
    pieces.into_iter().flatten().collect()
}

/// Patches returns with the help of padding. It goes first to the functions that it belongs to, then to their neighbours.
fn help_with_padding<S: Fn(u64) -> Option<u64> + Sync>(
    decide: &Decide<'_, '_, '_, S>,
    verdicts: &mut [Verdict],
) {
    let (survey, domain) = (decide.subject.survey, decide.subject.domain);
    let helped = of_recorded(verdicts, |index, decision| {
        let help = decision.unpatchable.as_ref().and_then(|why| why.help);
        (help == Some(Help::Padding)).then_some(index)
    });
    if helped.is_empty() {
        return;
    }
    let ways = |index: usize| {
        let ranges = domain.ranges_of(index as u32);
        ranges.flat_map(|range| survey.ways_out_of(range))
    };
    let near = Near::new(
        helped
            .iter()
            .flat_map(|index| ways(*index))
            .map(|way| way.at),
    );
    let claimed = of_recorded(verdicts, |index, decision| {
        let mut claimed = Vec::new();
        if let Way::Entry(window, _) = &decision.way {
            claimed.push((window.start, window.overwritten_end()));
            claimed.extend(window.elsewhere(domain.functions[index].range));
        }
        let exits = decision.exits.iter().map(|(exit, _)| exit);
        claimed.extend(exits.map(|exit| (exit.start, exit.end())));
        // Their next attempt begins with the padding behind their own returns.
        if decision.unpatchable.is_some() {
            claimed.extend(ways(index).map(|way| (way.at, way.at + JUMP)));
        }
        claimed.retain(|claim| near.has(*claim));
        claimed
    });
    let mut padding = Padding::new(decide.subject.image, survey, claimed, &near);
    for index in helped {
        let Verdict::Record(decision) = &mut verdicts[index] else {
            continue;
        };
        let own = &domain.functions[index];
        let found = decide.with_exits(index as u32, own, &mut decision.way, Some(&mut padding));
        match found {
            Ok(exits) => {
                decision.mechanism = mechanism::PATCHED_RETURNS;
                (decision.exits, decision.unpatchable) = (exits, None);
            }
            Err(why) => decision.unpatchable = Some(why),
        }
    }
}

/// A jump from another function into a function's first bytes is led elsewhere where it stands: it must
/// not move, nor may what follows it be written twice. What does is rare enough to be refused.
fn refuse_conflicts(domain: &Domain<'_>, verdicts: &mut [Verdict]) {
    let mut elsewhere = of_recorded(verdicts, |index, decision| {
        let window = match &decision.way {
            Way::Entry(window, _) => Some(window),
            Way::Callers(_) => None,
        };
        let pieces = window.map(|it| it.elsewhere(domain.functions[index].range));
        let pieces = pieces.into_iter().flatten();
        pieces.map(move |(start, end)| (start, end, index))
    });
    if elsewhere.is_empty() {
        return;
    }
    elsewhere.sort_unstable();
    let hit = |start: u64, end: u64| {
        // No piece is longer than a site.
        let first = elsewhere.partition_point(|piece| piece.0 + SITE <= start);
        let pieces = elsewhere[first..].iter().take_while(move |it| it.0 < end);
        pieces.filter(move |it| it.1 > start).map(|it| it.2)
    };
    let refused = of_recorded(verdicts, |_, decision| {
        let mut refused = Vec::new();
        if let Way::Entry(window, _) = &decision.way {
            refused.extend(hit(window.start, window.end.max(window.overwritten_end())));
        }
        let exits = decision.exits.iter().map(|(exit, _)| exit);
        let exits = exits.filter(|exit| exit.write != Write::Entry);
        refused.extend(exits.flat_map(|exit| hit(exit.start, exit.end())));
        refused
    });
    for index in refused {
        let why = "a branch of another function leads into its first bytes, and moves itself";
        verdicts[index] = Verdict::Refuse(why.into());
    }
}

/// A function that hands over to one which is not recorded stays open until that returns, and what
/// that hands over to is its tail call: only a hook in place of the return address tells.
fn keep_open_beyond_gaps<S: Fn(u64) -> Option<u64> + Sync>(
    decide: &Decide<'_, '_, '_, S>,
    verdicts: &mut [Verdict],
) {
    if decide.own_unwinder {
        return;
    }
    let (survey, domain) = (decide.subject.survey, decide.subject.domain);
    let is_gap = |exit: &Exit| match exit.way.leaving {
        Leaving::Jump { target } | Leaving::Conditional { target } => domain
            .function_at(survey, target)
            .is_some_and(|to| verdicts[to as usize].decision().is_none()),
        _ => false,
    };
    let before_gaps = of_recorded(verdicts, |index, decision| {
        let mut exits = decision.exits.iter();
        exits.any(|(exit, _)| is_gap(exit)).then_some(index)
    });
    for index in before_gaps {
        let range = domain.functions[index].range;
        if let Verdict::Record(decision) = &mut verdicts[index]
            && let Ok(way) = decide.way(range, &[], 0)
        {
            let why = "it hands over to a function that is not recorded".to_owned();
            **decision = decide.by_hook(way, Some(why.into()));
        }
    }
}
