//! Everything that reads bytes of others, each as a body for hostile input: tests call them with random and damaged
//! bytes, `cargo xtask fuzz TARGET` lets libFuzzer look for worse.
//!
//! A body panics where a reader does what it must not. What readers must not do: panic, hang, take more memory than
//! their first pages say (`cargo xtask fuzz` sets a bound), or give what cannot be. Checks are put right first, so that
//! what they protect is read, too.

mod answers;
mod directory;
mod seeds;

use directory::Directory;
use lockstep_binary::{Image, check_program};
use lockstep_concepts::Context;
use lockstep_exchange::fuzz as exchange;
use lockstep_format::bytes::{put_u32, u32_at, u64_at};
use lockstep_format::check::crc32c;
use lockstep_format::codec::memory::Memory;
use lockstep_format::codec::{AnyDecoder, Decoder, Kind, Sink};
use lockstep_format::plan::{Plan, Role};
use lockstep_format::process::{PAGE, SUFFIX, chunk, header, state, thread};
use lockstep_format::{pack, sealed, side};
use lockstep_patch::{Options, Scope};
use lockstep_trace::{Run, Selection};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Symbols or events that a body takes at most.
const MOST: usize = 100_000;

/// A reader.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Gives it bytes.
    pub body: fn(&[u8]),
    /// Bytes that it should accept, to begin with; may be none.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: [Target; 20] = [
    reader("codecs", codecs, seeds::streams),
    reader("side", side_stream, seeds::arguments),
    reader("plan", plan, seeds::plans),
    reader("process", process, seeds::processes),
    reader("pack", pack, seeds::packs),
    reader("sealed", sealed_run, seeds::sealed),
    reader("elf", elf, seeds::programs),
    reader("context", context, seeds::contexts),
    reader("csv", csv, seeds::tables),
    reader("attributes", attributes, seeds::attributes),
    reader("selection", selection, seeds::selections),
    reader("progress", lockstep_progress::fuzz::calls, seeds::calls),
    reader("ring", ring, seeds::rings),
    reader("execution", execution, seeds::executions),
    reader("run", run_files, seeds::beside_processes),
    reader("parlot", parlot, seeds::parlot),
    reader("uftrace", uftrace, seeds::uftrace),
    reader("chrome", chrome, seeds::chrome),
    reader("otf2", otf2, seeds::otf2),
    reader("answers", answers::answers, seeds::asked),
];

const fn reader(name: &'static str, body: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Target {
    Target { name, body, seeds }
}

/// The reader of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

fn parlot(input: &[u8]) {
    accepted(&exchange::parlot(input));
}

fn uftrace(input: &[u8]) {
    accepted(&exchange::uftrace(input));
}

fn chrome(input: &[u8]) {
    accepted(&exchange::chrome(input));
}

fn otf2(input: &[u8]) {
    accepted(&exchange::otf2(input));
}

fn accepted(outcome: &Result<Option<u64>, String>) {
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// A codec's memory, as much as it asks for.
#[derive(Default)]
struct Words(Vec<u32>);

impl Memory for Words {
    fn words(&mut self, count: usize) -> &mut [u32] {
        if self.0.len() < count {
            self.0.resize(count, 0);
        }
        &mut self.0
    }

    fn present(&self) -> &[u32] {
        &self.0
    }
}

/// Bytes that are written.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

/// A stream of events, by every codec.
fn codecs(input: &[u8]) {
    for kind in Kind::ALL {
        let mut bytes = input;
        let mut decoder = Box::new(AnyDecoder::<Words, Words>::new(kind));
        for _ in 0..MOST {
            match decoder.next(&mut bytes) {
                Ok(Some(symbol)) => assert!(symbol <= kind.largest(), "{symbol} of {kind:?}"),
                Ok(None) | Err(_) => break,
            }
        }
    }
}

/// Arguments of calls; the first two bytes are the run that is going on.
fn side_stream(input: &[u8]) {
    let Some((open, mut bytes)) = input.split_first_chunk::<2>() else {
        return;
    };
    let mut decoder = Box::new(side::Decoder::NEW);
    for _ in 0..MOST {
        if !matches!(
            decoder.next(&mut bytes, u16::from_le_bytes(*open).into()),
            Ok(Some(_))
        ) {
            break;
        }
    }
}

/// A patch plan.
fn plan(input: &[u8]) {
    let mut bytes = input.to_vec();
    seal(
        &mut bytes,
        lockstep_format::plan::header::ROLE..,
        lockstep_format::plan::header::CHECK,
    );
    let kept = Plan::kept(&bytes, lockstep_format::check::extend);
    for plan in [Plan::new(&bytes), kept].into_iter().flatten() {
        plan_rows(&plan, bytes.len());
    }
}

fn plan_rows(plan: &Plan<'_>, length: usize) {
    let rows = plan.fixups().count() + plan.sites().count() + plan.functions().count();
    let more = plan.refusals().count() + plan.call_sites().count() + plan.choices().count();
    let names = plan.exports().map(|(name, _)| name.len()).sum::<usize>();
    assert!(rows + more <= length && names <= length.pow(2));
}

/// A process file, in a run of its own.
fn process(input: &[u8]) {
    let directory = Directory::new("seed");
    directory.write(&format!("processes/host-1-1-0{SUFFIX}"), &checked(input));
    read(&directory);
}

/// A process file whose checks are right.
fn checked(input: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    seal(&mut bytes, ..header::CHECK, header::CHECK);
    for at in (PAGE as usize..bytes.len()).step_by(PAGE as usize) {
        if u32_at(&bytes, at) == Some(chunk::MAGIC_VALUE) {
            seal(&mut bytes, at..at + chunk::CHECK, at + chunk::CHECK);
            for area in [thread::COMMITTED, thread::INTENT].map(|area| at + area) {
                seal(&mut bytes, area..area + state::CHECK, area + state::CHECK);
            }
        }
    }
    bytes
}

/// Process files in a pack, and the same as a pack of ends.
fn pack(input: &[u8]) {
    let mut bytes = input.to_vec();
    for at in (0..bytes.len()).step_by(pack::BLOCK) {
        let here = bytes.get(at..).unwrap_or(&[]);
        if here.starts_with(&pack::MEMBER_MAGIC)
            && let Some(length) = u64_at(here, pack::member::LENGTH)
            && let Some(start) = at.checked_add(pack::BLOCK)
            && let Some(end) = usize::try_from(length)
                .ok()
                .and_then(|it| start.checked_add(it))
        {
            seal(&mut bytes, start..end, at + pack::member::CONTENT_CHECK);
        }
        let here = bytes.get(at..).unwrap_or(&[]);
        if here.starts_with(&pack::MEMBER_MAGIC) || here.starts_with(&pack::MAGIC) {
            let check = at + pack::header::CHECK;
            seal(&mut bytes, at..check, check);
        }
    }
    let directory = Directory::new("seed");
    directory.write("processes/host.pack", &bytes);
    directory.write("ends/host.pack", &bytes);
    read(&directory);
}

/// The file of a sealed run.
fn sealed_run(input: &[u8]) {
    let mut bytes = input.to_vec();
    for index in 0..sealed::section::COUNT {
        let row = sealed::header::SECTIONS + sealed::section::SIZE * index;
        let place = |field: usize| usize::try_from(u64_at(&bytes, row + field)?).ok();
        if let (Some(start), Some(length)) = (
            place(sealed::section::OFFSET),
            place(sealed::section::LENGTH),
        ) && let Some(end) = start.checked_add(length)
        {
            seal(&mut bytes, start..end, row + sealed::section::CHECK);
        }
    }
    seal(&mut bytes, ..sealed::header::CHECK, sealed::header::CHECK);
    let directory = Directory::new("lockstep");
    directory.write(sealed::FILE, &bytes);
    read(&directory);
}

fn read(directory: &Directory) {
    let Ok(run) = Run::open(directory.path()) else {
        return;
    };
    if run.load().is_err() {
        return;
    }
    for thread in run.traces() {
        let most = thread.events.min(MOST as u64);
        let found = thread.events().take(MOST).count();
        assert!(found as u64 <= most, "{}", thread.name);
        let behind = thread.events_from(most / 2).take(MOST).count();
        assert!(behind as u64 <= thread.events - most / 2, "{}", thread.name);
        let _ = thread.stack_at(most / 2);
    }
}

/// An executable or library: what is known of it, and the plan for it.
fn elf(input: &[u8]) {
    let _ = check_program(input);
    if let Ok(image) = Image::parse(input)
        && let Some(lines) = lockstep_binary::Lines::new(&image, 1 << 24)
    {
        let _ = lines.find(image.entry());
    }
    for (role, own_functions) in [
        (Role::Main, false),
        (Role::Library, true),
        (Role::Library, false),
        (Role::Libc, false),
    ] {
        let scope = Scope {
            role,
            own_functions,
            library_calls: own_functions,
            mpi_calls: !own_functions,
        };
        if let Ok(made) = lockstep_patch::plan(input, scope, &Options::default()) {
            assert!(Plan::new(&made).is_ok(), "a plan that nobody can read");
        }
    }
}

/// A formal context.
fn context(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input)
        && let Ok(context) = lockstep_concepts::cxt::read(text)
    {
        let again = lockstep_concepts::cxt::read(&lockstep_concepts::cxt::write(&context));
        assert!(again.is_ok(), "what was written cannot be read");
    }
}

/// A formal context as comma-separated values.
fn csv(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input)
        && let Ok(context) = lockstep_concepts::csv::read(text)
    {
        let again = lockstep_concepts::csv::read(&lockstep_concepts::csv::write(&context));
        assert!(again.is_ok(), "what was written cannot be read");
    }
}

/// Attributes of objects, as JSON.
fn attributes(input: &[u8]) {
    if let Ok(sets) = serde_json::from_slice::<BTreeMap<String, Vec<String>>>(input) {
        let objects = sets.len();
        let context = Context::from_sets(sets);
        assert_eq!(context.objects().len(), objects);
    }
}

/// What a Go program wrote into the ring that it shares with us.
fn ring(input: &[u8]) {
    lockstep_goroutines::fuzz::ring(input, Directory::empty().path());
}

/// What was kept of an execution of a Go program.
fn execution(input: &[u8]) {
    lockstep_goroutines::fuzz::execution(input, Directory::empty().path());
}

/// What lies beside the process file of a run, one file after the other; those that are not told are as they should be.
fn run_files(input: &[u8]) {
    static FILES: LazyLock<Vec<(String, Vec<u8>)>> =
        LazyLock::new(|| seeds::files_of(seeds::run(2)));
    let directory = Directory::new("lockstep");
    let mut rest = Some(input);
    for (index, (path, content)) in FILES.iter().enumerate() {
        let told = (index > 0).then(|| divided(&mut rest)).flatten();
        let mut bytes = told.unwrap_or(content).to_vec();
        if path.ends_with(".plan") {
            seal(
                &mut bytes,
                lockstep_format::plan::header::ROLE..,
                lockstep_format::plan::header::CHECK,
            );
        }
        directory.write(path, &bytes);
    }
    read(&directory);
}

/// What stands before the next divider, which is gone then.
fn divided<'a>(rest: &mut Option<&'a [u8]>) -> Option<&'a [u8]> {
    let text = rest.take()?;
    let divider = exchange::DIVIDER;
    let at = text.windows(divider.len()).position(|it| it == divider);
    let Some(at) = at else { return Some(text) };
    *rest = text.get(at + divider.len()..);
    text.get(..at)
}

/// A choice of traces, as on the command line.
fn selection(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input) {
        let _ = text.parse::<Selection>();
    }
}

/// Puts the check at `at` right, of what lies in `range`.
fn seal<R: std::slice::SliceIndex<[u8], Output = [u8]>>(bytes: &mut [u8], range: R, at: usize) {
    if let Some(checked) = bytes.get(range) {
        let check = crc32c(checked);
        if at + 4 <= bytes.len() {
            put_u32(bytes, at, check);
        }
    }
}

#[cfg(test)]
mod tests;
