//! The probe that this command carries; the build script makes it.

use lockstep_record::Probe;
use std::path::PathBuf;

const CARRIED: &[u8] = include_bytes!(env!("LOCKSTEP_CARRIED_PROBE"));

/// The file that was given, else the one that the command carries.
pub fn chosen(given: Option<PathBuf>) -> Probe {
    given.map_or(Probe::Carried(CARRIED), Probe::File)
}
