//! Where process files lie while they are captured on their node (`record --buffer`).

/// In the run: one file a recorder, which holds the path of a directory on its node.
pub const FOLDER: &str = "buffers";

/// What the probe is told: the host's name as it stands in file names, and behind it the directory's
/// absolute path.
pub const VARIABLE: &str = "LOCKSTEP_BUFFER";

/// Where a process on `host` shall make its file, if not in the run.
#[must_use]
pub fn place<'a>(value: &'a [u8], host: &[u8]) -> Option<&'a [u8]> {
    value
        .strip_prefix(host)
        .filter(|path| path.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_of_one_host() {
        assert_eq!(
            place(b"node1/dev/shm/x", b"node1"),
            Some(&b"/dev/shm/x"[..])
        );
        assert_eq!(place(b"node12/dev/shm/x", b"node1"), None);
        assert_eq!(place(b"node1", b"node1"), None);
    }
}
