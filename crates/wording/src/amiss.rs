//! Messages that were sent and not received, beside those that are waited for in vain.

use crate::place::called;
use crate::who::who;
use lockstep_progress::clause::Amiss;
use lockstep_progress::{Progress, Unreceived};

/// `rank 0 did not receive the message that it took in MPI_Mprobe at a.c:9`.
pub(crate) fn amiss(progress: &Progress, it: &Amiss) -> String {
    let one = |task: &u32| who(progress, &[*task]);
    match it {
        Amiss::NotStarted { by, to, tag, again } => format!(
            "{} did not start its persistent send to {} with tag {tag}{}",
            one(by),
            one(to),
            if *again { " again" } else { "" },
        ),
        Amiss::WaitedFor { by, call, to, tag } => format!(
            "{} waited in {} for its persistent send to {} with tag {tag}, which it had not started again",
            one(by),
            called(call),
            one(to),
        ),
        Amiss::NeverStarted(task, call) => format!(
            "{} waited in {} for a persistent receive that it had not started",
            one(task),
            called(call)
        ),
        Amiss::NotReceived(task, call) => format!(
            "{} did not receive the message that it took in {}",
            one(task),
            called(call)
        ),
        Amiss::OtherTag(task, tags) => {
            let tags: Vec<String> = tags.iter().map(ToString::to_string).collect();
            format!("{} waits for one with tag {}", one(task), tags.join(" or "))
        }
        Amiss::Unreceived(it) => format!("{} {}", one(&it.from), unreceived(progress, it)),
    }
}

/// What its sender did: `sent rank 1 a message with tag 3 of #2 {0-3} that nobody received`.
pub(crate) fn unreceived(progress: &Progress, it: &Unreceived) -> String {
    let to = who(progress, &[it.to]);
    let of = it.of.as_ref();
    let of = of.map_or(String::new(), |it| format!(" of {it}"));
    let (sent, received) = match it.is_open {
        true => ("sends", "receives"),
        false => ("sent", "received"),
    };
    let call = it.call.as_ref();
    let call = call.map_or(String::new(), |it| format!(" ({})", called(it)));
    let wanted = it.wanted_in.as_ref();
    let wanted = wanted.map_or(String::new(), |it| format!(": {to} waits for one of {it}"));
    format!(
        "{sent} {to} a message with tag {}{of} that nobody {received}{call}{wanted}",
        it.tag
    )
}
