//! The stack at an event.

use crate::frames::Frames;
use crate::model::{Frame, Thread};

impl Thread {
    /// The open calls right after event `index` (from 0), outermost first; `None` where there are
    /// fewer events. Where each was called is not known. O(index).
    #[must_use]
    pub fn stack_at(&self, index: u64) -> Option<Vec<Frame>> {
        let mut frames = Frames::default();
        for (event, at) in self.events().zip(0..) {
            frames.apply(event);
            if at == index {
                return Some(frames.into_frames());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Event, FunctionId, TraceName};
    use Event::{Return, Tail};

    #[test]
    fn a_tail_call_shows_nested() {
        let call = |function| Event::Call(FunctionId(function));
        let events = vec![
            call(1),
            call(2),
            Return,
            call(2),
            Tail,
            call(3),
            Return,
            Return,
        ];
        let thread = Thread::from_events(TraceName::new(0, 0), events);
        assert_eq!(thread.stack_at(5).unwrap().len(), 3);
        assert!(thread.stack_at(7).unwrap().is_empty());
        assert!(thread.stack_at(8).is_none());
    }
}
