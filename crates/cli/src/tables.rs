//! What `progress` finds, as tables: rows for query engines, beside the table of calls.

use clap::ValueEnum;
use lockstep_exchange::{Column, Table, Value};
use lockstep_progress::{Progress, Wait, Why};
use lockstep_trace::{Fact, SourceLine};
use serde::Serialize;

/// Which table `export --to parquet` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// A row for each call
    Calls,
    /// A row for each task of each progress group: where it stands
    Groups,
    /// A row for each wait of one task for another
    Waits,
    /// A row for each trace of each finding, the most telling finding first
    Suspects,
}

/// The table with this name; nothing of calls, which `progress` does not look at.
pub(crate) fn table(name: Name, found: &Progress) -> Option<Table> {
    match name {
        Name::Calls => None,
        Name::Groups => Some(groups(found)),
        Name::Waits => Some(waits(found)),
        Name::Suspects => Some(suspects(&found.facts())),
    }
}

fn number(number: impl TryInto<i64>) -> Value {
    number.try_into().map_or(Value::None, Value::Number)
}

fn text(text: Option<impl ToString>) -> Value {
    text.map_or(Value::None, |it| Value::Text(it.to_string()))
}

/// Lists and words as they stand in JSON.
fn json(value: &impl Serialize) -> Value {
    text(serde_json::to_string(value).ok())
}

fn line(line: Option<&SourceLine>) -> [Value; 2] {
    let at = line.map_or(Value::None, |it| number(it.line));
    [text(line.map(|it| &it.file)), at]
}

fn groups(found: &Progress) -> Table {
    let mut rows = Vec::new();
    for (id, group) in found.groups.iter().enumerate() {
        let stack: Vec<&str> = group.stack.iter().map(|it| it.function.as_str()).collect();
        let source = group
            .stack
            .iter()
            .rev()
            .find_map(|it| it.called_at.as_ref());
        let ahead = found.edges.iter().filter(|(_, less)| *less == id);
        let ahead: Vec<usize> = ahead.map(|(more, _)| *more).collect();
        for task in &group.tasks {
            let [file, at] = line(source);
            let trace = found.tasks.get(task).map(|it| it.trace);
            let is_least = found.least.contains(&id);
            rows.push(vec![
                number(id),
                number(*task),
                text(trace),
                text(Some(lockstep_wording::word(found, group))),
                number(i64::from(is_least)),
                json(&ahead),
                text(stack.last()),
                file,
                at,
                json(&stack),
                json(&group.loops),
            ]);
        }
    }
    let columns = vec![
        Column::Numbers("id"),
        Column::Numbers("task"),
        Column::Texts("trace"),
        Column::Texts("activity"),
        Column::Numbers("least_progressed"),
        Column::Texts("behind"),
        Column::Texts("function"),
        Column::Texts("file"),
        Column::Numbers("line"),
        Column::Texts("stack"),
        Column::Texts("loops"),
    ];
    Table {
        name: "groups",
        columns,
        rows,
    }
}

fn waits(found: &Progress) -> Table {
    let tag = |wait: &Wait| match wait.why {
        Why::Message(tag) => tag.map_or(Value::None, Value::Number),
        Why::OtherTag(tag, _) | Why::Receiver(tag) => Value::Number(tag),
        Why::Collective(..) | Why::Epoch(_) | Why::Unlock(_) => Value::None,
    };
    let row = |wait: &Wait| {
        vec![
            number(wait.from),
            number(wait.to),
            text(Some(lockstep_wording::reason(found, wait))),
            tag(wait),
            number(i64::from(wait.or_another)),
            number(i64::from(found.waiting.stuck.contains(&wait.from))),
        ]
    };
    let columns = vec![
        Column::Numbers("task"),
        Column::Numbers("waits_for"),
        Column::Texts("why"),
        Column::Numbers("tag"),
        Column::Numbers("or_another"),
        Column::Numbers("forever"),
    ];
    Table {
        name: "waits",
        columns,
        rows: found.waiting.waits.iter().map(row).collect(),
    }
}

fn suspects(facts: &[Fact]) -> Table {
    let mut rows = Vec::new();
    for (place, fact) in (1..).zip(facts) {
        for trace in &fact.who {
            let [file, at] = line(fact.lines.first());
            rows.push(vec![
                Value::Number(place),
                text(Some(fact.kind)),
                text(Some(trace)),
                number(trace.process.rank),
                text(fact.function.as_ref()),
                file,
                at,
            ]);
        }
    }
    let columns = vec![
        Column::Numbers("finding"),
        Column::Texts("kind"),
        Column::Texts("trace"),
        Column::Numbers("process"),
        Column::Texts("function"),
        Column::Texts("file"),
        Column::Numbers("line"),
    ];
    Table {
        name: "suspects",
        columns,
        rows,
    }
}
