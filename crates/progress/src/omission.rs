//! A message that a task left out, by what it sent, asked for and met in just before and behind.
//!
//! ```text
//!  rank 5   from 1 · to 9 · to 6 │ from 1 · to 9 · to 6 │ from 1 ·   ·   to 6        rank 9 waits
//! ```
//! [`crate::lapse`] does the same with calls, whomever they are for. A function that all messages go through looks alike with
//! one to the south or one to the east, and so does a sweep that has one left out and a sweep the other way. With whom, with
//! which tag and in which communicator tells them apart.
//!
//! *Guarantees*: the message was there every other time that the same came before, or every other time that the same came
//! behind: [`OFTEN`] times at least, or [`MANY`] where it needs more acts than one, [`LONGEST`] at most. It is one that somebody waits
//! for, and there is but one such place. *Costs*: the last [`MOST`] acts of a task, once for each message that is waited for, and
//! [`ALL`] of a job; nothing is told of who comes behind these. *Not for*: tasks of whose threads several communicate, whose
//! order is not known; tags that are new each time.

use lockstep_comm::recent::{Message, Way};
use lockstep_comm::{CommunicatorId, Conversation, PartKind, Peer};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// So often the message was where it lacks now, where one act tells.
const OFTEN: usize = 3;
/// So often where it needs more than one: of what goes by the data, few are alike by chance.
const MANY: usize = 32;
/// So many of the last messages and collective operations of a task are looked at.
const MOST: usize = 1 << 14;
/// So many of all tasks together.
pub(crate) const ALL: usize = 1 << 20;

/// What tells that a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// How often it was sent next to what is there now.
    Before(usize),
    /// How many others the task sent to in an exchange of which this one lacks.
    Others(usize),
}

/// A message that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// The function that sent it before; `None` where that is long ago.
    pub name: Option<Arc<str>>,
    /// To whom.
    pub to: u32,
    /// With which tag.
    pub tag: i64,
    /// What tells it.
    pub evidence: Evidence,
    /// The last operation that sent it, likewise.
    pub operation: Option<usize>,
}

impl Omission {
    /// For whom and with which tag; `like` is a part that is such a message, where one is known.
    pub(crate) fn of(
        said: &Conversation,
        (to, tag): (u32, i64),
        evidence: Evidence,
        like: Option<usize>,
    ) -> Self {
        let operation = like.and_then(|it| Some(said.parts.get(it)?.operation));
        let name = operation.and_then(|it| Some(said.operations.get(it)?.name.clone()));
        Self {
            name,
            to,
            tag,
            evidence,
            operation,
        }
    }
}

/// What a task does that others notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    Sent(Message),
    Asked(Message),
    /// From anybody.
    Took(Option<i64>, CommunicatorId),
    Met(CommunicatorId),
}

impl Act {
    /// What a part is; probes are made as often as there is time.
    fn of(kind: &PartKind) -> Option<Self> {
        match kind {
            PartKind::Send {
                to: Peer::Task(to),
                tag,
                communicator,
                ..
            } => Some(Self::Sent((*to, *tag, *communicator))),
            PartKind::Receive {
                wildcard: Some(_),
                tag,
                communicator,
                ..
            } => Some(Self::Took(*tag, *communicator)),
            PartKind::Receive {
                from: Peer::Task(from),
                tag: Some(tag),
                communicator,
                ..
            } => Some(Self::Asked((*from, *tag, *communicator))),
            PartKind::Collective(it) => it.communicator.map(Self::Met),
            _ => None,
        }
    }
}

/// The last acts of a task, and the parts that they are: none for what is settled and left out.
pub(crate) fn acts(said: &Conversation) -> Vec<(Act, Option<usize>)> {
    let parts = said.parts.iter().enumerate().rev();
    let parts = parts.filter_map(|(part, it)| Some((Act::of(&it.kind)?, Some(part))));
    let recent = said.recent.iter().flat_map(|it| it.all().rev());
    let recent = recent.map(|(way, it)| match way {
        Way::Sent => (Act::Sent(*it), None),
        Way::Asked => (Act::Asked(*it), None),
    });
    let mut acts: Vec<_> = parts.chain(recent).take(MOST).collect();
    acts.reverse();
    acts
}

/// Acts in a row, by number; [`NONE`] where these are fewer than the longest.
type Context = [u32; LONGEST];
/// So many acts at most tell what is next to them.
const LONGEST: usize = 3;
const NONE: u32 = u32::MAX;

/// How often a context came, how often the message was next to it, and where it was not the last time.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    all: usize,
    with: usize,
    without: usize,
}

/// Places between two acts, by the number of the first, where the message is missing that was there every other time: as
/// acts before tell, or behind, and how often it was there.
fn places(acts: &[u32], message: u32) -> FxHashMap<usize, usize> {
    let mut found = FxHashMap::default();
    for length in 1..=LONGEST {
        for is_behind in [false, true] {
            let mut tallies: FxHashMap<Context, Tally> = FxHashMap::default();
            for (at, pair) in acts.windows(2).enumerate() {
                let (range, next) = match is_behind {
                    false => ((at + 1).checked_sub(length).map(|it| it..at + 1), pair[1]),
                    true => (Some(at + 1..at + 1 + length), pair[0]),
                };
                let Some(context) = range.and_then(|it| acts.get(it)) else {
                    continue;
                };
                let mut key = [NONE; LONGEST];
                key[..length].copy_from_slice(context);
                let tally = tallies.entry(key).or_default();
                tally.all += 1;
                match next == message {
                    true => tally.with += 1,
                    false => tally.without = at,
                }
            }
            let usual = tallies.into_values();
            let least = if length == 1 { OFTEN } else { MANY };
            let usual = usual.filter(|it| it.with >= least && it.all == it.with + 1);
            for it in usual {
                let times = found.entry(it.without).or_default();
                *times = it.with.max(*times);
            }
        }
    }
    found
}

/// A message that is waited for: by whom, with which tag, or any, and in which communicator.
pub(crate) type Wanted = (u32, Option<i64>, CommunicatorId);

/// The message that a task left out, of those that others wait for. `left` is how much may still be looked at.
pub(crate) fn omission(
    said: &Conversation,
    missed: &[Wanted],
    left: &mut usize,
) -> Option<Omission> {
    if said.is_threaded() {
        return None;
    }
    let last = acts(said);
    *left = left.checked_sub(last.len())?;
    let mut numbers: FxHashMap<Act, u32> = FxHashMap::default();
    let number = |it: &(Act, Option<usize>)| {
        let next = numbers.len() as u32;
        *numbers.entry(it.0).or_insert(next)
    };
    let acts: Vec<u32> = last.iter().map(number).collect();
    let is_missed = |it: &Act| match it {
        Act::Sent((to, tag, communicator)) => missed
            .iter()
            .any(|it| (it.0, it.2) == (*to, *communicator) && it.1.is_none_or(|it| it == *tag)),
        _ => false,
    };
    let mut found = Vec::new();
    for (act, number) in numbers.iter().filter(|it| is_missed(it.0)) {
        *left = left.checked_sub(acts.len())?;
        let came = |it: &[u32]| acts.windows(2).any(|pair| pair == it);
        for (at, times) in places(&acts, *number) {
            let (first, second) = (acts[at], acts[at + 1]);
            let before = acts[..at].iter().filter(|it| *it == number).count();
            let is_usual = ![first, second].contains(number)
                && before >= OFTEN
                && came(&[first, *number])
                && came(&[*number, second]);
            found.extend(is_usual.then_some((*act, times)));
        }
    }
    let [(Act::Sent((to, tag, communicator)), times)] = found[..] else {
        return None;
    };
    let is_it = |it: &&(Act, Option<usize>)| it.0 == Act::Sent((to, tag, communicator));
    let part = last.iter().rev().find(is_it).and_then(|it| it.1);
    Some(Omission::of(said, (to, tag), Evidence::Before(times), part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::{Job, receive, send};
    use lockstep_comm::Mode;

    const WORLD: CommunicatorId = CommunicatorId(0);

    /// Rank 0 in words: `>3` sends to rank 3, `<3` receives from it, with this tag each.
    fn said(words: &str) -> Conversation {
        let mut job = Job::default();
        for word in words.split_whitespace() {
            let (way, peer) = word.split_at(1);
            let peer: u32 = peer.parse().unwrap_or(0);
            match way {
                ">" => job.call(0, "MPI_Send", vec![send(peer, 7, Mode::Standard)], true),
                _ => {
                    let from = vec![receive(Peer::Task(peer), Some(7))];
                    job.call(0, "MPI_Recv", from, true)
                }
            };
        }
        job.0.remove(&0).unwrap_or_default()
    }

    fn times(it: &Omission) -> usize {
        match it.evidence {
            Evidence::Before(times) => times,
            Evidence::Others(_) => 0,
        }
    }

    fn omitted(words: &str, missed: u32) -> Option<usize> {
        omission(&said(words), &[(missed, Some(7), WORLD)], &mut { ALL }).map(|it| times(&it))
    }

    /// A sweep to the south and east, and one back.
    fn sweeps(planes: usize, less: &str) -> String {
        let (to, back) = ("<1 >4 >2 ".repeat(planes), "<4 <2 >1 ".repeat(planes));
        format!("{to}{back}{to}{less}{to}<4 ")
    }

    #[test]
    fn a_sweep_without_one_of_its_messages() {
        assert_eq!(omitted(&sweeps(5, "<1 >2 "), 4), Some(15));
        assert_eq!(omitted(&sweeps(5, "<1 >4 "), 2), Some(15));
        let found = omission(&said(&sweeps(5, "<1 >2 ")), &[(4, None, WORLD)], &mut {
            ALL
        });
        let found = found.map(|it| (it.name.as_deref() == Some("MPI_Send"), it.to, it.tag));
        assert_eq!(found, Some((true, 4, 7)));
    }

    /// Between the sweeps comes an exchange by the same messages, of which one is next to others.
    #[test]
    fn a_sweep_beside_an_exchange() {
        let round = |planes: usize, last: &str| {
            let (to, back) = ("<1 >4 >2 ".repeat(planes), "<4 <2 >1 ".repeat(planes));
            format!("{to}{last}{back}>4 <4 >2 <2 ")
        };
        let missing = |to: u32, last: &str| {
            let words = round(15, "").repeat(3) + &round(4, last);
            omitted(&words, to)
        };
        assert_eq!(missing(4, "<1 >2 "), Some(49));
        assert_eq!(missing(2, "<1 >4 "), Some(49));
    }

    #[test]
    fn what_is_no_omission() {
        // Another one waits; with another tag; it happened before; few messages so far; both are left out.
        assert_eq!(omitted(&sweeps(5, "<1 >2 "), 1), None);
        assert_eq!(
            omission(&said(&sweeps(5, "<1 >2 ")), &[(4, Some(8), WORLD)], &mut {
                ALL
            }),
            None
        );
        assert_eq!(omitted(&sweeps(5, "<1 >2 <1 >2 "), 4), None);
        assert_eq!(omitted("<1 >4 >2 <1 >4 >2 <1 >2 <4", 4), None);
        assert_eq!(omitted(&sweeps(5, "<1 "), 4), None);
        // The first round is another one; what goes by the data.
        let first = format!("<1 >2 {}<4", "<1 >4 >2 ".repeat(9));
        assert_eq!(omitted(&first, 4), None);
        let by_data = "<1 >4 >2 <1 >4 >2 >3 <1 >4 >2 <1 >4 >3 <1 >4 >2 <1 >2 <4";
        assert_eq!(omitted(by_data, 4), Some(5));
        assert_eq!(
            omitted(&by_data.replace(">3 <1", ">3 <1 >3 >2 <1"), 4),
            None
        );
        assert_eq!(omitted("", 4), None);
        let few = &mut 90;
        assert_eq!(
            omission(&said(&sweeps(5, "<1 >2 ")), &[(4, None, WORLD)], few),
            None
        );
    }

    #[test]
    fn what_is_settled_is_known() {
        let mut said = said(&sweeps(5, "<1 >2 "));
        said.leave_out(said.operations.len() - 2);
        let found = omission(&said, &[(4, Some(7), WORLD)], &mut { ALL });
        assert_eq!(found.as_ref().map(times), Some(15));
        let found = found.map(|it| (it.name, it.to, it.tag));
        assert_eq!(found, Some((None, 4, 7)));
    }
}
