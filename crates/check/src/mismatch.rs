//! Collective operations that do not fit: the members of a communicator do not call the same.

use lockstep_api::mpi::constants::{PROC_NULL, ROOT};
use lockstep_api::mpi::rules::{self, Rule};
use lockstep_api::mpi::{Counts, Does, Shape};
use lockstep_comm::{
    Amount, Collective, CommunicatorId, Conversation, Matching, Membership, PartId, PartKind, Role,
    are_unlike,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// In what members differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aspect {
    /// Another function.
    Function,
    /// Another root.
    Root,
    /// Another reduction.
    Reduction,
    /// Another count or datatype.
    Size,
    /// Another of what else they have to say alike.
    Terms,
    /// Nothing that they say: they came to it by other calls, and went apart there.
    Way,
}

impl Aspect {
    /// The rule that is broken, if one is.
    #[must_use]
    pub const fn rule(self) -> Option<&'static Rule> {
        Some(match self {
            Self::Function => rules::OTHER_COLLECTIVE,
            Self::Root => rules::OTHER_ROOT,
            Self::Reduction => rules::OTHER_REDUCTION,
            Self::Size => rules::OTHER_SIZE,
            Self::Terms => rules::OTHER_TERMS,
            Self::Way => return None,
        })
    }
}

/// A collective operation whose members do not agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// In which communicator.
    pub communicator: CommunicatorId,
    /// Which of its operations, from 0.
    pub order: usize,
    /// In what they differ; the first that does.
    pub aspect: Aspect,
    /// What they said, and who: most first.
    pub sides: Vec<(String, Vec<PartId>)>,
    /// Whether it did not complete for some of them.
    pub open: bool,
}

impl Mismatch {
    /// Whether such an operation cannot complete: libraries may let another size pass.
    #[must_use]
    pub fn prevents(&self) -> bool {
        match self.aspect {
            Aspect::Function | Aspect::Root => true,
            Aspect::Size => self.open,
            Aspect::Reduction | Aspect::Terms | Aspect::Way => false,
        }
    }
}

/// What members say, in the order in which it is compared.
const SAID: [Aspect; 5] = [
    Aspect::Function,
    Aspect::Root,
    Aspect::Reduction,
    Aspect::Size,
    Aspect::Terms,
];

/// What a member says of an aspect.
pub fn said(aspect: Aspect, share: &Collective) -> Option<String> {
    match aspect {
        Aspect::Function => Some(share.name.to_string()),
        Aspect::Root => share.root.map(|root| root.to_string()),
        Aspect::Reduction => {
            let reduction = share.reduction.as_ref().filter(|_| matters(share))?;
            Some(reduction.to_string())
        }
        Aspect::Size => {
            let datatype = share.size.datatype.as_ref().filter(|_| matters(share))?;
            Some(match share.size.count? {
                // Nothing is nothing, of whatever type.
                0 => "no elements".to_owned(),
                count => format!("{count} {datatype}"),
            })
        }
        Aspect::Terms => share.terms.as_ref().map(ToString::to_string),
        Aspect::Way => None,
    }
}

/// Every collective operation whose members do not agree, in order.
#[must_use]
pub fn mismatches(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for (communicator, order, shares) in matching.collectives() {
        let part = |id: &PartId| tasks.get(&id.task)?.parts.get(id.part);
        let open = shares.iter().filter_map(part).any(|part| !part.complete);
        let shares: Vec<(PartId, &Collective)> = shares
            .iter()
            .filter_map(|id| match &part(id)?.kind {
                PartKind::Collective(share) => Some((*id, share)),
                _ => None,
            })
            .collect();
        // Mostly all say the same.
        let first = shares.first();
        let are_same =
            first.is_none_or(|(_, first)| shares.iter().all(|(_, it)| is_same(first, it)));
        let has_amounts = |(_, it): &(PartId, &Collective)| it.amounts.is_some();
        let between = members.sides.get(&communicator);
        if are_same && between.is_none() && !shares.iter().any(has_amounts) {
            continue;
        }
        let rootless = || Some((Aspect::Root, rootless(&shares, between?)?));
        let differing = SAID.into_iter().find_map(|aspect| {
            // Between two groups, who says what is asked before who says another thing.
            if aspect == Aspect::Root
                && let Some(found) = rootless()
            {
                return Some(found);
            }
            let sides = match (aspect, between) {
                (Aspect::Size, Some(groups)) if is_by_group(first?.1) => groups
                    .iter()
                    .map(|group| of_group(&shares, group, aspect))
                    .find(|it| it.len() > 1)?,
                _ => sides(&shares, aspect),
            };
            (sides.len() > 1).then_some((aspect, sides))
        });
        let differing = differing.or_else(|| Some((Aspect::Size, unequal(&shares)?)));
        let differing = differing.or_else(|| {
            let members = members.members(communicator)?;
            Some((Aspect::Terms, unpaired(&shares, members)?))
        });
        if let Some((aspect, sides)) = differing {
            found.push(Mismatch {
                communicator,
                order,
                aspect,
                sides,
                open,
            });
        }
    }
    found
}

/// Whether how much somebody says, and which reduction, means anything: who is of the root's group and not the root may say what
/// it will.
fn matters(share: &Collective) -> bool {
    share.role != Role::Bystander
}

/// Whether between two groups the members of each have to say the same size, and need not say that of the other group.
fn is_by_group(share: &Collective) -> bool {
    use Counts::{BlockEach, OneBlock, ResultBlock};
    matches!(
        share.meaning.does,
        Does::Collective(Shape::All, OneBlock | BlockEach | ResultBlock)
    )
}

/// What was said in one of two groups.
fn of_group(
    shares: &[(PartId, &Collective)],
    group: &[u32],
    aspect: Aspect,
) -> Vec<(String, Vec<PartId>)> {
    let of_group = shares.iter().filter(|(id, _)| group.contains(&id.task));
    sides(&of_group.copied().collect::<Vec<_>>(), aspect)
}

/// Of an operation with a root between two groups, whoever the one group takes for its root and does not say that it is, or says so
/// and is not.
fn rootless(
    shares: &[(PartId, &Collective)],
    sides: &[Arc<[u32]>; 2],
) -> Option<Vec<(String, Vec<PartId>)>> {
    // The root's group is the one in which some say that they are the root, or are not.
    let of_root = |side: &Arc<[u32]>| {
        let mut of_side = shares.iter().filter(|(id, _)| side.contains(&id.task));
        of_side.any(|(_, it)| it.role != Role::Member)
    };
    let named = || shares.iter().filter(|(_, it)| it.role == Role::Member);
    let (own, other) = match sides {
        [first, second] if of_root(first) != of_root(second) => match of_root(second) {
            true => (first, second),
            false => (second, first),
        },
        [first, second] => match first.contains(&named().next()?.0.task) {
            true => (first, second),
            false => (second, first),
        },
    };
    let mut roots = named().filter(|(id, _)| own.contains(&id.task));
    let root = roots.next()?.1.root?;
    if !roots.all(|(_, it)| it.root == Some(root)) {
        return None;
    }
    let is_root = |task: u32| {
        let rank = other.iter().position(|it| *it == task);
        rank.and_then(|it| i64::try_from(it).ok()) == Some(root)
    };
    let said = |id: &PartId, it: &Collective| match (it.role, is_root(id.task)) {
        (Role::Root, true) | (Role::Bystander, false) => None,
        (Role::Root, false) => Some(format!("{ROOT} instead of {PROC_NULL}")),
        (Role::Bystander, true) => Some(format!("{PROC_NULL} instead of {ROOT}")),
        (Role::Member, true) => Some(format!("{} instead of {ROOT}", it.root?)),
        (Role::Member, false) => Some(format!("{} instead of {PROC_NULL}", it.root?)),
    };
    let of_other = shares.iter().filter(|(id, _)| other.contains(&id.task));
    let mut wrong = of_other.filter_map(|(id, it)| Some((*id, said(id, it)?)));
    let (first, said) = wrong.next()?;
    let others = wrong.filter(|it| it.1 == said).map(|it| it.0);
    let wrong = std::iter::once(first).chain(others).collect();
    let of_group = shares.iter().filter(|(id, _)| own.contains(&id.task));
    let those = of_group.map(|(id, _)| *id).collect();
    Some(vec![(root.to_string(), those), (said, wrong)])
}

fn is_same(one: &Collective, other: &Collective) -> bool {
    (&one.name, one.root, &one.reduction, &one.terms, &one.size)
        == (
            &other.name,
            other.root,
            &other.reduction,
            &other.terms,
            &other.size,
        )
}

/// A sender and a receiver of whom one sends another amount, or other elements, than the other expects. Whoever is in most such
/// pairs is last. O(members^2) where amounts are known.
fn unequal(shares: &[(PartId, &Collective)]) -> Option<Vec<(String, Vec<PartId>)>> {
    let senders = shares
        .iter()
        .filter_map(|(id, it)| Some((id, it.amounts.as_ref()?.sent.as_ref()?)));
    // Those are looked at edge by edge.
    let senders = senders.filter(|(_, it)| !matches!(it, Amount::Edges(_)));
    let pairs = senders.flat_map(|(from, sent)| {
        let receivers = shares
            .iter()
            .filter_map(|(id, it)| Some((id, it.amounts.as_ref()?.expected.as_ref()?)));
        receivers.map(move |(to, expected)| ((from, sent), (to, expected)))
    });
    let pairs = pairs.filter_map(|((from, sent), (to, expected))| {
        let ((sent, unit), (expected, other)) = (sent.of(to.task)?, expected.of(from.task)?);
        let differ = match unit == other {
            true => sent != expected,
            false => sent > 0 && are_unlike((unit, sent), (other, expected)),
        };
        differ.then_some(((*from, sent, unit), (*to, expected, other)))
    });
    let pairs: Vec<_> = pairs.collect();
    let culprit = in_most(pairs.iter().map(|(from, to)| (from.0.task, to.0.task)))?;
    let of_it = |(from, to): &&((PartId, _, _), (PartId, _, _))| {
        [from.0.task, to.0.task].contains(&culprit)
    };
    let ((from, sent, unit), (to, expected, other)) = pairs.iter().find(of_it)?;
    let mut sides = vec![
        (
            format!("{expected} {other} from rank {}", from.task),
            vec![*to],
        ),
        (format!("{sent} {unit} for rank {}", to.task), vec![*from]),
    ];
    if from.task != culprit {
        sides.reverse();
    }
    Some(sides)
}

/// The task that is in most of these pairs; of several, the one that comes first.
fn in_most(pairs: impl Iterator<Item = (u32, u32)>) -> Option<u32> {
    let mut times: FxHashMap<u32, (usize, Reverse<usize>)> = FxHashMap::default();
    for (at, task) in pairs.flat_map(|(one, other)| [one, other]).enumerate() {
        times.entry(task).or_insert((0, Reverse(at))).0 += 1;
    }
    let most = times.into_iter().max_by_key(|it| it.1)?;
    Some(most.0)
}

/// Of a graph of which each tells its own edges, one that its two ends do not tell alike: that of whom most such edges are, and
/// the other. O(edges).
fn unpaired(
    shares: &[(PartId, &Collective)],
    members: &[u32],
) -> Option<Vec<(String, Vec<PartId>)>> {
    let listed = |amount: &Option<Amount>| match amount {
        Some(Amount::Edges(ranks)) => Some(ranks.clone()),
        _ => None,
    };
    let named = |rank: &i64| usize::try_from(*rank).ok().and_then(|it| members.get(it));
    let mut told: BTreeMap<u32, PartId> = BTreeMap::new();
    // From whom to whom: how often the one says so, and the other.
    let mut edges: BTreeMap<(u32, u32), (u32, u32)> = BTreeMap::new();
    for (id, share) in shares {
        let Some(amounts) = &share.amounts else {
            continue;
        };
        let (Some(to), Some(from)) = (listed(&amounts.sent), listed(&amounts.expected)) else {
            continue;
        };
        told.insert(id.task, *id);
        for to in to.iter().filter_map(named) {
            edges.entry((id.task, *to)).or_default().0 += 1;
        }
        for from in from.iter().filter_map(named) {
            edges.entry((*from, id.task)).or_default().1 += 1;
        }
    }
    edges.retain(|(from, to), (out, into)| {
        out != into && told.contains_key(from) && told.contains_key(to)
    });
    let culprit = in_most(edges.keys().copied())?;
    let of_it = |(from, to): &(u32, u32)| *from == culprit || *to == culprit;
    let ((from, to), (out, into)) = edges.into_iter().find(|(it, _)| of_it(it))?;
    let said = |times, way, other| match times {
        0 => format!("no edge {way} rank {other}"),
        1 => format!("an edge {way} rank {other}"),
        _ => format!("{times} edges {way} rank {other}"),
    };
    let mut sides = vec![
        (said(out, "to", to), vec![*told.get(&from)?]),
        (said(into, "from", from), vec![*told.get(&to)?]),
    ];
    // Who is at fault is told first, as those are of whom there are fewest.
    if from == culprit {
        sides.reverse();
    }
    Some(sides)
}

/// What was said, and by whom; most first. Who said nothing is on no side.
fn sides(shares: &[(PartId, &Collective)], aspect: Aspect) -> Vec<(String, Vec<PartId>)> {
    let mut sides: BTreeMap<String, Vec<PartId>> = BTreeMap::new();
    for (id, share) in shares {
        if let Some(said) = said(aspect, share) {
            sides.entry(said).or_default().push(*id);
        }
    }
    let mut sides: Vec<_> = sides.into_iter().collect();
    sides.sort_by_key(|(_, who)| std::cmp::Reverse(who.len()));
    sides
}
