//! Files of a run and of the cache: nobody else's file, link or pipe is taken for one of them.
//!
//! A file with one writer is made anew, and never through a link. Another is opened as it is: no link is followed, no pipe is
//! waited for, and what steers a program (a plan, a marker, a list of plans) must belong to this user or to root and be
//! writable by nobody else.

use rustix::fs::{FileType, Mode, OFlags, fstat, open as open_at};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bits of a mode that let others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Where a file system gives what this user makes to another one (a network file system's `root_squash`, say): to whom.
static SQUASHED: AtomicU32 = AtomicU32::new(NOBODY);
const NOBODY: u32 = u32::MAX;

/// Whether files of this user belong to `user`, or root's.
pub(crate) fn is_own(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw()
        || user == 0
        || user != NOBODY && user == SQUASHED.load(Ordering::Relaxed)
}

/// Whether nobody but this user (and root) can have written it.
pub(crate) fn is_trusted(user: u32, mode: u32) -> bool {
    is_own(user) && mode & WRITABLE_BY_OTHERS == 0
}

/// Makes a file that is not there yet; a link in its place is an error.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(open_at(path, flags, Mode::from_raw_mode(0o644))?);
    if let Ok(found) = fstat(&file)
        && !is_own(found.st_uid)
    {
        SQUASHED.store(found.st_uid, Ordering::Relaxed);
    }
    Ok(file)
}

/// The same of a name that nobody else uses: what somebody who was killed left under it goes.
pub(crate) fn create_draft(path: &Path) -> io::Result<File> {
    match create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create(path)
        }
        made => made,
    }
}

/// Makes a directory with exactly these permissions, whatever the umask is.
pub(crate) fn create_directory(path: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new().mode(mode & 0o700).create(path)?;
    match mode & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
    }
}

/// Opens a regular file, whoever it belongs to.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDONLY).map(|(file, _)| file)
}

/// Opens a file that nobody else can have written.
pub(crate) fn open_trusted(path: &Path) -> io::Result<File> {
    trusted(path, OFlags::RDONLY)
}

/// Opens a file to which several processes of this user append, made if it is not there.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    trusted(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
}

fn trusted(path: &Path, flags: OFlags) -> io::Result<File> {
    let (file, found) = opened(path, flags)?;
    if !is_trusted(found.st_uid, found.st_mode) {
        let reason = format!(
            "it belongs to user {}, or others may write it",
            found.st_uid
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(file)
}

fn opened(path: &Path, flags: OFlags) -> io::Result<(File, rustix::fs::Stat)> {
    // Non-blocking: a pipe in the place of a file must not hold us.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open_at(path, flags, Mode::from_raw_mode(0o644))?;
    let found = fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("expected a regular file"));
    }
    Ok((File::from(file), found))
}

/// The content of a file that nobody else can have written.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_trusted(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts a file in place as a whole or not at all; nothing of it is left where the disk is full.
///
/// # Errors
/// Where it cannot be written.
pub fn put(draft: &Path, place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_draft(draft)?;
    file.write_all(bytes)
        .and_then(|()| fs::rename(draft, place))
        .inspect_err(|_| {
            let _ = fs::remove_file(draft);
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_pipes_and_what_others_may_write_are_refused() {
        let root = std::env::temp_dir().join(format!("lockstep-own-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let (file, link, pipe) = (root.join("file"), root.join("link"), root.join("pipe"));
        create(&file).unwrap().write_all(b"mine").unwrap();
        assert_eq!(read(&file).unwrap(), b"mine");
        assert!(create(&file).is_err());
        symlink(&file, &link).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        for path in [&link, &pipe] {
            assert!(open(path).is_err() && append(path).is_err() && create(path).is_err());
        }
        // What stands in the way of a draft goes, and nothing else.
        put(&link, &root.join("placed"), b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"mine");
        assert_eq!(fs::read(root.join("placed")).unwrap(), b"new");
        for mode in [0o664, 0o646] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert!(read(&file).is_err() && append(&file).is_err() && open(&file).is_ok());
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
