//! Who looks on while the calls of a thread are read, and keeps what it wants of them: this crate knows no rule about right or wrong.

use crate::communicators::Resolved;
use crate::datatypes::Datatypes;
use crate::layout::Layouts;
use crate::message::Part;
use crate::requests::Requests;
use crate::routines::Routine;
use lockstep_api::mpi::Resource;
use lockstep_trace::TraceName;
use std::fmt::Debug;
use std::sync::Arc;

/// A call that begins.
pub struct Call<'a> {
    /// Its function.
    pub routine: &'a Routine,
    /// Its event, with its arguments.
    pub event: &'a Resolved,
    /// Whose it is.
    pub trace: TraceName,
    /// The datatypes of the thread so far: what they consist of, and where its parts lie.
    pub datatypes: &'a Datatypes,
    /// See there.
    pub layouts: &'a Layouts,
}

/// What a thread has begun so far.
pub struct Begun<'a> {
    /// All of it.
    pub parts: &'a [Part],
    /// The requests that stand for some of it.
    pub requests: &'a Requests,
}

/// How a request stands that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It can be.
    Rightly,
    /// It runs.
    Again,
    /// It is not persistent.
    Plain,
}

/// How often something changed that is kept of calls, and how often a handle was freed.
pub type Changes = (u64, u64);

/// Looks on; each method is called in the order of the calls. `event` is the number of a call's event in its trace.
pub trait Observer: Clone + Default + Debug + Send + Sync {
    /// What calls that nobody could notice leave as it was.
    type Rest: Debug + Clone + PartialEq;

    /// A call begins.
    fn call(&mut self, call: &Call<'_>);

    /// A call begins that names a request which is over: one that event `over` completed, or freed.
    fn past_request(&mut self, name: &Arc<str>, trace: TraceName, over: u64, event: u64);

    /// A call begins that names a request which no call made.
    fn unmade_request(&mut self, name: &Arc<str>, trace: TraceName, event: u64);

    /// A call starts a request.
    fn starts(&mut self, name: &Arc<str>, trace: TraceName, event: u64, how: Started);

    /// A request was started, and runs for these parts.
    fn runs(&mut self, handle: i64, own: &[usize], by: (&Call<'_>, Started), begun: &Begun<'_>);

    /// A call has begun; `is_kept` says whether what it began goes on when it returns, as its request.
    fn uses(&mut self, is_kept: bool, begun: &Begun<'_>);

    /// A call returned: what it gave back.
    fn returned(&mut self, routine: &Routine, event: &Resolved, trace: TraceName);

    /// A call that freed these handles returned.
    fn freed(&mut self, resource: Resource, handles: &[i64], event: u64);

    /// A call gave back a request: for these parts, and whether it is persistent.
    fn gives(&mut self, handle: i64, of: (&[usize], bool), event: u64, begun: &Begun<'_>);

    /// The memory of these parts may be used, though they are not complete.
    fn let_go(&mut self, parts: &[usize]);

    /// A persistent request is freed that was waited for and never started.
    fn never_started(&mut self, trace: TraceName, event: u64);

    /// A receive's request is freed before it is complete: by which function it was begun.
    fn given_up(&mut self, name: &Arc<str>, trace: TraceName, event: u64);

    /// Nobody accesses the memory of this window any more: a test said so.
    fn exposed(&mut self, window: Option<i64>);

    /// Something came behind calls that wait for nothing.
    fn goes_on(&mut self);

    /// The first parts, which are complete, are left out: so many.
    fn leave_out(&mut self, parts: usize);

    /// How often anything changed.
    fn changes(&self) -> Changes;

    /// What stays as it is where nothing changes.
    fn rest(&self) -> Self::Rest;
}

/// Nobody looks on.
impl Observer for () {
    type Rest = ();

    fn call(&mut self, _: &Call<'_>) {}
    fn past_request(&mut self, _: &Arc<str>, _: TraceName, _: u64, _: u64) {}
    fn unmade_request(&mut self, _: &Arc<str>, _: TraceName, _: u64) {}
    fn starts(&mut self, _: &Arc<str>, _: TraceName, _: u64, _: Started) {}
    fn runs(&mut self, _: i64, _: &[usize], _: (&Call<'_>, Started), _: &Begun<'_>) {}
    fn uses(&mut self, _: bool, _: &Begun<'_>) {}
    fn returned(&mut self, _: &Routine, _: &Resolved, _: TraceName) {}
    fn freed(&mut self, _: Resource, _: &[i64], _: u64) {}
    fn gives(&mut self, _: i64, _: (&[usize], bool), _: u64, _: &Begun<'_>) {}
    fn let_go(&mut self, _: &[usize]) {}
    fn never_started(&mut self, _: TraceName, _: u64) {}
    fn given_up(&mut self, _: &Arc<str>, _: TraceName, _: u64) {}
    fn exposed(&mut self, _: Option<i64>) {}
    fn goes_on(&mut self) {}
    fn leave_out(&mut self, _: usize) {}

    fn changes(&self) -> Changes {
        (0, 0)
    }

    fn rest(&self) -> Self::Rest {}
}
