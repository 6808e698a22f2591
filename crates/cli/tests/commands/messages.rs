//! Who talks to whom, in exports: as the program itself says it, by the tools that the formats are for.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Recording, Scratch, command, lockstep, record, tools};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const RANKS: usize = 4;

/// A run of the program that writes down what it says, and where.
fn recorded(mpi: Mpi, scratch: &Scratch) -> Recording {
    let program = mpi.recipe("talks.c").flags(&["-g", "-O1"]).build();
    let place = scratch.join("");
    let inside = format!("cd {} && exec {} 2", place.display(), program.display());
    let mut words = mpi.launch(RANKS);
    words.extend(["sh".to_owned(), "-c".to_owned(), inside]);
    let run = record(scratch, &[], &words);
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    run
}

fn export(run: &Recording, options: &[&str], file: &str) -> PathBuf {
    let file = run.directory.with_extension(file);
    let mut export = lockstep(&["export", "-o"]);
    let _ = command::run(export.arg(&file).arg(&run.directory).args(options)).success();
    file
}

/// What a rank did, in order: sends, receives, and shares of collective operations apart.
type Done = BTreeMap<&'static str, Vec<String>>;

fn said(scratch: &Scratch, rank: usize) -> Done {
    let text = std::fs::read_to_string(scratch.join(format!("talks.{rank}"))).expect("its book");
    let mut done = Done::new();
    for line in text.lines() {
        let (what, rest) = line.split_once(' ').expect("words");
        let what = ["send", "receive", "share"]
            .into_iter()
            .find(|it| *it == what);
        done.entry(what.expect("a word"))
            .or_default()
            .push(rest.to_owned());
    }
    done
}

/// The value of a field in a line of `otf2-print`, or its first word.
fn field(line: &str, name: &str) -> String {
    let rest = line.split(&format!("{name}: ")).nth(1).unwrap_or_default();
    let end = rest.find([' ', ',']).unwrap_or(rest.len());
    rest[..end].to_owned()
}

/// The same as [`said`] for all ranks, by `otf2-print`; each request that is asked for comes to its end.
fn printed(text: &str) -> Vec<Done> {
    let mut all = vec![Done::new(); RANKS];
    let mut open: BTreeSet<(usize, bool, String)> = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(Ok(rank))) = (words.next(), words.next().map(str::parse::<usize>))
        else {
            continue;
        };
        let request = field(line, "Request");
        let message = |peer: &str| {
            let parts = [peer, "Tag", "Length"].map(|it| field(line, it));
            parts.join(" ")
        };
        let (what, told) = match kind {
            "MPI_SEND" | "MPI_ISEND" => ("send", message("Receiver")),
            "MPI_RECV" | "MPI_IRECV" => ("receive", message("Sender")),
            "MPI_COLLECTIVE_END" | "NON_BLOCKING_COLLECTIVE_COMPLETE" => {
                let root = field(line, "Root").replace("NONE", "-1");
                let [operation, sent, received] =
                    ["Operation", "Sent", "Received"].map(|it| field(line, it));
                ("share", format!("{operation} {root} {sent} {received}"))
            }
            _ => ("", String::new()),
        };
        if !what.is_empty() {
            all[rank].entry(what).or_default().push(told);
        }
        let is_collective = kind.contains("COLLECTIVE");
        let key = (rank, is_collective, request);
        match kind {
            "MPI_ISEND"
            | "MPI_IRECV_REQUEST"
            | "NON_BLOCKING_COLLECTIVE_REQUEST"
            | "MPI_COLLECTIVE_BEGIN" => {
                assert!(open.insert(key), "{line}");
            }
            "MPI_ISEND_COMPLETE"
            | "MPI_IRECV"
            | "NON_BLOCKING_COLLECTIVE_COMPLETE"
            | "MPI_COLLECTIVE_END" => {
                assert!(open.remove(&key), "{line}");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

#[test]
fn otf2_print_shows_what_the_program_says() {
    if !tools::require(&["otf2-print"]) {
        return;
    }
    for mpi in Mpi::ALL.into_iter().filter(|it| it.is_here()) {
        let _a_turn = a_turn();
        let scratch = Scratch::new("messages-otf2");
        let run = recorded(mpi, &scratch);
        let archive = export(&run, &["--to", "otf2"], "otf2");
        let anchor = archive.join("traces.otf2");
        let print = |options: &[&str]| {
            let mut print = command::command(&["otf2-print"]);
            command::run(print.args(options).arg(&anchor))
                .success()
                .stdout
        };
        let expected: Vec<Done> = (0..RANKS).map(|rank| said(&scratch, rank)).collect();
        assert_eq!(printed(&print(&[])), expected, "{mpi:?}");
        // The world, and its halves: of even and of odd ranks, from the last to the first.
        let definitions = print(&["-G"]);
        let groups = definitions.lines().filter(|it| it.starts_with("GROUP"));
        let groups = groups.filter(|it| it.contains("COMM_GROUP")).map(|line| {
            let members = line.split("Members: ").nth(1).unwrap_or_default();
            let places = members.split(", ").filter_map(|it| it.split(' ').next());
            places.collect::<Vec<_>>().join(" ")
        });
        let groups: BTreeSet<String> = groups.collect();
        let expected = ["0 1 2 3", "2 0", "3 1"].map(str::to_owned);
        assert_eq!(groups, expected.into(), "{definitions}");
        assert_eq!(definitions.matches("\nCOMM ").count(), 3, "{definitions}");
        // The calls are those of the run.
        let again = run.directory.with_extension("again");
        let mut import = lockstep(&["import", "--from", "otf2", "-o"]);
        let _ = command::run(import.arg(&again).arg(&archive)).success();
        let again = Recording {
            directory: again,
            outcome: run.outcome.clone(),
        };
        for trace in run.traces() {
            let events = |run: &Recording| run.text(&["events", "-t", &trace]);
            assert_eq!(events(&again), events(&run), "{trace}");
        }
    }
}

/// Members of whose communicator not all are exported: messages have no record, and that is said.
#[test]
fn a_communicator_is_told_whole_or_not_at_all() {
    let Some(mpi) = Mpi::ALL.into_iter().find(|it| it.is_here()) else {
        return;
    };
    let _a_turn = a_turn();
    let scratch = Scratch::new("messages-part");
    let run = recorded(mpi, &scratch);
    let archive = run.directory.with_extension("part");
    let mut export = lockstep(&["export", "--to", "otf2", "-t", "0.0,2.0", "-o"]);
    let outcome = command::run(export.arg(&archive).arg(&run.directory)).success();
    assert!(outcome.stderr.contains("have no record"), "{outcome:#?}");
    if !tools::require(&["otf2-print"]) {
        return;
    }
    let mut print = command::command(&["otf2-print"]);
    let text = command::run(print.arg(archive.join("traces.otf2")))
        .success()
        .stdout;
    // Of the half of even ranks all is there.
    assert_eq!(text.matches("\nMPI_ISEND ").count(), 4, "{text}");
    assert_eq!(text.matches("\nMPI_IRECV ").count(), 4, "{text}");
}

/// Decodes flows with Perfetto's own descriptors: a line for each end of one, with the slice that it is on.
const FLOWS: &str = "
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as p
trace = p.Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
names, tracks, open_ = {}, {}, {}
for packet in trace.packet:
    for it in packet.interned_data.event_names: names[it.iid] = it.name
    if packet.HasField('track_descriptor'):
        if packet.track_descriptor.HasField('thread'):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.thread.thread_name
        continue
    event = packet.track_event
    track = tracks[event.track_uuid]
    stack = open_.setdefault(track, [])
    if event.type == event.TYPE_SLICE_BEGIN: stack.append(names[event.name_iid])
    for it in event.flow_ids: print('begin', it, track, stack[-1], packet.timestamp)
    for it in event.terminating_flow_ids: print('end', it, track, stack[-1], packet.timestamp)
    if event.type == event.TYPE_SLICE_END: stack.pop()
";

#[test]
fn perfetto_has_an_arrow_for_each_message() {
    let Some(python) = tools::python_with("perfetto") else {
        return;
    };
    for mpi in Mpi::ALL.into_iter().filter(|it| it.is_here()) {
        let _a_turn = a_turn();
        let scratch = Scratch::new("messages-perfetto");
        let run = recorded(mpi, &scratch);
        let file = export(&run, &["--to", "perfetto"], "perfetto");
        let mut flows = command::command(&[python, "-c", FLOWS]);
        flows.env("PYTHONPATH", tools::python_packages()).arg(&file);
        let text = command::run(&mut flows).success().stdout;
        let mut ends: BTreeMap<&str, BTreeMap<&str, (&str, &str, u64)>> = BTreeMap::new();
        for line in text.lines() {
            let [end, id, track, slice, time] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let at = (track, slice, time.parse().expect("a time"));
            let before = ends.entry(id).or_default().insert(end, at);
            assert!(before.is_none(), "{line}");
        }
        let sent = |it: Done| it.get("send").map_or(0, Vec::len);
        let sent: usize = (0..RANKS).map(|rank| sent(said(&scratch, rank))).sum();
        assert_eq!(ends.len(), sent, "{text}");
        for both in ends.values() {
            let (begin, end) = (both["begin"], both["end"]);
            assert!(
                ["MPI_Send", "MPI_Isend", "MPI_Sendrecv"].contains(&begin.1),
                "{both:?}"
            );
            assert!(
                ["MPI_Recv", "MPI_Wait", "MPI_Sendrecv"].contains(&end.1),
                "{both:?}"
            );
            assert!(begin.0 != end.0 && begin.2 <= end.2, "{both:?}");
        }
    }
}

/// Prints the rows of a table, its columns first.
const ROWS: &str = "
import duckdb, sys
table = duckdb.read_parquet(sys.argv[1])
print(*table.columns)
for row in table.fetchall(): print(*row, sep='\\t')
";

/// The rows of a table, with their columns' names.
fn rows(run: &Recording, python: &str, table: &str) -> Vec<BTreeMap<String, String>> {
    let file = export(run, &["--to", "parquet", "--table", table], table);
    let mut rows = command::command(&[python, "-c", ROWS]);
    rows.env("PYTHONPATH", tools::python_packages()).arg(&file);
    let text = command::run(&mut rows).success().stdout;
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().expect("columns").split(' ').collect();
    let row = |line: &str| {
        let cells = columns.iter().zip(line.split('\t'));
        cells
            .map(|(column, cell)| ((*column).to_owned(), cell.to_owned()))
            .collect()
    };
    lines.map(row).collect()
}

/// Some columns of them.
fn columns<const N: usize>(
    rows: &[BTreeMap<String, String>],
    names: [&str; N],
) -> Vec<[String; N]> {
    rows.iter()
        .map(|row| names.map(|it| row[it].clone()))
        .collect()
}

fn list(found: &Value, key: &str) -> Vec<Value> {
    found[key].as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn duckdb_reads_what_progress_finds() {
    let Some(python) = tools::python_with("duckdb") else {
        return;
    };
    let Some(mpi) = Mpi::ALL.into_iter().find(|it| it.is_here()) else {
        return;
    };
    let _a_turn = a_turn();
    let scratch = Scratch::new("messages-tables");
    let program = mpi.recipe("odd_even.c").flags(&["-g", "-O1"]).build();
    let mut words: Vec<String> = ["timeout", "-k", "5", "120"].map(str::to_owned).into();
    // Each rank goes round often enough to meet the bug.
    words.extend(mpi.launch(16));
    words.push(program.display().to_string());
    words.extend(["--bug", "deadlock"].map(str::to_owned));
    let run = record(&scratch, &["--hang", "60", "--on-hang", "stop"], &words);
    let found = run.json(&["progress"]);
    assert_eq!(found["kind"], "deadlock", "{found:#}");
    // A row for each member of each group.
    let mut expected = Vec::new();
    for group in list(&found, "groups") {
        let function = list(&group, "stack").last().map_or("None".to_owned(), text);
        let is_least = list(&found, "least_progressed").contains(&group["id"]);
        for task in list(&group, "processes") {
            let least = u8::from(is_least).to_string();
            expected.push([text(&group["id"]), text(&task), function.clone(), least]);
        }
    }
    let groups = rows(&run, python, "groups");
    let names = ["id", "task", "function", "least_progressed"];
    assert_eq!(columns(&groups, names), expected);
    let waits = rows(&run, python, "waits");
    let expected = list(&found, "waits");
    let expected = expected
        .iter()
        .map(|it| ["from", "to", "why"].map(|key| text(&it[key])));
    let expected: Vec<[String; 3]> = expected.collect();
    assert_eq!(columns(&waits, ["task", "waits_for", "why"]), expected);
    let stuck: BTreeSet<String> = list(&found, "stuck").iter().map(text).collect();
    let waits_forever = |it: &&BTreeMap<String, String>| it["forever"] == "1";
    let forever = waits
        .iter()
        .filter(waits_forever)
        .map(|it| it["task"].clone());
    assert_eq!(forever.collect::<BTreeSet<_>>(), stuck);
    // A row for each trace of each fact.
    let facts = (1..).zip(list(&found, "facts"));
    let expected = facts.flat_map(|(place, fact): (u32, Value)| {
        let who = list(&fact, "who").into_iter();
        who.map(move |it| [place.to_string(), text(&fact["kind"]), text(&it)])
    });
    let expected: Vec<[String; 3]> = expected.collect();
    let suspects = rows(&run, python, "suspects");
    assert_eq!(columns(&suspects, ["finding", "kind", "trace"]), expected);
    assert!(!suspects.is_empty());
}

#[test]
fn a_table_of_findings_is_of_a_run_as_a_whole() {
    let scratch = Scratch::new("messages-refusals");
    let attempt = |options: &[&str]| {
        let mut export = lockstep(&["export", "nowhere", "-o"]);
        let outcome = command::run(export.arg(scratch.join("out")).args(options));
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        outcome.stderr
    };
    let refusal = attempt(&["--to", "json", "--table", "waits"]);
    assert!(refusal.contains("expected the format parquet"), "{refusal}");
    let refusal = attempt(&["--to", "parquet", "--table", "waits", "-t", "0.0"]);
    assert!(refusal.contains("expected a run as a whole"), "{refusal}");
}
