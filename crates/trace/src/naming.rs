//! Who is process `P`, who thread `T`: settled when a run is opened, from facts that the processes
//! left. Pure.
//!
//! Ranks of one job know their number by the launcher's variable, and so do all their children: they
//! are a *family*. P is the one of it that called `MPI_Init`, else the last program of the family's
//! first process; the others are `P~1`, `P~2`... in the order of their start. Processes without a
//! launcher's variable (the launcher itself, a program without MPI) are numbered by their start,
//! behind the ranks where there are any.

use crate::name::{ProcessName, ThreadName};
use lockstep_format::launcher::LAUNCHERS;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a program in a process left about itself: one process file.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub host: String,
    pub pid: u32,
    pub start_time: u64,
    /// Programs that the process ran before.
    pub exec_count: u32,
    /// When its file was made, in nanoseconds since the epoch.
    pub created: u64,
    pub is_mpi: bool,
    /// Job and rank by the launcher's variables, if it has them.
    pub place: Option<Place>,
}

/// A rank of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// What tells this job from others; empty where the launcher tells nothing of that kind.
    pub token: String,
    pub rank: u32,
}

fn value<'a>(environment: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    let found = environment.iter().find(|(name, _)| name == wanted)?;
    Some(&found.1)
}

/// How many ranks the first launcher whose rank variable is there, as a number, says there are.
pub(crate) fn world_size(environment: &[(String, String)]) -> Option<u32> {
    let launcher = LAUNCHERS.iter().find(|launcher| {
        let rank = value(environment, launcher.rank).map(str::parse::<u32>);
        rank.is_some_and(|rank| rank.is_ok())
    })?;
    value(environment, launcher.size)?.parse().ok()
}

impl Place {
    /// By the first launcher whose rank variable is there, as a number.
    pub fn from_environment(environment: &[(String, String)]) -> Option<Self> {
        let value = |wanted: &str| value(environment, wanted);
        LAUNCHERS.iter().find_map(|launcher| {
            let rank = value(launcher.rank)?.parse().ok()?;
            let token: Vec<&str> = launcher
                .token
                .iter()
                .filter_map(|name| value(name))
                .collect();
            Some(Self {
                token: token.join("\n"),
                rank,
            })
        })
    }
}

/// The names of `programs`, and the rank of each that is process `P` of a family.
pub(crate) fn name_processes(programs: &[Program]) -> Vec<(ProcessName, Option<u32>)> {
    // Children are made after their parents; a process is as old as its first program.
    let mut born: BTreeMap<(&str, u32, u64), u64> = BTreeMap::new();
    for program in programs {
        let first = born.entry(program.process()).or_insert(u64::MAX);
        *first = program.created.min(*first);
    }
    let age = |index: &usize| {
        let program = &programs[*index];
        let born = born.get(&program.process()).copied().unwrap_or(0);
        (born, program.process(), program.exec_count, program.created)
    };

    let places = tell_jobs_apart(programs, &age);
    let mut families: BTreeMap<&Place, Vec<usize>> = BTreeMap::new();
    let mut others: BTreeMap<(&str, u32, u64), Vec<usize>> = BTreeMap::new();
    for (index, program) in programs.iter().enumerate() {
        match &places[index] {
            Some(place) => families.entry(place).or_default().push(index),
            None => others.entry(program.process()).or_default().push(index),
        }
    }
    let jobs = order_jobs(programs, &families);
    let mut names = vec![(ProcessName::rank(0), None); programs.len()];
    let mut name_family = |members: &mut Vec<usize>, job: u32, rank: u32, is_rank: bool| {
        members.sort_by_key(age);
        let chosen = choose(programs, members);
        let others = members.iter().filter(|member| **member != chosen);
        for (member, sibling) in std::iter::once(&chosen).chain(others).zip(0..) {
            names[*member] = (
                ProcessName { job, rank, sibling },
                (is_rank && sibling == 0).then_some(rank),
            );
        }
    };
    let mut behind = 0;
    for (place, members) in &mut families {
        let job = jobs.get(place.token.as_str()).copied().unwrap_or(0);
        if job == 0 {
            behind = behind.max(place.rank.saturating_add(1));
        }
        name_family(members, job, place.rank, true);
    }
    // Without a launcher the MPI program itself is rank 0, not the shell that started it.
    let mut others: Vec<Vec<usize>> = others.into_values().collect();
    let is_mpi = |members: &[usize]| members.iter().any(|member| programs[*member].is_mpi);
    others.sort_by_key(|members| (!is_mpi(members), members.iter().map(age).min()));
    for (members, number) in others.iter_mut().zip(behind..) {
        let is_rank = families.is_empty() && is_mpi(members);
        name_family(members, 0, number, is_rank);
    }
    names
}

impl Program {
    /// What programs of one process have in common.
    pub fn process(&self) -> (&str, u32, u64) {
        (&self.host, self.pid, self.start_time)
    }
}

/// The programs' places, where the launcher tells nothing of the job with a number instead: a rank
/// initialises MPI once, so the second process of a rank that does is of the second job, and so on. Other
/// programs are of the job whose rank was started last before them.
fn tell_jobs_apart<K: Ord>(programs: &[Program], age: &impl Fn(&usize) -> K) -> Vec<Option<Place>> {
    let mut places: Vec<Option<Place>> = programs.iter().map(|p| p.place.clone()).collect();
    let mut order: Vec<usize> = (0..programs.len()).collect();
    order.sort_by_key(|index| age(index));
    let mut latest: BTreeMap<u32, (u32, (&str, u32, u64))> = BTreeMap::new();
    for index in order {
        let program = &programs[index];
        let Some(place) = places[index]
            .as_mut()
            .filter(|place| place.token.is_empty())
        else {
            continue;
        };
        if program.is_mpi {
            let (job, process) = latest.entry(place.rank).or_insert((0, program.process()));
            if *process != program.process() {
                (*job, *process) = (*job + 1, program.process());
            }
        }
        let job = latest.get(&place.rank).map_or(0, |(job, _)| *job);
        place.token = format!("job {job}");
    }
    places
}

/// Numbers of the jobs: those that initialised MPI first (an outer launcher's job, in which `mpirun`
/// itself was started, is none of interest), then by their first program.
fn order_jobs<'a>(
    programs: &[Program],
    families: &BTreeMap<&'a Place, Vec<usize>>,
) -> BTreeMap<&'a str, u32> {
    let mut jobs: BTreeMap<&str, (bool, u64)> = BTreeMap::new();
    for (place, members) in families {
        let job = jobs.entry(&place.token).or_insert((false, u64::MAX));
        for member in members {
            job.0 |= programs[*member].is_mpi;
            job.1 = job.1.min(programs[*member].created);
        }
    }
    let mut sorted: Vec<(&str, (bool, u64))> = jobs.into_iter().collect();
    sorted.sort_by_key(|(_, (is_mpi, created))| (Reverse(*is_mpi), *created));
    sorted
        .into_iter()
        .map(|(token, _)| token)
        .zip(0..)
        .collect()
}

/// Which of a family's programs, oldest first, is the process itself.
fn choose(programs: &[Program], members: &[usize]) -> usize {
    let mpi = members.iter().find(|member| programs[**member].is_mpi);
    let first = members.first().map(|member| programs[*member].process());
    let last_of_first = members
        .iter()
        .rev()
        .find(|member| Some(programs[**member].process()) == first);
    mpi.or(last_of_first).copied().unwrap_or(0)
}

/// A thread of a process, as far as its name depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Created {
    pub tid: u32,
    /// Time of its first event.
    pub started: u64,
    /// Whether it came into the main program's code.
    pub ran_main: bool,
}

/// The names of a process's threads: 0 for the thread that started the process, then in the order of
/// creation; those that never came into the main program's code are `h1`, `h2`... Thread ids grow from
/// the process id on; smaller ones were given after the kernel's numbers wrapped.
pub(crate) fn name_threads(pid: u32, threads: &[Created]) -> Vec<ThreadName> {
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|index| {
        let thread = &threads[*index];
        (thread.tid.wrapping_sub(pid), thread.started, *index)
    });
    let is_main = |thread: &Created| thread.ran_main || thread.tid == pid;
    let has_first = threads.iter().any(|thread| thread.tid == pid);
    let mut names = vec![ThreadName::Main(0); threads.len()];
    let (mut next, mut next_helper) = (u32::from(!has_first), 1);
    for index in order {
        names[index] = if is_main(&threads[index]) {
            next += 1;
            ThreadName::Main(next - 1)
        } else {
            next_helper += 1;
            ThreadName::Helper(next_helper - 1)
        };
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(pid: u32, created: u64, rank: Option<(&str, u32)>) -> Program {
        Program {
            host: "h".to_owned(),
            pid,
            start_time: 1,
            exec_count: 0,
            created,
            is_mpi: false,
            place: rank.map(|(token, rank)| Place {
                token: token.to_owned(),
                rank,
            }),
        }
    }

    fn mpi(program: Program) -> Program {
        Program {
            is_mpi: true,
            ..program
        }
    }

    fn exec(program: &Program, created: u64) -> Program {
        Program {
            exec_count: program.exec_count + 1,
            created,
            ..program.clone()
        }
    }

    fn names(programs: &[Program]) -> Vec<String> {
        name_processes(programs)
            .into_iter()
            .map(|(name, rank)| match rank {
                Some(rank) => format!("{name} rank {rank}"),
                None => name.to_string(),
            })
            .collect()
    }

    #[test]
    fn ranks_their_wrappers_and_children() {
        let shell = program(10, 5, Some(("a", 1)));
        let programs = [
            program(1, 0, None),                 // mpirun
            shell.clone(),                       // sh -c, of rank 1
            mpi(exec(&shell, 9)),                // exec'ed by it
            program(11, 10, Some(("a", 1))),     // system() of rank 1
            mpi(program(12, 4, Some(("a", 0)))), // rank 0
        ];
        assert_eq!(
            names(&programs),
            ["2", "1~1", "1 rank 1", "1~2", "0 rank 0"]
        );
    }

    #[test]
    fn without_mpi_the_last_program_of_the_first_process() {
        let shell = program(10, 5, Some(("a", 0)));
        let programs = [program(11, 7, Some(("a", 0))), exec(&shell, 9), shell];
        assert_eq!(names(&programs), ["0~2", "0 rank 0", "0~1"]);
    }

    #[test]
    fn without_a_launcher_by_start() {
        let shell = program(10, 5, None);
        let programs = [program(11, 7, None), exec(&shell, 9), shell];
        assert_eq!(names(&programs), ["1", "0", "0~1"]);
        let programs = [program(10, 5, None), mpi(program(11, 7, None))];
        assert_eq!(names(&programs), ["1", "0 rank 0"]);
    }

    #[test]
    fn a_second_job_and_an_outer_launcher() {
        let programs = [
            program(1, 0, Some(("slurm", 0))), // mpirun itself, under srun
            mpi(program(2, 1, Some(("x", 0)))),
            mpi(program(3, 2, Some(("y", 0)))),
        ];
        assert_eq!(names(&programs), ["2:0 rank 0", "0 rank 0", "1:0 rank 0"]);
    }

    #[test]
    fn a_launcher_that_does_not_name_its_jobs() {
        let programs = [
            mpi(program(2, 1, Some(("", 0)))),
            mpi(program(3, 2, Some(("", 1)))),
            program(4, 3, Some(("", 1))),      // system() of rank 1
            mpi(program(5, 9, Some(("", 0)))), // the next job
            mpi(program(6, 8, Some(("", 1)))),
        ];
        assert_eq!(
            names(&programs),
            ["0 rank 0", "1 rank 1", "1~1", "1:0 rank 0", "1:1 rank 1"]
        );
    }

    #[test]
    fn places_by_the_most_specific_launcher() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let environment = [
            ("SLURM_PROCID", "7"),
            ("SLURM_JOB_ID", "99"),
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("PMIX_NAMESPACE", "n"),
        ]
        .map(pair);
        let place = Place::from_environment(&environment);
        assert_eq!(
            place.map(|place| (place.token, place.rank)),
            Some(("n".to_owned(), 3))
        );
        assert_eq!(Place::from_environment(&[pair(("PMI_RANK", "many"))]), None);
    }

    fn threads(pid: u32, created: &[(u32, u64)]) -> Vec<ThreadName> {
        let created: Vec<Created> = created
            .iter()
            .map(|(tid, started)| Created {
                tid: *tid,
                started: *started,
                ran_main: true,
            })
            .collect();
        name_threads(pid, &created)
    }

    #[test]
    fn threads_by_creation() {
        let main = ThreadName::Main;
        assert_eq!(
            threads(10, &[(12, 0), (10, 9), (11, 5)]),
            [main(2), main(0), main(1)]
        );
        // The kernel's numbers wrapped between 12 and 5.
        assert_eq!(
            threads(10, &[(5, 3), (10, 0), (12, 1)]),
            [main(2), main(0), main(1)]
        );
        // The first thread was never seen; one number was used twice.
        assert_eq!(threads(10, &[(12, 7), (12, 3)]), [main(2), main(1)]);
    }

    #[test]
    fn threads_of_libraries_have_numbers_of_their_own() {
        let thread = |tid, ran_main| Created {
            tid,
            started: 0,
            ran_main,
        };
        let created = [
            thread(10, false), // the first is 0 whatever it ran
            thread(11, false),
            thread(12, true),
            thread(13, false),
        ];
        let (main, helper) = (ThreadName::Main, ThreadName::Helper);
        let expected = [main(0), helper(1), main(1), helper(2)];
        assert_eq!(name_threads(10, &created), expected);
    }
}
