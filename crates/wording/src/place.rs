//! Where somebody is: calls with their lines and iterations.

use lockstep_progress::clause::{At, Called};
use lockstep_progress::{Iteration, Line, OpenCall, Whereabouts};
use lockstep_trace::{Site, SourceLine, base_name, brief, c_name};

/// `in MPI_Allreduce at solve.c:214 in step(), iteration 812`.
pub(crate) fn place(it: &Whereabouts) -> String {
    let Some(call) = &it.call else {
        return "in no function that was recorded".to_owned();
    };
    let mut text = open(call);
    if let Some(leaf) = &it.leaf {
        text.push_str(&format!(", perhaps in its last call of {}", brief(leaf)));
    }
    text.push_str(&it.iteration.as_ref().map_or(String::new(), iteration));
    text
}

/// `in MPI_Send(dest=7) at solve.c:214 in step()`.
fn open(call: &OpenCall) -> String {
    let name = c_name(&call.function);
    // A library's function goes by its plain name, of C++ without what is long of it.
    let mut text = match call.is_plain && !name.contains('(') {
        true => format!("in {name}{}", call.given.as_deref().unwrap_or_default()),
        false => format!("in {}", brief(&name)),
    };
    let caller = call.caller.as_ref();
    let caller = caller.map_or(String::new(), |it| format!(" in {}", brief(it)));
    match &call.line {
        Line::Around { under, line } => {
            text.push_str(&caller);
            if let Some(under) = under {
                text.push_str(&format!(", under {}", brief(under)));
            }
            text.push_str(&format!(" called at {}", line.brief()));
        }
        Line::Own(line) => {
            if let Some(line) = line {
                let called = if call.imported { "at" } else { "called at" };
                text.push_str(&format!(" {called} {}", line.brief()));
            }
            text.push_str(&caller);
        }
    }
    if let Some((function, line)) = &call.within {
        let name = c_name(function);
        let name = if name.contains('(') {
            brief(&name)
        } else {
            name.into_owned()
        };
        text.push_str(&format!(", within {name}{}", at(line.as_ref())));
    }
    text
}

/// ` at halo.c:77`, if a line is known.
pub(crate) fn at(line: Option<&SourceLine>) -> String {
    line.map_or(String::new(), |it| format!(" at {}", it.brief()))
}

/// `, iteration 4 in iteration 812 of main()`.
pub(crate) fn iteration(it: &Iteration) -> String {
    let mut text = format!(", iteration {}", it.number);
    for (function, number) in &it.around {
        let function = brief(base_name(function));
        text.push_str(&format!(" in iteration {number} of {function}"));
    }
    text
}

/// Where who waits is; of who asks, `calling MPI_Test on and on at halo.c:77 in poll(), iteration 812`.
pub(crate) fn waiter(it: &At) -> String {
    match it {
        At::In(whereabouts) => place(whereabouts),
        At::Asking {
            name,
            line,
            caller,
            iteration,
        } => {
            let caller = caller.as_ref();
            let caller = caller.map_or(String::new(), |it| format!(" in {}", brief(it)));
            let iteration = iteration.as_ref().map_or(String::new(), self::iteration);
            format!(
                "calling {name} on and on{}{caller}{iteration}",
                at(line.as_ref())
            )
        }
    }
}

/// ` at halo.c:77`, ` in exchange()` where no line is known; empty if nothing is.
pub(crate) fn site(site: Option<&Site>) -> String {
    match site.map(|it| (it, it.at())) {
        None => String::new(),
        Some((site, at)) if at.is_empty() => format!(" in {}", brief(&site.caller)),
        Some((_, at)) => format!(" at {at}"),
    }
}

/// `MPI_Recv at a.c:9`.
pub(crate) fn called(it: &Called) -> String {
    format!("{}{}", name(it), site(it.site.as_ref()))
}

/// `MPI_Recv`; of what starts an operation, `MPI_Start of MPI_Bcast_init`.
pub(crate) fn name(it: &Called) -> String {
    match &it.starts {
        Some(starts) => format!("{} of {starts}", it.name),
        None => it.name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_told_without_arguments_of_templates() {
        let state = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()";
        assert_eq!(brief(state), "std::thread::_State_impl<...>::_M_run()");
        assert_eq!(brief("Halo<double>::exchange"), "Halo<double>::exchange()");
        let shift = format!("{}::operator<<(Grid&)", "name".repeat(20));
        assert_eq!(brief(&shift), shift.replace("Grid&", "..."));
    }
}
