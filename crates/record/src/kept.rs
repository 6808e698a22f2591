//! What a run keeps of its plans.
//!
//! While a run is recorded, `plans/` has the whole plans: the probe applies them. They are links to the cache where that is
//! possible. Afterwards only names, refusals and call sites matter, of the images that some process had:
//!
//! ```text
//! while it is recorded                            afterwards
//! plans/A.plan   link to the cache                plans/A.plan   trimmed: a file of its own
//! plans/B.plan   asked for by a former run only   (gone)
//! plans/C.plan   empty: no plan could be made     (gone)
//! ```
//! A process that lives on and needs a plan again has it made again: the probe and the planner take a trimmed plan for none.

use crate::cache::draft;
use crate::own;
use crate::tally::{self, ProcessFile};
use lockstep_format::bytes::{put, put_u32, u32_at};
use lockstep_format::plan::{Plan, header, section};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What readers need of a plan; `None` where the bytes are no plan, or one that was trimmed before.
fn trimmed(bytes: &[u8]) -> Option<Vec<u8>> {
    Plan::checked_by(bytes, crc32c::crc32c_append).ok()?;
    let mut kept = bytes.get(..header::SIZE)?.to_vec();
    put_u32(&mut kept, header::HEAD, 0);
    for index in 0..section::COUNT {
        let at = header::SECTIONS + 8 * index;
        let (start, length) = (u32_at(bytes, at)? as usize, u32_at(bytes, at + 4)? as usize);
        let place = if section::KEPT.contains(&index) {
            kept.resize(kept.len().next_multiple_of(8), 0);
            let place = kept.len();
            kept.extend_from_slice(bytes.get(start..start + length)?);
            (u32::try_from(place).ok()?, u32::try_from(length).ok()?)
        } else {
            (0, 0)
        };
        put_u32(&mut kept, at, place.0);
        put_u32(&mut kept, at + 4, place.1);
    }
    let check = crc32c::crc32c(&kept[header::ROLE..]);
    put(&mut kept, header::CHECK, &check.to_le_bytes());
    Some(kept)
}

/// File systems that no other host writes to, by their numbers: ext2 to ext4, xfs, btrfs, tmpfs, overlay, zfs, f2fs, bcachefs.
const LOCAL: [u64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x794c_7630,
    0x2fc1_2fc1,
    0xf2f5_2010,
    0xca45_1a4e,
];

fn is_local(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| LOCAL.contains(&found.f_type.cast_unsigned()))
}

/// Leaves of the run's plans what its readers need. While a process of this host runs, nothing is changed: it may be about to
/// use a plan. Where other hosts may have written to the run, plans are trimmed, and none is removed: a process file of theirs
/// may not be seen yet. What cannot be written stays as it is.
pub(crate) fn trim(run: &Path) {
    let processes = tally::files(run);
    let plans = run.join("plans");
    let is_ours =
        fs::symlink_metadata(&plans).is_ok_and(|found| found.is_dir() && own::is_own(found.uid()));
    let is_alive = processes.iter().any(|(name, _)| name.is_alive_here());
    if !is_ours || is_alive || processes.is_empty() {
        return;
    }
    let is_local = is_local(&plans);
    let mut needed = HashSet::new();
    for (_, place) in processes {
        // A file that cannot be read now may be read later: its plans are not known.
        let Ok(file) = ProcessFile::open(&place) else {
            return;
        };
        needed.extend(
            file.iter()
                .flat_map(ProcessFile::images)
                .map(|image| image.plan),
        );
    }
    for entry in fs::read_dir(&plans).into_iter().flatten().flatten() {
        let (name, place) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str().filter(|name| name.ends_with(".plan")) else {
            continue;
        };
        if is_local && !needed.contains(name) {
            let _ = fs::remove_file(&place);
        } else if let Some(kept) = own::read(&place).ok().and_then(|bytes| trimmed(&bytes)) {
            let _ = own::put(&draft(&place), &place, &kept);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use lockstep_format::check::extend;
    use lockstep_format::plan::Role;

    #[test]
    fn a_trimmed_plan_says_to_readers_what_the_whole_one_does_and_is_none_to_the_probe() {
        let program = fs::read(std::env::current_exe().unwrap()).unwrap();
        let whole = lockstep_patch::plan(&program, Role::Main, &lockstep_patch::Options::default())
            .unwrap();
        let small = trimmed(&whole).unwrap();
        assert!(
            small.len() * 2 < whole.len(),
            "{} of {}",
            small.len(),
            whole.len()
        );
        assert!(Plan::new(&small).is_err());
        let told = |bytes: &[u8]| {
            let plan = Plan::kept(bytes, extend).unwrap();
            let functions: Vec<_> = plan
                .functions()
                .map(|it| (it.address, it.name.to_vec()))
                .collect();
            let refusals: Vec<_> = plan.refusals().map(|it| it.reason.to_vec()).collect();
            let sites: Vec<_> = plan
                .call_sites()
                .chain(
                    plan.takers()
                        .map(|(caller, callee)| lockstep_format::plan::CallSite {
                            return_address: 0,
                            caller,
                            callee,
                        }),
                )
                .collect();
            assert!(plan.code().is_empty() && plan.sites().next().is_none());
            (
                functions,
                refusals,
                sites,
                plan.build_id().to_vec(),
                plan.role(),
                plan.symbols(),
            )
        };
        assert_eq!(told(&small), told(&whole));
        assert_eq!(trimmed(&small), None);
        for length in [0, 11, header::SIZE, small.len() - 1] {
            assert!(Plan::kept(&small[..length], extend).is_err(), "{length}");
        }
    }
}
