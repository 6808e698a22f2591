//! The epochs of a task on its windows: what is called without one, and those that it never ends.
//!
//! ```text
//!  MPI_Win_fence              from the first on, accesses may come at any time, until one with MPI_MODE_NOSUCCEED
//!  MPI_Win_start  ... MPI_Win_complete    MPI_Win_lock ... MPI_Win_unlock      they may come between
//!  MPI_Win_post   ... MPI_Win_wait                                             exposes, and allows none
//! ```
//! *Guarantees*: only windows are judged that a recorded call of the same thread made, and of these none of which something
//! is not known. *Costs*: O(epochs that are open) a call on a window.

use lockstep_trace::{Resolved, TraceName};
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
pub(crate) struct Epochs {
    windows: FxHashMap<i64, State>,
}

/// What has to come before.
pub(crate) type Needs = &'static str;

/// What another epoch needs, where fences began one that has accesses.
const FENCE: Needs = "a fence that ends the epoch before it";
/// What another epoch of the same kind needs.
const COMPLETE: Needs = "MPI_Win_complete for the epoch before it";
const WAIT: Needs = "MPI_Win_wait for the epoch before it";
/// What an access needs.
const ANY: Needs = "an epoch (MPI_Win_fence, MPI_Win_start, MPI_Win_lock)";

/// `MPI_MODE_NOSUCCEED` of libraries, and what is above all that they assert: of Open MPI, and of MPICH.
const NO_SUCCEED: [(i64, i64); 2] = [(1 << 4, 1 << 5), (1 << 14, 1 << 15)];
/// The least that MPICH and its kin assert.
const LEAST_OF_MPICH: i64 = 1 << 10;

/// Whether a fence with this assertion begins no epoch.
fn ends_all(assertion: i64) -> bool {
    let [open_mpi, mpich] = NO_SUCCEED;
    let (bit, above) = match assertion & (LEAST_OF_MPICH - 1) {
        0 => mpich,
        _ => open_mpi,
    };
    assertion < above && assertion & bit != 0
}

impl Epochs {
    /// A call made a window.
    pub(crate) fn made(&mut self, window: i64) {
        self.windows.insert(window, State::default());
    }

    /// A call on a window begins, by its name without `MPI_`; what it lacks.
    pub(crate) fn call(
        &mut self,
        (name, trace): (&Arc<str>, TraceName),
        event: &Resolved,
    ) -> Option<Needs> {
        let window = event.handle("win")?.raw;
        let state = self.windows.get_mut(&window)?;
        let began = || Some((name.clone(), trace, event.annotated.index));
        let rank = |name| event.peer(name).and_then(|(_, peer)| peer.world);
        match name.strip_prefix("MPI_").unwrap_or(name) {
            "Win_fence" => {
                let assertion = event.number("assert").unwrap_or(0);
                (state.is_fenced, state.has_accessed) = (!ends_all(assertion), false);
            }
            "Win_start" => {
                let is_open = state.start.is_some();
                state.start = began();
                return state.fence().or(is_open.then_some(COMPLETE));
            }
            "Win_complete" => return state.start.take().is_none().then_some("MPI_Win_start"),
            "Win_post" => {
                let is_open = state.post.is_some();
                state.post = began();
                return is_open.then_some(WAIT);
            }
            "Win_free" => return state.fence(),
            "Win_wait" => return state.post.take().is_none().then_some("MPI_Win_post"),
            "Win_test" if state.post.is_none() => return Some("MPI_Win_post"),
            "Win_lock_all" => {
                state.locks.push(None);
                return state.fence();
            }
            "Win_lock" => {
                match rank("rank") {
                    Some(rank) => state.locks.push(Some(rank)),
                    None => state.is_unknown = true,
                }
                return state.fence();
            }
            "Win_unlock_all" => return state.unlock(None, "MPI_Win_lock_all"),
            "Win_unlock" => {
                let rank = rank("rank")?;
                return state.unlock(Some(rank), "MPI_Win_lock");
            }
            "Win_flush" | "Win_flush_local" | "Win_flush_all" | "Win_flush_local_all" => {
                return (!state.is_unknown && !state.has_locked(rank("rank")))
                    .then_some("MPI_Win_lock");
            }
            "Put" | "Get" | "Accumulate" | "Get_accumulate" | "Fetch_and_op"
            | "Compare_and_swap" | "Rput" | "Rget" | "Raccumulate" | "Rget_accumulate" => {
                let target = rank("target_rank")?;
                if state.is_unknown || state.start.is_some() || state.has_locked(Some(target)) {
                    return None;
                }
                state.has_accessed |= state.is_fenced;
                return (!state.is_fenced).then_some(ANY);
            }
            _ => {}
        }
        None
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
        (self.has_accessed && !self.is_unknown).then_some(FENCE)
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
    use crate::message_tests::resolved;
    use lockstep_trace::mpi::Kind;
    use lockstep_trace::{Argument, Handle, Meaning, Peer, Value};

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
        it.call((&name.into(), TraceName::new(0, 0)), &event)
    }

    /// `MPI_Win_fence` that asserts this.
    fn fence(it: &mut Epochs, assertion: i64) -> Option<Needs> {
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
        let event = resolved(vec![assertion, window]);
        it.call((&"MPI_Win_fence".into(), TraceName::new(0, 0)), &event)
    }

    #[test]
    fn the_last_fence_begins_no_epoch() {
        // Of Open MPI and of MPICH, alone and with MPI_MODE_NOPUT.
        for last in [16, 16 + 4, 16384, 16384 + 4096] {
            let mut it = window();
            fence(&mut it, 0);
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None);
            fence(&mut it, last);
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), Some(ANY), "{last}");
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
        assert_eq!(calls(&mut window(), "MPI_Put", Some(1)), Some(ANY));
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
        assert_eq!(calls(&mut other, "MPI_Put", Some(1)), Some(ANY));
        assert_eq!(
            calls(&mut other, "MPI_Win_flush", Some(1)),
            Some("MPI_Win_lock")
        );
        assert_eq!(calls(&mut other, "MPI_Win_flush_all", None), None);
        let mut exposed = window();
        calls(&mut exposed, "MPI_Win_post", None);
        assert_eq!(calls(&mut exposed, "MPI_Get", Some(1)), Some(ANY));
    }

    #[test]
    fn an_epoch_of_fences_with_accesses_ends_with_one() {
        for begins in ["lock", "lock_all", "start"].map(|it| format!("MPI_Win_{it}")) {
            let mut it = window();
            calls(&mut it, "MPI_Win_fence", None);
            assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None);
            assert_eq!(calls(&mut it, &begins, Some(1)), Some(FENCE));
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
        assert_eq!(flush, Some("MPI_Win_lock"));
    }

    #[test]
    fn accesses_are_over_when_their_window_is_freed() {
        let mut it = window();
        for name in ["MPI_Win_fence", "MPI_Put", "MPI_Win_fence"] {
            assert_eq!(calls(&mut it, name, Some(1)), None);
        }
        assert_eq!(calls(&mut it.clone(), "MPI_Win_free", None), None);
        assert_eq!(calls(&mut it, "MPI_Put", Some(1)), None);
        assert_eq!(calls(&mut it, "MPI_Win_free", None), Some(FENCE));
    }

    #[test]
    fn one_epoch_of_a_kind_at_a_time() {
        for (begins, ends, needs) in [("start", "complete", COMPLETE), ("post", "wait", WAIT)] {
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
            ("start", "complete", "MPI_Win_start"),
            ("post", "wait", "MPI_Win_post"),
            ("lock", "unlock", "MPI_Win_lock"),
            ("lock_all", "unlock_all", "MPI_Win_lock_all"),
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
            Some("MPI_Win_lock")
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
