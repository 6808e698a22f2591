//! What a language's standard library does inside itself.
//!
//! A container's hash chains, the swaps of a sort, how a vector grows: compiled into the program as templates, they are functions of the
//! main image like any other, and what they do follows from data and addresses, which are no part of the program's way. A call of such
//! a function stays; what it does inside is looked at no more, but for calls of the program's own functions (a comparison, a task) and
//! for what waits, throws or is a library's call that moves more than memory:
//!
//! ```text
//!  add( std::_Hashtable::find( _M_bucket_index  memcmp  memcmp ) lock )   is   add( std::_Hashtable::find lock )
//!  run( std::function::operator()( _M_invoke( tile( blur ) ) ) )          is   run( std::function::operator()( tile( blur ) ) )
//! ```

use crate::timing::is_timing;
use lockstep_trace::threads::{self, Does, Event};
use lockstep_trace::{brief, c_name, fold_long, fold_templates, is_standard};
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

#[cfg(test)]
mod tests {
    use super::*;

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
