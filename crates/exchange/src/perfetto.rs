//! Perfetto's trace packets: one track a thread, processes named by their ranks, arguments of MPI calls as debug
//! annotations. A call that never returned is a slice without an end. A flow leads from the call that sent a message to the one that
//! completed its receive; it ends at the end of that, since a receive may begin before anything is sent. Of collective operations
//! there are none: each needs as many as it has members, and they would hide the messages.
//!
//! Process and thread ids are numbers of our own, since those of several hosts may be the same. Names stand once, in
//! the packet that needs them first.

use crate::along::Along;
use crate::protobuf::Message;
use crate::spans::{Clock, Span, each_span};
use crate::view::View;
use lockstep_comm::Talk;
use lockstep_comm::talk::What;
use lockstep_trace::{Argument, FunctionId, Process, Run, Thread, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{self, Write};

/// Field numbers of Perfetto's messages.
mod field {
    pub const TRACE_PACKET: u64 = 1;

    pub const PACKET_TIMESTAMP: u64 = 8;
    pub const PACKET_SEQUENCE: u64 = 10;
    pub const PACKET_EVENT: u64 = 11;
    pub const PACKET_INTERNED: u64 = 12;
    pub const PACKET_FLAGS: u64 = 13;
    pub const PACKET_TRACK: u64 = 60;

    pub const TRACK_UUID: u64 = 1;
    pub const TRACK_PROCESS: u64 = 3;
    pub const TRACK_THREAD: u64 = 4;

    pub const PROCESS_PID: u64 = 1;
    pub const PROCESS_COMMAND: u64 = 2;
    pub const PROCESS_NAME: u64 = 6;

    pub const THREAD_PID: u64 = 1;
    pub const THREAD_TID: u64 = 2;
    pub const THREAD_NAME: u64 = 5;

    pub const EVENT_ANNOTATION: u64 = 4;
    pub const EVENT_KIND: u64 = 9;
    pub const EVENT_NAME: u64 = 10;
    pub const EVENT_TRACK: u64 = 11;
    pub const EVENT_SOURCE: u64 = 34;
    pub const EVENT_FLOW: u64 = 47;
    pub const EVENT_LAST_OF_FLOW: u64 = 48;

    pub const ANNOTATION_NAME: u64 = 1;
    pub const ANNOTATION_NUMBER: u64 = 4;
    pub const ANNOTATION_TEXT: u64 = 6;

    pub const INTERNED_EVENT_NAME: u64 = 2;
    pub const INTERNED_ANNOTATION_NAME: u64 = 3;
    pub const INTERNED_SOURCE: u64 = 4;

    pub const NAME_ID: u64 = 1;
    pub const NAME_TEXT: u64 = 2;

    pub const SOURCE_ID: u64 = 1;
    pub const SOURCE_FILE: u64 = 2;
    pub const SOURCE_LINE: u64 = 4;
}

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
/// Names that were told before are no longer known.
const CLEARED: u64 = 1;
/// It needs names that were told before.
const NEEDS: u64 = 2;
/// All packets are one sequence.
const SEQUENCE: u64 = 1;

pub(crate) fn write(
    run: &Run,
    threads: &[&Thread],
    (clock, view): (&Clock, &View),
    talk: &Talk,
    out: &mut impl Write,
) -> io::Result<u64> {
    let mut left_out = 0;
    let mut writer = Writer {
        run,
        talk,
        out,
        is_first: true,
        functions: FxHashSet::default(),
        names: FxHashMap::default(),
    };
    let mut id = 1;
    for process in &run.processes {
        let own: Vec<&&Thread> = threads
            .iter()
            .filter(|thread| thread.name.process == process.name)
            .collect();
        if own.is_empty() {
            continue;
        }
        let pid = id;
        id += own.len() as u64;
        writer.process(process, pid, clock)?;
        for (thread, tid) in own.into_iter().zip(pid..) {
            left_out += writer.thread(thread, pid, tid, (clock, view))?;
        }
    }
    Ok(left_out)
}

struct Writer<'a, W> {
    run: &'a Run,
    talk: &'a Talk,
    out: &'a mut W,
    is_first: bool,
    /// Functions whose names were told.
    functions: FxHashSet<FunctionId>,
    /// Names of arguments that were told.
    names: FxHashMap<&'static str, u64>,
}

/// Tracks of processes and threads are told apart by the lowest bit.
const fn process_track(pid: u64) -> u64 {
    2 * pid
}

const fn thread_track(tid: u64) -> u64 {
    2 * tid + 1
}

impl<W: Write> Writer<'_, W> {
    fn packet(&mut self, mut packet: Message) -> io::Result<()> {
        packet.number(field::PACKET_SEQUENCE, SEQUENCE);
        let flags = if self.is_first {
            CLEARED | NEEDS
        } else {
            NEEDS
        };
        self.is_first = false;
        packet.number(field::PACKET_FLAGS, flags);
        let mut framed = Message::default();
        framed.message(field::TRACE_PACKET, &packet);
        self.out.write_all(&framed.0)
    }

    fn process(&mut self, process: &Process, pid: u64, clock: &Clock) -> io::Result<()> {
        let what = if process.rank.is_some() {
            "rank"
        } else {
            "process"
        };
        let mut name = format!("{what} {}", process.name);
        if let Clock::Logical(_) = clock {
            name.push_str(" (logical times: events)");
        }
        let mut described = Message::default();
        described
            .signed(field::PROCESS_PID, pid.cast_signed())
            .text(field::PROCESS_COMMAND, &process.program)
            .text(field::PROCESS_NAME, &name);
        let mut track = Message::default();
        track
            .number(field::TRACK_UUID, process_track(pid))
            .message(field::TRACK_PROCESS, &described);
        let mut packet = Message::default();
        packet.message(field::PACKET_TRACK, &track);
        self.packet(packet)
    }

    /// Writes the trace of a thread; how many calls it left out.
    fn thread(
        &mut self,
        thread: &Thread,
        pid: u64,
        tid: u64,
        (clock, view): (&Clock, &View),
    ) -> io::Result<u64> {
        let mut described = Message::default();
        described
            .signed(field::THREAD_PID, pid.cast_signed())
            .signed(field::THREAD_TID, tid.cast_signed())
            .text(field::THREAD_NAME, &thread.name.to_string());
        let mut track = Message::default();
        track
            .number(field::TRACK_UUID, thread_track(tid))
            .message(field::TRACK_THREAD, &described);
        let mut packet = Message::default();
        packet.message(field::PACKET_TRACK, &track);
        self.packet(packet)?;
        let mut along = Along::new(self.talk, thread.name);
        let rest = each_span(thread, clock, view, |moment, span, at| {
            let mut event = Message::default();
            let mut interned = Message::default();
            event.number(field::EVENT_TRACK, thread_track(tid));
            let (arguments, bounds) = match span {
                Span::Open(function, arguments) => {
                    event.number(field::EVENT_KIND, SLICE_BEGIN);
                    self.name(function, &mut event, &mut interned);
                    for (_, contact) in along.begun(at.index) {
                        if let What::Send(message) = &contact.what
                            && let Some(number) = message.number
                        {
                            event.fixed(field::EVENT_FLOW, u64::from(number.get()));
                        }
                    }
                    (arguments, ["began not before", "began not after"])
                }
                Span::Close(_, results) => {
                    event.number(field::EVENT_KIND, SLICE_END);
                    for (_, contact) in along.over(at.index) {
                        if let What::Receive(message) = &contact.what
                            && let Some(number) = message.number
                        {
                            let number = u64::from(number.get());
                            event.fixed(field::EVENT_LAST_OF_FLOW, number);
                        }
                    }
                    (results, ["ended not before", "ended not after"])
                }
            };
            // It stands at one of its bounds: the other one is the mark.
            if moment.measured().is_none() {
                let other = if moment.shown == moment.earliest {
                    moment.latest.map(|latest| (bounds[1], latest))
                } else {
                    Some((bounds[0], moment.earliest))
                };
                if let Some((name, time)) = other {
                    let mut annotation = self.named(name, &mut interned);
                    annotation.signed(field::ANNOTATION_NUMBER, time.cast_signed());
                    event.message(field::EVENT_ANNOTATION, &annotation);
                }
            }
            let told = arguments.unwrap_or_default().iter();
            for argument in told.filter(|it| it.value.is_shown()) {
                let annotation = self.annotation(argument, &mut interned);
                event.message(field::EVENT_ANNOTATION, &annotation);
            }
            let mut packet = Message::default();
            packet.number(field::PACKET_TIMESTAMP, moment.shown);
            if !interned.0.is_empty() {
                packet.message(field::PACKET_INTERNED, &interned);
            }
            packet.message(field::PACKET_EVENT, &event);
            self.packet(packet)
        })?;
        Ok(rest.left_out)
    }

    /// Name and source line of a function; told where they are new.
    fn name(&mut self, function: FunctionId, event: &mut Message, interned: &mut Message) {
        let number = u64::from(function.0) + 1;
        event.number(field::EVENT_NAME, number);
        let is_new = self.functions.insert(function);
        let function = self.run.function(function);
        if is_new {
            let mut name = Message::default();
            name.number(field::NAME_ID, number)
                .text(field::NAME_TEXT, &function.name);
            interned.message(field::INTERNED_EVENT_NAME, &name);
        }
        if let Some(source) = &function.source {
            event.number(field::EVENT_SOURCE, number);
            if is_new {
                let mut place = Message::default();
                place
                    .number(field::SOURCE_ID, number)
                    .text(field::SOURCE_FILE, &source.file)
                    .number(field::SOURCE_LINE, source.line.into());
                interned.message(field::INTERNED_SOURCE, &place);
            }
        }
    }

    /// An annotation of this name, without its value; the name is told where it is new.
    fn named(&mut self, text: &'static str, interned: &mut Message) -> Message {
        let next = self.names.len() as u64 + 1;
        let number = *self.names.entry(text).or_insert(next);
        if number == next {
            let mut name = Message::default();
            name.number(field::NAME_ID, number)
                .text(field::NAME_TEXT, text);
            interned.message(field::INTERNED_ANNOTATION_NAME, &name);
        }
        let mut annotation = Message::default();
        annotation.number(field::ANNOTATION_NAME, number);
        annotation
    }

    fn annotation(&mut self, argument: &Argument, interned: &mut Message) -> Message {
        let mut annotation = self.named(argument.name, interned);
        match &argument.value {
            Value::Number(value)
            | Value::Rank {
                rank: value,
                name: None,
            }
            | Value::Tag(Some(value)) => annotation.signed(field::ANNOTATION_NUMBER, *value),
            other => annotation.text(field::ANNOTATION_TEXT, &other.to_string()),
        };
        annotation
    }
}
