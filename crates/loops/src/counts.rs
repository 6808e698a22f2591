//! What an ordinary sequence carries while it is folded.

use crate::COPIES;
use crate::body::BodyId;
use crate::element::{Element, Loop, Trips, TripsMark, append_all};
use crate::stack::Content;

/// Content of an ordinary sequence: the trip counts of loops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts;

impl Counts {
    /// Adds a block as one iteration.
    #[inline]
    fn enter(inner: &mut Vec<Trips>, block: &mut [Element]) {
        let mut index = 0;
        for element in block {
            // Most are none.
            if matches!(element, Element::Symbol(_)) {
                continue;
            }
            if let Element::Loop(looped) = std::mem::replace(element, Element::Symbol(0)) {
                if inner.len() == index {
                    inner.push(Trips::default());
                }
                inner[index].enter(*looped);
                index += 1;
            }
        }
    }
}

impl Content for Counts {
    type Item = Element;

    #[inline]
    fn create(&mut self, items: &mut Vec<Element>, length: usize, body: BodyId) {
        let mut inner = Vec::new();
        let start = items.len() - COPIES * length;
        for block in items[start..].chunks_mut(length) {
            Self::enter(&mut inner, block);
        }
        items.truncate(start);
        items.push(Element::Loop(Box::new(Loop {
            body,
            count: COPIES as u64,
            inner,
        })));
    }

    #[inline]
    fn extend(&mut self, items: &mut Vec<Element>, length: usize) {
        let start = items.len() - length;
        let Some((Element::Loop(looped), block)) = items[start - 1..].split_first_mut() else {
            return;
        };
        looped.count += 1;
        Self::enter(&mut looped.inner, block);
        items.truncate(start);
    }

    fn merge(&mut self, items: &mut Vec<Element>) {
        let later = items.pop();
        if let (Some(Element::Loop(looped)), Some(Element::Loop(later))) = (items.last_mut(), later)
        {
            looped.count += later.count;
            append_all(&mut looped.inner, later.inner);
        }
    }

    type Mark = (u64, Vec<TripsMark>);

    fn mark(&self, looped: &Element) -> Self::Mark {
        match looped {
            Element::Symbol(_) => (0, Vec::new()),
            Element::Loop(looped) => (looped.count, Trips::marks(&looped.inner)),
        }
    }

    fn again(&mut self, looped: &mut Element, (count, marks): &Self::Mark, times: u64) {
        if let Element::Loop(looped) = looped {
            looped.count += (looped.count - count) * times;
            Trips::again(&mut looped.inner, marks, times);
        }
    }
}
