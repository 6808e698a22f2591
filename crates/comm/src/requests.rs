//! The requests of a thread: what each handle stands for, and how requests end.
//!
//! A handle mostly stands for one request. Open MPI gives what is complete at once, mostly small messages that are
//! sent, one and the same handle, so of sends several may have it:
//!
//! ```text
//!  MPI_Isend ──► h   [send 0]
//!  MPI_Isend ──► h   [send 0] [send 1]        MPI_Wait(h) ends the oldest, as MPI_Request_free(h) does
//!  MPI_Irecv ──► h   [receive 2]              its handle is its own: whatever had it is over, though nobody saw that
//! ```
//! Of an array of requests the first 64 are recorded ([`Named`]), and calls that are not recorded wait, too: requests may
//! be over unseen.
//!
//! *Guarantees*: a request that is said to run was not over in any call that was seen, nor can it have been among those
//! that were not recorded. *Costs*: O(1) a request that is named; where some of an array were not recorded,
//! O(requests that run).

use crate::conversation::left;
use crate::message::{PartKind, Peer};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The requests that a call names: the first of them, and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Their handles.
    pub handles: Vec<i64>,
    /// How many more were not recorded.
    pub more: usize,
}

/// What was begun under a handle and runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Begun {
    parts: Vec<usize>,
    /// Whether another may have the same handle.
    may_share: bool,
    may_be_over: bool,
}

/// Handles of requests that are over, by which event: those that no other request has at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past(FxHashMap<i64, u64>);

/// So many are known.
const MOST_PAST: usize = 1 << 12;

impl Past {
    /// The request that has a handle is over.
    pub fn add(&mut self, handle: i64, event: u64) {
        if self.0.len() < MOST_PAST || self.0.contains_key(&handle) {
            self.0.insert(handle, event);
        }
    }

    /// A handle may be another request's.
    pub fn remove(&mut self, handle: i64) -> Option<u64> {
        self.0.remove(&handle)
    }

    /// Any may be.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    /// These run, the oldest first; several where all of them may share a handle.
    Active(VecDeque<Begun>),
    /// What a start begins, what runs, and what was done with it so far.
    Persistent(Vec<PartKind>, Option<Begun>, Life),
}

/// How far a persistent request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Made,
    /// Waited for, and not started before.
    Awaited,
    Started,
}

impl Request {
    fn running(&self) -> impl Iterator<Item = &Begun> {
        let (each, begun) = match self {
            Self::Active(each) => (Some(each), None),
            Self::Persistent(_, begun, _) => (None, begun.as_ref()),
        };
        each.into_iter().flatten().chain(begun)
    }

    fn running_mut(&mut self) -> impl Iterator<Item = &mut Begun> {
        let (each, begun) = match self {
            Self::Active(each) => (Some(each), None),
            Self::Persistent(_, begun, _) => (None, begun.as_mut()),
        };
        each.into_iter().flatten().chain(begun)
    }
}

/// The requests of a thread, by their handles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests(FxHashMap<i64, Request>);

/// Whether a request for these may be complete at once, and so have the handle of another.
fn may_share(kinds: &[PartKind]) -> bool {
    let is_sent = |it: &PartKind| match it {
        PartKind::Send { .. } | PartKind::Own => true,
        PartKind::Receive { from, .. } => *from == Peer::Nobody,
        _ => false,
    };
    !kinds.is_empty() && kinds.iter().all(is_sent)
}

fn parts(begun: impl IntoIterator<Item = Begun>) -> Vec<usize> {
    begun.into_iter().flat_map(|it| it.parts).collect()
}

impl Requests {
    /// Whether there are none, neither those that run nor those that could.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A call gave back a handle for what it began. Gives the parts that are over then, though that was not seen.
    pub fn begin(&mut self, handle: i64, kinds: &[PartKind], parts: Vec<usize>) -> Vec<usize> {
        let begun = Begun {
            parts,
            may_share: may_share(kinds),
            may_be_over: false,
        };
        match self.0.get_mut(&handle) {
            Some(Request::Active(each))
                if begun.may_share && each.back().is_some_and(|it| it.may_share) =>
            {
                each.push_back(begun);
                Vec::new()
            }
            _ => self.replace(handle, Request::Active([begun].into())),
        }
    }

    /// A call gave back a handle that starts begin these with. Gives the parts that are over then.
    pub fn make(&mut self, handle: i64, kinds: Vec<PartKind>) -> Vec<usize> {
        self.replace(handle, Request::Persistent(kinds, None, Life::Made))
    }

    fn replace(&mut self, handle: i64, request: Request) -> Vec<usize> {
        match self.0.insert(handle, request) {
            Some(Request::Active(each)) => parts(each),
            Some(Request::Persistent(_, begun, _)) => parts(begun),
            None => Vec::new(),
        }
    }

    /// Whether a handle stands for a request of this thread.
    pub fn is_known(&self, handle: i64) -> bool {
        self.0.contains_key(&handle)
    }

    /// Whether it can be started again and again: then it has a handle of its own.
    pub fn is_persistent(&self, handle: i64) -> bool {
        matches!(self.0.get(&handle), Some(Request::Persistent(..)))
    }

    /// Whether it runs, and cannot be started again.
    pub fn is_plain(&self, handle: i64) -> bool {
        let Some(Request::Active(each)) = self.0.get(&handle) else {
            return false;
        };
        each.iter().all(|it| !it.may_be_over)
    }

    /// The handles of requests that run, and their parts.
    pub fn running(&self) -> Vec<(i64, Vec<usize>)> {
        let each = self
            .0
            .iter()
            .map(|(handle, it)| (*handle, parts(it.running().cloned())));
        let mut running: Vec<_> = each.filter(|it| !it.1.is_empty()).collect();
        running.sort_unstable();
        running
    }

    /// What a start of a persistent request begins, and whether it runs already.
    pub fn template(&self, handle: i64) -> Option<(&[PartKind], bool)> {
        match self.0.get(&handle)? {
            Request::Persistent(kinds, begun, _) => {
                let runs = begun.as_ref().is_some_and(|it| !it.may_be_over);
                Some((kinds, runs))
            }
            Request::Active(_) => None,
        }
    }

    /// A persistent request began these parts. Gives those that are over then, though that was not seen.
    pub fn start(&mut self, handle: i64, begins: Vec<usize>) -> Vec<usize> {
        let Some(Request::Persistent(_, begun, life)) = self.0.get_mut(&handle) else {
            return Vec::new();
        };
        *life = Life::Started;
        let before = begun.replace(Begun {
            parts: begins,
            may_share: false,
            may_be_over: false,
        });
        parts(before.filter(|it| it.may_be_over))
    }

    /// The parts that these handles stand for; a handle that is named again is the next request that has it.
    pub fn parts(&self, handles: &[i64]) -> Vec<usize> {
        let each = handles.iter().enumerate();
        let parts = each.flat_map(|(place, handle)| {
            let before = handles[..place].iter().filter(|it| *it == handle).count();
            let begun = self.0.get(handle).and_then(|it| it.running().nth(before));
            begun.map_or(&[][..], |it| &it.parts)
        });
        parts.copied().collect()
    }

    /// A request is over: the oldest that has the handle. Gives its parts.
    pub fn complete(&mut self, handle: i64) -> Vec<usize> {
        match self.0.get_mut(&handle) {
            Some(Request::Persistent(_, begun, life)) => {
                if *life == Life::Made {
                    *life = Life::Awaited;
                }
                parts(begun.take())
            }
            _ => self.free(handle),
        }
    }

    /// Whether it is a persistent request that does not run.
    pub fn is_idle(&self, handle: i64) -> bool {
        matches!(self.0.get(&handle), Some(Request::Persistent(_, None, _)))
    }

    /// Whether it is a persistent request that ran before.
    pub fn was_started(&self, handle: i64) -> bool {
        matches!(
            self.0.get(&handle),
            Some(Request::Persistent(_, _, Life::Started))
        )
    }

    /// Whether it is a persistent request that was waited for and never started.
    pub fn is_awaited_in_vain(&self, handle: i64) -> bool {
        let request = self.0.get(&handle);
        matches!(request, Some(Request::Persistent(_, None, Life::Awaited)))
    }

    /// A request is given up, whether it runs or not. Gives the parts of what ran.
    pub fn free(&mut self, handle: i64) -> Vec<usize> {
        match self.0.get_mut(&handle) {
            Some(Request::Active(each)) if each.len() > 1 => parts(each.pop_front()),
            Some(_) => self.0.remove(&handle).map_or(Vec::new(), |it| match it {
                Request::Active(each) => parts(each),
                Request::Persistent(_, begun, _) => parts(begun),
            }),
            None => Vec::new(),
        }
    }

    /// So many requests that were not recorded are over, none of `others`. Gives the parts of those that these have to
    /// be; where more run, each of them may be over.
    pub fn complete_unseen(&mut self, count: usize, others: &[i64]) -> Vec<usize> {
        if count == 0 {
            return Vec::new();
        }
        let is_other = |handle: &i64| others.contains(handle);
        let running = self.0.iter().filter(|(handle, _)| !is_other(handle));
        let running: usize = running.map(|(_, it)| it.running().count()).sum();
        if running > count {
            let those = self.0.iter_mut().filter(|(handle, _)| !is_other(handle));
            let begun = those.flat_map(|(_, it)| it.running_mut());
            begun.for_each(|it| it.may_be_over = true);
            return Vec::new();
        }
        let mut over = Vec::new();
        self.0.retain(|handle, it| match it {
            _ if is_other(handle) => true,
            Request::Active(each) => {
                over.extend(parts(each.drain(..)));
                false
            }
            Request::Persistent(_, begun, _) => {
                over.extend(parts(begun.take()));
                true
            }
        });
        over.sort_unstable();
        over
    }

    /// Parts that run or are over, nobody knows.
    pub fn unsure(&self) -> impl Iterator<Item = usize> + '_ {
        let begun = self.0.values().flat_map(Request::running);
        let unsure = begun.filter(|it| it.may_be_over);
        unsure.flat_map(|it| &it.parts).copied()
    }

    /// What starts of persistent requests that do not run would begin, and whether each was ever started.
    pub fn idle(&self) -> Vec<(PartKind, bool)> {
        let idle = self.0.iter().filter_map(|(handle, it)| match it {
            Request::Persistent(kinds, None, life) => {
                Some((*handle, kinds, *life == Life::Started))
            }
            _ => None,
        });
        let mut idle: Vec<_> = idle.collect();
        idle.sort_by_key(|it| it.0);
        let each = idle
            .into_iter()
            .flat_map(|(_, kinds, ever)| kinds.iter().map(move |it| (it.clone(), ever)));
        each.collect()
    }

    /// Numbers of parts, once the first of them are left out.
    pub fn leave_out(&mut self, first: usize) {
        let begun = self.0.values_mut().flat_map(Request::running_mut);
        begun.for_each(|it| left(&mut it.parts, first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{receive, send};
    use crate::message::Mode;

    const HANDLE: i64 = 9;

    fn sent() -> [PartKind; 1] {
        [send(1, 0, Mode::Standard)]
    }

    fn received() -> [PartKind; 1] {
        [receive(Peer::Task(1), None)]
    }

    #[test]
    fn sends_may_have_one_handle() {
        let mut it = Requests::default();
        assert!(it.begin(HANDLE, &sent(), vec![0]).is_empty());
        assert!(it.begin(HANDLE, &sent(), vec![1]).is_empty());
        assert_eq!(it.parts(&[HANDLE]), [0]);
        assert_eq!(it.parts(&[HANDLE, HANDLE]), [0, 1]);
        assert_eq!(it.complete(HANDLE), [0]);
        assert_eq!(it.complete(HANDLE), [1]);
        assert!(it.is_empty());
    }

    #[test]
    fn as_many_sends_as_there_are_take_one_pass() {
        let mut it = Requests::default();
        for part in 0..200_000 {
            assert!(it.begin(HANDLE, &sent(), vec![part]).is_empty());
        }
        for part in 0..200_000 {
            assert_eq!(it.complete(HANDLE), [part]);
        }
        assert!(it.is_empty());
    }

    #[test]
    fn one_of_several_is_freed() {
        let mut it = Requests::default();
        it.begin(HANDLE, &sent(), vec![0]);
        it.begin(HANDLE, &sent(), vec![1]);
        assert_eq!(it.free(HANDLE), [0]);
        assert_eq!(it.complete(HANDLE), [1]);
        assert!(it.free(HANDLE).is_empty());
    }

    #[test]
    fn a_receive_has_a_handle_of_its_own() {
        let mut it = Requests::default();
        for part in 0..3 {
            let over = it.begin(HANDLE, &received(), vec![part]);
            assert_eq!(
                over,
                (0..part).skip(part.saturating_sub(1)).collect::<Vec<_>>()
            );
            assert_eq!(it.parts(&[HANDLE]), [part]);
        }
        assert_eq!(it.begin(HANDLE, &sent(), vec![3]), [2]);
        assert_eq!(it.make(HANDLE, sent().to_vec()), [3]);
    }

    #[test]
    fn a_persistent_request_runs_and_rests() {
        let mut it = Requests::default();
        it.make(HANDLE, sent().to_vec());
        assert_eq!(it.idle(), [(sent()[0].clone(), false)]);
        assert_eq!(it.template(HANDLE), Some((&sent()[..], false)));
        it.start(HANDLE, vec![0]);
        assert_eq!(it.template(HANDLE), Some((&sent()[..], true)));
        assert!(it.idle().is_empty());
        assert!(!it.is_idle(HANDLE));
        assert_eq!(it.complete(HANDLE), [0]);
        assert!(it.is_idle(HANDLE));
        assert_eq!(it.idle(), [(sent()[0].clone(), true)]);
        it.start(HANDLE, vec![1]);
        assert_eq!(it.free(HANDLE), [1]);
        assert!(it.is_empty());
    }

    #[test]
    fn a_persistent_request_is_waited_for_in_vain() {
        let mut it = Requests::default();
        it.make(HANDLE, sent().to_vec());
        assert!(!it.is_awaited_in_vain(HANDLE));
        assert!(it.complete(HANDLE).is_empty());
        assert!(it.is_awaited_in_vain(HANDLE));
        it.start(HANDLE, vec![0]);
        it.complete(HANDLE);
        assert!(!it.is_awaited_in_vain(HANDLE));
    }

    #[test]
    fn what_was_not_recorded_is_over() {
        let mut it = Requests::default();
        for part in 0..70 {
            it.begin(part as i64, &received(), vec![part]);
        }
        (0..64).for_each(|part| drop(it.complete(part)));
        assert_eq!(it.complete_unseen(6, &[]), [64, 65, 66, 67, 68, 69]);
        assert!(it.is_empty());
    }

    #[test]
    fn of_more_than_were_not_recorded_any_may_be_over() {
        let mut it = Requests::default();
        it.make(1, sent().to_vec());
        it.start(1, vec![0]);
        it.begin(2, &received(), vec![1]);
        it.begin(3, &received(), vec![2]);
        assert!(it.complete_unseen(1, &[3]).is_empty());
        let mut unsure: Vec<usize> = it.unsure().collect();
        unsure.sort_unstable();
        assert_eq!(unsure, [0, 1]);
        // It may be started, and then it runs; the others may be waited for.
        assert_eq!(it.template(1), Some((&sent()[..], false)));
        assert_eq!(it.start(1, vec![3]), [0]);
        assert_eq!(it.complete(2), [1]);
        assert_eq!(it.unsure().count(), 0);
        assert_eq!(it.parts(&[1, 3]), [3, 2]);
        it.leave_out(2);
        assert_eq!(it.parts(&[1, 3]), [1, 0]);
    }
}
