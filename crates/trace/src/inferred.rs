//! Returns that nobody saw: frames that a thread's next event found gone (after a `longjmp`, an
//! exception, a switch of stacks, or where a function cannot be followed to its return). The events have
//! them where they must have been; a side stream says which they are.

use crate::container::{Side, SideStream};
use crate::map::Mapped;
use crate::model::Thread;
use crate::stream::{Bytes, Events, Segment};
use lockstep_format::codec::Source as _;
use lockstep_format::side::{Broken, read_varint};
use std::sync::Arc;

/// Where they are told.
#[derive(Debug)]
pub(crate) struct Told {
    file: Arc<Mapped>,
    /// One, or one for each segment.
    parts: Vec<Part>,
    /// How many of the last events are such, too.
    closed: u64,
}

#[derive(Debug)]
struct Part {
    stream: SideStream,
    /// What a symbol's number in the segment becomes in the trace.
    plus: u64,
    minus: u64,
}

impl Told {
    /// Of segments and what stands beside them; `None` where there are none.
    pub fn new(file: &Arc<Mapped>, segments: &[(&Segment, &Side)]) -> Option<Self> {
        let mut plus = 0;
        let mut parts = Vec::new();
        for (index, (segment, side)) in segments.iter().enumerate() {
            // The calls that a later segment repeats are no symbols of the trace.
            let minus = match index {
                0 => 0,
                _ => u64::from(segment.inherited),
            };
            if !side.inferred.pieces.is_empty() {
                parts.push(Part {
                    stream: side.inferred.clone(),
                    plus,
                    minus,
                });
            }
            plus += segment.decoded.saturating_sub(minus);
        }
        let closed = segments.last().map_or(0, |(_, side)| side.closed);
        (!parts.is_empty() || closed > 0).then(|| Self {
            file: Arc::clone(file),
            parts,
            closed,
        })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        Symbols::new(self).count() as u64 + self.closed
    }
}

/// Numbers of the symbols, from 0, in order.
struct Symbols<'a> {
    told: &'a Told,
    parts: std::slice::Iter<'a, Part>,
    here: Option<(&'a Part, Bytes<'a>, u64)>,
}

impl<'a> Symbols<'a> {
    fn new(told: &'a Told) -> Self {
        Self {
            told,
            parts: told.parts.iter(),
            here: None,
        }
    }
}

impl Iterator for Symbols<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some((part, bytes, next)) = &mut self.here {
                let gap = read_varint(|| bytes.take().ok_or(Broken::CutOff));
                if let Some(symbol) = gap.ok().and_then(|gap| next.checked_add(gap)) {
                    *next = symbol.saturating_add(1);
                    return Some(symbol.saturating_sub(part.minus).saturating_add(part.plus));
                }
            }
            let part = self.parts.next()?;
            let bytes = Bytes::new(self.told.file.bytes(), &part.stream.pieces, &[]);
            self.here = Some((part, bytes, 0));
        }
    }
}

/// Finds them among a thread's events.
pub(crate) struct Inferred<'a> {
    symbols: Option<std::iter::Peekable<Symbols<'a>>>,
    /// From this event on, all returns are.
    closed: u64,
}

impl Inferred<'_> {
    /// How many rounds of `symbols` and `events` come, of at most `times`, in which there is none: behind these symbols,
    /// and `index` events.
    pub fn rounds_before(
        &mut self,
        (symbols, index): (u64, u64),
        (of_symbols, of_events): (u64, u64),
        times: u64,
    ) -> u64 {
        let next = self.symbols.as_mut().and_then(|it| it.peek().copied());
        let symbols = next.map(|it| it.saturating_sub(symbols) / of_symbols.max(1));
        let events = self.closed.saturating_sub(index) / of_events.max(1);
        times.min(events).min(symbols.unwrap_or(times))
    }

    /// Whether the return that `events` just gave, as the `index`-th event (from 1), is one.
    pub fn is_next(&mut self, events: &Events<'_>, index: u64) -> bool {
        if index > self.closed {
            return true;
        }
        let Some(symbols) = &mut self.symbols else {
            return false;
        };
        let here = events.symbols();
        while symbols.next_if(|symbol| *symbol + 1 < here).is_some() {}
        symbols.next_if(|symbol| *symbol + 1 == here).is_some()
    }
}

impl Thread {
    pub(crate) fn inferences(&self) -> Inferred<'_> {
        let told = self.told.as_deref();
        Inferred {
            symbols: told.map(|told| Symbols::new(told).peekable()),
            closed: match told {
                Some(told) => self.events.saturating_sub(told.closed),
                None => u64::MAX,
            },
        }
    }
}
