//! Where a run's process files are, and what each of them is as bytes: files of `processes/`, parts of packs, files in
//! the buffers of recorders that run or were killed; or rows of a sealed file.

use crate::container::{self, Finding, ProcessFile};
use crate::handles::{Library, NameLists};
use crate::map::{Folder, Mapped};
use crate::pack::{self, Pack};
use crate::sealed::{Sealed, SealedProcess, SealedThread};
use lockstep_format::buffer;
use lockstep_format::pack::is_pack;
use lockstep_format::process::SUFFIX;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A path is not longer.
const MOST_PATH: u64 = 4096;
/// A live process may take a new chunk between our look at the chunks and at a thread's state; and a file may be put
/// elsewhere between our look at its name and at its content.
const TRIES: usize = 5;

/// Streams of a process file that are together no longer are copied, and the file is not kept.
const MOST_COPIED: usize = 8192;

/// A process file that could be read.
pub(crate) struct Loaded {
    pub file_name: String,
    /// What the file's pieces are places in.
    pub mapped: Arc<Mapped>,
    pub whole: Whole,
    pub file: ProcessFile,
    pub library: Arc<Library>,
    pub host: String,
    /// Of a sealed run: what it tells of threads, by their index, and symbols that no image had.
    pub told: FxHashMap<u32, SealedThread>,
    pub strays: Vec<u32>,
}

/// All of a process file.
#[derive(Debug)]
pub(crate) enum Whole {
    Here(Arc<Mapped>),
    /// To be looked up again in its directory; so long it was.
    There(Arc<Folder>, u64),
}

impl Whole {
    pub fn length(&self) -> u64 {
        match self {
            Self::Here(mapped) => mapped.bytes().len() as u64,
            Self::There(_, length) => *length,
        }
    }

    /// Of the process file of this name.
    ///
    /// # Errors
    /// Where it is not there any more as it was.
    pub fn open(&self, name: &str) -> io::Result<Arc<Mapped>> {
        let (folder, length) = match self {
            Self::Here(mapped) => return Ok(Arc::clone(mapped)),
            Self::There(folder, length) => (folder, *length),
        };
        let mapped = folder.map(name)?;
        let found = mapped.bytes().len() as u64;
        if found != length {
            return Err(io::Error::other(format!(
                "expected a file of {length} bytes as before, found {found}"
            )));
        }
        Ok(Arc::new(mapped))
    }
}

/// A directory of the run that need not be there.
pub(crate) fn optional(root: &Folder, name: &str, notes: &mut Vec<String>) -> Option<Folder> {
    match root.folder(name) {
        Ok(folder) => Some(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            notes.push(format!("{name}: {error}"));
            None
        }
    }
}

/// `HOST-PID-START` of `HOST-PID-START-K.lockstep`, and its host.
pub(crate) fn process_key(file_name: &str) -> (&str, &str) {
    let stem = file_name.strip_suffix(SUFFIX).unwrap_or(file_name);
    let key = stem.rsplit_once('-').map_or(stem, |(key, _)| key);
    let host = key.rsplitn(3, '-').nth(2).unwrap_or(key);
    (key, host)
}

/// Most bytes of streams of a sealed run's processes that stay in memory: what stands beside events, and events that no
/// tree tells.
pub(crate) const MOST_STREAMS: u64 = 1 << 30;

/// What is in the place of process files in a sealed run.
///
/// # Errors
/// In words, where the file does not hold, or tells more than stays in memory.
pub(crate) fn sealed_processes(
    sealed: &Sealed,
    notes: &mut Vec<String>,
) -> Result<Vec<Loaded>, String> {
    /// Rebuilt at the same time: so many, of so many bytes.
    const BATCH: usize = 1024;
    const BATCH_BYTES: u64 = 1 << 26;
    let mut results: Vec<Result<Loaded, String>> = Vec::new();
    let mut processes = sealed.processes()?;
    let lists = NameLists::default();
    let mut streams = 0;
    loop {
        let mut batch: Vec<SealedProcess> = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH
            && bytes < BATCH_BYTES
            && let Some(process) = processes.next()
        {
            let process = process?;
            bytes += process.made;
            batch.push(process);
        }
        if batch.is_empty() {
            return Ok(whole(results, notes));
        }
        let rebuilt = |process: SealedProcess| {
            let name = process.file_name.clone();
            rebuilt(process, &lists).map_err(|text| format!("processes/{name}: {text}"))
        };
        let before = results.len();
        results.par_extend(batch.into_par_iter().map(rebuilt));
        let new = results.get(before..).unwrap_or(&[]).iter().flatten();
        streams += new.map(|it| it.mapped.bytes().len() as u64).sum::<u64>();
        if streams > MOST_STREAMS {
            return Err(format!(
                "expected streams of at most {MOST_STREAMS} bytes beside the trees, found more"
            ));
        }
    }
}

/// The processes that could be read; of the others, why not.
fn whole(results: Vec<Result<Loaded, String>>, notes: &mut Vec<String>) -> Vec<Loaded> {
    let mut loaded = Vec::new();
    for result in results {
        match result {
            Ok(process) => loaded.push(process),
            Err(note) => notes.push(note),
        }
    }
    if loaded.is_empty() {
        notes.push("no process was recorded".to_owned());
    }
    loaded
}

fn rebuilt(process: SealedProcess, lists: &NameLists) -> Result<Loaded, String> {
    let bytes = process.residue.rebuild();
    let bytes = bytes.ok_or("expected chunks as a process file has them, found larger ones")?;
    let mut mapped = Mapped::Memory(bytes);
    let mut file = container::read(mapped.bytes(), |at| mapped.control(at))
        .map_err(|finding| finding.to_string())?;
    if let Some(streams) = file.gather(mapped.bytes(), usize::MAX) {
        mapped = Mapped::Memory(streams);
    }
    file.findings = process.findings;
    let told = process.threads.into_iter();
    Ok(Loaded {
        told: told.map(|it| (it.index, it)).collect(),
        strays: process.strays,
        ..Loaded::new(process.file_name, mapped, file, lists)
    })
}

impl Loaded {
    fn new(file_name: String, mapped: Mapped, mut file: ProcessFile, lists: &NameLists) -> Self {
        let handles = std::mem::take(&mut file.facts.handles);
        let host = file.facts.host.clone();
        let mapped = Arc::new(mapped);
        Self {
            host: host.unwrap_or_else(|| process_key(&file_name).1.to_owned()),
            file_name,
            library: Arc::new(Library::new(&handles, lists)),
            whole: Whole::Here(Arc::clone(&mapped)),
            mapped,
            file,
            told: FxHashMap::default(),
            strays: Vec::new(),
        }
    }
}

/// Where a process file is.
enum Place<'a> {
    File(&'a str, &'a Arc<Folder>),
    Part(&'a str, &'a Pack, &'a pack::Member),
}

/// Why there is no process.
struct Missing {
    text: String,
    /// The file was there a moment ago.
    vanished: bool,
}

/// The process files of a run that is not sealed.
pub(crate) fn processes(root: &Folder, notes: &mut Vec<String>) -> Vec<Loaded> {
    let lists = NameLists::default();
    let mut tries = 0;
    loop {
        tries += 1;
        let mut told = Vec::new();
        let found = look(root, &lists, &mut told);
        let vanished = |one: &Result<Loaded, Missing>| one.as_ref().is_err_and(|it| it.vanished);
        // What was just put into the run, or into a pack, is there at the next look.
        if tries < TRIES && found.iter().any(vanished) {
            continue;
        }
        notes.append(&mut told);
        let found = found.into_iter().map(|one| one.map_err(|it| it.text));
        return whole(found.collect(), notes);
    }
}

fn look(root: &Folder, lists: &NameLists, notes: &mut Vec<String>) -> Vec<Result<Loaded, Missing>> {
    let Some(folder) = optional(root, "processes", notes) else {
        return Vec::new();
    };
    let mut folders = vec![("processes".to_owned(), Arc::new(folder))];
    let buffers = buffers(root, notes).into_iter();
    folders.extend(buffers.map(|(shown, folder)| (shown, Arc::new(folder))));
    let mut files: Vec<(String, Place<'_>)> = Vec::new();
    let mut seen: FxHashSet<String> = FxHashSet::default();
    let mut packs: Vec<(String, Pack)> = Vec::new();
    // Where files come from is listed before where they go, and packs come last: what is put elsewhere meanwhile is seen
    // twice, and never not at all. What has vanished from a buffer by then is looked for again.
    for (shown, folder) in folders.iter().rev() {
        let names = folder.names().unwrap_or_else(|error| {
            notes.push(format!("{shown}: {error}"));
            Vec::new()
        });
        for name in names {
            if is_pack(&name) {
                packs.extend(open_pack(shown, folder, &name, notes).map(|pack| (name, pack)));
            } else if name.ends_with(SUFFIX) && !name.starts_with('.') && seen.insert(name.clone())
            {
                files.push((name, Place::File(shown, folder)));
            }
        }
    }
    for (shown, pack) in &packs {
        for member in &pack.members {
            let name = member.name.clone().unwrap_or_default();
            if name.is_empty() || name.ends_with(SUFFIX) && seen.insert(name.clone()) {
                files.push((name, Place::Part(shown, pack, member)));
            }
        }
    }
    let loaded: Vec<Result<Loaded, Missing>> = files
        .par_iter()
        .map(|(name, place)| match place {
            Place::File(shown, folder) => load(folder, name, lists).map_err(|missing| Missing {
                text: format!("{shown}/{name}: {}", missing.text),
                ..missing
            }),
            Place::Part(shown, pack, member) => {
                load_part(pack, member, lists).map_err(|text| Missing {
                    text: format!("processes/{shown}: {name}: {text}"),
                    vanished: false,
                })
            }
        })
        .collect();
    // One that got its name from its content may be there under that name, too.
    let mut names: FxHashSet<String> = FxHashSet::default();
    let is_first = |one: &Result<Loaded, Missing>| match one {
        Ok(loaded) => names.insert(loaded.file_name.clone()),
        Err(_) => true,
    };
    loaded.into_iter().filter(is_first).collect()
}

/// A pack of a directory; what does not hold is noted.
pub(crate) fn open_pack(
    shown: &str,
    folder: &Folder,
    name: &str,
    notes: &mut Vec<String>,
) -> Option<Pack> {
    let pack = folder
        .map(name)
        .map_err(|error| error.to_string())
        .and_then(|map| Pack::read(map).map_err(|finding| finding.to_string()));
    match pack {
        Ok(pack) => {
            let findings = pack.findings.iter();
            notes.extend(findings.map(|finding| format!("{shown}/{name}: {finding}")));
            Some(pack)
        }
        Err(text) => {
            notes.push(format!("{shown}/{name}: {text}"));
            None
        }
    }
}

/// Directories outside the run in which process files are that recorders have yet to put into it, or
/// left when they were killed.
fn buffers(root: &Folder, notes: &mut Vec<String>) -> Vec<(String, Folder)> {
    if !root.has(buffer::FOLDER) {
        return Vec::new();
    }
    let mut found: Vec<(String, Folder)> = Vec::new();
    let Some(folder) = optional(root, buffer::FOLDER, notes) else {
        return found;
    };
    for name in folder.names().unwrap_or_default() {
        let path = folder.read(&name, MOST_PATH).unwrap_or_default();
        let path = Path::new(OsStr::from_bytes(&path));
        let shown = path.display().to_string();
        if name.starts_with('.') || found.iter().any(|(known, _)| *known == shown) {
            continue;
        }
        match root.elsewhere(path) {
            Ok(place) if path.is_absolute() => found.push((shown, place)),
            _ => notes.push(format!(
                "buffers/{name}: the events of a recorder that runs, or was killed, are in {shown} of its host, which is not here"
            )),
        }
    }
    found
}

fn load(folder: &Arc<Folder>, name: &str, lists: &NameLists) -> Result<Loaded, Missing> {
    let mut tries = 0;
    loop {
        tries += 1;
        let mapped = folder.map(name).map_err(|error| Missing {
            text: error.to_string(),
            vanished: error.kind() == io::ErrorKind::NotFound,
        })?;
        let mut file = read(&mapped).map_err(|finding| Missing {
            text: finding.to_string(),
            vanished: false,
        })?;
        let is_whole = file.threads.iter().all(|thread| thread.check.is_some());
        if !is_whole && tries < TRIES {
            continue;
        }
        let name = name.to_owned();
        return Ok(match file.gather(mapped.bytes(), MOST_COPIED) {
            None => Loaded::new(name, mapped, file, lists),
            Some(streams) => Loaded {
                whole: Whole::There(Arc::clone(folder), mapped.bytes().len() as u64),
                ..Loaded::new(name, Mapped::Memory(streams), file, lists)
            },
        });
    }
}

fn load_part(pack: &Pack, member: &pack::Member, lists: &NameLists) -> Result<Loaded, String> {
    let damage = pack.damage(member);
    let mapped = pack.part(member);
    let mut file = read(&mapped).map_err(|finding| {
        let damage = damage.as_ref().map(|damage| format!("{damage}; "));
        format!("{}{finding}", damage.unwrap_or_default())
    })?;
    file.findings.extend(damage);
    let name = member.name.clone();
    Ok(Loaded::new(
        name.unwrap_or_else(|| pack::name_of(&file)),
        mapped,
        file,
        lists,
    ))
}

fn read(mapped: &Mapped) -> Result<ProcessFile, Finding> {
    container::read(mapped.bytes(), |at| mapped.control(at))
}
