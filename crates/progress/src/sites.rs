//! Where the calls that are told of were made, of those that are over: their lines are looked up, the
//! traces of the run read once for all.

use crate::cause::{Alike, Cause, Deed};
use crate::clause::Called;
use lockstep_check::Loose;
use lockstep_comm::Conversation;
use lockstep_trace::{FunctionId, Run, Site, SourceLine, TraceName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a function of the program calls another: the lines that its code has.
pub(crate) fn lines_between(run: &Run, caller: &str, callee: &str) -> Vec<SourceLine> {
    let name = |id: FunctionId| run.functions.get(id.0 as usize).map(|it| it.name.as_str());
    let callers = run.functions.iter().filter(|it| it.name == caller);
    let calls = callers.flat_map(|it| &it.calls);
    let calls = calls.filter(|it| name(it.0) == Some(callee));
    let lines: BTreeSet<&SourceLine> = calls.map(|it| &it.1).collect();
    lines.into_iter().cloned().collect()
}

/// Where a call stands in the code that a task left out and never made before, or made for the first time.
fn place_of(run: &Run, cause: &Cause) -> Option<Site> {
    let Deed::Departed { departure, .. } = &cause.deed else {
        return None;
    };
    let called = departure.instead.first().or(departure.left_out.first())?;
    let (caller, _) = departure.frames.last()?;
    let lines = lines_between(run, caller, called);
    (!lines.is_empty()).then(|| Site {
        caller: caller.clone(),
        lines,
    })
}

/// Sites by call.
#[derive(Debug, Default)]
pub(crate) struct Sites(BTreeMap<(TraceName, u64), Site>);

impl Sites {
    /// Looks up calls. One pass over each trace that is asked for.
    pub fn new(run: &Run, calls: impl Iterator<Item = (TraceName, u64)>) -> Self {
        let mut asked: BTreeMap<TraceName, BTreeSet<u64>> = BTreeMap::new();
        for (trace, event) in calls {
            asked.entry(trace).or_default().insert(event);
        }
        let mut found = BTreeMap::new();
        for (trace, events) in asked {
            let events: Vec<u64> = events.into_iter().collect();
            let Some(thread) = run.trace(trace) else {
                continue;
            };
            for (event, site) in events.iter().zip(run.sites(thread, &events)) {
                found.extend(site.map(|site| ((trace, *event), site)));
            }
        }
        Self(found)
    }

    /// An operation's call, and where that was made if that is known.
    pub fn call(&self, conversation: &Conversation, operation: usize) -> Option<Called> {
        let call = conversation.call(operation);
        Some(Called {
            name: conversation.operations.get(operation)?.name.clone(),
            starts: None,
            site: call.and_then(|call| self.0.get(&call)).cloned(),
        })
    }

    /// A call of this function, likewise.
    pub fn named(&self, name: &Arc<str>, call: (TraceName, u64)) -> Called {
        Called {
            name: name.clone(),
            starts: None,
            site: self.0.get(&call).cloned(),
        }
    }

    /// Puts them to messages that went astray, and to what was left out.
    pub fn direct(&self, run: &Run, causes: &mut [Cause]) {
        for it in causes {
            let site = self.common(&it.alike).or_else(|| place_of(run, it));
            // Of what was left out the function is told already.
            let is_told = |site: &Site| it.is_misdirection() || !site.at().is_empty();
            it.site = site.filter(is_told);
        }
    }

    /// Where calls like one were made: by the same function, and of the same messages where there are such.
    fn common(&self, alike: &Alike) -> Option<Site> {
        let of = |calls: &[(TraceName, u64)]| -> Vec<&Site> {
            calls.iter().filter_map(|it| self.0.get(it)).collect()
        };
        let along = of(&alike.along);
        let caller = &along.first()?.caller;
        let mut sent = of(&alike.sent);
        sent.retain(|it| it.caller == *caller);
        let those = if sent.is_empty() { along } else { sent };
        let lines: BTreeSet<&SourceLine> = those.iter().flat_map(|it| &it.lines).collect();
        Some(Site {
            caller: caller.clone(),
            lines: lines.into_iter().cloned().collect(),
        })
    }

    /// Puts them where they belong.
    pub fn tell(&self, loose: &mut [Loose]) {
        for it in loose {
            it.site = it.first.and_then(|call| self.0.get(&call)).cloned();
        }
    }
}
