//! Where the elements of a datatype lie: the bytes that a buffer of it takes (MPI calls this the type map).
//!
//! ```text
//! MPI_Type_vector(3, 1, 4, MPI_INT)     4 bytes at 0, at 16 and at 32; the next one begins at 36
//! ```
//! *Guarantees*: what is not known has no layout here: arrays of which not all was recorded, structures of what was resized, pairs of
//! unlike sizes, and more than [`MOST_BLOCKS`] blocks. *Costs*: O(blocks) where a datatype is made, and where spans of two buffers
//! meet that are not of one piece.

use crate::communicators::Resolved;
use crate::datatypes::whole;
use lockstep_api::mpi::constants::is_order_of_c;
use lockstep_api::mpi::predefined::Datatype;
use lockstep_api::mpi::{Constructor, Kind};
use lockstep_trace::{Argument, Handle, Value};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Blocks of a layout, or of a buffer, that are looked at.
const MOST_BLOCKS: usize = 4096;

/// The bytes of one of a datatype, from where its buffer begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// None is empty, none touch.
    blocks: Arc<[Range<i64>]>,
    /// From the lower to the upper bound.
    lower: i64,
    upper: i64,
    /// What a structure of it is a multiple of, as compilers lay it out; `None` where the bounds were given.
    alignment: Option<i64>,
}

impl Layout {
    /// A block of bytes.
    pub fn piece(bytes: i64) -> Self {
        let all = (bytes > 0).then_some(0..bytes);
        Self {
            blocks: all.into_iter().collect(),
            lower: 0,
            upper: bytes.max(0),
            alignment: Some(bytes.max(1)),
        }
    }

    /// That of a datatype of the standard.
    fn named(name: &str) -> Option<Self> {
        let datatype = Datatype::named(name)?;
        Some(Self {
            alignment: datatype.alignment(),
            ..Self::piece(datatype.bytes()?)
        })
    }

    fn extent(&self) -> Option<i64> {
        self.upper.checked_sub(self.lower)
    }

    /// Copies of it, each displaced by so many bytes.
    fn at(&self, places: impl IntoIterator<Item = Option<i64>>) -> Option<Self> {
        if self.blocks.is_empty() {
            return Some(Self::piece(0));
        }
        let places = places.into_iter().map(|place| Some((self, place?)));
        let all = Self::chain(places)?;
        Some(Self {
            alignment: self.alignment,
            ..all
        })
    }

    /// Several, each displaced by so many bytes.
    fn chain<'a>(all: impl IntoIterator<Item = Option<(&'a Self, i64)>>) -> Option<Self> {
        let mut blocks: Vec<Range<i64>> = Vec::new();
        let mut bounds: Option<(i64, i64)> = None;
        let mut alignment = Some(1);
        for it in all {
            let (it, place) = it?;
            for block in &*it.blocks {
                let (start, end) = (
                    place.checked_add(block.start)?,
                    place.checked_add(block.end)?,
                );
                match blocks.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => blocks.push(start..end),
                }
                if blocks.len() > MOST_BLOCKS {
                    return None;
                }
            }
            let own = (place.checked_add(it.lower)?, place.checked_add(it.upper)?);
            alignment = alignment.zip(it.alignment).map(|(one, two)| one.max(two));
            bounds = Some(bounds.map_or(own, |it| (it.0.min(own.0), it.1.max(own.1))));
        }
        let (lower, upper) = bounds.unwrap_or_default();
        Some(Self {
            blocks: blocks.into(),
            lower,
            upper,
            alignment,
        })
    }

    /// So many, the begins of two neighbours so many bytes apart.
    fn every(&self, count: i64, stride: i64) -> Option<Self> {
        // What is of one piece stays so, however long, and is not put together copy by copy.
        if let [only] = &*self.blocks
            && only.end - only.start == stride
            && count > 0
        {
            let more = stride.checked_mul(count - 1)?;
            let piece = only.start..only.end.checked_add(more)?;
            return Some(Self {
                blocks: [piece].into(),
                lower: self.lower,
                upper: self.upper.checked_add(more)?,
                alignment: self.alignment,
            });
        }
        self.at((0..count).map(|index| stride.checked_mul(index)))
    }

    /// From its first byte to behind its last; none where it is empty.
    pub fn span(&self) -> Option<Range<i64>> {
        let start = self.blocks.iter().map(|it| it.start).min()?;
        let end = self.blocks.iter().map(|it| it.end).max()?;
        Some(start..end)
    }

    /// Whether its bytes are of one piece.
    pub fn is_one_piece(&self) -> bool {
        self.blocks.len() <= 1
    }

    /// So many, one behind the other.
    pub fn times(&self, count: i64) -> Option<Self> {
        self.every(count, self.extent()?)
    }

    /// The bytes that it takes of memory, from an address on.
    pub fn footprint(&self, address: u64) -> Option<Footprint> {
        let base = i64::try_from(address).ok()?;
        let mut blocks = self.at([Some(base)])?.blocks.to_vec();
        blocks.sort_unstable_by_key(|it| it.start);
        let start = blocks.first()?.start;
        let end = blocks.iter().map(|it| it.end).max()?;
        Some(Footprint {
            span: start..end,
            blocks,
        })
    }
}

/// Bytes of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// From the first to behind the last.
    pub span: Range<i64>,
    /// By their begins.
    blocks: Vec<Range<i64>>,
}

impl Footprint {
    /// Whether a byte is in both. O(blocks).
    pub fn meets(&self, other: &Self) -> bool {
        let (mut ours, mut theirs) = (self.blocks.iter(), other.blocks.iter());
        let (mut our, mut their) = (ours.next(), theirs.next());
        while let (Some(one), Some(two)) = (our, their) {
            if one.start < two.end && two.start < one.end {
                return true;
            }
            match one.end <= two.start {
                true => our = ours.next(),
                false => their = theirs.next(),
            }
        }
        false
    }
}

/// The layouts of a thread's datatypes.
#[derive(Debug, Clone, Default)]
pub struct Layouts(FxHashMap<i64, Layout>);

impl Layouts {
    /// That of one of a datatype.
    pub fn of(&self, handle: &Handle) -> Option<Layout> {
        match handle.name.as_deref() {
            Some(name) => Layout::named(name),
            None => self.0.get(&handle.raw).cloned(),
        }
    }

    /// That of what a call would make.
    pub fn recipe(&self, constructor: Constructor, event: &Resolved) -> Option<Layout> {
        if constructor == Constructor::Struct {
            return self.structure(event);
        }
        let each = self.of(event.handle("oldtype")?)?;
        let extent = each.extent()?;
        let count = event.number("count");
        let block = || each.times(event.number("blocklength")?);
        let scaled = |place: &i64| place.checked_mul(extent);
        let blocks = |places: Vec<Option<i64>>| {
            let lengths = whole(event, "blocklengths")?;
            let lengths: Option<Vec<Layout>> = lengths.iter().map(|it| each.times(*it)).collect();
            let lengths = lengths.filter(|it| it.len() == places.len())?;
            Layout::chain(
                lengths
                    .iter()
                    .zip(places)
                    .map(|(it, place)| Some((it, place?))),
            )
        };
        let places = || whole(event, "displacements").map(<[i64]>::iter);
        let stride = || event.number("stride");
        match constructor {
            Constructor::Contiguous => each.times(count?),
            Constructor::Vector => block()?.every(count?, scaled(&stride()?)?),
            Constructor::HVector => block()?.every(count?, stride()?),
            Constructor::IndexedBlock => block()?.at(places()?.map(scaled)),
            Constructor::HIndexedBlock => block()?.at(places()?.copied().map(Some)),
            Constructor::Indexed => blocks(places()?.map(scaled).collect()),
            Constructor::HIndexed => blocks(places()?.copied().map(Some).collect()),
            Constructor::Resized => {
                let lower = event.number("lb")?;
                let upper = lower.checked_add(event.number("extent")?)?;
                let alignment = None;
                Some(Layout {
                    lower,
                    upper,
                    alignment,
                    ..each
                })
            }
            Constructor::Subarray => subarray(&each, event),
            Constructor::Copy => Some(each),
            Constructor::Struct | Constructor::Darray | Constructor::Other => None,
        }
    }

    fn structure(&self, event: &Resolved) -> Option<Layout> {
        let (lengths, places) = (
            whole(event, "blocklengths")?,
            whole(event, "displacements")?,
        );
        let (Value::Handles(count, types), _) = event.get("types")? else {
            return None;
        };
        let is_whole = usize::try_from(*count) == Ok(types.len());
        if !is_whole || lengths.len() != types.len() || places.len() != types.len() {
            return None;
        }
        let parts = types
            .iter()
            .zip(lengths)
            .map(|(it, length)| self.of(it)?.times(*length));
        let parts: Vec<Layout> = parts.collect::<Option<_>>()?;
        let mut all = Layout::chain(
            parts
                .iter()
                .zip(places)
                .map(|(it, place)| Some((it, *place))),
        )?;
        // As compilers end it (MPI 4.1, 5.1.6).
        let alignment = all.alignment?;
        let over = all.extent()?.rem_euclid(alignment);
        if over != 0 {
            all.upper = all.upper.checked_add(alignment - over)?;
        }
        Some(all)
    }

    /// It was made, or something under the same handle.
    pub fn made(&mut self, layout: Option<Layout>, event: &Resolved) {
        let given = |it: &&Argument| it.kind == Kind::NewDatatype;
        let arguments = event.annotated.arguments.as_deref().unwrap_or_default();
        if let Some(Value::Handle(handle)) = arguments.iter().find(given).map(|it| &it.value) {
            self.0.remove(&handle.raw);
            self.0.extend(layout.map(|it| (handle.raw, it)));
        }
    }
}

fn subarray(each: &Layout, event: &Resolved) -> Option<Layout> {
    let list = |name| whole(event, name).map(<[i64]>::to_vec);
    let (mut sizes, mut parts) = (list("sizes")?, list("subsizes")?);
    let mut starts = list("starts")?;
    if sizes.len() != parts.len() || sizes.len() != starts.len() {
        return None;
    }
    // The first runs fastest from here on.
    if is_order_of_c(event.number("order")?) {
        for list in [&mut sizes, &mut parts, &mut starts] {
            list.reverse();
        }
    }
    let extent = each.extent()?;
    let (mut all, mut stride, mut start) = (each.clone(), extent, 0i64);
    for ((size, part), first) in sizes.iter().zip(&parts).zip(&starts) {
        all = all.every(*part, stride)?;
        start = start.checked_add(first.checked_mul(stride)?)?;
        stride = stride.checked_mul(*size)?;
    }
    let mut all = all.at([Some(start)])?;
    (all.lower, all.upper) = (0, stride);
    Some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A column of a matrix of integers with rows of so many.
    fn column(rows: i64, row: i64) -> Layout {
        Layout::piece(4).every(rows, 4 * row).unwrap()
    }

    fn at(layout: &Layout, address: u64) -> Footprint {
        layout.footprint(address).unwrap()
    }

    #[test]
    fn columns_lie_between_each_other() {
        let one = column(8, 8);
        assert_eq!(at(&one, 1000).span, 1000..1000 + 7 * 32 + 4);
        assert!(!at(&one, 1000).meets(&at(&one, 1004)));
        assert!(at(&one, 1000).meets(&at(&one, 1003)));
        assert!(at(&one, 1000).meets(&at(&one, 1032)));
        let row = Layout::piece(4).times(8).unwrap();
        assert!(at(&row, 1000).meets(&at(&one, 1000)));
        assert!(!at(&row, 1000).meets(&at(&one, 1032)));
    }

    #[test]
    fn neighbours_become_one_piece() {
        let long = Layout::piece(8).times(1 << 40).unwrap();
        assert_eq!(long.blocks.len(), 1);
        assert_eq!(at(&long, 16).span, 16..16 + (8 << 40));
        let pairs = Layout::piece(4).times(2).unwrap().every(3, 16).unwrap();
        assert_eq!(*pairs.blocks, [0..8, 16..24, 32..40]);
        // The next one begins behind the last block.
        assert_eq!(
            *pairs.times(2).unwrap().blocks,
            [0..8, 16..24, 32..48, 56..64, 72..80]
        );
    }

    #[test]
    fn structures_end_as_compilers_end_them() {
        let (int, double) = (Layout::named("MPI_INT"), Layout::named("MPI_DOUBLE"));
        let (int, double) = (int.unwrap(), double.unwrap());
        let all = Layout::chain([Some((&double, 0)), Some((&int, 8))]).unwrap();
        assert_eq!((all.extent(), all.alignment), (Some(12), Some(8)));
        assert_eq!(
            Layout::named("MPI_C_DOUBLE_COMPLEX").unwrap().alignment,
            Some(8)
        );
    }

    #[test]
    fn nothing_meets_nothing() {
        assert_eq!(Layout::piece(4).times(0).unwrap().footprint(8), None);
        assert_eq!(Layout::piece(0).times(1 << 50).unwrap().footprint(8), None);
    }

    #[test]
    fn what_has_too_many_blocks_is_not_known() {
        assert_eq!(Layout::piece(4).every(MOST_BLOCKS as i64 + 1, 8), None);
        assert_eq!(Layout::piece(4).every(i64::MAX, i64::MAX), None);
        // Pieces that touch are one, whatever their bounds: found by fuzzing, which waited for 2^40 copies.
        let resized = Layout {
            lower: -4,
            upper: 8,
            ..Layout::piece(4)
        };
        let place = |index: i64| Some(4 * index);
        assert_eq!(resized.every(3, 4), resized.at((0..3).map(place)));
        assert_eq!(resized.every(1 << 40, 4).unwrap().upper, (1 << 42) + 4);
        assert_eq!(resized.every(0, 4), resized.at([]));
        assert_eq!(Layout::piece(8).times(i64::MAX), None);
    }
}
