//! Loose ends, in words.

use crate::epochs::Needs;
use crate::loose::{Loose, LooseEnd};
use crate::wait_words::function;
use lockstep_api::mpi::Resource;
use lockstep_trace::{Site, TraceName, brief, ranges};

impl LooseEnd {
    /// What a task did, or several of them, where ` at halo.c:77`.
    fn told(&self, at: &str, are_several: bool) -> String {
        let it = if are_several { "they" } else { "it" };
        match self {
            Self::NeverReceived { name, to, tag } => format!(
                "sent rank {to} a message with tag {tag} ({name}{at}) that was never received"
            ),
            Self::NeverCompleted { name } => format!("never completed {name}{at}"),
            Self::OtherDatatype { sent, received, to } => {
                format!("sent rank {to} {sent}{at}, received as {received}")
            }
            Self::TooLarge { sent, room, to } => {
                format!("sent rank {to} {sent}{at}, for which the receive had room for {room}")
            }
            Self::BeforeInit { name } => format!("called {name}{at} before MPI_Init"),
            Self::Again { name } => format!("called {name}{at} though MPI had begun"),
            Self::WrongThread {
                name,
                threads,
                level,
            } => format!(
                "called {name}{at} in {}, which at {level} only the thread that began MPI may",
                in_threads(threads)
            ),
            Self::Freed { resource, name } => {
                format!(
                    "called {name}{at} with a {} that {it} had freed",
                    word(*resource)
                )
            }
            Self::Past { name } => format!("called {name}{at} with a request that was over"),
            Self::Idle { name } => {
                format!("called {name}{at} again and again with null requests only")
            }
            Self::Unmade { name } => {
                format!("called {name}{at} with a request that no recorded call had made")
            }
            Self::NotMarked { name, what } => format!(
                "waited in {name}{at} for a send of which {it} had not marked {what} ready (MPI_Pready)"
            ),
            Self::AtOnce {
                name,
                thread,
                others,
            } => format!(
                "was in {name}{at} in thread {thread} and in {others} at once, which two threads may not be at \
                 MPI_THREAD_SERIALIZED"
            ),
            Self::GivenUp { name } => {
                format!("called MPI_Request_free{at} for {name}, which {it} had not completed")
            }
            Self::StartedTwice { name } => {
                format!("called {name}{at} for a request that was running")
            }
            Self::LockedTwice { of: Some(of) } => {
                format!("locked the window of rank {of}{at} though {it} had it locked")
            }
            Self::LockedTwice { of: None } => {
                format!("locked a window{at} though {it} had it locked")
            }
            Self::OutsideEpoch { name, opens } => {
                format!("called {name}{at} without {}", lacked(*opens))
            }
            Self::NeverStarted => {
                format!("freed a persistent request{at} that {it} had waited for and never started")
            }
            Self::NoBuffer { name } => {
                format!("called {name}{at} without a buffer (MPI_Buffer_attach)")
            }
            Self::Argument { name, what } => format!("called {name}{at} with {what}"),
            Self::Aliased { name } => {
                format!("called {name}{at}, whose send and receive buffers overlap")
            }
            Self::Overlap {
                name,
                writes,
                other,
            } => {
                let does = if *writes { "writes into" } else { "reads from" };
                format!("called {name}{at}, which {does} the buffer of {other} while that runs")
            }
            Self::Uncommitted { name } => {
                format!("called {name}{at} with a datatype that {it} had not committed")
            }
            Self::OtherWay { name, mode } => {
                format!("called {name}{at} on a file that {it} had opened with {mode}")
            }
            Self::AttachedTwice => {
                format!("called MPI_Buffer_attach{at} though there was a buffer")
            }
            Self::SmallBuffer { name, bytes, room } => {
                format!(
                    "called {name}{at} with {bytes} bytes, for which there is a buffer of {room}"
                )
            }
            Self::NotInGroup { name, target } => format!(
                "called {name}{at} on the window of rank {target}, which is not in the group of MPI_Win_start"
            ),
            Self::OutsideWindow {
                name,
                target,
                size,
                bytes: (from, to),
            } => format!(
                "called {name}{at} on bytes {from} to {to} of the window of rank {target}, which has {size}"
            ),
            Self::NotReady { name, to } => {
                format!("called {name}{at} to rank {to}, whose receive need not have begun by then")
            }
            Self::Conflict {
                name,
                other,
                other_name,
                target,
            } => format!(
                "called {name}{at} on a part of the window of rank {target} to which rank {other} called \
                 {other_name} in the same epoch: nothing orders the two"
            ),
            Self::AfterFinalize { name } => format!("called {name}{at} after MPI_Finalize"),
            Self::NeverUnlocked { of: Some(of) } => {
                format!("never unlocked the window of rank {of}, locked{at}")
            }
            Self::NeverUnlocked { of: None } => format!("never unlocked a window, locked{at}"),
            Self::NeverEnded { name } => format!("never ended the epoch of {name}{at}"),
            Self::NeverFinalized => "ended without MPI_Finalize".to_owned(),
            Self::NeverFreed {
                resource: Resource::Message,
                name,
            } => format!("never received the message of {name}{at}"),
            Self::NeverFreed {
                resource: Resource::File,
                name,
            } => format!("never closed the file of {name}{at}"),
            Self::NeverFreed { resource, name } => {
                format!("never freed the {} of {name}{at}", word(*resource))
            }
        }
    }
}

impl std::fmt::Display for LooseEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.told("", false))
    }
}

impl Loose {
    /// In a sentence: `rank 3 never completed MPI_Isend at halo.c:77 (4 times)`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let kind = if self.tasks.len() == 1 {
            "rank"
        } else {
            "ranks"
        };
        let at = self.site.as_ref().map_or(String::new(), called_at);
        let more = match (self.times, self.tasks.len()) {
            (1, _) => String::new(),
            (times, 1) => format!(" ({times} times)"),
            (times, _) => format!(" ({times} times each)"),
        };
        let told = self.end.told(&at, self.tasks.len() > 1);
        format!("{kind} {} {told}{more}", ranges(&self.tasks))
    }
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

/// ` at halo.c:77`, ` in exchange()` where no line is known.
pub(crate) fn called_at(site: &Site) -> String {
    match site.at() {
        at if at.is_empty() => format!(" in {}", brief(&site.caller)),
        at => format!(" at {at}"),
    }
}
