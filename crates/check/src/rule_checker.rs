//! The rules that are looked at while the calls of a thread are read.

use crate::arguments::is_no_file;
use crate::buffers::{Buffers, Made, Touch, has_buffers, overlap, synchronises, touches};
use crate::epochs::Epochs;
use crate::loose_end::LooseEnd;
use crate::of_calls::CHECKS;
use crate::usage::{Suspect, Terms, Usage};
use lockstep_api::mpi::{Kind, Resource, rules};
use lockstep_comm::communicators::Resolved;
use lockstep_comm::{Begun, Call, Changes, Observer, Routine, Started, opens_between};
use lockstep_trace::{TraceName, Value};
use std::sync::Arc;

/// What a thread does with MPI that is wrong whatever the others do, as it is read.
#[derive(Debug, Clone, Default)]
pub struct RuleChecker {
    usage: Usage,
    buffers: Buffers,
    /// Whether there may be intercommunicators.
    meets_others: bool,
    /// Whether the opening of a file failed: what is done with no file then follows from that.
    lacks_file: bool,
    /// The call that is not over.
    open: Option<Open>,
}

/// A call that is not over.
#[derive(Debug, Clone)]
struct Open {
    made: Made,
    trace: TraceName,
    event: u64,
    /// The window that it works on, and whether it ends the accesses to it at the caller.
    window: Option<i64>,
    synchronises: bool,
    /// The memory that it uses.
    touches: Vec<Touch>,
    /// What says of what it makes how that may be used.
    terms: Terms,
}

impl From<RuleChecker> for Usage {
    fn from(it: RuleChecker) -> Self {
        it.usage
    }
}

impl RuleChecker {
    /// What is wrong with a call by itself. Gives the memory that it uses.
    fn given(&mut self, call: &Call<'_>) -> Vec<Touch> {
        let (Routine { name, meaning, .. }, event) = (call.routine, call.event);
        self.meets_others |= opens_between(meaning.does);
        let (at, me) = (event.annotated.index, call.trace.process.rank);
        let touches = match has_buffers(event) {
            true => touches(meaning.does, event, call.layouts, me),
            false => Vec::new(),
        };
        let name = name.to_string();
        let follows = self.lacks_file && event.handle("fh").is_some_and(is_no_file);
        let told = CHECKS.iter().filter(|_| !follows).find_map(|check| {
            let what = (check.wrong)(call, self.meets_others)?;
            Some((check.rule, what))
        });
        if let Some((rule, what)) = told {
            let mistake = LooseEnd::Argument { rule, name, what };
            self.usage.tell(mistake, call.trace, at);
        } else if overlap(&touches) {
            self.usage.tell(LooseEnd::Aliased { name }, call.trace, at);
        }
        touches
    }

    /// Tells of a call that gave back an error.
    fn fails(&mut self, event: &Resolved) {
        let results = event.annotated.arguments.as_deref().unwrap_or_default();
        let error = results
            .iter()
            .rfind(|it| matches!(it.value, Value::Error(..)));
        let (Some(error), Some(open)) = (error, &self.open) else {
            return;
        };
        self.lacks_file |= results.iter().any(|it| it.kind == Kind::NewFile);
        let mistake = LooseEnd::Failed {
            name: open.made.name.to_string(),
            error: error.value.to_string(),
        };
        self.usage.tell(mistake, open.trace, open.event);
    }

    /// Tells of an operation that runs and uses the same memory.
    fn clash(
        &mut self,
        (name, trace, event): (&Arc<str>, TraceName, u64),
        touches: &[Touch],
        begun: &Begun<'_>,
    ) {
        let is_unsure = |part| begun.requests.unsure().any(|it| it == part);
        let Some(clash) = self.buffers.clash(touches, begun.parts, is_unsure) else {
            return;
        };
        let mistake = LooseEnd::Overlap {
            name: name.to_string(),
            writes: clash.writes,
            other: clash.other,
        };
        self.usage.tell(mistake, trace, event);
    }
}

impl Observer for RuleChecker {
    type Rest = (Epochs, usize);

    fn call(&mut self, call: &Call<'_>) {
        let event = call.event;
        self.usage.call(call.routine, event, call.trace);
        let touches = self.given(call);
        self.open = Some(Open {
            made: Made {
                name: call.routine.name.clone(),
                line: event.annotated.line.clone(),
            },
            trace: call.trace,
            event: event.annotated.index,
            window: event.handle("win").map(|it| it.raw),
            synchronises: synchronises(call.routine.meaning.does),
            touches,
            terms: Terms::of(event),
        });
    }

    fn past_request(&mut self, name: &Arc<str>, trace: TraceName, over: u64, event: u64) {
        let name = name.to_string();
        self.usage.suspect(Suspect {
            mistake: LooseEnd::Past { name },
            trace,
            freed: over,
            used: event,
        });
    }

    fn unmade_request(&mut self, name: &Arc<str>, trace: TraceName, event: u64) {
        let name = name.to_string();
        let mistake = LooseEnd::Unmade { name };
        self.usage.tell_open(mistake, trace, event);
    }

    fn starts(&mut self, name: &Arc<str>, trace: TraceName, event: u64, how: Started) {
        let name = name.to_string();
        let mistake = match how {
            Started::Rightly => return,
            Started::Again => LooseEnd::StartedTwice { name },
            Started::Plain => LooseEnd::Argument {
                rule: rules::ARGUMENT,
                name,
                what: "a request that is not persistent".to_owned(),
            },
        };
        self.usage.tell(mistake, trace, event);
    }

    fn runs(
        &mut self,
        handle: i64,
        own: &[usize],
        (call, how): (&Call<'_>, Started),
        begun: &Begun<'_>,
    ) {
        let Some((made, touches)) = self.buffers.template(handle) else {
            return;
        };
        if how == Started::Rightly {
            let at = call.event.annotated.index;
            self.clash((&call.routine.name, call.trace, at), &touches, begun);
        }
        self.buffers.begin(&made, touches, (own, None), begun.parts);
    }

    fn uses(&mut self, is_kept: bool, begun: &Begun<'_>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        if let Some(window) = open.window.filter(|_| open.synchronises) {
            self.buffers.synchronise(window);
        }
        if !is_kept {
            let touches = std::mem::take(&mut open.touches);
            let call = (&open.made.name, open.trace, open.event);
            self.clash(call, &touches, begun);
            if open.window.is_some() {
                let of = (&[][..], open.window);
                self.buffers.begin(&open.made, touches, of, begun.parts);
            }
        }
        self.open = Some(open);
    }

    fn returned(&mut self, routine: &Routine, event: &Resolved, trace: TraceName) {
        let terms = self.open.as_ref().map_or(Terms::default(), |it| it.terms);
        let does = routine.meaning.does;
        self.fails(event);
        self.usage.returned(does, event, terms, trace);
    }

    fn freed(&mut self, resource: Resource, handles: &[i64], event: u64) {
        self.usage.freed(resource, handles, event);
    }

    fn gives(
        &mut self,
        handle: i64,
        (own, is_persistent): (&[usize], bool),
        event: u64,
        begun: &Begun<'_>,
    ) {
        let Some(open) = self.open.take() else {
            return;
        };
        if is_persistent {
            let template = (open.made, open.touches);
            return self.buffers.make(handle, Some(template));
        }
        self.buffers.make(handle, None);
        if !own.is_empty() {
            let call = (&open.made.name, open.trace, event);
            self.clash(call, &open.touches, begun);
            let of = (own, open.window);
            self.buffers
                .begin(&open.made, open.touches, of, begun.parts);
        }
    }

    fn let_go(&mut self, parts: &[usize]) {
        self.buffers.let_go(parts);
    }

    fn never_started(&mut self, trace: TraceName, event: u64) {
        self.usage.tell(LooseEnd::NeverStarted, trace, event);
    }

    fn given_up(&mut self, name: &Arc<str>, trace: TraceName, event: u64) {
        let name = name.to_string();
        self.usage.tell(LooseEnd::GivenUp { name }, trace, event);
    }

    fn exposed(&mut self, window: Option<i64>) {
        self.usage.exposed(window);
    }

    fn goes_on(&mut self) {
        self.usage.goes_on();
    }

    fn leave_out(&mut self, parts: usize) {
        self.buffers.leave_out(parts);
    }

    fn changes(&self) -> Changes {
        (self.usage.changes(), self.usage.times_freed())
    }

    fn rest(&self) -> Self::Rest {
        (self.usage.epochs().clone(), self.buffers.running())
    }
}
