//! Bytes between functions that nothing executes: room for jumps.

use iced_x86::{Decoder, DecoderOptions};
use lockstep_binary::{Image, RangeKind};

use crate::entry::JUMP;
use crate::flow::is_padding;
use crate::survey::Survey;

/// Longest gap between two functions that is looked at: alignment makes none longer.
const LONGEST_GAP: u64 = 4096;

/// How many bytes from `from` on, at most `most`, are padding that nothing leads to. What stands
/// before `from` must not go on there.
pub(crate) fn behind(image: &Image<'_>, survey: &Survey<'_>, from: u64, most: u64) -> u64 {
    let next = survey.ranges.first_from(from);
    let mut end = from + most;
    if let Some(range) = survey.ranges.get(next) {
        end = end.min(range.address);
    }
    if let Some(branch) = survey.branches_to(from, end).next() {
        end = branch.target;
    }
    if let Some(address) = survey.pointed_in(from, end) {
        end = address;
    }
    let Some(bytes) = image.bytes_from(from) else {
        return 0;
    };
    end = end.min(from + bytes.len() as u64);
    let decoder = Decoder::with_ip(64, bytes, from, DecoderOptions::NONE);
    for instruction in decoder {
        if instruction.ip() >= end {
            break;
        }
        if !is_padding(&instruction) {
            return instruction.ip() - from;
        }
    }
    end.saturating_sub(from)
}

/// Where room is looked for: the surroundings of some places.
pub(crate) struct Near {
    /// Start and end, by address, none of them touching.
    spans: Vec<(u64, u64)>,
}

impl Near {
    /// More than a short jump reaches, from wherever in a window it stands.
    const REACH: u64 = 512;

    pub(crate) fn new(places: impl Iterator<Item = u64>) -> Self {
        let mut places: Vec<u64> = places.collect();
        places.sort_unstable();
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for place in places {
            let (start, end) = (place.saturating_sub(Self::REACH), place + Self::REACH);
            match spans.last_mut().filter(|last| start <= last.1) {
                Some(last) => last.1 = end,
                None => spans.push((start, end)),
            }
        }
        Self { spans }
    }

    /// Whether anything of `start..end` is near.
    pub(crate) fn has(&self, (start, end): (u64, u64)) -> bool {
        let after = self.spans.partition_point(|span| span.1 <= start);
        self.spans.get(after).is_some_and(|span| span.0 < end)
    }
}

/// Room between functions for near jumps, which short jumps lead to.
#[derive(Debug, Default)]
pub(crate) struct Padding {
    /// Start and end, by address.
    free: Vec<(u64, u64)>,
}

impl Padding {
    /// All gaps of the image that are near, but what is `claimed` (start, end).
    pub(crate) fn new(
        image: &Image<'_>,
        survey: &Survey<'_>,
        mut claimed: Vec<(u64, u64)>,
        near: &Near,
    ) -> Self {
        claimed.sort_unstable();
        let mut free = Vec::new();
        for pair in survey.ranges.windows(2) {
            let (start, end) = (pair[0].end(), pair[1].address);
            let is_plt = pair.iter().any(|range| range.kind == RangeKind::Plt);
            let size = end.saturating_sub(start);
            let is_gap = !is_plt && (JUMP..=LONGEST_GAP).contains(&size);
            if !is_gap || !near.has((start, end)) {
                continue;
            }
            let first = claimed.partition_point(|claim| claim.1 <= start);
            let mut at = start;
            let mut pieces = Vec::new();
            for claim in claimed[first..].iter().take_while(|claim| claim.0 < end) {
                pieces.push((at, claim.0));
                at = at.max(claim.1);
            }
            pieces.push((at, end));
            pieces.retain(|piece| piece.0 + JUMP <= piece.1);
            // The whole of it: what is no padding may be code that has no frame description.
            if !pieces.is_empty() && behind(image, survey, start, size) == size {
                free.extend(pieces);
            }
        }
        Self { free }
    }

    /// Takes room for a near jump that a short jump ending at `next` can reach.
    pub(crate) fn take(&mut self, next: u64) -> Option<u64> {
        let low = next.saturating_sub(128);
        let first = self.free.partition_point(|piece| piece.1 < low + JUMP);
        for index in first..self.free.len() {
            let (start, end) = self.free[index];
            let at = start.max(low);
            if at > next + 127 {
                return None;
            }
            if at + JUMP <= end {
                self.free[index].0 = at + JUMP;
                if start < at {
                    self.free.insert(index, (start, at));
                }
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_once_and_within_reach() {
        for next in [1000u64, 1100, 1128, 1200, 1250] {
            let mut padding = Padding {
                free: vec![
                    (900, 911),
                    (1000, 1004),
                    (1090, 1103),
                    (1300, 1311),
                    (2000, 2100),
                ],
            };
            let mut taken = Vec::new();
            while let Some(at) = padding.take(next) {
                assert!(at as i64 - next as i64 >= -128 && at as i64 - next as i64 <= 127);
                assert!(taken.iter().all(|other: &u64| at.abs_diff(*other) >= JUMP));
                taken.push(at);
            }
            // Every place of five bytes in reach was given, up to fragments.
            assert!(taken.len() <= 6, "{next}: {taken:?}");
            assert!(!taken.is_empty(), "{next}");
        }
        assert_eq!(Padding::default().take(5), None);
    }
}
