//! A round of a loop that lacks a call: what a task did between two calls of the function in which it is now, once, and
//! neither it nor any other before or since.
//!
//! [`crate::habit`] holds calls of one function together. Here it is what lies between two calls from one place, whatever
//! functions it is in:
//!
//! ```text
//!  a worker   Recv  work  Send  │ Recv  work  Send │ Recv  work       │ Recv (open)
//!                    [Send]     │       [Send]     │        []        │
//! ```
//! Where rounds are few and long, what comes next to what tells: between these two calls there always was another.
//!
//! ```text
//!  the last of a line   Recv Send Recv Send Allreduce │ Recv Send Recv · Allreduce (open)
//! ```
//! A call counts as its whole path, from `main` to the function of MPI, so that `give` to the left and `receive` from the
//! right are told apart by who calls them.
//!
//! *Guarantees*: the round went its way once in all that is looked at, and is a usual one but for a single call; nothing of
//! a task that has a second way that is rare. The two calls came together once in the task, among its last [`LATE`], and in
//! none of the others that make the call between them. *Costs*: the last [`MOST`] calls of a task and of [`PEERS`] others, [`ALL`] of a
//! job; nothing is told of who comes behind these. *Not for*: tasks that send by their data, whose rounds are all their own.

use crate::departure::communicates;
use crate::habit::{Missed, OFTEN, lacks};
use lockstep_calltree::{Forest, FunctionKey, Item, Label, NodeId};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Calls that are looked at of each task, the last ones.
const MOST: usize = 1 << 14;
/// Calls that are looked at of all tasks together: 8 bytes each.
const ALL: usize = 1 << 22;
/// So many rounds that the task made itself are a habit.
const OWN: u64 = 3;
/// Two calls between which one is missing are among so many.
const LATE: usize = 8;
/// Different calls that come right behind one, of those that are counted: what has more of them goes by the data.
const MOST_NEXT: usize = 64;
/// Other tasks that are looked at.
const PEERS: usize = 16;

/// What a task left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lapse {
    /// The functions that were open in the call, outermost first, and that of MPI.
    pub path: Vec<String>,
    /// In how many other rounds the task made it.
    pub own: u64,
    /// In how many rounds others did.
    pub others: u64,
}

impl Lapse {
    /// The function of MPI.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

/// The path of a call, numbered: the same in all tasks.
type Path = u32;
/// A call, and whether it is open.
type Said = (Path, bool);
/// What is between two calls.
type Round = Vec<Path>;

/// Paths by number: the path of the caller, and the function.
#[derive(Default)]
struct Paths {
    numbers: FxHashMap<(Path, FunctionKey), Path>,
    all: Vec<(Path, FunctionKey)>,
}

/// Outside of all functions.
const NOWHERE: Path = Path::MAX;

impl Paths {
    fn number(&mut self, caller: Path, function: FunctionKey) -> Path {
        let next = self.all.len() as Path;
        let number = *self.numbers.entry((caller, function)).or_insert(next);
        if number == next {
            self.all.push((caller, function));
        }
        number
    }

    /// Its functions, outermost first.
    fn names(&self, forest: &Forest, mut path: Path) -> Vec<String> {
        let mut names = Vec::new();
        while let Some((caller, function)) = self.all.get(path as usize) {
            names.push(forest.function(*function).name.clone());
            path = *caller;
        }
        names.reverse();
        names
    }
}

/// The tasks of a job, by what they communicated.
pub(crate) struct Rounds<'a> {
    forest: &'a Forest,
    roots: &'a [NodeId],
    paths: Paths,
    /// Whether something communicates in a subtree.
    talks: FxHashMap<NodeId, bool>,
    /// The last calls in each tree, and how many more may be looked at.
    known: FxHashMap<NodeId, Rc<[Said]>>,
    left: usize,
    steps: FxHashMap<NodeId, Rc<Steps>>,
}

impl<'a> Rounds<'a> {
    /// Of tasks with these trees.
    pub fn new(forest: &'a Forest, roots: &'a [NodeId]) -> Self {
        Self {
            forest,
            roots,
            paths: Paths::default(),
            talks: FxHashMap::default(),
            known: FxHashMap::default(),
            left: ALL,
            steps: FxHashMap::default(),
        }
    }

    /// The one call that others miss of the task of this number among the roots, and that a round of it lacks, or that always
    /// was between two others.
    pub fn lapse(&mut self, task: usize, missed: &Missed) -> Option<Lapse> {
        let of_round = self.short_round(task, missed);
        of_round.or_else(|| self.short_cut(task, missed))
    }

    /// The one round that lacks it.
    fn short_round(&mut self, task: usize, missed: &Missed) -> Option<Lapse> {
        let own = self.calls(*self.roots.get(task)?)?;
        let (last, is_open) = *own.last()?;
        if !is_open {
            return None;
        }
        let ways = rounds(&own, last);
        let mut others: FxHashMap<Round, u64> = FxHashMap::default();
        for peer in self.peers(task) {
            for (round, times) in rounds(&self.calls(self.roots[peer])?, last) {
                *others.entry(round).or_default() += times;
            }
        }
        let of_others = |round: &Round| others.get(round).copied().unwrap_or(0);
        let is_rare = |it: &(&Round, &u64)| *it.1 < OWN && of_others(it.0) < OFTEN;
        let mut rare = ways.iter().filter(is_rare);
        let (Some((round, 1)), None) = (rare.next(), rare.next()) else {
            return None;
        };
        if of_others(round) > 0 {
            return None;
        }
        let mut lacking = ways.keys().filter_map(|usual| {
            let missing = lacks(round, usual)?;
            let (_, function) = *self.paths.all.get(missing as usize)?;
            missed.is(self.forest, function).then_some(missing)
        });
        let missing = lacking.next()?;
        let made = |rounds: &FxHashMap<Round, u64>| {
            let with = rounds.iter().filter(|(round, _)| round.contains(&missing));
            with.map(|it| it.1).sum()
        };
        Some(Lapse {
            path: self.paths.names(self.forest, missing),
            own: made(&ways),
            others: made(&others),
        })
    }

    /// The two calls that came together without it.
    fn short_cut(&mut self, task: usize, missed: &Missed) -> Option<Lapse> {
        let root = *self.roots.get(task)?;
        let own = self.calls(root)?;
        own.last().filter(|it| it.1)?;
        let steps = self.steps(root)?;
        let late = own.len().saturating_sub(LATE);
        let mut found: Vec<([Path; 3], u64)> = Vec::new();
        for pair in own[late..].windows(2) {
            let (before, behind) = (pair[0].0, pair[1].0);
            if steps.times(before, behind) != 1 {
                continue;
            }
            let between = steps.behind(before).filter_map(|(between, first)| {
                let (_, function) = *self.paths.all.get(between as usize)?;
                let second = steps.times(between, behind);
                let often = first.max(second);
                // The end of a loop over one call is not one too few.
                let is_another = ![before, behind].contains(&between);
                let is_usual = is_another && often >= OWN && second > 0;
                let is_usual = is_usual && missed.is(self.forest, function);
                is_usual.then_some(([before, between, behind], often))
            });
            found.extend(between);
        }
        let [([before, between, behind], own)] = found[..] else {
            return None;
        };
        let mut others = 0;
        for peer in self.peers(task) {
            let steps = self.steps(self.roots[peer])?;
            let (first, second) = (steps.times(before, between), steps.times(between, behind));
            if first > 0 && second > 0 {
                if steps.times(before, behind) > 0 {
                    return None;
                }
                others += first.max(second);
            }
        }
        (own + others >= OFTEN).then(|| Lapse {
            path: self.paths.names(self.forest, between),
            own,
            others,
        })
    }

    /// How the last calls of a task followed each other.
    fn steps(&mut self, root: NodeId) -> Option<Rc<Steps>> {
        if let Some(known) = self.steps.get(&root) {
            return Some(known.clone());
        }
        let found = Rc::new(Steps::new(&self.calls(root)?));
        self.steps.insert(root, found.clone());
        Some(found)
    }

    /// Those next to a task, which do most like it.
    fn peers(&self, task: usize) -> Vec<usize> {
        let all = self.roots.len();
        let beside = (1..all).flat_map(|by| [task.checked_sub(by), task.checked_add(by)]);
        let peers = beside.flatten().filter(|it| *it < all);
        peers.take(PEERS).collect()
    }

    /// The last calls of a task that communicate, in order; `None` where there was too much to look at before.
    fn calls(&mut self, root: NodeId) -> Option<Rc<[Said]>> {
        if let Some(known) = self.known.get(&root) {
            return Some(known.clone());
        }
        let found: Rc<[Said]> = self.last_calls(root).into();
        self.left = self.left.checked_sub(found.len())?;
        self.known.insert(root, found.clone());
        Some(found)
    }

    fn last_calls(&mut self, root: NodeId) -> Vec<Said> {
        struct Frame<'a> {
            items: &'a [Item],
            /// How often its last item was gone through.
            done: u64,
            path: Path,
        }
        let forest = self.forest;
        let mut found = Vec::new();
        let mut stack = vec![Frame {
            items: forest.node(root).items,
            done: 0,
            path: NOWHERE,
        }];
        // From the end: the last item first.
        while let Some(frame) = stack.last_mut() {
            let Some((item, rest)) = frame.items.split_last() else {
                stack.pop();
                continue;
            };
            if frame.done == item.times || !self.talks(item.node) {
                (frame.items, frame.done) = (rest, 0);
                continue;
            }
            frame.done += 1;
            let path = frame.path;
            let node = forest.node(item.node);
            let path = match node.label {
                Label::Call(call) => {
                    let path = self.paths.number(path, call.function);
                    if communicates(forest, call.function) {
                        found.push((path, call.open));
                        if found.len() == MOST {
                            break;
                        }
                        continue;
                    }
                    path
                }
                _ => path,
            };
            stack.push(Frame {
                items: node.items,
                done: 0,
                path,
            });
        }
        found.reverse();
        found
    }

    fn talks(&mut self, root: NodeId) -> bool {
        if let Some(known) = self.talks.get(&root) {
            return *known;
        }
        let mut next = vec![(root, false)];
        while let Some((id, is_done)) = next.pop() {
            let node = self.forest.node(id);
            let is_it =
                matches!(node.label, Label::Call(it) if communicates(self.forest, it.function));
            if is_done || is_it {
                let below = |it: &Item| self.talks.get(&it.node) == Some(&true);
                let talks = is_it || node.items.iter().any(below);
                self.talks.insert(id, talks);
            } else if !self.talks.contains_key(&id) {
                next.push((id, true));
                next.extend(node.items.iter().map(|it| (it.node, false)));
            }
        }
        self.talks[&root]
    }
}

/// What came right behind each call, and how often.
struct Steps(FxHashMap<Path, Vec<(Path, u64)>>);

impl Steps {
    fn new(calls: &[Said]) -> Self {
        let mut steps: FxHashMap<Path, Vec<(Path, u64)>> = FxHashMap::default();
        for pair in calls.windows(2) {
            let behind = steps.entry(pair[0].0).or_default();
            match behind.iter().position(|it| it.0 == pair[1].0) {
                Some(at) => behind[at].1 += 1,
                None if behind.len() < MOST_NEXT => behind.push((pair[1].0, 1)),
                None => {}
            }
        }
        Self(steps)
    }

    fn times(&self, before: Path, behind: Path) -> u64 {
        let mut steps = self.behind(before);
        steps.find(|it| it.0 == behind).map_or(0, |it| it.1)
    }

    fn behind(&self, before: Path) -> impl Iterator<Item = (Path, u64)> {
        self.0.get(&before).into_iter().flatten().copied()
    }
}

/// What lies between two calls of one path, and how often.
fn rounds(calls: &[Said], of: Path) -> FxHashMap<Round, u64> {
    let mut found: FxHashMap<Round, u64> = FxHashMap::default();
    // Before the first is no round, nor is behind the last.
    let mut rounds = calls.split(|it| it.0 == of).skip(1).peekable();
    while let Some(round) = rounds.next() {
        if rounds.peek().is_some() {
            let round = round.iter().map(|it| it.0).collect();
            *found.entry(round).or_default() += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree_tests::tree;

    fn lapse(texts: &[&str], missed: &Missed) -> Option<Lapse> {
        let mut forest = Forest::new();
        let roots: Vec<NodeId> = texts.iter().map(|it| tree(&mut forest, it)).collect();
        Rounds::new(&forest, &roots).lapse(0, missed)
    }

    /// The call that is missing with its caller, and the rounds of the task and of others that have it.
    fn of_messages(texts: &[&str]) -> Option<(String, u64, u64)> {
        let missed = Missed {
            message: true,
            ..Missed::default()
        };
        let found = lapse(texts, &missed)?;
        let call = &found.path[found.path.len() - 2..];
        Some((call.join("/"), found.own, found.others))
    }

    const ROUND: &str = "MPI_Recv work MPI_Send ";

    #[test]
    fn a_round_without_its_send() {
        let (own, many) = (ROUND.repeat(2), ROUND.repeat(9));
        let first = format!("worker( {own} MPI_Recv work MPI_Recv(");
        let other = format!("worker( {many} MPI_Recv(");
        let found = of_messages(&[&first, &other]);
        let send = || "worker/MPI_Send".to_owned();
        assert_eq!(found, Some((send(), 2, 9)));
        // Rounds since then, and a round of its own only.
        let since = format!("worker( {own} MPI_Recv work {own} MPI_Recv(");
        let found = of_messages(&[&since]);
        assert_eq!(found, Some((send(), 4, 0)));
        // Others do so as well; it is not in MPI; few rounds; others miss a barrier.
        let alike = format!("worker( {many} MPI_Recv work {many} MPI_Recv(");
        assert_eq!(of_messages(&[&first, &alike]), None);
        assert_eq!(
            of_messages(&[
                &format!("worker( {many} MPI_Recv work MPI_Recv work("),
                &other
            ]),
            None
        );
        assert_eq!(of_messages(&[&first]), None);
        let missed = Missed {
            collectives: [std::sync::Arc::from("MPI_Barrier")].into(),
            ..Missed::default()
        };
        assert_eq!(lapse(&[&first, &other], &missed), None);
    }

    #[test]
    fn calls_are_told_apart_by_their_callers_and_rounds_may_differ() {
        let step = "give( MPI_Send ) take( MPI_Recv ) give( ) ";
        let fifth = format!("{}residual( MPI_Allreduce ) ", step.repeat(5));
        let text = format!(
            "main( {}{step}{step}give( ) take( MPI_Recv(",
            fifth.repeat(4)
        );
        let found = of_messages(&[&text]);
        assert_eq!(found, Some(("give/MPI_Send".to_owned(), 21, 0)));
    }

    #[test]
    fn two_calls_between_which_there_always_was_another() {
        let step = "take( MPI_Recv ) give( MPI_Send ) ";
        let five = format!("{}residual( MPI_Allreduce ) ", step.repeat(5));
        // The last of a line, before the operation of all; its first behind it, which does not receive before.
        let last = format!(
            "main( {five} {} take( MPI_Recv ) residual( MPI_Allreduce(",
            step.repeat(4)
        );
        let back = "give( MPI_Send ) take( MPI_Recv ) ";
        let first_five = format!("{}residual( MPI_Allreduce ) ", back.repeat(5));
        let first = format!("main( {first_five} {first_five} take( MPI_Recv(");
        let within = format!("main( {} take( MPI_Recv(", five.repeat(2));
        let send = || "give/MPI_Send".to_owned();
        let found = of_messages(&[&last, &first, &within]);
        assert_eq!(found, Some((send(), 9, 10)));
        let found = of_messages(&[&first, &within]);
        assert_eq!(found, Some((send(), 10, 0)));
        // Another of its part does so; it is long ago; it did so twice.
        let ago = format!(
            "main( {five} take( MPI_Recv ) residual( MPI_Allreduce ) {five} take( MPI_Recv("
        );
        assert_eq!(of_messages(&[&last, &ago]), None);
        assert_eq!(of_messages(&[&ago, &within]), None);
        let row = format!("main( {} MPI_Barrier(", "MPI_Send ".repeat(9));
        assert_eq!(of_messages(&[&row]), None);
        let twice = format!(
            "main( {five} take( MPI_Recv ) residual( MPI_Allreduce ) take( MPI_Recv ) residual( MPI_Allreduce("
        );
        assert_eq!(of_messages(&[&twice, &within]), None);
    }

    #[test]
    fn who_sends_by_the_data_left_nothing_out() {
        let mut text = "main( ".to_owned();
        for round in 0..40 {
            text += "MPI_Recv ";
            text += &"MPI_Send ".repeat(round * 7 % 5 * (round % 11));
        }
        text += "MPI_Recv(";
        assert_eq!(of_messages(&[&text]), None);
    }
}
