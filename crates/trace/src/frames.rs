//! Which calls are open: the stack that an event stream leaves behind.

use crate::model::{Event, Frame, FunctionId};

/// How many frames that handed over in one chain are kept: the first, and the latest others. A loop
/// of tail calls hands over millions of times and is still one frame of the program's stack.
const CHAIN: usize = 32;

/// The open calls after the events so far. O(1) an event, memory of the deepest stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    frames: Vec<Open>,
}

/// A frame of [`Frames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// The function that was called.
    pub function: FunctionId,
    /// Whether it handed over to the next frame (a tail call) and ends with it.
    pub handed_over: bool,
    /// How many frames of its chain, right after this one, are not kept.
    dropped: u64,
}

impl Frames {
    /// Lets one event go by; the number of calls that it ended, those that had handed over included.
    pub fn apply(&mut self, event: Event) -> u64 {
        match event {
            Event::Call(function) => {
                let chain = self
                    .frames
                    .iter()
                    .rev()
                    .take(CHAIN)
                    .take_while(|frame| frame.handed_over)
                    .count();
                if chain == CHAIN {
                    let second = self.frames.len() - CHAIN + 1;
                    self.frames.remove(second);
                    self.frames[second - 1].dropped += 1;
                }
                self.frames.push(Open {
                    function,
                    handed_over: false,
                    dropped: 0,
                });
                0
            }
            Event::Return => {
                let mut ended = u64::from(self.frames.pop().is_some());
                while let Some(frame) = self.frames.pop_if(|frame| frame.handed_over) {
                    ended += 1 + frame.dropped;
                }
                ended
            }
            Event::Tail => {
                if let Some(top) = self.frames.last_mut() {
                    top.handed_over = true;
                }
                0
            }
        }
    }

    /// Outermost first.
    #[must_use]
    pub fn open(&self) -> &[Open] {
        &self.frames
    }

    /// Outermost first, call lines unknown.
    #[must_use]
    pub fn into_frames(self) -> Vec<Frame> {
        self.frames
            .into_iter()
            .map(|open| Frame {
                function: open.function,
                called_at: None,
                handed_over: open.handed_over,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Event::{Call, Return, Tail};

    fn after(events: &[Event]) -> Vec<(u32, bool)> {
        let mut frames = Frames::default();
        for event in events {
            frames.apply(*event);
        }
        frames
            .open()
            .iter()
            .map(|open| (open.function.0, open.handed_over))
            .collect()
    }

    #[test]
    fn a_return_leaves_the_whole_chain() {
        let (f, g, h) = (
            Call(FunctionId(1)),
            Call(FunctionId(2)),
            Call(FunctionId(3)),
        );
        assert_eq!(after(&[f, g, Tail, h]), [(1, false), (2, true), (3, false)]);
        assert_eq!(after(&[f, g, Tail, h, Return]), [(1, false)]);
        assert_eq!(after(&[Return, Tail, f]), [(1, false)]);
    }

    #[test]
    fn a_loop_of_tail_calls_stays_small() {
        let mut events = vec![Call(FunctionId(0)), Call(FunctionId(1))];
        for _ in 0..1000 {
            events.extend([Tail, Call(FunctionId(2))]);
        }
        let open = after(&events);
        assert_eq!(open.len(), CHAIN + 1);
        assert_eq!(open[1], (1, true));
        events.push(Return);
        assert_eq!(after(&events), [(0, false)]);
    }

    #[test]
    fn the_calls_that_a_return_ends_are_counted() {
        let mut frames = Frames::default();
        for event in [Return, Tail, Call(FunctionId(0)), Call(FunctionId(1))] {
            assert_eq!(frames.apply(event), 0);
        }
        for _ in 0..1000 {
            assert_eq!(frames.apply(Tail) + frames.apply(Call(FunctionId(2))), 0);
        }
        assert_eq!(frames.apply(Return), 1001);
        assert_eq!(frames.apply(Return), 1);
    }
}
