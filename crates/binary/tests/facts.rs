//! What is told of small compiled programs, against what their sources say.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use lockstep_binary::{CodeRange, Image, Kind, Lines, RangeKind, check_program};

const SOURCE: &str = r#"#include <math.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int twice(int n) {
    if (n < 0) {
        fprintf(stderr, "%d\n", n);
        abort();
    }
    return 2 * n;
}
int main(int count, char **arguments) {
    printf("%d %g %s\n", twice(count), sqrt(count), arguments[0]);
    return 0;
}
"#;

/// The source compiled with `options`; `None`, said loudly, where that cannot be done here.
fn compile(name: &str, options: &[&str]) -> Option<Vec<u8>> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (directory.join(format!("{name}.c")), directory.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let output = Command::new("cc")
        .args(options)
        .arg(&source)
        .arg("-lm")
        .arg("-o")
        .arg(&program)
        .output();
    match output {
        Ok(output) if output.status.success() => Some(std::fs::read(program).unwrap()),
        other => {
            eprintln!("SKIPPED: cc {options:?}: {other:?}");
            None
        }
    }
}

fn named<'a>(ranges: &[CodeRange<'a>], name: &str) -> Option<CodeRange<'a>> {
    let name = Some(name.as_bytes());
    ranges.iter().copied().find(|range| range.name == name)
}

#[test]
fn kinds_libraries_and_build_ids() {
    for (options, kind) in [
        (&["-pie", "-fPIE"][..], Kind::Pie),
        (&["-no-pie"], Kind::Fixed),
        (&["-shared", "-fPIC"], Kind::Library),
        (&["-static"], Kind::Static),
        (&["-static-pie", "-fPIE"], Kind::Static),
    ] {
        let mut options = options.to_vec();
        options.extend(["-Wl,--build-id=0x0123456789abcdef", "-Wl,-soname,own.so"]);
        let name = format!("kind{}", options[0]);
        let Some(bytes) = compile(&name, &options) else {
            continue;
        };
        let image = Image::parse(&bytes).unwrap();
        assert_eq!(image.kind(), kind, "{options:?}");
        assert_eq!(image.build_id(), 0x0123_4567_89ab_cdefu64.to_be_bytes());
        let needs_libc = image.needed().contains(&&b"libc.so.6"[..]);
        assert_eq!(needs_libc, kind != Kind::Static, "{options:?}");
        let can = matches!(kind, Kind::Pie | Kind::Fixed);
        assert_eq!(check_program(&bytes).is_ok(), can, "{options:?}");
    }
}

#[test]
fn functions_parts_and_imports() {
    for options in [&["-O2"][..], &["-O2", "-no-pie"], &["-O2", "-fno-plt"]] {
        let Some(bytes) = compile(&format!("ranges{}", options.len()), options) else {
            continue;
        };
        let image = Image::parse(&bytes).unwrap();
        let ranges = image.ranges();
        for name in ["main", "twice"] {
            let range = named(&ranges, name).unwrap();
            assert_eq!(range.kind, RangeKind::Function, "{name}");
            assert!(image.bytes_at(range.address, range.size).is_some());
        }
        if let Some(cold) = named(&ranges, "twice.cold") {
            assert_eq!(cold.kind, RangeKind::Part);
            assert_eq!(cold.parent_name(), Some(&b"twice"[..]));
        }
        assert_eq!(named(&ranges, "_start").unwrap().kind, RangeKind::Startup);
        let sorted = ranges
            .windows(2)
            .all(|pair| pair[0].end() <= pair[1].address);
        assert!(sorted, "{ranges:?}");
        let imports = image.imports();
        let names: BTreeSet<&[u8]> = imports.iter().map(|import| import.name).collect();
        for name in [&b"printf"[..], b"fprintf", b"abort", b"__libc_start_main"] {
            assert!(names.contains(name), "{name:?} in {names:?}");
        }
        // A variable is no function.
        assert!(!names.contains(&&b"stderr"[..]));
    }
}

#[test]
fn without_section_headers_the_functions_are_the_same() {
    let Some(mut bytes) = compile("sections", &["-O1", "-s"]) else {
        return;
    };
    let starts = |bytes: &[u8]| -> Vec<u64> {
        let ranges = Image::parse(bytes).unwrap().ranges();
        let functions = ranges.iter().filter(|r| r.kind == RangeKind::Function);
        functions.map(|range| range.address).collect()
    };
    let with = starts(&bytes);
    assert!(with.len() >= 2);
    // e_shoff, e_shnum and e_shstrndx.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    let without = starts(&bytes);
    assert!(
        with.iter().all(|start| without.contains(start)),
        "{without:x?}"
    );
}

#[test]
fn lines_of_functions() {
    let Some(bytes) = compile("lines", &["-g", "-O0"]) else {
        return;
    };
    let image = Image::parse(&bytes).unwrap();
    let ranges = image.ranges();
    let lines = Lines::new(&image, 1 << 26).unwrap();
    for (name, expected) in [("twice", 4), ("main", 11)] {
        let (file, line) = lines.find(named(&ranges, name).unwrap().address).unwrap();
        assert!(file.ends_with("lines.c"), "{file}");
        assert_eq!(line, expected, "{name}");
    }
    assert!(Lines::new(&image, 10).is_none());
    assert_eq!(lines.find(0), None);
}

/// What is inlined from a header of the C++ library has the line of the program's own text.
#[test]
fn lines_of_what_a_header_brought() {
    const SOURCE: &str = "#include <vector>
int taken(const std::vector<int> &from, int at) {
    return from.at(at); // its own line
}
int main(int count, char **) { return taken(std::vector<int>(4), count); }
";
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (directory.join("inlined.cpp"), directory.join("inlined"));
    std::fs::write(&source, SOURCE).unwrap();
    for compiler in ["g++", "clang++"] {
        let mut command = Command::new(compiler);
        command.args(["-g", "-O2"]).arg(&source);
        let output = command.arg("-o").arg(&program).output();
        if !output.as_ref().is_ok_and(|it| it.status.success()) {
            eprintln!("SKIPPED: {compiler}: {output:?}");
            continue;
        }
        let bytes = std::fs::read(&program).unwrap();
        let image = Image::parse(&bytes).unwrap();
        let lines = Lines::new(&image, usize::MAX).unwrap();
        let code = image.ranges();
        let taken = named(&code, "_Z5takenRKSt6vectorIiSaIiEEi").unwrap();
        let found: BTreeSet<(String, u32)> = (taken.address..taken.address + taken.size)
            .filter_map(|at| lines.find(at))
            .collect();
        assert!(!found.is_empty(), "{compiler}");
        for (file, line) in &found {
            assert!(file.ends_with("inlined.cpp"), "{compiler}: {file}:{line}");
            assert!((2..=4).contains(line), "{compiler}: {file}:{line}");
        }
    }
    let is_of_the_system = lockstep_binary::is_of_the_system;
    assert!(is_of_the_system("/usr/include/c++/12/bits/stl_vector.h"));
    assert!(is_of_the_system("/opt/gcc-13/include/c++/13.2.0/mutex"));
    assert!(!is_of_the_system("/usr/src/solver/vector.cpp"));
}
