//! Groups of MPI, by how they were made: of a communicator, and of each other.

use lockstep_api::mpi::Grouping;
use lockstep_trace::Value;
use std::sync::Arc;

/// A group of processes; `C` is what a communicator is to whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group<C> {
    /// Made by nobody whom we saw, or by calls whose arguments were lost.
    Unknown,
    /// These ranks of a world: nobody is `MPI_GROUP_EMPTY`.
    Ranks(Vec<u32>),
    /// Those of a communicator.
    Of(C),
    /// The other side of an intercommunicator.
    Remote(C),
    /// Of another group those with these ranks in it, in this order.
    Include(Arc<Self>, Vec<i64>),
    /// The others.
    Exclude(Arc<Self>, Vec<i64>),
    /// Those of the first, and then of the second.
    Union(Arc<Self>, Arc<Self>),
    /// Those of the first that are in the second.
    Intersection(Arc<Self>, Arc<Self>),
    /// Those of the first that are not.
    Difference(Arc<Self>, Arc<Self>),
}

/// Steps in which a group was made, at most: who is in one of more is not known. Asking who is in a group takes as many.
const MOST_STEPS: usize = 1 << 12;

impl<C> Group<C> {
    /// What a call makes of other groups; `None` where it makes none of them. `given` is the group that it was given by this
    /// name, `find` any other argument.
    pub fn made<'v>(
        how: Grouping,
        given: impl Fn(&'static str) -> Arc<Self>,
        find: impl Fn(&'static str) -> Option<&'v Value>,
    ) -> Option<Self> {
        let listed = || match find("ranks")? {
            Value::Numbers(count, ranks) if *count == ranks.len() as i64 => Some(ranks.clone()),
            _ => None,
        };
        let some = |ranks: Option<Vec<i64>>, how: fn(Arc<Self>, Vec<i64>) -> Self| {
            ranks.map_or(Self::Unknown, |ranks| how(given("group"), ranks))
        };
        let in_ranges = || find("ranges").and_then(ranks_of);
        let both = |how: fn(Arc<Self>, Arc<Self>) -> Self| how(given("group1"), given("group2"));
        let group = match how {
            Grouping::Include => some(listed(), Self::Include),
            Grouping::Exclude => some(listed(), Self::Exclude),
            Grouping::IncludeRanges => some(in_ranges(), Self::Include),
            Grouping::ExcludeRanges => some(in_ranges(), Self::Exclude),
            Grouping::Union => both(Self::Union),
            Grouping::Intersection => both(Self::Intersection),
            Grouping::Difference => both(Self::Difference),
            _ => return None,
        };
        Some(match group.steps() > MOST_STEPS {
            true => Self::Unknown,
            false => group,
        })
    }

    fn steps(&self) -> usize {
        match self {
            Self::Unknown | Self::Ranks(_) | Self::Of(_) | Self::Remote(_) => 0,
            Self::Include(of, _) | Self::Exclude(of, _) => 1 + of.steps(),
            Self::Union(a, b) | Self::Intersection(a, b) | Self::Difference(a, b) => {
                1 + a.steps() + b.steps()
            }
        }
    }

    /// Who is in it, in order; `side` gives the members of a communicator, or of its other side. `None` where one of them does
    /// not know it, or a rank is not there.
    pub fn members(&self, side: &impl Fn(&C, bool) -> Option<Vec<u32>>) -> Option<Vec<u32>> {
        let both = |a: &Self, b: &Self| Some((a.members(side)?, b.members(side)?));
        Some(match self {
            Self::Unknown => return None,
            Self::Ranks(ranks) => ranks.clone(),
            Self::Of(communicator) => side(communicator, false)?,
            Self::Remote(communicator) => side(communicator, true)?,
            Self::Include(of, chosen) => {
                let of = of.members(side)?;
                let rank = |at: &i64| of.get(usize::try_from(*at).ok()?).copied();
                chosen.iter().map(rank).collect::<Option<_>>()?
            }
            Self::Exclude(of, chosen) => {
                let of = of.members(side)?.into_iter().zip(0..);
                let left = of.filter(|(_, at)| !chosen.contains(at));
                left.map(|(rank, _)| rank).collect()
            }
            Self::Union(a, b) => {
                let (mut a, mut b) = both(a, b)?;
                b.retain(|it| !a.contains(it));
                a.extend(b);
                a
            }
            Self::Intersection(a, b) => {
                let (mut a, b) = both(a, b)?;
                a.retain(|it| b.contains(it));
                a
            }
            Self::Difference(a, b) => {
                let (mut a, b) = both(a, b)?;
                a.retain(|it| !b.contains(it));
                a
            }
        })
    }
}

/// The ranks of ranges of them: first, last and stride of each, all of which were recorded; `None` where that is no ranges, or more
/// ranks than any job has.
fn ranks_of(ranges: &Value) -> Option<Vec<i64>> {
    let Value::Numbers(count, triples) = ranges else {
        return None;
    };
    if usize::try_from(*count) != Ok(triples.len()) {
        return None;
    }
    let mut ranks = Vec::new();
    for range in triples.chunks_exact(3) {
        let (first, last, stride) = (range[0], range[1], range[2]);
        let more = last.checked_sub(first)?.checked_div(stride)?;
        if !(0..MOST_RANKS).contains(&more) || ranks.len() as i64 > MOST_RANKS {
            return None;
        }
        ranks.extend((0..=more).map(|it| first + it * stride));
    }
    Some(ranks)
}

/// Ranks that ranges are taken for.
const MOST_RANKS: i64 = 1 << 20;
