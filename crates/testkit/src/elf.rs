//! What an executable says about itself, read anew with other eyes than the product's: the oracle
//! must not share its mistakes.

use gimli::UnwindSection;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeMap;
use std::path::Path;

/// A function of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// First address and one past the last, in the file.
    pub range: (u64, u64),
    /// Name in the symbol table, if there is one; of several, some one.
    pub name: Option<String>,
}

impl Function {
    /// Its name, or its address where it has none.
    #[must_use]
    pub fn label(&self) -> String {
        let address = || format!("{:#x}", self.range.0);
        self.name.clone().unwrap_or_else(address)
    }
}

/// The facts that the oracle needs.
#[derive(Debug, Clone)]
pub struct Elf {
    /// File name without directory.
    pub name: String,
    /// Entry point.
    pub entry: u64,
    /// First address of code and one past the last.
    pub code: (u64, u64),
    /// The functions that have unwind information, by address; without the start-up code.
    pub functions: Vec<Function>,
    /// Parts that a compiler put away from their function: range and the function's index.
    pub cold: Vec<((u64, u64), usize)>,
    /// Library functions by the address of the slot that holds their address.
    pub slots: BTreeMap<u64, String>,
    /// Addresses by name, for every name that stands for one address only.
    pub addresses: BTreeMap<String, u64>,
    /// Executable bytes by address.
    pub text: Vec<(u64, Vec<u8>)>,
}

/// Functions that the compiler's start-up files bring along.
const START_UP: &[&str] = &[
    "_start",
    "_init",
    "_fini",
    "_dl_relocate_static_pie",
    "deregister_tm_clones",
    "register_tm_clones",
    "frame_dummy",
    "__do_global_dtors_aux",
    "__libc_csu_init",
    "__libc_csu_fini",
];

impl Elf {
    /// Reads the executable at `path`.
    ///
    /// # Panics
    /// If it is none, or damaged.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let (names, addresses) = symbols(&file);
        let text: Vec<(u64, Vec<u8>)> = file
            .sections()
            .filter(|section| section.kind() == object::SectionKind::Text)
            .map(|section| {
                (
                    section.address(),
                    section.data().unwrap_or_default().to_vec(),
                )
            })
            .collect();
        let code = (
            text.iter().map(|(start, _)| *start).min().unwrap_or(0),
            text.iter()
                .map(|(start, bytes)| start + bytes.len() as u64)
                .max()
                .unwrap_or(0),
        );
        let (functions, cold) = functions(&file, &names);
        Self {
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            entry: file.entry(),
            code,
            functions,
            cold,
            slots: slots(&file),
            addresses,
            text,
        }
    }

    /// The function that `address` belongs to, its cold parts included.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let within = |range: (u64, u64)| range.0 <= address && address < range.1;
        let after = self
            .functions
            .partition_point(|function| function.range.0 <= address);
        after
            .checked_sub(1)
            .filter(|index| within(self.functions[*index].range))
            .or_else(|| {
                self.cold
                    .iter()
                    .find(|(range, _)| within(*range))
                    .map(|(_, function)| *function)
            })
    }

    /// The function that begins at `address`.
    #[must_use]
    pub fn function_from(&self, address: u64) -> Option<usize> {
        self.functions
            .binary_search_by_key(&address, |function| function.range.0)
            .ok()
    }

    /// The bytes of code from `address` on.
    #[must_use]
    pub fn code_at(&self, address: u64) -> &[u8] {
        self.text
            .iter()
            .find_map(|(start, bytes)| {
                bytes.get(usize::try_from(address.checked_sub(*start)?).ok()?..)
            })
            .unwrap_or_default()
    }
}

/// The first name of each address with code, and the address of each name that has only one.
fn symbols(file: &object::File<'_>) -> (BTreeMap<u64, String>, BTreeMap<String, u64>) {
    let mut names = BTreeMap::new();
    let mut addresses: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for symbol in file.symbols() {
        if symbol.kind() == object::SymbolKind::Text
            && symbol.is_definition()
            && let Ok(name) = symbol.name()
        {
            let address = symbol.address();
            names.entry(address).or_insert_with(|| name.to_owned());
            let known = addresses.entry(name.to_owned()).or_insert(Some(address));
            if *known != Some(address) {
                *known = None;
            }
        }
    }
    let unique = |(name, address): (String, Option<u64>)| Some((name, address?));
    (names, addresses.into_iter().filter_map(unique).collect())
}

type Parts = (Vec<Function>, Vec<((u64, u64), usize)>);

/// The ranges of `.eh_frame` in code of the program's own, sorted out into functions and cold parts.
fn functions(file: &object::File<'_>, names: &BTreeMap<u64, String>) -> Parts {
    let own = |address: u64| {
        file.sections().any(|section| {
            section.kind() == object::SectionKind::Text
                && !section.name().unwrap_or_default().starts_with(".plt")
                && section.address() <= address
                && address < section.address() + section.size()
        })
    };
    let mut functions = Vec::new();
    let mut cold = Vec::new();
    for range in unwind_ranges(file) {
        let name = names.get(&range.0).cloned();
        if !own(range.0) || name.as_deref().is_some_and(|name| START_UP.contains(&name)) {
            continue;
        }
        match name.as_deref().and_then(|name| name.split_once(".cold")) {
            Some((parent, _)) => cold.push((range, parent.to_owned())),
            None => functions.push(Function { range, name }),
        }
    }
    functions.sort_by_key(|function| function.range);
    functions.dedup_by_key(|function| function.range.0);
    let cold = cold
        .into_iter()
        .filter_map(|(range, parent)| {
            let index = functions
                .iter()
                .position(|function| function.name.as_ref() == Some(&parent))?;
            Some((range, index))
        })
        .collect();
    (functions, cold)
}

fn unwind_ranges(file: &object::File<'_>) -> Vec<(u64, u64)> {
    let Some(section) = file.section_by_name(".eh_frame") else {
        return Vec::new();
    };
    let data = section.data().unwrap_or_default();
    let frames = gimli::EhFrame::new(data, gimli::LittleEndian);
    let address = |name| {
        file.section_by_name(name)
            .map_or(0, |section| section.address())
    };
    let bases = gimli::BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut ranges = Vec::new();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(gimli::EhFrame::cie_from_offset)
            && fde.len() > 0
        {
            ranges.push((fde.initial_address(), fde.initial_address() + fde.len()));
        }
    }
    ranges
}

/// Slots of the dynamic relocations that hold the address of an imported function.
fn slots(file: &object::File<'_>) -> BTreeMap<u64, String> {
    let mut slots = BTreeMap::new();
    let Some(relocations) = file.dynamic_relocations() else {
        return slots;
    };
    for (address, relocation) in relocations {
        let object::RelocationFlags::Elf { r_type } = relocation.flags() else {
            continue;
        };
        let is_slot =
            r_type == object::elf::R_X86_64_JUMP_SLOT || r_type == object::elf::R_X86_64_GLOB_DAT;
        let object::RelocationTarget::Symbol(index) = relocation.target() else {
            continue;
        };
        if is_slot
            && let Some(table) = object::Object::dynamic_symbol_table(file)
            && let Ok(symbol) = object::ObjectSymbolTable::symbol_by_index(&table, index)
            && let Ok(name) = symbol.name()
        {
            slots.insert(address, name.to_owned());
        }
    }
    slots
}
