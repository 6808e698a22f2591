//! Jump tables: what computed jumps of a range lead to.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lockstep_binary::{CodeRange, Image};
use lockstep_format::bytes::{u32_at, u64_at};

use crate::parallel;
use crate::sorted::Sorted;
use crate::survey::{Branch, BranchKind};

/// Addresses of the file's bytes that code mentions: a bit for each byte. Whoever decodes adds to them.
pub(crate) struct Mentions {
    /// Where each segment begins, and its bits.
    segments: Vec<(u64, Vec<AtomicU64>)>,
}

impl Mentions {
    pub(crate) fn new(image: &Image<'_>) -> Self {
        let segments = image.segments().iter().map(|segment| {
            let words = segment.bytes.len().div_ceil(64);
            let words = std::iter::repeat_with(AtomicU64::default).take(words);
            (segment.address, words.collect())
        });
        Self {
            segments: segments.collect(),
        }
    }

    fn place(&self, address: u64) -> Option<(&AtomicU64, u64)> {
        let mut found = self.segments.iter().rev();
        let (start, words) = found.find(|(start, _)| *start <= address)?;
        let at = address - start;
        Some((words.get((at / 64) as usize)?, 1 << (at % 64)))
    }

    /// Most addresses are mentioned often.
    pub(crate) fn add(&self, address: u64) {
        if let Some((word, bit)) = self.place(address)
            && word.load(Ordering::Relaxed) & bit == 0
        {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn has(&self, address: u64) -> bool {
        let place = self.place(address);
        place.is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }
}

/// Words read of all tables together: no real image comes near, and hostile files get no further.
const MOST_TABLE_WORDS: usize = 1 << 22;

/// Whether the first word at an address leads to code.
pub(crate) fn may_be_table(image: &Image<'_>, address: u64) -> bool {
    let Some(bytes) = image.bytes_from(address) else {
        return false;
    };
    let is_code = |target: Option<u64>| target.is_some_and(|target| image.is_code(target));
    is_code(narrow(address, bytes)) || is_code(u64_at(bytes, 0))
}

/// What a word leads to that is an offset from the start of its table.
fn narrow(table: u64, word: &[u8]) -> Option<u64> {
    let offset = u32_at(word, 0)? as i32;
    Some(table.wrapping_add_signed(i64::from(offset)))
}

/// The rows of tables as branches, and where tables of addresses lie (start, end).
type Rows = (Vec<Branch>, Vec<(u64, u64)>);

/// Reads the tables at candidates: an address, and the range whose computed jumps may use it.
///
/// Compilers write tables of 32-bit offsets from the table's start (position independent) or of
/// 64-bit addresses; each candidate is read as both. A table has a row that leads into its
/// function; it ends at the first word that leads to no code (other rows lead to the function's
/// `.cold` part), and at the latest where another mentioned address begins.
pub(crate) fn read<'a>(
    image: &Image<'a>,
    ranges: &Sorted<CodeRange<'a>>,
    mentions: &Mentions,
    mut candidates: Vec<(u64, u32)>,
) -> Rows {
    candidates.sort_unstable();
    candidates.dedup();
    let reader = Reader {
        image,
        ranges,
        mentions,
        left: AtomicUsize::new(MOST_TABLE_WORDS),
    };
    let read = |indices: Range<usize>| reader.read(&candidates[indices]);
    let pieces = parallel::by_pieces(candidates.len(), read);
    let all: Option<Vec<Rows>> = pieces.into_iter().collect();
    // Which words are left for which table must not depend on who comes first.
    let all = all.unwrap_or_else(|| reader.read_one_by_one(&candidates));
    let (branches, places): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    (branches.concat(), places.concat())
}

/// Reads tables.
struct Reader<'r, 'a> {
    image: &'r Image<'a>,
    ranges: &'r Sorted<CodeRange<'a>>,
    mentions: &'r Mentions,
    /// Words that may still be read.
    left: AtomicUsize,
}

impl Reader<'_, '_> {
    /// All of some tables; `None` where too much was read, by whoever.
    fn read(&self, candidates: &[(u64, u32)]) -> Option<Rows> {
        let mut rows = Rows::default();
        for candidate in candidates {
            let words = self.read_one(*candidate, MOST_TABLE_WORDS, &mut rows);
            let take = |left: usize| left.checked_sub(words);
            let order = Ordering::Relaxed;
            self.left.fetch_update(order, order, take).ok()?;
        }
        Some(rows)
    }

    /// The tables in their order, as long as there are words left.
    fn read_one_by_one(&self, candidates: &[(u64, u32)]) -> Vec<Rows> {
        let mut rows = Rows::default();
        let mut left = MOST_TABLE_WORDS;
        for candidate in candidates {
            left -= self.read_one(*candidate, left, &mut rows);
        }
        vec![rows]
    }

    /// Adds the rows of one table, up to so many words; how many were read.
    fn read_one(&self, (table, index): (u64, u32), most: usize, found: &mut Rows) -> usize {
        let range = &self.ranges[index as usize];
        let Some(bytes) = self.image.bytes_from(table) else {
            return 0;
        };
        let narrow = self.rows((table, bytes), 4, |word| narrow(table, word), most);
        let wide = self.rows((table, bytes), 8, |word| u64_at(word, 0), most);
        let is_own = |targets: &[u64]| {
            // A row that leads to the entry alone may be one of a table of functions.
            let own = range.address + 1..range.end();
            targets.iter().any(|target| own.contains(target))
        };
        if is_own(&wide) {
            let end = table + 8 * wide.len() as u64;
            found.1.push((table, end));
        }
        // Elsewhere only the starts of parts count: what is read beyond a table's end is noise.
        let counts = |target: &&u64| {
            (range.address..range.end()).contains(*target) || self.ranges.at(**target).is_some()
        };
        for targets in [&narrow, &wide].into_iter().filter(|it| is_own(it)) {
            let rows = targets.iter().filter(counts).map(|target| Branch {
                from: table,
                target: *target,
                range: index,
                length: 0,
                field: 0,
                kind: BranchKind::Table,
            });
            found.0.extend(rows);
        }
        narrow.len().max(wide.len())
    }

    /// The targets in a table of words of this size, up to the first that leads to no code, or where another address begins.
    fn rows(
        &self,
        (table, bytes): (u64, &[u8]),
        size: usize,
        target: impl Fn(&[u8]) -> Option<u64>,
        most: usize,
    ) -> Vec<u64> {
        let is_mentioned = |address: u64| address != table && self.mentions.has(address);
        let mut start = table;
        let words = bytes.chunks_exact(size).take_while(|_| {
            let own = start..start + size as u64;
            start = own.end;
            !own.into_iter().any(is_mentioned)
        });
        let code = words.map_while(target);
        let code = code.take_while(|target| self.image.is_code(*target));
        code.take(most).collect()
    }
}
