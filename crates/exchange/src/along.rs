//! What a trace told others, beside its spans: what begins with a call, and what is over with a return.

use lockstep_comm::Talk;
use lockstep_comm::talk::Contact;
use lockstep_trace::TraceName;
use rustc_hash::FxHashSet;

/// Goes along with the spans of a trace.
pub(crate) struct Along<'a> {
    contacts: &'a [Contact],
    /// The next one that begins.
    next: usize,
    /// Those that are over some time, in that order, and the next of them.
    over: Vec<u32>,
    next_over: usize,
    /// Those that began with a call that is shown, and are not over.
    open: FxHashSet<u32>,
}

impl<'a> Along<'a> {
    pub fn new(talk: &'a Talk, name: TraceName) -> Self {
        let contacts = talk.of(name);
        let over = |number: &u32| contacts.get(*number as usize).and_then(|it| it.over);
        let numbers = 0..contacts.len() as u32;
        let mut all: Vec<u32> = numbers.filter(|it| over(it).is_some()).collect();
        all.sort_by_key(over);
        Self {
            contacts,
            next: 0,
            over: all,
            next_over: 0,
            open: FxHashSet::default(),
        }
    }

    /// Those that this call began, each with its number; the calls in their order.
    pub fn begun(&mut self, event: u64) -> impl Iterator<Item = (u32, &'a Contact)> + use<'a> {
        let rest = self.contacts.get(self.next..).unwrap_or(&[]);
        let first = self.next + rest.partition_point(|it| it.begun < event);
        let rest = self.contacts.get(first..).unwrap_or(&[]);
        self.next = first + rest.partition_point(|it| it.begun == event);
        let all = self.contacts.get(first..self.next).unwrap_or(&[]);
        let all = (first as u32..).zip(all);
        self.open.extend(all.clone().map(|it| it.0));
        all
    }

    /// Those that are over with this return, if the call that began them is shown; the returns in their order.
    pub fn over(&mut self, event: u64) -> Vec<(u32, &'a Contact)> {
        let mut all = Vec::new();
        while let Some(number) = self.over.get(self.next_over)
            && let Some(contact) = self.contacts.get(*number as usize)
            && let Some(at) = contact.over.filter(|at| at.get() <= event)
        {
            self.next_over += 1;
            if self.open.remove(number) && at.get() == event {
                all.push((*number, contact));
            }
        }
        all
    }
}
