//! Turns of many tasks that belong to each other are settled as they are read: a job that talks all the time leaves
//! nothing to keep.
//!
//! The tasks that have nothing but turns to be settled are played, every send waiting for its receive and every
//! collective operation for all members:
//!
//! ```text
//!  rank 2   [ send to 3, receive from 3 ] [ send to 3, ...        turn by turn: begun parts that
//!               │            ▲                                    belong together are linked
//!  rank 3   [ receive from 2, send to 2 ] [ receive from 2, ...
//! ```
//! Turns that were played to their end are settled, but for those that a link leads to from one that was not, and so
//! on back.
//!
//! *Guarantees*: what is left out is a consistent cut as in [`crate::settled`], and not later than that: everybody waits for at
//! least as many as there. *Costs*: O(parts), some tens of nanoseconds each. *Not for*: what else is between a job's
//! tasks, which stays for [`crate::settled`].

use crate::fit::misfit;
use crate::message::{Collective, CommunicatorId, PartKind, Peer};
use crate::turn::{Tail, Turn};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A task that has nothing but turns to be settled.
pub struct Speaker<'a> {
    /// Which.
    pub task: u32,
    /// Its turns.
    pub tail: &'a Tail,
}

/// What a part belongs to.
#[derive(Debug, Clone, Copy)]
enum Link {
    None,
    /// A turn of another speaker.
    Turn(u32, u32),
    /// A collective operation.
    Together(u32),
}

/// Where a speaker is.
struct Player<'a> {
    task: u32,
    tail: &'a Tail,
    turn: Option<Arc<Turn>>,
    /// Its number, and that of its step that goes on.
    at: usize,
    step: usize,
    /// Of the parts of its turn: how many are begun, and which are complete.
    begun: usize,
    complete: u64,
    /// Something does not fit: it goes no further.
    is_over: bool,
    /// Of the parts of all turns so far, and where those of each turn begin.
    links: Vec<Link>,
    firsts: Vec<usize>,
    /// Collective operations that it came to.
    came: FxHashMap<CommunicatorId, usize>,
}

/// A collective operation.
struct Together {
    share: Collective,
    /// Speaker, turn, part.
    shares: Vec<(usize, usize, usize)>,
    /// Something does not fit.
    is_wrong: bool,
}

struct Play<'a> {
    players: Vec<Player<'a>>,
    by_task: FxHashMap<u32, usize>,
    sizes: &'a dyn Fn(CommunicatorId) -> Option<usize>,
    together: Vec<Together>,
    by_order: FxHashMap<(CommunicatorId, usize), usize>,
    /// Speakers whose parts became complete.
    awake: Vec<usize>,
}

/// For each of the speakers, how many turns are settled. `sizes` are those of communicators whose members are known.
pub fn settled(
    speakers: &[Speaker<'_>],
    sizes: &dyn Fn(CommunicatorId) -> Option<usize>,
) -> Vec<usize> {
    let players = speakers.iter().map(|it| Player {
        task: it.task,
        tail: it.tail,
        turn: None,
        at: 0,
        step: 0,
        begun: 0,
        complete: 0,
        is_over: false,
        links: Vec::new(),
        firsts: Vec::new(),
        came: FxHashMap::default(),
    });
    let mut play = Play {
        players: players.collect(),
        by_task: (0..).zip(speakers).map(|(at, it)| (it.task, at)).collect(),
        sizes,
        together: Vec::new(),
        by_order: FxHashMap::default(),
        awake: Vec::new(),
    };
    for player in 0..speakers.len() {
        play.begin(player);
    }
    while let Some(player) = play.awake.pop() {
        play.go_on(player);
    }
    play.cut()
}

impl Play<'_> {
    /// Begins the turn that a player is at.
    fn begin(&mut self, at: usize) {
        let player = &mut self.players[at];
        let number = player.tail.turns.get(player.at);
        player.turn = number.and_then(|it| player.tail.turn(*it)).cloned();
        (player.step, player.begun, player.complete) = (0, 0, 0);
        player.firsts.push(player.links.len());
        if let Some(turn) = &player.turn {
            let length = player.links.len() + turn.parts.len();
            player.links.resize(length, Link::None);
            self.step(at);
        }
    }

    /// Begins the parts of the step that a player is at.
    fn step(&mut self, at: usize) {
        let player = &self.players[at];
        let Some(turn) = player.turn.clone() else {
            return;
        };
        let until = turn.steps.get(player.step).map_or(0, |it| it.until);
        for part in player.begun..until {
            self.players[at].begun = part + 1;
            match &turn.parts[part] {
                PartKind::Collective(share) => self.come(at, part, share),
                kind => self.meet(at, part, kind),
            }
        }
        self.awake.push(at);
    }

    /// As far as a player comes.
    fn go_on(&mut self, at: usize) {
        let player = &mut self.players[at];
        let Some(turn) = player.turn.as_ref().filter(|_| !player.is_over) else {
            return;
        };
        let needs = turn.steps.get(player.step).map_or(0, |it| it.needs);
        if player.complete & needs != needs {
            return;
        }
        player.step += 1;
        if player.step < turn.steps.len() {
            self.step(at);
        } else {
            player.at += 1;
            self.begin(at);
        }
    }

    /// A message begins, or is asked for: it may be its time.
    fn meet(&mut self, at: usize, part: usize, kind: &PartKind) {
        let other = match kind {
            PartKind::Send { to: other, .. } | PartKind::Receive { from: other, .. } => *other,
            PartKind::Own => Peer::Nobody,
            _ => Peer::Unknown,
        };
        let other = match other {
            Peer::Nobody => {
                self.players[at].complete |= 1 << part;
                return;
            }
            Peer::Task(task) => self.by_task.get(&task).copied(),
            Peer::Any | Peer::Unknown => None,
        };
        let Some(other) = other else { return };
        let me = self.players[at].task;
        let player = &self.players[other];
        let Some(turn) = &player.turn else { return };
        let whom = player.task;
        // The first that fits, in the order in which they began; not itself.
        let fitting = (0..player.begun).find(|there| {
            player.complete & 1 << there == 0
                && (other != at || *there != part)
                && match (kind, &turn.parts[*there]) {
                    (sent @ PartKind::Send { .. }, got @ PartKind::Receive { .. }) => {
                        belong((me, sent), (whom, got))
                    }
                    (got @ PartKind::Receive { .. }, sent @ PartKind::Send { .. }) => {
                        belong((whom, sent), (me, got))
                    }
                    _ => false,
                }
        });
        let Some(there) = fitting else { return };
        let fits = match (kind, &turn.parts[there]) {
            (PartKind::Send { size, .. }, PartKind::Receive { size: room, .. })
            | (PartKind::Receive { size: room, .. }, PartKind::Send { size, .. }) => {
                misfit(size, room).is_none()
            }
            _ => false,
        };
        self.link(
            at,
            part,
            Link::Turn(other as u32, self.players[other].at as u32),
        );
        self.link(
            other,
            there,
            Link::Turn(at as u32, self.players[at].at as u32),
        );
        if fits {
            self.players[at].complete |= 1 << part;
            self.players[other].complete |= 1 << there;
            self.awake.push(other);
        } else {
            self.players[at].is_over = true;
            self.players[other].is_over = true;
        }
    }

    fn link(&mut self, at: usize, part: usize, link: Link) {
        let player = &mut self.players[at];
        let first = player.firsts.last().copied().unwrap_or(0);
        if let Some(place) = player.links.get_mut(first + part) {
            *place = link;
        }
    }

    /// A player comes to a collective operation.
    fn come(&mut self, at: usize, part: usize, share: &Collective) {
        let Some(communicator) = share.communicator else {
            return;
        };
        let player = &mut self.players[at];
        let order = player.came.entry(communicator).or_default();
        let key = (communicator, *order);
        *order += 1;
        let share_of = (at, player.at, part);
        let next = self.together.len();
        let number = *self.by_order.entry(key).or_insert(next);
        if number == next {
            self.together.push(Together {
                share: share.clone(),
                shares: Vec::new(),
                is_wrong: false,
            });
        }
        self.link(at, part, Link::Together(number as u32));
        let together = &mut self.together[number];
        // Whether amounts fit is not looked at here.
        together.is_wrong |= together.share != *share || share.amounts.is_some();
        together.shares.push(share_of);
        let is_whole = (self.sizes)(communicator) == Some(together.shares.len());
        if is_whole && !together.is_wrong {
            self.by_order.remove(&key);
            for (at, _, part) in &together.shares {
                self.players[*at].complete |= 1 << part;
                self.awake.push(*at);
            }
        }
    }

    /// The turns of each player that are played, but for those that belong to one that is not.
    fn cut(&self) -> Vec<usize> {
        let mut cut: Vec<usize> = self.players.iter().map(|it| it.at).collect();
        let ends = self.players.iter().map(|it| it.firsts.len());
        let mut kept: Vec<(usize, usize, usize)> = (0..)
            .zip(&cut)
            .zip(ends)
            .map(|((at, cut), end)| (at, *cut, end))
            .collect();
        let mut seen = vec![false; self.together.len()];
        while let Some((at, from, until)) = kept.pop() {
            let player = &self.players[at];
            let first = |turn: usize| player.firsts.get(turn).copied();
            let links = first(from).unwrap_or(player.links.len())
                ..first(until).unwrap_or(player.links.len());
            let mut keep = |at: usize, turn: usize| {
                if let Some(cut) = cut.get_mut(at).filter(|it| turn < **it) {
                    kept.push((at, turn, std::mem::replace(cut, turn)));
                }
            };
            for link in player.links.get(links).unwrap_or(&[]) {
                match link {
                    Link::None => {}
                    Link::Turn(at, turn) => keep(*at as usize, *turn as usize),
                    Link::Together(number) => {
                        let number = *number as usize;
                        if !std::mem::replace(&mut seen[number], true) {
                            let shares = &self.together[number].shares;
                            shares.iter().for_each(|(at, turn, _)| keep(*at, *turn));
                        }
                    }
                }
            }
        }
        cut
    }
}

/// Whether a message of one task is for a receive of another.
fn belong((sender, sent): (u32, &PartKind), (receiver, got): (u32, &PartKind)) -> bool {
    match (sent, got) {
        (
            PartKind::Send {
                to,
                tag,
                communicator,
                ..
            },
            PartKind::Receive {
                from,
                tag: wanted,
                communicator: of,
                ..
            },
        ) => {
            *to == Peer::Task(receiver)
                && *from == Peer::Task(sender)
                && communicator == of
                && wanted.is_none_or(|wanted| wanted == *tag)
        }
        _ => false,
    }
}
