//! Which calls are open: the stack that an event stream leaves behind.

use crate::model::{Event, Frame, FunctionId};

/// How many frames that handed over in one chain are kept: the first, and the latest others. A loop
/// of tail calls hands over millions of times and is still one frame of the program's stack.
const CHAIN: usize = 32;

/// The open calls after the events so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frames {
    frames: Vec<Open>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    pub function: FunctionId,
    pub handed_over: bool,
}

impl Frames {
    pub fn apply(&mut self, event: Event) {
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
                }
                self.frames.push(Open {
                    function,
                    handed_over: false,
                });
            }
            Event::Return => {
                self.frames.pop();
                while self.frames.last().is_some_and(|frame| frame.handed_over) {
                    self.frames.pop();
                }
            }
            Event::Tail => {
                if let Some(top) = self.frames.last_mut() {
                    top.handed_over = true;
                }
            }
        }
    }

    /// Outermost first.
    pub fn open(&self) -> &[Open] {
        &self.frames
    }

    /// Outermost first, call lines unknown.
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
}
