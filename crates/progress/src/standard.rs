//! Who is right where the members of a communicator do not agree: those who do as in a normal run, however few they are.
//!
//! A normal run tells by the operation with the same number. If it made another number of operations before, as data may ask
//! for, it tells by what came next: whether that operation ever followed the one before it.
//!
//! *Guarantees*: nothing unless all of one side do as they did, and all others do not. *Costs*: the operations of the
//! communicator in both runs, where something does not fit in it. *Not for*: what did not fit later: it follows from the first.

use crate::parting::{Shares, Tasks, Ways, shares};
use lockstep_check::{Aspect, Mismatch, said};
use lockstep_comm::{Collective, Matching, PartId, PartKind};
use lockstep_diagnosis::{Disagreement, Right};
use std::collections::{BTreeMap, BTreeSet};

/// A run, and which operations are which in it.
pub(crate) type Matched<'a> = (&'a Tasks<'a>, &'a Matching);

/// Puts the side that is right first, in the first disagreement of each communicator.
pub(crate) fn judge(disagreements: &mut [Disagreement], here: Matched<'_>, normal: Matched<'_>) {
    let mut seen = BTreeSet::new();
    for disagreement in disagreements {
        let mismatch = &disagreement.mismatch;
        let communicator = mismatch.communicator;
        let is_ordered = ![here.1, normal.1]
            .iter()
            .any(|it| it.is_unordered(communicator));
        if !seen.insert(communicator) || !is_ordered {
            continue;
        }
        let mut beside = Beside {
            here,
            normal,
            ours: shares(here.1, communicator, mismatch.order),
            theirs: shares(normal.1, communicator, usize::MAX),
            ways: Ways::default(),
        };
        let right = beside
            .right(mismatch, Beside::is_as_before)
            .or_else(|| beside.right(mismatch, Beside::follows_as_before));
        if let Some(right) = right {
            disagreement.put_first(right, Right::Normal);
        }
    }
}

/// The operations of a communicator in two runs.
struct Beside<'a> {
    here: Matched<'a>,
    normal: Matched<'a>,
    ours: BTreeMap<u32, Shares>,
    theirs: BTreeMap<u32, Shares>,
    ways: Ways,
}

impl Beside<'_> {
    /// The only side all of whose tasks do as they did, if all others do not.
    fn right(
        &mut self,
        mismatch: &Mismatch,
        is_as: fn(&mut Self, &Mismatch, PartId) -> Option<bool>,
    ) -> Option<usize> {
        let mut right = None;
        for (at, (_, side)) in mismatch.sides.iter().enumerate() {
            let mut answers = side.iter().map(|id| is_as(self, mismatch, *id));
            let first = answers.next()??;
            if !answers.all(|it| it == Some(first)) || first && right.is_some() {
                return None;
            }
            right = right.or(first.then_some(at));
        }
        right
    }

    fn share(of: Matched<'_>, id: PartId) -> Option<&Collective> {
        match &of.0.conversations.get(&id.task)?.parts.get(id.part)?.kind {
            PartKind::Collective(share) => Some(share),
            _ => None,
        }
    }

    /// Whether one says in an operation what it said in another one of the normal run.
    fn says_the_same(&self, aspect: Aspect, id: PartId, normal: PartId) -> Option<bool> {
        let (here, normal) = (
            Self::share(self.here, id)?,
            Self::share(self.normal, normal)?,
        );
        Some(here.name == normal.name && said(aspect, here) == said(aspect, normal))
    }

    /// Whether a task does what it did in the operation of this number, and came to it by the same calls.
    fn is_as_before(&mut self, mismatch: &Mismatch, id: PartId) -> Option<bool> {
        let order = mismatch.order;
        let Some(before) = self.theirs.get(&id.task)?.get(&order).copied() else {
            return Some(false);
        };
        if !self.says_the_same(mismatch.aspect, id, before)? {
            return Some(false);
        }
        let only = |id: PartId| Shares::from([(order, id)]);
        let ours = self.here.0.walk(&only(id), id.task, &mut self.ways)?;
        let theirs = self.normal.0.walk(&only(before), id.task, &mut self.ways)?;
        let (ours, theirs) = (*ours.get(&order)?, *theirs.get(&order)?);
        // Another build has other lines: they count only where it is by nothing else that the sides differ.
        Some(match mismatch.aspect {
            Aspect::Way => ours == theirs,
            _ => self.ways.are_of_the_same_calls(ours, theirs),
        })
    }

    /// Whether what a task does ever came next to what it did just before.
    fn follows_as_before(&mut self, mismatch: &Mismatch, id: PartId) -> Option<bool> {
        let order = mismatch.order;
        let ours = self
            .ours
            .get(&id.task)?
            .range(order.checked_sub(1)?..=order);
        let ours: Shares = ours.map(|(order, id)| (*order, *id)).collect();
        let theirs = self.theirs.get(&id.task)?;
        let walk = self.here.0.walk(&ours, id.task, &mut self.ways)?;
        let normal = self.normal.0.walk(theirs, id.task, &mut self.ways)?;
        let (before, now) = (*walk.get(&(order - 1))?, *walk.get(&order)?);
        let followed = normal
            .iter()
            .zip(normal.iter().skip(1))
            .filter(|((_, a), (_, b))| (**a, **b) == (before, now));
        let followed = followed.filter_map(|(_, (order, _))| theirs.get(order));
        let mut alike =
            followed.map(|it| self.says_the_same(mismatch.aspect, id, *it) == Some(true));
        Some(alike.any(|it| it))
    }
}
