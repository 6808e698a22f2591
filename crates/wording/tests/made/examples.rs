//! One of each.

use lockstep_check::{Aspect, Loose, LooseEnd};
use lockstep_diagnosis::Callers;
use lockstep_progress::clause::*;
use lockstep_progress::{
    Activity, Cause, CommunicatorId, Deed, Departure, Evidence, Gap, Group, Instead, Iteration,
    Lapse, Line, NonEmpty, Omission, OpenCall, Part, Progress, Subject, Task, Truant, Whereabouts,
    Why,
};
use lockstep_trace::{End, EndKind, Site, SourceLine, TraceName};
use std::time::Duration;

const SIGNAL: End = End {
    kind: EndKind::Signalled,
    code: Some(11),
    certain: true,
};

/// So many ranks, of which the first came to its end.
pub fn job(tasks: u32) -> Progress {
    let mut found = Progress::default();
    let task = |number| Task {
        number,
        trace: TraceName::new(number, 0),
        end: SIGNAL,
        stack: [].into(),
        leaf: None,
        activity: Activity::Communication,
        polls: None,
        crashed: false,
        events: 0,
        is_launcher: false,
    };
    found.is_mpi = true;
    found.tasks = (0..tasks).map(|it| (it, task(it))).collect();
    found.groups = vec![Group {
        tasks: vec![0],
        stack: [].into(),
        leaf: None,
        loops: Vec::new(),
        turns: Vec::new(),
        activity: Activity::Finished,
    }];
    let name = "#2 {0-3}".to_owned();
    found.communicators = [(CommunicatorId(1), name)].into();
    found
}

fn of(tasks: &[u32]) -> Subject {
    Subject::new(tasks.to_vec()).expect("tasks")
}

fn line(line: u32) -> SourceLine {
    SourceLine {
        file: "/src/halo.c".to_owned(),
        line,
    }
}

fn site(at: u32) -> Option<Site> {
    Some(Site {
        caller: "exchange".to_owned(),
        lines: vec![line(at)],
    })
}

fn call(name: &str, at: u32) -> Called {
    Called {
        name: name.into(),
        starts: None,
        site: site(at),
    }
}

fn within(name: &str, at: u32) -> Whereabouts {
    Whereabouts {
        call: Some(OpenCall {
            function: name.to_owned(),
            imported: true,
            is_plain: true,
            given: None,
            caller: Some("exchange".to_owned()),
            line: Line::Own(Some(line(at))),
            within: None,
        }),
        leaf: None,
        iteration: None,
    }
}

fn computing() -> Whereabouts {
    Whereabouts {
        call: Some(OpenCall {
            function: "relax".to_owned(),
            imported: false,
            is_plain: false,
            given: None,
            caller: None,
            line: Line::Around {
                under: Some("step".to_owned()),
                line: line(9),
            },
            within: Some(("qsort".to_owned(), Some(line(8)))),
        }),
        leaf: Some("norm".to_owned()),
        iteration: Some(Iteration {
            number: 4,
            around: vec![("main".to_owned(), 812)],
        }),
    }
}

fn message(from: u32, why: Why) -> Expected {
    Expected {
        of: from,
        why,
        within: Some(CommunicatorId(1)),
    }
}

fn outside(wants: Wants) -> Reason {
    Reason {
        why: Because::Outside(wants),
        threads: Vec::new(),
    }
}

fn from_one() -> Reason {
    let wanted = message(0, Why::Message(Some(7)));
    outside(Wants::Each(NonEmpty::one(wanted)))
}

fn inside(why: Within, stands: Stands) -> Reason {
    Reason {
        why: Because::Inside(why),
        threads: vec![(TraceName::new(1, 2), stands)],
    }
}

fn departure() -> Departure {
    Departure {
        frames: vec![("exchange".to_owned(), 21)],
        left_out: vec!["MPI_Isend".to_owned(); 2],
        instead: Vec::new(),
        communicates: true,
        rounds: false,
    }
}

fn truant() -> Truant {
    Truant {
        thread: TraceName::new(1, 2),
        departure: departure(),
        site: site(12),
    }
}

fn mismatched(aspect: Aspect, [few, most]: [&str; 2]) -> Mismatched {
    let side = |who: &[u32], name: &str, said: &str| Side {
        who: of(who),
        call: Some(call(name, 9)),
        said: said.to_owned(),
        callers: None,
    };
    let [one, all] = match aspect {
        Aspect::Function => [few, most],
        _ => ["MPI_Bcast"; 2],
    };
    Mismatched {
        few: side(&[3], one, few),
        most: side(&[0, 1, 2], all, most),
        both: None,
        aspect,
        is_led: false,
        by_normal: false,
        number: 12,
        of: Of::Communicator("MPI_COMM_WORLD".to_owned()),
    }
}

fn went_apart() -> Mismatched {
    let mut found = mismatched(Aspect::Way, ["", ""]);
    found.few.call = None;
    found.few.callers = Some(Callers {
        within: "sum".to_owned(),
        called_in: Some("gather".to_owned()),
        lines: vec![line(31), line(33)],
        under: Some("couple".to_owned()),
    });
    found
}

fn unreceived() -> Unreceived {
    Unreceived {
        from: 2,
        to: 1,
        tag: 3,
        of: Some("#2 {0-3}".to_owned()),
        is_open: false,
        call: Some(call("MPI_Send", 40)),
        wanted_in: Some("MPI_COMM_WORLD".to_owned()),
        operation: 0,
    }
}

fn loose() -> Loose {
    Loose {
        tasks: vec![0, 3],
        end: LooseEnd::NeverCompleted {
            name: "MPI_Isend".to_owned(),
        },
        first: None,
        site: site(77),
        times: 4,
    }
}

/// Of each kind of clause.
pub fn one_of_each() -> Vec<What> {
    let places = |more| Places {
        groups: NonEmpty::one((of(&[0, 1]), within("MPI_Send", 9))),
        more,
    };
    let waiter = |who: &[u32], at, why| Waiter {
        who: of(who),
        at,
        why,
    };
    let asks = At::Asking {
        name: "MPI_Test".into(),
        line: Some(line(50)),
        caller: Some("poll".to_owned()),
        iteration: computing().iteration,
    };
    let stuck = |is_livelock, waiters: Vec<Waiter>| What::Stuck {
        is_livelock,
        waiters: NonEmpty::new(waiters).expect("some"),
        more: 2,
    };
    let held = |look, why| What::Holding {
        is_livelock: false,
        holders: NonEmpty::one((of(&[2]), computing(), why)),
        look,
    };
    let circle = Potential::Circle {
        who: of(&[0, 1]),
        calls: vec![(0, call("MPI_Send", 9)), (1, call("MPI_Send", 11))],
        waits_for_all: true,
    };
    let race = |then| {
        What::Potential(Potential::Race(Raced {
            task: 0,
            call: call("MPI_Recv", 9),
            took: Some(2),
            instead: 1,
            then,
        }))
    };
    let together = Wants::Together {
        of: of(&[1, 2]),
        why: Why::Collective("MPI_Barrier".into(), CommunicatorId(1)),
        any: true,
    };
    let other_tag = message(0, Why::OtherTag(1, vec![77, 78]));
    let lock = NonEmpty::one(TraceName::new(1, 2));
    let locked = inside(Within::Lock(lock), Stands::At(within("pause", 60)));
    let gone = inside(
        Within::End(None),
        Stands::Waits(within("MPI_Recv", 9), from_one().why),
    );
    let doubt = Holds::Doubts(Doubted {
        from: 1,
        tag: Some(4),
        call: call("MPI_Recv", 9),
    });
    let ended = Ended {
        task: 3,
        end: SIGNAL,
        early: true,
        thread: None,
        at: Some(within("exit", 70)),
        after: Some(call("MPI_Send", 9)),
        more: 2,
    };
    let crowd = |by_name| What::Crowd {
        who: of(&[0, 1, 2, 3]),
        by_name,
        at: within("MPI_Barrier", 80),
        why: Some(outside(Wants::Anybody(None))),
    };
    let finished = vec![(0, of(&[1])), (3, of(&[0, 2]))];
    vec![
        What::Over(Finish::All),
        What::Over(Finish::Counted(1)),
        What::Over(Finish::Counted(4)),
        What::Over(Finish::ByStatus(finished.clone())),
        What::NotSeen { moved: false },
        What::NotSeen { moved: true },
        What::Killed {
            finished: Vec::new(),
            at: places(true),
        },
        What::Killed {
            finished,
            at: places(false),
        },
        What::Silent {
            quiet: Duration::from_secs(60),
            at: Some(places(false)),
        },
        What::Waits(NonEmpty::one((of(&[0]), together))),
        stuck(
            false,
            vec![
                waiter(&[0], Some(At::In(within("MPI_Recv", 9))), Some(from_one())),
                waiter(
                    &[1, 2],
                    None,
                    Some(outside(Wants::First(other_tag.clone(), 3))),
                ),
            ],
        ),
        stuck(
            true,
            vec![waiter(
                &[3],
                Some(asks),
                Some(outside(Wants::OrMessage(message(1, Why::Receiver(5))))),
            )],
        ),
        stuck(
            false,
            vec![
                waiter(&[1], None, Some(locked)),
                waiter(&[2], None, Some(gone)),
            ],
        ),
        What::Began(
            0,
            NonEmpty::new(vec![call("MPI_Irecv", 31), call("MPI_Isend", 33)]).expect("two"),
        ),
        What::Took {
            thread: TraceName::new(1, 2),
            at: within("pthread_mutex_lock", 11),
            is_over: true,
        },
        What::Amiss(Amiss::NotStarted {
            by: 1,
            to: 0,
            tag: 3,
            again: true,
        }),
        What::Amiss(Amiss::WaitedFor {
            by: 1,
            call: call("MPI_Wait", 12),
            to: 0,
            tag: 3,
        }),
        What::Amiss(Amiss::NeverStarted(2, call("MPI_Wait", 12))),
        What::Amiss(Amiss::NotReceived(0, call("MPI_Mprobe", 9))),
        What::Amiss(Amiss::OtherTag(2, NonEmpty::one(44))),
        What::Amiss(Amiss::Unreceived(unreceived())),
        What::Stolen(2, call("MPI_Recv", 9)),
        crowd(false),
        crowd(true),
        What::Truant(truant()),
        What::Ended(ended),
        What::Mismatch(mismatched(
            Aspect::Function,
            ["MPI_Reduce", "MPI_Allreduce"],
        )),
        What::Mismatch(mismatched(Aspect::Root, ["1", "0"])),
        What::Mismatch(mismatched(Aspect::Terms, ["a 1; b 2", "a 1; b 3"])),
        What::Mismatch(went_apart()),
        What::Potential(circle),
        race(Then::Starves(call("MPI_Recv", 10))),
        race(Then::TooLarge(
            "4 MPI_INT".to_owned(),
            "3 MPI_INT".to_owned(),
        )),
        race(Then::Chance),
        What::Loose(loose()),
        What::NoInit,
        held(Look::There, None),
        held(Look::SlowSoFar, Some(doubt)),
        held(Look::SoFar, Some(Holds::Truant(truant()))),
        What::Blind(NonEmpty::one((of(&[2]), within("MPI_Barrier", 80)))),
    ]
}

/// Of each deed.
pub fn deeds() -> Vec<Cause> {
    let departed = |by_normal| Deed::Departed {
        departure: departure(),
        by_normal,
    };
    let gap = |instead| {
        Deed::Skipped(Gap {
            name: "MPI_Send".into(),
            beside: [12, 14],
            missed: 13,
            instead,
            operations: [0, 1],
        })
    };
    let omitted = |name: Option<&str>, evidence| {
        Deed::Omitted(Omission {
            name: name.map(Into::into),
            to: 9,
            tag: 4,
            evidence,
            operation: None,
        })
    };
    let barrier = |is_apart| Part::CalledAt {
        name: "MPI_Barrier".into(),
        line: Some(line(9)),
        is_apart,
    };
    let deeds = [
        departed(true),
        departed(false),
        Deed::Lapsed(Lapse {
            path: vec!["give".to_owned(), "MPI_Send".to_owned()],
            own: 22,
            others: 1,
        }),
        gap(None),
        gap(Some(Instead::To(15))),
        gap(Some(Instead::Tag { own: 5, usual: 4 })),
        omitted(Some("MPI_Send"), Evidence::Before(29)),
        omitted(None, Evidence::Others(0)),
        omitted(Some("MPI_Send"), Evidence::Others(2)),
        Deed::Passed("MPI_Barrier".into()),
        Deed::WentOn,
        Deed::Differed {
            name: "MPI_Allreduce".into(),
            instead_of: None,
            did: Part::CalledWith("MPI_Allreduce".into(), "MPI_MIN".to_owned()),
            most: Part::Had("MPI_SUM".to_owned()),
            by_normal: false,
            stops: false,
        },
        Deed::Differed {
            name: "MPI_Barrier".into(),
            instead_of: None,
            did: barrier(true),
            most: barrier(false),
            by_normal: false,
            stops: false,
        },
    ];
    let cause = |deed| {
        let mut cause = Cause::of(1, deed);
        (cause.victims, cause.site) = (vec![2, 3], site(77));
        cause
    };
    deeds.map(cause).into()
}
