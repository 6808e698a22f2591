//! Plans of images, made once a run: ahead by the recorder, or for the probe by `__plan`.

use lockstep_binary::Image;
use lockstep_format::plan::{Plan, Role, choice};
use lockstep_patch::{FileIdentity, image_key, plan_name};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The environment variables that pass the choice of functions on: expressions, one a line, and what
/// tells this choice from others in the names of plans.
pub(crate) const CHOICE: [&str; 3] = ["LOCKSTEP_TRACE", "LOCKSTEP_SKIP", "LOCKSTEP_CHOICE"];

/// The choice of functions of the run that this process is part of.
fn inherited_choice() -> lockstep_patch::Options {
    let lines = |name: &str| -> Vec<String> {
        let value = std::env::var(name).unwrap_or_default();
        value.lines().map(str::to_owned).collect()
    };
    lockstep_patch::Options {
        trace: lines(CHOICE[0]),
        skip: lines(CHOICE[1]),
    }
}

/// The expressions that found no name in any of the run's plans, as they were written; none where
/// there is no plan.
pub(crate) fn unmatched(run: &Path, choice: &lockstep_patch::Options) -> Vec<String> {
    if choice.is_everything() {
        return Vec::new();
    }
    let ending = plan_name("", choice);
    let mut found: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for entry in fs::read_dir(run.join("plans"))
        .into_iter()
        .flatten()
        .flatten()
    {
        if !entry.file_name().as_bytes().ends_with(ending.as_bytes()) {
            continue;
        }
        let Ok(bytes) = fs::read(entry.path()) else {
            continue;
        };
        for row in Plan::new(&bytes)
            .into_iter()
            .flat_map(|plan| plan.choices())
        {
            let pattern = String::from_utf8_lossy(row.pattern).into_owned();
            *found.entry((row.kind, pattern)).or_default() += u64::from(row.found);
        }
    }
    found
        .into_iter()
        .filter(|(_, count)| *count == 0)
        .map(|((kind, pattern), _)| match kind {
            choice::SKIP => format!("--skip '{pattern}'"),
            _ => format!("--trace '{pattern}'"),
        })
        .collect()
}

/// Why an image has no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("{0}")]
    File(#[from] io::Error),
    #[error("{0}")]
    Image(#[from] lockstep_patch::PlanFailure),
}

/// The hidden subcommand `__plan --run RUN --role ROLE IMAGE`: makes the plan of one image, unless
/// it is there. Silent; the status says whether the plan is there now.
#[must_use]
pub fn plan_command(arguments: &[OsString]) -> u8 {
    let [flag_run, run, flag_role, role, image] = arguments else {
        return 125;
    };
    if flag_run != "--run" || flag_role != "--role" {
        return 125;
    }
    let roles = [Role::Main, Role::Unwinder, Role::Mpi, Role::Libc];
    let Some(role) = roles
        .into_iter()
        .find(|known| OsStr::new(known.name()) == role)
    else {
        return 125;
    };
    match ensure(Path::new(run), role, Path::new(image), &inherited_choice()) {
        Ok(_) => 0,
        Err(_) => 1,
    }
}

/// Makes the plan of the image at `path` unless the run has it; where it is.
pub(crate) fn ensure(
    run: &Path,
    role: Role,
    path: &Path,
    choice: &lockstep_patch::Options,
) -> Result<PathBuf, PlanError> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let bytes = fs::read(path)?;
    let build_id = Image::parse(&bytes)
        .map_err(lockstep_patch::PlanFailure::from)?
        .build_id()
        .to_owned();
    let identity = FileIdentity {
        path: path.as_os_str().as_bytes(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    };
    let plans = run.join("plans");
    let name = plan_name(&image_key(&build_id, &identity), choice);
    let place = plans.join(&name);
    if place.exists() {
        return Ok(place);
    }
    // One process makes it, the others wait. Where locks do not work, several make the same file.
    let lock = File::open(&plans)?;
    let _ = flock(&lock, FlockOperation::LockExclusive);
    if place.exists() {
        return Ok(place);
    }
    let plan = lockstep_patch::plan(&bytes, role, choice)?;
    let draft = plans.join(format!(
        ".{name}.{}-{}",
        crate::process::host_in_names(),
        std::process::id()
    ));
    crate::put(&draft, &place, &plan)?;
    Ok(place)
}
