//! Files that are cut off, damaged or made up: a plan or a reason, never a panic; and arenas at any
//! distance.
#![allow(clippy::unwrap_used)]

mod compile;

use compile::compile;
use lockstep_binary::{Image, check_program};
use lockstep_format::plan::{Plan, Role, fixup};
use lockstep_patch::{Options, PlanFailure, Scope, check, explain, plan};
use proptest::prelude::*;

fn program() -> Option<Vec<u8>> {
    let build = compile("cc", "entries.S", &["-no-pie"])?;
    Some(std::fs::read(build.path).unwrap())
}

/// Everything that is asked of a file; whatever it holds, the answers are answers.
fn ask(bytes: &[u8]) {
    let _ = check_program(bytes);
    let every = Role::ALL.map(|role| {
        [
            (role, false, false, false),
            (role, false, false, true),
            (role, true, false, false),
            (role, true, true, false),
        ]
    });
    for (role, own_functions, library_calls, mpi_calls) in every.into_iter().flatten() {
        let scope = Scope {
            role,
            own_functions,
            library_calls,
            mpi_calls,
        };
        if let Ok(made) = plan(bytes, scope, &Options::default()) {
            let view = Plan::new(&made).unwrap();
            let _ = explain(&view);
            let _ = check(&view, bytes, 0, 0x7000_0000);
        }
    }
    if let Ok(image) = Image::parse(bytes)
        && let Some(lines) = lockstep_binary::Lines::new(&image, 1 << 24)
    {
        let _ = lines.find(image.entry());
    }
}

#[test]
fn every_truncation_of_the_headers_and_many_of_the_rest() {
    let Some(bytes) = program() else { return };
    for length in (0..1024).chain((1024..bytes.len()).step_by(61)) {
        ask(&bytes[..length.min(bytes.len())]);
    }
}

#[test]
fn every_flipped_byte_of_the_headers() {
    let Some(bytes) = program() else { return };
    // ELF and program headers: 64 + 13 * 56 bytes.
    for at in 0..800 {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            ask(&damaged);
        }
    }
}

/// `libFuzzer` found one whose end is no address.
#[test]
fn sections_at_the_end_of_all_addresses() {
    let Some(bytes) = program() else { return };
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let table = usize::try_from(number(40)).unwrap();
    let count = usize::from(u16::from_le_bytes([bytes[60], bytes[61]]));
    for header in (0..count).map(|it| table + 64 * it) {
        let mut damaged = bytes.clone();
        damaged[header + 16..header + 24].copy_from_slice(&(u64::MAX - 3).to_le_bytes());
        ask(&damaged);
    }
}

#[test]
fn what_is_no_program_is_told() {
    let refusal = |bytes: &[u8]| check_program(bytes).unwrap_err().to_string();
    assert_eq!(refusal(b"#! /bin/sh -e\necho"), "a script, run by /bin/sh");
    assert_eq!(
        refusal(b""),
        "neither an ELF file nor a script with a `#!` line (it begins with nothing: it is empty)"
    );
    assert_eq!(
        refusal(b"MZ\x90\0"),
        "neither an ELF file nor a script with a `#!` line (it begins with 4d 5a 90 00)"
    );
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[18] = 183;
    assert_eq!(
        refusal(&header),
        "a program for 64-bit ARM; expected x86-64"
    );
    header[18] = 62;
    header[16] = 1;
    assert_eq!(
        refusal(&header),
        "an object file, not an executable program"
    );
    header[4] = 1;
    assert!(refusal(&header).starts_with("a 32-bit program"));
    if let Some(build) = compile("cc", "calls.c", &["-static"]) {
        let bytes = std::fs::read(build.path).unwrap();
        assert!(refusal(&bytes).starts_with("statically linked"));
    }
    if let Some(build) = compile("cc", "calls.c", &["-static-pie"]) {
        let bytes = std::fs::read(build.path).unwrap();
        assert!(refusal(&bytes).starts_with("statically linked"));
    }
    if let Some(build) = compile("cc", "calls.c", &["-shared", "-fPIC"]) {
        let bytes = std::fs::read(build.path).unwrap();
        assert_eq!(refusal(&bytes), "a shared library, not a program");
    }
}

#[test]
fn a_silent_plan_patches_as_much_and_records_nothing() {
    let Some(build) = compile("cc", "calls.c", &["-O2"]) else {
        return;
    };
    let bytes = std::fs::read(build.path).unwrap();
    let silent = Options {
        silent: true,
        ..Options::default()
    };
    assert_ne!(silent.digest(), Options::default().digest());
    let [recording, silent] =
        [Options::default(), silent].map(|options| plan(&bytes, Role::Main, &options).unwrap());
    let [recording, silent] = [&recording, &silent].map(|made| Plan::new(made).unwrap());
    let addresses = |plan: &Plan<'_>| -> Vec<u64> { plan.sites().map(|s| s.address).collect() };
    assert_eq!(addresses(&recording), addresses(&silent));
    // An event needs its thread's block, which code finds by this.
    let events = |plan: &Plan<'_>| {
        let kinds = plan.fixups().map(|fixup| fixup.kind);
        kinds.filter(|kind| *kind == fixup::THREAD_32).count()
    };
    assert!(events(&recording) > 0);
    assert_eq!(events(&silent), 0);
}

#[test]
fn functions_are_chosen_by_name() {
    let Some(build) = compile("cc", "calls.c", &["-O0"]) else {
        return;
    };
    let bytes = std::fs::read(build.path).unwrap();
    let options = Options {
        trace: vec!["^t".into(), "^ch".into()],
        skip: vec!["ose$".into()],
        fault: None,
        silent: false,
    };
    let made = plan(&bytes, Role::Main, &options).unwrap();
    let view = Plan::new(&made).unwrap();
    let names: Vec<&[u8]> = view.functions().map(|f| f.name).collect();
    assert_eq!(names, [&b"tail"[..], b"checked"]);
    assert_eq!(
        check(&view, &bytes, 0x5555_5555_0000, 0x5555_6000_0000).err(),
        None
    );
    let wrong = Options {
        trace: vec!["(".into()],
        skip: Vec::new(),
        fault: None,
        silent: false,
    };
    let failure = plan(&bytes, Role::Main, &wrong);
    assert!(matches!(failure, Err(PlanFailure::Pattern { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_damage(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30)) {
        if let Some(mut bytes) = program() {
            for (place, value) in places {
                let at = place.index(bytes.len());
                bytes[at] = value;
            }
            ask(&bytes);
        }
    }

    /// Wherever the arena lies, the processor does the same.
    #[test]
    fn any_distance(pages in -0x7_fff0i64..0x7_fff0) {
        if let Some(build) = compile("cc", "entries.S", &["-pie"]) {
            let bytes = std::fs::read(build.path).unwrap();
            let made = plan(&bytes, Role::Main, &Options::default()).unwrap();
            let view = Plan::new(&made).unwrap();
            let bias = 0x5555_5555_0000u64;
            let arena = bias.wrapping_add_signed(pages * 4096);
            let extent = bias..bias + view.extent().1;
            let size = view.code().len() as u64;
            prop_assume!(arena + size <= extent.start || arena >= extent.end);
            prop_assert_eq!(check(&view, &bytes, bias, arena).err(), None);
        }
    }
}
