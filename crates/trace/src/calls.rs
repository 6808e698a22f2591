//! Who called whom, and the stack at an event.

use crate::frames::Frames;
use crate::model::{Event, Frame, FunctionId, Thread};
use rustc_hash::FxHashMap;

impl Thread {
    /// How often each function was called from each other; `None` calls what is outermost. A tail
    /// call counts as made by the function that handed over. O(events).
    #[must_use]
    pub fn calls(&self) -> FxHashMap<(Option<FunctionId>, FunctionId), u64> {
        let mut calls = FxHashMap::default();
        let mut frames = Frames::default();
        for event in self.events() {
            if let Event::Call(callee) = event {
                *calls.entry((frames.innermost(), callee)).or_default() += 1;
            }
            frames.apply(event);
        }
        calls
    }

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
    use crate::TraceName;
    use Event::{Return, Tail};

    #[test]
    fn calls_are_counted_by_pair() {
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
        let calls = thread.calls();
        let of = |caller: Option<u32>, callee| calls[&(caller.map(FunctionId), FunctionId(callee))];
        assert_eq!(calls.len(), 3);
        assert_eq!((of(None, 1), of(Some(1), 2), of(Some(2), 3)), (1, 2, 1));
        assert_eq!(thread.stack_at(5).unwrap().len(), 3);
        assert!(thread.stack_at(7).unwrap().is_empty());
        assert!(thread.stack_at(8).is_none());
    }
}
