//! Loose ends, in words.

use crate::place::site;
use lockstep_api::mpi::{self, Does, Epoch, Resource};
use lockstep_check::{Loose, LooseEnd, Needs};
use lockstep_trace::{TraceName, ranges};

/// What a task did, or several of them, where ` at halo.c:77`.
fn told(end: &LooseEnd, at: &str, are_several: bool) -> String {
    let it = if are_several { "they" } else { "it" };
    match end {
        LooseEnd::NeverReceived { name, to, tag } => {
            format!("sent rank {to} a message with tag {tag} ({name}{at}) that was never received")
        }
        LooseEnd::NeverCompleted { name } => format!("never completed {name}{at}"),
        LooseEnd::OtherDatatype { sent, received, to } => {
            format!("sent rank {to} {sent}{at}, received as {received}")
        }
        LooseEnd::TooLarge { sent, room, to } => {
            format!("sent rank {to} {sent}{at}, for which the receive had room for {room}")
        }
        LooseEnd::BeforeInit { name } => format!("called {name}{at} before MPI_Init"),
        LooseEnd::Again { name } => format!("called {name}{at} though MPI had begun"),
        LooseEnd::WrongThread {
            name,
            threads,
            level,
        } => format!(
            "called {name}{at} in {}, which at {level} only the thread that began MPI may",
            in_threads(threads)
        ),
        LooseEnd::Freed { resource, name } => {
            format!(
                "called {name}{at} with a {} that {it} had freed",
                word(*resource)
            )
        }
        LooseEnd::Failed { name, error } => {
            format!("called {name}{at}, which failed ({error}), and went on")
        }
        LooseEnd::Past { name } => format!("called {name}{at} with a request that was over"),
        LooseEnd::Idle { name } => {
            format!("called {name}{at} again and again with null requests only")
        }
        LooseEnd::Unmade { name } => {
            format!("called {name}{at} with a request that no recorded call had made")
        }
        LooseEnd::NotMarked { name, what } => format!(
            "waited in {name}{at} for a send of which {it} had not marked {what} ready (MPI_Pready)"
        ),
        LooseEnd::AtOnce {
            name,
            thread,
            others,
        } => format!(
            "was in {name}{at} in thread {thread} and in {others} at once, which two threads may not be at \
             MPI_THREAD_SERIALIZED"
        ),
        LooseEnd::GivenUp { name } => {
            format!("called MPI_Request_free{at} for {name}, which {it} had not completed")
        }
        LooseEnd::StartedTwice { name } => {
            format!("called {name}{at} for a request that was running")
        }
        LooseEnd::LockedTwice { of: Some(of) } => {
            format!("locked the window of rank {of}{at} though {it} had it locked")
        }
        LooseEnd::LockedTwice { of: None } => {
            format!("locked a window{at} though {it} had it locked")
        }
        LooseEnd::OutsideEpoch { name, opens } => {
            format!("called {name}{at} without {}", lacked(*opens))
        }
        LooseEnd::NeverStarted => {
            format!("freed a persistent request{at} that {it} had waited for and never started")
        }
        LooseEnd::NoBuffer { name } => {
            format!("called {name}{at} without a buffer (MPI_Buffer_attach)")
        }
        LooseEnd::Argument { name, what, .. } => format!("called {name}{at} with {what}"),
        LooseEnd::Aliased { name } => {
            format!("called {name}{at}, whose send and receive buffers overlap")
        }
        LooseEnd::Overlap {
            name,
            writes,
            other,
        } => {
            let does = if *writes { "writes into" } else { "reads from" };
            format!("called {name}{at}, which {does} the buffer of {other} while that runs")
        }
        LooseEnd::Uncommitted { name } => {
            format!("called {name}{at} with a datatype that {it} had not committed")
        }
        LooseEnd::OtherWay { name, mode } => {
            format!("called {name}{at} on a file that {it} had opened with {mode}")
        }
        LooseEnd::AttachedTwice => {
            format!("called MPI_Buffer_attach{at} though there was a buffer")
        }
        LooseEnd::SmallBuffer { name, bytes, room } => {
            format!("called {name}{at} with {bytes} bytes, for which there is a buffer of {room}")
        }
        LooseEnd::NotInGroup { name, target } => format!(
            "called {name}{at} on the window of rank {target}, which is not in the group of MPI_Win_start"
        ),
        LooseEnd::OutsideWindow {
            name,
            target,
            size,
            bytes: (from, to),
        } => format!(
            "called {name}{at} on bytes {from} to {to} of the window of rank {target}, which has {size}"
        ),
        LooseEnd::NotReady { name, to } => {
            format!("called {name}{at} to rank {to}, whose receive need not have begun by then")
        }
        LooseEnd::Conflict {
            name,
            other,
            other_name,
            target,
        } => format!(
            "called {name}{at} on a part of the window of rank {target} to which rank {other} called \
             {other_name} in the same epoch: nothing orders the two"
        ),
        LooseEnd::AfterFinalize { name } => format!("called {name}{at} after MPI_Finalize"),
        LooseEnd::NeverUnlocked { of: Some(of) } => {
            format!("never unlocked the window of rank {of}, locked{at}")
        }
        LooseEnd::NeverUnlocked { of: None } => format!("never unlocked a window, locked{at}"),
        LooseEnd::NeverEnded { name } => format!("never ended the epoch of {name}{at}"),
        LooseEnd::NeverFinalized => "ended without MPI_Finalize".to_owned(),
        LooseEnd::NeverFreed {
            resource: Resource::Message,
            name,
        } => format!("never received the message of {name}{at}"),
        LooseEnd::NeverFreed {
            resource: Resource::File,
            name,
        } => format!("never closed the file of {name}{at}"),
        LooseEnd::NeverFreed { resource, name } => {
            format!("never freed the {} of {name}{at}", word(*resource))
        }
    }
}

/// A loose end in a sentence: `rank 3 never completed MPI_Isend at halo.c:77 (4 times)`.
#[must_use]
pub fn loose(loose: &Loose) -> String {
    let kind = if loose.tasks.len() == 1 {
        "rank"
    } else {
        "ranks"
    };
    let at = site(loose.site.as_ref());
    let more = match (loose.times, loose.tasks.len()) {
        (1, _) => String::new(),
        (times, 1) => format!(" ({times} times)"),
        (times, _) => format!(" ({times} times each)"),
    };
    let told = told(&loose.end, &at, loose.tasks.len() > 1);
    format!("{kind} {} {told}{more}", ranges(&loose.tasks))
}

fn lacked(needs: Needs) -> String {
    match needs {
        Needs::Fence => "a fence that ends the epoch before it".to_owned(),
        Needs::End(step) => format!("{} for the epoch before it", function(step)),
        Needs::Any => "an epoch (MPI_Win_fence, MPI_Win_start, MPI_Win_lock)".to_owned(),
        Needs::Begin(step) => function(step),
    }
}

fn word(resource: Resource) -> &'static str {
    match resource {
        Resource::Communicator => "communicator",
        Resource::Window => "window",
        Resource::PersistentRequest => "persistent request",
        Resource::Datatype => "datatype",
        Resource::Reduction => "reduction",
        Resource::Group => "group",
        Resource::File => "file",
        Resource::Info => "info object",
        Resource::Errhandler => "error handler",
        Resource::Keyval => "attribute key",
        Resource::Message => "message",
        Resource::Session => "session",
    }
}

/// `thread 1.1`, `threads 0.1, 1.1, 2.1 and 5 more`.
fn in_threads(threads: &[TraceName]) -> String {
    let named: Vec<String> = threads.iter().map(TraceName::to_string).collect();
    match named.as_slice() {
        [one] => format!("thread {one}"),
        some if some.len() <= MOST_THREADS => format!("threads {}", some.join(", ")),
        some => {
            let (first, rest) = some.split_at(MOST_THREADS);
            format!("threads {} and {} more", first.join(", "), rest.len())
        }
    }
}

/// So many threads are told of by name.
const MOST_THREADS: usize = 3;

/// The function that is this step of an epoch.
pub(crate) fn function(step: Epoch) -> String {
    let mut all = mpi::functions();
    let found = all.find(|it| it.meaning().does == Does::Epoch(step));
    format!("MPI_{}", found.map_or("", |it| it.base))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tasks: &[u32], end: LooseEnd) -> String {
        loose(&Loose {
            tasks: tasks.into(),
            end,
            first: None,
            site: None,
            times: 1,
        })
    }

    #[test]
    fn three_threads_are_named() {
        let of = |tasks: &[u32], threads: &[(u32, u32)]| {
            let threads = threads.iter();
            let end = LooseEnd::WrongThread {
                name: "MPI_Send".to_owned(),
                threads: threads.map(|it| TraceName::new(it.0, it.1)).collect(),
                level: "MPI_THREAD_SINGLE",
            };
            let told = told(tasks, end);
            let may = ", which at MPI_THREAD_SINGLE only the thread that began MPI may";
            told.strip_suffix(may).map(str::to_owned)
        };
        let one = "rank 1 called MPI_Send in thread 1.1";
        assert_eq!(of(&[1], &[(1, 1)]).as_deref(), Some(one));
        let two = "ranks 0-1 called MPI_Send in threads 0.1, 1.2";
        assert_eq!(of(&[0, 1], &[(0, 1), (1, 2)]).as_deref(), Some(two));
        let all = [(0, 1), (0, 2), (1, 1), (1, 2), (3, 1)];
        let some = "ranks 0-1,3 called MPI_Send in threads 0.1, 0.2, 1.1 and 2 more";
        assert_eq!(of(&[0, 1, 3], &all).as_deref(), Some(some));
    }

    #[test]
    fn several_ranks_are_they() {
        let freed = LooseEnd::Freed {
            resource: Resource::Communicator,
            name: "MPI_Bcast".to_owned(),
        };
        let words = "ranks 0-1 called MPI_Bcast with a communicator that they had freed";
        assert_eq!(told(&[0, 1], freed), words);
    }
}
