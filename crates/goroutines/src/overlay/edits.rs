//! What is edited in the toolchain's own sources, and how an edit finds its place.
//!
//! An edit names a function by the line that begins it and, inside, a line that must be there exactly once. Edits of
//! one class of events stand and fall together: where one misses its anchor, none of the class is made, so that no
//! half of a story is recorded.

/// A class of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The ring itself: without it nothing is recorded.
    Core,
    /// Creation, parking, readying and end of goroutines.
    Goroutines,
    /// Sends, receives, closes.
    Channels,
    /// `select`
    Selects,
    /// `sync.Mutex`
    Mutexes,
    /// `sync.RWMutex`
    RwMutexes,
    /// `sync.WaitGroup`
    WaitGroups,
    /// `sync.Cond`
    Conds,
    /// `sync.Once`
    Onces,
    /// The types of `sync/atomic`, as places for delays.
    Atomics,
    /// `sync.Map`, as such places too.
    Maps,
    /// `time.Sleep`
    Sleeps,
    /// Panics.
    Panics,
    /// What stands at the program's end.
    Exits,
    /// Seeded random numbers.
    Random,
    /// Which of several cases a `select` takes.
    Choices,
    /// What the garbage collector proves.
    Leaks,
    /// Whether the program itself asks where its goroutines stand.
    Looks,
    /// A clock that stands, for replays.
    Clock,
}

impl Class {
    /// As a reader knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "recording",
            Self::Goroutines => "goroutines",
            Self::Channels => "channel operations",
            Self::Selects => "select statements",
            Self::Mutexes => "sync.Mutex",
            Self::RwMutexes => "sync.RWMutex",
            Self::WaitGroups => "sync.WaitGroup",
            Self::Conds => "sync.Cond",
            Self::Onces => "sync.Once",
            Self::Atomics => "delays at the types of sync/atomic",
            Self::Maps => "delays at sync.Map",
            Self::Sleeps => "time.Sleep",
            Self::Panics => "panics",
            Self::Exits => "states at the end",
            Self::Random => "seeded random numbers",
            Self::Choices => "chosen cases of select statements",
            Self::Leaks => "the collector's proofs of leaks",
            Self::Looks => "looks of the program at its own goroutines",
            Self::Clock => "clocks in replays",
        }
    }
}

/// What is done at an anchor.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// The function gets another name; our file has one with its own.
    Rename(&'static str),
    /// Text behind the line that begins the function.
    Top(&'static str),
    /// Text before the brace that ends the function.
    Bottom(&'static str),
    /// Text before this line.
    Before(&'static str, &'static str),
    /// Text behind this line.
    After(&'static str, &'static str),
}

/// An edit.
#[derive(Debug, Clone, Copy)]
pub struct Edit {
    /// The file, below `GOROOT/src`.
    pub file: &'static str,
    /// What it is for.
    pub class: Class,
    /// The beginning of the line that begins the function.
    pub function: &'static str,
    /// What is done.
    pub how: How,
}

const fn edit(file: &'static str, class: Class, function: &'static str, how: How) -> Edit {
    Edit {
        file,
        class,
        function,
        how,
    }
}

const PROC: &str = "runtime/proc.go";
const CHAN: &str = "runtime/chan.go";
const SELECT: &str = "runtime/select.go";

/// The edits of package runtime.
pub const RUNTIME: &[Edit] = &[
    edit(
        PROC,
        Class::Core,
        "func schedinit() {",
        How::Top("\tlockstepInit()"),
    ),
    edit(
        PROC,
        Class::Core,
        "func main() {",
        How::Before("\tif mp != &m0 {", "\tlockstepStart()"),
    ),
    edit(
        PROC,
        Class::Core,
        "func checkdead() {",
        How::Top("\tif lockstepOn {\n\t\treturn // the watching thread tells\n\t}"),
    ),
    edit(
        PROC,
        Class::Exits,
        "func main() {",
        How::After("\tfn()", "\tlockstepReturned()"),
    ),
    edit(
        PROC,
        Class::Exits,
        "func os_beforeExit(exitCode int) {",
        How::Top("\tlockstepAtExit(exitCode)"),
    ),
    edit(
        PROC,
        Class::Goroutines,
        "func newproc(fn *funcval) {",
        How::Top("\tif lockstepOn {\n\t\tlockstepBefore(sys.GetCallerPC())\n\t}"),
    ),
    edit(
        PROC,
        Class::Goroutines,
        "func newproc(fn *funcval) {",
        How::Bottom("\tif lockstepOn {\n\t\tlockstepBehind(sys.GetCallerPC())\n\t}"),
    ),
    edit(
        PROC,
        Class::Goroutines,
        "func newproc1(",
        How::Before(
            "\treturn newg",
            "\tif lockstepOn {\n\t\tlockstepCreated(newg, callergp, callerpc)\n\t}",
        ),
    ),
    edit(
        PROC,
        Class::Goroutines,
        "func gopark(",
        How::After(
            "\tgp.waitreason = reason",
            "\tif lockstepOn {\n\t\tlockstepParks(gp, reason)\n\t}",
        ),
    ),
    edit(
        PROC,
        Class::Goroutines,
        "func ready(",
        How::Before(
            "\tcasgstatus(gp, _Gwaiting, _Grunnable)",
            "\tif lockstepOn {\n\t\tlockstepReadies(gp)\n\t}",
        ),
    ),
    edit(
        PROC,
        Class::Goroutines,
        "func goexit1() {",
        How::Top("\tif lockstepOn {\n\t\tlockstepEnds()\n\t}"),
    ),
    edit(
        CHAN,
        Class::Channels,
        "func chansend1(",
        How::Rename("lockstepChansend1"),
    ),
    edit(
        CHAN,
        Class::Channels,
        "func chanrecv1(",
        How::Rename("lockstepChanrecv1"),
    ),
    edit(
        CHAN,
        Class::Channels,
        "func chanrecv2(",
        How::Rename("lockstepChanrecv2"),
    ),
    edit(
        CHAN,
        Class::Channels,
        "func makechan(",
        How::Before(
            "\treturn c",
            "\tif lockstepOn {\n\t\tlockstepMade(c, size, sys.GetCallerPC())\n\t}",
        ),
    ),
    edit(
        CHAN,
        Class::Channels,
        "func closechan(",
        How::Top("\tlockstepCounts := lockstepBeginClose(c, sys.GetCallerPC())"),
    ),
    edit(
        CHAN,
        Class::Channels,
        "func closechan(",
        How::Bottom("\tif lockstepCounts {\n\t\tlockstepFinish(lockstepKindClose, true)\n\t}"),
    ),
    edit(
        CHAN,
        Class::Selects,
        "func selectnbsend(",
        How::Rename("lockstepSelectnbsend"),
    ),
    edit(
        CHAN,
        Class::Selects,
        "func selectnbrecv(",
        How::Rename("lockstepSelectnbrecv"),
    ),
    edit(
        SELECT,
        Class::Selects,
        "func block() {",
        How::Top("\tif lockstepOn {\n\t\tlockstepForever(sys.GetCallerPC())\n\t}"),
    ),
    edit(
        SELECT,
        Class::Selects,
        "func selectgo(",
        How::Top(
            "\tlockstepCounts := lockstepOn && lockstepBeginSelect(cas0, nsends, nrecvs, block, sys.GetCallerPC())",
        ),
    ),
    edit(
        SELECT,
        Class::Selects,
        "func selectgo(",
        How::Before(
            "\treturn casi, recvOK",
            "\tif lockstepCounts {\n\t\tlockstepTook(casi >= 0, uintptr(casi), recvOK || casi < nsends)\n\t}",
        ),
    ),
    edit(
        SELECT,
        Class::Choices,
        "func selectgo(",
        How::After(
            "\tpollorder = pollorder[:norder]",
            "\tif lockstepOn {\n\t\tlockstepPrefer(pollorder)\n\t}",
        ),
    ),
    edit(
        "runtime/time.go",
        Class::Sleeps,
        "func timeSleep(",
        How::Rename("lockstepTimeSleep"),
    ),
    edit(
        "runtime/panic.go",
        Class::Panics,
        "func gopanic(",
        How::Top("\tif lockstepOn {\n\t\tlockstepPanics(sys.GetCallerPC())\n\t}"),
    ),
    edit(
        "runtime/rand.go",
        Class::Random,
        "func randinit() {",
        How::Before("\tglobalRand.state.Init(*seed)", "\tlockstepSeed(seed)"),
    ),
    edit(
        "runtime/mprof.go",
        Class::Looks,
        "func Stack(",
        How::Top("\tif lockstepOn && all {\n\t\tlockstepLooked()\n\t}"),
    ),
    edit(
        "runtime/mprof.go",
        Class::Looks,
        "func goroutineProfileWithLabels(",
        How::Top("\tif lockstepOn {\n\t\tlockstepLooked()\n\t}"),
    ),
    edit(
        "runtime/debug.go",
        Class::Looks,
        "func NumGoroutine() int {",
        How::Top("\tif lockstepOn {\n\t\tlockstepLooked()\n\t}"),
    ),
    edit(
        "runtime/time_nofake.go",
        Class::Clock,
        "func nanotime() int64 {",
        How::Before(
            "\treturn nanotime1()",
            "\tif lockstepTimes != 0 {\n\t\treturn lockstepNow()\n\t}",
        ),
    ),
    edit(
        "runtime/time.go",
        Class::Clock,
        "func time_runtimeNow() (",
        How::Before(
            "\treturn time_now()",
            "\tif lockstepTimes != 0 {\n\t\treturn lockstepWall(time_now())\n\t}",
        ),
    ),
];

/// Lines that must be there for what our own files use of a class, without an edit: file, class, line without its
/// comment.
pub const NEEDS: &[(&str, Class, &str)] = &[
    ("runtime/mgc.go", Class::Leaks, "func goroutineLeakGC() {"),
    ("runtime/runtime2.go", Class::Leaks, "_Gleaked"),
    (
        "runtime/netpoll.go",
        Class::Clock,
        "func netpollAnyWaiters() bool {",
    ),
    ("runtime/chan.go", Class::Clock, "timer    *timer"),
];

/// A public method of package sync.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// Its file, below `GOROOT/src`.
    pub file: &'static str,
    /// What it is for.
    pub class: Class,
    /// `Mutex`
    pub receiver: &'static str,
    /// `Lock`
    pub name: &'static str,
    /// Its parameters, with types.
    pub parameters: &'static str,
    /// The number of its records.
    pub kind: u8,
    /// Whether it says if it locked.
    pub tries: bool,
}

const fn method(
    file: &'static str,
    class: Class,
    receiver: &'static str,
    name: &'static str,
    kind: u8,
) -> Method {
    Method {
        file,
        class,
        receiver,
        name,
        parameters: "",
        kind,
        tries: false,
    }
}

const fn tries(
    file: &'static str,
    class: Class,
    receiver: &'static str,
    name: &'static str,
    kind: u8,
) -> Method {
    let mut it = method(file, class, receiver, name, kind);
    it.tries = true;
    it
}

const fn takes(
    file: &'static str,
    class: Class,
    receiver: &'static str,
    (name, parameters): (&'static str, &'static str),
    kind: u8,
) -> Method {
    let mut it = method(file, class, receiver, name, kind);
    it.parameters = parameters;
    it
}

const RW: &str = "sync/rwmutex.go";
const WG: &str = "sync/waitgroup.go";

/// The methods that are wrapped.
pub const METHODS: &[Method] = &[
    method("sync/mutex.go", Class::Mutexes, "Mutex", "Lock", 5),
    tries("sync/mutex.go", Class::Mutexes, "Mutex", "TryLock", 6),
    method("sync/mutex.go", Class::Mutexes, "Mutex", "Unlock", 7),
    method(RW, Class::RwMutexes, "RWMutex", "RLock", 8),
    tries(RW, Class::RwMutexes, "RWMutex", "TryRLock", 9),
    method(RW, Class::RwMutexes, "RWMutex", "RUnlock", 10),
    method(RW, Class::RwMutexes, "RWMutex", "Lock", 11),
    tries(RW, Class::RwMutexes, "RWMutex", "TryLock", 12),
    method(RW, Class::RwMutexes, "RWMutex", "Unlock", 13),
    takes(WG, Class::WaitGroups, "WaitGroup", ("Add", "delta int"), 14),
    method(WG, Class::WaitGroups, "WaitGroup", "Done", 15),
    method(WG, Class::WaitGroups, "WaitGroup", "Wait", 16),
    takes(WG, Class::WaitGroups, "WaitGroup", ("Go", "f func()"), 14),
    takes("sync/once.go", Class::Onces, "Once", ("Do", "f func()"), 17),
    method("sync/cond.go", Class::Conds, "Cond", "Wait", 18),
    method("sync/cond.go", Class::Conds, "Cond", "Signal", 21),
    method("sync/cond.go", Class::Conds, "Cond", "Broadcast", 22),
];

/// Where types are whose methods are places for delays, for what, and how many methods those are: the types of
/// package sync/atomic, and the map that is used as they are, looked into first and changed then.
pub const TOUCHED: [(&str, Class, usize); 3] = [
    ("sync/atomic/type.go", Class::Atomics, 33),
    ("sync/atomic/value.go", Class::Atomics, 4),
    ("sync/map.go", Class::Maps, 8),
];

/// What such methods are called: all but the rare `And`, `Or` and `Clear`, and `Range`, which is no one step.
const TOUCHES: [&str; 9] = [
    "Load",
    "Store",
    "Swap",
    "CompareAndSwap",
    "Add",
    "LoadOrStore",
    "LoadAndDelete",
    "Delete",
    "CompareAndDelete",
];

/// Puts a call of ours before what each of these methods does.
///
/// # Errors
/// What is not as expected.
pub fn touched(source: &str, methods: usize) -> Result<String, String> {
    const HERE: &str = "lockstepHere()";
    let is_ours = |line: &str| {
        let line = ["func (x *", "func (v *", "func (m *Map"]
            .iter()
            .find_map(|it| line.strip_prefix(it));
        let method = line.and_then(|it| {
            let (_, method) = it.split_once(") ")?;
            method.split('(').next()
        });
        method.is_some_and(|it| TOUCHES.contains(&it))
    };
    let mut out = String::with_capacity(source.len() * 2);
    let mut found = 0;
    for line in source.split_inclusive('\n') {
        // `func (x *Bool) Load() bool { return ... }`, or a body of several lines.
        let at = line.find(" { ").map(|it| it + 3);
        let begins = line.trim_end().ends_with('{');
        match at {
            Some(at) if is_ours(line) => {
                out.push_str(&line[..at]);
                out.push_str(HERE);
                out.push_str("; ");
                out.push_str(&line[at..]);
                found += 1;
            }
            None if is_ours(line) && begins => {
                out.push_str(line);
                out.push_str(&format!("\t{HERE}\n"));
                found += 1;
            }
            _ => out.push_str(line),
        }
    }
    if found < methods {
        return Err(format!("{found} methods of {methods} are as expected"));
    }
    Ok(out)
}

/// The function of ours that stands in for one that was renamed, where the class is left out.
#[must_use]
pub fn stand_ins(class: Class) -> &'static [&'static str] {
    match class {
        Class::Channels => &["chansend1", "chanrecv1", "chanrecv2"],
        Class::Selects => &["selectnbsend", "selectnbrecv"],
        Class::Sleeps => &["timeSleep"],
        _ => &[],
    }
}

/// Makes an edit of `source`; says what is missing where its place is not found.
///
/// # Errors
/// The anchor that was not found, or not just once.
pub fn apply(source: &str, function: &str, how: How) -> Result<String, String> {
    let (start, end) = body(source, function)?;
    let header_end = source[start..].find('\n').map_or(end, |at| start + at + 1);
    let insert = |at: usize, text: &str| {
        let mut out = String::with_capacity(source.len() + text.len() + 1);
        out.push_str(&source[..at]);
        out.push_str(text);
        out.push('\n');
        out.push_str(&source[at..]);
        out
    };
    match how {
        How::Rename(name) => {
            let old = function.trim_end_matches('(');
            let at = old.rfind([' ', ')']).map_or(0, |at| at + 1);
            let mut out = String::with_capacity(source.len() + name.len());
            out.push_str(&source[..start + at]);
            out.push_str(name);
            out.push_str(&source[start + old.len()..]);
            Ok(out)
        }
        How::Top(text) => Ok(insert(header_end, text)),
        How::Bottom(text) => Ok(insert(end, text)),
        How::Before(line, text) => Ok(insert(line_in(source, header_end, end, line)?.0, text)),
        How::After(line, text) => Ok(insert(line_in(source, header_end, end, line)?.1, text)),
    }
}

/// Where the function begins, and where the brace that ends it stands.
fn body(source: &str, function: &str) -> Result<(usize, usize), String> {
    let mut starts = source
        .match_indices(function)
        .filter(|(at, _)| *at == 0 || source.as_bytes().get(at - 1) == Some(&b'\n'));
    let (Some((start, _)), None) = (starts.next(), starts.next()) else {
        return Err(format!("`{function}` is not there exactly once"));
    };
    let end = source[start..]
        .find("\n}\n")
        .ok_or_else(|| format!("`{function}` has no end"))?;
    Ok((start, start + end + 1))
}

/// The line that is `line` but for what stands behind it as a comment: its beginning and the next one's.
fn line_in(source: &str, from: usize, to: usize, line: &str) -> Result<(usize, usize), String> {
    let mut at = from;
    let mut found = None;
    for text in source[from..to].split_inclusive('\n') {
        let code = text.split("//").next().unwrap_or(text).trim_end();
        if code == line {
            if found.is_some() {
                return Err(format!("`{}` is there twice", line.trim()));
            }
            found = Some((at, at + text.len()));
        }
        at += text.len();
    }
    found.ok_or_else(|| format!("`{}` is not there", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_atomic_types_and_of_the_map_are_places() {
        let cases = [
            (
                "func (x *Bool) Load() bool { return LoadUint32(&x.v) != 0 }\n",
                "func (x *Bool) Load() bool { lockstepHere(); return LoadUint32(&x.v) != 0 }\n",
            ),
            (
                "func (x *Pointer[T]) Swap(new *T) (old *T) { return nil }\n",
                "func (x *Pointer[T]) Swap(new *T) (old *T) { lockstepHere(); return nil }\n",
            ),
            (
                "func (v *Value) Load() (val any) {\n\tvp := 1\n}\n",
                "func (v *Value) Load() (val any) {\n\tlockstepHere()\n\tvp := 1\n}\n",
            ),
            (
                "func (m *Map) LoadOrStore(key, value any) (actual any, loaded bool) {\n\treturn m.m\n}\n",
                "func (m *Map) LoadOrStore(key, value any) (actual any, loaded bool) {\n\tlockstepHere()\n\treturn m.m\n}\n",
            ),
        ];
        for (source, edited) in cases {
            assert_eq!(touched(source, 1).as_deref(), Ok(edited));
        }
    }

    #[test]
    fn what_is_no_such_method_stays() {
        let others = "// func (x *Bool) Load() bool { return true }\n\
                      func (x *Int32) And(mask int32) (old int32) { return 0 }\n\
                      func (x *Int32) Loaded() bool { return true }\n\
                      func Load() bool { return true }\n";
        assert_eq!(touched(others, 0).as_deref(), Ok(others));
        let said = touched(others, 1);
        assert_eq!(said, Err("0 methods of 1 are as expected".to_owned()));
    }
}
