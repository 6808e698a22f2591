//! What a run tells of its processes without a look at their events: which there are, their threads, and how they ended.
//!
//! *Guarantees*: the names and ends of [`Run`](crate::Run), or nothing. *Costs*: what it takes to map the process files; no
//! event is decoded. *Not for*: sealed runs, and damaged ones.

use crate::catalogue::imports;
use crate::container::{Facts, ImageFact, ThreadFile};
use crate::ends::{self, Ends};
use crate::error::Error;
use crate::load::{self, optional, process_key};
use crate::map::Folder;
use crate::model::End;
use crate::name::{ThreadName, TraceName};
use crate::naming::{self, Created};
use crate::open::{self, Named};
use lockstep_format::plan::Role;
use lockstep_format::sealed::FILE;
use std::path::Path;

/// A run's processes, in the order of [`Run::processes`](crate::Run).
#[derive(Debug)]
pub struct Outline {
    /// Whether some process called `MPI_Init`.
    pub is_mpi: bool,
    /// The processes.
    pub processes: Vec<Outlined>,
    root: Folder,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlined {
    /// How it ended.
    pub end: End,
    /// Its traces, in order.
    pub traces: Vec<TraceName>,
    /// The plans of its images.
    plans: Vec<String>,
}

impl Outline {
    /// Reads it; `None` where more has to be read to tell as much.
    ///
    /// # Errors
    /// As [`Run::open`](crate::Run::open).
    pub fn open(directory: &Path) -> Result<Option<Self>, Error> {
        let (root, _) = open::root(directory)?;
        if root.has(FILE) {
            return Ok(None);
        }
        let mut notes = Vec::new();
        let loaded = load::processes(&root, &mut notes);
        open::complete(&root)?;
        let ends = Ends::open(&root, &mut notes);
        let named = open::name(loaded);
        let is_mpi = named.iter().any(Named::is_mpi);
        let outlined = named.into_iter().map(|it| outlined(it, &ends, &mut notes));
        let processes: Option<Vec<Outlined>> = outlined.collect();
        open::complete(&root)?;
        let outline = processes.map(|processes| Self {
            is_mpi,
            processes,
            root,
        });
        Ok(outline.filter(|_| notes.is_empty()))
    }

    /// Whether an image of some process calls a library function that `is_wanted` accepts, by its linkage name; true where
    /// nobody knows.
    #[must_use]
    pub fn may_call(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        let mut plans: Vec<&String> = self.processes.iter().flat_map(|it| &it.plans).collect();
        plans.sort_unstable();
        plans.dedup();
        let folder = optional(&self.root, "plans", &mut Vec::new());
        plans.into_iter().any(|plan| {
            let names = folder.as_ref().and_then(|it| imports(it, plan));
            names.is_none_or(|names| names.iter().any(|name| is_wanted(name)))
        })
    }
}

/// `None` where something is wrong with the process's file, or only its events tell how its threads are called.
fn outlined(named: Named, ends: &Ends, notes: &mut Vec<String>) -> Option<Outlined> {
    let file = &named.loaded.file;
    let is_whole = |it: &ThreadFile| it.findings.is_empty();
    if !file.findings.is_empty() || !file.threads.iter().all(is_whole) {
        return None;
    }
    let seen = ends.of(process_key(&named.loaded.file_name).0, notes);
    let end = ends::settle(
        named.has_successor,
        seen,
        (file.end_kind, file.end_code),
        || ends::presence(&named.loaded.host, file),
    );
    let created = file.threads.iter().map(|thread| {
        // The first is one of the program's whatever it ran.
        let ran_main = thread.tid == file.pid || ran_main(&file.facts, thread)?;
        Some(Created {
            tid: thread.tid,
            started: thread.started,
            ran_main,
        })
    });
    let created: Vec<Created> = created.collect::<Option<_>>()?;
    let mut threads: Vec<ThreadName> = naming::name_threads(file.pid, &created);
    threads.sort_unstable();
    Some(Outlined {
        end,
        traces: threads
            .into_iter()
            .map(|thread| TraceName {
                process: named.name,
                thread,
            })
            .collect(),
        plans: file.facts.images.iter().map(|it| it.plan.clone()).collect(),
    })
}

/// Whether a thread ran code of the main program: all that has events did so, where no other image has any.
fn ran_main(facts: &Facts, thread: &ThreadFile) -> Option<bool> {
    let recorded = |it: &&ImageFact| it.count > 0;
    let mut recorded = facts.images.iter().filter(recorded);
    let has_events = |it: &ThreadFile| it.symbols > 0 || !it.staged.is_empty();
    recorded
        .all(|it| it.role == Role::Main.name())
        .then(|| thread.segments().any(has_events))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::Run;
    use crate::open_tests::{Directory, facts, identity, small_plan};
    use crate::writer::{Identity, Writer};
    use lockstep_format::codec::Kind;
    use lockstep_format::process::{end, flag};

    /// A run of one process, whose threads made these events.
    fn run(identity: Identity, threads: &[(u32, &[u32])], facts: &str) -> Directory {
        let mut writer = Writer::new(Kind::None, identity, facts, u64::MAX);
        for (tid, events) in threads {
            let thread = writer.thread(*tid, 0);
            for symbol in *events {
                writer.event(thread, *symbol);
            }
            writer.commit(thread);
        }
        let directory = Directory::new();
        directory.write("plans/ab.plan", &small_plan());
        directory.write("processes/somewhere-else-100-7-0.lockstep", writer.bytes());
        directory
    }

    fn ended() -> Identity {
        Identity {
            end: (end::EXITED, 0),
            ..identity(100, 0)
        }
    }

    /// What it tells is what the run does.
    fn check(directory: &Directory) -> Outline {
        let outline = Outline::open(directory.path()).unwrap().unwrap();
        let run = Run::open(directory.path()).unwrap();
        assert_eq!(outline.is_mpi, run.is_mpi);
        let of_run = run.processes.iter().map(|it| {
            let traces: Vec<TraceName> = it.threads.iter().map(|it| it.name).collect();
            (it.end, traces)
        });
        let of_outline = outline.processes.iter();
        assert!(of_run.eq(of_outline.map(|it| (it.end, it.traces.clone()))));
        outline
    }

    #[test]
    fn names_and_ends_are_those_of_the_run() {
        let directory = run(ended(), &[(100, &[16, 0])], &facts(None));
        let one = check(&directory);
        assert!(!one.is_mpi && one.may_call(|name| name == "MPI_Send"));
        assert!(!one.may_call(|name| name == "main"));
        // A thread without any event is none of the program's.
        let threads: [(u32, &[u32]); 3] = [(100, &[16]), (102, &[]), (101, &[17, 0])];
        let several = check(&run(ended(), &threads, &facts(None)));
        let helpers = several.processes[0].traces.iter();
        let helpers = helpers.filter(|it| matches!(it.thread, ThreadName::Helper(_)));
        assert_eq!(helpers.count(), 1);
        assert!(
            check(&run(
                identity(100, flag::MPI),
                &[(100, &[16])],
                &facts(Some(0))
            ))
            .is_mpi
        );
    }

    #[test]
    fn what_only_events_tell_is_not_told() {
        let is_told = |directory: &Directory| Outline::open(directory.path()).unwrap().is_some();
        // Another image has functions, too: whose the second thread called is in its events.
        let facts = facts(None) + "image\t/lib/y.so\tcd.plan\tlibrary\t20\t4\t0x500000\n";
        let threads: [(u32, &[u32]); 2] = [(100, &[16]), (101, &[20])];
        assert!(is_told(&run(ended(), &threads[..1], &facts)));
        assert!(!is_told(&run(ended(), &threads, &facts)));
        let damaged = run(
            ended(),
            &threads[..1],
            "host\tsomewhere-else\nimage\t/opt/app\tab.plan\tmain\tsixteen\t4\t0x400000\n",
        );
        assert!(!is_told(&damaged));
    }

    /// Nothing of the stream is read: here it lies where nothing can be.
    #[test]
    fn no_event_is_decoded() {
        let directory = run(ended(), &[(100, &[16, 0])], &facts(None));
        let path = directory
            .path()
            .join("processes/somewhere-else-100-7-0.lockstep");
        let mut bytes = std::fs::read(&path).unwrap();
        // The codec writes symbols as they are.
        let stream = bytes
            .windows(8)
            .rposition(|it| it == [16, 0, 0, 0, 0, 0, 0, 0])
            .unwrap();
        bytes[stream] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(
            Run::open(directory.path()).unwrap().processes[0].threads[0]
                .damage
                .is_some()
        );
        assert!(Outline::open(directory.path()).unwrap().is_some());
    }
}
