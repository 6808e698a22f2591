//! An execution as an ordinary run: a process with one thread for each goroutine of the program, whose calls are
//! the functions that usages stand in and the usages themselves.
//!
//! ```text
//! thread 0: main.main ( send ) ( main.worker.func1 ( lock ) ( unlock ) ) ...
//! ```
//! Threads are numbered by the goroutine tree: a goroutine comes before those that it made, and those by the line of
//! their `go` statements, so that the same goroutine has the same number in most runs. What is open at the end was
//! not over.

use crate::execution::{Action, Event, Execution, GoroutineId, State, What};
use lockstep_writer::{Builder, Error, FunctionNumber, Named, ProcessFacts};
use std::path::Path;

/// Writes `execution` of `program` as a run into `directory`, which must be there and empty.
///
/// # Errors
/// Where it cannot be written.
pub fn write(
    execution: &Execution,
    program: &str,
    pid: u32,
    status: Option<u32>,
    directory: &Path,
) -> Result<(), Error> {
    let mut builder = Builder::new(directory)?;
    let process = builder.process(ProcessFacts {
        host: String::new(),
        program: program.to_owned(),
        pid,
        rank: None,
        status,
    })?;
    let mut by_goroutine: Vec<Vec<&Event>> = vec![Vec::new(); execution.goroutines.len()];
    for event in &execution.events {
        if let Some(events) = event
            .goroutine
            .and_then(|it| by_goroutine.get_mut(it.0 as usize))
        {
            events.push(event);
        }
    }
    for (number, id) in order(execution).into_iter().enumerate() {
        let index = id.0 as usize;
        let goroutine = &execution.goroutines[index];
        // The thread that has the process's own number is the one that started it.
        builder.begin(process, pid.wrapping_add(number as u32))?;
        let mut thread = Thread {
            execution,
            program,
            builder: &mut builder,
            open: Vec::new(),
        };
        let entry = if goroutine.entry.is_empty() {
            "?"
        } else {
            &goroutine.entry
        };
        thread.call(entry, None)?;
        for event in &by_goroutine[index] {
            thread.take(event)?;
        }
        if goroutine.state == State::Ended {
            let last = by_goroutine[index].last().map(|it| it.time);
            while thread.ret(last)? {}
        }
        builder.end()?;
    }
    builder.finish(&serde_json::json!({ "from": "go" }))
}

/// The program's goroutines in the order of the tree.
#[must_use]
pub fn order(execution: &Execution) -> Vec<GoroutineId> {
    let count = execution.goroutines.len();
    let mut children: Vec<Vec<GoroutineId>> = vec![Vec::new(); count];
    let mut stack = Vec::new();
    for index in (0..count).rev() {
        let goroutine = &execution.goroutines[index];
        let id = GoroutineId(index as u32);
        match goroutine.parent {
            Some(parent) if parent.0 < id.0 => children[parent.0 as usize].push(id),
            _ => stack.push(id),
        }
    }
    for made in &mut children {
        // Pushed backwards, and the last pushed is taken first.
        made.reverse();
        made.sort_by_key(|id| {
            let at = execution.goroutines[id.0 as usize].created_at;
            at.map(|it| &execution.sites[it.0 as usize])
        });
        made.reverse();
    }
    let mut found = Vec::new();
    while let Some(id) = stack.pop() {
        if !execution.goroutines[id.0 as usize].is_system {
            found.push(id);
        }
        stack.append(&mut children[id.0 as usize]);
    }
    found
}

struct Thread<'a> {
    execution: &'a Execution,
    program: &'a str,
    builder: &'a mut Builder,
    /// Open calls: a function's name, or a usage's.
    open: Vec<(String, Option<Action>)>,
}

impl Thread<'_> {
    fn take(&mut self, event: &Event) -> Result<(), Error> {
        match &event.what {
            What::Request { action, .. } => {
                // What libraries do on nobody's behalf is not the program's behaviour.
                if let Some(site) = event.site {
                    let site = &self.execution.sites[site.0 as usize];
                    // What the last usage stood in is left, unless this one stands there, too.
                    while self.open.len() > 1
                        && self
                            .open
                            .last()
                            .is_some_and(|it| it.1.is_none() && it.0 != site.function)
                    {
                        self.ret(Some(event.time))?;
                    }
                    if self.open.last().is_none_or(|it| it.0 != site.function) {
                        self.call(&site.function, Some(event.time))?;
                    }
                    let name = action.name();
                    let function = self.function(name)?;
                    self.builder.call(function, Some(event.time))?;
                    self.open.push((name.to_owned(), Some(*action)));
                }
            }
            What::Complete { action, .. } if event.site.is_some() => {
                if let Some(at) = self.open.iter().rposition(|it| it.1 == Some(*action)) {
                    while self.open.len() > at {
                        self.ret(Some(event.time))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn function(&mut self, name: &str) -> Result<FunctionNumber, Error> {
        self.builder.function(&Named {
            image: self.program,
            name,
            imported: false,
            source: None,
        })
    }

    fn call(&mut self, name: &str, time: Option<u64>) -> Result<(), Error> {
        let function = self.function(name)?;
        self.builder.call(function, time)?;
        self.open.push((name.to_owned(), None));
        Ok(())
    }

    /// Leaves the innermost call; false where there is none.
    fn ret(&mut self, time: Option<u64>) -> Result<bool, Error> {
        if self.open.pop().is_none() {
            return Ok(false);
        }
        self.builder.ret(time)?;
        Ok(true)
    }
}
