//! What `events --json` prints.

use super::{Events, Shown};
use lockstep_comm::communicators::{Meaning, Resolved};
use lockstep_trace::{Event, Run, Thread, TraceName, When};
use schemars::JsonSchema;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The events of a trace.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// The trace.
    trace: TraceName,
    /// The events, in order.
    #[schemars(with = "Vec<Row>")]
    events: Rows<'a>,
}

impl<'a> Document<'a> {
    pub fn new(options: &'a Events, run: &'a Run, thread: &'a Thread) -> Self {
        Self {
            trace: thread.name,
            events: Rows(options, run, thread),
        }
    }
}

/// Not held in memory: an event is written as it is decoded.
struct Rows<'a>(&'a Events, &'a Run, &'a Thread);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(options, run, thread) = *self;
        let mut rows = serializer.serialize_seq(None)?;
        options.each(run, thread, |shown| {
            rows.serialize_element(&Row::of(run, &shown))
        })?;
        rows.end()
    }
}

/// One event.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
struct Row<'a> {
    /// What happened.
    event: Kind,
    /// For a call: the number of the function in this run. Absent for other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    /// For a call: the name of the function. Absent for other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// With `--arguments`: arguments of an MPI call, or what it gave back at its return, by their names in the
    /// standard. Absent for other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<BTreeMap<&'static str, String>>,
    /// With `--arguments`: the communicator of the call. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    communicator: Option<String>,
    /// With `--arguments`: the ranks in `MPI_COMM_WORLD` for each argument that is a rank. Absent if no argument is one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    world: BTreeMap<&'static str, World>,
    /// With `--inferred`: true for a return that nobody saw. Absent for other events.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inferred: bool,
    #[serde(flatten)]
    time: Option<Time>,
}

/// What happened.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// A function is called.
    Call,
    /// The innermost open call returns.
    Return,
    /// With `--raw`: the innermost open call hands over to the next call and ends with it (a tail call).
    Tail,
}

/// Ranks in `MPI_COMM_WORLD`. A rank is null if it is unknown.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum World {
    /// The argument is one rank.
    One(Option<u32>),
    /// The argument holds several ranks.
    Several(Vec<Option<u32>>),
}

/// With `--time`: when the event happened, in seconds since the run began.
#[derive(Default, Serialize, JsonSchema)]
struct Time {
    /// The time in seconds. Absent if it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// True if the time was measured. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    known: bool,
    /// The earliest possible time in seconds. Absent if the time was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<f64>,
    /// The latest possible time in seconds, or null if it is unknown. Absent if the time was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Option<f64>>,
}

impl<'a> Row<'a> {
    fn of(run: &'a Run, shown: &Shown<'_>) -> Self {
        let (event, function) = match shown.event {
            Event::Call(function) => (Kind::Call, Some(function)),
            Event::Return => (Kind::Return, None),
            Event::Tail => (Kind::Tail, None),
        };
        let known = shown.known;
        let communicator = shown.arguments.and_then(Resolved::communicator);
        Self {
            event,
            id: function.map(|it| it.0),
            name: function.map(|it| run.function(it).name.as_str()),
            arguments: shown.arguments.map(|it| known.show(it).texts().collect()),
            communicator: communicator.map(|id| known.name(id)),
            world: shown.arguments.map(world_ranks).unwrap_or_default(),
            inferred: shown.inferred,
            time: shown.when.map(Time::of),
        }
    }
}

/// The world ranks behind arguments that are ranks.
fn world_ranks(event: &Resolved) -> BTreeMap<&'static str, World> {
    let arguments = event.annotated.arguments.as_deref().unwrap_or(&[]);
    let pairs = arguments.iter().zip(&event.meanings);
    let ranks = pairs.filter_map(|(argument, meaning)| {
        let world = match meaning {
            Meaning::Peer(peer) => World::One(peer.world),
            Meaning::Peers(peers) => {
                let each = peers.iter().map(|peer| peer.and_then(|peer| peer.world));
                World::Several(each.collect())
            }
            _ => return None,
        };
        Some((argument.name, world))
    });
    ranks.collect()
}

impl Time {
    fn of(when: When) -> Self {
        match when {
            When::Known(time) => Self {
                seconds: Some(time.as_secs_f64()),
                known: true,
                ..Self::default()
            },
            When::Between(..) | When::After(_) => Self {
                after: Some(when.earliest().as_secs_f64()),
                before: Some(when.latest().map(|it| it.as_secs_f64())),
                ..Self::default()
            },
        }
    }
}
