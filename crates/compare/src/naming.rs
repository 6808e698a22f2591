//! What names say of functions, and how sentences spell them.
//!
//! What a language's standard library does inside itself is not told. A container's hash chains, the swaps of a sort, how a vector
//! grows: compiled into the program as templates, they are functions of the main image like any other. What they do follows from
//! data and addresses, which are no part of the program's way. A call of such a function stays. What it does inside is looked at no
//! more, but for calls of the program's own functions (a comparison, a task), and for what waits, throws or is a library's call that
//! moves more than memory:
//!
//! ```text
//!  add( std::_Hashtable::find( _M_bucket_index  memcmp  memcmp ) lock )   is   add( std::_Hashtable::find lock )
//!  run( std::function::operator()( _M_invoke( tile( blur ) ) ) )          is   run( std::function::operator()( tile( blur ) ) )
//! ```

use lockstep_trace::threads::{self, Does, Event, Meaning};
use lockstep_trace::{brief, c_name, fold_long, fold_templates, is_standard, mpi};
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Calls that move memory about, or read it.
static MEMORY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)^(operator\ (new|delete)(\[\])?\(
        | (mem(cpy|move|set|cmp|chr)|str\w+|wcs\w+|wmem\w+|bcmp|malloc|calloc|realloc|free|aligned_alloc|posix_memalign)$)",
    )
    .ok()
});

/// What a name says of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub(crate) meaning: Meaning,
    /// Whether it is a matter of timing what its caller does afterwards.
    pub(crate) is_timed: bool,
    /// Whether it is the body of a region or of a task.
    pub(crate) is_outlined: bool,
}

impl Named {
    pub(crate) fn of(name: &str, meaning: Meaning) -> Self {
        let of_mpi = mpi::meaning(&c_name(name));
        Self {
            meaning,
            is_timed: meaning.is_timed() || of_mpi.asks() || of_mpi.waits_for_any(),
            is_outlined: threads::outlined(name).is_some(),
        }
    }

    pub(crate) fn makes_room(&self) -> bool {
        self.meaning.does == Does::MakeRoom
    }

    /// Whether it is one after whose calls, or by whose calls, something is a matter of timing.
    pub(crate) fn is_timing(&self) -> bool {
        self.is_timed || self.makes_room()
    }
}

/// The same of a name alone.
pub(crate) fn is_timing(name: &str) -> bool {
    Named::of(name, threads::meaning(name)).is_timing()
}

/// Whether a call of it inside of another of them is told: what throws, and what waits, but for how a future does.
pub(crate) fn is_shown(name: &str) -> bool {
    match (is_standard(name), threads::meaning(name).does) {
        (true, Does::Fail) => true,
        (true, Does::Await(Event::Word)) => false,
        (true, _) => is_timing(name),
        (false, _) => !MEMORY.as_ref().is_some_and(|it| it.is_match(name)),
    }
}

/// A function as a sentence has it: of the library's without what its templates were made for and what it is given, of MPI's Fortran
/// interfaces as the standard writes it, and long names folded.
pub(crate) fn told(name: &str) -> Cow<'_, str> {
    match is_standard(name) {
        true => plain(name).into(),
        false => match spelled(name) {
            Cow::Borrowed(name) => fold_long(name),
            Cow::Owned(name) => name.into(),
        },
    }
}

/// Names of MPI's Fortran interfaces as C's, and all others as they are.
pub(crate) fn spelled(name: &str) -> Cow<'_, str> {
    if !(name.starts_with("mpi_") || name.starts_with("pmpi_")) {
        return name.into();
    }
    match name.strip_suffix("()") {
        Some(stem) => format!("{}()", c_name(stem)).into(),
        None => c_name(name),
    }
}

/// The same of the function around a place.
pub(crate) fn told_around(name: &str) -> String {
    match is_standard(name) {
        true => plain(name),
        false => brief(&spelled(name)),
    }
}

/// Without what templates were made for and what is given: `std::function::operator()` of `std::function<void ()>::operator()() const`.
pub(crate) fn plain(name: &str) -> String {
    let mut found = fold_templates(name, "");
    let mut given = found.match_indices('(');
    if let Some((end, _)) = given.find(|it| !found[..it.0].ends_with("operator")) {
        found.truncate(end);
    }
    for inline in ["__cxx11::", "__1::", "__detail::"] {
        found = found.replace(inline, "");
    }
    found
}

/// `588,777`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `once`, `588,777 times`.
pub(crate) fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{} times", grouped(number)),
    }
}

/// `14 to 17 times`.
pub(crate) fn range(fewest: u64, most: u64) -> String {
    match fewest == most {
        true => times(most),
        false => format!("{} to {} times", grouped(fewest), grouped(most)),
    }
}

/// Names of which so many are listed at the most: `0.1, 0.2 and 3 more`.
pub(crate) fn listed(names: impl IntoIterator<Item = impl ToString>, most: usize) -> String {
    let mut names: Vec<String> = names.into_iter().map(|it| it.to_string()).collect();
    let more = names.len().saturating_sub(most);
    names.truncate(most);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_groups() {
        let cases = [0, 999, 1000, 588_777, 1_234_567].map(grouped);
        assert_eq!(cases, ["0", "999", "1,000", "588,777", "1,234,567"]);
    }

    #[test]
    fn what_is_told_of_the_library_has_no_templates() {
        let cases = [
            (
                "std::function<void ()>::operator()() const",
                "std::function::operator()",
            ),
            (
                "std::_Hashtable<std::__cxx11::basic_string<char, std::char_traits<char> >, int>::_M_find_before_node(unsigned long) const",
                "std::_Hashtable::_M_find_before_node",
            ),
            (
                "std::unique_ptr<std::__future_base::_Result<double> >::operator->() const",
                "std::unique_ptr::operator->",
            ),
            (
                "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
                "std::condition_variable::wait",
            ),
            (
                "std::operator<<(std::ostream&, char const*)",
                "std::operator<<",
            ),
            (
                "Histogram::merge(std::vector<long> const&)",
                "Histogram::merge(std::vector<long> const&)",
            ),
            ("blur", "blur"),
            ("mpi_finalize_f08_", "MPI_Finalize"),
            ("mpi_send_()", "MPI_Send()"),
            ("mpi_sort", "mpi_sort"),
        ];
        for (name, expected) in cases {
            assert_eq!(told(name), expected);
        }
        assert!(MEMORY.is_some());
        assert!(is_shown("pthread_mutex_lock") && is_shown("std::__throw_bad_alloc()"));
        assert!(
            !is_shown("operator delete(void*, unsigned long)")
                && !is_shown("std::swap(int&, int&)")
        );
    }
}
