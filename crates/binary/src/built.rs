//! How an image was compiled, as it says itself: the options, and which functions were inlined.
//!
//! ```text
//!  DW_AT_producer          "GNU C17 14.2.0 -mtune=generic -march=x86-64 -g -O2"     gcc, with -g
//!                          "clang version 19.1.7" /usr/bin/clang -g -O2 ...         clang, with -grecord-command-line
//!  .GCC.command.line       the same text, without debug information                 -frecord-gcc-switches
//! ```

use std::collections::BTreeSet;

use gimli::{AttributeValue, EndianSlice, LittleEndian, Unit, UnitOffset};
use rustc_hash::FxHashSet;

use crate::Image;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
type Offset = UnitOffset<usize>;

/// What an image says about how it was compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Built {
    /// One entry for each set of options, with its compiler's name and version; empty where the unit of `main`, or any record
    /// at all, lacks them. What only names files or adds debug information is left out: it changes no code.
    pub options: BTreeSet<String>,
    /// Linkage names of the functions that were inlined somewhere; `None` without debug information.
    pub inlined: Option<BTreeSet<String>>,
}

impl Built {
    /// What `image` says. Debug information of more than `limit` bytes is left alone.
    #[must_use]
    pub fn of(image: &Image<'_>, limit: usize) -> Self {
        let section = |name: &[u8]| image.section(name).map_or(&[][..], |(bytes, _)| bytes);
        let mut built = Self {
            options: command_lines(section(b".GCC.command.line")),
            ..Self::default()
        };
        let information = section(b".debug_info");
        if information.is_empty() || information.len() > limit {
            return built;
        }
        let load = |id: gimli::SectionId| -> Result<Slice<'_>, gimli::Error> {
            Ok(EndianSlice::new(
                section(id.name().as_bytes()),
                LittleEndian,
            ))
        };
        // Damaged debug information tells as much as none.
        if let Ok(dwarf) = gimli::Dwarf::load(load)
            && let Some((options, inlined)) = read(&dwarf)
        {
            built.inlined = Some(with_variants(inlined));
            if built.options.is_empty() {
                built.options = options;
            }
        }
        built
    }
}

/// Options that name files, or say what is written beside the code.
const BESIDE: [&str; 12] = [
    "-g",
    "-I",
    "-W",
    "-M",
    "-o",
    "-c",
    "-i",
    "-L",
    "-l",
    "-dump",
    "-fdebug-",
    "-frecord-",
];

/// The debug information has one name for all variants of a constructor or a destructor.
fn with_variants(mut names: BTreeSet<String>) -> BTreeSet<String> {
    let mut more: Vec<String> = Vec::new();
    for (all, variants) in [
        ("C4E", &["C1E", "C2E"][..]),
        ("D4E", &["D0E", "D1E", "D2E"][..]),
    ] {
        for name in names.iter().filter(|it| it.starts_with("_Z")) {
            more.extend(variants.iter().filter_map(|variant| {
                let (before, behind) = name.rsplit_once(all)?;
                Some(format!("{before}{variant}{behind}"))
            }));
        }
    }
    names.extend(more);
    names
}

/// A record of options without those that change no code; `None` if it has no options.
fn normal(record: &str) -> Option<String> {
    let has_options = record.split_whitespace().any(|it| it.starts_with('-'));
    let mut words = record.split_whitespace();
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        // Their file is the next word.
        if [
            "-o",
            "-I",
            "-isystem",
            "-MF",
            "-MT",
            "-MQ",
            "-dumpdir",
            "-dumpbase",
        ]
        .contains(&word)
        {
            words.next();
            continue;
        }
        let is_file = word.contains('/') || word.contains('.') && word.len() > 2 && is_source(word);
        if !is_file && !BESIDE.iter().any(|it| word.starts_with(it)) {
            kept.push(word);
        }
    }
    has_options.then(|| kept.join(" "))
}

fn is_source(word: &str) -> bool {
    let ending = word.rsplit('.').next().unwrap_or_default();
    !word.starts_with('-')
        && ending
            .chars()
            .next()
            .is_some_and(|it| it.is_ascii_alphabetic())
}

/// Strings that end with a zero byte: one a unit, or with older compilers one an option.
fn command_lines(section: &[u8]) -> BTreeSet<String> {
    let strings: Vec<String> = section
        .split(|byte| *byte == 0)
        .filter(|it| !it.is_empty())
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .collect();
    if strings.iter().any(|it| it.contains(' ')) {
        return strings.iter().filter_map(|it| normal(it)).collect();
    }
    normal(&strings.join(" ")).into_iter().collect()
}

/// Options and inlined functions of all units; no options where the one of `main` records none.
fn read(dwarf: &Dwarf<'_>) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let (mut options, mut inlined) = (BTreeSet::new(), BTreeSet::new());
    let mut main_has_some = false;
    let mut units = dwarf.units();
    while let Some(header) = units.next().ok()? {
        let unit = dwarf.unit(header).ok()?;
        let found = read_unit(dwarf, &unit, &mut inlined)?;
        main_has_some |= found.has_main && found.options.is_some();
        options.extend(found.options);
    }
    if !main_has_some {
        options.clear();
    }
    Some((options, inlined))
}

#[derive(Default)]
struct OfUnit {
    options: Option<String>,
    has_main: bool,
}

fn read_unit(
    dwarf: &Dwarf<'_>,
    unit: &Unit<Slice<'_>>,
    inlined: &mut BTreeSet<String>,
) -> Option<OfUnit> {
    let mut found = OfUnit::default();
    let mut origins: FxHashSet<Offset> = FxHashSet::default();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().ok()? {
        let value = |of: gimli::DwAt| entry.attr_value(of);
        match entry.tag() {
            gimli::DW_TAG_compile_unit => {
                let producer = value(gimli::DW_AT_producer);
                found.options = producer.and_then(|it| normal(&text(dwarf, unit, it)?));
            }
            gimli::DW_TAG_subprogram => {
                let name = value(gimli::DW_AT_name).and_then(|it| text(dwarf, unit, it));
                found.has_main |= name.as_deref() == Some("main")
                    || value(gimli::DW_AT_main_subprogram).is_some();
                // It may be inlined without a trace of its own, where nothing was left of it.
                if let Some(AttributeValue::Inline(
                    gimli::DW_INL_inlined | gimli::DW_INL_declared_inlined,
                )) = value(gimli::DW_AT_inline)
                {
                    inlined.extend(linkage_at(dwarf, unit, entry.offset(), 0));
                }
            }
            gimli::DW_TAG_inlined_subroutine => {
                let origin = value(gimli::DW_AT_abstract_origin);
                let is_new = match origin {
                    Some(AttributeValue::UnitRef(offset)) => origins.insert(offset),
                    _ => true,
                };
                if let (Some(origin), true) = (origin, is_new) {
                    inlined.extend(linkage(dwarf, unit, origin, 0));
                }
            }
            _ => {}
        }
    }
    Some(found)
}

fn text(
    dwarf: &Dwarf<'_>,
    unit: &Unit<Slice<'_>>,
    value: AttributeValue<Slice<'_>>,
) -> Option<String> {
    let bytes = dwarf.attr_string(unit, value).ok()?;
    Some(bytes.to_string_lossy().into_owned())
}

/// An abstract function may lead to its declaration, and that to another.
const DEEP: usize = 8;

/// The linkage name of the function that a reference leads to.
fn linkage(
    dwarf: &Dwarf<'_>,
    unit: &Unit<Slice<'_>>,
    reference: AttributeValue<Slice<'_>>,
    depth: usize,
) -> Option<String> {
    if depth > DEEP {
        return None;
    }
    match reference {
        AttributeValue::UnitRef(offset) => linkage_at(dwarf, unit, offset, depth),
        // With -flto, into another unit.
        AttributeValue::DebugInfoRef(offset) => {
            let mut units = dwarf.units();
            while let Some(header) = units.next().ok()? {
                if let Some(inner) = offset.to_unit_offset(&header) {
                    let unit = dwarf.unit(header).ok()?;
                    return linkage_at(dwarf, &unit, inner, depth);
                }
            }
            None
        }
        _ => None,
    }
}

fn linkage_at(
    dwarf: &Dwarf<'_>,
    unit: &Unit<Slice<'_>>,
    offset: Offset,
    depth: usize,
) -> Option<String> {
    let entry = unit.entry(offset).ok()?;
    if let Some(name) = entry.attr_value(gimli::DW_AT_linkage_name) {
        return text(dwarf, unit, name);
    }
    for further in [gimli::DW_AT_specification, gimli::DW_AT_abstract_origin] {
        if let Some(name) = entry
            .attr_value(further)
            .and_then(|it| linkage(dwarf, unit, it, depth + 1))
        {
            return Some(name);
        }
    }
    let name = entry.attr_value(gimli::DW_AT_name)?;
    text(dwarf, unit, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_no_code_is_no_option() {
        let gcc = |more: &str| normal(&format!("GNU C17 14.2.0 -march=x86-64 {more} -O2"));
        assert_eq!(
            gcc("-g").as_deref(),
            Some("GNU C17 14.2.0 -march=x86-64 -O2")
        );
        assert_eq!(gcc("-g3 -I /a/b -fdebug-prefix-map=/a=/b"), gcc(""));
        assert_ne!(gcc("-frandom-seed=4"), gcc(""));
        let clang = "clang version 19 /usr/bin/clang -O2 -o app -I. app.cpp -DLIMIT=2 -Wall";
        assert_eq!(
            normal(clang).as_deref(),
            Some("clang version 19 -O2 -DLIMIT=2")
        );
        assert_eq!(normal("Debian clang version 19.1.7"), None);
    }

    #[test]
    fn the_section_has_a_string_a_unit_or_an_option() {
        let units = command_lines(b"GNU C17 14.2.0 -O2 -g\0GNU C++17 14.2.0 -O2\0");
        assert_eq!(units.len(), 2);
        let options = command_lines(b"-O2\0-march=x86-64\0");
        assert_eq!(Vec::from_iter(options), ["-O2 -march=x86-64"]);
        assert!(command_lines(b"").is_empty());
    }
}
