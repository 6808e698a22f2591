//! Where open calls were made, by the return addresses that a thread mirrors into its file.

use crate::catalogue::Image;
use crate::frames::Frames;
use crate::model::{Event, Frame, Function};
use lockstep_format::process::thread::MIRROR_WORDS;
use std::sync::Arc;

/// Where the return address of each open call stands: of those that were open at the last commit, in
/// the mirror, which has room for the innermost [`MIRROR_WORDS`]; of calls made since, the low half
/// is in the staging area.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    depth: usize,
    handed_over: bool,
    /// The depth at the last commit.
    at_commit: usize,
    /// How many of the outermost calls are open since then.
    since_commit: usize,
    /// Low halves of the others, by depth; `None` before the commit.
    staged: Option<Vec<u32>>,
}

/// What is known of a return address.
enum Address {
    Whole(u64),
    Low(u32),
}

impl Owners {
    /// `low` is the low half of the return address, of a staged call.
    #[inline]
    pub fn apply(&mut self, event: Event, low: Option<u32>) {
        match event {
            // The frame that is jumped to returns where the one that handed over would have.
            Event::Call(_) if self.handed_over => self.handed_over = false,
            Event::Call(_) => {
                self.depth += 1;
                if let Some(staged) = &mut self.staged {
                    staged.push(low.unwrap_or(0));
                }
            }
            Event::Return => {
                self.depth = self.depth.saturating_sub(1);
                self.handed_over = false;
                if let Some(staged) = &mut self.staged
                    && staged.pop().is_none()
                {
                    self.since_commit = self.since_commit.min(self.depth);
                }
            }
            Event::Tail => self.handed_over = self.depth > 0,
        }
    }

    /// From here on events are staged.
    pub fn commit(&mut self) {
        self.at_commit = self.depth;
        self.since_commit = self.depth;
        self.staged = Some(Vec::new());
    }

    fn address(&self, depth: usize, mirror: &[u64]) -> Option<Address> {
        if depth < self.since_commit {
            return (depth + MIRROR_WORDS >= self.at_commit)
                .then(|| mirror.get(depth % MIRROR_WORDS).copied())
                .flatten()
                .map(Address::Whole);
        }
        let staged = self.staged.as_ref()?;
        staged
            .get(depth - self.since_commit)
            .copied()
            .map(Address::Low)
    }
}

impl Address {
    /// The address in the file of an image that lies at `bias`.
    fn in_image(&self, bias: u64) -> u64 {
        match self {
            Self::Whole(address) => address.wrapping_sub(bias),
            // Images are smaller than what a low half tells apart.
            Self::Low(low) => u64::from(low.wrapping_sub(bias as u32)),
        }
    }
}

/// The open calls with their source lines. An address counts only where it lies behind a call of
/// this function in the function of the frame below: the mirror is newer than the stream where the
/// process was killed between the two, and no check covers either.
pub(crate) fn place_calls(
    frames: Frames,
    owners: &Owners,
    mirror: &[u64],
    images: &[(u64, Arc<Image>)],
    functions: &[Function],
) -> Vec<Frame> {
    let mut frames = frames.into_frames();
    let mut depth = 0;
    let mut caller = None;
    let mut was_handed_over = false;
    for frame in &mut frames {
        if !was_handed_over {
            if let Some(address) = owners.address(depth, mirror) {
                frame.called_at = images.iter().find_map(|(bias, image)| {
                    let address = address.in_image(*bias);
                    image.call_line(address, caller, frame.function, functions)
                });
            }
            depth += 1;
        }
        was_handed_over = frame.handed_over;
        caller = Some(frame.function);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FunctionId;

    fn known(owners: &Owners) -> Vec<bool> {
        let mirror = [0; MIRROR_WORDS];
        (0..owners.depth)
            .map(|depth| matches!(owners.address(depth, &mirror), Some(Address::Whole(_))))
            .collect()
    }

    #[test]
    fn the_mirror_has_the_innermost_of_the_commit() {
        let call = Event::Call(FunctionId(0));
        let mut owners = Owners::default();
        for _ in 0..130 {
            owners.apply(call, None);
        }
        owners.commit();
        let expected: Vec<bool> = (0..130).map(|depth| depth >= 2).collect();
        assert_eq!(known(&owners), expected);
        for _ in 0..127 {
            owners.apply(Event::Return, None);
        }
        assert_eq!(known(&owners), [false, false, true]);
        owners.apply(Event::Return, None);
        owners.apply(call, Some(7));
        owners.apply(Event::Tail, None);
        owners.apply(call, Some(0));
        owners.apply(call, Some(9));
        assert_eq!(known(&owners), [false, false, false, false]);
        let low = |depth| match owners.address(depth, &[]) {
            Some(Address::Low(low)) => Some(low),
            _ => None,
        };
        assert_eq!([low(1), low(2), low(3)], [None, Some(7), Some(9)]);
    }

    #[test]
    fn low_halves_are_relative_to_the_image() {
        let bias = 0x7fff_ffff_f000;
        assert_eq!(Address::Low(0x0000_0234).in_image(bias), 0x1234);
        assert_eq!(Address::Whole(bias + 0x1234).in_image(bias), 0x1234);
    }
}
