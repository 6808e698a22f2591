//! The text of a sealed file: what every process and thread has beside the trees of its events.

use super::differences::Teller;
use super::file::{Name, OpenRun};
use super::record::Bytes;
use super::seal::{SealError, Sizes, TreeOf, Trees, names_text};
use crate::container::{self, residue, with_steps};
use crate::load::MOST_STREAMS;
use crate::model::{FunctionId, Process, Run, Thread};
use crate::open::{ProcessPart, Sealable, ThreadPart};
use lockstep_format::process::kind;
use lockstep_format::sealed::form;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Bytes of the differences between processes, and of the record of one, up to which streams beside events are coded;
/// beyond, they are kept as they are.
const MOST_CODED: usize = 4 << 20;

/// What a sealed file tells of a run.
pub(super) struct Told {
    pub threads: Bytes,
    pub names: Bytes,
    pub raw: Bytes,
    pub sizes: Sizes,
    /// Of each process, a hash of what it was recorded with beside the events that trees tell.
    pub beside: Vec<u64>,
}

/// Tells a run whose trees are these, in this file or `elsewhere`.
pub(super) fn tell(
    sealable: &Sealable,
    trees: &Trees,
    roots: &[Vec<Option<TreeOf>>],
    elsewhere: bool,
) -> Result<Told, SealError> {
    let run = &sealable.run;
    let wrong = |part: &ProcessPart, text: String| SealError::Store {
        path: run.directory.join("processes").join(&part.file_name),
        text,
    };
    let mut telling = Telling {
        run,
        names: NameTable::new(trees, elsewhere),
        raw: Bytes::default(),
        sizes: Sizes {
            trees: trees.nodes.len() as u64,
            ..Sizes::default()
        },
        beside: Vec::new(),
        streams: 0,
    };
    let mut threads = Bytes::default();
    threads.number(run.processes.len() as u64);
    let mut teller = Teller::default();
    for ((process, part), roots) in run.processes.iter().zip(&sealable.parts).zip(roots) {
        let apart = threads.0.len() > MOST_CODED;
        let record = telling.process(process, part, roots, apart);
        let record = record.map_err(|text| wrong(part, text))?;
        let put = teller.put(record.0, &mut threads);
        put.map_err(|broken| {
            wrong(
                part,
                format!("expected a process that can be told, found {broken}"),
            )
        })?;
    }
    Ok(Told {
        threads,
        names: telling.names.text(),
        raw: telling.raw,
        sizes: telling.sizes,
        beside: telling.beside,
    })
}

/// A hash of what a process has beside the events that trees tell.
pub(super) fn fingerprint(beside: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    beside.hash(&mut hasher);
    hasher.finish()
}

/// What is told so far.
struct Telling<'a> {
    run: &'a Run,
    names: NameTable<'a>,
    raw: Bytes,
    sizes: Sizes,
    beside: Vec<u64>,
    /// Bytes of the streams that stay in memory where it is read.
    streams: u64,
}

impl Telling<'_> {
    /// The record of a process; its streams `apart` where there is enough of them already.
    fn process(
        &mut self,
        process: &Process,
        part: &ProcessPart,
        roots: &[Option<TreeOf>],
        apart: bool,
    ) -> Result<Bytes, String> {
        self.sizes.before += part.whole.length();
        let mapped = part.whole.open(&part.file_name);
        let mapped = mapped.map_err(|error| error.to_string())?;
        let file = container::read(mapped.bytes(), |at| mapped.control(at))
            .map_err(|finding| finding.to_string())?;
        let told: BTreeSet<u32> = part
            .threads
            .iter()
            .zip(roots)
            .filter(|(_, root)| root.is_some())
            .map(|(thread, _)| thread.index)
            .collect();
        self.streams += file.beside(&told);
        if self.streams > MOST_STREAMS {
            return Err(format!(
                "expected streams of at most {MOST_STREAMS} bytes beside the trees of a run, found more: it is left as it is"
            ));
        }
        let mut kept = residue(mapped.bytes(), &file, &told);
        self.beside.push(fingerprint(&kept));
        kept.toggle_checks();
        let mut record = Bytes::default();
        let text = &mut record;
        text.bytes(part.file_name.as_bytes());
        text.number(part.findings.len() as u64);
        for finding in &part.findings {
            text.number(finding.at);
            text.bytes(finding.text.as_bytes());
        }
        text.number(part.strays.len() as u64);
        for stray in &part.strays {
            text.number(u64::from(*stray));
        }
        text.sparse(&kept.header);
        text.number(kept.chunks.len() as u64);
        for chunk in &kept.chunks {
            for number in [
                chunk.kind,
                chunk.thread,
                chunk.sequence,
                chunk.used,
                chunk.payload_check,
            ] {
                text.number(u64::from(number));
            }
            let is_text = matches!(chunk.kind, kind::FACTS | kind::THREAD);
            let is_stream = chunk.kind == kind::DATA;
            let is_raw = is_stream || !is_text && (apart || text.0.len() > MOST_CODED);
            let steps = match chunk.kind {
                kind::FACTS => with_steps(&chunk.payload),
                _ => None,
            };
            let form = match (is_raw, &steps) {
                (true, _) => form::RAW,
                (_, Some(_)) => form::STEPS,
                _ => form::PLAIN,
            };
            text.number(form);
            let payload = steps.as_ref().unwrap_or(&chunk.payload);
            if is_raw { &mut self.raw } else { &mut *text }.sparse(payload);
        }
        text.number(roots.iter().flatten().count() as u64);
        for ((thread, part), root) in process.threads.iter().zip(&part.threads).zip(roots) {
            self.sizes.events += thread.events;
            self.sizes.streams += thread.bytes;
            match root {
                Some(root) => self.thread(thread, part, root, text),
                None => self.sizes.kept += 1,
            }
        }
        Ok(record)
    }

    fn thread(&mut self, thread: &Thread, part: &ThreadPart, root: &TreeOf, text: &mut Bytes) {
        let (run, names) = (self.run, &mut self.names);
        let leaf = thread
            .open_leaf
            .map_or(0, |leaf| u64::from(names.number(run, leaf)) + 1);
        for number in [
            u64::from(part.index),
            u64::from(root.root),
            thread.events,
            thread.calls,
            thread.dropped,
            thread.bytes,
            thread.unverified,
            u64::from(part.committing),
            u64::from(part.ran_main),
            leaf,
        ] {
            text.number(number);
        }
        text.number(part.damage.len() as u64);
        for damage in &part.damage {
            text.bytes(damage.as_bytes());
        }
        let mut open: Vec<OpenRun> = Vec::new();
        for frame in &thread.open {
            let run_of_one = OpenRun {
                name: names.number(run, frame.function),
                handed_over: frame.handed_over,
                called_at: frame.called_at.clone().map(|at| (at.file, at.line)),
                times: 1,
            };
            match open.last_mut() {
                Some(last)
                    if (last.name, last.handed_over, &last.called_at)
                        == (
                            run_of_one.name,
                            run_of_one.handed_over,
                            &run_of_one.called_at,
                        ) =>
                {
                    last.times += 1;
                }
                _ => open.push(run_of_one),
            }
        }
        text.number(open.len() as u64);
        for run in &open {
            text.number(u64::from(run.name));
            text.number(u64::from(run.handed_over) | u64::from(run.called_at.is_some()) << 1);
            if let Some((file, line)) = &run.called_at {
                text.bytes(file.as_bytes());
                text.number(u64::from(*line));
            }
            text.number(run.times);
        }
        text.number(root.strays.len() as u64);
        let mut before = 0;
        for stray in &root.strays {
            text.number(stray - before);
            before = *stray;
        }
    }
}

/// Names, and more where they are needed.
struct NameTable<'a> {
    known: &'a [Name],
    /// Whether the known ones stand in another file.
    elsewhere: bool,
    added: Vec<Name>,
    numbers: FxHashMap<(&'a str, &'a str), u32>,
}

impl<'a> NameTable<'a> {
    fn new(trees: &'a Trees, elsewhere: bool) -> Self {
        let numbers = trees
            .names
            .iter()
            .zip(0..)
            .map(|(name, number)| ((name.image.as_str(), name.linkage.as_str()), number))
            .collect();
        Self {
            known: &trees.names,
            elsewhere,
            added: Vec::new(),
            numbers,
        }
    }

    fn number(&mut self, run: &Run, function: FunctionId) -> u32 {
        let function = run.function(function);
        let key = (function.image.as_str(), function.linkage.as_str());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let is_it = |name: &Name| (name.image.as_str(), name.linkage.as_str()) == key;
        let at = self.added.iter().position(is_it).unwrap_or_else(|| {
            self.added.push(Name {
                image: function.image.clone(),
                linkage: function.linkage.clone(),
                leaf: false,
            });
            self.added.len() - 1
        });
        (self.known.len() + at) as u32
    }

    fn text(&self) -> Bytes {
        let known = if self.elsewhere { &[] } else { self.known };
        names_text(&[known, &self.added].concat())
    }
}
