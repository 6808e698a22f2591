//! Names of a library's functions as its callers have them, and the names under which calls from
//! other images arrive.
//!
//! One function may have many: `MPI_Send` and `PMPI_Send` are one address, and `memcpy` is a resolver
//! that chooses among implementations when the image is loaded. A function goes by the name that
//! programs call it by, an implementation by that of its resolver, so that a call has one name
//! whether the caller or the callee is recorded.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iced_x86::{Code, Decoder, DecoderOptions};
use lockstep_binary::{FunctionSymbol, Image};
use rustc_hash::FxHashMap;

use crate::domain::Domain;
use crate::survey::Survey;

/// What the symbol tables of a library call its functions.
pub(crate) struct Names<'a> {
    /// By address; the best name first.
    by_address: FxHashMap<u64, Vec<FunctionSymbol<'a>>>,
    /// Resolver -> implementations that it chooses among.
    implementations: BTreeMap<u64, Vec<u64>>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(image: &Image<'a>, survey: &Survey<'a>) -> Self {
        let mut by_address: FxHashMap<u64, Vec<FunctionSymbol<'a>>> = FxHashMap::default();
        for symbol in image.function_symbols() {
            by_address.entry(symbol.address).or_default().push(*symbol);
        }
        let mut implementations = BTreeMap::new();
        let mut chosen: Vec<(u64, FunctionSymbol<'a>)> = Vec::new();
        for (address, symbols) in &mut by_address {
            symbols.sort_by_key(preference);
            if symbols.iter().any(|symbol| symbol.is_indirect) {
                let found = choices(image, survey, *address);
                let name = symbols.first().copied();
                chosen.extend(found.iter().filter_map(|at| Some((*at, name?))));
                implementations.insert(*address, found);
            }
        }
        // Several resolvers may share an implementation.
        for (address, symbol) in chosen {
            let symbols = by_address.entry(address).or_default();
            symbols.push(FunctionSymbol { address, ..symbol });
            symbols.sort_by_key(preference);
        }
        Self {
            by_address,
            implementations,
        }
    }

    /// Whether a resolver stands at `address`.
    pub(crate) fn is_resolver(&self, address: u64) -> bool {
        self.implementations.contains_key(&address)
    }

    /// The implementations that each resolver chooses among.
    pub(crate) fn implementations(&self) -> impl Iterator<Item = &[u64]> {
        self.implementations.values().map(Vec::as_slice)
    }

    /// Every name of the function at `address`.
    pub(crate) fn all(&self, address: u64) -> impl Iterator<Item = &'a [u8]> {
        let symbols = self.by_address.get(&address).into_iter().flatten();
        symbols.map(|symbol| symbol.name)
    }

    /// Gives the functions of the domain the names that their callers use.
    pub(crate) fn apply(&self, survey: &Survey<'a>, domain: &mut Domain<'a>) {
        for function in &mut domain.functions {
            let address = survey.ranges[function.range].address;
            let best = self.by_address.get(&address).and_then(|all| all.first());
            if let Some(symbol) = best {
                function.name = Cow::Borrowed(symbol.name);
            }
        }
    }

    /// The names by which other images call functions that are recorded: name and row, by name. A
    /// name that may also mean a function without a row is left out.
    pub(crate) fn exports(&self, row_of: impl Fn(u64) -> Option<u32>) -> Vec<(&'a [u8], u32)> {
        let mut rows: FxHashMap<&[u8], Option<u32>> = FxHashMap::default();
        for (address, symbols) in &self.by_address {
            for symbol in symbols.iter().filter(|s| s.is_exported) {
                // An implementation's alias is its resolver's symbol, which stands there too.
                let row = match (self.implementations.get(address), symbol.is_indirect) {
                    // All of them have a row, or none.
                    (Some(choices), _) => choices.iter().find_map(|at| row_of(*at)),
                    (None, true) => continue,
                    (None, false) => row_of(*address),
                };
                let known = rows.entry(symbol.name).or_insert(row);
                *known = known.and(row.and(*known));
            }
        }
        let mut rows: Vec<_> = rows
            .into_iter()
            .filter_map(|(name, row)| Some((name, row?)))
            .collect();
        rows.sort_unstable();
        rows
    }
}

/// What makes a name better than another of the same address; smaller is better.
fn preference<'a>(symbol: &FunctionSymbol<'a>) -> (bool, u8, bool, bool, usize, &'a [u8]) {
    let name = symbol.name;
    let is_profiling = name.starts_with(b"PMPI_") || name.starts_with(b"pmpi_");
    let is_inner = name.starts_with(b"_") && !name.starts_with(b"_Z");
    let class = match (is_profiling, is_inner) {
        (false, false) => 0,
        (true, _) => 1,
        (_, true) => 2,
    };
    // Of the spellings of a Fortran name, that of most compilers.
    let is_fortran = name.starts_with(b"mpi_") || name.starts_with(b"pmpi_");
    let is_usual = name.ends_with(b"_") && !name.ends_with(b"__");
    let is_other = is_fortran && !is_usual || name.starts_with(b"MPI_") && is_upper(name);
    // Names with an underscore are global more often than what callers write.
    let is_second = symbol.is_weak;
    (
        !symbol.is_exported,
        class,
        is_other,
        is_second,
        name.len(),
        name,
    )
}

fn is_upper(name: &[u8]) -> bool {
    !name.iter().any(u8::is_ascii_lowercase)
}

/// The functions whose addresses a resolver mentions.
fn choices(image: &Image<'_>, survey: &Survey<'_>, resolver: u64) -> Vec<u64> {
    let Some(range) = survey.range_starting_at(resolver) else {
        return Vec::new();
    };
    let range = survey.ranges[range];
    let bytes = image.bytes_at(range.address, range.size);
    let mut found: Vec<u64> = Decoder::with_ip(
        64,
        bytes.unwrap_or_default(),
        range.address,
        DecoderOptions::NONE,
    )
    .into_iter()
    .filter(|i| i.code() == Code::Lea_r64_m && i.is_ip_rel_memory_operand())
    .map(|i| i.ip_rel_memory_address())
    .filter(|at| *at != resolver && survey.range_starting_at(*at).is_some())
    .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best<'a>(names: &[&'a str]) -> &'a str {
        let symbols = names.iter().map(|name| FunctionSymbol {
            address: 1,
            name: name.as_bytes(),
            is_indirect: false,
            is_exported: true,
            is_weak: ["rindex", "write", "MPI_Send"].contains(name),
        });
        let best = symbols.min_by_key(preference);
        best.and_then(|symbol| std::str::from_utf8(symbol.name).ok())
            .unwrap_or("")
    }

    #[test]
    fn the_name_that_callers_use() {
        assert_eq!(best(&["PMPI_Send", "MPI_Send"]), "MPI_Send");
        let fortran = ["MPI_SEND", "mpi_send", "mpi_send_", "mpi_send__"];
        assert_eq!(best(&fortran), "mpi_send_");
        assert_eq!(best(&["__libc_write", "__write", "write"]), "write");
        assert_eq!(best(&["rindex", "strrchr"]), "strrchr");
        assert_eq!(best(&["_ZN1aC1Ev", "_ZN1aC2Ev"]), "_ZN1aC1Ev");
    }
}
