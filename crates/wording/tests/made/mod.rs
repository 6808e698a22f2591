//! Answers that nobody found: of every kind, with any tasks, calls and places.

pub mod examples;

use lockstep_check::{Aspect, Loose, LooseEnd};
use lockstep_diagnosis::Callers;
use lockstep_progress::clause::*;
use lockstep_progress::{
    Cause, CommunicatorId, Deed, Departure, Evidence, Gap, Instead, Iteration, Lapse, Line,
    NonEmpty, Omission, OpenCall, Part, Progress, Subject, Truant, Whereabouts, Why,
};
use lockstep_trace::{End, EndKind, Site, SourceLine, TraceName};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Tasks of a job.
const TASKS: u32 = 12;

/// A job of ranks or of threads.
pub fn progress() -> impl Strategy<Value = Progress> {
    any::<bool>().prop_map(|is_mpi| {
        let mut found = examples::job(TASKS);
        found.is_mpi = is_mpi;
        found
    })
}

fn task() -> impl Strategy<Value = u32> {
    0..TASKS
}

fn subject() -> impl Strategy<Value = Subject> {
    let tasks = vec(task(), 1..6).prop_map(|it| BTreeSet::from_iter(it).into_iter().collect());
    tasks.prop_map(|it: Vec<u32>| Subject::new(it).expect("some"))
}

fn some<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = NonEmpty<T>> {
    vec(of, 1..4).prop_map(|it| NonEmpty::new(it).expect("some"))
}

fn thread() -> impl Strategy<Value = TraceName> {
    (task(), 0..4_u32).prop_map(|(task, thread)| TraceName::new(task, thread))
}

fn routine() -> impl Strategy<Value = Arc<str>> {
    select(vec!["MPI_Send", "MPI_Recv", "MPI_Barrier", "MPI_Bcast"]).prop_map(Arc::from)
}

fn function() -> impl Strategy<Value = String> {
    let names = vec!["main", "Halo<double>::go(int)", "sum_", "pause", "MPI_Send"];
    select(names).prop_map(str::to_owned)
}

fn line() -> impl Strategy<Value = SourceLine> {
    (select(vec!["a.c", "/src/b.f90"]), 1..99_u32).prop_map(|(file, line)| SourceLine {
        file: file.to_owned(),
        line,
    })
}

fn site() -> impl Strategy<Value = Option<Site>> {
    of((function(), vec(line(), 0..4)).prop_map(|(caller, lines)| Site { caller, lines }))
}

fn called() -> impl Strategy<Value = Called> {
    (routine(), of(routine()), site()).prop_map(|(name, starts, site)| Called {
        name,
        starts,
        site,
    })
}

fn iteration() -> impl Strategy<Value = Iteration> {
    let around = vec((function(), 1..9_u64), 0..3);
    (1..99_u64, around).prop_map(|(number, around)| Iteration { number, around })
}

fn whereabouts() -> BoxedStrategy<Whereabouts> {
    let line = prop_oneof![
        of(line()).prop_map(Line::Own),
        (of(function()), line()).prop_map(|(under, line)| Line::Around { under, line }),
    ];
    let names = (
        function(),
        of(function()),
        of((function(), of(self::line()))),
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let call = (names, flags, line);
    let call = call.prop_map(|((function, caller, within), flags, line)| OpenCall {
        function,
        imported: flags.0,
        is_plain: flags.1,
        given: flags.2.then(|| "(count=1)".to_owned()),
        caller,
        line,
        within,
    });
    (of(call), of(function()), of(iteration()))
        .prop_map(|(call, leaf, iteration)| Whereabouts {
            call,
            leaf,
            iteration,
        })
        .boxed()
}

fn at() -> impl Strategy<Value = At> {
    let asks = (routine(), of(line()), of(function()), of(iteration()));
    let asks = asks.prop_map(|(name, line, caller, iteration)| At::Asking {
        name,
        line,
        caller,
        iteration,
    });
    prop_oneof![whereabouts().prop_map(At::In), asks]
}

fn why() -> impl Strategy<Value = Why> {
    prop_oneof![
        of(0..9_i64).prop_map(Why::Message),
        (0..9_i64, vec(0..9_i64, 1..3)).prop_map(|(tag, sent)| Why::OtherTag(tag, sent)),
        (0..9_i64).prop_map(Why::Receiver),
        (routine(), 0..3_u32).prop_map(|(name, id)| Why::Collective(name, CommunicatorId(id))),
        of(task()).prop_map(Why::Unlock),
    ]
}

fn expected() -> impl Strategy<Value = Expected> {
    let within = of((0..3_u32).prop_map(CommunicatorId));
    (task(), why(), within).prop_map(|(of, why, within)| Expected { of, why, within })
}

fn wants() -> impl Strategy<Value = Wants> {
    prop_oneof![
        some(expected()).prop_map(Wants::Each),
        (expected(), 1..9_usize).prop_map(|(first, more)| Wants::First(first, more)),
        expected().prop_map(Wants::OrMessage),
        of(0..9_i64).prop_map(Wants::Anybody),
        (subject(), why(), any::<bool>()).prop_map(|(of, why, any)| Wants::Together {
            of,
            why,
            any
        }),
    ]
}

fn within() -> impl Strategy<Value = Within> {
    prop_oneof![
        some(thread()).prop_map(Within::Lock),
        select(vec![
            Within::OwnLock,
            Within::CopiedLock,
            Within::Semaphore,
            Within::GoneThread,
        ]),
        some(thread()).prop_map(|it| Within::Behind(it.to_vec())),
        of(function()).prop_map(Within::Again),
        of(thread()).prop_map(Within::Signal),
        vec(thread(), 0..3).prop_map(Within::Barrier),
        of(thread()).prop_map(Within::End),
        some(thread()).prop_map(Within::Team),
        of(thread()).prop_map(|it| Within::GoneTeam(it.map(|it| it.process))),
    ]
}

fn because() -> impl Strategy<Value = Because> {
    prop_oneof![
        wants().prop_map(Because::Outside),
        within().prop_map(Because::Inside)
    ]
}

fn reason() -> BoxedStrategy<Reason> {
    let stands = prop_oneof![
        Just(Stands::Over),
        whereabouts().prop_map(Stands::At),
        (whereabouts(), because()).prop_map(|(at, why)| Stands::Waits(at, why)),
    ];
    let threads = vec((thread(), stands), 0..3);
    (because(), threads)
        .prop_map(|(why, threads)| Reason { why, threads })
        .boxed()
}

fn departure() -> BoxedStrategy<Departure> {
    let names = || vec(function(), 0..3);
    let frames = vec((function(), 1..9_usize), 0..3);
    let all = (frames, names(), names(), function());
    all.prop_map(|(frames, left_out, mut instead, other)| {
        // It is one of the two.
        if left_out.is_empty() && instead.is_empty() {
            instead.push(other);
        }
        Departure {
            frames,
            left_out,
            instead,
            communicates: false,
            rounds: false,
        }
    })
    .boxed()
}

fn truant() -> impl Strategy<Value = Truant> {
    (thread(), departure(), site()).prop_map(|(thread, departure, site)| Truant {
        thread,
        departure,
        site,
    })
}

fn deed() -> BoxedStrategy<Deed> {
    let part = || {
        prop_oneof![
            Just(Part::OtherWay),
            routine().prop_map(|it| Part::Called(it.to_string())),
            routine().prop_map(|it| Part::CalledWith(it, "MPI_SUM".to_owned())),
            (routine(), callers()).prop_map(|(name, it)| Part::CalledFrom(name, it)),
        ]
    };
    let evidence = prop_oneof![
        (1..9_usize).prop_map(Evidence::Before),
        (0..9_usize).prop_map(Evidence::Others)
    ];
    let omission = (of(routine()), task(), 0..9_i64, evidence);
    let instead = prop_oneof![
        (0..9_i64, 0..9_i64).prop_map(|(own, usual)| Instead::Tag { own, usual }),
        task().prop_map(Instead::To)
    ];
    prop_oneof![
        (departure(), any::<bool>()).prop_map(|(departure, by_normal)| Deed::Departed {
            departure,
            by_normal
        }),
        (vec(function(), 2..4), 1..9_u64, 0..9_u64)
            .prop_map(|(path, own, others)| Deed::Lapsed(Lapse { path, own, others })),
        (routine(), task(), of(instead)).prop_map(|(name, missed, instead)| Deed::Skipped(Gap {
            name,
            beside: [1, 3],
            missed,
            instead,
            operations: [0, 1],
        })),
        omission.prop_map(|(name, to, tag, evidence)| Deed::Omitted(Omission {
            name,
            to,
            tag,
            evidence,
            operation: None,
        })),
        routine().prop_map(Deed::Passed),
        Just(Deed::WentOn),
        (routine(), part(), part(), any::<bool>()).prop_map(|(name, did, most, by_normal)| {
            Deed::Differed {
                name,
                instead_of: None,
                did,
                most,
                by_normal,
                stops: true,
            }
        }),
    ]
    .boxed()
}

fn cause() -> impl Strategy<Value = Cause> {
    let victims = subject();
    (task(), deed(), victims, site()).prop_map(|(task, deed, victims, site)| {
        let mut cause = Cause::of(task, deed);
        (cause.victims, cause.site) = (victims.to_vec(), site);
        cause
    })
}

fn callers() -> impl Strategy<Value = Callers> {
    let names = (function(), of(function()), of(function()));
    (names, vec(line(), 0..4)).prop_map(|((within, called_in, under), lines)| Callers {
        within,
        called_in,
        lines,
        under,
    })
}

fn mismatched() -> BoxedStrategy<Mismatched> {
    let side = || {
        let said = select(vec!["1", "MPI_SUM", "dims [4]; periods [1]"]);
        (subject(), of(called()), said, of(callers())).prop_map(|(who, call, said, callers)| Side {
            who,
            call,
            said: said.to_owned(),
            callers,
        })
    };
    let aspects = vec![Aspect::Function, Aspect::Root, Aspect::Size, Aspect::Way];
    let of_what = vec![
        Of::Communicator("#2 {0-3}".to_owned()),
        Of::File,
        Of::Window,
    ];
    let flags = (any::<bool>(), any::<bool>(), of(task()));
    let all = (side(), side(), select(aspects), select(of_what), flags);
    all.prop_map(
        |(few, most, aspect, of, (is_led, by_normal, both))| Mismatched {
            few,
            most,
            both,
            aspect,
            is_led,
            by_normal,
            number: 3,
            of,
        },
    )
    .boxed()
}

fn potential() -> BoxedStrategy<Potential> {
    let then = prop_oneof![
        called().prop_map(Then::Starves),
        Just(Then::TooLarge(
            "4 MPI_INT".to_owned(),
            "3 MPI_INT".to_owned()
        )),
        select(vec![Then::Unfit, Then::Chance]),
    ];
    let race = (task(), called(), of(task()), task(), then);
    let calls = some((task(), called())).prop_map(|it| it.to_vec());
    prop_oneof![
        race.prop_map(|(task, call, took, instead, then)| Potential::Race(Raced {
            task,
            call,
            took,
            instead,
            then
        })),
        (subject(), calls, any::<bool>()).prop_map(|(who, calls, waits_for_all)| {
            Potential::Circle {
                who,
                calls,
                waits_for_all,
            }
        }),
    ]
    .boxed()
}

fn amiss() -> BoxedStrategy<Amiss> {
    let message = || (task(), task(), 0..9_i64);
    let name = || of(Just("#2 {0-3}".to_owned()));
    let unreceived = (message(), name(), any::<bool>(), of(called()), name());
    prop_oneof![
        (message(), any::<bool>()).prop_map(|((by, to, tag), again)| Amiss::NotStarted {
            by,
            to,
            tag,
            again
        }),
        (message(), called()).prop_map(|((by, to, tag), call)| Amiss::WaitedFor {
            by,
            call,
            to,
            tag
        }),
        (task(), called()).prop_map(|(task, call)| Amiss::NeverStarted(task, call)),
        (task(), called()).prop_map(|(task, call)| Amiss::NotReceived(task, call)),
        (task(), some(0..9_i64)).prop_map(|(task, tags)| Amiss::OtherTag(task, tags)),
        unreceived.prop_map(|((from, to, tag), of, is_open, call, wanted_in)| {
            Amiss::Unreceived(Unreceived {
                from,
                to,
                tag,
                of,
                is_open,
                call,
                wanted_in,
                operation: 0,
            })
        }),
    ]
    .boxed()
}

fn finish() -> impl Strategy<Value = Vec<(i32, Subject)>> {
    some((0..4, subject())).prop_map(|it| it.to_vec())
}

fn places() -> impl Strategy<Value = Places> {
    let groups = some((subject(), whereabouts()));
    (groups, any::<bool>()).prop_map(|(groups, more)| Places { groups, more })
}

fn ended() -> impl Strategy<Value = Ended> {
    let end = End {
        kind: EndKind::Signalled,
        code: Some(11),
        certain: true,
    };
    let places = (of(thread()), whereabouts(), of(called()));
    (task(), any::<bool>(), places, 0..3_usize).prop_map(
        move |(task, early, (thread, at, after), more)| Ended {
            task,
            end,
            early,
            thread,
            at: Some(at),
            after,
            more,
        },
    )
}

fn loose() -> impl Strategy<Value = Loose> {
    let end = prop_oneof![
        Just(LooseEnd::NeverFinalized),
        routine().prop_map(|it| LooseEnd::NeverCompleted {
            name: it.to_string()
        }),
        routine().prop_map(|it| LooseEnd::Idle {
            name: it.to_string()
        }),
    ];
    (subject(), end, site(), 1..4_usize).prop_map(|(tasks, end, site, times)| Loose {
        tasks: tasks.to_vec(),
        end,
        first: None,
        site,
        times,
    })
}

/// Who waits, who holds others up, and how a job ended.
fn standing() -> BoxedStrategy<What> {
    let waiter = (subject(), of(at()), of(reason()));
    let waiter = waiter.prop_map(|(who, at, why)| Waiter { who, at, why });
    let holds = prop_oneof![
        reason().prop_map(Holds::Waits),
        truant().prop_map(Holds::Truant),
        (task(), of(0..9_i64), called()).prop_map(|(from, tag, call)| Holds::Doubts(Doubted {
            from,
            tag,
            call
        })),
    ];
    let holders = some((subject(), whereabouts(), of(holds)));
    let look = select(vec![Look::There, Look::SlowSoFar, Look::SoFar]);
    let crowd = (subject(), any::<bool>(), whereabouts(), of(reason()));
    prop_oneof![
        (any::<bool>(), some(waiter), 0..3_usize).prop_map(|(is_livelock, waiters, more)| {
            What::Stuck {
                is_livelock,
                waiters,
                more,
            }
        }),
        (any::<bool>(), holders, look).prop_map(|(is_livelock, holders, look)| What::Holding {
            is_livelock,
            holders,
            look
        }),
        crowd.prop_map(|(who, by_name, at, why)| What::Crowd {
            who,
            by_name,
            at,
            why
        }),
        some((subject(), whereabouts())).prop_map(What::Blind),
        some((subject(), wants())).prop_map(What::Waits),
        (0..99_u64, of(places())).prop_map(|(seconds, at)| What::Silent {
            quiet: Duration::from_secs(seconds),
            at
        }),
        (prop_oneof![Just(Vec::new()), finish()], places())
            .prop_map(|(finished, at)| What::Killed { finished, at }),
        finish().prop_map(|it| What::Over(Finish::ByStatus(it))),
        (1..9_usize).prop_map(|it| What::Over(Finish::Counted(it))),
        any::<bool>().prop_map(|moved| What::NotSeen { moved }),
        ended().prop_map(What::Ended),
    ]
    .boxed()
}

/// Anything that may be said.
pub fn whats() -> BoxedStrategy<What> {
    let took = (thread(), whereabouts(), any::<bool>());
    prop_oneof![
        4 => standing(),
        1 => (task(), some(called())).prop_map(|(task, calls)| What::Began(task, calls)),
        1 => took.prop_map(|(thread, at, is_over)| What::Took { thread, at, is_over }),
        1 => amiss().prop_map(What::Amiss),
        1 => (task(), called()).prop_map(|(task, by)| What::Stolen(task, by)),
        1 => truant().prop_map(What::Truant),
        1 => mismatched().prop_map(What::Mismatch),
        1 => potential().prop_map(What::Potential),
        1 => loose().prop_map(What::Loose),
        1 => (subject(), cause()).prop_map(|(who, cause)| What::Caused(who, cause)),
    ]
    .boxed()
}
