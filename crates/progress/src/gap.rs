//! A task that sends to one task after another, and leaves one out: its message went elsewhere, or had another tag, or there
//! was none.
//!
//! ```text
//!  rank 0 sends to   … 11  12   ·   14  15        rank 13 waits
//!         with tag   …  3   3       3   3
//! ```
//! [`crate::habit`] and [`crate::lapse`] count calls, and a loop over others has as many as there are others to send to: one
//! too few looks as a job with one rank less. Whom it sent to tells.
//!
//! *Guarantees*: the last such row of messages with one tag, of [`STEPS`] equal steps at least beside the gap, and nothing but them
//! in it: who answers as others come may well answer them in order. *Costs*: one pass over the messages of a task that are not
//! settled. *Not for*: who would have been the first or the last of the row.

use lockstep_comm::{CommunicatorId, Conversation};
use std::sync::Arc;

/// So many equal steps from one receiver to the next are a row.
const STEPS: usize = 3;

/// A message between two others of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// With another tag than these.
    Tag {
        /// Its own.
        own: i64,
        /// Theirs.
        usual: i64,
    },
    /// To another.
    To(u32),
}

/// A receiver that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The function that sent to the others.
    pub name: Arc<str>,
    /// To whom it did just before and behind.
    pub beside: [u32; 2],
    /// Who was left out.
    pub missed: u32,
    /// What was sent between these, if anything was.
    pub instead: Option<Instead>,
    /// The operations of the calls beside.
    pub operations: [usize; 2],
}

/// A message: the operation that sent it, to whom, and its tag.
type Sent = (usize, i64, i64);

/// The gap in what a task sent in one communicator, where this one is left out that waits for a message with this tag, or any.
pub(crate) fn gap(
    said: &Conversation,
    missed: u32,
    tag: Option<i64>,
    communicator: CommunicatorId,
) -> Option<Gap> {
    let parts = said.parts.iter();
    let sent = parts.filter_map(|it| Some((it.operation, it.kind.envelope()?)));
    let mut sent: Vec<Sent> = sent
        .filter(|(_, it)| it.communicator == communicator)
        .filter(|(_, it)| tag.is_none_or(|tag| it.tag == tag))
        .map(|(operation, it)| (operation, i64::from(it.to), it.tag))
        .collect();
    row(said, &sent, missed, None).or_else(|| {
        let missed_to = i64::from(missed);
        let is_other = |it: &[Sent]| {
            let [(_, before, usual), (_, to, tag), (_, behind, last)] = [it[0], it[1], it[2]];
            let is_between = to == missed_to || behind - before == 2 * (missed_to - before);
            usual == last && is_between && (to == missed_to) != (tag == usual)
        };
        let at = sent.windows(3).rposition(is_other)? + 1;
        let (_, to, own) = sent.remove(at);
        let usual = sent[at].2;
        let instead = match to == missed_to {
            true => Instead::Tag { own, usual },
            false => Instead::To(u32::try_from(to).ok()?),
        };
        row(said, &sent, missed, Some((at, instead)))
    })
}

/// The gap in a row of messages; where there was another instead, at its place.
fn row(
    said: &Conversation,
    sent: &[Sent],
    missed: u32,
    instead: Option<(usize, Instead)>,
) -> Option<Gap> {
    let name = |operation: usize| said.operations.get(operation).map(|it| &it.name);
    // What was sent instead lies between.
    let is_next = |a: &Sent, b: &Sent| a.0 + 1 == b.0 || instead.is_some() && a.0 + 2 == b.0;
    let step = |a: &Sent, b: &Sent| {
        let is_alike = a.2 == b.2 && name(a.0) == name(b.0) && is_next(a, b);
        is_alike.then_some(b.1 - a.1)
    };
    let at = (1..sent.len()).rev().find(|&at| {
        let (before, behind) = (&sent[at - 1], &sent[at]);
        let by = i64::from(missed) - before.1;
        let is_here = instead.is_none_or(|it| it.0 == at);
        is_here && by != 0 && step(before, behind) == Some(2 * by)
    })?;
    let (before, behind) = (sent[at - 1], sent[at]);
    let by = Some(i64::from(missed) - before.1);
    let is_step = |it: &&[Sent]| step(&it[0], &it[1]) == by;
    let steps_before = sent[..at].windows(2).rev().take_while(is_step).count();
    let steps_behind = sent[at..].windows(2).take_while(is_step).count();
    // What came since may have been for whom was left out.
    let since = &sent[at + 1 + steps_behind..];
    let is_last = since.iter().all(|it| it.2 != behind.2);
    (is_last && steps_before + steps_behind >= STEPS).then(|| Gap {
        name: name(before.0).cloned().unwrap_or_default(),
        beside: [before.1, behind.1].map(|it| u32::try_from(it).unwrap_or(u32::MAX)),
        missed,
        instead: instead.map(|it| it.1),
        operations: [before.0, behind.0],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::{Job, receive, send};
    use lockstep_comm::{Mode, Peer};

    fn gap_of(sent: &[(&str, u32, i64)], missed: u32, tag: Option<i64>) -> Option<[u32; 2]> {
        let mut job = Job::default();
        for (name, to, tag) in sent {
            job.call(0, name, vec![send(*to, *tag, Mode::Standard)], true);
        }
        gap(job.0.get(&0)?, missed, tag, CommunicatorId(0)).map(|it| it.beside)
    }

    fn to(of: &[u32], tag: i64) -> Vec<(&'static str, u32, i64)> {
        of.iter().map(|it| ("MPI_Send", *it, tag)).collect()
    }

    #[test]
    fn one_of_a_row_is_left_out() {
        let stop = to(&[1, 2, 3, 5, 6], 3);
        assert_eq!(gap_of(&stop, 4, Some(3)), Some([3, 5]));
        assert_eq!(gap_of(&stop, 4, None), Some([3, 5]));
        let work = to(&[4, 2, 6, 1], 1);
        assert_eq!(
            gap_of(&[work, stop.clone()].concat(), 4, None),
            Some([3, 5])
        );
        assert_eq!(gap_of(&to(&[8, 6, 2, 0], 3), 4, None), None);
        assert_eq!(gap_of(&to(&[10, 8, 6, 2, 0], 3), 4, None), Some([6, 2]));
    }

    #[test]
    fn who_answers_others_in_order_makes_no_row() {
        let mut job = Job::default();
        for to in [1, 2, 3, 5, 6] {
            job.call(0, "MPI_Recv", vec![receive(Peer::Task(to), None)], true)
                .call(0, "MPI_Send", vec![send(to, 1, Mode::Standard)], true);
        }
        assert_eq!(gap(&job.0[&0], 4, None, CommunicatorId(0)), None);
    }

    #[test]
    fn one_of_a_row_got_another_tag() {
        let mut stop = to(&[1, 2, 3, 4, 5, 6], 3);
        stop[3].2 = 7;
        assert_eq!(gap_of(&stop, 4, None), Some([3, 5]));
        let mut work = to(&[4, 2], 1);
        work.extend(stop);
        assert_eq!(gap_of(&work, 4, None), Some([3, 5]));
        // It went to another.
        let mut stop = to(&[1, 2, 3, 0, 5, 6], 3);
        assert_eq!(gap_of(&stop, 4, None), Some([3, 5]));
        assert_eq!(gap_of(&stop, 4, Some(3)), Some([3, 5]));
        stop[3].2 = 7;
        assert_eq!(gap_of(&stop, 4, None), None);
        // Its place is another; it waits for another.
        work.swap(5, 6);
        assert_eq!(gap_of(&work, 4, None), None);
        assert_eq!(gap_of(&work, 4, Some(7)), None);
    }

    #[test]
    fn what_is_no_row_has_no_gap() {
        let stop = to(&[1, 2, 3, 5, 6], 3);
        // Another one waits, or for something else; two were left out; another function; there was a message later on.
        assert_eq!(gap_of(&stop, 7, None), None);
        assert_eq!(gap_of(&stop, 4, Some(2)), None);
        assert_eq!(gap_of(&to(&[1, 2, 3, 6, 7, 8], 3), 4, None), None);
        let mut other = stop.clone();
        other[3].0 = "MPI_Isend";
        assert_eq!(gap_of(&other, 4, None), None);
        assert_eq!(gap_of(&[stop.clone(), to(&[4], 3)].concat(), 4, None), None);
        assert_eq!(
            gap_of(&[stop, to(&[1, 2, 3, 4, 5], 3)].concat(), 4, None),
            None
        );
        assert_eq!(gap_of(&to(&[3, 5], 3), 4, None), None);
        assert_eq!(gap_of(&[], 4, None), None);
    }
}
