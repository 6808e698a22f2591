//! From a directory to a [`Run`].
//!
//! ```text
//! lockstep.json ── version ─────────────────────────────────────────────┐
//! processes/*  ── container ── naming ── catalogue (plans, lines) ── stream::scan ── Run
//! ends/*       ── ends ─────────────────────────────────────────────────┘
//! ```
//! Where the run is sealed, one file is in the place of `processes/*`: what is not events is read from it as from
//! process files, and a thread's tree is in the place of its scan.
//!
//! Files are taken apart and streams scanned in parallel; what is decided from several of them
//! (names, functions) is decided in between.

use crate::arguments::Source;
use crate::catalogue::{Catalogue, Image};
use crate::container::{Finding, Side, SideStream};
use crate::ends::{self, Ends};
use crate::error::Error;
use crate::holds::Holds;
use crate::inferred::Told;
use crate::live::{Follower, Live};
use crate::load::{self, Loaded, Whole, optional, process_key};
use crate::map::Folder;
use crate::mirror::place_calls;
use crate::model::{
    Compiled, Coverage, Frame, Function, FunctionId, Process, Run, SourceLine, Thread,
};
use crate::name::{ProcessName, TraceName};
use crate::naming::{self, Created, Place, Program};
use crate::scans::scan_all;
use crate::sealed::{Names, Sealed, SealedStream, SealedThread};
use crate::select::Selection;
use crate::stream::{FileStream, Scan, Segment, Stream};
use crate::symbols::Symbols;
use crate::times::{self, Clock, Recorded, Times};
use crate::{MARKER, VERSION};
use lockstep_api::mpi;
use lockstep_format::codec::Kind;
use lockstep_format::plan::{Role, refusal};
use lockstep_format::process::{OLDEST, flag, header, loss};
use lockstep_format::sealed as layout;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A marker is a page of text.
const MOST_MARKER: u64 = 1 << 20;
impl Run {
    /// Opens the run in `directory`: reads names, ends and plans, checks every process file and
    /// decodes every stream once (in parallel) for its open calls. Events are decoded again whenever
    /// they are asked for; nothing is kept of them but the mapped files, or copies of short streams.
    ///
    /// # Errors
    /// Where there is no run, or one of another version. A damaged run opens, with notes.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        Sealable::open(directory).map(|opened| opened.run)
    }

    /// The same of those processes alone that any of `wanted` means: the streams of others are not decoded, they are not in
    /// the run, and what is wrong with them is not told. Names, numbers of functions (but of symbols that no plan has) and times
    /// are those of the whole run.
    ///
    /// # Errors
    /// As [`Run::open`]. That nothing is meant is none: the run has no process then.
    pub fn open_only(directory: &Path, wanted: &[Selection]) -> Result<Self, Error> {
        let opened = Sealable::open_as(directory, layout::FILE, None, Some(wanted));
        opened.map(|opened| opened.run)
    }

    /// The same, of a run that was opened before.
    pub(crate) fn open_live(directory: &Path, live: &mut Live) -> Result<Self, Error> {
        Sealable::open_as(directory, layout::FILE, Some(live), None).map(|opened| opened.run)
    }
}

/// A run, and what sealing it needs beside.
#[derive(Debug)]
pub struct Sealable {
    /// The run.
    pub run: Run,
    /// Whether it is sealed.
    pub is_sealed: bool,
    /// In the order of its processes.
    pub(crate) parts: Vec<ProcessPart>,
}

/// Of a process, what is in its file beside its threads.
#[derive(Debug)]
pub(crate) struct ProcessPart {
    pub file_name: String,
    pub whole: Whole,
    pub findings: Vec<Finding>,
    /// Symbols that no image has.
    pub strays: Vec<u32>,
    /// In the order of its threads.
    pub threads: Vec<ThreadPart>,
}

/// The same of a thread.
#[derive(Debug, Clone)]
pub(crate) struct ThreadPart {
    pub index: u32,
    pub committing: bool,
    pub ran_main: bool,
    pub damage: Vec<String>,
}

impl Sealable {
    /// As [`Run::open`].
    ///
    /// # Errors
    /// As there.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        Self::open_as(directory, layout::FILE, None, None)
    }

    /// The same with the sealed file under another name: one that is to be looked at before it counts.
    pub(crate) fn open_with(directory: &Path, sealed: &str) -> Result<Self, Error> {
        Self::open_as(directory, sealed, None, None)
    }

    fn open_as(
        directory: &Path,
        sealed: &str,
        mut live: Option<&mut Live>,
        wanted: Option<&[Selection]>,
    ) -> Result<Self, Error> {
        let (root, codec) = root(directory)?;
        let mut notes = Vec::new();
        let sealed = open_sealed(&root, sealed)?;
        let loaded = match &sealed {
            Some(sealed) => {
                let loaded = load::sealed_processes(sealed, &mut notes);
                loaded.map_err(|text| Error::Sealed {
                    path: sealed.path.clone(),
                    text,
                })?
            }
            None => load::processes(&root, &mut notes),
        };
        // Before what is known of a run that is opened again is taken, and when all of this one was asked for.
        complete(&root)?;

        let ends = Ends::open(&root, &mut notes);
        let plans = optional(&root, "plans", &mut notes);
        let lines = optional(&root, "lines", &mut notes);

        let ordered = name(loaded);
        let mut catalogue = Catalogue::new(plans.as_ref(), lines.as_ref());
        let mut processes: Vec<Opened> = ordered
            .into_iter()
            .map(|named| {
                let follower = live
                    .as_deref_mut()
                    .map(|it| it.take(&named.loaded.file_name));
                let opened = Opened::new(named, &mut catalogue);
                Opened { follower, ..opened }
            })
            .collect();
        let is_mpi = processes.iter().any(|process| process.named.is_mpi());
        let clocks = clocks(&processes);
        if let Some(wanted) = wanted {
            processes.retain(|process| wanted.iter().any(|it| it.means(process.named.name)));
        }
        scan_all(&mut processes);
        for process in &mut processes {
            process.name_strays(&mut catalogue, &mut notes);
            if let Some((live, follower)) = live.as_deref_mut().zip(process.follower.take()) {
                live.put(&process.named.loaded.file_name, follower);
            }
        }
        let sealed = sealed.map(|sealed| {
            let shared = sealed.shared_names();
            let rows = sealed.names.iter().zip(0..).map(|(name, number)| {
                let known = catalogue.find(&name.image, &name.linkage, number < shared);
                (known.unwrap_or(Names::OTHER), name.leaf)
            });
            let rows = rows.collect();
            (sealed, Arc::new(Names { rows }))
        });

        let codec = codec
            .or_else(|| {
                processes
                    .first()
                    .map(|process| process.named.loaded.file.codec)
            })
            .unwrap_or(Kind::Lockstep);
        notes.append(&mut catalogue.notes);
        let mpi = Arc::new(mpi_functions(&catalogue.functions));
        let (mut processes, parts): (Vec<Process>, Vec<ProcessPart>) = processes
            .into_iter()
            .map(|process| {
                let functions = (&catalogue.functions[..], &mpi);
                process.finish(&ends, functions, sealed.as_ref(), &mut notes)
            })
            .unzip();
        complete(&root)?;
        let threads = processes.iter_mut().flat_map(|it| &mut it.threads);
        for times in threads.filter_map(|thread| thread.times.as_mut()) {
            times.clock = clocks.get(&times.recorded.host).cloned().flatten();
        }
        let run = Run {
            directory: directory.to_owned(),
            codec,
            functions: catalogue.finish(),
            processes,
            is_mpi,
            notes,
        };
        Ok(Self {
            run,
            is_sealed: sealed.is_some(),
            parts,
        })
    }
}

/// The run's directory, and what its marker says of the codec.
pub(crate) fn root(directory: &Path) -> Result<(Folder, Option<Kind>), Error> {
    let root = Folder::open(directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => not_a_run(directory, "nothing"),
        io::ErrorKind::NotADirectory => not_a_run(directory, "a file"),
        _ => Error::reading(directory, error),
    })?;
    let codec = read_marker(&root)?;
    Ok((root, codec))
}

/// Whether everything that was to be opened could be: what was not, for want of descriptors, is not absent.
pub(crate) fn complete(root: &Folder) -> Result<(), Error> {
    let refused = root.refused();
    refused.map_or(Ok(()), |(path, shortage)| Err(Error::short(path, shortage)))
}

/// The file of a sealed run, if there is one.
fn open_sealed(root: &Folder, name: &str) -> Result<Option<Arc<Sealed>>, Error> {
    if !root.has(name) {
        return Ok(None);
    }
    let path = root.path.join(name);
    let bytes = root
        .map(name)
        .map_err(|error| Error::reading(&path, error))?;
    match Sealed::open(&path, bytes) {
        Ok(sealed) => Ok(Some(Arc::new(sealed))),
        Err(text) => Err(Error::Sealed { path, text }),
    }
}

/// The functions that are MPI's.
fn mpi_functions(functions: &[Function]) -> FxHashMap<FunctionId, mpi::Function> {
    let imported = functions.iter().zip(0..).filter(|(it, _)| it.imported);
    imported
        .filter_map(|(function, id)| {
            let known = mpi::Function::of(function.linkage.as_bytes())?;
            Some((FunctionId(id), known))
        })
        .collect()
}

/// Each host's clock, by what all threads read there.
fn clocks(processes: &[Opened]) -> FxHashMap<String, Option<Clock>> {
    let mut readings: FxHashMap<&str, Vec<(u64, u64)>> = FxHashMap::default();
    for Loaded { host, file, .. } in processes.iter().map(Opened::loaded) {
        let segments = file.threads.iter().flat_map(|thread| thread.segments());
        let threads = segments.map(|segment| &segment.side);
        for side in threads.filter(|side| side.last.is_some()) {
            readings.entry(host).or_default().extend(&side.clocks);
        }
    }
    let clocks = readings.into_iter();
    clocks
        .map(|(host, readings)| (host.to_owned(), Clock::new(readings)))
        .collect()
}

fn not_a_run(path: &Path, found: &str) -> Error {
    Error::NotARun {
        path: path.to_owned(),
        found: found.to_owned(),
    }
}

/// Checks the version; the codec, where the marker names one that we know.
fn read_marker(root: &Folder) -> Result<Option<Kind>, Error> {
    let path = root.path.join(MARKER);
    let bytes = root
        .read(MARKER, MOST_MARKER)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => not_a_run(&root.path, "a directory without it"),
            _ => Error::reading(&path, error),
        })?;
    let marker: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| not_a_run(&root.path, &format!("{MARKER} that is no JSON ({error})")))?;
    let version = marker.get("version");
    let is_known = |version| (u64::from(OLDEST)..=u64::from(VERSION)).contains(&version);
    if !version
        .and_then(serde_json::Value::as_u64)
        .is_some_and(is_known)
    {
        return Err(Error::Version {
            path,
            expected: VERSION,
            found: version.map_or_else(|| "none".to_owned(), ToString::to_string),
            written_by: marker
                .get("tool")
                .and_then(serde_json::Value::as_str)
                .map(|tool| format!(" of lockstep {tool}"))
                .unwrap_or_default(),
        });
    }
    Ok(marker
        .get("codec")
        .and_then(serde_json::Value::as_str)
        .and_then(Kind::from_name))
}

/// A process with its name.
pub(crate) struct Named {
    pub name: ProcessName,
    rank: Option<u32>,
    forked_from: Option<ProcessName>,
    pub has_successor: bool,
    pub loaded: Loaded,
}

impl Named {
    pub fn is_mpi(&self) -> bool {
        self.loaded.file.flags & flag::MPI != 0
    }
}

/// Their names, and their order.
pub(crate) fn name(loaded: Vec<Loaded>) -> Vec<Named> {
    let programs: Vec<Program> = loaded
        .iter()
        .map(|process| Program {
            host: process.host.clone(),
            pid: process.file.pid,
            start_time: process.file.start_time,
            exec_count: process.file.exec_count,
            created: process.file.created,
            is_mpi: process.file.flags & flag::MPI != 0,
            place: Place::from_environment(&process.file.facts.environment),
        })
        .collect();
    let mut latest: FxHashMap<_, u32> = FxHashMap::default();
    for program in &programs {
        let count = latest.entry(program.process()).or_default();
        *count = program.exec_count.max(*count);
    }
    let names = naming::name_processes(&programs);
    let forked_from = |child: &Loaded| {
        let is_parent = |it: &&(usize, &Program)| {
            let (_, it) = it;
            it.host == child.host && it.pid == child.file.parent && it.created <= child.file.created
        };
        let is_forked = child.file.flags & flag::FORKED != 0;
        let parents = programs.iter().enumerate().filter(|_| is_forked);
        let parent = parents
            .filter(|it| is_parent(&it))
            .max_by_key(|it| it.1.created);
        parent.and_then(|(at, _)| Some(names.get(at)?.0))
    };
    let parents: Vec<Option<ProcessName>> = loaded.iter().map(forked_from).collect();
    let named = names.iter().zip(&programs).zip(parents).zip(loaded).map(
        |((((name, rank), program), forked_from), loaded)| Named {
            name: *name,
            rank: *rank,
            forked_from,
            has_successor: latest
                .get(&program.process())
                .is_some_and(|latest| *latest > program.exec_count),
            loaded,
        },
    );
    let mut ordered: Vec<Named> = named.collect();
    ordered.sort_by(|a, b| (a.name, &a.loaded.file_name).cmp(&(b.name, &b.loaded.file_name)));
    ordered
}

/// A process whose symbols are known.
pub(crate) struct Opened {
    named: Named,
    pub symbols: Arc<Symbols>,
    /// Where an image with call sites was loaded.
    images: Vec<(u64, Arc<Image>)>,
    /// Build id of the program.
    build: String,
    /// How that was compiled.
    compiled: Compiled,
    coverage: Coverage,
    /// Of its threads.
    pub scans: Vec<Scan>,
    /// Where the run is opened again and again.
    pub follower: Option<Follower>,
}

impl Opened {
    fn new(named: Named, catalogue: &mut Catalogue<'_>) -> Self {
        let facts = &named.loaded.file.facts;
        let mut main = 0..0;
        let (mut build, mut compiled) = (String::new(), Compiled::default());
        let mut blocks = Vec::new();
        let mut images = Vec::new();
        let mut coverage = Coverage {
            untraced_images: facts.untraced.clone(),
            trace: facts.trace.clone(),
            skip: facts.skip.clone(),
            ..Coverage::default()
        };
        let mut counted = FxHashSet::default();
        for fact in &facts.images {
            if fact.role == Role::Main.name() {
                main = fact.first..fact.first.saturating_add(fact.count);
            }
            let Some(image) = catalogue.image(fact) else {
                continue;
            };
            if fact.role == Role::Main.name() {
                build.clone_from(&image.build);
                compiled.clone_from(&image.compiled);
            }
            images.push((fact.bias, Arc::clone(&image)));
            // An image that came back to another place is the same image.
            if !counted.insert((fact.first, &fact.plan)) {
                continue;
            }
            // What the process did not reserve is not its.
            let count = image.rows.len().min(fact.count as usize);
            let rows = if count == image.rows.len() {
                Arc::clone(&image.rows)
            } else {
                image.rows.iter().copied().take(count).collect()
            };
            blocks.push((fact.first, rows));
            let counters = facts.counters.iter().find(|(plan, _)| *plan == fact.plan);
            let count_of = |counter: u32| {
                let (_, first) = counters?;
                let index = first.checked_add(counter)? as usize;
                let count = named.loaded.file.counters.get(index).copied();
                (index < header::COUNTER_COUNT).then_some(count.unwrap_or(0))
            };
            coverage.traced += count.min(image.rows.len() - image.second) as u64;
            coverage.left_out += image.left_out;
            for refused in &image.refused {
                let list = match refused.kind {
                    refusal::POINTERS => &mut coverage.pointers,
                    _ => &mut coverage.refused,
                };
                let mut found = refused.refused.clone();
                found.calls = match refused.counter {
                    Some(counter) => count_of(counter),
                    // Nobody calls it.
                    None => (!found.more).then_some(0),
                };
                found.more |= found.calls.is_none();
                list.push(found);
            }
        }
        Self {
            symbols: catalogue.symbols(main, blocks),
            named,
            images,
            build,
            compiled,
            coverage,
            scans: Vec::new(),
            follower: None,
        }
    }

    /// What its process file is, as far as it was read.
    pub fn loaded(&self) -> &Loaded {
        &self.named.loaded
    }

    /// Gives functions to symbols that no image has, and scans again where there were any.
    fn name_strays(&mut self, catalogue: &mut Catalogue<'_>, notes: &mut Vec<String>) {
        let mut strays: Vec<u32> = self
            .scans
            .iter()
            .flat_map(|scan| scan.unknown.iter().copied())
            .chain(self.named.loaded.strays.iter().copied())
            .collect();
        strays.sort_unstable();
        strays.dedup();
        if strays.is_empty() {
            return;
        }
        let facts = &self.named.loaded.file.facts;
        let program = facts.program.as_deref().unwrap_or("unknown");
        for symbol in &strays {
            let function = catalogue.intern_stray(*symbol, &facts.images, program);
            Arc::make_mut(&mut self.symbols).add_stray(*symbol, function);
        }
        notes.push(format!(
            "processes/{}: {} symbols that no plan has, the first of them {}",
            self.named.loaded.file_name,
            strays.len(),
            strays.first().copied().unwrap_or(0),
        ));
        self.named.loaded.strays = strays;
        self.follower = None;
        scan_all(std::slice::from_mut(self));
    }

    fn finish(
        self,
        ends: &Ends,
        (functions, mpi): (&[Function], &Arc<FxHashMap<FunctionId, mpi::Function>>),
        sealed: Option<&(Arc<Sealed>, Arc<Names>)>,
        notes: &mut Vec<String>,
    ) -> (Process, ProcessPart) {
        let is_mpi = self.named.is_mpi();
        let Named {
            name,
            rank,
            forked_from,
            has_successor,
            loaded,
        } = self.named;
        let Loaded {
            file_name,
            mapped,
            whole,
            file,
            library,
            host,
            told,
            strays,
        } = loaded;
        let seen = ends.of(process_key(&file_name).0, notes);
        let end = ends::settle(has_successor, seen, (file.end_kind, file.end_code), || {
            ends::presence(&host, &file)
        });
        for finding in &file.findings {
            notes.push(format!("processes/{file_name}: {finding}"));
        }

        let symbols = self.symbols;
        let world_size = naming::world_size(&file.facts.environment);
        let images: Arc<[(u64, Arc<Image>)]> = self.images.into();
        let created: Vec<Created> = file
            .threads
            .iter()
            .zip(&self.scans)
            .map(|(thread, scan)| Created {
                tid: thread.tid,
                started: thread.started,
                ran_main: scan.ran_main,
            })
            .collect();
        let thread_names = naming::name_threads(file.pid, &created);
        let mut threads: Vec<(Thread, ThreadPart)> = Vec::with_capacity(file.threads.len());
        for ((thread, scan), thread_name) in
            file.threads.into_iter().zip(self.scans).zip(thread_names)
        {
            let name = TraceName {
                process: name,
                thread: thread_name,
            };
            let told = told.get(&thread.index);
            let committing = told.map_or(thread.is_committing, |told| told.committing);
            if committing {
                notes.push(format!(
                    "processes/{file_name}: thread {name} was inside a commit, read as committed"
                ));
            }
            let damage: Vec<String> = match told {
                Some(told) => told.damage.clone(),
                None => thread
                    .findings
                    .iter()
                    .map(ToString::to_string)
                    .chain(scan.damage)
                    .collect(),
            };
            let part = ThreadPart {
                index: thread.index,
                committing,
                ran_main: scan.ran_main,
                damage: damage.clone(),
            };
            notes.extend(
                damage
                    .iter()
                    .map(|text| format!("processes/{file_name}: thread {name}: {text}")),
            );
            let is_whole = scan.decoded == thread.symbols;
            let bytes = thread.bytes();
            let dropped = thread
                .segments()
                .nth(scan.start)
                .map_or(0, |segment| segment.before);
            let mut segments: Vec<Segment> = Vec::new();
            let mut sides: Vec<Side> = Vec::new();
            for earlier in thread.earlier.into_iter().skip(scan.start) {
                segments.push(Segment {
                    decoded: earlier.symbols,
                    pieces: earlier.pieces,
                    tail: earlier.tail,
                    inherited: earlier.inherited,
                });
                sides.push(earlier.side);
            }
            segments.push(Segment {
                pieces: thread.pieces,
                tail: thread.tail,
                decoded: scan.decoded,
                inherited: thread.inherited,
            });
            sides.push(thread.side.clone());
            let pairs: Vec<_> = segments.iter().zip(&sides).collect();
            let unseen = Told::new(&mapped, &pairs).map(Arc::new);
            let inherited = segments.first().map_or(0, |first| first.inherited);
            let parts = times::parts(&segments, &sides);
            let streams: Vec<SideStream> = sides
                .into_iter()
                .map(|side| side.arguments)
                .filter(|stream| !stream.pieces.is_empty())
                .collect();
            let mut opened = Thread {
                name,
                tid: thread.tid,
                events: scan.events,
                calls: scan.calls,
                dropped,
                bytes,
                unverified: if is_whole {
                    thread.staged.len() as u64
                } else {
                    0
                },
                damage: (!damage.is_empty()).then(|| damage.join("; ")),
                open: place_calls(
                    scan.frames,
                    &scan.owners,
                    &thread.mirror,
                    &images,
                    functions,
                ),
                open_leaf: scan.last_leaf,
                arguments_lost: thread.side.lost,
                holds: (file.flags & flag::HOLDS != 0).then(|| Holds::of(&thread.side, &images)),
                times: (!parts.is_empty()).then(|| Times {
                    recorded: Arc::new(Recorded {
                        file: Arc::clone(&mapped),
                        parts,
                        host: host.clone(),
                        created: (file.created, file.created_clock),
                    }),
                    clock: None,
                }),
                index: 0,
                followed: scan.followed,
                inferred: unseen.as_ref().map_or(0, |unseen| unseen.count()),
                told: unseen,
                side: (!streams.is_empty()).then(|| {
                    Arc::new(Source {
                        file: Arc::clone(&mapped),
                        streams,
                        inherited: u64::from(inherited),
                        symbols: Arc::clone(&symbols),
                        library: Arc::clone(&library),
                        functions: Arc::clone(mpi),
                        images: Arc::clone(&images),
                        world_size,
                    })
                }),
                stream: Stream::File(Arc::new(FileStream {
                    file: Arc::clone(&mapped),
                    codec: file.codec,
                    segments,
                    staged: if is_whole { thread.staged } else { Vec::new() },
                    symbols: Arc::clone(&symbols),
                    keeps_last: file.flags & flag::KEEPS_LAST != 0,
                    recent: scan.recent,
                })),
            };
            if let Some((told, (sealed, names))) = told.zip(sealed) {
                tell(&mut opened, told, sealed, names);
            }
            threads.push((opened, part));
        }
        threads.sort_by_key(|(thread, _)| thread.name);
        for ((thread, _), index) in threads.iter_mut().zip(0..) {
            thread.index = index;
        }
        let (threads, thread_parts): (Vec<Thread>, Vec<ThreadPart>) = threads.into_iter().unzip();
        let mut coverage = self.coverage;
        coverage.count(
            threads.iter().map(|thread| thread.calls).sum(),
            lost_calls(&file.losses, file.flags),
        );
        let process = Process {
            name,
            rank,
            is_mpi,
            pid: file.pid,
            forked_from,
            host,
            program: file.facts.program.unwrap_or_default(),
            build: self.build,
            compiled: self.compiled,
            end,
            gone_at: seen.and_then(|it| it.at),
            coverage,
            losses: losses(&file.losses),
            threads,
        };
        let part = ProcessPart {
            file_name,
            whole,
            findings: file.findings,
            strays,
            threads: thread_parts,
        };
        (process, part)
    }
}

/// What a sealed run tells of a thread.
fn tell(thread: &mut Thread, told: &SealedThread, sealed: &Arc<Sealed>, names: &Arc<Names>) {
    let function = |name: u32| names.function(name);
    thread.dropped = told.dropped;
    thread.bytes = told.bytes;
    thread.unverified = told.unverified;
    thread.open_leaf = told.open_leaf.checked_sub(1).map(function);
    thread.open = told
        .open
        .iter()
        .flat_map(|run| {
            let frame = Frame {
                function: function(run.name),
                called_at: run
                    .called_at
                    .clone()
                    .map(|(file, line)| SourceLine { file, line }),
                handed_over: run.handed_over,
            };
            (0..run.times).map(move |_| frame.clone())
        })
        .collect();
    thread.stream = Stream::Sealed(Arc::new(SealedStream {
        sealed: Arc::clone(sealed),
        names: Arc::clone(names),
        root: told.root,
        strays: told.strays.clone(),
    }));
}

/// How many calls are among what was lost. A call that is not recorded counts once, for itself and its
/// return; what `--keep last` drops are events, two to a call.
fn lost_calls(counters: &[u64], flags: u32) -> u64 {
    let of = |index: usize| counters.get(index).copied().unwrap_or(0);
    let calls = [
        loss::NO_SPACE,
        loss::FILE_LIMIT,
        loss::IN_SIGNAL,
        loss::NO_MEMORY,
        loss::VFORK,
        loss::DEPTH,
    ];
    let calls = calls.iter().map(|index| of(*index));
    let calls = calls.fold(0, u64::saturating_add);
    let (more_calls, events) = match flags & flag::KEEPS_LAST {
        0 => (of(loss::SIZE_LIMIT), of(loss::SYMBOL)),
        _ => (0, of(loss::SYMBOL).saturating_add(of(loss::SIZE_LIMIT))),
    };
    let calls = calls.saturating_add(more_calls);
    calls.saturating_add(events.div_ceil(2))
}

fn losses(counters: &[u64]) -> Vec<(String, u64)> {
    counters
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(index, count)| {
            let name = loss::NAMES
                .get(index)
                .map_or_else(|| format!("reason {index}"), |name| (*name).to_owned());
            (name, *count)
        })
        .collect()
}
