//! Which addresses the code in an arena may refer to, and whether an arena has a place.
//!
//! A displacement has 32 bits. Sites in the text must reach the arena, and moved instructions must reach what they address:
//! that, and not the size of the image, is what counts. Large arrays stand behind the text and are seldom addressed near it.
//!
//! ```text
//!                 low    text                          high
//!  ┌───────┐      ┌──────┬──────┬───────────────────────┐      ┌───────┐
//!  │ arena │ GAP  │      │      │ data, zeros           │ GAP  │ arena │
//!  └───────┘      └──────┴──────┴───────────────────────┘      └───────┘
//!  ├───────────── 2 GiB ─────────────────┤   the window of an arena below
//!                          ├───────────── 2 GiB ───────────────────────┤   of one above
//! ```

use lockstep_binary::{Image, Kind};

/// How far a displacement reaches, with room to spare: as the probe has it.
const REACH: i64 = (1 << 31) - (1 << 20);
/// Free space between an image and its arena, and the lowest address of an arena: as the probe has them.
const GAP: i64 = 64 << 10;
const LOWEST: i64 = 128 << 10;
/// Addresses outside the image that an instruction may name all the same (`array[-1]`).
const SLACK: i64 = 16 << 20;
/// Least and most room that is kept for an arena.
const ROOM: (i64, i64) = (64 << 20, 256 << 20);
/// Bytes of an arena for each byte of text, at most.
const GROWTH: i64 = 16;

/// A window of addresses; that of a position-independent image may begin below 0.
pub(crate) type Window = (i64, i64);

/// Where an image and its text lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    image: Window,
    text: Window,
    is_fixed: bool,
}

impl Reach {
    pub(crate) fn new(image: &Image<'_>) -> Self {
        let (low, high) = image.extent();
        let text = || image.segments().iter().filter(|it| it.executable);
        let first = text().map(|it| it.address).min().unwrap_or(low);
        let end = text().map(|it| it.address + it.size).max().unwrap_or(high);
        Self {
            image: (low as i64, high as i64),
            text: (first as i64, end as i64),
            is_fixed: image.kind() == Kind::Fixed,
        }
    }

    /// What moved instructions may refer to.
    pub(crate) fn window(&self) -> Window {
        let ((low, high), text) = (self.image, self.text);
        let room = (GROWTH * (text.1 - text.0)).clamp(ROOM.0, ROOM.1);
        let lowest = low - GAP - room;
        let is_tight = self.is_fixed && lowest < LOWEST;
        let lowest = if is_tight { LOWEST } else { lowest };
        let below = (low - SLACK, lowest + REACH);
        let above = (high + GAP + room - REACH, high + SLACK);
        let holds = |window: Window| window.0 <= text.0 && text.1 <= window.1;
        let (low, high) = match (holds(below), holds(above)) {
            (true, true) if is_tight => above,
            (true, _) => below,
            _ => above,
        };
        // The made-up arena of `relocate` lies in the last piece.
        (low, high.min(low + REACH - ROOM.0))
    }

    /// Whether an arena of `size` bytes that must reach all of `span` may find a place.
    pub(crate) fn has_place(&self, span: Window, size: usize) -> bool {
        let size = size as i64;
        let below = self.image.0 - GAP - size;
        let above = self.image.1 + GAP + size;
        let is_below = span.1 - below <= REACH && !(self.is_fixed && below < LOWEST);
        is_below || above - span.0 <= REACH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;
    const GIB: i64 = 1 << 30;

    fn reach(image: Window, text: Window, is_fixed: bool) -> Reach {
        Reach {
            image,
            text,
            is_fixed,
        }
    }

    /// Whether all of the window is in reach of an arena that has a place.
    fn is_served(it: Reach) -> bool {
        let window = it.window();
        let span = (window.0.max(it.image.0), window.1.min(it.image.1));
        it.has_place(span, 1 << 20)
    }

    #[test]
    fn zeros_behind_the_text_are_no_hindrance() {
        let text = (0x1000, MIB);
        for size in [MIB + 1, GIB, 3 * GIB / 2, 9 * GIB / 5, 5 * GIB] {
            for (base, is_fixed) in [(0, false), (4 * MIB, true)] {
                let it = reach(
                    (base, base + size),
                    (base + text.0, base + text.1),
                    is_fixed,
                );
                let window = it.window();
                assert!(is_served(it), "{it:?} {window:x?}");
                assert!(
                    window.0 <= it.text.0 && it.text.1 <= window.1,
                    "{it:?} {window:x?}"
                );
                let reached = window.1.min(it.image.1) - base;
                assert!(reached >= size.min(9 * GIB / 5), "{it:?} {window:x?}");
            }
        }
    }

    #[test]
    fn text_behind_large_data_is_reached_from_above() {
        let it = reach((0, 3 * GIB), (3 * GIB - 2 * MIB, 3 * GIB - MIB), false);
        let window = it.window();
        assert!(
            window.0 <= it.text.0 && it.text.1 <= window.1,
            "{window:x?}"
        );
        assert!(is_served(it));
    }

    #[test]
    fn what_nothing_reaches_has_no_place() {
        let text = (3 * GIB, 3 * GIB + MIB);
        let it = reach((0, 6 * GIB), text, false);
        assert!(!it.has_place(text, 4096));
        // Below an image at a fixed address there is little room.
        let it = reach((4 * MIB, 4 * GIB), (4 * MIB, 5 * MIB), true);
        assert!(it.has_place((4 * MIB, 5 * MIB), 3 << 20));
        assert!(!it.has_place((4 * MIB, 5 * MIB), 4 << 20));
    }
}
