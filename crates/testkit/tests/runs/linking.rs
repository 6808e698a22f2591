//! How the probe is linked: it comes into strangers' processes and must bring nothing and ask for
//! nothing, whatever the build.

use lockstep_testkit::artifacts;
use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Object, ObjectSymbol, elf};
use std::path::Path;

/// The only thing that the probe takes from its host, if it is there.
const ALLOWED_UNDEFINED: &[&str] = &["__register_atfork"];

fn check(path: &Path) {
    let bytes = std::fs::read(path).expect("the probe was built");
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).expect("the probe is an ELF file");
    let endian = file.endian();
    let mut exported = Vec::new();
    for symbol in file.dynamic_symbols() {
        let name = symbol.name().unwrap_or("?");
        if symbol.is_undefined() {
            assert!(ALLOWED_UNDEFINED.contains(&name), "undefined: {name}");
            assert!(symbol.is_weak(), "{name} must be weak");
        } else if symbol.is_global() {
            exported.push(name.to_owned());
        }
    }
    assert_eq!(
        exported,
        Vec::<String>::new(),
        "exported, so it could interpose the host's"
    );
    let sections = file.elf_section_table();
    let (entries, _) = sections
        .dynamic(endian, &*bytes)
        .expect("a readable dynamic section")
        .expect("a dynamic section");
    let needed = entries
        .iter()
        .filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED)
        .count();
    assert_eq!(needed, 0, "the probe needs no library");
    let text_relocations = entries
        .iter()
        .any(|entry| entry.d_tag(endian) == elf::DT_TEXTREL);
    assert!(!text_relocations, "code that must be written to");
    assert_eq!(
        file.elf_header().e_type(endian),
        elf::ET_DYN,
        "a shared library"
    );
}

#[test]
fn the_probe_brings_nothing_and_asks_for_nothing() {
    check(artifacts::probe());
}

#[test]
fn nor_does_it_in_a_development_build() {
    let probe = artifacts::build(&["--package", "lockstep-probe"], ".so");
    check(&probe);
}
