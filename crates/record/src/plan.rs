//! Plans of images, made once a run: ahead by the recorder, or for the probe by `__plan`.

use lockstep_binary::Image;
use lockstep_format::plan::Role;
use lockstep_patch::{FileIdentity, image_key};
use rustix::fs::{FlockOperation, flock};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
    match ensure(Path::new(run), role, Path::new(image)) {
        Ok(_) => 0,
        Err(_) => 1,
    }
}

/// Makes the plan of the image at `path` unless the run has it; where it is.
pub(crate) fn ensure(run: &Path, role: Role, path: &Path) -> Result<PathBuf, PlanError> {
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
    let key = image_key(&build_id, &identity);
    let place = plans.join(format!("{key}.plan"));
    if place.exists() {
        return Ok(place);
    }
    // One process makes it, the others wait. Where locks do not work, several make the same file.
    let lock = File::open(&plans)?;
    let _ = flock(&lock, FlockOperation::LockExclusive);
    if place.exists() {
        return Ok(place);
    }
    let plan = lockstep_patch::plan(&bytes, role, &lockstep_patch::Options::default())?;
    let draft = plans.join(format!(
        ".{key}.{}-{}",
        crate::process::host_in_names(),
        std::process::id()
    ));
    crate::put(&draft, &place, &plan)?;
    Ok(place)
}
