//! What would have been next in a series of messages: of what a task sends, or asks for by name, one after another.
//!
//! ```text
//!  rank 3 asks rank 2 for   tag 1   2   3   5 …        4 would have been next: the fourth is not as those before it
//!  rank 2 sends rank 3      tag 1   2   3   4 …        this is
//! ```
//! A normal run tells first, where the task did the same in it up to there. Then the task's own series, where the last few
//! went on alike: those of each place in a round to one task, with tags that grow by as much each round. Then what all others
//! did that came as far, where they agree.
//!
//! *Guarantees*: of three rounds at least, or of two other tasks. *Costs*: O([`LONGEST`]^2) a message that is asked for; the
//! messages of all tasks are counted once, when the first is held against them.
//! *Not for*: by itself: that a message is not the next one of a series says nothing, unless the other side has that one.

use lockstep_comm::recent::{MOST_RECENT, Way, said};
use lockstep_comm::{CommunicatorId, Conversation};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// A message of a series: a part, unless that is settled and left out, and with whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said {
    pub part: Option<usize>,
    pub peer: u32,
    pub tag: i64,
    pub communicator: CommunicatorId,
}

impl Said {
    /// Whether it is another message than the next one, by a mistake in one word. What has another peer and another tag is a
    /// step of its own, which data may have asked for: by what a normal run says alone.
    pub fn is_slip(&self, next: Next) -> bool {
        let differs = (self.peer != next.peer, self.tag != next.tag);
        match next.by_normal {
            true => differs.0 || differs.1,
            false => differs.0 != differs.1,
        }
    }
}

/// What would have been next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    pub peer: u32,
    pub tag: i64,
    /// Whether a normal run says so.
    pub by_normal: bool,
}

/// Messages of the longest round that is known again.
const LONGEST: usize = 64;
/// So many rounds that went on alike are a series.
const ROUNDS: usize = 3;
/// Messages before and behind one that may be a slip that are looked at.
const MOST_LOOKED_AT: usize = 256;
/// So many others that did the same are an example.
const OTHERS: usize = 2;

/// All messages of a task of one way, in order: of what came before those that are here, the last ones.
pub(crate) fn series(conversation: &Conversation, way: Way) -> Vec<Said> {
    let recent = conversation.recent.iter().flat_map(|it| it.of(way));
    let recent = recent.map(|it| (None, *it));
    let parts = conversation.parts.iter().enumerate();
    let parts =
        parts.filter_map(|(part, it)| Some((Some(part), said(&it.kind, it.complete, way)?)));
    let all = recent.chain(parts);
    all.map(|(part, (peer, tag, communicator))| Said {
        part,
        peer,
        tag,
        communicator,
    })
    .collect()
}

/// What there was of something, each with how often: enough of it to tell whether all but one were alike.
#[derive(Debug, Clone, Copy)]
struct Kinds<T>([Option<(T, usize)>; 3]);

impl<T: Copy + PartialEq> Kinds<T> {
    const fn none() -> Self {
        Self([None; 3])
    }

    fn add(&mut self, it: T) {
        let place = self
            .0
            .iter_mut()
            .find(|place| place.is_none_or(|known| known.0 == it));
        if let Some(place) = place {
            *place = Some((it, place.map_or(1, |known| known.1 + 1)));
        }
    }

    /// The only one there was beside this, which is left out once.
    fn only_beside(&self, own: Option<T>) -> Option<T> {
        let others = self.0.iter().flatten();
        let mut others = others.filter(|(it, count)| Some(*it) != own || *count > 1);
        let only = others.next()?.0;
        others.next().is_none().then_some(only)
    }
}

/// What all tasks had in one place of their series.
#[derive(Debug, Clone, Copy)]
struct Tally {
    tasks: usize,
    tags: Kinds<i64>,
    distances: Kinds<Option<u32>>,
}

impl Tally {
    const NONE: Self = Self {
        tasks: 0,
        tags: Kinds::none(),
        distances: Kinds::none(),
    };
}

/// The tasks of a job, and of a normal run.
pub(crate) struct Examples<'a> {
    tasks: &'a BTreeMap<u32, Conversation>,
    normal: Option<&'a BTreeMap<u32, Conversation>>,
    sent: OnceCell<Vec<Tally>>,
    asked: OnceCell<Vec<Tally>>,
}

impl<'a> Examples<'a> {
    pub fn new(
        tasks: &'a BTreeMap<u32, Conversation>,
        normal: Option<&'a BTreeMap<u32, Conversation>>,
    ) -> Self {
        Self {
            tasks,
            normal,
            sent: OnceCell::new(),
            asked: OnceCell::new(),
        }
    }

    /// What would have been number `at` of a task's series.
    pub fn next(&self, task: u32, way: Way, series: &[Said], at: usize) -> Option<Next> {
        let conversation = self.tasks.get(&task)?;
        // Of several threads the order is not known.
        if conversation.is_threaded() {
            return None;
        }
        let by_normal = || self.by_normal(task, way, series, at);
        let by_others = || self.by_others(task, way, series, at);
        by_normal()
            .or_else(|| by_itself(series, at))
            .or_else(by_others)
    }

    /// Whether a series comes to such a slip elsewhere, too, by itself: then it goes by the data, and none tells anything.
    pub fn wavers(series: &[Said], at: usize, next: Next) -> bool {
        let mut around = at.saturating_sub(MOST_LOOKED_AT)..series.len().min(at + MOST_LOOKED_AT);
        let slips = |it: usize| by_itself(series, it).is_some_and(|next| series[it].is_slip(next));
        !next.by_normal && around.any(|it| it != at && slips(it))
    }

    fn by_normal(&self, task: u32, way: Way, own: &[Said], at: usize) -> Option<Next> {
        let conversation = self.normal?.get(&task)?;
        if conversation.is_threaded() || self.tasks.get(&task)?.is_cut {
            return None;
        }
        let normal = series(conversation, way);
        let next = normal.get(at)?;
        let mut before = own.iter().take(at).zip(&normal);
        let as_before = before.all(|(own, it)| (own.peer, own.tag) == (it.peer, it.tag));
        as_before.then_some(Next {
            peer: next.peer,
            tag: next.tag,
            by_normal: true,
        })
    }

    /// What all others that came as far did there: for one whose message goes as far as theirs, or that did as they every
    /// time before. A task at the boundary of a grid goes its own way from the beginning.
    fn by_others(&self, task: u32, way: Way, own: &[Said], at: usize) -> Option<Next> {
        let (away, tag) = self.agreed(task, way, own, at)?;
        let goes_as = |it: &Said, away: Option<u32>| {
            away.is_none_or(|away| Some(away) == self.distance(task, it))
        };
        let did_as_they = |before: usize| {
            let (it, (away, tag)) = (own.get(before)?, self.agreed(task, way, own, before)?);
            Some(goes_as(it, away) && it.tag == tag)
        };
        let is_known = (1..=MOST_RECENT).contains(&at);
        let did = || is_known && (0..at).all(|it| did_as_they(it) == Some(true));
        if !goes_as(own.get(at)?, away) && !did() {
            return None;
        }
        let peer = match away {
            Some(away) => (task + away) % u32::try_from(self.tasks.len()).ok()?,
            None => own.get(at)?.peer,
        };
        Some(Next {
            peer,
            tag,
            by_normal: false,
        })
    }

    /// How many ranks further on its message goes, in a circle of all.
    fn distance(&self, from: u32, it: &Said) -> Option<u32> {
        let size = u32::try_from(self.tasks.len()).ok()?;
        (it.peer + size).checked_sub(from).map(|it| it % size)
    }

    /// The tag that all other tasks that came as far had in number `at`, and how far away the other side was if that was
    /// the same.
    fn agreed(&self, task: u32, way: Way, own: &[Said], at: usize) -> Option<(Option<u32>, i64)> {
        let tally = self.tallies(way).get(at)?;
        let own = own.get(at);
        let others = tally.tasks - usize::from(own.is_some());
        let away = own.map(|it| self.distance(task, it));
        let tag = tally.tags.only_beside(own.map(|it| it.tag))?;
        (others >= OTHERS).then_some((tally.distances.only_beside(away).flatten(), tag))
    }

    /// Of each place; none where the order of messages is not known of each task, or not all of them.
    fn tallies(&self, way: Way) -> &[Tally] {
        let known = match way {
            Way::Sent => &self.sent,
            Way::Asked => &self.asked,
        };
        known.get_or_init(|| {
            let mut tallies = Vec::new();
            let mut tasks = self.tasks.values();
            if tasks.any(|it| it.is_cut || it.is_threaded()) {
                return tallies;
            }
            for (&task, conversation) in self.tasks {
                for (at, it) in series(conversation, way).iter().enumerate() {
                    if at == tallies.len() {
                        tallies.push(Tally::NONE);
                    }
                    tallies[at].tasks += 1;
                    tallies[at].tags.add(it.tag);
                    tallies[at].distances.add(self.distance(task, it));
                }
            }
            tallies
        })
    }
}

/// What a series says of its number `at` by what is before that: by the shortest round that went on alike.
fn by_itself(series: &[Said], at: usize) -> Option<Next> {
    let longest = LONGEST.min(at / ROUNDS);
    (1..=longest).find_map(|round| {
        let last = series.get(at - ROUNDS * round..at)?;
        let (before, after) = (last, last.get(round..)?);
        let step = |(a, b): (&Said, &Said)| {
            let is_same = (a.peer, a.communicator) == (b.peer, b.communicator);
            is_same.then(|| b.tag.wrapping_sub(a.tag))
        };
        let steps: Option<Vec<i64>> = before.iter().zip(after).map(step).collect();
        let steps = steps?;
        let is_even = steps.iter().zip(steps.get(round..)?).all(|(a, b)| a == b);
        let before = series.get(at - round)?;
        is_even.then_some(Next {
            peer: before.peer,
            tag: before.tag.wrapping_add(*steps.first()?),
            by_normal: false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(of: &[(u32, i64)]) -> Vec<Said> {
        let said = of.iter().map(|&(peer, tag)| Said {
            part: None,
            peer,
            tag,
            communicator: CommunicatorId(0),
        });
        said.collect()
    }

    fn next(of: &[(u32, i64)]) -> Option<(u32, i64)> {
        let said = said(of);
        by_itself(&said, said.len()).map(|it| (it.peer, it.tag))
    }

    #[test]
    fn a_series_that_slips_twice_wavers() {
        let next = Next {
            peer: 1,
            tag: 0,
            by_normal: false,
        };
        let once = said(&[(1, 0), (1, 0), (1, 0), (1, 7), (1, 0)]);
        assert!(!Examples::wavers(&once, 3, next));
        // From dimension to dimension.
        let twice = said(&[(1, 0), (1, 0), (1, 0), (2, 0), (2, 0), (2, 0), (1, 0)]);
        assert!(Examples::wavers(&twice, 3, next));
        assert!(Examples::wavers(&twice, 6, next));
    }

    #[test]
    fn the_same_and_numbers() {
        assert_eq!(next(&[(1, 5); 3]), Some((1, 5)));
        assert_eq!(next(&[(1, 1), (1, 2), (1, 3)]), Some((1, 4)));
        assert_eq!(next(&[(9, 9), (1, 7), (1, 5), (1, 3)]), Some((1, 1)));
        assert_eq!(next(&[(1, 1), (1, 2)]), None);
        assert_eq!(next(&[(1, 1), (1, 2), (1, 4)]), None);
        assert_eq!(next(&[(1, 1), (2, 2), (1, 3)]), None);
    }

    #[test]
    fn a_slip_is_of_the_peer_or_of_the_tag() {
        let slip = |(peer, tag): (u32, i64), by_normal| {
            let said = Said {
                part: None,
                peer,
                tag,
                communicator: CommunicatorId(0),
            };
            said.is_slip(Next {
                peer: 2,
                tag: 1,
                by_normal,
            })
        };
        let all = [(2, 1), (3, 1), (2, 9), (4, 2)];
        assert_eq!(all.map(|it| slip(it, false)), [false, true, true, false]);
        assert_eq!(all.map(|it| slip(it, true)), [false, true, true, true]);
    }

    #[test]
    fn all_but_one_are_alike() {
        let only = |all: &[i64], own| {
            let mut kinds = Kinds::none();
            all.iter().for_each(|it| kinds.add(*it));
            kinds.only_beside(own)
        };
        assert_eq!(only(&[1, 1, 2], Some(2)), Some(1));
        assert_eq!(only(&[1, 1, 2], Some(1)), None);
        assert_eq!(only(&[1, 1], Some(1)), Some(1));
        assert_eq!(only(&[1, 1], None), Some(1));
        assert_eq!(only(&[1, 2, 2, 3, 3], Some(1)), None);
        assert_eq!(only(&[1, 2, 3, 4], Some(4)), None);
        assert_eq!(only(&[7], Some(7)), None);
    }

    #[test]
    fn rounds() {
        let both = [(1, 1), (2, 10), (1, 2), (2, 12), (1, 3), (2, 14)];
        assert_eq!(next(&both), Some((1, 4)));
        let (most, _) = both.split_at(5);
        assert_eq!(next(most), None);
    }
}
