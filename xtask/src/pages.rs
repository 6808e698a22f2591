//! `cargo xtask pages`: the pages of the book that are made from the code: of the guide from tables, of JSON from types.

use crate::shell::{cargo, must, root};
use anyhow::{Context, Result};
use lockstep_api::mpi::rules::{RULES, Severity};
use lockstep_api::mpi::{
    self, Access, Counts, Does, Epoch, FileUse, Form, Function, Kind, Making, Meaning, Mode, Part,
    Partitions, Resource, Scope, SendBuffer, Shape,
};
use std::fmt::Write;
use std::fs;
use std::process::ExitCode;

const MPI: &str = "docs/guide/mpi-functions.md";
const CHECKS: &str = "docs/guide/checks.md";
const SCHEMAS: &str = "docs/schema";

/// Writes all of them.
pub fn write() -> Result<ExitCode> {
    for (page, text) in pages() {
        let path = root().join(page);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("{page}");
    }
    // The types are the command's own.
    let run = ["run", "--quiet", "--bin", "lockstep", "--"];
    must(cargo(&run).args(["__schema", "-o", SCHEMAS]))?;
    println!("{SCHEMAS}");
    Ok(ExitCode::SUCCESS)
}

fn pages() -> [(&'static str, String); 2] {
    [(MPI, mpi_functions()), (CHECKS, checks())]
}

/// Before the table of checks.
const OF_CHECKS: &str = "\
# Checks of MPI's rules

This page is made from the table in `crates/api/src/mpi/rules.rs`: add a row there, then run `cargo xtask pages`.

`lockstep progress RUN` tells which of these rules a job broke. It asks nothing of the program: the recorded calls show it.

* `--checks LIST` chooses: names or severities, parted by commas. `--checks fatal,error` tells of those only.
  `--checks -never-freed,-left` tells of all others.
* `--json` has the name, the severity and the clause of each, who broke it, the function and the lines.
* A mismatch that keeps a collective operation from its end is always told: it is why the job hangs.
";

fn checks() -> String {
    let mut page = OF_CHECKS.to_owned();
    for severity in Severity::ALL {
        let head = "| name | what is told | MPI 4.1 |\n|---|---|---|";
        // Writing to a text does not fail.
        let _ = write!(
            page,
            "\n## {}: {}\n\n{head}\n",
            severity.name(),
            severity.meaning()
        );
        for rule in RULES.iter().filter(|it| it.severity == severity) {
            let _ = writeln!(page, "| `{}` | {} | {} |", rule.id, rule.what, rule.clause);
        }
    }
    page
}

/// Before the tables.
const INTRODUCTION: &str = "\
# MPI functions: what is understood

This page is made from the tables in `crates/api`: change a row there, then run `cargo xtask pages`.

Each table has one row for each function.

* *At the call* and *at the return* name the arguments that are recorded.
* *Further forms* do the same in another way. An `MPI_I...` function returns at once, with a request. An `..._init`
  function makes a request that can be started often.
* A function with a count also has a form for large counts, `MPI_Send_c`. It is understood as the plain one is. Its arrays of
  counts are not recorded.
* Fortran functions (`mpi_send_`, `mpi_send_f08_`, `MPI_SEND`) have the same rows.
* Functions that are not on this page, such as `MPIX_...`, are recorded as calls, without arguments.
";

fn mpi_functions() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (title, functions) in mpi::chapters() {
        let head = "| function | what it does | at the call | at the return | further forms |";
        // Writing to a text does not fail.
        let _ = write!(page, "\n## {title}\n\n{head}\n|---|---|---|---|---|\n");
        for function in functions {
            let named = |is_result: bool| {
                let parameters = function.parameters();
                let recorded = parameters
                    .filter(|it| it.kind != Kind::Ignored && it.kind.is_result() == is_result);
                let names: Vec<String> = recorded.map(|it| format!("`{}`", it.name)).collect();
                names.join(", ")
            };
            let _ = writeln!(
                page,
                "| `MPI_{}` | {} | {} | {} | {} |",
                function.base,
                sentence(function.meaning()),
                named(false),
                named(true),
                forms(&function).join(", "),
            );
        }
    }
    page
}

/// The forms that have no row of their own.
fn forms(function: &Function) -> Vec<String> {
    let base = function.base;
    let mut letters = base.chars();
    let first = letters.next().map(|it| it.to_ascii_lowercase());
    let later = format!("MPI_I{}{}", first.unwrap_or_default(), letters.as_str());
    let derives = |name: &String| Function::of(name.as_bytes()).is_some_and(|it| it.base == base);
    let all = [later, format!("MPI_{base}_init")].into_iter();
    all.filter(derives).map(|it| format!("`{it}`")).collect()
}

/// What a function does, and how.
fn sentence(meaning: Meaning) -> String {
    let asks = meaning.asks();
    let how = match meaning.form {
        Form::Blocking => "",
        Form::Nonblocking if asks => "",
        Form::Nonblocking => "; returns at once",
        Form::Persistent => "; begins when its request is started",
    };
    let when = match meaning.anytime {
        true => "; may be called at any time",
        false => "",
    };
    format!("{}{how}{when}", does(meaning))
}

fn does(meaning: Meaning) -> String {
    let plain = match meaning.does {
        Does::Send(mode) => match mode {
            Mode::Standard => "sends a message",
            Mode::Buffered => "sends a message through the program's own buffer",
            Mode::Synchronous => "sends a message and waits for its receiver",
            Mode::Ready => "sends a message whose receiver already waits",
        },
        Does::Receive => "receives a message",
        Does::SendReceive => "sends one message and receives another",
        Does::Replace => "sends one message and receives another in the same buffer",
        Does::Probe if meaning.asks() => "asks for a message, and leaves it there",
        Does::Probe => "waits for a message, and leaves it there",
        Does::MatchedProbe if meaning.asks() => "asks for a message, and takes it",
        Does::MatchedProbe => "waits for a message, and takes it",
        Does::MatchedReceive => "receives the message that a matched probe took",
        Does::PartitionedSend => "sends a message in partitions",
        Does::PartitionedReceive => "receives a message in partitions",
        Does::Ready(Partitions::One) => "says that a partition may be sent",
        Does::Ready(Partitions::Range) => "says that a range of partitions may be sent",
        Does::Ready(Partitions::List) => "says that a list of partitions may be sent",
        Does::Arrived => "asks whether a partition has come",
        Does::Wait(scope) => return format!("waits until {}", requests(scope)),
        Does::Test(scope) => return format!("asks whether {}", requests(scope)),
        Does::Status(scope) => return format!("asks whether {}; frees none", requests(scope)),
        Does::Start(Scope::One) => "starts a persistent request",
        Does::Start(_) => "starts persistent requests",
        Does::Cancel => "cancels the operation of a request",
        Does::Collective(shape, counts) => return collective(shape, counts),
        Does::Communicator(making) => communicator(making),
        Does::Group(_) => "makes a group",
        Does::Datatype(_) => "makes a datatype",
        Does::Commit => "makes a datatype fit for messages",
        Does::Reduction => "makes a reduction",
        Does::OwnData => "packs, unpacks or reduces data of this task alone",
        Does::Convert => "gives the handle that another language has for an object",
        Does::BeginSession => "begins a session",
        Does::Window(_) => "makes a window; all members take part",
        Does::Epoch(epoch) => self::epoch(epoch),
        Does::Access(access) => self::access(access),
        Does::File(usage) => file(usage),
        Does::Free(resource) => return format!("frees {}", self::resource(resource)),
        Does::Begin { threads: false } => "begins MPI",
        Does::Begin { threads: true } => "begins MPI, for a level of thread support",
        Does::End => "ends MPI",
        Does::Abort => "ends the job",
        Does::SendBuffer(SendBuffer::Attach) => "gives MPI memory for buffered sends",
        Does::SendBuffer(SendBuffer::AttachTo) => {
            "gives MPI memory for buffered sends of one communicator or session"
        }
        Does::SendBuffer(SendBuffer::Detach | SendBuffer::DetachFrom) => {
            "takes that memory back, after all buffered sends have left"
        }
        Does::SendBuffer(SendBuffer::Flush) => "waits until all buffered sends have left",
        Does::Shift => "finds the neighbours in a grid",
        Does::Query if meaning.reads_clock() => "reads the clock",
        Does::Query => "asks for a fact that does not change",
        Does::Local => "asks or changes something in this task alone",
        Does::Other => "something else; other tasks may take part",
    };
    plain.to_owned()
}

const fn requests(scope: Scope) -> &'static str {
    match scope {
        Scope::One => "a request is complete",
        Scope::All => "all requests are complete",
        Scope::Any => "one of the requests is complete",
        Scope::Some => "some of the requests are complete",
    }
}

fn collective(shape: Shape, counts: Counts) -> String {
    let waits = match shape {
        Shape::All => "all members wait for each other",
        Shape::FromRoot => "all members wait for the root",
        Shape::ToRoot => "the root waits for all members",
        Shape::Prefix => "each member waits for those of lower rank",
        Shape::Neighbours => "each member waits for its neighbours",
    };
    let agree = match counts {
        Counts::None => "",
        Counts::Same => "; all pass the same amount",
        Counts::OneBlock | Counts::BlockEach => "; as much is sent to a member as it expects",
        Counts::ResultBlock => "; all get the same share of the result",
        Counts::EachReceived => "; a receiver says how much it expects from each",
        Counts::EachSent => "; a sender says how much each gets",
        Counts::Each => "; each says how much it sends to each and expects from each",
        Counts::EachTyped => {
            "; each says how much of which datatype it sends to each and expects from each"
        }
        Counts::EachResult => "; all say how much of the result each gets",
    };
    format!("{waits}{agree}")
}

const fn communicator(making: Making) -> &'static str {
    match making {
        Making::Copy => "makes a communicator: a copy",
        Making::Split => "makes communicators, by colour and key",
        Making::SplitType => "makes communicators, by what processes share",
        Making::Create => "makes a communicator of a group; all members of the old one take part",
        Making::CreateGroup => "makes a communicator of a group, whose members alone take part",
        Making::Grid => "makes a communicator: a grid",
        Making::SubGrid => "makes communicators: slices of a grid",
        Making::Graph | Making::DistributedGraph | Making::AdjacentGraph => {
            "makes a communicator: a graph"
        }
        Making::Between => "makes an intercommunicator of two communicators, by their leaders",
        Making::BetweenGroups => "makes an intercommunicator of two groups, by their leaders",
        Making::Merge => "makes a communicator of both sides of an intercommunicator",
        Making::FromGroup => "makes a communicator of a group of a session",
        Making::Spawn | Making::SpawnMultiple => {
            "starts processes, and makes an intercommunicator to them"
        }
        Making::Parent => "gives the intercommunicator to those who started this process",
        Making::Accept => "makes an intercommunicator to those who connect",
        Making::Connect => "makes an intercommunicator to those who accept",
        Making::Join => "makes an intercommunicator through a socket",
    }
}

const fn epoch(epoch: Epoch) -> &'static str {
    match epoch {
        Epoch::Fence => "ends an epoch of a window and begins the next; all members wait",
        Epoch::Start => "begins to access windows of a group",
        Epoch::Complete => "ends accesses to windows of a group",
        Epoch::Post => "lets a group access this window",
        Epoch::Wait => "waits until a group has ended its accesses",
        Epoch::Test => "asks whether a group has ended its accesses",
        Epoch::Lock => "locks a window of one member",
        Epoch::LockAll => "locks the windows of all members, shared",
        Epoch::Unlock => "unlocks a window of one member, after all accesses are complete",
        Epoch::UnlockAll => "unlocks the windows of all members, after all accesses are complete",
        Epoch::Flush {
            all: false,
            local: false,
        } => "waits until accesses to a member are complete",
        Epoch::Flush {
            all: true,
            local: false,
        } => "waits until accesses to all members are complete",
        Epoch::Flush {
            all: false,
            local: true,
        } => "waits until buffers of accesses to a member are free",
        Epoch::Flush {
            all: true,
            local: true,
        } => "waits until buffers of accesses to all members are free",
        Epoch::Sync => "makes copies of a window agree",
        Epoch::SharedQuery => "asks where the shared memory of a member lies",
    }
}

const fn access(access: Access) -> &'static str {
    match access {
        Access::Put => "writes to a window",
        Access::Get => "reads from a window",
        Access::Accumulate => "combines with what is in a window",
        Access::GetAccumulate => "reads from a window, and combines with what is there",
        Access::FetchAndOp => "reads one element from a window, and combines with it",
        Access::CompareAndSwap => "compares one element of a window, and replaces it if equal",
    }
}

const fn file(usage: FileUse) -> &'static str {
    let (writes, together, part) = match usage {
        FileUse::Open => return "opens a file; all members take part",
        FileUse::Close => return "closes a file; all who opened it take part",
        FileUse::Together => return "changes a file or its view; all who opened it take part",
        FileUse::Alone => return "asks or changes something of a file",
        FileUse::Transfer {
            writes,
            together,
            part,
        } => (writes, together, part),
    };
    match (writes, together, part) {
        (false, false, _) => "reads from a file",
        (true, false, _) => "writes to a file",
        (false, true, Part::Whole) => "reads from a file; all who opened it take part",
        (true, true, Part::Whole) => "writes to a file; all who opened it take part",
        (false, true, Part::Begin) => "begins to read from a file; all who opened it take part",
        (true, true, Part::Begin) => "begins to write to a file; all who opened it take part",
        (false, true, Part::End) => "ends reading from a file; all who opened it take part",
        (true, true, Part::End) => "ends writing to a file; all who opened it take part",
    }
}

const fn resource(resource: Resource) -> &'static str {
    match resource {
        Resource::Communicator => "a communicator",
        Resource::Window => "a window",
        Resource::PersistentRequest => "a request",
        Resource::Datatype => "a datatype",
        Resource::Reduction => "a reduction",
        Resource::Group => "a group",
        Resource::File => "a file",
        Resource::Info => "an info object",
        Resource::Errhandler => "an error handler",
        Resource::Keyval => "an attribute key",
        Resource::Message => "a message",
        Resource::Session => "a session",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_the_tables() {
        for (page, text) in pages() {
            let found = fs::read_to_string(root().join(page)).unwrap_or_default();
            assert!(found == text, "{page}: run `cargo xtask pages`");
        }
    }
}
