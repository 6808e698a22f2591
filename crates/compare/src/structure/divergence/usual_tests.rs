#![allow(clippy::unwrap_used)]

use super::*;
use crate::structure::divergence::{DivergenceKind, Divergences, Side, beside};
use crate::structure::steps::steps;
use lockstep_calltree::{Builder, Forest, Function};
use lockstep_loops::Names;
use lockstep_trace::TraceName;

/// `f(` calls f, `)` returns, `f` does both.
fn tree(forest: &mut Forest, text: &str) -> NodeId {
    let text = text.replace('(', "( ").replace(')', " ) ");
    let mut calls = Vec::new();
    for word in text.split_whitespace() {
        let name = word.trim_end_matches('(');
        let function = (name != ")").then(|| {
            forest.add_function(Function {
                name: name.into(),
                linkage: name.into(),
                image: String::new(),
                imported: false,
            })
        });
        calls.push((function, word.ends_with('(')));
    }
    let mut builder = Builder::new(forest);
    for (function, is_open) in calls {
        match function {
            Some(function) => builder.call(function),
            None => builder.ret(),
        }
        if function.is_some() && !is_open {
            builder.ret();
        }
    }
    builder.finish()
}

fn accepted<'a>(usual: &'a Usual, own: &'a [NodeId]) -> Accepted<'a> {
    Accepted {
        usual,
        own,
        is_broken_off: false,
    }
}

/// The first of some normal traces beside a faulty one.
fn compare(normals: &[&str], faulty: &str) -> Divergences {
    let mut forest = Forest::new();
    let roots: Vec<NodeId> = normals.iter().map(|it| tree(&mut forest, it)).collect();
    let faulty = tree(&mut forest, faulty);
    let mut names = Names::new();
    for root in roots.iter().chain([&faulty]) {
        forest.name_loops(*root, &mut names);
    }
    let usual = Usual::of(&forest, &roots, Teams::default());
    let sides = (Side::whole(roots[0]), Side::whole(faulty));
    beside(
        &forest,
        TraceName::new(0, 1),
        sides,
        None,
        &names,
        Some(accepted(&usual, &roots)),
    )
}

fn kind(normals: &[&str], faulty: &str) -> Option<DivergenceKind> {
    let found = compare(normals, faulty);
    Some(found.structure.or(found.counts)?.kind)
}

const FREE: &str = "work( take( pthread_mutex_lock pthread_mutex_unlock ) crunch )";
const WAITS: &str =
    "work( take( pthread_mutex_lock pthread_cond_wait pthread_mutex_unlock ) crunch )";

#[test]
fn who_waits_is_no_difference_where_somebody_waited() {
    assert_eq!(kind(&[FREE, WAITS], WAITS), Some(DivergenceKind::Timing));
    assert_eq!(kind(&[WAITS, FREE], FREE), Some(DivergenceKind::Timing));
    // Who finds something ready does not wait, and that may be everybody in one of the runs.
    assert_eq!(kind(&[FREE], WAITS), Some(DivergenceKind::Timing));
    assert_eq!(kind(&[WAITS], FREE), Some(DivergenceKind::Timing));
    let twice = WAITS.replace("wait ", "wait pthread_cond_wait ");
    assert_eq!(kind(&[FREE], &twice), Some(DivergenceKind::Timing));
}

#[test]
fn a_condition_is_asked_again_behind_a_wait() {
    let take = |inner: &str| {
        format!("work( take( pthread_mutex_lock {inner} pop pthread_mutex_unlock ) )")
    };
    let (free, waits) = (
        take("is_empty"),
        take("is_empty pthread_cond_wait is_empty"),
    );
    assert_eq!(kind(&[&free], &waits), Some(DivergenceKind::Timing));
    assert_eq!(kind(&[&waits], &free), Some(DivergenceKind::Timing));
    let two = take("is_empty is_closed");
    let again = take("is_empty is_closed pthread_cond_wait is_empty is_closed");
    assert_eq!(kind(&[&two], &again), Some(DivergenceKind::Timing));
    // Nothing else is excused by it: neither what it does behind a wait nor what it leaves out.
    let forgets =
        "work( take( pthread_mutex_lock is_empty pthread_cond_wait pthread_mutex_unlock ) )";
    let found = compare(&[&free], forgets).structure.unwrap();
    assert_eq!(found.faulty.as_deref(), Some("pthread_mutex_unlock"));
    let other = take("is_empty pthread_cond_wait give_up");
    let found = compare(&[&free], &other).structure.unwrap();
    assert_eq!(found.faulty.as_deref(), Some("give_up"));
}

#[test]
fn a_wait_that_nobody_made_and_that_does_not_end_is_an_end() {
    let stuck = "work( take( pthread_mutex_lock pthread_cond_wait(";
    let found = compare(&[FREE], stuck).structure.unwrap();
    assert_eq!(found.kind, DivergenceKind::EndsEarly);
    assert_eq!(found.stack, ["work", "take"]);
}

#[test]
fn tasks_are_run_by_whom_they_are_run() {
    let run = |inside: &str, behind: &str| {
        format!(
            "main( GOMP_parallel( region( GOMP_task GOMP_task GOMP_barrier( {inside} ) ) {behind} ) GOMP_parallel( region( tidy ) ) )"
        )
    };
    let task = "task( solve )";
    let (all, none) = (run(&format!("{task} {task}"), ""), run("", ""));
    let late = run("", task);
    let other = run(task, "");
    assert_eq!(kind(&[&none, &all], &other), Some(DivergenceKind::Timing));
    // At the end of the region, though in no normal run one was.
    assert_eq!(kind(&[&all], &late), Some(DivergenceKind::Timing));
    assert_eq!(kind(&[&late, &all], &none), Some(DivergenceKind::Timing));
    // Not what a task does, nor what is no task, nor what a region does.
    let wrong = compare(&[&all], &run("", "task( give_up )"))
        .structure
        .unwrap();
    assert_eq!(wrong.faulty.as_deref(), Some("give_up"));
    let stray = compare(&[&all], &run("", "stray")).structure.unwrap();
    assert_eq!(stray.faulty.as_deref(), Some("stray"));
    let untidy = compare(&[&all], &late.replace("tidy", ""))
        .structure
        .unwrap();
    assert_eq!(untidy.normal.as_deref(), Some("tidy"));
}

#[test]
fn tasks_at_the_root_of_a_thread_are_run_by_whom_they_are_run() {
    let region = "main._omp_fn.0( setup )";
    let task = "main._omp_fn.1( solve )";
    let other_task = "main._omp_fn.1( solve solve )";
    let main = format!(
        "main( GOMP_parallel( main._omp_fn.0( setup GOMP_task GOMP_task ) {other_task} ) finish )"
    );
    let worker = |first: &str, second: &str| format!("{region} {first} {region} {second}");
    let (all, none) = (worker(task, task), worker("", ""));
    let beside = |normal: &str, faulty: &str| {
        let mut forest = Forest::new();
        let roots = [normal, &main].map(|it| tree(&mut forest, it));
        let faulty = tree(&mut forest, faulty);
        let usual = Usual::of(&forest, &roots, Teams::default());
        let sides = (Side::whole(roots[0]), Side::whole(faulty));
        let own = Some(accepted(&usual, &roots[..1]));
        super::super::beside(
            &forest,
            TraceName::new(0, 1),
            sides,
            None,
            &Names::new(),
            own,
        )
    };
    let timing = |normal: &str, faulty: &str| {
        let found = beside(normal, faulty);
        assert_eq!(
            found.counts.map(|it| it.kind),
            Some(DivergenceKind::Timing),
            "{faulty}"
        );
    };
    timing(&all, &none);
    timing(&none, &all);
    timing(&none, &worker(&format!("{task} {other_task}"), ""));
    timing(&worker("", task), &worker(other_task, ""));
    // Not what a task does, nor what is none, nor what a region does, nor where a thread is stuck.
    let wrong = |faulty: &str| beside(&all, faulty).structure.unwrap();
    let other = wrong(&worker(task, "main._omp_fn.1( give_up )"));
    assert_eq!(other.faulty.as_deref(), Some("give_up"));
    assert_eq!(
        wrong(&worker("stray", task)).faulty.as_deref(),
        Some("stray")
    );
    let untidy = wrong(&none.replacen("( setup )", "( )", 1));
    assert_eq!(untidy.normal.as_deref(), Some("setup"));
    let stuck = wrong(&format!("{region} main._omp_fn.1( solve("));
    assert_eq!(stuck.kind, DivergenceKind::EndsEarly);
}

#[test]
fn a_region_behind_which_a_team_always_ran_tasks_may_be_without() {
    let task = "main._omp_fn.1( solve )";
    let region = "main._omp_fn.0( GOMP_single_start )";
    let main = |first: &str, tasks: &str| {
        format!("main( GOMP_parallel( {first} {tasks} ) GOMP_parallel( {region} {tasks} ) )")
    };
    let makes = "main._omp_fn.0( GOMP_single_start GOMP_task GOMP_task )";
    let normals = [&main(region, task), makes, &main(makes, task)];
    let none = main(region, "");
    assert_eq!(kind(&normals, &none), Some(DivergenceKind::Timing));
}

#[test]
fn a_lock_that_is_not_taken_is_a_difference() {
    let without = "work( take( pthread_mutex_unlock ) crunch )";
    let found = compare(&[FREE, WAITS], without).structure.unwrap();
    assert_eq!(found.faulty.as_deref(), Some("pthread_mutex_unlock"));
    assert_eq!(found.normal.as_deref(), Some("pthread_mutex_lock"));
    let never = "work( take( ) crunch )";
    let found = compare(&[FREE, WAITS], never).structure.unwrap();
    assert_eq!(found.faulty.as_deref(), Some("return"));
    assert_eq!(found.stack, ["work", "take"]);
}

#[test]
fn pieces_of_work_go_to_whom_they_go() {
    let next = "GOMP_loop_nonmonotonic_dynamic_next";
    let region = |pieces: &str| {
        format!("main( omp_fn( GOMP_loop_nonmonotonic_dynamic_start {pieces} GOMP_loop_end ) )")
    };
    let light = format!("light( ) {next} ");
    let heavy = format!("heavy( solve ) {next} ");
    let one = region(&format!("{light}{heavy}{light}"));
    let other = region(&format!("{heavy}{heavy}"));
    let none = region("");
    let normals = [one.as_str(), other.as_str(), none.as_str()];
    let now = region(&format!("{light}{light}{heavy}"));
    assert_eq!(kind(&normals, &now), Some(DivergenceKind::Timing));
    assert_eq!(kind(&normals, &none), Some(DivergenceKind::Timing));
    // Within a piece nothing depends on timing.
    let wrong = region(&format!("{light}heavy( give_up ) {next} "));
    let found = compare(&normals, &wrong).structure.unwrap();
    assert_eq!(found.faulty.as_deref(), Some("give_up"));
    assert_eq!(found.normal.as_deref(), Some("solve"));
    assert_eq!(found.stack, ["main", "omp_fn", "heavy"]);
}

#[test]
fn polling_in_a_function_of_its_own_is_seen() {
    let asks = "main( poll( MPI_Testall ) tidy poll( MPI_Testall ) unpack )";
    let at_once = "main( poll( MPI_Testall ) unpack )";
    assert_eq!(kind(&[at_once, asks], asks), Some(DivergenceKind::Timing));
    let forgets = "main( poll( MPI_Testall ) tidy unpack )";
    let found = compare(&[at_once, asks], forgets).structure.unwrap();
    assert_eq!(found.faulty.as_deref(), Some("unpack"));
}

#[test]
fn an_end_behind_what_depends_on_timing_is_an_end() {
    let normals = [FREE, WAITS];
    let stuck = "work( take( pthread_mutex_lock pthread_cond_wait(";
    let found = compare(&normals, stuck).structure.unwrap();
    assert_eq!(found.kind, DivergenceKind::EndsEarly);
    assert_eq!(found.stack, ["work", "take", "pthread_cond_wait"]);
}

#[test]
fn where_nothing_waits_other_calls_excuse_nothing() {
    let normals = ["main( f( a b ) f( a c ) )", "main( f( a c ) f( a b ) )"];
    assert_eq!(kind(&normals, normals[1]), Some(DivergenceKind::OtherCall));
}

#[test]
fn who_sends_first_is_a_matter_of_who_it_is() {
    let send = "send( pthread_mutex_lock pthread_mutex_unlock )";
    let receive = "receive( pthread_mutex_lock pthread_cond_wait pthread_mutex_unlock )";
    let even = format!("sort( partner {send} {receive} )");
    let odd = format!("sort( partner {receive} {send} )");
    let mut forest = Forest::new();
    let roots = [tree(&mut forest, &odd), tree(&mut forest, &even)];
    let usual = Usual::of(&forest, &roots, Teams::default());
    let sides = (Side::whole(roots[0]), Side::whole(roots[1]));
    let trace = TraceName::new(0, 1);
    let names = Names::new();
    let own = Some(accepted(&usual, &roots[..1]));
    let found = beside(&forest, trace, sides, None, &names, own)
        .structure
        .unwrap();
    assert_eq!(found.faulty.as_deref(), Some("send"));
    assert_eq!(found.normal.as_deref(), Some("receive"));
}

/// Each level of a nest of loops doubles the events, and must not double what is looked at.
#[test]
fn deep_nests_of_loops_are_gone_through_a_few_times() {
    let nest = |depth: usize| {
        let inner = (0..depth).fold("a".to_owned(), |it, level| format!("{it} {it} x{level}"));
        format!("f( pthread_mutex_lock {inner} )")
    };
    let mut forest = Forest::new();
    let mut all = |depth| {
        let root = tree(&mut forest, &nest(depth));
        let frame = forest.node(root).items[0].node;
        steps(&forest, frame)
    };
    let found = all(12);
    assert!(found.len() < 1000, "{}", found.len());
    // Behind each level another may begin, at any depth.
    let different: FxHashSet<Step> = found.into_iter().collect();
    assert_eq!(different.len(), 27);
}

#[test]
fn a_thread_may_get_no_piece_of_a_loop_or_all() {
    let share = |pieces: &str| format!("region( {pieces} GOMP_loop_end tidy )");
    let (start, next) = ("GOMP_loop_dynamic_start", "GOMP_loop_dynamic_next");
    let none = share(start);
    let one = share(&format!("{start} body {next}"));
    let two = share(&format!("{start} body {next} body {next}"));
    for (normal, faulty) in [(&two, &none), (&one, &none), (&one, &two)] {
        let found = compare(&[normal], faulty);
        assert!(found.structure.is_none(), "{faulty}: {found:?}");
    }
    // Nothing else is excused by it: that the loop is not ended, that its result is not used, nor another body.
    let found = |faulty: &str| compare(&[&two], faulty).structure.unwrap().faulty;
    assert_eq!(found(&format!("region( {start} tidy )")).unwrap(), "tidy");
    let forgets = format!("region( {start} GOMP_loop_end )");
    assert_eq!(found(&forgets).unwrap(), "return");
    let other = share(&format!("{start} give_up {next}"));
    assert_eq!(found(&other).unwrap(), "give_up");
    let skips = share(&format!("body {next}"));
    assert_eq!(found(&skips).unwrap(), "body");
}
