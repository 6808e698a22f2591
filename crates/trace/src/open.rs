//! From a directory to a [`Run`].

use crate::error::Error;
use crate::model::Run;
use std::path::Path;

impl Run {
    /// Opens the run in `directory`: reads names, ends and plans, checks every process file and
    /// decodes every stream once (in parallel) for its open calls. Events are decoded again whenever
    /// they are asked for; nothing is kept of them but the mapped files.
    ///
    /// # Errors
    /// Where there is no run, or one of another version. A damaged run opens, with notes.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        Err(Error::NotARun {
            path: directory.to_owned(),
            found: "a version of this reader that cannot read yet".to_owned(),
        })
    }
}
