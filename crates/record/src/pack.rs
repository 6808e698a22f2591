//! Writes and reads packs (`lockstep_format::pack`): one file a node in the place of one a process.

use crate::own;
use lockstep_format::check;
use lockstep_format::pack::{BLOCK, Block, Header, Member, walk};
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file that is to be packed: its name there, where it is, and how much of it.
pub(crate) struct Input {
    pub name: String,
    pub path: PathBuf,
    pub length: u64,
}

/// Puts files into a pack: it is there as a whole, on the disk, or not at all. A file that is gone is left out.
pub(crate) fn write(inputs: &[Input], pack: &Path) -> io::Result<()> {
    let folder = pack.parent().unwrap_or(Path::new("."));
    let name = pack.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}"));
    let written = write_draft(inputs, &draft)
        .and_then(|()| fs::rename(&draft, pack))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn write_draft(inputs: &[Input], draft: &Path) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, own::create_draft(draft)?);
    // What is said of a content stands before it, and is known behind it.
    let mut blocks = Vec::new();
    let mut header = Header {
        members: 0,
        length: BLOCK as u64,
    };
    to.write_all(&[0; BLOCK])?;
    for input in inputs {
        let from = match own::open(&input.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        to.write_all(&[0; BLOCK])?;
        let member = Member {
            name: &input.name,
            length: input.length,
            check: copy(&from, input.length, &mut to)?,
        };
        let block = member.block().ok_or(io::ErrorKind::InvalidFilename)?;
        blocks.push((header.length, block));
        let room = Member::room(input.length);
        let padding = room - BLOCK as u64 - input.length;
        to.write_all([0; BLOCK].get(..padding as usize).unwrap_or(&[]))?;
        header.members += 1;
        header.length += room;
    }
    blocks.push((0, header.block()));
    let file = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    for (at, block) in blocks {
        file.write_all_at(&block, at)?;
    }
    file.sync_all()
}

/// Copies a file's first `length` bytes; the CRC-32C of what was copied.
fn copy(from: &File, length: u64, to: &mut impl Write) -> io::Result<u32> {
    let mut check = 0;
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    while at < length {
        let wanted = (length - at).min(buffer.len() as u64) as usize;
        let bytes = buffer.get_mut(..wanted).unwrap_or(&mut []);
        from.read_exact_at(bytes, at)?;
        check = check::extend(check, bytes);
        to.write_all(bytes)?;
        at += wanted as u64;
    }
    Ok(check)
}

/// Names of the files in a pack, and where their content is; what is damaged is left out.
pub(crate) fn members(pack: &Path) -> Vec<(String, Range<u64>)> {
    let mut found = Vec::new();
    let Ok(mut file) = own::open(pack) else {
        return found;
    };
    let size = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let block = |at| {
        let mut block: Block = [0; BLOCK];
        file.read_exact_at(&mut block, at).ok()?;
        Some(block)
    };
    walk(size, block, |at, member| {
        if let Some(member) = member {
            let start = at + BLOCK as u64;
            let end = start.saturating_add(member.length).min(size);
            found.push((member.name.to_owned(), start..end.max(start)));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let name = format!("lockstep-pack-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        let input = |name: &str, length| Input {
            name: name.to_owned(),
            path: folder.join(name),
            length,
        };
        let contents = [
            ("a", vec![1; 700]),
            ("b", Vec::new()),
            ("c", vec![2; 70_000]),
        ];
        for (name, content) in &contents {
            fs::write(folder.join(name), content).unwrap();
        }
        let inputs = [
            input("a", 600),
            input("b", 0),
            input("gone", 9),
            input("c", 70_000),
        ];
        let pack = folder.join("all.pack");
        write(&inputs, &pack).unwrap();
        let bytes = fs::read(&pack).unwrap();
        let found = members(&pack);
        let found = found.iter().map(|(name, range)| {
            let content = &bytes[range.start as usize..range.end as usize];
            (name.as_str(), content)
        });
        let expected = [
            ("a", &contents[0].1[..600]),
            ("b", &[]),
            ("c", &contents[2].1[..]),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);

        // A file that is shorter than it should be: nothing is left of the attempt.
        assert!(write(&[input("a", 701)], &folder.join("short.pack")).is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
        fs::remove_dir_all(&folder).unwrap();
    }
}
