//! Reads a sealed file before it counts, and compares it with the run as recorded: all events, and all that stands beside them.

use super::file::{OpenRun, Sealed, SealedThread};
use super::seal::{SealError, TreeOf};
use super::tell::fingerprint;
use super::tree::{Names, Walk};
use crate::map::Mapped;
use crate::model::{Frame, FunctionId, Run, Thread};
use crate::name::TraceName;
use crate::open::{Sealable, ThreadPart};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// The functions that names are in a run.
pub(super) fn names_in(run: &Run, sealed: &Sealed) -> Names {
    let ids: FxHashMap<(&str, &str), FunctionId> = run
        .functions
        .iter()
        .zip(0..)
        .map(|(it, id)| ((it.image.as_str(), it.linkage.as_str()), FunctionId(id)))
        .collect();
    let rows = sealed.names.iter().map(|name| {
        let key = (name.image.as_str(), name.linkage.as_str());
        let id = ids.get(&key).copied().unwrap_or(FunctionId(u32::MAX));
        (id, name.leaf)
    });
    Names {
        rows: rows.collect(),
    }
}

/// Reads what is about to be written, and compares it with what was recorded: the events that trees tell, and what every
/// process has beside them, of which `beside` has hashes.
pub(super) fn verify(
    sealable: &Sealable,
    path: &Path,
    bytes: Vec<u8>,
    roots: &[Vec<Option<TreeOf>>],
    beside: &[u64],
) -> Result<(), SealError> {
    let run = &sealable.run;
    let wrong = |text: String| SealError::Store {
        path: path.to_owned(),
        text,
    };
    let sealed = Sealed::open(path, Mapped::Memory(bytes)).map_err(wrong)?;
    let names = names_in(run, &sealed);
    let mut told = sealed.processes().map_err(wrong)?;
    let parts = run.processes.iter().zip(&sealable.parts).zip(roots);
    for (((process, part), roots), recorded) in parts.zip(beside) {
        let told = told.next().transpose().map_err(wrong)?;
        let is_same = told.is_some_and(|told| {
            told.file_name == part.file_name
                && told.findings == part.findings
                && told.strays == part.strays
                && fingerprint(&told.residue) == *recorded
                && are_alike(
                    &told.threads,
                    &names,
                    (&process.threads, &part.threads),
                    roots,
                )
        });
        if !is_same {
            return Err(SealError::DiffersBeside {
                path: run.directory.clone(),
                process: process.name.to_string(),
            });
        }
    }
    let tree = sealed.tree().map_err(|text| wrong(text.to_owned()))?;
    let mut compared: FxHashSet<(u128, &TreeOf)> = FxHashSet::default();
    for (process, roots) in run.processes.iter().zip(roots) {
        for (thread, root) in process.threads.iter().zip(roots) {
            let Some(root) = root else { continue };
            // Equal bytes are the same events again.
            if let Some(content) = thread.content()
                && !compared.insert((content, root))
            {
                continue;
            }
            let mut told = Walk::new(tree, &names, root.root, &root.strays);
            let mut recorded = thread.events();
            loop {
                let next = recorded.next();
                let same =
                    next == told.next() && (next.is_none() || told.symbols == recorded.symbols());
                if !same {
                    return Err(SealError::Differs {
                        path: run.directory.clone(),
                        trace: thread.name.to_string(),
                    });
                }
                if next.is_none() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Whether just the threads whose events trees tell are told, each as it was recorded.
fn are_alike(
    told: &[SealedThread],
    names: &Names,
    (threads, parts): (&[Thread], &[ThreadPart]),
    roots: &[Option<TreeOf>],
) -> bool {
    let recorded = threads.iter().zip(parts).zip(roots);
    let mut recorded = recorded.filter_map(|(thread, root)| Some((thread, root.as_ref()?)));
    let are_alike = told.iter().all(|told| {
        let thread = recorded.next();
        thread.is_some_and(|(thread, root)| is_alike(told, names, thread, root))
    });
    are_alike && recorded.next().is_none()
}

fn is_alike(
    told: &SealedThread,
    names: &Names,
    (thread, part): (&Thread, &ThreadPart),
    root: &TreeOf,
) -> bool {
    let counts = (told.events, told.calls, told.dropped, told.bytes);
    let leaf = told.open_leaf.checked_sub(1).map(|it| names.function(it));
    told.index == part.index
        && (told.root, &told.strays) == (root.root, &root.strays)
        && counts == (thread.events, thread.calls, thread.dropped, thread.bytes)
        && (told.unverified, leaf) == (thread.unverified, thread.open_leaf)
        && (told.committing, told.ran_main) == (part.committing, part.ran_main)
        && told.damage == part.damage
        && is_stack(&told.open, names, &thread.open)
}

/// Whether open calls are told as they were recorded.
fn is_stack(told: &[OpenRun], names: &Names, recorded: &[Frame]) -> bool {
    let mut recorded = recorded.iter();
    let are_alike = told.iter().all(|run| {
        (0..run.times).all(|_| {
            recorded.next().is_some_and(|frame| {
                let at = frame.called_at.as_ref();
                let at = at.map(|at| (at.file.as_str(), at.line));
                let told_at = run.called_at.as_ref();
                let told_at = told_at.map(|(file, line)| (file.as_str(), *line));
                (names.function(run.name), run.handed_over, told_at)
                    == (frame.function, frame.handed_over, at)
            })
        })
    });
    are_alike && recorded.next().is_none()
}

/// Reads the run as it is with the file that was written, and compares the threads that were kept as recorded.
pub(super) fn verify_kept(
    run: &Run,
    draft: &Path,
    roots: &[Vec<Option<TreeOf>>],
) -> Result<(), SealError> {
    let name = draft.file_name().unwrap_or_default().to_string_lossy();
    let written = Sealable::open_with(&run.directory, &name).map_err(|error| SealError::Store {
        path: run.directory.clone(),
        text: error.to_string(),
    })?;
    let written = written.run;
    let threads = written.processes.iter().flat_map(|it| &it.threads);
    let by_name: FxHashMap<TraceName, &Thread> = threads.map(|it| (it.name, it)).collect();
    for (process, roots) in run.processes.iter().zip(roots) {
        let kept = process.threads.iter().zip(roots);
        for (thread, _) in kept.filter(|(_, root)| root.is_none()) {
            let same = by_name.get(&thread.name).is_some_and(|other| {
                (other.events, other.dropped, &other.open)
                    == (thread.events, thread.dropped, &thread.open)
                    && other.events().eq(thread.events())
            });
            if !same {
                return Err(SealError::Differs {
                    path: run.directory.clone(),
                    trace: thread.name.to_string(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::record::Bytes;
    use super::super::seal::{Trees, assemble};
    use super::super::tell::tell;
    use super::*;
    use crate::model::Event;
    use crate::open_tests::Directory;
    use lockstep_format::sealed::Header;
    use lockstep_writer::{Builder, Named, ProcessFacts};

    #[test]
    fn every_thread_of_a_tree_is_told_as_it_was_recorded() {
        let [main, send] = [FunctionId(0), FunctionId(1)];
        let events = vec![Event::Call(main), Event::Call(send), Event::Return];
        let name: TraceName = "0.0".parse().unwrap();
        let threads = [events, Vec::new()].map(|events| Thread::from_events(name, events));
        let parts = [3, 4].map(|index| ThreadPart {
            index,
            committing: false,
            ran_main: true,
            damage: Vec::new(),
        });
        let root = TreeOf {
            root: 2,
            ..TreeOf::default()
        };
        let roots = [Some(root), None];
        let names = Names {
            rows: vec![(main, false), (send, false)],
        };
        let thread = &threads[0];
        let told = SealedThread {
            index: 3,
            root: 2,
            events: thread.events,
            calls: thread.calls,
            bytes: thread.bytes,
            ran_main: true,
            open: vec![OpenRun {
                name: 0,
                handed_over: false,
                called_at: None,
                times: 1,
            }],
            ..SealedThread::default()
        };
        let is_so = |told: &[SealedThread]| are_alike(told, &names, (&threads, &parts), &roots);
        assert!(is_so(std::slice::from_ref(&told)));
        assert!(!is_so(&[]));
        assert!(!is_so(&[told.clone(), told.clone()]));
        let other = |change: fn(&mut SealedThread)| {
            let mut told = told.clone();
            change(&mut told);
            is_so(&[told])
        };
        assert!(!other(|it| it.index = 4));
        assert!(!other(|it| it.root = 1));
        assert!(!other(|it| it.strays.push(1)));
        assert!(!other(|it| it.calls += 1));
        assert!(!other(|it| it.open_leaf = 1));
        assert!(!other(|it| it.open.clear()));
        assert!(!other(|it| it.open[0].name = 1));
        assert!(!other(|it| it.open[0].times = 2));
        assert!(!other(|it| it.open[0].handed_over = true));
        assert!(!other(
            |it| it.open[0].called_at = Some(("a.c".to_owned(), 1))
        ));
    }

    /// A rank that sends once.
    fn run(behind: i64, nanoseconds: u64, handle: u64) -> (Directory, Sealable) {
        let directory = Directory::empty();
        let mut builder = Builder::new(directory.path()).unwrap();
        let named = Named {
            image: "/app",
            name: "MPI_Send",
            imported: true,
            source: None,
        };
        let send = builder.function(&named).unwrap();
        let process = builder.process(ProcessFacts::default()).unwrap();
        builder.handle(process, "ompi_mpi_comm_world", handle);
        builder.begin(process, 1).unwrap();
        builder.call(send, Some(nanoseconds)).unwrap();
        builder
            .arguments(send, false, &[behind, 1, 2, 3, 4, 5])
            .unwrap();
        builder.ret(None).unwrap();
        builder.end().unwrap();
        builder.finish(&serde_json::json!({})).unwrap();
        let sealable = Sealable::open(directory.path()).unwrap();
        (directory, sealable)
    }

    #[test]
    fn what_stands_beside_events_is_compared_before_the_process_files_go() {
        let trees = Trees {
            header: Header {
                slots: 14,
                ..Header::default()
            },
            ..Trees::default()
        };
        let roots = vec![vec![None]];
        let told = |sealable: &Sealable| {
            let told = tell(sealable, &trees, &roots, false).unwrap();
            let base = Bytes::default();
            let (bytes, _) = assemble(
                &trees.header,
                &base,
                &told.names,
                &told.threads,
                &[],
                &told.raw.0,
            );
            (bytes, told.beside)
        };
        let (_directory, recorded) = run(0x5500, 100, 0x7000);
        let (bytes, beside) = told(&recorded);
        let check = |bytes| verify(&recorded, Path::new("sealed"), bytes, &roots, &beside);
        check(bytes).unwrap();
        for other in [
            run(0x5501, 100, 0x7000),
            run(0x5500, 101, 0x7000),
            run(0x5500, 100, 0x7001),
        ] {
            let found = check(told(&other.1).0).unwrap_err();
            assert!(matches!(found, SealError::DiffersBeside { .. }), "{found}");
        }
    }
}
