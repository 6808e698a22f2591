//! The overlay: edited copies of some of the toolchain's own files, made on this machine from the toolchain that
//! the module selects, and the file that tells `go build -overlay` of them.
//!
//! ```text
//! GOROOT/src/runtime/proc.go ─ anchored edits ─► CACHE/KEY/runtime/proc.go ─┐
//!                              our own file  ──► CACHE/KEY/runtime/...go  ──┼─► overlay.json ─► go build -overlay
//! the user's own -overlay ──────────────────────────────────────────────────┘
//! ```
//! *Guarantees*: the toolchain is not touched; an anchor that is missing takes its whole class of events away and is
//! told; an overlay in the cache is whole (it is put there by a rename). *Costs*: the first build with an overlay
//! compiles the standard library again.

pub mod edits;

use crate::sources;
use crate::toolchain::Toolchain;
pub use edits::Class;
use edits::{Edit, How, METHODS, Method, NEEDS, RUNTIME, TOUCHED, apply};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What a ring begins with.
pub const MAGIC: u64 = u64::from_le_bytes(*b"LSGORING");
/// The version of what lies between the overlaid runtime and the reader.
pub const VERSION: u64 = 4;

/// What stands beside the runtime's own files.
const RUNTIME_FILES: [(&str, &str); 5] = [
    (
        "runtime/lockstep.go",
        include_str!("overlay/runtime.go.txt"),
    ),
    (
        "runtime/lockstep_delays.go",
        include_str!("overlay/delays.go.txt"),
    ),
    (
        "runtime/lockstep_standing.go",
        include_str!("overlay/standing.go.txt"),
    ),
    (
        "runtime/lockstep_replay.go",
        include_str!("overlay/replay.go.txt"),
    ),
    (
        "runtime/lockstep_turns.go",
        include_str!("overlay/turns.go.txt"),
    ),
];
const SYNC_FILE: &str = include_str!("overlay/sync.go.txt");
const ATOMIC_FILE: &str = include_str!("overlay/atomic.go.txt");
/// What the names of our functions in `sync/atomic` begin with.
pub(crate) const ATOMIC_PREFIX: &str = "Lockstep";
const LEAKS_FILE: &str = include_str!("overlay/leaks.go.txt");
/// Where the collector has no proofs.
const NO_LEAKS_FILE: &str = "package runtime

func lockstepProve() bool { return false }

//go:nosplit
func lockstepProven(status uint32) bool { return false }
";

/// Reasons to wait by the runtime's names for them, and ours.
const REASONS: &[(&str, u8)] = &[
    ("waitReasonChanSend", 1),
    ("waitReasonSynctestChanSend", 1),
    ("waitReasonChanReceive", 2),
    ("waitReasonSynctestChanReceive", 2),
    ("waitReasonSelect", 3),
    ("waitReasonSynctestSelect", 3),
    ("waitReasonSelectNoCases", 4),
    ("waitReasonChanReceiveNilChan", 4),
    ("waitReasonChanSendNilChan", 4),
    ("waitReasonSyncMutexLock", 5),
    ("waitReasonSyncRWMutexRLock", 6),
    ("waitReasonSyncRWMutexLock", 7),
    ("waitReasonSyncWaitGroupWait", 8),
    ("waitReasonSynctestWaitGroupWait", 8),
    ("waitReasonSyncCondWait", 9),
    ("waitReasonSleep", 10),
    ("waitReasonIOWait", 11),
    ("waitReasonSemacquire", 13),
    ("waitReasonCoroutine", 14),
];

/// An overlay that is ready to be built with.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// The file for `-overlay`.
    pub file: PathBuf,
    /// Classes of events that this toolchain cannot have, and why.
    pub missing: Vec<(Class, String)>,
}

/// Why there is no overlay.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// A file of the toolchain cannot be read.
    #[error("{} cannot be read: {reason}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file of the cache cannot be written.
    #[error("{} cannot be written: {reason}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The edits without which nothing is recorded miss their anchors.
    #[error("expected a Go toolchain whose runtime can be edited, found {version}: {reason}")]
    Unknown {
        /// The toolchain's version.
        version: String,
        /// What is missing.
        reason: String,
    },
    /// The user's own overlay is not one.
    #[error("expected an overlay file of the go command, found {}: {reason}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Edited sources: what lies below `GOROOT/src`, by path, and what had to be left out.
#[derive(Debug, Clone, Default)]
pub struct Generated {
    /// Path below `GOROOT/src` and content.
    pub files: BTreeMap<String, String>,
    /// Classes that were left out, and why.
    pub missing: Vec<(Class, String)>,
}

/// Makes the edits of the sources that `read` gives.
///
/// # Errors
/// Where a file is missing, or the core of the edits does not find its places.
pub fn generate(
    version: &str,
    mut read: impl FnMut(&str) -> Result<String, OverlayError>,
) -> Result<Generated, OverlayError> {
    let mut sources: BTreeMap<&'static str, String> = BTreeMap::new();
    for file in RUNTIME
        .iter()
        .map(|it| it.file)
        .chain(METHODS.iter().map(|it| it.file))
    {
        if !sources.contains_key(file) {
            sources.insert(file, read(file)?);
        }
    }
    // First all are tried, then those of whole classes are made.
    let mut missing: BTreeMap<Class, String> = BTreeMap::new();
    for Edit {
        file,
        class,
        function,
        how,
    } in RUNTIME
    {
        if let Err(reason) = apply(&sources[file], function, *how) {
            missing.entry(*class).or_insert(format!("{file}: {reason}"));
        }
    }
    for method in METHODS {
        let (function, new) = renaming(method);
        // `WaitGroup.Go` came later than the rest.
        if method.name != "Go"
            && let Err(reason) = rename(&sources[method.file], &function, &new)
        {
            missing
                .entry(method.class)
                .or_insert(format!("{}: {reason}", method.file));
        }
    }
    for (file, class, line) in NEEDS {
        let is_there = |it: &str| it.split("//").next().unwrap_or(it).trim() == *line;
        if !read(file)?.lines().any(is_there) {
            let reason = format!("{file}: `{line}` is not there");
            missing.entry(*class).or_insert(reason);
        }
    }
    let mut touched = Vec::new();
    for (file, class, methods) in TOUCHED {
        let source = read(file).map_err(|it| it.to_string());
        match source.and_then(|it| edits::touched(&it, methods)) {
            Ok(edited) => touched.push((file, class, edited)),
            Err(reason) => {
                missing.insert(class, format!("{file}: {reason}"));
            }
        }
    }
    if let Some(reason) = missing
        .get(&Class::Core)
        .or(missing.get(&Class::Goroutines))
    {
        return Err(OverlayError::Unknown {
            version: version.to_owned(),
            reason: reason.clone(),
        });
    }
    // Selects with one case are channel operations in another shape; our file has both or none.
    let mut sync_file = SYNC_FILE.to_owned();
    let reasons = reasons(&read("runtime/runtime2.go")?);
    let mut runtime_files = RUNTIME_FILES.map(|(file, text)| {
        let text = text
            .replace("LOCKSTEP_MAGIC", &MAGIC.to_string())
            .replace("LOCKSTEP_VERSION", &VERSION.to_string())
            .replace("LOCKSTEP_REASONS", &reasons);
        (file.to_owned(), text)
    });
    for Edit {
        file,
        class,
        function,
        how,
    } in RUNTIME
    {
        if missing.contains_key(class) {
            continue;
        }
        if let Some(source) = sources.get_mut(file)
            && let Ok(edited) = apply(source, function, *how)
        {
            *source = edited;
        }
    }
    for class in missing.keys() {
        for (_, text) in &mut runtime_files {
            for name in edits::stand_ins(*class) {
                *text = without_function(text, name);
            }
            if *class == Class::Sleeps {
                *text = text.replace("lockstepTimeSleep(", "timeSleep(");
            }
            if *class == Class::Clock {
                // The order of a recorded run is left.
                *text = text.replace("lockstepTimes = lockstepBase + uintptr(times)", "_ = times");
                *text = text.replace("netpollAnyWaiters()", "true");
            }
        }
    }
    for method in METHODS {
        if missing.contains_key(&method.class) {
            continue;
        }
        let (function, new) = renaming(method);
        if let Some(source) = sources.get_mut(method.file)
            && let Ok(edited) = rename(source, &function, &new)
        {
            *source = edited;
            write_method(&mut sync_file, method);
        }
    }
    let mut files: BTreeMap<String, String> = sources
        .into_iter()
        .map(|(file, text)| (file.to_owned(), text))
        .collect();
    files.extend(runtime_files);
    let leaks = if missing.contains_key(&Class::Leaks) {
        NO_LEAKS_FILE
    } else {
        LEAKS_FILE
    };
    files.insert("runtime/lockstep_leaks.go".to_owned(), leaks.to_owned());
    files.insert("sync/lockstep.go".to_owned(), sync_file);
    if !missing.contains_key(&Class::Atomics) {
        let ours = format!("{ATOMIC_FILE}{}", atomic_functions());
        files.insert("sync/atomic/lockstep.go".to_owned(), ours);
    }
    for (file, class, edited) in touched {
        if !missing.contains_key(&class) {
            files.insert(file.to_owned(), edited);
        }
    }
    Ok(Generated {
        files,
        missing: missing.into_iter().collect(),
    })
}

fn renaming(method: &Method) -> (String, String) {
    let letter = receiver_letter(method.receiver);
    (
        format!("func ({letter} *{}) {}(", method.receiver, method.name),
        format!("lockstep{}", method.name),
    )
}

fn receiver_letter(receiver: &str) -> &'static str {
    match receiver {
        "Mutex" => "m",
        "RWMutex" => "rw",
        "WaitGroup" => "wg",
        "Cond" => "c",
        _ => "o",
    }
}

fn rename(source: &str, function: &str, new: &str) -> Result<String, String> {
    let name = function.trim_end_matches('(');
    // The name must be `'static` in an edit; a rename is simple enough to be made here.
    apply(source, function, How::Top(""))?;
    let at = name.rfind(' ').map_or(0, |at| at + 1);
    Ok(source.replacen(
        &format!("\n{function}"),
        &format!("\n{}{new}(", &name[..at]),
        1,
    ))
}

fn write_method(file: &mut String, method: &Method) {
    let Method {
        receiver,
        name,
        parameters,
        kind,
        tries,
        ..
    } = method;
    let letter = receiver_letter(receiver);
    let argument = parameters.split(' ').next().unwrap_or_default();
    let result = if *tries { " (ok bool)" } else { "" };
    let call = format!("{letter}.lockstep{name}({argument})");
    let begin = match (*receiver, *name) {
        ("WaitGroup", "Add") => format!(
            "lockstepBeginAdd({kind}, uintptr(unsafe.Pointer({letter})), sys.GetCallerPC(), delta)"
        ),
        ("WaitGroup", "Go") => format!(
            "lockstepBeginAdd({kind}, uintptr(unsafe.Pointer({letter})), sys.GetCallerPC(), 1)"
        ),
        _ => format!("lockstepBegin({kind}, uintptr(unsafe.Pointer({letter})), sys.GetCallerPC())"),
    };
    let finish = |ok: &str| format!("\tif counts {{\n\t\tlockstepFinish({kind}, {ok})\n\t}}\n");
    let body = if *name == "Go" {
        // The count is over before the goroutine begins.
        let made = "\tif counts {\n\t\tlockstepMade()\n\t}\n";
        format!("{}\t{call}\n{made}", finish("true"))
    } else if *tries {
        format!("\tok = {call}\n{}\treturn\n", finish("ok"))
    } else {
        format!("\t{call}\n{}", finish("true"))
    };
    let off = if *tries {
        format!("\t\treturn {call}\n")
    } else {
        format!("\t\t{call}\n\t\treturn\n")
    };
    // Writing into a String cannot fail.
    let _ = write!(
        file,
        "\n//go:noinline\nfunc ({letter} *{receiver}) {name}({parameters}){result} {{\n\tif !lockstepOn {{\n{off}\t}}\n\tcounts := {begin}\n{body}}}\n"
    );
}

/// A place for delays, and then the function of the same name: what the program's own sources call while it is built.
fn atomic_functions() -> String {
    let mut text = String::new();
    for (suffix, of) in sources::TYPES {
        for operation in sources::OPERATIONS {
            let (parameters, arguments, result) = match operation {
                "Load" => (String::new(), "", of),
                "Store" => (format!(", val {of}"), ", val", ""),
                "Swap" => (format!(", new {of}"), ", new", of),
                "CompareAndSwap" => (format!(", old, new {of}"), ", old, new", "bool"),
                _ if suffix == "Pointer" => continue,
                _ => (format!(", delta {of}"), ", delta", of),
            };
            let gives = if result.is_empty() { "" } else { "return " };
            // Writing into a String cannot fail.
            let _ = write!(
                text,
                "\nfunc {ATOMIC_PREFIX}{operation}{suffix}(addr *{of}{parameters}) {result} {{\n\tlockstepHere()\n\t{gives}{operation}{suffix}(addr{arguments})\n}}\n"
            );
        }
    }
    text
}

/// The cases of the runtime's reasons that it has.
fn reasons(runtime2: &str) -> String {
    let mut cases: BTreeMap<u8, Vec<&str>> = BTreeMap::new();
    let words: BTreeSet<&str> = runtime2
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for (name, number) in REASONS {
        if words.contains(name) {
            cases.entry(*number).or_default().push(name);
        }
    }
    let mut text = String::new();
    for (number, names) in cases {
        let _ = write!(text, "\tcase {}:\n\t\treturn {number}\n", names.join(", "));
    }
    text.trim_end().to_owned()
}

fn without_function(source: &str, name: &str) -> String {
    let Some(start) = source.find(&format!("\nfunc {name}(")) else {
        return source.to_owned();
    };
    let end = source[start..]
        .find("\n}\n")
        .map_or(source.len(), |at| start + at + 3);
    format!("{}\n{}", &source[..start], &source[end..])
}

/// The overlay of this toolchain, from the cache or made now. Files that `foreign`, the user's own overlay, has are
/// edited instead of the toolchain's.
///
/// # Errors
/// Where the toolchain cannot be edited, or files cannot be read or written.
pub fn prepare(
    toolchain: &Toolchain,
    cache: &Path,
    foreign: Option<&Path>,
) -> Result<Overlay, OverlayError> {
    let sources = toolchain.root.join("src");
    let foreign_files = foreign.map(read_overlay).transpose()?.unwrap_or_default();
    let generated = generate(&toolchain.version, |file| {
        let own = sources.join(file);
        let path = foreign_files
            .get(&own.to_string_lossy().into_owned())
            .map_or(own, PathBuf::from);
        fs::read_to_string(&path).map_err(|error| OverlayError::Read {
            path,
            reason: error.to_string(),
        })
    })?;
    let mut replace = foreign_files;
    let key = key(toolchain, &generated, &replace);
    let directory = cache.join(key);
    for file in generated.files.keys() {
        replace.insert(
            sources.join(file).to_string_lossy().into_owned(),
            directory
                .join("src")
                .join(file)
                .to_string_lossy()
                .into_owned(),
        );
    }
    let overlay = Overlay {
        file: directory.join("overlay.json"),
        missing: generated.missing.clone(),
    };
    if overlay.file.is_file() {
        return Ok(overlay);
    }
    let draft = cache.join(format!(".draft-{}", std::process::id()));
    let written = |path: &Path, text: &str| {
        let parent = path.parent().unwrap_or(path);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(path, text))
            .map_err(|error| OverlayError::Write {
                path: path.to_owned(),
                reason: error.to_string(),
            })
    };
    for (file, text) in &generated.files {
        written(&draft.join("src").join(file), text)?;
    }
    let json = serde_json::json!({ "Replace": replace });
    written(&draft.join("overlay.json"), &json.to_string())?;
    if let Err(error) = fs::rename(&draft, &directory) {
        let _ = fs::remove_dir_all(&draft);
        // Somebody else may have been faster.
        if !overlay.file.is_file() {
            return Err(OverlayError::Write {
                path: directory,
                reason: error.to_string(),
            });
        }
    }
    Ok(overlay)
}

fn key(toolchain: &Toolchain, generated: &Generated, foreign: &BTreeMap<String, String>) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), VERSION, &toolchain.root).hash(&mut hasher);
    generated.files.hash(&mut hasher);
    foreign.hash(&mut hasher);
    let version: String = toolchain
        .version
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    format!("{version}-{:016x}", hasher.finish())
}

/// The replacements of an overlay file of the go command.
pub(crate) fn read_overlay(path: &Path) -> Result<BTreeMap<String, String>, OverlayError> {
    #[derive(serde::Deserialize)]
    struct File {
        #[serde(rename = "Replace", default)]
        replace: BTreeMap<String, String>,
    }
    let foreign = |reason: String| OverlayError::Foreign {
        path: path.to_owned(),
        reason,
    };
    let text = fs::read_to_string(path).map_err(|error| foreign(error.to_string()))?;
    let file: File = serde_json::from_str(&text).map_err(|error| foreign(error.to_string()))?;
    Ok(file.replace)
}
