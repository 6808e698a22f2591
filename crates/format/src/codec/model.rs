//! What both directions of [`super::lockstep`] know: the symbols so far, and which comes next.
//!
//! ```text
//!               distance
//!          ┌───────────────────┐
//!  history ├──────┼────────────┤               a run: every symbol is as the one at `from`, which
//!                 from ──►    head ──►         moves along; both stand still only for the last ...
//!
//!  history ├──────┼──┼─────────┤               ... of a run that is longer than `KEPT`: nothing is
//!           span  └──◄────from─┘head           remembered of it any more, and `from` goes round
//! ```
//!
//! A symbol that was predicted costs a comparison (and, in the first `KEPT` of a run, a copy). One that
//! was not is looked up: the table says where the last six, and where the last two symbols stood before.
//!
//! The table grows by one slot at each look-up (linear hashing), so that small streams touch little
//! memory, and no step does more work than another.

use super::memory::{Memory, beginning};
use core::ops::Range;

/// How much is remembered.
pub trait Size {
    /// Symbols of history; a power of two.
    const WINDOW: u32;
    /// Most slots of the table; a power of two.
    const SLOTS: u32;
    /// Of a longer run, the first so many symbols are remembered, and the last [`LONG`].
    const KEPT: u64 = Self::WINDOW as u64 / 8;
    /// Most contexts ([`super::chances`]); a power of two.
    const CONTEXTS: u32;
}

/// 4 MB of history, 256 kB of table, 64 kB of contexts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Normal;
/// 256 kB of history, 64 kB of table, 16 kB of contexts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Low;

impl Size for Normal {
    const WINDOW: u32 = 1 << 20;
    const SLOTS: u32 = 1 << 15;
    const CONTEXTS: u32 = 1 << 14;
}

impl Size for Low {
    const WINDOW: u32 = 1 << 16;
    const SLOTS: u32 = 1 << 13;
    const CONTEXTS: u32 = 1 << 12;
}

/// Symbols that a look-up compares.
pub const LONG: u32 = 6;
/// Symbols before a place that are told by [`Model::last`].
pub const NEAR: usize = 3;
/// Slots of the table at first; a power of two.
pub const FIRST_SLOTS: u32 = 256;
/// A place is this much nearer than the window is wide.
pub const MARGIN: u32 = 2048;
/// Most symbols that are put behind the history before it is known how far they were predicted.
pub const MOST_STAGED: usize = 1024;
/// Rounds of more symbols are not told.
const MOST_ROUND: u32 = 1 << 14;
/// Where a run goes round, it does so in as many whole distances as are at least this long.
const SHORT_SPAN: u32 = 256;

/// The model in memory that is zero at first: the table as pairs of words, and the history.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Model<T, H> {
    /// Number of symbols remembered so far, modulo 2^32. A *place* is such a number.
    head: u32,
    /// Place of the symbol that is predicted.
    from: u32,
    /// How far the prediction was behind the head when it was made.
    distance: u32,
    /// Whether there is a prediction.
    aimed: bool,
    /// Slots behind the first ones.
    grown: u32,
    /// Symbols that were as predicted since the last look-up.
    run: u64,
    table: T,
    history: H,
}

impl<T: Default, H: Default> Default for Model<T, H> {
    fn default() -> Self {
        Self {
            head: 0,
            from: 0,
            distance: 0,
            aimed: false,
            grown: 0,
            run: 0,
            table: T::default(),
            history: H::default(),
        }
    }
}

impl<T: Memory, H: Memory> Model<T, H> {
    /// Whether the next symbol is predicted.
    #[inline]
    pub fn is_aimed(&self) -> bool {
        self.aimed
    }

    /// Symbols that were as predicted since the last look-up.
    #[inline]
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The addresses of the memory that the first symbols go to: of the table, and of the history.
    pub fn early(&self) -> [Range<usize>; 2] {
        [
            beginning(self.table.present(), 2 * FIRST_SLOTS as usize),
            beginning(self.history.present(), MOST_STAGED / 2),
        ]
    }

    #[inline]
    fn at<S: Size>(&self, place: u32) -> u32 {
        let index = (place & (S::WINDOW - 1)) as usize;
        self.history.present().get(index).copied().unwrap_or(0)
    }

    /// The symbol that is predicted, where one is.
    #[inline]
    pub fn predicted<S: Size>(&self) -> u32 {
        let place = if self.from == self.head {
            self.head.wrapping_sub(self.span())
        } else {
            self.from
        };
        self.at::<S>(place)
    }

    /// The symbols of the run so far, of at most [`Size::KEPT`], in two parts where they go round the end of the
    /// history; and the place of the first.
    #[inline]
    pub fn followed<S: Size>(&self) -> (u32, [&[u32]; 2]) {
        let place = self.head.wrapping_sub(self.run as u32);
        (place, self.parts::<S>(place, self.run as usize))
    }

    /// The symbols that were predicted where the run began, which go round, in two parts where they go round the end of the
    /// history; and the symbols before them. Of a run that is not longer than [`Size::KEPT`].
    #[inline]
    pub fn ahead_of<S: Size>(&self) -> ([u32; NEAR], [&[u32]; 2]) {
        let back = |place: u32| place.wrapping_sub(self.run as u32);
        let (from, head) = (back(self.from), back(self.head));
        let length = head.wrapping_sub(from) as usize;
        (self.before::<S>(head), self.parts::<S>(from, length))
    }

    /// What stands from a place on, in two parts where it goes round the end of the history.
    #[inline]
    fn parts<S: Size>(&self, place: u32, length: usize) -> [&[u32]; 2] {
        let start = (place & (S::WINDOW - 1)) as usize;
        let end = start + length;
        let window = S::WINDOW as usize;
        let part = |from: usize, to: usize| self.history.present().get(from..to).unwrap_or(&[]);
        [
            part(start, end.min(window)),
            part(0, end.saturating_sub(window)),
        ]
    }

    /// The last symbols, the nearest first.
    #[inline]
    pub fn last<S: Size>(&self) -> [u32; NEAR] {
        self.before::<S>(self.head)
    }

    /// The symbols before a place, the nearest first.
    #[inline]
    pub fn before<S: Size>(&self, place: u32) -> [u32; NEAR] {
        [1, 2, 3].map(|back| self.at::<S>(place.wrapping_sub(back)))
    }

    /// Puts symbols behind the head, without moving it, unless the run does not go there any more.
    #[inline]
    pub fn stage<S: Size>(&mut self, symbols: &[u32]) {
        if !self.aimed || self.run < S::KEPT {
            self.put::<S>(symbols);
        }
    }

    fn put<S: Size>(&mut self, symbols: &[u32]) {
        let start = (self.head & (S::WINDOW - 1)) as usize;
        let end = (start + symbols.len()).min(S::WINDOW as usize);
        let (before, behind) = symbols
            .split_at_checked(end - start)
            .unwrap_or((symbols, &[]));
        let words = self.history.words(end);
        if let Some(place) = words.get_mut(start..end) {
            place.copy_from_slice(before);
        }
        if let Some(place) = words.get_mut(..behind.len()) {
            place.copy_from_slice(behind);
        }
    }

    /// Goes on over those of the first `symbols` that are as predicted; how many they are. They were
    /// staged.
    #[inline]
    pub fn follow<S: Size>(&mut self, symbols: &[u32]) -> usize {
        // Most predictions that fail do so at once.
        if self.run == 0 && symbols.first() != Some(&self.at::<S>(self.from)) {
            return 0;
        }
        let mut done = 0;
        while self.aimed
            && let Some(rest) = symbols.get(done..)
            && !rest.is_empty()
        {
            let most = self.ahead::<S>(rest.len());
            let start = (self.from & (S::WINDOW - 1)) as usize;
            let predicted = self.history.present().get(start..start + most);
            let equal = agree(predicted.unwrap_or(&[]), rest);
            self.advance::<S>(equal);
            done += equal;
            if equal < most {
                break;
            }
        }
        done
    }

    /// How many symbols, at least one and up to `wanted`, are predicted by what stands in one piece
    /// at `from`, counting those that are staged.
    #[inline]
    fn ahead<S: Size>(&mut self, wanted: usize) -> usize {
        let kept = S::KEPT.saturating_sub(self.run);
        let room = if kept > 0 {
            kept
        } else {
            u64::from(self.round())
        };
        let straight = S::WINDOW - (self.from & (S::WINDOW - 1));
        (wanted as u64).min(room).min(u64::from(straight)) as usize
    }

    /// Goes round where the end of what is remembered was reached; how far it is to there.
    #[inline]
    fn round(&mut self) -> u32 {
        if self.from == self.head {
            self.from = self.head.wrapping_sub(self.span());
        }
        self.head.wrapping_sub(self.from)
    }

    /// A whole number of distances, all of them in the run.
    fn span(&self) -> u32 {
        if self.distance < SHORT_SPAN {
            self.distance * SHORT_SPAN.div_ceil(self.distance.max(1))
        } else {
            self.distance
        }
    }

    #[inline]
    fn advance<S: Size>(&mut self, count: usize) {
        self.from = self.from.wrapping_add(count as u32);
        if self.run < S::KEPT {
            self.head = self.head.wrapping_add(count as u32);
        }
        self.run += count as u64;
    }

    /// Hands out predicted symbols: some of `into`, at least one, and how many. There must be a
    /// prediction, and room.
    pub fn hand_out<S: Size>(&mut self, into: &mut [u32]) -> usize {
        let kept = S::KEPT.saturating_sub(self.run);
        let (from, room) = if kept == 0 {
            let room = self.round();
            (self.from, room)
        } else if self.distance < SHORT_SPAN {
            // As many distances back as there are in the run: more can be copied at once.
            let whole = (self.run / u64::from(self.distance.max(1)) + 1) * u64::from(self.distance);
            let back = whole.min(u64::from(self.span())) as u32;
            (self.head.wrapping_sub(back), back)
        } else {
            (self.from, self.distance)
        };
        let start = (from & (S::WINDOW - 1)) as usize;
        let mut count = into.len().min(room as usize);
        count = count.min(S::WINDOW as usize - start);
        if kept > 0 {
            count = count.min(kept as usize);
        }
        let Some(into) = into.get_mut(..count) else {
            return 0;
        };
        if let Some(predicted) = self.history.present().get(start..start + count) {
            into.copy_from_slice(predicted);
        }
        if kept > 0 {
            self.put::<S>(into);
        }
        self.advance::<S>(count);
        count
    }

    /// Where a run has gone round for so long that its last [`Size::KEPT`] symbols are rounds, too: how many symbols a
    /// round has.
    pub fn goes_round<S: Size>(&self) -> Option<u32> {
        let is_long = self.aimed && self.run >= 2 * S::KEPT;
        is_long
            .then(|| self.span())
            .filter(|span| (1..=MOST_ROUND).contains(span) && u64::from(*span) <= S::KEPT)
    }

    /// Goes on over symbols that are whole rounds.
    pub fn pass(&mut self, symbols: u64) {
        self.run += symbols;
    }

    /// Ends a run before a symbol that was not as predicted, or before the end of the stream.
    #[inline]
    pub fn settle<S: Size>(&mut self) {
        if self.aimed && self.run > S::KEPT {
            self.remember_last::<S>();
        }
    }

    #[cold]
    fn remember_last<S: Size>(&mut self) {
        let mut last = [0; LONG as usize];
        let low = self.head.wrapping_sub(self.span());
        let mut place = self.from;
        for symbol in last.iter_mut().rev() {
            if place == low {
                place = self.head;
            }
            place = place.wrapping_sub(1);
            *symbol = self.at::<S>(place);
        }
        self.put::<S>(&last);
        self.head = self.head.wrapping_add(LONG);
    }

    /// Remembers the first of `symbols`, which was not as predicted, and predicts what comes next.
    /// `staged` tells that they all were given to [`Model::stage`].
    #[inline]
    pub fn miss<S: Size>(&mut self, symbols: &[u32], staged: bool) {
        if symbols.is_empty() {
            return;
        }
        if !staged || self.aimed && self.run >= S::KEPT {
            self.put::<S>(symbols);
        }
        self.head = self.head.wrapping_add(1);
        self.aim::<S>();
    }

    #[inline]
    fn aim<S: Size>(&mut self) {
        self.aimed = false;
        self.run = 0;
        if self.head < LONG {
            return;
        }
        let s = self.context::<S>(self.head);
        let [long, short] = self.look_up::<S>(&s);
        let long = long.filter(|place| self.context::<S>(*place) == s);
        let short = || short.filter(|place| self.pair::<S>(*place) == s[0]);
        let Some(best) = long.or_else(short) else {
            return;
        };
        self.aimed = true;
        self.from = best;
        self.distance = self.head.wrapping_sub(best);
    }

    /// The symbols before a place in pairs, the nearest first; the nearer of a pair in the high half.
    #[inline]
    fn context<S: Size>(&self, place: u32) -> [u64; 3] {
        let start = (place.wrapping_sub(LONG) & (S::WINDOW - 1)) as usize;
        let end = start + LONG as usize;
        if end <= S::WINDOW as usize
            && let Some([f, e, d, c, b, a]) = self.history.present().get(start..end)
        {
            return [pair(*a, *b), pair(*c, *d), pair(*e, *f)];
        }
        [0, 2, 4].map(|back| self.pair::<S>(place.wrapping_sub(back)))
    }

    #[inline]
    fn pair<S: Size>(&self, place: u32) -> u64 {
        let [nearer, other] = [1, 2].map(|back| self.at::<S>(place.wrapping_sub(back)));
        pair(nearer, other)
    }

    /// The places where the last six and the last two symbols stood, perhaps; the head takes theirs.
    #[inline]
    fn look_up<S: Size>(&mut self, s: &[u64; 3]) -> [Option<u32>; 2] {
        let near = s[0].wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let far = near
            .wrapping_add(s[1].wrapping_mul(0xc2b2_ae3d_27d4_eb4f))
            .wrapping_add(s[2].wrapping_mul(0x1656_67b1_9e37_79f9));
        let used = FIRST_SLOTS + self.grown;
        // The largest power of two that is not more.
        let whole = 1 << used.ilog2();
        let head = self.head;
        let table = self.table.words(2 * used as usize + 2);
        // A word of the table is the low bits of a place and, above them, those of the hash that led
        // there: most places that are others' need no look at the history.
        let mut exchange = |hash: u64, half: usize| {
            let hash = (hash >> 32) as u32;
            let mut slot = hash & (2 * whole - 1);
            if slot >= used {
                slot &= whole - 1;
            }
            let tag = hash & !(S::WINDOW - 1);
            let new = tag | head & (S::WINDOW - 1);
            let old = table
                .get_mut(2 * slot as usize + half)
                .map_or(0, |word| core::mem::replace(word, new));
            let back = head.wrapping_sub(old) & (S::WINDOW - 1);
            let fits = old ^ tag < S::WINDOW && old & (S::WINDOW - 1) != 0;
            (fits && back != 0 && back <= S::WINDOW - MARGIN).then(|| head.wrapping_sub(back))
        };
        let places = [exchange(far, 0), exchange(near, 1)];
        if used < S::SLOTS {
            let (from, to) = (2 * (used - whole) as usize, 2 * used as usize);
            let old = [from, from + 1].map(|index| table.get(index).copied().unwrap_or(0));
            if let Some(new) = table.get_mut(to..to + 2) {
                new.copy_from_slice(&old);
            }
            self.grown += 1;
        }
        places
    }
}

#[inline]
fn pair(nearer: u32, other: u32) -> u64 {
    u64::from(nearer) << 32 | u64::from(other)
}

/// How many symbols at the beginning of both are equal.
#[inline]
fn agree(predicted: &[u32], symbols: &[u32]) -> usize {
    const LANES: usize = 16;
    let mut equal = 0;
    let (many, _) = predicted.as_chunks::<LANES>();
    for (a, b) in many.iter().zip(symbols.as_chunks::<LANES>().0) {
        if a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) != 0 {
            break;
        }
        equal += LANES;
    }
    let rest = predicted.iter().zip(symbols).skip(equal);
    equal + rest.take_while(|(a, b)| a == b).count()
}
