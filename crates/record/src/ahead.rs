//! Plans that a former run of the same program asked for, put into the next run before anybody asks: a process
//! that finds its plans need not start the planner, whatever libraries it loads, and whenever.
//!
//! ```text
//!  __plan, asked by a process ──► RUN/plans/asked ──► at the end: CACHE/asked-KEY ──► the next run's recorder
//! ```
//! What is remembered is checked like everything of the cache: a library that was replaced since has another
//! name there, and is asked for again.

use crate::cache::Cache;
use crate::images::Images;
use crate::own;
use crate::plan::Job;
use lockstep_format::plan::Role;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where processes of a run write down what they asked for.
const ASKED: &str = "asked";
/// Plans that are remembered of a command.
const MOST: usize = 1024;

/// What runs with the same plans have in common: the programs that the command names (an MPI launcher and what it
/// launches), and what is recorded of them.
pub(crate) fn key(
    command: &[OsString],
    images: &Images,
    choice: &lockstep_patch::Options,
) -> String {
    let mut hasher = DefaultHasher::new();
    command.first().hash(&mut hasher);
    for word in command.iter().skip(1) {
        let is_program =
            |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
        if let Ok(path) = fs::canonicalize(word)
            && fs::metadata(&path).is_ok_and(is_program)
        {
            path.hash(&mut hasher);
        }
    }
    images.variable().hash(&mut hasher);
    choice.digest().hash(&mut hasher);
    format!("{ASKED}-{:016x}", hasher.finish())
}

fn line(job: &Job) -> Option<String> {
    let path = job.path.to_str()?;
    (!path.contains(['\t', '\n'])).then(|| format!("{}\t{}\t{path}\n", job.role.name(), job.name))
}

fn job(line: &str) -> Option<Job> {
    let mut words = line.split('\t');
    let (role, name, path) = (words.next()?, words.next()?, words.next()?);
    let is_name = !name.contains('/') && name.ends_with(".plan") && words.next().is_none();
    is_name.then_some(Job {
        role: Role::from_name(role)?,
        name: name.to_owned(),
        path: PathBuf::from(path),
    })
}

fn jobs(text: &str) -> Vec<Job> {
    let mut known = HashSet::new();
    let jobs = text.lines().filter_map(job);
    jobs.filter(|job| known.insert(job.name.clone()))
        .take(MOST)
        .collect()
}

/// Writes down what was asked for in a run with these `plans`; what cannot be written is asked for again.
pub(crate) fn note(plans: &Path, jobs: &[Job]) {
    let text: String = jobs.iter().filter_map(line).collect();
    if text.is_empty() {
        return;
    }
    // One write: lines of several processes do not mix.
    let _ = own::append(&plans.join(ASKED)).and_then(|mut file| file.write_all(text.as_bytes()));
}

/// What was written down, each plan once; nothing of it is left in the run.
pub(crate) fn asked(plans: &Path) -> Vec<Job> {
    let path = plans.join(ASKED);
    let text = own::read(&path).unwrap_or_default();
    let _ = fs::remove_file(&path);
    jobs(&String::from_utf8_lossy(&text))
}

/// Keeps what runs of this key ask for.
pub(crate) fn keep(cache: &Cache, key: &str, jobs: &[Job]) {
    let text: String = jobs.iter().filter_map(line).collect();
    if !text.is_empty() && cache.note(key).as_deref() != Some(&text) {
        cache.keep(key, text.as_bytes());
    }
}

/// What was kept.
pub(crate) fn recall(cache: &Cache, key: &str) -> Vec<Job> {
    jobs(&cache.note(key).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_asked_for_is_told_once_and_hostile_lines_are_nothing() {
        let plans = std::env::temp_dir().join(format!("lockstep-ahead-{}", std::process::id()));
        fs::create_dir_all(&plans).unwrap();
        let one = Job {
            role: Role::Library,
            name: "0123-library.plan".to_owned(),
            path: PathBuf::from("/usr/lib/a b.so"),
        };
        let two = Job {
            name: "4567-libc.plan".to_owned(),
            role: Role::Libc,
            ..one.clone()
        };
        let broken = Job {
            path: PathBuf::from("/a\tb"),
            ..one.clone()
        };
        note(&plans, &[one.clone(), broken]);
        note(&plans, &[two.clone(), one.clone()]);
        fs::OpenOptions::new()
            .append(true)
            .open(plans.join(ASKED))
            .unwrap()
            .write_all(
                b"library\t../../x.plan\t/a\nnothing\nlibrary\tx\t/a\nlibrary\ty.plan\t/a\tb\n",
            )
            .unwrap();
        assert_eq!(asked(&plans), [one, two]);
        assert_eq!(asked(&plans), []);
        fs::remove_dir_all(&plans).unwrap();
    }

    #[test]
    fn arguments_that_are_no_programs_do_not_matter() {
        let key = |words: &[&str], images: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            key(
                &words,
                &Images::new(images).unwrap(),
                &lockstep_patch::Options::default(),
            )
        };
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        assert_eq!(
            key(&["mpirun", "-n", "4", own], &[]),
            key(&["mpirun", "-n", "8", own, "x"], &[])
        );
        assert_ne!(key(&["mpirun", own], &[]), key(&["mpirun"], &[]));
        assert_ne!(key(&["mpirun"], &["all"]), key(&["mpirun"], &[]));
    }
}
