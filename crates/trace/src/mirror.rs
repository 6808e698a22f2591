//! Where open calls were made, by the return addresses that a thread mirrors into its file.

use crate::catalogue::Image;
use crate::frames::Frames;
use crate::model::{Event, Frame};
use lockstep_format::process::thread::MIRROR_WORDS;
use std::sync::Arc;

/// Which depth wrote each word of the mirror last: a word of an outer frame is overwritten where the
/// stack was [`MIRROR_WORDS`] deeper since.
#[derive(Debug, Clone)]
pub(crate) struct Owners {
    depths: [usize; MIRROR_WORDS],
    depth: usize,
    handed_over: bool,
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            depths: [usize::MAX; MIRROR_WORDS],
            depth: 0,
            handed_over: false,
        }
    }
}

impl Owners {
    #[inline]
    pub fn apply(&mut self, event: Event) {
        match event {
            // The frame that is jumped to returns where the one that handed over would have.
            Event::Call(_) if self.handed_over => self.handed_over = false,
            Event::Call(_) => {
                self.depths[self.depth % MIRROR_WORDS] = self.depth;
                self.depth += 1;
            }
            Event::Return => {
                self.depth = self.depth.saturating_sub(1);
                self.handed_over = false;
            }
            Event::Tail => self.handed_over = self.depth > 0,
        }
    }

    fn has(&self, depth: usize) -> bool {
        self.depths[depth % MIRROR_WORDS] == depth
    }
}

/// The open calls with their source lines. An address counts only where it lies behind a call of
/// this function in the function of the frame below: the mirror is written after the event, and not
/// at every kind of call.
pub(crate) fn place_calls(
    frames: Frames,
    owners: &Owners,
    mirror: &[u64],
    images: &[(u64, Arc<Image>)],
) -> Vec<Frame> {
    let mut frames = frames.into_frames();
    let mut depth = 0;
    let mut caller = None;
    let mut was_handed_over = false;
    for frame in &mut frames {
        if !was_handed_over {
            if owners.has(depth) {
                let address = mirror.get(depth % MIRROR_WORDS).copied().unwrap_or(0);
                frame.called_at = images.iter().find_map(|(bias, image)| {
                    image.call_line(address.wrapping_sub(*bias), caller, frame.function)
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

    #[test]
    fn deeper_stacks_overwrite() {
        let mut owners = Owners::default();
        for _ in 0..130 {
            owners.apply(Event::Call(FunctionId(0)));
        }
        assert!(!owners.has(0) && !owners.has(1) && owners.has(2) && owners.has(129));
        for _ in 0..129 {
            owners.apply(Event::Return);
        }
        owners.apply(Event::Call(FunctionId(0)));
        assert!(!owners.has(0) && owners.has(1));
        owners.apply(Event::Tail);
        owners.apply(Event::Call(FunctionId(0)));
        assert!(owners.has(1) && owners.depth == 2);
    }
}
