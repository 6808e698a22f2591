//! Whatever an answer is made of, its sentence can be read: of made-up answers of every kind.

mod made;

use lockstep_progress::clause::{Clause, Link, What};
use lockstep_progress::{NonEmpty, Progress, Subject, Verdict};
use lockstep_wording::{caused, verdict, who};
use made::{examples, progress, whats};
use proptest::collection::vec;
use proptest::prelude::*;

/// Of whom a clause is, if it is of tasks.
fn subject(what: &What) -> Vec<Subject> {
    let one = |task: &u32| vec![Subject::one(*task)];
    match what {
        What::Over(_) | What::NotSeen { .. } | What::Silent { .. } | What::NoInit => Vec::new(),
        // These name threads.
        What::Took { .. } | What::Truant(_) => Vec::new(),
        // Named by an example.
        What::Potential(_) | What::Amiss(_) => Vec::new(),
        What::Killed { at, .. } => at.groups.iter().map(|it| it.0.clone()).collect(),
        What::Waits(all) => all.iter().map(|it| it.0.clone()).collect(),
        What::Stuck { waiters, .. } => waiters.iter().map(|it| it.who.clone()).collect(),
        What::Began(task, _) | What::Stolen(task, _) => one(task),
        What::Crowd { who, by_name, .. } if *by_name || who.len() <= 3 => vec![who.clone()],
        What::Crowd { .. } => Vec::new(),
        What::Ended(it) => one(&it.task),
        What::Mismatch(it) => match &it.both {
            Some(both) => one(both),
            None => vec![it.few.who.clone(), it.most.who.clone()],
        },
        What::Loose(it) => Subject::new(it.tasks.clone()).into_iter().collect(),
        What::Caused(who, _) => vec![who.clone()],
        What::Holding { holders, .. } => holders.iter().map(|it| it.0.clone()).collect(),
        What::Blind(groups) => groups.iter().map(|it| it.0.clone()).collect(),
    }
}

fn said(clauses: Vec<Clause>, mut of: Progress) -> String {
    of.verdict = Verdict::new(NonEmpty::new(clauses).expect("a clause"));
    verdict(&of)
}

/// What no sentence has: gaps where something should stand, and an end before its end.
const NEVER: [&str; 14] = [
    "  ", " ,", " ;", " :", ",,", ";;", ": ;", ", ;", "( ", " )", " ()", "[]", ". ", "\n",
];

proptest! {
    #[test]
    fn a_sentence_is_whole_and_names_its_subject(what in whats(), of in progress()) {
        let text = said(vec![what.clone().into()], of.clone());
        for never in NEVER {
            prop_assert!(!text.contains(never), "{never:?} in {text:?}");
        }
        prop_assert_eq!(text.trim_matches(|it: char| it.is_whitespace() || ",;:".contains(it)), &text);
        for tasks in subject(&what) {
            // Of MPI's rules ranks are told of, whatever the tasks are.
            let is_of_ranks = matches!(what, What::Loose(_));
            if of.is_mpi || !is_of_ranks {
                prop_assert!(text.contains(&who(&of, &tasks)), "{tasks:?} in {text:?}");
            }
        }
        let subjects = ["rank", "thread", "process", "nobody", "no task", "all"];
        prop_assert!(subjects.iter().any(|it| text.contains(it)), "{text:?}");
    }

    #[test]
    fn clauses_stand_in_their_order(all in vec(whats(), 1..4), of in progress()) {
        let each: Vec<String> = all.iter().map(|it| said(vec![it.clone().into()], of.clone())).collect();
        let clauses: Vec<Clause> = all.into_iter().map(Clause::from).collect();
        prop_assert_eq!(said(clauses.clone(), of.clone()), each.join("; "));
        let link = |link| clauses.iter().cloned().map(|it| Clause { link, ..it }).collect();
        prop_assert_eq!(said(link(Link::But), of.clone()), each.join("; but "));
        prop_assert_eq!(said(link(Link::Then), of), each.join("; then "));
    }
}

/// One of each kind.
#[test]
fn what_is_said() {
    let of = examples::job(9);
    let whats = examples::one_of_each().into_iter();
    let mut told: Vec<String> = whats.map(|it| said(vec![it.into()], of.clone())).collect();
    let causes = examples::deeds().into_iter().enumerate();
    told.extend(causes.map(|(at, it)| {
        let who = Subject::one(it.task);
        match at {
            // Where it is a clause of its own.
            0 | 1 => said(vec![What::Caused(who, it).into()], of.clone()),
            _ => caused(&it),
        }
    }));
    insta::assert_snapshot!(told.join("\n"), @r"
    no task hangs: all came to their end
    no task hangs: the only rank came to its end
    no task hangs: all 4 ranks came to their end
    no task hangs: rank 1 came to its end, ranks 0,2 came to their end (exit 3)
    no task is seen to hang
    no task is seen to hang: between two looks, tasks moved
    all ranks were ended from outside: ranks 0-1 in MPI_Send at halo.c:9 in exchange(), and others elsewhere
    rank 1 came to its end, ranks 0,2 came to their end (exit 3); the others were ended from outside: ranks 0-1 in MPI_Send at halo.c:9 in exchange()
    nobody called anything for 60 s: ranks 0-1 in MPI_Send at halo.c:9 in exchange()
    rank 0 waits for any of ranks 1-2 to call MPI_Barrier of #2 {0-3}
    deadlock: rank 0 waits in MPI_Recv at halo.c:9 in exchange(), for a message from rank 0 with tag 7 of #2 {0-3}, which has finished; ranks 1-2 wait, for a message from rank 0 with tag 1 of #2 {0-3}, which sent tag 77, 78, which has finished (and 3 more); and 2 more of them
    livelock: rank 3 waits calling MPI_Test on and on at halo.c:50 in poll(), iteration 4 in iteration 812 of main(), for rank 1 to receive a message with tag 5 of #2 {0-3}, or for a message; and 2 more of them
    deadlock: rank 1 waits, for a lock that thread 1.2 holds; thread 1.2 is in pause at halo.c:60 in exchange(); rank 2 waits, for another thread to end; thread 1.2 waits in MPI_Recv at halo.c:9 in exchange(), for a message from rank 0 with tag 7 of #2 {0-3}, which has finished; and 2 more of them
    rank 0 began it in MPI_Irecv at halo.c:31 and MPI_Isend at halo.c:33
    thread 1.2 took it in pthread_mutex_lock at halo.c:11 in exchange() and never gave it back
    rank 1 did not start its persistent send to rank 0 with tag 3 again
    rank 1 waited in MPI_Wait at halo.c:12 for its persistent send to rank 0 with tag 3, which it had not started again
    rank 2 waited in MPI_Wait at halo.c:12 for a persistent receive that it had not started
    rank 0 did not receive the message that it took in MPI_Mprobe at halo.c:9
    rank 2 waits for one with tag 44
    rank 2 sent rank 1 a message with tag 3 of #2 {0-3} that nobody received (MPI_Send at halo.c:40): rank 1 waits for one of MPI_COMM_WORLD
    a message of rank 2 was taken before by MPI_Recv at halo.c:9 from anybody
    4 of 9 ranks wait in MPI_Barrier at halo.c:80 in exchange(), for a message from anybody
    ranks 0-3 wait in MPI_Barrier at halo.c:80 in exchange(), for a message from anybody
    thread 1.2 left out MPI_Isend (2 times) at halo.c:12 in exchange() (call 21), unlike those that wait there
    rank 3 ended (signal 11) without MPI_Finalize in exit at halo.c:70 in exchange() after MPI_Send at halo.c:9 (2 more ended so)
    rank 3 calls MPI_Reduce at halo.c:9 where ranks 0-2 call MPI_Allreduce at halo.c:9: operation 12 of MPI_COMM_WORLD
    rank 3 calls MPI_Bcast at halo.c:9 with root 1 where ranks 0-2 call MPI_Bcast at halo.c:9 with root 0: operation 12 of MPI_COMM_WORLD
    rank 3 calls MPI_Bcast at halo.c:9 with b 2 where ranks 0-2 call MPI_Bcast at halo.c:9 with b 3: operation 12 of MPI_COMM_WORLD
    rank 3 calls an operation in sum(), called at halo.c:31 or 33 in gather(), under couple() where ranks 0-2 call MPI_Bcast at halo.c:9: operation 12 of MPI_COMM_WORLD
    ranks 0-1 would wait for each other if messages were not buffered and collective operations waited for all: rank 0 in MPI_Send at halo.c:9, rank 1 in MPI_Send at halo.c:11
    rank 0 in MPI_Recv at halo.c:9 from anybody took a message of rank 2 and could have taken that of rank 1, for which MPI_Recv at halo.c:10 would then wait for ever
    rank 0 in MPI_Recv at halo.c:9 from anybody took a message of rank 2 and could have taken that of rank 1, of 4 MPI_INT, where it has room for 3 MPI_INT
    rank 0 in MPI_Recv at halo.c:9 from anybody took a message of rank 2 and could have taken that of rank 1: which one comes first is chance
    ranks 0,3 never completed MPI_Isend at halo.c:77 (4 times each)
    no process had called MPI_Init
    rank 2 is still in relax(), under step() called at halo.c:9, within qsort at halo.c:8, perhaps in its last call of norm(), iteration 4 in iteration 812 of main(): look there
    rank 2 is still in relax(), under step() called at halo.c:9, within qsort at halo.c:8, perhaps in its last call of norm(), iteration 4 in iteration 812 of main(), for a message from rank 1 with tag 4, which MPI_Recv at halo.c:9 from anybody may have taken: slow so far
    rank 2 is still in relax(), under step() called at halo.c:9, within qsort at halo.c:8, perhaps in its last call of norm(), iteration 4 in iteration 812 of main(), thread 1.2 left out MPI_Isend (2 times) at halo.c:12 in exchange() (call 21), unlike those that wait there: so far
    rank 2 waits in MPI_Barrier at halo.c:80 in exchange(), for whom is not known
    rank 1 went ahead: it left out MPI_Isend (2 times) at halo.c:77 in exchange() (call 21), unlike in a normal run
    rank 1 left out MPI_Isend (2 times) at halo.c:77 in exchange() (call 21), unlike in all its calls before
    left out MPI_Send at halo.c:77 in give(), unlike in its 22 other rounds and in one of others
    called MPI_Send at halo.c:77 for ranks 12 and 14, and not for rank 13 between them
    called MPI_Send at halo.c:77 for ranks 12 and 14, and for rank 15 instead of rank 13 between them
    called MPI_Send at halo.c:77 for ranks 12 and 14 with tag 4, and with tag 5 for rank 13 between them
    left out MPI_Send at halo.c:77 for rank 9 with tag 4, unlike 29 times before between the same calls
    left out a message at halo.c:77 for rank 9 with tag 4, unlike in the exchanges before
    left out MPI_Send at halo.c:77 for rank 9 with tag 4, unlike for the 2 others with which it exchanges messages
    went on without calling MPI_Barrier
    went on without sending ranks 2-3 what they wait for
    called MPI_Allreduce with MPI_MIN where most had MPI_SUM
    called MPI_Barrier at halo.c:9 in another communicator where most called MPI_Barrier at halo.c:9
    ");
}
