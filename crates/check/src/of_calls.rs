//! What can be wrong with a call by itself: a row for each check. Add a row, and a function that says what is wrong.

use crate::{arguments, buffers};
use lockstep_api::mpi::rules::{ARGUMENT, Rule};
use lockstep_comm::communicators::Resolved;
use lockstep_comm::{Call, own_share};
use lockstep_trace::Value;

/// A check of single calls.
pub(crate) struct CallCheck {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// What is wrong with a call: `count -1`. `between` says whether the task may have intercommunicators.
    pub wrong: fn(call: &Call<'_>, between: bool) -> Option<String>,
}

/// All of them; the first that finds something is told.
pub(crate) const CHECKS: &[CallCheck] = &[
    CallCheck {
        rule: ARGUMENT,
        wrong: |call, _| arguments::wrong(call.routine.meaning, call.event),
    },
    CallCheck {
        rule: ARGUMENT,
        wrong: |call, _| {
            buffers::wrong(
                call.routine.meaning.does,
                call.event,
                call.trace.process.rank,
            )
        },
    },
    CallCheck {
        rule: ARGUMENT,
        wrong: |call, between| {
            let of = (call.datatypes, call.trace.process.rank);
            let is_asked = !between && buffers::has_buffers(call.event);
            is_asked
                .then(|| own_share(call.routine.meaning, call.event, of))
                .flatten()
        },
    },
    CallCheck {
        rule: ARGUMENT,
        wrong: |call, between| {
            let is_asked = !between && buffers::has_buffers(call.event);
            is_asked.then(|| no_root(call.event)).flatten()
        },
    },
];

/// A root that only an operation between two groups has: `root MPI_PROC_NULL`.
fn no_root(event: &Resolved) -> Option<String> {
    // One that a library made may be between two groups.
    event.communicator()?;
    match event.get("root")?.0 {
        Value::Rank {
            name: Some(name), ..
        } => Some(format!("root {name}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_api::mpi::Kind;
    use lockstep_comm::job::resolved;
    use lockstep_comm::{Datatypes, Layouts, Routine};
    use lockstep_trace::{Argument, Buffer, Handle, TraceName};

    /// What is told of a call of this function with these arguments, and of which rule.
    fn told(name: &str, arguments: Vec<Argument>) -> Option<(&'static str, String)> {
        let call = Call {
            routine: &Routine::of(name),
            event: &resolved(arguments),
            trace: TraceName::new(0, 0),
            datatypes: &Datatypes::default(),
            layouts: &Layouts::default(),
        };
        let mut all = CHECKS.iter();
        all.find_map(|it| Some((it.rule.id, (it.wrong)(&call, false)?)))
    }

    #[test]
    fn the_first_check_that_finds_something_is_told() {
        let argument = |name, kind, value| Argument { name, kind, value };
        let integers = Handle {
            raw: 1,
            name: Some("MPI_INT".to_owned()),
        };
        let send = |count, buffer| {
            let arguments = vec![
                argument("buf", Kind::Buffer, Value::Buffer(buffer)),
                argument("count", Kind::Int, Value::Number(count)),
                argument("datatype", Kind::Datatype, Value::Handle(integers.clone())),
            ];
            told("MPI_Send", arguments)
        };
        assert_eq!(send(4, Buffer::At(4096)), None);
        let negative = ("argument", "count -1".to_owned());
        assert_eq!(send(-1, Buffer::Null), Some(negative));
        let nowhere = ("argument", "buf NULL for 4 MPI_INT".to_owned());
        assert_eq!(send(4, Buffer::Null), Some(nowhere));
    }
}
