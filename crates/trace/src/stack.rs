//! The stack at an event.

use crate::frames::Frames;
use crate::model::{Frame, Thread};
use crate::stream::Stream;

impl Thread {
    /// What is open before event `index`, or at the end where there are fewer. Costs as [`Thread::stack_at`].
    #[must_use]
    pub fn frames_before(&self, index: u64) -> Frames {
        let Some(last) = index.checked_sub(1) else {
            return Frames::default();
        };
        if let Stream::Sealed(stream) = &self.stream
            && let Some(end) = self.events.checked_sub(1)
        {
            return stream.stack_at(last.min(end)).unwrap_or_default();
        }
        let mut frames = Frames::default();
        let most = usize::try_from(index).unwrap_or(usize::MAX);
        for event in self.events().take(most) {
            frames.apply(event);
        }
        frames
    }

    /// The open calls right after event `index` (from 0), outermost first; `None` where there are
    /// fewer events. Where each was called is not known. O(index); of a sealed run, O(depth x log list).
    #[must_use]
    pub fn stack_at(&self, index: u64) -> Option<Vec<Frame>> {
        if let Stream::Sealed(stream) = &self.stream {
            let frames = (index < self.events).then(|| stream.stack_at(index))??;
            return Some(frames.into_frames());
        }
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
