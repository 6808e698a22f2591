//! Names for people.

use std::borrow::Cow;

/// The name that people write for a linkage name: Rust without its hash, C++ with its parameters, a procedure of a Fortran module
/// as `module::procedure`; anything else as it is. A suffix that a compiler appended (`.constprop.0`) stays.
#[must_use]
pub fn display_name(linkage: &str) -> String {
    // Demanglers are recursive descents over text of strangers: what is longer than any real name
    // stays as it is.
    if linkage.len() > 8192 {
        return linkage.to_owned();
    }
    // Other tools' names of entries in the procedure linkage table.
    if let Some(name) = linkage.strip_suffix("@plt") {
        return format!("{}@plt", display_name(name));
    }
    if let Ok(name) = rustc_demangle::try_demangle(linkage) {
        return format!("{name:#}");
    }
    if linkage.starts_with("_Z") {
        let (mangled, suffix) = linkage.split_once('.').unwrap_or((linkage, ""));
        let options = cpp_demangle::DemangleOptions::default().no_return_type();
        let name = cpp_demangle::Symbol::new(mangled)
            .ok()
            .and_then(|symbol| symbol.demangle_with_options(&options).ok());
        return match name {
            Some(name) if suffix.is_empty() => name,
            Some(name) => format!("{name}.{suffix}"),
            None => linkage.to_owned(),
        };
    }
    of_module(linkage).unwrap_or_else(|| linkage.to_owned())
}

/// A procedure of a Fortran module, as gfortran and flang call it: `__halo_MOD_swap`, `_QMhaloPswap`. What ifort makes of it,
/// `halo_mp_swap_`, may be a plain procedure of another compiler.
fn of_module(linkage: &str) -> Option<String> {
    let is_plain = |it: &str| {
        let all = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        it.starts_with(|first: char| first.is_ascii_lowercase()) && it.bytes().all(all)
    };
    let gfortran = || linkage.strip_prefix("__")?.split_once("_MOD_");
    let flang = || linkage.strip_prefix("_QM")?.split_once('P');
    let (module, rest) = gfortran().or_else(flang)?;
    // What a compiler made of it, behind a dot, stays.
    let procedure = rest.split('.').next()?;
    (is_plain(module) && is_plain(procedure)).then(|| format!("{module}::{rest}"))
}

/// A function's name as C spells it: without `@plt`; MPI's Fortran names (`mpi_send_`, `mpi_send__`,
/// `mpi_send_f08_`) as `MPI_Send`. A trailing underscore tells Fortran from a program's own `mpi_sort`.
#[must_use]
pub fn c_name(name: &str) -> Cow<'_, str> {
    let name = name.strip_suffix("@plt").unwrap_or(name);
    let (prefix, rest) = if let Some(rest) = name.strip_prefix("mpi_") {
        ("MPI_", rest)
    } else if let Some(rest) = name.strip_prefix("pmpi_") {
        ("PMPI_", rest)
    } else {
        return Cow::Borrowed(name);
    };
    let Some(stem) = rest.strip_suffix('_') else {
        return Cow::Borrowed(name);
    };
    let stem = stem.trim_end_matches('_');
    let stem = stem
        .strip_suffix("_f08ts")
        .or_else(|| stem.strip_suffix("_f08"))
        .unwrap_or(stem);
    let mut letters = stem.chars();
    match letters.next() {
        Some(first) => Cow::Owned(format!(
            "{prefix}{}{}",
            first.to_ascii_uppercase(),
            letters.as_str()
        )),
        None => Cow::Borrowed(name),
    }
}

/// What compilers append to the names of clones: whole functions, made for some of the calls.
const CLONES: [&str; 9] = [
    "constprop",
    "isra",
    "clone",
    "lto_priv",
    "localalias",
    "llvm",
    "specialized",
    "argprom",
    "retelim",
];

/// The same of parts, which are entered behind the beginning of their function.
const PARTS: [&str; 2] = ["part", "cold"];

/// A name without what compilers append to clones, parts and nested functions: `sort` of `sort.part.1.isra.0`, `inner` of
/// `inner.3`. The number of an outlined region (`main._omp_fn.0`) says which one it is, and stays.
#[must_use]
pub fn base_name(name: &str) -> &str {
    without(name, |word| CLONES.contains(&word) || PARTS.contains(&word))
}

/// The same of whole functions only: what begins with `sort.constprop.0` is `sort`, and what begins with `sort.cold` is not.
#[must_use]
pub fn original_name(name: &str) -> &str {
    without(name, |word| CLONES.contains(&word))
}

fn without(name: &str, is_one: impl Fn(&str) -> bool) -> &str {
    let is_region = |name: &str| name.ends_with("_omp_fn") || name.contains(".omp");
    let mut base = name;
    loop {
        let numberless = without_numbers(base);
        base = match numberless.rsplit_once('.') {
            Some((rest, word)) if is_one(word) && !rest.is_empty() => rest,
            Some((_, word)) if PARTS.contains(&word) => return base,
            _ if is_region(numberless) => return base,
            _ => return numberless,
        };
    }
}

fn without_numbers(mut name: &str) -> &str {
    while let Some((rest, number)) = name.rsplit_once('.')
        && !(rest.is_empty() || number.is_empty())
        && number.bytes().all(|it| it.is_ascii_digit())
    {
        name = rest;
    }
    name
}

/// Namespaces of C++'s standard library; those of names that nobody could read, too.
const STANDARD: [&str; 11] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "__gthread_",
    "_ZSt",
    "_ZNSt",
    "_ZNKSt",
    "_ZN9__gnu_cxx",
    "_ZNK9__gnu_cxx",
    "_ZN10__cxxabiv1",
    "_ZNK10__cxxabiv1",
];

/// Whether a function is one of C++'s standard library, in whatever image.
#[must_use]
pub fn is_standard(name: &str) -> bool {
    STANDARD.iter().any(|it| name.starts_with(it))
}

/// A function's name as sentences have it: `step()`, `Comm::reverse()`, without what it stands in for the linker's sake alone, and not
/// long ([`fold_long`]).
#[must_use]
pub fn brief(name: &str) -> String {
    let name = name.replace("(anonymous namespace)::", "");
    match name.contains('(') {
        true => fold_long(&name).into_owned(),
        false => format!("{name}()"),
    }
}

/// A long C++ name without what its templates were made for, and if that is not enough, without what it is given:
/// `evaluate(Memo<...>&, int)`, `Solver::step(...) const`. Others as they are.
#[must_use]
pub fn fold_long(name: &str) -> Cow<'_, str> {
    if name.len() <= LONG {
        return name.into();
    }
    let folded = fold_templates(name, "<...>");
    if folded.len() <= LONG {
        return folded.into();
    }
    let mut given = folded.match_indices('(');
    let start = given.find(|it| {
        !folded[..it.0].ends_with("operator") && !folded[it.0..].starts_with("(anonymous")
    });
    match (start, folded.rfind(')')) {
        (Some((start, _)), Some(end)) if start + 1 < end => {
            format!("{}(...{}", &folded[..start], &folded[end..]).into()
        }
        _ => folded.into(),
    }
}

/// So many characters of a name are read at a glance.
const LONG: usize = 60;

/// A C++ name with `instead` in place of what its templates were made for: `std::function<...>::operator()() const`.
#[must_use]
pub fn fold_templates(name: &str, instead: &str) -> String {
    const OPERATORS: [&str; 7] = ["()", "<=>", "<<", ">>", "->", "<", ">"];
    let (mut folded, mut depth) = (String::new(), 0usize);
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        let is_whole = !folded.ends_with(|it: char| it.is_alphanumeric() || it == '_');
        let after = rest.strip_prefix("operator");
        let after = after.filter(|_| depth == 0 && is_whole);
        let is_at_start = |it: &&&str| after.is_some_and(|after| after.starts_with(**it));
        let operator = OPERATORS.iter().find(is_at_start);
        let length = operator.map_or(next.len_utf8(), |it| "operator".len() + it.len());
        let (whole, behind) = rest.split_at(length);
        rest = behind;
        match next {
            '<' => {
                folded.push_str(if depth == 0 { instead } else { "" });
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => folded.push_str(whole),
            _ => {}
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_folded() {
        let cases = [
            ("evaluate(Memo<int>&)", "evaluate(Memo<int>&)"),
            (
                "evaluate(Memo<std::__cxx11::basic_string<char, std::char_traits<char> > >&, int)",
                "evaluate(Memo<...>&, int)",
            ),
            (
                "Population::sort_out(Domain const&, std::vector<Particle, std::allocator<Particle> >&, std::vector<long>&) const",
                "Population::sort_out(...) const",
            ),
            (
                "(anonymous namespace)::Solver::operator()(Field const&, Field const&, Field const&)",
                "(anonymous namespace)::Solver::operator()(...)",
            ),
        ];
        for (name, folded) in cases {
            assert_eq!(fold_long(name), folded);
        }
    }

    #[test]
    fn procedures_of_fortran_modules() {
        let cases = [
            ("__halo_MOD_swap", "halo::swap"),
            ("__halo_x_MOD_swap_2._omp_fn.0", "halo_x::swap_2._omp_fn.0"),
            ("halo_mp_swap_", "halo_mp_swap_"),
            ("_QMhaloPswap", "halo::swap"),
            ("swap_", "swap_"),
            ("__MOD_", "__MOD_"),
            ("_QPswap", "_QPswap"),
        ];
        for (name, expected) in cases {
            assert_eq!(display_name(name), expected);
        }
    }

    #[test]
    fn names_in_sentences_have_one_pair_of_parentheses() {
        let cases = [
            ("step", "step()"),
            ("Comm::reverse()", "Comm::reverse()"),
            ("foo(int).constprop.0", "foo(int).constprop.0"),
            ("(anonymous namespace)::halo(int)", "halo(int)"),
            ("(anonymous namespace)::halo", "halo()"),
        ];
        for (name, expected) in cases {
            assert_eq!(brief(name), expected);
        }
    }

    #[test]
    fn templates_are_folded_and_operators_are_none() {
        let cases = [
            ("step(int)", "step(int)"),
            ("Halo<double>::exchange", "Halo<...>::exchange"),
            ("run<f<g<int> > >(a<b> const&)", "run<...>(a<...> const&)"),
            (
                "f<void ()>::operator()() const",
                "f<...>::operator()() const",
            ),
            (
                "p<R<double> >::operator->() const",
                "p<...>::operator->() const",
            ),
            ("operator<< <char>(s<char>&)", "operator<< <...>(s<...>&)"),
            ("operator<=> <a>(a)", "operator<=> <...>(a)"),
            ("operator new(unsigned long)", "operator new(unsigned long)"),
            ("my_operator<int>()", "my_operator<...>()"),
            ("a>b<", "ab<...>"),
            ("é<ü>ö", "é<...>ö"),
        ];
        for (name, expected) in cases {
            assert_eq!(fold_templates(name, "<...>"), expected);
        }
    }

    #[test]
    fn clones_have_base_names_and_regions_their_numbers() {
        // The name, without clones, and without parts, too.
        let cases = [
            ("sort", "sort", "sort"),
            ("sort.constprop.1.isra.0", "sort", "sort"),
            ("sort.llvm.123", "sort", "sort"),
            ("sort.lto_priv.0.1", "sort", "sort"),
            ("inner.3", "inner", "inner"),
            ("foo(int).constprop.0", "foo(int)", "foo(int)"),
            ("sort.part.2", "sort.part.2", "sort"),
            ("sort.cold", "sort.cold", "sort"),
            ("sort.part.0.isra.0", "sort.part.0", "sort"),
            ("sort.isra.0.cold", "sort.isra.0.cold", "sort"),
            ("main._omp_fn.0", "main._omp_fn.0", "main._omp_fn.0"),
            (
                "main._omp_fn.12.constprop.0",
                "main._omp_fn.12",
                "main._omp_fn.12",
            ),
            (".omp_outlined..1", ".omp_outlined..1", ".omp_outlined..1"),
            (
                "main.omp_outlined.1.cold",
                "main.omp_outlined.1.cold",
                "main.omp_outlined.1",
            ),
            (".cold", ".cold", ".cold"),
            (".5", ".5", ".5"),
            ("sort.", "sort.", "sort."),
            ("", "", ""),
        ];
        for (name, original, base) in cases {
            assert_eq!(original_name(name), original, "{name}");
            assert_eq!(base_name(name), base, "{name}");
        }
    }

    #[test]
    fn three_languages() {
        let cases = [
            ("main", "main"),
            ("MAIN__", "MAIN__"),
            ("__solver_MOD_step", "solver::step"),
            ("_Z3fooi", "foo(int)"),
            ("_Z3fooi.constprop.0", "foo(int).constprop.0"),
            ("_ZN3foo3barEv", "foo::bar()"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_Z3fooi@plt", "foo(int)@plt"),
            ("MPI_Send@plt", "MPI_Send@plt"),
            ("_Zgarbage", "_Zgarbage"),
            ("", ""),
        ];
        for (linkage, expected) in cases {
            assert_eq!(display_name(linkage), expected);
        }
    }
}
