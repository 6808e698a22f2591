//! Finds the command's program as a shell would, and says why it cannot be recorded before it runs.

use crate::error::Error;
use lockstep_binary::{Image, Unsuitable, check_program};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Scripts that are run by scripts that are run by scripts... as deep as the kernel goes.
const DEEPEST_SCRIPT: usize = 5;

/// A program that exists and may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// What `execve` is given.
    pub path: PathBuf,
    /// The ELF file that runs: the program, or a script's interpreter; with symbolic links resolved,
    /// as the kernel names it.
    pub image: PathBuf,
    /// Whether it is linked against the library of gcc's address sanitizer.
    pub has_sanitizer: bool,
}

/// Finds `name`: along `PATH` unless it has a slash.
pub(crate) fn find(name: &OsStr) -> Result<PathBuf, Error> {
    let shown = name.display();
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match path.metadata() {
            Ok(_) => Ok(path),
            Err(error) => Err(Error::new(127, format!("{shown}: {}", plain(&error)))),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let mut forbidden = None;
    for directory in std::env::split_paths(&search) {
        let path = directory.join(name);
        match path.metadata() {
            Ok(found) if found.is_file() => {
                if rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_ok() {
                    return Ok(path);
                }
                forbidden.get_or_insert(path);
            }
            _ => {}
        }
    }
    match forbidden {
        Some(path) => Ok(path),
        None => Err(Error::new(127, format!("{shown}: no such program in PATH"))),
    }
}

/// Checks that the file at `path` is a program that the probe can be loaded into.
pub(crate) fn check(path: &Path) -> Result<Program, Error> {
    let mut image = path.to_owned();
    for _ in 0..DEEPEST_SCRIPT {
        check_mode(&image)?;
        let bytes = read(&image)?;
        match check_program(&bytes) {
            Ok(_) => {
                let needed = |image: &Image<'_>| {
                    let mut needed = image.needed().iter();
                    needed.any(|name| name.starts_with(b"libasan.so"))
                };
                return Ok(Program {
                    path: path.to_owned(),
                    has_sanitizer: Image::parse(&bytes).as_ref().is_ok_and(needed),
                    image: image.canonicalize().unwrap_or(image),
                });
            }
            Err(Unsuitable::Script { interpreter }) => {
                let next = PathBuf::from(&interpreter);
                if let Err(error) = next.metadata() {
                    return Err(Error::new(
                        126,
                        format!(
                            "{}: its interpreter {interpreter}: {}",
                            image.display(),
                            plain(&error)
                        ),
                    ));
                }
                image = next;
            }
            // The kernel does not run these; a shell might read them as a script.
            Err(reason @ (Unsuitable::NotElf { .. } | Unsuitable::NotExecutable { .. })) => {
                return Err(Error::new(
                    126,
                    format!("{}: expected a program, found {reason}", image.display()),
                ));
            }
            Err(reason) => {
                return Err(Error::untraceable(format!(
                    "{}: cannot be recorded: {reason}",
                    image.display()
                )));
            }
        }
    }
    Err(Error::new(
        126,
        format!(
            "{}: a script run by a script run by a script",
            path.display()
        ),
    ))
}

fn check_mode(path: &Path) -> Result<(), Error> {
    let shown = path.display();
    let metadata = path
        .metadata()
        .map_err(|error| Error::new(126, format!("{shown}: {}", plain(&error))))?;
    if !metadata.is_file() {
        return Err(Error::new(
            126,
            format!("{shown}: expected a program, found no regular file"),
        ));
    }
    if rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_err() {
        return Err(Error::new(
            126,
            format!(
                "{shown}: not executable (mode {:o})",
                metadata.mode() & 0o7777
            ),
        ));
    }
    // The dynamic loader preloads nothing into a program that runs with other rights than its user's.
    let mode = metadata.permissions().mode();
    for (bit, word, changes) in [
        (
            0o4000,
            "setuid",
            metadata.uid() != rustix::process::geteuid().as_raw(),
        ),
        (
            0o2000,
            "setgid",
            metadata.gid() != rustix::process::getegid().as_raw(),
        ),
    ] {
        if mode & bit != 0 && changes {
            return Err(Error::untraceable(format!(
                "{shown}: cannot be recorded: {word}, so that the dynamic loader preloads nothing into it"
            )));
        }
    }
    // Root has them all already.
    if !rustix::process::geteuid().is_root() && grants_capabilities(path) {
        return Err(Error::untraceable(format!(
            "{shown}: cannot be recorded: it has file capabilities, so that the dynamic loader preloads nothing into it"
        )));
    }
    Ok(())
}

/// Whether the file grants capabilities (`setcap`): a word of flags, then the permitted and the inheritable ones,
/// 32 at a time.
fn grants_capabilities(path: &Path) -> bool {
    let mut value = [0; 64];
    let Ok(size) = rustix::fs::getxattr(path, c"security.capability", &mut value) else {
        return false;
    };
    let permitted = value.get(4..size).unwrap_or_default().chunks(8);
    permitted
        .take(2)
        .any(|words| words.iter().take(4).any(|byte| *byte != 0))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    // Executable and not readable: its plan cannot be made.
    std::fs::read(path).map_err(|error| {
        Error::untraceable(format!(
            "{}: cannot be recorded: it cannot be read ({})",
            path.display(),
            plain(&error)
        ))
    })
}

/// An operating system's error without the number that Rust puts behind it.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_missing_program_is_127_and_a_plain_file_126() {
        assert_eq!(
            find(OsStr::new("no-such-program-here"))
                .unwrap_err()
                .status(),
            127
        );
        assert_eq!(
            find(OsStr::new("./no/such/file")).unwrap_err().status(),
            127
        );
        assert_eq!(check(Path::new("/etc/passwd")).unwrap_err().status(), 126);
        assert_eq!(check(Path::new("/etc")).unwrap_err().status(), 126);
    }

    #[test]
    fn a_program_in_path_is_found_and_fits() {
        let path = find(OsStr::new("sh")).unwrap();
        let program = check(&path).unwrap();
        assert_eq!(program.path, path);
        assert!(program.image.is_absolute());
    }
}
