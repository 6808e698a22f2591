//! Packs as they lie in a run's directories: `processes/*.pack`, `ends/*.pack`.
//!
//! What is damaged is said and passed over. A process file whose member block does not hold is found by its own first
//! bytes, and named from what is in it.

use crate::container::Finding;
use crate::ends::spelt;
use crate::map::Mapped;
use lockstep_format::bytes::array;
use lockstep_format::check::crc32c;
use lockstep_format::pack::{self, BLOCK, Header, NoHeader};
use lockstep_format::process;
use std::ops::Range;
use std::sync::Arc;

/// A pack, taken apart.
#[derive(Debug)]
pub(crate) struct Pack {
    map: Arc<Mapped>,
    pub members: Vec<Member>,
    pub findings: Vec<Finding>,
}

/// A file in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// `None` where it is lost; then there is no check, either.
    pub name: Option<String>,
    /// As much as the pack has of it.
    content: Range<usize>,
    /// Length and CRC-32C that it should have.
    expected: Option<(u64, u32)>,
}

impl Pack {
    /// Takes it apart.
    ///
    /// # Errors
    /// Where it is none, or one of another version.
    pub fn read(map: Mapped) -> Result<Self, Finding> {
        let mut pack = Self {
            map: Arc::new(map),
            members: Vec::new(),
            findings: Vec::new(),
        };
        let map = Arc::clone(&pack.map);
        let bytes = map.bytes();
        let header = array::<BLOCK>(bytes, 0);
        let header = header.as_ref().map(Header::read);
        match header {
            Some(Err(NoHeader::Version(version))) => {
                return Err(finding(
                    pack::header::VERSION,
                    format!(
                        "expected a pack of version {}, found version {version}",
                        pack::VERSION
                    ),
                ));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) => pack
                .findings
                .push(finding(0, "expected the header of a pack".to_owned())),
            None => {
                let text = format!("expected a pack, found {} bytes", bytes.len());
                return Err(finding(0, text));
            }
        }
        pack.walk(bytes);
        if let Some(Ok(header)) = header {
            let found = (pack.members.len() as u64, bytes.len() as u64);
            if found != (header.members.into(), header.length) {
                pack.findings.push(finding(
                    0,
                    format!(
                        "expected {} files in {} bytes, found {} in {}",
                        header.members, header.length, found.0, found.1
                    ),
                ));
            }
        }
        Ok(pack)
    }

    fn walk(&mut self, bytes: &[u8]) {
        // Where blocks began of which none is a member's, and how many they were.
        let mut lost: Option<(usize, usize)> = None;
        let (members, findings) = (&mut self.members, &mut self.findings);
        let mut close = |lost: &mut Option<(usize, usize)>, members: &mut Vec<Member>| {
            let Some((start, blocks)) = lost.take() else {
                return;
            };
            findings.push(finding(
                start,
                format!("expected a file in the pack, found {blocks} blocks that begin none"),
            ));
            let content = start + BLOCK..bytes.len().min(start + blocks * BLOCK);
            let is_process = bytes
                .get(content.clone())
                .is_some_and(|content| content.starts_with(&process::MAGIC));
            if is_process {
                members.push(Member {
                    name: None,
                    content,
                    expected: None,
                });
            }
        };
        let block = |at: u64| array::<BLOCK>(bytes, usize::try_from(at).ok()?);
        pack::walk(bytes.len() as u64, block, |at, member| {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let Some(member) = member else {
                let (_, blocks) = lost.get_or_insert((at, 0));
                *blocks += 1;
                return;
            };
            close(&mut lost, members);
            let start = at + BLOCK;
            let length = usize::try_from(member.length).unwrap_or(usize::MAX);
            members.push(Member {
                name: Some(member.name.to_owned()),
                content: start..bytes.len().min(start.saturating_add(length)).max(start),
                expected: Some((member.length, member.check)),
            });
        });
        close(&mut lost, members);
    }

    /// The member's content.
    pub fn part(&self, member: &Member) -> Mapped {
        Mapped::Part(Arc::clone(&self.map), member.content.clone())
    }

    /// What of a member is not as it was put there.
    pub fn damage(&self, member: &Member) -> Option<Finding> {
        let (length, check) = member.expected?;
        let content = self.map.bytes().get(member.content.clone()).unwrap_or(&[]);
        if content.len() as u64 != length {
            let text = format!(
                "expected a file of {length} bytes in its pack, found {}",
                content.len()
            );
            return Some(finding(0, text));
        }
        let found = crc32c(content);
        (found != check).then(|| {
            let text = format!("expected a file with check {check:08x}, found {found:08x}");
            finding(0, text)
        })
    }
}

fn finding(at: usize, text: String) -> Finding {
    Finding {
        at: at as u64,
        text,
    }
}

/// The name that a process file had, as the probe makes it.
pub(crate) fn name_of(file: &crate::container::ProcessFile) -> String {
    let host = spelt(file.facts.host.as_deref().unwrap_or("unknown"));
    format!(
        "{host}-{}-{}-{}{}",
        file.pid,
        file.start_time,
        file.exec_count,
        process::SUFFIX
    )
}
