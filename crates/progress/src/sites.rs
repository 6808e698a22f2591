//! Where the calls that are told of were made, of those that are over: their lines are looked up, the
//! traces of the run read once for all.

use crate::cause::{Alike, Cause, Deed};
use crate::loose_words::called_at;
use lockstep_check::Loose;
use lockstep_comm::Conversation;
use lockstep_trace::{FunctionId, Run, Site, SourceLine, TraceName};
use std::collections::{BTreeMap, BTreeSet};

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

    /// Where an operation was called: ` at solve.c:214`, ` in step()`; empty where that is not known.
    pub fn of(&self, conversation: &Conversation, operation: usize) -> String {
        let call = conversation.call(operation);
        let site = call.and_then(|call| self.0.get(&call));
        site.map_or(String::new(), called_at)
    }

    /// The lines of that.
    pub fn lines(&self, conversation: &Conversation, operation: usize) -> Vec<SourceLine> {
        let site = conversation.call(operation).and_then(|it| self.0.get(&it));
        site.map_or_else(Vec::new, |it| it.lines.clone())
    }

    /// Where a call was made, likewise.
    pub fn at(&self, call: (TraceName, u64)) -> String {
        self.0.get(&call).map_or(String::new(), called_at)
    }

    /// Puts them to messages that went astray, and to what was left out.
    pub fn direct(&self, run: &Run, causes: &mut [Cause]) {
        for it in causes {
            let site = self.common(&it.alike).or_else(|| place_of(run, it));
            // Of what was left out the function is told already.
            let is_told = |site: &Site| it.is_misdirection() || !site.at().is_empty();
            let site = site.filter(is_told);
            it.site = site.as_ref().map_or(String::new(), called_at);
            it.lines = site.map_or_else(Vec::new, |it| it.lines);
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
