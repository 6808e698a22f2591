//! How processes ended, by whoever saw it.

use crate::container::ProcessFile;
use crate::load::{open_pack, optional};
use crate::map::{Folder, Mapped};
use crate::model::{End, EndKind};
use lockstep_format::digest::Digest;
use lockstep_format::pack::is_pack;
use lockstep_format::process::end;
use lockstep_format::stat::Stat;
use rustc_hash::FxHashMap;
use std::fs;

const FOLDER: &str = "ends";
const SIGKILL: i32 = 9;
/// An end is one short line.
const MOST: u64 = 4096;

/// What the recorder or its watcher saw, from `ends/HOST-PID-START.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub(crate) struct Seen {
    kind: SeenKind,
    #[serde(default)]
    code: Option<i32>,
    /// When, in microseconds since 1970.
    #[serde(default)]
    pub at: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum SeenKind {
    Exited,
    Signalled,
    /// Not how.
    Gone,
}

/// Whether a process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Here,
    Gone,
    OnAnotherHost,
}

/// Settles the end of a process: a program that was replaced by exec ended then; else what a witness
/// saw counts, then what the process said itself, then whether it is there.
pub(crate) fn settle(
    has_successor: bool,
    seen: Option<Seen>,
    (kind, code): (u32, u32),
    presence: impl Fn() -> Presence,
) -> End {
    let how = seen.and_then(|seen| {
        let kind = match seen.kind {
            SeenKind::Exited => EndKind::Exited,
            SeenKind::Signalled if seen.code == Some(SIGKILL) => EndKind::Killed,
            SeenKind::Signalled => EndKind::Signalled,
            SeenKind::Gone => return None,
        };
        Some((kind, seen.code?))
    });
    let (kind, code, certain) = if has_successor {
        (EndKind::Exited, None, true)
    } else if let Some((kind, code)) = how {
        (kind, Some(code), true)
    } else if kind == end::EXITED {
        (EndKind::Exited, Some(code.cast_signed()), true)
    } else if kind == end::OVER || seen.is_some() {
        (EndKind::Killed, None, false)
    } else {
        match presence() {
            Presence::Here => (EndKind::Running, None, true),
            Presence::OnAnotherHost => (EndKind::Running, None, false),
            Presence::Gone => (EndKind::Killed, None, false),
        }
    };
    End {
        kind,
        code,
        certain,
    }
}

/// What witnesses saw of a run's processes: `ends/HOST-PID-START.json`, each a file or in a pack.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    folder: Option<Folder>,
    packed: FxHashMap<String, Mapped>,
}

impl Ends {
    pub fn open(root: &Folder, notes: &mut Vec<String>) -> Self {
        let mut ends = Self::default();
        let Some(folder) = optional(root, FOLDER, notes) else {
            return ends;
        };
        let names = folder.names().unwrap_or_default();
        for name in names.iter().filter(|name| is_pack(name)) {
            let Some(pack) = open_pack(FOLDER, &folder, name, notes) else {
                continue;
            };
            for member in &pack.members {
                let Some(file) = &member.name else { continue };
                match pack.damage(member) {
                    None => drop(ends.packed.insert(file.clone(), pack.part(member))),
                    Some(damage) => notes.push(format!("{FOLDER}/{name}: {file}: {damage}")),
                }
            }
        }
        ends.folder = Some(folder);
        ends
    }

    /// What was seen of the process `HOST-PID-START`; `None` and a note where it cannot be read.
    pub fn of(&self, process: &str, notes: &mut Vec<String>) -> Option<Seen> {
        let name = format!("{process}.json");
        let parsed =
            |bytes: &[u8]| serde_json::from_slice(bytes).map_err(|error| error.to_string());
        let folder = self.folder.as_ref().filter(|folder| folder.has(&name));
        let seen = match (folder, self.packed.get(&name)) {
            (Some(folder), _) => folder
                .read(&name, MOST)
                .map_err(|error| error.to_string())
                .and_then(|bytes| parsed(&bytes)),
            (None, Some(packed)) => parsed(packed.bytes()),
            (None, None) => return None,
        };
        match seen {
            Ok(seen) => Some(seen),
            Err(error) => {
                notes.push(format!("{FOLDER}/{name}: {error}"));
                None
            }
        }
    }
}

/// Whether the process of `file` is there; `host` is its host.
pub(crate) fn presence(host: &str, file: &ProcessFile) -> Presence {
    let here = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let here = here.trim_end();
    // Without facts the host is known from the file's name only, where it is spelt safely.
    let redacted = Digest::of(here.as_bytes());
    if host != here && host != spelt(here) && host.as_bytes() != redacted {
        return Presence::OnAnotherHost;
    }
    let line = fs::read(format!("/proc/{}/stat", file.pid)).unwrap_or_default();
    match Stat::parse(&line) {
        Some(stat) if stat.start == file.start_time && !stat.is_over() => Presence::Here,
        _ => Presence::Gone,
    }
}

/// A host's name as it stands in file names.
pub(crate) fn spelt(host: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    host.chars()
        .map(|c| if is_safe(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn seen(text: &str) -> Option<Seen> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn who_saw_it_best_is_believed() {
        let gone = || Presence::Gone;
        let none = (end::NONE, 0);
        let end = |end: End| (end.kind, end.code, end.certain);
        let abort = seen(r#"{"kind":"signalled","code":6}"#);
        let kill = seen(r#"{"kind":"signalled","code":9}"#);
        assert_eq!(
            end(settle(false, abort, none, gone)),
            (EndKind::Signalled, Some(6), true)
        );
        assert_eq!(
            end(settle(false, kill, (end::EXITED, 0), gone)),
            (EndKind::Killed, Some(9), true)
        );
        assert_eq!(
            end(settle(false, None, (end::EXITED, 3), gone)),
            (EndKind::Exited, Some(3), true)
        );
        assert_eq!(
            end(settle(true, abort, none, gone)),
            (EndKind::Exited, None, true)
        );
        assert_eq!(
            end(settle(false, None, none, gone)),
            (EndKind::Killed, None, false)
        );
        assert_eq!(
            end(settle(false, None, (end::OVER, 0), || Presence::Here)),
            (EndKind::Killed, None, false)
        );
        let gone = seen(r#"{"kind":"gone","at":7}"#);
        assert_eq!(gone.and_then(|it| it.at), Some(7));
        assert_eq!(
            end(settle(false, gone, none, || Presence::OnAnotherHost)),
            (EndKind::Killed, None, false)
        );
        assert_eq!(
            end(settle(false, gone, (end::EXITED, 3), || Presence::Gone)),
            (EndKind::Exited, Some(3), true)
        );
        let end_if = |presence| end(settle(false, None, none, || presence));
        assert_eq!(end_if(Presence::Here), (EndKind::Running, None, true));
        assert_eq!(
            end_if(Presence::OnAnotherHost),
            (EndKind::Running, None, false)
        );
    }
}
