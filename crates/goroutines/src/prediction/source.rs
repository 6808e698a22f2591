//! Paths of the source that an execution did not go, but was near: it took the lock that they begin with.

use super::locks::{Asked, Edge};
use super::{Context, Delay, Finding, Suspicion};
use crate::execution::Action;
use crate::paths::{Hazard, Nesting, Paths, Taken, Wanted};
use crate::tree::Place;
use crate::words::short;
use std::collections::BTreeMap;

/// Who asked for locks, by line.
type ByPlace<'a> = BTreeMap<Place, Vec<&'a Asked>>;

pub(super) fn findings(context: &Context<'_, '_>, paths: &Paths, found: &mut Vec<Finding>) {
    if paths.hazards.is_empty() && paths.nestings.is_empty() {
        return;
    }
    let mut by_place = ByPlace::new();
    for asked in context.record.locks.asked() {
        if let Some(place) = context.place(asked.step.site) {
            by_place.entry(place).or_default().push(asked);
        }
    }
    for hazard in &paths.hazards {
        let (Hazard::Again { held, .. } | Hazard::Kept { held, .. }) = hazard;
        if let Some(asked) = by_place.get(&held.place).and_then(|it| it.first()) {
            found.push(one_lock(context, asked, hazard));
        }
    }
    let order = LockOrder {
        context,
        paths,
        by_place: &by_place,
    };
    for nesting in &paths.nestings {
        found.extend(order.circle(nesting));
    }
}

/// `, through f.go:12 and f.go:30,`
fn through(wanted: &Wanted) -> String {
    match wanted.via.iter().map(short).collect::<Vec<_>>() {
        via if via.is_empty() => String::new(),
        via => format!(", through {},", via.join(" and ")),
    }
}

/// `f.go:12, through f.go:30,`
fn at(wanted: &Wanted) -> String {
    format!("{}{}", short(&wanted.place), through(wanted))
}

fn one_lock(context: &Context<'_, '_>, asked: &Asked, hazard: &Hazard) -> Finding {
    let who = context.words.who(asked.step.goroutine);
    let locks = |held: &Taken| match held.reading {
        true => format!("{who} read-locks {} at {}", held.said, short(&held.place)),
        false => format!("{who} locks {} at {}", held.said, short(&held.place)),
    };
    let (suspicion, sentence, places) = match hazard {
        Hazard::Again { held, wanted } => (
            Suspicion::DoubleLock,
            format!(
                "{}, and a way from there locks it again at {} before it is given back",
                locks(held),
                at(wanted)
            ),
            [&wanted.place, &held.place]
                .into_iter()
                .chain(&wanted.via)
                .cloned()
                .collect(),
        ),
        Hazard::Kept { held, out } => (
            Suspicion::MissedUnlock,
            format!(
                "{}, and a way from there returns at {} without giving it back, as others do",
                locks(held),
                short(out)
            ),
            vec![held.place.clone(), out.clone()],
        ),
    };
    context.finding_at(
        suspicion,
        sentence,
        places,
        &[asked.step.goroutine],
        Vec::new(),
    )
}

struct LockOrder<'c, 'r, 'a> {
    context: &'c Context<'r, 'a>,
    paths: &'c Paths,
    by_place: &'c ByPlace<'r>,
}

impl LockOrder<'_, '_, '_> {
    /// Whether a goroutine that took the lock of `first` could be kept by one that has what `first` wants, and wants what it has.
    fn circle(&self, first: &Nesting) -> Option<Finding> {
        let takers = self.by_place.get(&first.held.place)?;
        for taker in takers {
            for edge in self.context.record.locks.edges() {
                if self.closes(first, taker, edge) {
                    let site = self.context.place(edge.step.site);
                    let (Some(site), Some(held)) = (site, self.context.place(edge.held_at)) else {
                        continue;
                    };
                    return Some(self.finding(first, taker, &edge.step, &held, &site));
                }
            }
        }
        None
    }

    fn class(&self, place: Option<Place>) -> Option<&str> {
        self.paths.classes.get(&place?)?.as_deref()
    }

    /// Whether what another goroutine did closes the circle.
    fn closes(&self, first: &Nesting, taker: &Asked, edge: &Edge) -> bool {
        let held = self.class(self.context.place(edge.held_at));
        edge.wanted == taker.object
            && held == Some(&first.wanted.class)
            && !(first.wanted.reading && edge.held_reading)
            && !(first.held.reading && edge.wanted_reading)
            && edge.step.beside(&taker.step)
            && !edge.gates.keys().any(|it| taker.gates.contains(it))
    }

    fn finding(
        &self,
        first: &Nesting,
        taker: &Asked,
        other: &super::Step,
        held: &Place,
        wanted: &Place,
    ) -> Finding {
        let words = &self.context.words;
        let sentence = format!(
            "locks are taken in a circle of orders: {} locks {} at {}, and on a way from there wants another at {}; {}, which holds that one since {}, wants the first at {}",
            words.who(taker.step.goroutine),
            first.held.said,
            short(&first.held.place),
            at(&first.wanted),
            words.who(other.goroutine),
            short(held),
            short(wanted)
        );
        let places = [&first.wanted.place, wanted, &first.held.place, held].map(Clone::clone);
        let steer = |place: &Place| Delay {
            place: place.clone(),
            action: Action::Lock,
        };
        self.context.finding_at(
            Suspicion::LockOrder,
            sentence,
            places.to_vec(),
            &[taker.step.goroutine, other.goroutine],
            vec![steer(&first.wanted.place), steer(wanted)],
        )
    }
}
