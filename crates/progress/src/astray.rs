//! Messages that went astray: to another task, or with another tag, than the one that is waited for.
//!
//! Of a message that nobody took and a receive that nobody serves one side is wrong. Which one is told by what was usual:
//! the sender, if the message that is waited for had been sent before (the same pair of tasks and tag) and the one that it
//! sent had not; the receiver, if it is the other way round. Where neither was sent before, what *others* sent
//! decides, by distance and tag: programs number messages by their steps. Who waits for a message from anybody waits for the one
//! whose last message nobody took, as it had another tag or went to another task, if nobody ever sent such a one before, and what is
//! waited for was sent. Of those who wait for a message with any tag several may have been meant. Where that does not tell them apart, nobody is named.
//!
//! *Guarantees*: both sides are in the trace. *Costs*: once O(parts) of each task that is waited for, and
//! of all tasks where the second rule is asked; for each who waits, what the other sent that nobody took (256 at most). *Not for*: messages that were never sent ([`crate::departure`]).

use crate::matching::{Matching, PartId};
use crate::message::{Conversation, PartKind, Peer};
use crate::waits::{Wait, Waiting, Why};
use lockstep_trace::TraceName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// To whom and with which tag messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Envelope {
    /// To whom.
    pub to: u32,
    /// Its tag.
    pub tag: i64,
}

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
    /// The sender's function.
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

    /// What it did: `sent rank 2 a message with tag 77 instead of 20 in MPI_Isend at halo.c:77`; `site` is ` at halo.c:77`, or
    /// empty.
    #[must_use]
    pub fn sentence(&self, site: &str) -> String {
        let Self {
            from, sent, wanted, ..
        } = self;
        if !self.by_sender {
            let tag = wanted.tag;
            return format!(
                "asks rank {from} for tag {tag}, which sent it tag {}",
                sent.tag
            );
        }
        let place = format!("in {}{site}", self.name);
        match sent.to == wanted.to {
            true => format!(
                "sent rank {} a message with tag {} instead of {} {place}",
                sent.to, sent.tag, wanted.tag
            ),
            false => {
                let to = match sent.to == *from {
                    true => "itself".to_owned(),
                    false => format!("rank {}", sent.to),
                };
                let instead = match self.others {
                    true => " that nobody received".to_owned(),
                    false => format!(" instead of to rank {}", wanted.to),
                };
                format!(
                    "sent a message with tag {} to {to}{instead} {place}",
                    sent.tag
                )
            }
        }
    }
}

/// The messages that went astray and are waited for; one for each who waits.
pub(crate) fn astray(
    tasks: &BTreeMap<u32, Conversation>,
    matching: &Matching,
    waiting: &Waiting,
) -> Vec<Misdirection> {
    let mut usual = Usual {
        tasks,
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

/// What was usual.
struct Usual<'a> {
    tasks: &'a BTreeMap<u32, Conversation>,
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
    taken: BTreeSet<Envelope>,
    /// What nobody took and was sent once, and its operation. What nobody ever takes is sent again and again.
    strays: Vec<(Envelope, usize)>,
}

impl<'a> Sender<'a> {
    fn new(task: u32, conversation: &'a Conversation, matching: &Matching) -> Self {
        let (mut taken, mut strays) = (BTreeSet::new(), Vec::new());
        let mut times: BTreeMap<Envelope, usize> = BTreeMap::new();
        for (part, it) in conversation.parts.iter().enumerate() {
            let Some(sent) = it.kind.envelope() else {
                continue;
            };
            if matching.partner(PartId { task, part }).is_some() {
                taken.insert(sent);
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

    fn is_usual(&self, it: Envelope) -> bool {
        self.settled.contains(&it) || self.taken.contains(&it)
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
        (sent.to == self.wanted.to) != (sent.tag == self.wanted.tag)
    }

    fn astray(&self, sent: Envelope, operation: usize, by_sender: bool) -> Option<Misdirection> {
        Some(Misdirection {
            from: self.from,
            sent,
            wanted: self.wanted,
            others: false,
            by_sender,
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
            wanted: Envelope { to: wait.from, tag },
            conversation,
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
        let mut strays = sender.strays.iter();
        let (sent, operation, by_sender) = strays.find_map(|&(sent, operation)| {
            let are_usual = [sent, asked.wanted].map(|it| sender.is_usual(it));
            let by_sender = asked.may_be(sent).then(|| match are_usual {
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
        let &(sent, operation) = strays.find(|(it, _)| {
            let wanted = Envelope { to, tag: it.tag };
            it.to != to && !sender.is_usual(*it) && sender.is_usual(wanted)
        })?;
        asked.wanted.tag = sent.tag;
        Some((operation, asked.astray(sent, operation, true)?))
    }

    /// Of who waits for a message from anybody, the one that one of them sent with another tag, or to another.
    fn astray_to_any(&mut self, wait: &Wait) -> Option<Misdirection> {
        let asked = self.asked(wait)?;
        let mut strays = self.senders.get(&asked.from)?.strays.iter().rev();
        let &(sent, operation) = strays.find(|it| asked.may_be(it.0))?;
        let to_either = |it: Envelope| [sent.to, asked.wanted.to].contains(&it.to);
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

impl PartKind {
    /// Of a message to somebody.
    pub(crate) fn envelope(&self) -> Option<Envelope> {
        match *self {
            Self::Send {
                to: Peer::Task(to),
                tag,
                ..
            } => Some(Envelope { to, tag }),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "astray_tests.rs"]
mod tests;
