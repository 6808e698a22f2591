//! What it means that a requirement was never covered.

use super::{Aspect, Requirement};
use crate::execution::Action;

/// A sentence for a requirement that no execution covered.
pub(super) fn means(requirement: &Requirement) -> &'static str {
    if requirement.node.is_none() {
        return "no goroutine ever came here";
    }
    let action = requirement
        .case
        .map_or(requirement.usage.action, |it| it.action);
    let is_case = requirement.case.is_some();
    match (action, requirement.aspect) {
        (Action::Send, Aspect::Blocked) if is_case => {
            "the select never waited and then sent: a receiver or room was always there first, or another case came"
        }
        (Action::Send, Aspect::Blocked) => {
            "the send never had to wait: a receiver or room was always there first"
        }
        (Action::Send, Aspect::Unblocking) => {
            "the send never found a receiver waiting: it always came first, or went to the buffer"
        }
        (Action::Send, Aspect::Nop) => "the send never just found room in the buffer",
        (Action::Receive, Aspect::Blocked) if is_case => {
            "the select never waited and then received: a value was always there first, or another case came"
        }
        (Action::Receive, Aspect::Blocked) => {
            "the receive never had to wait: a value was always there first, or the channel closed"
        }
        (Action::Receive, Aspect::Unblocking) => {
            "the receive never found a sender waiting: it always came first, or took from the buffer"
        }
        (Action::Receive, Aspect::Nop) => {
            "the receive never just found a value in the buffer, or the channel closed"
        }
        (Action::Lock | Action::RLock, Aspect::Blocked) => {
            "the lock was never taken by another goroutine when this one came"
        }
        (Action::Lock | Action::RLock, Aspect::Blocking) => {
            "no other goroutine ever came to the lock while this one held it"
        }
        (Action::Unlock | Action::RUnlock, Aspect::Unblocking) => {
            "nobody ever waited for the lock when it was given back"
        }
        (Action::Unlock | Action::RUnlock, Aspect::Nop) => {
            "somebody always waited for the lock when it was given back"
        }
        (Action::Close, Aspect::Unblocking) => {
            "nobody ever waited at the channel when it was closed"
        }
        (Action::Close, Aspect::Nop) => "somebody always waited at the channel when it was closed",
        (Action::Signal | Action::Broadcast, Aspect::Unblocking) => {
            "nobody ever waited when the condition was signalled: the signal always came first"
        }
        (Action::Signal | Action::Broadcast, Aspect::Nop) => {
            "somebody always waited when the condition was signalled: the signal never came first"
        }
        (Action::Done, Aspect::Unblocking) => "it was never the last Done that somebody waited for",
        (Action::Done, Aspect::Nop) => "it was always the last Done that somebody waited for",
        (Action::Wait, Aspect::Blocked) => "the wait always came after everybody was done",
        (Action::Wait, Aspect::Nop) => "the wait always came before everybody was done",
        (Action::CondWait, _) => "the condition was never waited for",
        (Action::Select, Aspect::Unblocking) => "the select never let anybody go on",
        (Action::Select, Aspect::Nop) => {
            "the select always let somebody go on: neither its default nor a buffer was ever taken"
        }
        (Action::Once, _) => "nobody ever came out of it",
        _ => "this never happened",
    }
}
