//! Changes of three programs, and rebuilds that change nothing: what `baseline check` has to tell apart.
//!
//! Each change is an edit of the source, as a developer would make it, so that the compiler's options stay what they are.

use crate::artifacts::target;
use crate::command::{self, Outcome};
use crate::mpi::Mpi;
use crate::recording::{lockstep, record};
use crate::{Recipe, Scratch};
use std::path::{Path, PathBuf};

/// A change that the gate must find.
#[derive(Debug, Clone, Copy)]
pub struct Mutation {
    /// The program, in `programs/gate`.
    pub program: &'static str,
    /// What kind of change it is.
    pub kind: &'static str,
    /// A text that stands once in the source.
    from: &'static str,
    /// What stands there then.
    to: &'static str,
}

const fn change(
    program: &'static str,
    kind: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutation {
    Mutation {
        program,
        kind,
        from,
        to,
    }
}

/// The changes.
pub const MUTATIONS: [Mutation; 20] = [
    change("heat.cpp", "removed", "        bound(rod);\n", ""),
    change(
        "heat.cpp",
        "added",
        "        turn(rod);\n",
        "        turn(rod);\n        report(step, 0);\n",
    ),
    change(
        "heat.cpp",
        "doubled",
        "apply(rod, *term);",
        "apply(rod, *term), apply(rod, *term);",
    ),
    change(
        "heat.cpp",
        "out of the loop",
        "            report(step, heat(rod));\n    }\n",
        "            heat(rod);\n    }\n    report(20, heat(rod));\n",
    ),
    change(
        "heat.cpp",
        "condition turned",
        "step % 4 == 0",
        "step % 4 != 0",
    ),
    change(
        "heat.cpp",
        "condition shifted",
        "step % 4 == 0",
        "step % 4 == 1",
    ),
    change("heat.cpp", "argument", "fill(rod, 64)", "fill(rod, 96)"),
    change("orders.c", "removed", "        set_price(&order);\n", ""),
    change(
        "orders.c",
        "added",
        "    print(total);\n",
        "    print(total + count(0));\n",
    ),
    change(
        "orders.c",
        "doubled",
        "            push(&order);",
        "            push(&order), push(&order);",
    ),
    change(
        "orders.c",
        "out of the loop",
        "        total += count(shelf);\n",
        "        total += shelves[shelf];\n    total += count(0);\n",
    ),
    change(
        "orders.c",
        "condition turned",
        "if (valid(&order))",
        "if (!valid(&order))",
    ),
    change(
        "orders.c",
        "argument",
        "parse(i, &order)",
        "parse(i / 2, &order)",
    ),
    change("ring.c", "removed", "        smooth();\n", ""),
    change(
        "ring.c",
        "added",
        "        exchange();\n",
        "        exchange();\n        MPI_Barrier(MPI_COMM_WORLD);\n",
    ),
    change(
        "ring.c",
        "doubled",
        "value = residual();",
        "value = residual() + residual();",
    ),
    change(
        "ring.c",
        "out of the loop",
        "        if (step % 3 == 0)\n            value = residual();\n    }\n",
        "    }\n    value = residual();\n",
    ),
    change(
        "ring.c",
        "condition turned",
        "if (rank == 0)",
        "if (rank != 0)",
    ),
    change("ring.c", "argument", "TAG = 7", "TAG = 8"),
    change(
        "ring.c",
        "order",
        "        smooth();\n        exchange();\n",
        "        exchange();\n        smooth();\n",
    ),
];

/// A rebuild that changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Rebuild {
    /// What is done.
    pub name: &'static str,
    /// Texts of the source and what stands there then, in each of the programs that has them.
    edits: &'static [(&'static str, &'static str)],
    /// The compiler's options.
    flags: &'static [&'static str],
    /// Another compiler of C, if it is here and the program is in C.
    clang: bool,
}

const fn rebuild(
    name: &'static str,
    edits: &'static [(&'static str, &'static str)],
    flags: &'static [&'static str],
) -> Rebuild {
    Rebuild {
        name,
        edits,
        flags,
        clang: false,
    }
}

/// How the programs are built for the baseline.
pub const FLAGS: &[&str] = &["-O1", "-g"];
/// How changed ones are built otherwise.
pub const OTHER_FLAGS: &[&str] = &["-O2", "-g"];

/// The rebuilds.
pub const REBUILDS: [Rebuild; 10] = [
    rebuild("comment", &[("int main(", "// Begin.\nint main(")], FLAGS),
    rebuild(
        "renamed local",
        &[("total", "sum_of_all"), ("own", "of_this")],
        FLAGS,
    ),
    rebuild(
        "moved lines",
        &[("int main(", "\n\n\n\n\nint main(")],
        FLAGS,
    ),
    rebuild("-g3", &[], &["-O1", "-g3"]),
    rebuild("without -g", &[], &["-O1"]),
    rebuild("-frandom-seed", &[], &["-O1", "-g", "-frandom-seed=5"]),
    rebuild("-march", &[], &["-O1", "-g", "-march=x86-64-v2"]),
    rebuild(
        "-fno-omit-frame-pointer",
        &[],
        &["-O1", "-g", "-fno-omit-frame-pointer"],
    ),
    rebuild("-O2", &[], OTHER_FLAGS),
    Rebuild {
        name: "clang",
        edits: &[],
        flags: FLAGS,
        clang: true,
    },
];

/// The programs.
pub const PROGRAMS: [&str; 3] = ["heat.cpp", "orders.c", "ring.c"];

/// The source with edits, as a file of its own.
fn edited(program: &str, name: &str, edits: &[(&str, &str)]) -> PathBuf {
    let source = crate::artifacts::repository()
        .join("programs/gate")
        .join(program);
    let mut text = std::fs::read_to_string(&source)
        .unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    for (from, to) in edits {
        text = text.replace(from, to);
    }
    let words: String = name
        .chars()
        .map(|it| if it.is_alphanumeric() { it } else { '-' })
        .collect();
    let directory = target().join("testkit/gate").join(words);
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    let path = directory.join(program);
    let is_there = std::fs::read_to_string(&path).is_ok_and(|it| it == text);
    if !is_there {
        std::fs::write(&path, text).expect("the target directory can be written");
    }
    path
}

/// A program with edits, built with these options; the words that run it. `None` if a tool is missing.
fn built(
    program: &str,
    name: &str,
    edits: &[(&str, &str)],
    flags: &[&str],
    clang: bool,
) -> Option<Vec<String>> {
    let source = edited(program, name, edits);
    let mut recipe = Recipe::new(&source.display().to_string()).flags(flags);
    let is_mpi = program == "ring.c";
    let mpi = Mpi::ALL.into_iter().find(|mpi| is_mpi && mpi.is_here());
    match (is_mpi, mpi) {
        (true, None) => return None,
        (true, Some(mpi)) => recipe = recipe.compiler(&mpi.compiler()),
        (false, _) if clang && program.ends_with(".c") => recipe = recipe.compiler("clang"),
        (false, _) => {}
    }
    let path = recipe.build().display().to_string();
    let mut words = mpi.map_or_else(Vec::new, |mpi| mpi.launch(2));
    words.push(path);
    Some(words)
}

impl Mutation {
    /// The words that run the changed program, built with these options.
    ///
    /// # Panics
    /// If its text does not stand once in the source.
    #[must_use]
    pub fn words(&self, flags: &[&str]) -> Option<Vec<String>> {
        let source = crate::artifacts::repository()
            .join("programs/gate")
            .join(self.program);
        let text = std::fs::read_to_string(&source).unwrap_or_default();
        assert_eq!(text.matches(self.from).count(), 1, "{self:?}");
        built(
            self.program,
            self.kind,
            &[(self.from, self.to)],
            flags,
            false,
        )
    }
}

impl Rebuild {
    /// The words that run a program that was built again.
    #[must_use]
    pub fn words(&self, program: &str) -> Option<Vec<String>> {
        if self.clang && (program != "orders.c" || !crate::tools::require(&["clang"])) {
            return None;
        }
        built(program, self.name, self.edits, self.flags, self.clang)
    }
}

/// A program with its baseline.
#[derive(Debug)]
pub struct Gate {
    scratch: Scratch,
    baseline: PathBuf,
}

impl Gate {
    /// With so many runs in the baseline; `None` if a tool is missing.
    ///
    /// # Panics
    /// If the program does not run.
    #[must_use]
    pub fn of(program: &str, runs: usize) -> Option<Self> {
        let words = built(program, "unchanged", &[], FLAGS, false)?;
        let scratch = Scratch::new("gate");
        let baseline = scratch.join("baseline");
        for _ in 0..runs {
            let run = one_run(&scratch, &words);
            let mut command = lockstep(&["baseline", "set", "--add"]);
            let _ = command::run(command.arg(&baseline).arg(&run)).success();
            let _ = std::fs::remove_dir_all(run);
        }
        Some(Self { scratch, baseline })
    }

    /// What the gate says of a run of these words: its exit status and its JSON.
    ///
    /// # Panics
    /// If the program does not run.
    #[must_use]
    pub fn check(&self, words: &[String], options: &[&str]) -> Outcome {
        let run = one_run(&self.scratch, words);
        let mut command = lockstep(&["baseline", "check", "--json", "--fresh"]);
        let outcome = command::run(command.args(options).arg(&self.baseline).arg(&run));
        let _ = std::fs::remove_dir_all(run);
        outcome
    }

    /// The directory of the baseline.
    #[must_use]
    pub fn baseline(&self) -> &Path {
        &self.baseline
    }
}

fn one_run(scratch: &Scratch, words: &[String]) -> PathBuf {
    let recording = record(scratch, &[], words);
    assert_eq!(recording.outcome.status, 0, "{recording:#?}");
    recording.directory
}
