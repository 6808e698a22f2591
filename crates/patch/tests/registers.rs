//! Whose inline code saves r10 and r11: counted, function by function, so that neither a wait that is overlooked nor
//! a saving that is not needed goes unnoticed.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod compile;

use std::collections::BTreeMap;

use compile::compile;
use lockstep_format::plan::{Plan, Role, function, mechanism, site, stub};
use lockstep_patch::{Options, check, plan};

/// `mov %r11,-8(%rsp)`, `mov %r10,-16(%rsp)`.
const SAVES: &[u8] = &[0x4c, 0x89, 0x5c, 0x24, 0xf8, 0x4c, 0x89, 0x54, 0x24, 0xf0];
/// What begins with the thread's block instead: `mov %fs:...,%r11`.
const BEGINS: &[u8] = &[0x64, 0x4c, 0x8b, 0x1c, 0x25];

/// The functions with inline code of a program, and whether it saves.
fn savers(image: &[u8]) -> BTreeMap<String, bool> {
    let bytes = plan(image, Role::Main, &Options::default()).unwrap();
    let plan = Plan::new(&bytes).unwrap();
    let (_, high) = plan.extent();
    let bias = if plan.is_fixed() { 0 } else { 0x5555_5555_0000 };
    check(&plan, image, bias, bias + high.next_multiple_of(4096)).unwrap();
    let inline = [mechanism::PATCHED_RETURNS, mechanism::LEAF];
    plan.functions()
        .filter(|f| f.origin == function::OWN && inline.contains(&f.mechanism))
        .filter_map(|f| {
            let name = String::from_utf8_lossy(f.name).into_owned();
            let entry = plan
                .sites()
                .find(|s| s.address == f.address && s.field != site::NO_FIELD)?;
            assert_eq!(entry.target % stub::ALIGNMENT, stub::INLINE, "{name}");
            let code = &plan.code()[entry.target as usize..];
            let saves = code.starts_with(SAVES);
            assert!(saves || code.starts_with(BEGINS), "{name}");
            Some((name, saves))
        })
        .collect()
}

#[test]
fn who_waits_for_scratch_registers() {
    let Some(build) = compile("gcc", "registers.S", &[]) else {
        return;
    };
    let status = std::process::Command::new(&build.path).status().unwrap();
    let found = savers(&std::fs::read(&build.path).unwrap());
    let named = |saves: bool| -> Vec<&str> {
        let such = found.iter().filter(|(_, it)| **it == saves);
        such.map(|(name, _)| name.as_str()).collect()
    };
    // `main` calls `takes_part` without having set r10.
    assert_eq!(
        named(true),
        [
            "below",
            "hands_on",
            "kept",
            "kept_between",
            "main",
            "seen",
            "seen_between",
            "seen_failing",
            "seen_keeping",
            "takes",
            "takes_part"
        ]
    );
    assert_eq!(
        named(false),
        [
            "forgets",
            "forgotten",
            "gives",
            "keeps",
            "plain",
            "seen_ordinary"
        ]
    );
    assert!(status.success(), "{status}");
}

/// In what compilers make of ordinary programs, nearly all functions find both free.
#[test]
fn compiled_functions_rarely_wait() {
    for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O2")] {
        let Some(build) = compile(compiler, "calls.c", &[level]) else {
            continue;
        };
        let found = savers(&std::fs::read(&build.path).unwrap());
        let saving = found.values().filter(|it| **it).count();
        eprintln!("{}: {saving} of {} save", build.how, found.len());
        // A comparison that `qsort` calls, and what ends with a jump into a library.
        let expected = ["by_value", "tail"];
        let others = found
            .iter()
            .filter(|(name, saves)| **saves && !expected.contains(&&***name));
        assert_eq!(others.count(), 0, "{found:?}");
        assert!(found.len() > 2);
    }
}
