//! Who is to blame that others wait: what each detector says, in the one order of [`lockstep_diagnosis`].
//!
//! Nothing here knows which of two answers is better: the detectors are asked, and their hypotheses ranked.

use crate::astray::astray;
use crate::blame::{causes, deeds, differed, misled};
use crate::cause::{Cause, Deed};
use crate::clause::{Mismatched, Unreceived};
use crate::displaced::displaced;
use crate::ends::{crashed, ended};
use crate::group::Order;
use crate::observe::{Normal, Observed};
use crate::outnumbered::outnumbered;
use crate::past::{went_ahead, went_on};
use crate::progress::Progress;
use crate::task::{Activity, Group};
use crate::waits::Waiting;
use lockstep_comm::{Conversation, Matching};
use lockstep_diagnosis::{Disagreement, Hypothesis, Kind, Right, origin, ranked};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// What detectors look at.
pub(crate) struct Scene<'a> {
    pub observed: &'a Observed,
    pub normal: Option<&'a Normal<'a>>,
    pub matching: &'a Matching,
    pub waiting: &'a Waiting,
    pub disagreements: &'a [Disagreement],
    pub groups: &'a [Group],
    pub order: &'a Order,
    /// The groups that hold the others up.
    pub least: &'a [usize],
    /// Whether MPI may have ended the job for a mistake.
    pub are_ended_amiss: bool,
}

/// Why others wait.
pub(crate) struct Suspicion {
    /// What is told, the most certain first.
    pub causes: Vec<Cause>,
    /// Whether a message stood in the place of another.
    pub is_displaced: bool,
    /// Whether that made others wait, or die.
    pub is_by_displaced: bool,
    /// Whether somebody has yet to come: it computes.
    pub is_late: bool,
}

impl Scene<'_> {
    fn holding(&self) -> impl Iterator<Item = (u32, Activity)> {
        let groups = self.least.iter().map(|it| &self.groups[*it]);
        groups.flat_map(|it| it.tasks.iter().map(|task| (*task, it.activity)))
    }

    /// Those who are wrong, by a normal run, in an operation that cannot complete.
    fn wrong(&self) -> BTreeSet<u32> {
        let stops = self.disagreements.iter().find(|it| it.mismatch.prevents());
        let first = stops.map(|it| origin(self.disagreements, it));
        let first = first.filter(|it| it.right == Right::Normal);
        let wrong = first.into_iter().flat_map(Disagreement::wrong);
        wrong.flat_map(|it| &it.1).map(|it| it.task).collect()
    }

    /// Asks every detector, and ranks what they say.
    pub fn suspicion(&self) -> Suspicion {
        let Self {
            observed, waiting, ..
        } = *self;
        let conversations = &observed.conversations;
        let died = crashed(&observed.tasks);
        let all: Vec<u32> = observed.tasks.keys().copied().collect();
        let those = if self.are_ended_amiss { &all } else { &died };
        let computing = self.holding().filter(|it| it.1 == Activity::Computation);
        // Of who died more is known than of who computes.
        let late: Vec<u32> = match those.is_empty() {
            true => computing.map(|it| it.0).collect(),
            false => Vec::new(),
        };
        let displaced = displaced(conversations, self.matching, those, &late);
        let owed = waiting.with(&displaced);
        let left = ended(&observed.tasks, waiting);
        // What is sent to a task that is gone stays where it is, and so does all behind it.
        let is_gone = !died.is_empty() || !left.is_empty();
        let none = Waiting::default();
        let missed = match waiting.stuck.is_empty() || is_gone {
            true => none.with(&displaced),
            false => Cow::Borrowed(waiting),
        };
        let normals = self.normal.map(|it| &it.conversations);
        let astray = astray(conversations, normals, self.matching, &missed);
        let held_up: BTreeSet<u32> = self.holding().map(|it| it.0).collect();
        let wrong = self.wrong();
        let roots = self.normal.map(|it| &it.roots);
        let departed = causes(observed, roots, &owed, &wrong);
        // What a task computes with need not be why it does so forever: its sender has to be known of something else.
        let known: BTreeSet<u32> = (departed.iter().map(|it| it.task))
            .chain(astray.iter().map(|it| it.task()))
            .collect();
        let displacers = displaced.iter().map(|it| it.to);
        let counts = late.is_empty() || displacers.clone().any(|it| known.contains(&it));
        let displacers: BTreeSet<u32> = displacers.filter(|_| counts).collect();
        let bare = [(Kind::Died, died), (Kind::Left, left)]
            .into_iter()
            .chain([(Kind::Displaced, displacers.iter().copied().collect())]);
        let bare = bare.flat_map(|(kind, tasks): (Kind, Vec<u32>)| {
            let each = tasks.into_iter();
            each.map(move |it| Hypothesis::new(it, kind))
        });
        let bare: Vec<Hypothesis> = bare.collect();
        let mut causes = differed(self.disagreements, conversations, waiting);
        causes.extend(deeds(astray, self.groups, self.order, &owed, conversations));
        causes.extend(departed);
        let suppose = |mut causes: Vec<Cause>| {
            for it in &mut causes {
                it.suppose(&held_up, &wrong, self.normal.is_some());
            }
            told(causes, &bare)
        };
        let mut causes = suppose(causes);
        // Only if nothing else is known: the first of these that knows something.
        let last: [Detector<'_>; 4] = [
            |it, said| misled(it.disagreements, said, it.waiting),
            |it, said| went_on(it.groups, it.order, it.waiting, said),
            |it, said| Vec::from_iter(went_ahead(it.groups, it.order, it.waiting, said)),
            |it, _| outnumbered(it.groups, it.waiting),
        ];
        for detector in last {
            if causes.is_empty() {
                causes = suppose(detector(self, conversations));
            }
        }
        Suspicion {
            causes,
            is_displaced: !displaced.is_empty(),
            is_by_displaced: !displacers.is_empty(),
            is_late: !late.is_empty(),
        }
    }
}

/// What finds causes in a scene and what its tasks said.
type Detector<'a> = fn(&Scene<'a>, &BTreeMap<u32, Conversation>) -> Vec<Cause>;

/// Of causes, those that are told beside what is known of who is gone.
fn told(causes: Vec<Cause>, bare: &[Hypothesis]) -> Vec<Cause> {
    let own = causes.iter().map(|it| it.hypothesis);
    let all: Vec<Hypothesis> = own.chain(bare.iter().copied()).collect();
    let mut causes: Vec<Option<Cause>> = causes.into_iter().map(Some).collect();
    let places = ranked(&all).into_iter().map(|it| it.1);
    places.filter_map(|it| causes.get_mut(it)?.take()).collect()
}

impl Progress {
    /// Who is to blame that others wait, of processes: all that are as certain as the first, and what each did, if that is known.
    #[must_use]
    pub fn suspects(&self) -> Vec<(u32, Option<Charge<'_>>)> {
        if !self.is_mpi {
            return Vec::new();
        }
        let of_unreceived = self.unreceived.iter();
        let mut all: Vec<Hypothesis> = (self.causes.iter().map(|it| it.hypothesis))
            .chain(of_unreceived.map(|it| Hypothesis::new(it.from, Kind::Unreceived)))
            .collect();
        let groups = self.least.iter().filter_map(|it| self.groups.get(*it));
        let each = groups.flat_map(|it| it.tasks.iter().map(move |task| (*task, it.activity)));
        let gone = each.filter_map(|(task, activity)| {
            let kind = match activity {
                _ if self.tasks.get(&task).is_some_and(|it| it.crashed) => Kind::Died,
                Activity::Ended => Kind::Left,
                Activity::Computation => Kind::Computes,
                Activity::Communication | Activity::Finished => return None,
            };
            Some(Hypothesis::new(task, kind))
        });
        let gone: Vec<Hypothesis> = gone.collect();
        // What most do is no sign of one of them.
        if 2 * gone.len() <= self.tasks.len() {
            all.extend(gone);
        }
        let order = ranked(&all);
        let Some((best, first)) = order.first().copied() else {
            return Vec::new();
        };
        let cause = |place: usize| self.causes.get(place);
        // Of several that left the way the first says why, and the others may have left it for that.
        let is_alike = |it: &usize| match (cause(first), cause(*it)) {
            (Some(first), Some(it)) if first.is_departure() => first.is_as(it),
            _ => true,
        };
        let as_certain = order.iter().take_while(|it| it.0 == best);
        let places = as_certain.map(|it| it.1).filter(is_alike);
        let stops_it = |it: &&Cause| matches!(it.deed, Deed::Differed { stops: true, .. });
        let is_alone = self.causes.iter().filter(stops_it).count() == 1;
        let charge = |it: &Hypothesis, place| match (cause(place), it.kind, &self.stops) {
            (Some(it), _, Some(stops)) if is_alone && stops_it(&it) => {
                Some(Charge::Differed(stops))
            }
            (Some(cause), ..) => Some(Charge::Caused(cause)),
            (None, Kind::Unreceived, _) => self.unreceived.as_ref().map(Charge::Unreceived),
            (None, ..) => None,
        };
        let each = places.map(|it| (all[it].suspect, charge(&all[it], it)));
        each.collect()
    }
}

/// What a suspect did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge<'a> {
    /// It made others wait.
    Caused(&'a Cause),
    /// It alone did otherwise than most in a collective operation, which cannot complete.
    Differed(&'a Mismatched),
    /// It sent a message that nobody received.
    Unreceived(&'a Unreceived),
}
