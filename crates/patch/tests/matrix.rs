//! Plans of small programs from every compiler at hand, applied and decoded again by the oracle.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod compile;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use compile::{Build, compile, strip};
use lockstep_format::plan::{Plan, Role, function};
use lockstep_patch::{Options, check, plan};

const GIB: u64 = 1 << 30;

fn planned(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let image = std::fs::read(path).unwrap();
    let bytes = plan(&image, Role::Main, &Options::default()).unwrap();
    (image, bytes)
}

/// Plans a program, checks the plan with its arena on either side of the image, near and far.
fn check_build(build: &Build) -> Vec<u8> {
    let (image, bytes) = planned(&build.path);
    let plan = Plan::new(&bytes).unwrap();
    let (low, high) = plan.extent();
    let bias = if plan.is_fixed() { 0 } else { 0x5555_5555_0000 };
    let size = plan.code().len() as u64;
    let mut arenas = vec![
        bias + high.next_multiple_of(4096),
        bias + low + 2 * GIB - size - 4096,
    ];
    if !plan.is_fixed() && image.len() < 1 << 20 {
        arenas.push((bias + low - size) & !4095);
        arenas.push((bias + high - 2 * GIB + 4096) & !4095);
    }
    for arena in arenas {
        let checked = check(&plan, &image, bias, arena)
            .unwrap_or_else(|what| panic!("{}, arena at {arena:#x}: {what}", build.how));
        assert!(checked.entries > 0, "{}", build.how);
    }
    bytes
}

fn own(plan: &Plan<'_>) -> BTreeMap<u64, String> {
    plan.functions()
        .filter(|f| f.origin == function::OWN)
        .map(|f| (f.address, String::from_utf8_lossy(f.name).into_owned()))
        .collect()
}

fn imported(plan: &Plan<'_>) -> BTreeSet<String> {
    plan.functions()
        .filter(|f| f.origin == function::IMPORT)
        .map(|f| String::from_utf8_lossy(f.name).into_owned())
        .collect()
}

/// Refused functions of the image itself, with the reason.
fn refused(plan: &Plan<'_>) -> Vec<String> {
    plan.refusals()
        .map(|r| {
            let (name, reason) = (
                String::from_utf8_lossy(r.name),
                String::from_utf8_lossy(r.reason),
            );
            format!("{:#x} {name}: {reason}", r.address)
        })
        .filter(|line| !line.contains("take its address"))
        .collect()
}

#[test]
fn c_programs_are_covered_whole() {
    let kinds: [&[&str]; 6] = [
        &[],
        &["-no-pie"],
        &["-fno-plt"],
        &["-Wl,-z,now"],
        &["-fcf-protection=full"],
        &["-Wl,-z,lazy", "-fno-pie", "-no-pie"],
    ];
    let mut built = 0;
    for compiler in ["gcc", "clang"] {
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            for kind in kinds {
                let options: Vec<&str> = [level].iter().chain(kind).copied().collect();
                let Some(build) = compile(compiler, "calls.c", &options) else {
                    continue;
                };
                built += 1;
                let bytes = check_build(&build);
                let plan = Plan::new(&bytes).unwrap();
                assert_eq!(refused(&plan), Vec::<String>::new(), "{}", build.how);
                let names: BTreeSet<String> = own(&plan).into_values().collect();
                for name in ["main", "tail", "hoisted"] {
                    assert!(names.contains(name), "{}: {name} in {names:?}", build.how);
                }
                assert!(
                    !names.iter().any(|n| n.contains(".cold") || n == "_start"),
                    "{names:?}"
                );
                let imports = imported(&plan);
                for name in ["qsort", "puts", "exit", "abort", "longjmp"] {
                    assert!(
                        imports.contains(name),
                        "{}: {name} in {imports:?}",
                        build.how
                    );
                }
                assert!(!imports.contains("__libc_start_main"));
                check_twin(&build, &plan);
            }
        }
    }
    assert!(built > 0 || compile("cc", "calls.c", &[]).is_none());
}

/// A stripped twin has the same functions, by address.
fn check_twin(build: &Build, plan: &Plan<'_>) {
    let Some(stripped) = strip(build) else { return };
    let bytes = check_build(&stripped);
    let twin = Plan::new(&bytes).unwrap();
    let addresses = |plan: &Plan<'_>| own(plan).into_keys().collect::<Vec<_>>();
    assert_eq!(addresses(plan), addresses(&twin), "{}", stripped.how);
    assert_eq!(imported(plan), imported(&twin), "{}", stripped.how);
    let main = |plan: &Plan<'_>| own(plan).into_iter().find(|(_, name)| name == "main");
    assert_eq!(main(plan), main(&twin), "{}", stripped.how);
}

#[test]
fn cpp_fortran_and_rust_programs_are_covered_whole() {
    let mut builds = Vec::new();
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for kind in [&[][..], &["-no-pie"]] {
            let options: Vec<&str> = [level].iter().chain(kind).copied().collect();
            builds.extend(compile("g++", "throws.cpp", &options));
            builds.extend(compile("clang++", "throws.cpp", &options));
            builds.extend(compile("gfortran", "sum.f90", &options));
        }
    }
    for build in &builds {
        let bytes = check_build(build);
        let plan = Plan::new(&bytes).unwrap();
        // Without alignment a virtual destructor that does nothing is one byte, and only pointers
        // lead there: nothing that one could write.
        let mut refused = refused(&plan);
        refused.retain(|line| !(build.how.contains("-O1") && line.contains("SquareD")));
        assert_eq!(refused, Vec::<String>::new(), "{}", build.how);
        check_twin(build, &plan);
    }
    for options in [
        &["-Copt-level=0"][..],
        &["-Copt-level=3"],
        &["-Copt-level=s", "-Crelocation-model=static"],
    ] {
        let Some(build) = compile("rustc", "panics.rs", options) else {
            continue;
        };
        let bytes = check_build(&build);
        let plan = Plan::new(&bytes).unwrap();
        // The standard library comes without alignment: what is one byte long cannot be helped. Nor can calls through a
        // register that also goes elsewhere.
        let mut refused = refused(&plan);
        let is_known = |line: &str| {
            line.contains("too short") || line.contains("in a way that is not recorded")
        };
        refused.retain(|line| !is_known(line));
        assert_eq!(refused, Vec::<String>::new(), "{}", build.how);
        check_twin(&build, &plan);
    }
}

#[test]
fn awkward_entries() {
    for options in [&[][..], &["-no-pie"]] {
        let Some(build) = compile("cc", "entries.S", options) else {
            continue;
        };
        let bytes = check_build(&build);
        let plan = Plan::new(&bytes).unwrap();
        let names: BTreeSet<String> = own(&plan).into_values().collect();
        let recorded = [
            "counted",
            "counted_first",
            "early_call",
            "early_indirect_call",
            "far_back",
            "first_way",
            "fourth_way",
            "loop_to_endbr",
            "loop_to_two",
            "loop_to_zero",
            "loop_with_call",
            "main",
            "only_ret",
            "own_address",
            "reads_data",
            "second_way",
            "table_to_two",
            "tail",
            "third_way",
            "three",
            "unaligned",
            "uses_framed_helper",
            "wide_loop_to_zero",
        ];
        for name in recorded {
            assert!(names.contains(name), "{name}: {:?}", refused(&plan));
        }
        let refused = refused(&plan).join("\n");
        for (name, why) in [
            ("taken_loop_with_call", "stands in a loop"),
            ("taken_early_indirect_call", "returns into them"),
            ("taken_one_byte", "too short"),
            ("framed_helper", "frame is set up"),
            ("crowded", "the short branch"),
            ("moved_way", "the branch"),
        ] {
            let line = refused.lines().find(|line| line.contains(name));
            assert!(
                line.is_some_and(|line| line.contains(why)),
                "{name}: {refused}"
            );
        }
    }
}

#[test]
fn every_way_out() {
    use lockstep_format::plan::mechanism::{CALL_THROUGH, INSTANT, LEAF, PATCHED_RETURNS};
    for options in [&[][..], &["-no-pie"], &["-Wl,-z,now"]] {
        let Some(build) = compile("cc", "exits.S", options) else {
            continue;
        };
        let bytes = check_build(&build);
        let plan = Plan::new(&bytes).unwrap();
        let mechanisms: BTreeMap<&[u8], u32> = plan
            .functions()
            .filter(|f| f.origin == function::OWN)
            .map(|f| (f.name, f.mechanism))
            .collect();
        let expected: [(u32, &[&str]); 4] = [
            (LEAF, &["leaf", "leaf_switch"]),
            (
                PATCHED_RETURNS,
                &[
                    "asks_system",
                    "call_before_window",
                    "calls",
                    "computed_goto",
                    "has_part",
                    "locks",
                    "loops",
                    "main",
                    "pauses",
                    "pops",
                    "prefixed",
                    "short",
                    "short_jump",
                    "spin",
                    "tail_calls",
                    "tail_leaf",
                    "tail_library",
                    "tail_maybe",
                    "tail_slot",
                    "wide_into_window",
                ],
            ),
            (
                CALL_THROUGH,
                &[
                    "has_entry",
                    "has_shared",
                    "into_other",
                    "pushes_return",
                    "short_into_window",
                    "tail_pointer",
                ],
            ),
            (INSTANT, &["my_setjmp"]),
        ];
        for (mechanism, names) in expected {
            for name in names {
                let found = mechanisms.get(name.as_bytes());
                assert_eq!(found, Some(&mechanism), "{}: {name}", build.how);
            }
        }
        let refused = refused(&plan).join("\n");
        for name in ["returns_flags", "passes_flags", "reads_flags"] {
            let line = refused.lines().find(|line| line.contains(name));
            assert!(line.is_some_and(|l| l.contains("flags")), "{refused}");
        }
        let all = mechanisms.len() + refused.lines().count();
        assert_eq!(all, 2 + 20 + 6 + 1 + 3, "{mechanisms:?}");
        // Stripped there are no names to go by: the same code, but for what a name alone tells.
        let Some(stripped) = strip(&build) else {
            continue;
        };
        let twin = check_build(&stripped);
        let twin = Plan::new(&twin).unwrap();
        for f in twin.functions().filter(|f| f.origin == function::OWN) {
            let with_name = plan.functions().find(|g| g.address == f.address).unwrap();
            let by_name = [&b"my_setjmp"[..], b"has_entry"];
            if !by_name.contains(&with_name.name) {
                assert_eq!(f.mechanism, with_name.mechanism, "{:#x}", f.address);
            }
        }
    }
}

/// Most functions that compilers make need no return address replaced.
#[test]
fn returns_of_compiled_functions_are_patched() {
    use lockstep_format::plan::mechanism::{LEAF, PATCHED_RETURNS};
    let kinds: [&[&str]; 5] = [
        &["-O1"],
        &["-O2"],
        &["-O2", "-no-pie", "-fcf-protection=none"],
        &["-O3", "-mno-red-zone"],
        &["-O2", "-fno-plt"],
    ];
    for (compiler, source) in [
        ("gcc", "calls.c"),
        ("clang", "calls.c"),
        ("g++", "throws.cpp"),
    ] {
        for kind in kinds {
            let Some(build) = compile(compiler, source, kind) else {
                continue;
            };
            let bytes = check_build(&build);
            let plan = Plan::new(&bytes).unwrap();
            let own = || plan.functions().filter(|f| f.origin == function::OWN);
            let patched = own().filter(|f| matches!(f.mechanism, LEAF | PATCHED_RETURNS));
            let (patched, all) = (patched.count(), own().count());
            assert!(patched * 10 >= all * 8, "{}: {patched} of {all}", build.how);
        }
    }
}

/// Stubs and calls in the forms that linkers and compilers make to keep processors from predicting, or attackers from jumping.
#[test]
fn library_calls_in_guarded_forms() {
    let forms: [(&str, &[&str]); 9] = [
        ("clang", &["-fuse-ld=lld", "-Wl,-z,retpolineplt"]),
        (
            "clang",
            &["-fuse-ld=lld", "-Wl,-z,retpolineplt,-z,now", "-O2"],
        ),
        (
            "clang",
            &["-fuse-ld=lld", "-Wl,-z,force-ibt", "-fcf-protection=full"],
        ),
        ("clang", &["-mretpoline", "-fno-plt", "-O2"]),
        (
            "gcc",
            &[
                "-mindirect-branch=thunk",
                "-fcf-protection=none",
                "-fno-plt",
                "-O2",
            ],
        ),
        (
            "gcc",
            &[
                "-mindirect-branch=thunk-inline",
                "-fcf-protection=none",
                "-fno-plt",
                "-O2",
            ],
        ),
        (
            "gcc",
            &[
                "-mindirect-branch=thunk",
                "-fcf-protection=none",
                "-O1",
                "-no-pie",
            ],
        ),
        ("gcc", &["-Wl,-z,ibtplt", "-fcf-protection=full", "-O1"]),
        (
            "gcc",
            &["-Wl,-z,ibtplt,-z,now", "-fcf-protection=full", "-no-pie"],
        ),
    ];
    for (compiler, options) in forms {
        let Some(build) = compile(compiler, "calls.c", options) else {
            continue;
        };
        let bytes = check_build(&build);
        let plan = Plan::new(&bytes).unwrap();
        assert_eq!(refused(&plan), Vec::<String>::new(), "{}", build.how);
        let imports = imported(&plan);
        for name in [
            "qsort", "puts", "exit", "abort", "longjmp", "printf", "fprintf",
        ] {
            assert!(
                imports.contains(name),
                "{}: {name} in {imports:?}",
                build.how
            );
        }
    }
}

/// A library function's stub calls through the slot that no PLT stub of the program can be in.
#[test]
fn stubs_do_not_meet_themselves() {
    let Some(build) = compile("cc", "canonical.S", &["-no-pie"]) else {
        return;
    };
    let bytes = check_build(&build);
    let image = std::fs::read(&build.path).unwrap();
    let image = lockstep_binary::Image::parse(&image).unwrap();
    let slots = image.imports();
    let kinds: Vec<bool> = slots
        .iter()
        .filter(|import| import.name == b"puts")
        .map(|import| import.is_for_calls)
        .collect();
    assert_eq!(kinds.len(), 2, "{slots:?}");
    let plan = Plan::new(&bytes).unwrap();
    let puts = plan.functions().find(|f| f.name == b"puts").unwrap();
    let slot = slots.iter().find(|import| import.slot == puts.address);
    assert!(slot.unwrap().is_for_calls);
}

/// Programs of the distribution, where they are installed: the plan holds, and what is refused is
/// told.
#[test]
fn installed_programs() {
    for path in [
        "/bin/bash",
        "/usr/bin/python3.11",
        "/usr/bin/git",
        "/usr/bin/perl",
        "/usr/bin/gdb",
    ] {
        let path = Path::new(path);
        if !path.exists() {
            eprintln!("SKIPPED: {} is not installed", path.display());
            continue;
        }
        let build = Build {
            path: path.to_owned(),
            how: path.display().to_string(),
        };
        let bytes = check_build(&build);
        let plan = Plan::new(&bytes).unwrap();
        let (own, refused) = (own(&plan).len(), refused(&plan));
        let share = own as f64 / (own + refused.len()) as f64;
        eprintln!("{}: {own} functions, {} refused", build.how, refused.len());
        assert!(share > 0.98, "{share}: {refused:#?}");
    }
}
