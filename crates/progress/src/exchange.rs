//! A message that a task left out of an exchange: it asked some tasks for a message each, sent one to all of them but one, and
//! went on; and that one had sent it one, and waits.
//!
//! ```text
//!  rank 4   from 1 · from 3 · from 5 · from 7   to 1 · to 3 ·        to 7   all        rank 5 waits for rank 4
//! ```
//! A halo exchange goes both ways. This tells of the first round what [`crate::omission`] tells of later ones.
//!
//! *Guarantees*: in all exchanges that are known, this one apart, the task and the one that waits sent to whom they asked and
//! to nobody else; [`FEWEST`] such pairs at least. *Costs*: the last acts of two tasks for each message that is waited for,
//! twice, within the bounds of [`crate::omission`]. *Not for*: messages that go one way, as in a sweep; two messages to one
//! task in one exchange with one tag; tasks of whose threads several communicate.

use crate::omission::{Act, Evidence, Omission, Wanted, acts};
use lockstep_comm::{CommunicatorId, Conversation};
use std::collections::BTreeMap;

/// So many messages that were sent to whom one was asked of tell that this one lacks.
const FEWEST: usize = 2;

/// Of one way, with another task: whether there was a message, and the part that it is, where that is known.
#[derive(Debug, Clone, Copy, Default)]
struct OneWay {
    is_there: bool,
    part: Option<usize>,
}

/// With another task.
#[derive(Debug, Clone, Copy, Default)]
struct Both {
    asked: OneWay,
    sent: OneWay,
}

impl Both {
    fn is_even(&self) -> bool {
        self.asked.is_there == self.sent.is_there
    }
}

/// The messages of a task in one communicator, from one to a task that had one already to the next.
#[derive(Debug, Default)]
struct Exchanges {
    /// The last one.
    with: BTreeMap<u32, Both>,
    /// Where it ends, among the acts of the task.
    end: usize,
    /// Pairs of those before it; `None` where one was uneven.
    before: Option<usize>,
}

/// The exchanges of a task: of one tag, or of any.
fn exchanges(
    acts: &[(Act, Option<usize>)],
    communicator: CommunicatorId,
    tag: Option<i64>,
    is_cut: bool,
) -> Exchanges {
    let mut all = Exchanges {
        before: Some(0),
        ..Exchanges::default()
    };
    // The first may have begun before what is known.
    let mut is_whole = !is_cut;
    for (at, (act, part)) in acts.iter().enumerate() {
        let ((peer, its, _), is_sent) = match act {
            Act::Sent(it) if it.2 == communicator => (*it, true),
            Act::Asked(it) if it.2 == communicator => (*it, false),
            _ => continue,
        };
        if tag.is_some_and(|it| it != its) {
            continue;
        }
        let had = |it: &Both| if is_sent { it.sent } else { it.asked }.is_there;
        if all.with.get(&peer).is_some_and(had) {
            let last = std::mem::take(&mut all.with);
            if last.values().all(Both::is_even) {
                all.before = all.before.map(|it| it + last.len());
            } else if is_whole {
                all.before = None;
            }
            is_whole = true;
        }
        let both = all.with.entry(peer).or_default();
        let way = if is_sent {
            &mut both.sent
        } else {
            &mut both.asked
        };
        *way = OneWay {
            is_there: true,
            part: *part,
        };
        all.end = at;
    }
    all
}

/// The message that `task` left out of an exchange, for one of those that wait for it. `left` is how much may still be looked
/// at.
pub(crate) fn left_out_of_exchange(
    conversations: &BTreeMap<u32, Conversation>,
    task: u32,
    missed: &[Wanted],
    left: &mut usize,
) -> Option<Omission> {
    let known = |task: u32, left: &mut usize| {
        let said = conversations.get(&task).filter(|it| !it.is_threaded())?;
        let acts = acts(said);
        *left = left.checked_sub(acts.len())?;
        Some((said, acts))
    };
    let (said, own) = known(task, left)?;
    let mut found = Vec::new();
    for (waits, wanted, within) in missed {
        let (other, theirs) = known(*waits, left)?;
        let asked = theirs.iter().rev().find_map(|it| match it.0 {
            Act::Asked((from, tag, communicator)) if (from, communicator) == (task, *within) => {
                Some((tag, communicator))
            }
            _ => None,
        });
        let Some((tag, communicator)) = asked.filter(|it| wanted.is_none_or(|tag| tag == it.0))
        else {
            continue;
        };
        let pairs_of = |all: &Exchanges| {
            let even = all.with.iter().filter(|it| it.1.is_even());
            Some(even.filter(|it| ![task, *waits].contains(it.0)).count() + all.before?)
        };
        let lacks = |of: Option<i64>| {
            let mine = exchanges(&own, communicator, of, said.is_cut);
            let its = exchanges(&theirs, communicator, of, other.is_cut);
            // The task is past it, with all that it asked for.
            let is_past = mine.end + 1 < own.len();
            let part = |it: &Both| said.parts.get(it.asked.part?);
            let has_all = mine.with.values().filter_map(part).all(|it| it.complete);
            let is_even = |all: &Exchanges, but: u32| {
                all.with
                    .iter()
                    .all(|(peer, it)| *peer == but || it.is_even())
            };
            let is_one_way = |it: &Both| it.asked.is_there && !it.sent.is_there;
            let is_left_out = mine.with.get(waits).is_some_and(is_one_way);
            let is_both_ways = |it: &Both| it.asked.is_there && it.sent.is_there;
            let had_sent = its.with.get(&task).is_some_and(is_both_ways);
            let is_told = is_past && has_all && is_left_out && had_sent;
            if !is_told || !is_even(&mine, *waits) || !is_even(&its, task) {
                return None;
            }
            let others = mine.with.len() - 1;
            let pairs = pairs_of(&mine)? + pairs_of(&its)?;
            let sends = mine.with.values().filter_map(|it| it.sent.part).max();
            (pairs >= FEWEST).then_some((*waits, others, sends))
        };
        if let Some(it) = lacks(Some(tag)).or_else(|| lacks(None)) {
            found.push((it, tag));
        }
    }
    let [((to, others, sends), tag)] = found[..] else {
        return None;
    };
    Some(Omission::of(
        said,
        (to, tag),
        Evidence::Others(others),
        sends,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::{Job, collective, receive, send};
    use crate::omission::ALL;
    use lockstep_comm::{Mode, Peer};

    /// A job in words, a line a rank: `>3` sends to rank 3, `<3` receives from it, with this tag or that behind a colon, `?3`
    /// waits for it, and `=` is for all.
    fn job(lines: &[&str]) -> Job {
        let mut job = Job::default();
        for (rank, line) in (0..).zip(lines) {
            for word in line.split_whitespace() {
                let (way, rest) = word.split_at(1);
                let (peer, tag) = rest.split_once(':').unwrap_or((rest, "7"));
                let (peer, tag) = (peer.parse().unwrap_or(0), tag.parse().unwrap_or(0));
                let from = || vec![receive(Peer::Task(peer), Some(tag))];
                match way {
                    ">" => job.call(
                        rank,
                        "MPI_Send",
                        vec![send(peer, tag, Mode::Standard)],
                        true,
                    ),
                    "<" => job.call(rank, "MPI_Recv", from(), true),
                    "?" => job.call(rank, "MPI_Recv", from(), false),
                    _ => {
                        let all = vec![collective("MPI_Barrier", None)];
                        job.call(rank, "MPI_Barrier", all, false)
                    }
                };
            }
        }
        job
    }

    /// Whether the function is known, for whom, with which tag, and unlike what.
    fn told(lines: &[&str], task: u32, missed: u32) -> Option<(bool, u32, i64, Evidence)> {
        let job = job(lines);
        let found =
            left_out_of_exchange(&job.0, task, &[(missed, None, CommunicatorId(0))], &mut {
                ALL
            });
        found.map(|it| (it.name.is_some(), it.to, it.tag, it.evidence))
    }

    #[test]
    fn an_exchange_of_neighbours_the_first_time() {
        let ends = ["<1 >1 =", "<0 <2 >0 =", "<3 >3 >1 ?1", "<2 >2 ="];
        let one = Some((true, 2, 7, Evidence::Others(1)));
        assert_eq!(told(&ends, 1, 2), one);
        let grid = ["", ">0 >4 <0 <4 <2 =", "<5 >5 >1 ?1"];
        let two = Some((true, 2, 7, Evidence::Others(2)));
        assert_eq!(told(&grid, 1, 2), two);
        // The next exchange has another tag.
        let next = [
            "",
            "<0 <4 <2 >0 >4 <0:8 <4:8 >0:8 >2:8 >4:8 ?2:8",
            "<5 >5 >1 ?1",
        ];
        assert_eq!(told(&next, 1, 2), two);
        // It exchanges messages with nobody else.
        let pair = ["", "<2 >2 <2 >2 <2 =", "<1 >1 <1 >1 >1 ?1"];
        let before = Some((false, 2, 7, Evidence::Others(0)));
        assert_eq!(told(&pair, 1, 2), before);
        // Tags tell the direction.
        let ways = ["", "<0:1 <2:2 <4:3 >0:2 >4:4 =", "<5:9 >5:7 >1:2 ?1:1"];
        assert_eq!(told(&ways, 1, 2), Some((true, 2, 1, Evidence::Others(2))));
    }

    #[test]
    fn what_is_no_exchange() {
        let none = |own: &str, other: &str| assert_eq!(told(&["", own, other], 1, 2), None);
        // It has yet to come to it; it waits for another; it sent to two others only, or to one that it did not ask.
        none("<0 <4 <2 >0 >4", "<5 >5 >1 ?1");
        none("<2 <4 >4 ?0 =", "<5 >5 >1 ?1");
        none("<0 <4 <2 >4 =", "<5 >5 >1 ?1");
        none("<0 <4 <2 >0 >4 >6 =", "<5 >5 >1 ?1");
        // Nothing was sent to it; it asked for nothing; one before was uneven; one pair tells too little.
        none("<0 <4 <2 >0 >4 =", "<5 >5 ?1");
        none("<0 <4 >0 >4 =", "<5 >5 >1 ?1");
        none("<0 <4 >0 <0 <4 <2 >0 >4 =", "<5 >5 >1 ?1");
        none("<0 <2 >0 =", ">1 ?1");
        // It was sent, with another tag.
        none("<0 <4 <2 >0 >4 >2:9 =", "<5 >5 >1 ?1:8");
        let few = left_out_of_exchange(
            &job(&["", "<0 >0"]).0,
            1,
            &[(0, None, CommunicatorId(0))],
            &mut 1,
        );
        assert_eq!(few, None);
    }
}
