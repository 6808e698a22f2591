//! How large a run may become: what the user says, or a share of the room that there is.

use std::path::Path;

/// How many bytes the process files of a run may have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// That many.
    pub bytes: u64,
    /// What is kept when they are full.
    pub keep: Keep,
    /// Whether the user asked for it. Where not, a process that cannot keep it records without.
    pub is_asked: bool,
}

/// Which events of a bounded run are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// What came first; recording ends when the files are full.
    #[default]
    First,
    /// What came last; the oldest is dropped for it.
    Last,
}

/// What is said of a run's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A tenth of the room that is free where process files are written.
    Share(Keep),
    /// Whatever the disk holds.
    Unbounded,
    /// This many bytes.
    Most(u64, Keep),
}

impl Bound {
    /// A process file begins with that much; below some of them nothing can be recorded.
    pub const LEAST: u64 = 1 << 20;
    /// One part in so many of the free room is for a run.
    pub const SHARE: u64 = 10;

    /// The bound of a run whose process files are written into one of `places`; none where nobody knows how much room there is.
    pub(crate) fn new<'a>(size: Size, places: impl IntoIterator<Item = &'a Path>) -> Option<Self> {
        match size {
            Size::Unbounded => None,
            Size::Most(bytes, keep) => Some(Self {
                bytes,
                keep,
                is_asked: true,
            }),
            Size::Share(keep) => {
                let free = places.into_iter().filter_map(free).min()?;
                Some(Self {
                    bytes: (free / Self::SHARE).max(Self::LEAST),
                    keep,
                    is_asked: false,
                })
            }
        }
    }

    /// What the probe is told.
    pub(crate) fn variable(&self) -> String {
        let about = match self.is_asked {
            true => "",
            false => "~",
        };
        format!("{about}{}", self.bytes)
    }
}

/// Bytes that this user may still write there; `None` where the file system does not say.
fn free(place: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(place).ok()?;
    let bytes = found.f_bavail.checked_mul(found.f_frsize)?;
    (found.f_blocks > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_what_is_free_unless_something_is_said() {
        let here = std::env::temp_dir();
        let of = |size, places: &[&Path]| Bound::new(size, places.iter().copied());
        let share =
            of(Size::Share(Keep::First), &[&here]).map(|bound| (bound.bytes, bound.variable()));
        assert!(
            share.is_some_and(|(bytes, text)| bytes >= Bound::LEAST && text == format!("~{bytes}"))
        );
        assert_eq!(
            of(
                Size::Share(Keep::First),
                &[Path::new("/proc"), Path::new("/nothing")]
            ),
            None
        );
        assert_eq!(of(Size::Unbounded, &[&here]), None);
        let asked = of(Size::Most(5 << 20, Keep::Last), &[]).map(|bound| bound.variable());
        assert_eq!(asked.as_deref(), Some("5242880"));
    }
}
