//! The groups of MPI that a thread makes, where it is known who is in them.
//!
//! *Guarantees*: a group that is known has exactly these members. *Not seen*: groups by lists of more ranks than are recorded, of
//! files and of the other side of an intercommunicator. *Costs*: memory for the groups that are there.

use crate::communicators::{CommunicatorId, Group, Resolved};
use crate::membership::Membership;
use crate::routines::Routine;
use lockstep_api::mpi::constants::GROUP_EMPTY;
use lockstep_api::mpi::{Does, Grouping, Kind};
use lockstep_trace::Value;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A group, by how it was made.
pub type MpiGroup = Group<CommunicatorId>;

/// The tasks in a group; `None` where that is not known.
pub fn tasks_of(group: &MpiGroup, members: &Membership) -> Option<Vec<u32>> {
    group.members(&|communicator: &CommunicatorId, is_remote| {
        // Whose side a task is on is not asked here.
        let is_between = members.sides.contains_key(communicator);
        let is_known = !is_remote && !is_between;
        Some(
            members
                .members(*communicator)
                .filter(|_| is_known)?
                .to_vec(),
        )
    })
}

/// Those that are known, by their handles.
#[derive(Debug, Clone, Default)]
pub struct MpiGroups {
    known: FxHashMap<i64, Arc<MpiGroup>>,
}

impl MpiGroups {
    /// The one that a call names.
    pub fn named(&self, event: &Resolved) -> Option<Arc<MpiGroup>> {
        self.given("group", event)
    }

    fn given(&self, name: &str, event: &Resolved) -> Option<Arc<MpiGroup>> {
        let handle = event.handle(name)?;
        match handle.name.as_deref() {
            Some(GROUP_EMPTY) => Some(Arc::new(Group::Ranks(Vec::new()))),
            Some(_) => None,
            None => self.known.get(&handle.raw).cloned(),
        }
    }

    /// What a call will make; `window_of` is the communicator of the window that it names.
    pub fn recipe(
        &self,
        routine: &Routine,
        event: &Resolved,
        window_of: Option<CommunicatorId>,
    ) -> Option<Arc<MpiGroup>> {
        let of = |communicator: Option<CommunicatorId>| communicator.map(Group::Of);
        let given = |name| {
            let known = self.given(name, event);
            known.unwrap_or_else(|| Arc::new(Group::Unknown))
        };
        let group = match routine.meaning.does {
            Does::Group(Grouping::OfCommunicator) => of(event.communicator()),
            Does::Group(Grouping::OfWindow) => of(window_of),
            Does::Group(how) => Group::made(how, given, |name| Some(event.get(name)?.0)),
            _ => None,
        };
        group.map(Arc::new)
    }

    /// A call made groups, or this one.
    pub fn made(&mut self, group: Option<Arc<MpiGroup>>, event: &Resolved) {
        let arguments = event.annotated.arguments.as_deref().unwrap_or_default();
        for argument in arguments {
            if let (Kind::NewGroup, Value::Handle(handle)) = (argument.kind, &argument.value) {
                self.known.remove(&handle.raw);
                if let Some(group) = &group {
                    self.known.insert(handle.raw, group.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::resolved;
    use lockstep_trace::{Argument, Handle};

    fn group(kind: Kind, name: &'static str, raw: i64) -> Argument {
        let value = Value::Handle(Handle { raw, name: None });
        Argument { name, kind, value }
    }

    /// The world of 6 ranks is group 1.
    fn of_the_world() -> MpiGroups {
        let mut it = MpiGroups::default();
        let all = MpiGroup::Of(CommunicatorId(0));
        it.made(
            Some(all.into()),
            &resolved(vec![group(Kind::NewGroup, "group", 1)]),
        );
        it
    }

    /// Who is in what a call makes, which is group `made` from then on.
    fn make(it: &mut MpiGroups, base: &str, given: Vec<Argument>, made: i64) -> Option<Vec<u32>> {
        let routine = Routine::of(&format!("MPI_{base}"));
        let recipe = it.recipe(&routine, &resolved(given), None);
        let back = resolved(vec![group(Kind::NewGroup, "newgroup", made)]);
        it.made(recipe.clone(), &back);
        let members = Membership {
            members: vec![Some((10..16).collect())],
            ..Membership::default()
        };
        tasks_of(&*recipe?, &members)
    }

    fn numbers(name: &'static str, kind: Kind, count: i64, numbers: &[i64]) -> Argument {
        let value = Value::Numbers(count, numbers.into());
        Argument { name, kind, value }
    }

    #[test]
    fn some_of_some() {
        let mut it = of_the_world();
        let mut by_list = |base: &str, of: i64, count: i64, ranks: &[i64], made: i64| {
            let ranks = numbers("ranks", Kind::Ints, count, ranks);
            let given = vec![group(Kind::Group, "group", of), ranks];
            make(&mut it, base, given, made)
        };
        let mut include =
            |of, count, ranks: &[i64], made| by_list("Group_incl", of, count, ranks, made);
        assert_eq!(include(1, 3, &[5, 3, 1], 2), Some(vec![15, 13, 11]));
        assert_eq!(include(2, 2, &[2, 0], 3), Some(vec![11, 15]));
        // Of no such rank, of a group that is not known, and not all of them recorded.
        assert_eq!(include(2, 1, &[3], 4), None);
        assert_eq!(include(9, 1, &[0], 5), None);
        assert_eq!(include(1, 9, &[0], 5), None);
        assert_eq!(by_list("Group_excl", 2, 1, &[1], 6), Some(vec![15, 11]));
    }

    #[test]
    fn by_ranges() {
        let mut it = of_the_world();
        let mut by_ranges = |base: &str, count: i64, ranges: &[i64]| {
            let ranges = numbers("ranges", Kind::Ranges, count, ranges);
            let given = vec![group(Kind::Group, "group", 1), ranges];
            make(&mut it, base, given, 2)
        };
        let some = by_ranges("Group_range_incl", 6, &[4, 0, -2, 1, 1, 1]);
        assert_eq!(some, Some(vec![14, 12, 10, 11]));
        let others = by_ranges("Group_range_excl", 3, &[1, 5, 1]);
        assert_eq!(others, Some(vec![10]));
        assert_eq!(by_ranges("Group_range_incl", 3, &[0, 1, 0]), None);
        assert_eq!(by_ranges("Group_range_incl", 3, &[3, 1, 1]), None);
        assert_eq!(by_ranges("Group_range_incl", 6, &[0, 1, 1]), None);
    }

    #[test]
    fn of_two() {
        let mut it = of_the_world();
        for (made, ranks) in [(2, [3, 1, 2]), (3, [2, 5, 3])] {
            let ranks = numbers("ranks", Kind::Ints, 3, &ranks);
            let given = vec![group(Kind::Group, "group", 1), ranks];
            make(&mut it, "Group_incl", given, made);
        }
        let mut of_two = |base: &str, second: Argument| {
            make(
                &mut it,
                base,
                vec![group(Kind::Group, "group1", 2), second],
                4,
            )
        };
        let other = || group(Kind::Group, "group2", 3);
        assert_eq!(of_two("Group_union", other()), Some(vec![13, 11, 12, 15]));
        assert_eq!(of_two("Group_intersection", other()), Some(vec![13, 12]));
        assert_eq!(of_two("Group_difference", other()), Some(vec![11]));
        assert_eq!(of_two("Group_union", group(Kind::Group, "group2", 9)), None);
        let nobody = Argument {
            name: "group2",
            kind: Kind::Group,
            value: Value::Handle(Handle {
                raw: 7,
                name: Some("MPI_GROUP_EMPTY".to_owned()),
            }),
        };
        assert_eq!(of_two("Group_intersection", nobody), Some(vec![]));
        // One that is made of itself again and again is not followed for ever.
        let grows = |it: &mut MpiGroups| {
            let given = ["group1", "group2"].map(|name| group(Kind::Group, name, 2));
            make(it, "Group_union", given.into(), 2)
        };
        let mut known = (0..100).map(|_| grows(&mut it).is_some());
        assert!(known.next() == Some(true) && !known.all(|it| it));
    }
}
