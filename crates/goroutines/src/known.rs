//! Who may have a reference to an object: an upper bound, from who made it, who used it, and who made whom.
//!
//! A reference comes to a goroutine by making the object, from the goroutine that made it (a closure, an
//! argument), or through something that both share. The first two are followed here exactly; of the third we
//! take the widest view: whoever shares any object with somebody who knows this one may know it. *For* showing that
//! nobody can end a wait; *not for* showing that somebody can.

use crate::execution::{Execution, GoroutineId, ObjectId};
use crate::replay::Replay;
use std::collections::BTreeSet;

/// Answers for all objects of one execution.
pub(crate) struct Known<'r, 'a> {
    replay: &'r Replay<'a>,
    /// By goroutine: the objects that it used.
    used: Vec<BTreeSet<ObjectId>>,
}

impl<'r, 'a> Known<'r, 'a> {
    pub fn new(replay: &'r Replay<'a>) -> Self {
        let mut used = vec![BTreeSet::new(); replay.execution.goroutines.len()];
        for at in 0..replay.execution.objects.len() {
            let object = ObjectId(at as u32);
            for (goroutine, _) in replay.uses(object).keys() {
                if let Some(used) = used.get_mut(goroutine.0 as usize) {
                    used.insert(object);
                }
            }
        }
        Self { replay, used }
    }

    /// Goroutines that may have a reference to `object`.
    pub fn by(&self, object: ObjectId) -> BTreeSet<GoroutineId> {
        let execution = self.replay.execution;
        let made = self.replay.made(object);
        let since = made.map_or(0, |(_, event)| event);
        let users: BTreeSet<GoroutineId> = self.replay.uses(object).keys().map(|it| it.0).collect();
        let mut known = users.clone();
        match made {
            Some((maker, _)) => {
                known.insert(maker);
                // Who got it at birth got it from a parent that had it.
                for user in &users {
                    let mut child = *user;
                    while self.is_born_after(child, since)
                        && let Some(parent) = parent(execution, child)
                    {
                        if !known.insert(parent) {
                            break;
                        }
                        child = parent;
                    }
                }
            }
            // It may be older than its first use: it came from above all its users.
            None => known.extend(common_ancestors(execution, &users)),
        }
        let direct = known.clone();
        let mut shared = BTreeSet::new();
        for it in &direct {
            if let Some(used) = self.used.get(it.0 as usize) {
                shared.extend(used);
            }
        }
        for (id, _) in execution.with_ids() {
            let inherits = parent(execution, id).is_some_and(|it| known.contains(&it))
                && self.is_born_after(id, since);
            let shares = !self.used[id.0 as usize].is_disjoint(&shared);
            if inherits || shares {
                known.insert(id);
            }
        }
        known
    }

    fn is_born_after(&self, goroutine: GoroutineId, event: usize) -> bool {
        self.replay.created(goroutine).is_none_or(|it| it >= event)
    }
}

fn parent(execution: &Execution, child: GoroutineId) -> Option<GoroutineId> {
    // Ids are given in order of creation: a parent that is not older would be damage, and a circle.
    let parent = execution.goroutines.get(child.0 as usize)?.parent?;
    (parent < child).then_some(parent)
}

fn ancestors(execution: &Execution, of: GoroutineId) -> Vec<GoroutineId> {
    std::iter::successors(Some(of), |it| parent(execution, *it)).collect()
}

/// All from the users up to the lowest that is above all of them, or above the one that there is; to the
/// roots if there is none.
fn common_ancestors(execution: &Execution, users: &BTreeSet<GoroutineId>) -> BTreeSet<GoroutineId> {
    let lines: Vec<Vec<GoroutineId>> = users.iter().map(|it| ancestors(execution, *it)).collect();
    let above = usize::from(users.len() == 1);
    let lowest = lines.first().and_then(|line| {
        line.iter()
            .skip(above)
            .find(|it| lines.iter().all(|line| line.contains(it)))
            .copied()
    });
    let mut found = BTreeSet::new();
    for line in lines {
        for it in line {
            found.insert(it);
            if Some(it) == lowest {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::Action;
    use crate::sample::{MAIN, Sample};

    fn known(sample: &Sample, object: ObjectId) -> Vec<u32> {
        let replay = Replay::whole(&sample.execution);
        let known = Known::new(&replay).by(object);
        known.iter().map(|it| it.0).collect()
    }

    #[test]
    fn a_channel_is_unknown_to_who_was_made_before_it() {
        let mut sample = Sample::new();
        let before = sample.go(MAIN, 5);
        let channel = sample.channel(MAIN, 10, 0);
        let after = sample.go(MAIN, 11);
        let grandchild = sample.go(after, 20);
        sample.waits(grandchild, 21, Action::Send, channel);
        assert_eq!(known(&sample, channel), [0, 2, 3]);
        let _ = before;
    }

    #[test]
    fn who_shares_anything_with_one_that_knows_may_know() {
        let mut sample = Sample::new();
        let pool = sample.channel(MAIN, 4, 0);
        let worker = sample.go(MAIN, 5);
        sample.waits(worker, 50, Action::Receive, pool);
        let reply = sample.channel(MAIN, 10, 0);
        sample.does(MAIN, 11, Action::Send, pool);
        sample.waits(MAIN, 12, Action::Receive, reply);
        assert_eq!(known(&sample, reply), [0, 1]);
    }

    #[test]
    fn what_was_not_seen_made_is_known_below_the_common_ancestor_of_its_users() {
        let mut sample = Sample::new();
        let lock = sample.mutex(3);
        let left = sample.go(MAIN, 5);
        let right = sample.go(MAIN, 6);
        let one = sample.go(left, 7);
        let two = sample.go(left, 8);
        sample.does(one, 9, Action::Lock, lock);
        assert_eq!(known(&sample, lock), [left.0, one.0, two.0]);
        sample.waits(two, 10, Action::Lock, lock);
        assert_eq!(known(&sample, lock), [left.0, one.0, two.0]);
        let _ = right;
    }
}
