//! Where calls were made that are long over: the function that made each, and the lines from which it
//! calls what it called.
//!
//! A trace tells who called whom, not from which line; the plan of the image knows all lines of a caller
//! that call one callee, which mostly is one. Where it is not, and the call is one of MPI, its line is
//! recorded beside its arguments. *Costs*: one pass over the events up to the last that is
//! asked for; of a sealed run O(depth x log list) each, and that pass where lines have to be told apart.

use crate::arguments::Annotated;
use crate::frames::Frames;
use crate::model::{FunctionId, Run, SourceLine, Thread};
use crate::stream::Stream;
use std::path::Path;

/// Where a call was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Name of the function that called.
    pub caller: String,
    /// The lines from which it calls what it called; none where that is not known.
    pub lines: Vec<SourceLine>,
}

impl Run {
    /// Where the calls with these events, in ascending order, were made; `None` of what nobody called.
    #[must_use]
    pub fn sites(&self, thread: &Thread, events: &[u64]) -> Vec<Option<Site>> {
        let pairs = thread.callers(events).into_iter();
        let mut sites: Vec<Option<Site>> = pairs
            .map(|pair| {
                let (caller, callee) = pair?;
                let caller = self.function(caller);
                let calls = caller.calls.iter().filter(|(id, _)| *id == callee);
                let mut lines: Vec<SourceLine> = calls.map(|(_, line)| line.clone()).collect();
                lines.dedup();
                Some(Site {
                    caller: caller.name.clone(),
                    lines,
                })
            })
            .collect();
        if thread.has_arguments() {
            let mut beside = thread.arguments().peekable();
            for (event, site) in events.iter().zip(&mut sites) {
                let Some(site) = site.as_mut().filter(|it| it.lines.len() > 1) else {
                    continue;
                };
                while beside.next_if(|it| it.index < *event).is_some() {}
                site.narrow(*event, beside.peek());
            }
        }
        sites
    }
}

impl Thread {
    /// Caller and callee of the calls with these events, in ascending order.
    fn callers(&self, events: &[u64]) -> Vec<Option<(FunctionId, FunctionId)>> {
        let innermost = |frames: &Frames| match frames.open() {
            [.., caller, callee] => Some((caller.function, callee.function)),
            _ => None,
        };
        if let Stream::Sealed(stream) = &self.stream {
            let is_there = |event: &&u64| **event < self.events;
            let at = |event: &u64| {
                let frames = Some(event)
                    .filter(is_there)
                    .and_then(|it| stream.stack_at(*it));
                innermost(&frames?)
            };
            return events.iter().map(at).collect();
        }
        let mut found = Vec::new();
        let mut frames = Frames::default();
        for (event, at) in self.events().zip(0..) {
            if found.len() == events.len() {
                break;
            }
            frames.apply(event);
            while events.get(found.len()) == Some(&at) {
                found.push(innermost(&frames));
            }
        }
        found.resize(events.len(), None);
        found
    }
}

impl Site {
    /// Leaves the line alone that was recorded beside the event, where it is one of these: the address behind which a call
    /// was made says nothing of a caller that jumped to what it called last.
    fn narrow(&mut self, event: u64, recorded: Option<&Annotated>) {
        let recorded = recorded.filter(|it| it.index == event);
        let line = recorded.and_then(|it| it.line.as_deref());
        if let Some(line) = line.filter(|it| self.lines.contains(it)) {
            self.lines = vec![line.clone()];
        }
    }

    /// `solve.c:214`, `solve.c:214 or 230`, `solve.c:214 or 3 other places`; empty where no line is known.
    #[must_use]
    pub fn at(&self) -> String {
        let file = |line: &SourceLine| {
            let name = Path::new(&line.file).file_name().and_then(|it| it.to_str());
            format!("{}:{}", name.unwrap_or(&line.file), line.line)
        };
        match self.lines.as_slice() {
            [] => String::new(),
            [one] => file(one),
            [one, two] if one.file == two.file => format!("{} or {}", file(one), two.line),
            [one, two] => format!("{} or {}", file(one), file(two)),
            [one, more @ ..] => format!("{} or {} other places", file(one), more.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Event::{Call, Return};
    use crate::name::TraceName;
    use std::sync::Arc;

    fn line(file: &str, line: u32) -> SourceLine {
        let file = file.to_owned();
        SourceLine { file, line }
    }

    #[test]
    fn a_recorded_line_counts_where_it_is_one_of_the_callers() {
        let lines = vec![line("a.c", 4), line("a.c", 9)];
        let recorded = |index, at| Annotated {
            index,
            inferred: false,
            event: Call(FunctionId(0)),
            symbols: 0,
            arguments: None,
            line: Some(Arc::new(at)),
        };
        let narrowed = |recorded: Option<Annotated>| {
            let mut site = Site {
                caller: "relay".to_owned(),
                lines: lines.clone(),
            };
            site.narrow(7, recorded.as_ref());
            site.lines
        };
        assert_eq!(
            narrowed(Some(recorded(7, line("a.c", 9)))),
            [line("a.c", 9)]
        );
        // Of the caller's caller, where it ended with a jump; and of another event.
        assert_eq!(narrowed(Some(recorded(7, line("main.c", 30)))), lines);
        assert_eq!(narrowed(Some(recorded(8, line("a.c", 9)))), lines);
        assert_eq!(narrowed(None), lines);
    }

    #[test]
    fn who_called_is_found_in_one_pass() {
        let [main, step, send] = [0, 1, 2].map(FunctionId);
        let events = vec![
            Call(main),
            Call(step),
            Call(send),
            Return,
            Return,
            Call(send),
        ];
        let thread = Thread::from_events(TraceName::new(0, 0), events);
        let found = thread.callers(&[0, 2, 2, 5, 9]);
        let sent = Some((step, send));
        assert_eq!(found, [None, sent, sent, Some((main, send)), None]);
        assert!(thread.callers(&[]).is_empty());
    }

    #[test]
    fn lines_are_told_in_short() {
        let at = |lines: &[SourceLine]| {
            let lines = lines.to_vec();
            let caller = "main".to_owned();
            Site { caller, lines }.at()
        };
        assert_eq!(at(&[]), "");
        assert_eq!(at(&[line("/a/b.c", 3)]), "b.c:3");
        assert_eq!(at(&[line("b.c", 3), line("b.c", 9)]), "b.c:3 or 9");
        assert_eq!(at(&[line("b.c", 3), line("c.h", 9)]), "b.c:3 or c.h:9");
        let three = [line("b.c", 3), line("b.c", 9), line("b.c", 10)];
        assert_eq!(at(&three), "b.c:3 or 2 other places");
    }
}
