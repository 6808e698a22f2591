//! Which partitions of its partitioned sends a task has marked ready (MPI 4.1, chapter 4): a send of which some are not never
//! ends, and none may be marked twice.
//!
//! *Guarantees*: what is said not to be ready was marked by no call of the thread that waits for it. *Costs*: a bit for each of the
//! first [`MOST`] partitions of a send.

use lockstep_api::mpi::{Does, Partitions as Which, Scope};
use lockstep_comm::communicators::Resolved;
use lockstep_comm::{requests, whole};
use rustc_hash::FxHashMap;

/// So many partitions of a send are known.
const MOST: usize = 1 << 12;

/// The partitioned sends of a thread, by their requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Partitions(FxHashMap<i64, Partitioned>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Partitioned {
    runs: bool,
    is_ready: Vec<bool>,
    /// Which were marked by a call is known.
    is_sure: bool,
}

/// How many partitions a call makes a send of.
pub(crate) fn count(event: &Resolved) -> Option<usize> {
    event.get("dest")?;
    let count = usize::try_from(event.number("partitions")?).ok()?;
    (1..=MOST).contains(&count).then_some(count)
}

impl Partitions {
    /// A call gave a request, for so many partitions if it is of such a send.
    pub fn made(&mut self, handle: i64, count: Option<usize>) {
        match count {
            Some(count) => {
                let made = Partitioned {
                    runs: false,
                    is_ready: vec![false; count],
                    is_sure: true,
                };
                self.0.insert(handle, made);
            }
            None if self.0.is_empty() => {}
            None => drop(self.0.remove(&handle)),
        }
    }

    /// A call begins. Of one that waits for a send whose partitions are not all ready, what is not.
    pub fn call(&mut self, does: Does, event: &Resolved) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let handles = requests(event).handles;
        match does {
            Does::Start(_) => {
                for handle in handles {
                    if let Some(it) = self.0.get_mut(&handle) {
                        it.runs = true;
                        it.is_ready.fill(false);
                        it.is_sure = true;
                    }
                }
                None
            }
            Does::Ready(which) => {
                let it = self.0.get_mut(handles.first()?)?;
                match marked(which, event) {
                    Some(marked) => {
                        for at in marked {
                            let at = usize::try_from(at).ok();
                            if let Some(it) = at.and_then(|at| it.is_ready.get_mut(at)) {
                                *it = true;
                            }
                        }
                    }
                    None => {
                        it.is_ready.fill(true);
                        it.is_sure = false;
                    }
                }
                None
            }
            Does::Wait(Scope::One | Scope::All) => {
                handles.iter().find_map(|it| self.0.get_mut(it)?.awaited())
            }
            _ => None,
        }
    }
}

impl Partitions {
    /// Of a call that is about to mark partitions, one that is marked: `partition 2, which is ready`.
    pub fn again(&self, does: Does, event: &Resolved) -> Option<String> {
        let Does::Ready(which) = does else {
            return None;
        };
        let it = self.0.get(requests(event).handles.first()?)?;
        let is_ready = |at: &i64| {
            let at = usize::try_from(*at).ok();
            it.runs && it.is_sure && at.and_then(|at| it.is_ready.get(at)) == Some(&true)
        };
        let again = marked(which, event)?.into_iter().find(is_ready)?;
        Some(format!("partition {again}, which it had marked before"))
    }
}

impl Partitioned {
    /// `partition 2 of 4`.
    fn awaited(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.runs) {
            return None;
        }
        let of = self.is_ready.len();
        let lacks = |at: &u32| self.is_ready.get(*at as usize) == Some(&false);
        let lacking: Vec<u32> = (0..u32::try_from(of).ok()?).filter(lacks).collect();
        let several = if lacking.len() == 1 { "" } else { "s" };
        let which = lockstep_trace::ranges(&lacking);
        (!lacking.is_empty()).then(|| format!("partition{several} {which} of {of}"))
    }
}

/// The partitions that a call marks; `None` where that is not known.
fn marked(which: Which, event: &Resolved) -> Option<Vec<i64>> {
    match which {
        Which::One => Some(vec![event.number("partition")?]),
        Which::Range => {
            let most = i64::try_from(MOST).ok()?;
            let last = event.number("partition_high")?.min(most);
            Some((event.number("partition_low")?..=last).collect())
        }
        Which::List => whole(event, "array_of_partitions").map(<[i64]>::to_vec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ready() {
        let mut it = Partitioned {
            runs: true,
            is_ready: vec![true, false, true, false, false],
            is_sure: true,
        };
        assert_eq!(it.awaited().as_deref(), Some("partitions 1,3-4 of 5"));
        // It is over, as far as is known.
        assert_eq!(it.awaited(), None);
        it.runs = true;
        it.is_ready.fill(true);
        assert_eq!(it.awaited(), None);
    }

    #[test]
    fn a_handle_may_become_another_request() {
        let mut it = Partitions::default();
        it.made(7, Some(2));
        it.made(8, None);
        assert_eq!(it.0.len(), 1);
        it.made(7, None);
        assert_eq!(it, Partitions::default());
    }
}
