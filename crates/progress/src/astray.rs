//! Messages that went astray: to another task, or with another tag, than the one that is waited for.
//!
//! Of a message that nobody took and a receive that nobody serves one side is wrong. Who sent to itself what it never took, where nobody
//! else does, is. Else which one is told by the [`series`](crate::series)
//! of each side: the sender, if what is waited for would have been next when it sent another; the receiver, if a message that
//! nobody took would have been next when it asked for the one that it waits for, now or before: then that receive took what
//! was meant for this one. Where neither series tells, what was usual does:
//! the sender, if the message that is waited for had been sent before (the same pair of tasks and tag) and the one that it
//! sent had not; the receiver, if it is the other way round. Where neither was sent before, the sender, if it tells its messages
//! apart by their tags and the first that nobody took has the one that is waited for; else what *others* sent
//! decides, by distance and tag: programs number messages by their steps. Who waits for a message from anybody waits for the one
//! whose last message nobody took, as it had another tag or went to another task, if nobody ever sent such a one before, and what is
//! waited for was sent. Of those who wait for a message with any tag several may have been meant. Where that does not tell them apart, nobody is named.
//!
//! *Guarantees*: both sides are in the trace. *Costs*: once O(parts) of each task that is waited for, and
//! of all tasks where the second rule is asked; for each who waits, what the other sent that nobody took (256 at most). *Not for*: messages that were never sent ([`crate::departure`]).

use crate::series::{Examples, Next, Said, series};
use crate::waits::{Wait, Waiting, Why};
use lockstep_comm::recent::Way;
use lockstep_comm::{Conversation, Envelope, Matching, PartId, PartKind, Peer};
use lockstep_trace::TraceName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A message that went astray.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misdirection {
    /// Who sent it.
    pub from: u32,
    /// As it was sent.
    pub sent: Envelope,
    /// As it is waited for.
    pub wanted: Envelope,
    /// Whether others wait for it just so, and it is not known who was meant.
    pub others: bool,
    /// Whether the sender is wrong, else the receiver.
    pub by_sender: bool,
    /// Of a receiver that is wrong by its series: whom it asked.
    pub asked: Option<u32>,
    /// Whether a normal run shows it.
    pub by_normal: bool,
    /// The function of who is wrong; the sender's where that is not known of a series.
    pub name: Arc<str>,
    /// Its call: trace and event.
    pub call: Option<(TraceName, u64)>,
}

impl Misdirection {
    /// Who is wrong.
    #[must_use]
    pub fn task(&self) -> u32 {
        match self.by_sender {
            true => self.from,
            false => self.wanted.to,
        }
    }
}

/// The messages that went astray and are waited for; one for each who waits.
pub(crate) fn astray(
    tasks: &BTreeMap<u32, Conversation>,
    normal: Option<&BTreeMap<u32, Conversation>>,
    matching: &Matching,
    waiting: &Waiting,
) -> Vec<Misdirection> {
    let mut usual = Usual {
        tasks,
        examples: Examples::new(tasks, normal),
        matching,
        senders: BTreeMap::new(),
        others: None,
        all: None,
    };
    let (mut found, mut of_any): (Vec<Misdirection>, Vec<Misdirection>) = Default::default();
    let mut of_any_tag: BTreeMap<(u32, usize), Misdirection> = BTreeMap::new();
    for wait in &waiting.waits {
        if found.len() == MOST {
            break;
        }
        if !wait.or_another {
            let to_itself = usual.astray_to_itself(wait);
            if let Some(it) = to_itself.or_else(|| usual.astray_by_series(wait)) {
                found.push(it);
                continue;
            }
        }
        match (wait.or_another, &wait.why) {
            (false, Why::Message(None)) => {
                let Some((operation, it)) = usual.astray_with_any_tag(wait) else {
                    continue;
                };
                of_any_tag
                    .entry((it.from, operation))
                    .and_modify(|known| known.others = true)
                    .or_insert(it);
            }
            (false, _) => found.extend(usual.astray(wait)),
            (true, _) => of_any.extend(usual.astray_to_any(wait)),
        }
    }
    found.extend(of_any_tag.into_values().take(MOST - found.len()));
    // Where several may have been meant, nobody knows which.
    if let [_] = of_any.as_slice() {
        found.append(&mut of_any);
    }
    found
}

/// So many are told.
const MOST: usize = 8;
/// So many messages of a task that nobody took are looked at.
const MOST_STRAYS: usize = 256;

/// A task whose messages have so many tags, and this one alone another, tells them apart by these.
const TAGS: usize = 4;

/// What was usual.
struct Usual<'a> {
    tasks: &'a BTreeMap<u32, Conversation>,
    examples: Examples<'a>,
    matching: &'a Matching,
    /// Of those that were asked for.
    senders: BTreeMap<u32, Sender<'a>>,
    /// Distances and tags of all messages that were taken.
    others: Option<BTreeSet<(i64, i64)>>,
    /// To whom and with which tags they were.
    all: Option<BTreeSet<Envelope>>,
}

/// What a task sent.
struct Sender<'a> {
    /// What was taken: of operations that are settled, and of others.
    settled: &'a BTreeSet<Envelope>,
    /// The latter with the first operation that sent each.
    taken: BTreeMap<Envelope, usize>,
    /// What nobody took and was sent once, and its operation. What nobody ever takes is sent again and again.
    strays: Vec<(Envelope, usize)>,
}

impl<'a> Sender<'a> {
    fn new(task: u32, conversation: &'a Conversation, matching: &Matching) -> Self {
        let (mut taken, mut strays) = (BTreeMap::new(), Vec::new());
        let mut times: BTreeMap<Envelope, usize> = BTreeMap::new();
        for (part, it) in conversation.parts.iter().enumerate() {
            let Some(sent) = it.kind.envelope() else {
                continue;
            };
            if matching.partner(PartId { task, part }).is_some() {
                taken.entry(sent).or_insert(it.operation);
            } else if strays.len() < MOST_STRAYS {
                strays.push((sent, it.operation));
                *times.entry(sent).or_default() += 1;
            }
        }
        strays.retain(|it| times[&it.0] == 1);
        Self {
            settled: &conversation.sent,
            taken,
            strays,
        }
    }

    /// Whether a task tells its messages apart by their tags, and this is the only one with its own.
    fn is_told_by_tag(&self, it: Envelope) -> bool {
        let taken = self.taken.keys().chain(self.settled);
        let all = taken.chain(self.strays.iter().map(|it| &it.0));
        let others = all.filter(|other| **other != it && other.communicator == it.communicator);
        let tags: BTreeSet<i64> = others.map(|it| it.tag).collect();
        tags.len() >= TAGS && !tags.contains(&it.tag)
    }

    /// Whether such a message was taken that was sent before an operation.
    fn is_usual(&self, it: Envelope, before: usize) -> bool {
        let taken = self.taken.get(&it).is_some_and(|first| *first < before);
        taken || self.settled.contains(&it)
    }
}

/// A message that is waited for, and who should send it.
struct Asked<'a> {
    from: u32,
    wanted: Envelope,
    conversation: &'a Conversation,
}

impl Asked<'_> {
    /// Whether a message may have been meant to be this one: another task or another tag it has, not both.
    fn may_be(&self, sent: Envelope) -> bool {
        sent.communicator == self.wanted.communicator
            && (sent.to == self.wanted.to) != (sent.tag == self.wanted.tag)
    }

    fn astray(&self, sent: Envelope, operation: usize, by_sender: bool) -> Option<Misdirection> {
        Some(Misdirection {
            from: self.from,
            sent,
            wanted: self.wanted,
            others: false,
            by_sender,
            asked: None,
            by_normal: false,
            name: self.conversation.operations.get(operation)?.name.clone(),
            call: self.conversation.call(operation),
        })
    }
}

impl<'a> Usual<'a> {
    fn asked(&mut self, wait: &Wait) -> Option<Asked<'a>> {
        let (Why::Message(Some(tag)) | Why::OtherTag(tag, _)) = wait.why else {
            return None;
        };
        self.asked_for(wait, tag)
    }

    fn asked_for(&mut self, wait: &Wait, tag: i64) -> Option<Asked<'a>> {
        let (tasks, from) = (self.tasks, wait.to);
        let conversation = tasks.get(&from)?;
        let new = || Sender::new(from, conversation, self.matching);
        self.senders.entry(from).or_insert_with(new);
        Some(Asked {
            from,
            wanted: Envelope {
                to: wait.from,
                tag,
                communicator: wait.communicator?,
            },
            conversation,
        })
    }

    /// What the sender sent to itself and never took, where nobody ever sends to itself.
    fn astray_to_itself(&mut self, wait: &Wait) -> Option<Misdirection> {
        let asked = self.asked(wait)?;
        let sent = Envelope {
            to: asked.from,
            ..asked.wanted
        };
        let sender = self.senders.get(&asked.from)?;
        let &(_, operation) = sender.strays.iter().find(|it| it.0 == sent)?;
        let new = || distances(self.tasks, self.matching);
        let all = self.others.get_or_insert_with(new);
        let is_usual = all.iter().any(|(away, _)| *away == 0);
        (!is_usual).then(|| asked.astray(sent, operation, true))?
    }

    /// Who is wrong by the series of messages of both sides; `None` where these do not tell.
    fn astray_by_series(&self, wait: &Wait) -> Option<Misdirection> {
        let (Why::Message(Some(tag)) | Why::OtherTag(tag, _)) = wait.why else {
            return None;
        };
        let sent = self.sent_otherwise(wait, tag);
        match (sent, self.asked_otherwise(wait, tag)) {
            (Some(it), None) | (None, Some(it)) => Some(it),
            // Each would explain it, or neither does.
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// A message that nobody took, where the one that is waited for would have been next.
    fn sent_otherwise(&self, wait: &Wait, tag: i64) -> Option<Misdirection> {
        let from = wait.to;
        let conversation = self.tasks.get(&from)?;
        let series = series(conversation, Way::Sent);
        let is_stray = |it: &Said| {
            let is_taken = |part| {
                let id = PartId { task: from, part };
                self.matching.partner(id).is_some()
            };
            it.part.is_some_and(|it| !is_taken(it))
        };
        // What nobody ever takes is sent again and again, others between.
        let is_again = |at: usize, it: &Said| {
            let again = |(other, so): &(usize, &Said)| {
                let between = series.get(at.min(*other)..at.max(*other)).unwrap_or(&[]);
                let is_taken = |other: &Said| other.peer == it.peer && !is_stray(other);
                (so.peer, so.tag) == (it.peer, it.tag) && between.iter().any(is_taken)
            };
            let others = series.iter().enumerate().filter(|it| is_stray(it.1));
            others.take(MOST_STRAYS).any(|it| again(&it))
        };
        let strays = series.iter().enumerate().filter(|it| is_stray(it.1));
        let strays = strays.filter(|(at, it)| !is_again(*at, it));
        let communicator = wait.communicator?;
        let strays = strays.filter(|it| it.1.communicator == communicator);
        let (said, next) = strays.take(MOST_STRAYS).find_map(|(at, it)| {
            let next = self.examples.next(from, Way::Sent, &series, at)?;
            let is_wanted = (next.peer, next.tag) == (wait.from, tag);
            let is_it = is_wanted && it.is_slip(next) && !Examples::wavers(&series, at, next);
            is_it.then_some((it, next))
        })?;
        let operation = conversation.parts.get(said.part?)?.operation;
        Some(Misdirection {
            from,
            sent: Envelope {
                to: said.peer,
                tag: said.tag,
                communicator,
            },
            wanted: Envelope {
                to: wait.from,
                tag,
                communicator,
            },
            others: false,
            by_sender: true,
            asked: None,
            by_normal: next.by_normal,
            name: conversation.operations.get(operation)?.name.clone(),
            call: conversation.call(operation),
        })
    }

    /// A receive for the message that is waited for, the last one or one that took another such, where one that nobody took
    /// would have been next.
    fn asked_otherwise(&self, wait: &Wait, tag: i64) -> Option<Misdirection> {
        let task = wait.from;
        let conversation = self.tasks.get(&task)?;
        let series = series(conversation, Way::Asked);
        let communicator = wait.communicator?;
        let is_it = |it: &Said| (it.peer, it.tag, it.communicator) == (wait.to, tag, communicator);
        let alike = series.iter().enumerate().filter(|it| is_it(it.1));
        // The last ones first, of those the first that is not as it would have been.
        let alike: Vec<(usize, &Said)> = alike.rev().take(MOST_STRAYS).collect();
        let (said, next) = alike.into_iter().rev().find_map(|(at, it)| {
            let next = self.examples.next(task, Way::Asked, &series, at)?;
            let is_it = it.is_slip(next) && self.has_stray(task, it, next);
            (is_it && !Examples::wavers(&series, at, next)).then_some((it, next))
        })?;
        let operation = conversation.parts.get(said.part?)?.operation;
        Some(Misdirection {
            from: next.peer,
            sent: Envelope {
                to: task,
                tag: next.tag,
                communicator,
            },
            wanted: Envelope {
                to: task,
                tag,
                communicator,
            },
            others: false,
            by_sender: false,
            asked: Some(wait.to),
            by_normal: next.by_normal,
            name: conversation.operations.get(operation)?.name.clone(),
            call: conversation.call(operation),
        })
    }

    /// Whether nobody took a message to a task that would have been the next one for a receive.
    fn has_stray(&self, to: u32, receive: &Said, next: Next) -> bool {
        let Some(conversation) = self.tasks.get(&next.peer) else {
            return false;
        };
        let mut parts = conversation.parts.iter().enumerate();
        parts.any(|(part, it)| {
            let id = PartId {
                task: next.peer,
                part,
            };
            matches!(
                it.kind,
                PartKind::Send { to: Peer::Task(receiver), tag, communicator, .. }
                    if (receiver, tag, communicator) == (to, next.tag, receive.communicator)
            ) && self.matching.partner(id).is_none()
        })
    }

    fn astray(&mut self, wait: &Wait) -> Option<Misdirection> {
        let asked = self.asked(wait)?;
        let sender = self.senders.get(&asked.from)?;
        let others = &mut self.others;
        let mut is_others = |it: Envelope| {
            let new = || distances(self.tasks, self.matching);
            let all = others.get_or_insert_with(new);
            all.contains(&distance(asked.from, it))
        };
        // Messages that were sent behind it wait, too; the first is the one.
        let first = sender.strays.iter().find(|it| asked.may_be(it.0));
        let is_own =
            |it: Envelope| first.is_some_and(|first| first.0 == it) && sender.is_told_by_tag(it);
        let mut strays = sender.strays.iter();
        let (sent, operation, by_sender) = strays.find_map(|&(sent, operation)| {
            let are_usual = [sent, asked.wanted].map(|it| sender.is_usual(it, operation));
            let by_sender = asked.may_be(sent).then(|| match are_usual {
                [false, false] if sent.to != asked.wanted.to && is_own(sent) => Some(true),
                [false, false] => tell([sent, asked.wanted].map(&mut is_others)),
                it => tell(it),
            })??;
            let is_it = by_sender || sent.to == asked.wanted.to;
            is_it.then_some((sent, operation, by_sender))
        })?;
        asked.astray(sent, operation, by_sender)
    }

    /// Of who waits for a message with any tag, and got others with this one: what went to somebody else who never did. And its
    /// operation.
    fn astray_with_any_tag(&mut self, wait: &Wait) -> Option<(usize, Misdirection)> {
        let mut asked = self.asked_for(wait, 0)?;
        let sender = self.senders.get(&asked.from)?;
        let to = wait.from;
        let mut strays = sender.strays.iter().rev();
        let &(sent, operation) = strays.find(|(it, operation)| {
            let wanted = Envelope { to, ..*it };
            let is_usual = |it: Envelope| sender.is_usual(it, *operation);
            let is_here = it.to != to && it.communicator == asked.wanted.communicator;
            is_here && !is_usual(*it) && is_usual(wanted)
        })?;
        asked.wanted.tag = sent.tag;
        Some((operation, asked.astray(sent, operation, true)?))
    }

    /// Of who waits for a message from anybody, the one that one of them sent with another tag, or to another.
    fn astray_to_any(&mut self, wait: &Wait) -> Option<Misdirection> {
        let asked = self.asked(wait)?;
        let mut strays = self.senders.get(&asked.from)?.strays.iter().rev();
        let &(sent, operation) = strays.find(|it| asked.may_be(it.0))?;
        let to_either = |it: Envelope| {
            it.communicator == sent.communicator && [sent.to, asked.wanted.to].contains(&it.to)
        };
        let mut sends = asked.conversation.parts.iter().rev();
        let last = sends.find(|it| it.kind.envelope().is_some_and(to_either));
        let is_last = last.is_some_and(|it| it.operation == operation);
        let new = || envelopes(self.tasks, self.matching);
        let all = self.all.get_or_insert_with(new);
        let by_sender = tell([sent, asked.wanted].map(|it| all.contains(&it)));
        let is_it = is_last && by_sender == Some(true);
        is_it.then(|| asked.astray(sent, operation, true)).flatten()
    }
}

/// Whether what was wanted is usual and what was sent is not; the other way round it is no.
fn tell([was_sent, was_wanted]: [bool; 2]) -> Option<bool> {
    (was_sent != was_wanted).then_some(was_wanted)
}

fn distance(from: u32, it: Envelope) -> (i64, i64) {
    (i64::from(it.to) - i64::from(from), it.tag)
}

fn distances(tasks: &BTreeMap<u32, Conversation>, matching: &Matching) -> BTreeSet<(i64, i64)> {
    taken(tasks, matching)
        .map(|(task, it)| distance(task, it))
        .collect()
}

fn envelopes(tasks: &BTreeMap<u32, Conversation>, matching: &Matching) -> BTreeSet<Envelope> {
    taken(tasks, matching).map(|it| it.1).collect()
}

/// All messages that were taken, and who sent each.
fn taken<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    matching: &'a Matching,
) -> impl Iterator<Item = (u32, Envelope)> {
    tasks.iter().flat_map(move |(&task, conversation)| {
        let parts = conversation.parts.iter().enumerate();
        let taken =
            parts.filter(move |(part, _)| matching.partner(PartId { task, part: *part }).is_some());
        let sent = taken.filter_map(|(_, it)| it.kind.envelope());
        let sent = sent.chain(conversation.sent.iter().copied());
        sent.map(move |it| (task, it))
    })
}

#[cfg(test)]
#[path = "astray_tests.rs"]
mod tests;
