//! The epochs of a task on its windows: what is called without one, and those that it never ends.
//!
//! ```text
//!  MPI_Win_fence              from the first on, accesses may come at any time, until one with MPI_MODE_NOSUCCEED
//!  MPI_Win_start  ... MPI_Win_complete    MPI_Win_lock ... MPI_Win_unlock      they may come between
//!  MPI_Win_post   ... MPI_Win_wait                                             exposes, and allows none
//! ```
//! *Guarantees*: only windows are judged that a recorded call of the same thread made, and of these none of which something
//! is not known. *Costs*: O(epochs that are open) a call on a window.

use lockstep_api::mpi::constants::{has_no_predecessor, has_no_successor};
use lockstep_api::mpi::{Does, Epoch, Resource};
use lockstep_comm::Routine;
use lockstep_comm::communicators::Resolved;
use lockstep_trace::TraceName;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A call that began an epoch: its function, trace and event.
type Began = (Arc<str>, TraceName, u64);

/// What is known of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    /// Whether there was a fence, and accesses since the last one that only fences allow.
    is_fenced: bool,
    has_accessed: bool,
    /// Whether some lock is of nobody knows whose part.
    is_unknown: bool,
    start: Option<Began>,
    post: Option<Began>,
    /// Locks that are held: whose part, `None` is everybody's.
    locks: Vec<Option<u32>>,
}

/// The epochs of a thread, by the handles of its windows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epochs {
    windows: FxHashMap<i64, State>,
}

/// What has to come before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Needs {
    /// A fence that ends the epoch before, which has accesses.
    Fence,
    /// The end of an epoch of the same kind: this step.
    End(Epoch),
    /// An epoch of any kind.
    Any,
    /// An epoch that this step begins.
    Begin(Epoch),
}

impl Epochs {
    /// A call made a window.
    pub(crate) fn made(&mut self, window: i64) {
        self.windows.insert(window, State::default());
    }

    /// What a call says of its window that is not so.
    pub(crate) fn claim(&self, does: Does, event: &Resolved) -> Option<String> {
        let state = self.windows.get(&event.handle("win")?.raw)?;
        let assertion = event.number("assert").unwrap_or(0);
        let claims = does == Does::Epoch(Epoch::Fence) && has_no_predecessor(assertion);
        let is_wrong = claims && state.has_accessed && !state.is_unknown;
        is_wrong.then(|| "MPI_MODE_NOPRECEDE behind accesses to the window".to_owned())
    }

    /// A call on a window begins; what it lacks.
    pub(crate) fn call(
        &mut self,
        (routine, trace): (&Routine, TraceName),
        event: &Resolved,
    ) -> Option<Needs> {
        let window = event.handle("win")?.raw;
        let state = self.windows.get_mut(&window)?;
        let began = || Some((routine.name.clone(), trace, event.annotated.index));
        let rank = |name| event.peer(name).and_then(|(_, peer)| peer.world);
        let epoch = match routine.meaning.does {
            Does::Epoch(epoch) => epoch,
            Does::Free(Resource::Window) => return state.fence(),
            Does::Access(_) => {
                let target = rank("target_rank")?;
                if state.is_unknown || state.start.is_some() || state.has_locked(Some(target)) {
                    return None;
                }
                state.has_accessed |= state.is_fenced;
                return (!state.is_fenced).then_some(Needs::Any);
            }
            _ => return None,
        };
        match epoch {
            Epoch::Fence => {
                let assertion = event.number("assert").unwrap_or(0);
                let begins = !has_no_successor(assertion);
                (state.is_fenced, state.has_accessed) = (begins, false);
                None
            }
            Epoch::Start => {
                let is_open = std::mem::replace(&mut state.start, began()).is_some();
                state
                    .fence()
                    .or(is_open.then_some(Needs::End(Epoch::Complete)))
            }
            Epoch::Complete => (state.start.take().is_none()).then_some(Needs::Begin(Epoch::Start)),
            Epoch::Post => {
                let is_open = std::mem::replace(&mut state.post, began()).is_some();
                is_open.then_some(Needs::End(Epoch::Wait))
            }
            Epoch::Wait => (state.post.take().is_none()).then_some(Needs::Begin(Epoch::Post)),
            Epoch::Test => (state.post.is_none()).then_some(Needs::Begin(Epoch::Post)),
            Epoch::LockAll => {
                state.locks.push(None);
                state.fence()
            }
            Epoch::Lock => {
                match rank("rank") {
                    Some(rank) => state.locks.push(Some(rank)),
                    None => state.is_unknown = true,
                }
                state.fence()
            }
            Epoch::UnlockAll => state.unlock(None, Needs::Begin(Epoch::LockAll)),
            Epoch::Unlock => state.unlock(Some(rank("rank")?), Needs::Begin(Epoch::Lock)),
            Epoch::Flush { .. } => {
                let is_open = state.is_unknown || state.has_locked(rank("rank"));
                (!is_open).then_some(Needs::Begin(Epoch::Lock))
            }
            Epoch::Sync | Epoch::SharedQuery => None,
        }
    }

    /// A test of a window that is exposed says that this is over.
    pub(crate) fn over(&mut self, window: i64) {
        if let Some(state) = self.windows.get_mut(&window) {
            state.post = None;
        }
    }

    /// A window is freed: the epochs on it that were begun and not ended.
    pub(crate) fn freed(&mut self, window: i64) -> Vec<Began> {
        let state = self.windows.remove(&window);
        state.iter().flat_map(State::open).collect()
    }

    /// Epochs that were begun and not ended, of windows that are there.
    pub(crate) fn unended(&self) -> Vec<Began> {
        let mut open: Vec<Began> = self.windows.values().flat_map(State::open).collect();
        open.sort_by_key(|it| it.2);
        open
    }
}

impl State {
    /// Ends a lock; what it lacks.
    fn unlock(&mut self, whose: Option<u32>, needs: Needs) -> Option<Needs> {
        match self.locks.iter().position(|it| *it == whose) {
            Some(place) => drop(self.locks.remove(place)),
            None => return (!self.is_unknown).then_some(needs),
        }
        None
    }

    /// Another epoch begins; what it lacks.
    fn fence(&self) -> Option<Needs> {
        (self.has_accessed && !self.is_unknown).then_some(Needs::Fence)
    }

    /// Whether it has locked the part of a rank; of one that is not known, any.
    fn has_locked(&self, whose: Option<u32>) -> bool {
        let is_it = |it: &Option<u32>| it.is_none() || whose.is_none() || *it == whose;
        self.locks.iter().any(is_it)
    }

    /// What was begun, but for locks.
    fn open(&self) -> impl Iterator<Item = Began> + use<> {
        self.start.clone().into_iter().chain(self.post.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_api::mpi::Kind;
    use lockstep_comm::communicators::{Meaning, Peer};
    use lockstep_comm::job::resolved;
    use lockstep_trace::{Argument, Handle, Value};

    /// What a call on a window lacks, that names this rank of the world, if any.
    fn calls(it: &mut Epochs, name: &str, rank: Option<u32>) -> Option<Needs> {
        let window = Argument {
            name: "win",
            kind: Kind::Window,
            value: Value::Handle(Handle { raw: 7, name: None }),
        };
        let parameter = match name.starts_with("MPI_Win_") {
            true => "rank",
            false => "target_rank",
        };
        let of = Argument {
            name: parameter,
            kind: Kind::Peer,
            value: Value::Number(0),
        };
        let mut event = resolved(vec![window, of]);
        event.meanings[1] = Meaning::Peer(Peer {
            communicator: None,
            world: rank,
            size: None,
        });
        it.call((&Routine::of(name), TraceName::new(0, 0)), &event)
    }

    /// A call on the window that asserts this.
    fn asserting(assertion: i64) -> Resolved {
        let window = Argument {
            name: "win",
            kind: Kind::Window,
            value: Value::Handle(Handle { raw: 7, name: None }),
        };
        let assertion = Argument {
            name: "assert",
            kind: Kind::Int,
            value: Value::Number(assertion),
        };
        resolved(vec![assertion, window])
    }

    /// `MPI_Win_fence` that asserts this.
    fn fence(it: &mut Epochs, assertion: i64) -> Option<Needs> {
        let fence = Routine::of("MPI_Win_fence");
        it.call((&fence, TraceName::new(0, 0)), &asserting(assertion))
    }

    #[test]
    fn a_fence_says_that_nothing_precedes_it() {
        const NO_PREDECESSOR: i64 = 1 << 13;
        let mut it = Epochs::default();
        it.made(7);
        fence(&mut it, 0);
        let claim = |it: &Epochs, assertion| {
            let does = Does::Epoch(Epoch::Fence);
            it.claim(does, &asserting(assertion)).is_some()
        };
        assert!(!claim(&it, NO_PREDECESSOR));
        calls(&mut it, "MPI_Put", Some(1));
        assert!(claim(&it, NO_PREDECESSOR) && !claim(&it, 0));
        fence(&mut it, 0);
        assert!(!claim(&it, NO_PREDECESSOR));
    }

    #[test]
    fn the_last_fence_begins_no_epoch() {
        // Of Open MPI and of MPICH, alone and with MPI_MODE_NOPUT.
        for last in [16, 16 + 4, 16384, 16384 + 4096] {
            let mut it = window();
            fence(&mut it, 0);
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None);
            fence(&mut it, last);
            assert_eq!(
                calls(&mut it, "MPI_Put", Some(1)),
                Some(Needs::Any),
                "{last}"
            );
            assert_eq!(calls(&mut it, "MPI_Win_free", None), None);
            fence(&mut it, 0);
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None);
        }
        // MPI_MODE_NOPRECEDE, MPI_MODE_NOSTORE of both; bits that neither has.
        for other in [2, 8, 8192, 2048, 16 + 64, 16384 + 65536] {
            let mut it = window();
            fence(&mut it, other);
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None, "{other}");
        }
    }

    fn window() -> Epochs {
        let mut it = Epochs::default();
        it.made(7);
        it
    }

    #[test]
    fn an_access_needs_an_epoch() {
        assert_eq!(calls(&mut window(), "MPI_Put", Some(1)), Some(Needs::Any));
        // To nobody, or who knows to whom.
        assert_eq!(calls(&mut window(), "MPI_Put", None), None);
        assert_eq!(calls(&mut Epochs::default(), "MPI_Put", Some(1)), None);
        for begins in ["fence", "start", "lock", "lock_all"] {
            let mut it = window();
            calls(&mut it, &format!("MPI_Win_{begins}"), Some(1));
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None, "{begins}");
        }
        let mut other = window();
        calls(&mut other, "MPI_Win_lock", Some(2));
        assert_eq!(calls(&mut other, "MPI_Put", Some(1)), Some(Needs::Any));
        assert_eq!(
            calls(&mut other, "MPI_Win_flush", Some(1)),
            Some(Needs::Begin(Epoch::Lock))
        );
        assert_eq!(calls(&mut other, "MPI_Win_flush_all", None), None);
        let mut exposed = window();
        calls(&mut exposed, "MPI_Win_post", None);
        assert_eq!(calls(&mut exposed, "MPI_Get", Some(1)), Some(Needs::Any));
    }

    #[test]
    fn an_epoch_of_fences_with_accesses_ends_with_one() {
        for begins in ["lock", "lock_all", "start"].map(|it| format!("MPI_Win_{it}")) {
            let mut it = window();
            calls(&mut it, "MPI_Win_fence", None);
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None);
            assert_eq!(calls(&mut it, &begins, Some(1)), Some(Needs::Fence));
            let mut it = window();
            for name in ["MPI_Win_fence", "MPI_Put", "MPI_Win_fence", &begins] {
                assert_eq!(calls(&mut it, name, Some(1)), None, "{begins}");
            }
            // What the lock allows is none of the fences' business.
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None);
            let ends = begins
                .replace("lock", "unlock")
                .replace("start", "complete");
            assert_eq!(calls(&mut it, &ends, Some(1)), None);
            assert_eq!(calls(&mut it, &begins, Some(1)), None);
        }
        let mut it = window();
        calls(&mut it, "MPI_Win_fence", None);
        let flush = calls(&mut it, "MPI_Win_flush", Some(1));
        assert_eq!(flush, Some(Needs::Begin(Epoch::Lock)));
    }

    #[test]
    fn accesses_are_over_when_their_window_is_freed() {
        let mut it = window();
        for name in ["MPI_Win_fence", "MPI_Put", "MPI_Win_fence"] {
            assert_eq!(calls(&mut it, name, Some(1)), None);
        }
        assert_eq!(calls(&mut it.clone(), "MPI_Win_free", None), None);
        assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None);
        assert_eq!(calls(&mut it, "MPI_Win_free", None), Some(Needs::Fence));
    }

    #[test]
    fn one_epoch_of_a_kind_at_a_time() {
        for (begins, ends, needs) in [
            ("start", "complete", Needs::End(Epoch::Complete)),
            ("post", "wait", Needs::End(Epoch::Wait)),
        ] {
            let [begins, ends] = [begins, ends].map(|it| format!("MPI_Win_{it}"));
            let mut it = window();
            for name in [&begins, &ends, &begins] {
                assert_eq!(calls(&mut it, name, None), None);
            }
            assert_eq!(calls(&mut it, &begins, None), Some(needs));
        }
        let mut tested = window();
        calls(&mut tested, "MPI_Win_post", None);
        tested.over(7);
        assert_eq!(calls(&mut tested, "MPI_Win_post", None), None);
    }

    #[test]
    fn what_ends_has_begun() {
        let ends = [
            ("start", "complete", Needs::Begin(Epoch::Start)),
            ("post", "wait", Needs::Begin(Epoch::Post)),
            ("lock", "unlock", Needs::Begin(Epoch::Lock)),
            ("lock_all", "unlock_all", Needs::Begin(Epoch::LockAll)),
        ];
        for (begins, ends, needs) in ends {
            let [begins, ends] = [begins, ends].map(|it| format!("MPI_Win_{it}"));
            let mut it = window();
            assert_eq!(calls(&mut it, &ends, Some(1)), Some(needs));
            assert_eq!(calls(&mut it, &begins, Some(1)), None);
            assert_eq!(calls(&mut it, &ends, Some(1)), None);
            assert_eq!(calls(&mut it, &ends, Some(1)), Some(needs));
        }
        assert_eq!(
            calls(&mut window(), "MPI_Win_flush", Some(1)),
            Some(Needs::Begin(Epoch::Lock))
        );
    }

    #[test]
    fn what_began_and_did_not_end() {
        let mut it = window();
        calls(&mut it, "MPI_Win_post", None);
        assert_eq!(it.unended().len(), 1);
        it.over(7);
        assert!(it.unended().is_empty());
        calls(&mut it, "MPI_Win_start", None);
        assert_eq!(it.freed(7).len(), 1);
        assert!(it.unended().is_empty());
    }
}
