//! The functions of MPI: what each does, and what each of its parameters is, for C and Fortran.
//!
//! Pure data: all of MPI 4.1 with its older forms. Both languages have the same parameters at the same
//! places; Fortran passes every one by reference, has integers for handles, and an error code behind the last.
//!
//! ```
//! use lockstep_api::mpi::{Does, Form, Function, Mode};
//!
//! let sends = Function::of(b"mpi_isend_").expect("a function of MPI").meaning();
//! assert_eq!(sends.does, Does::Send(Mode::Standard));
//! assert_eq!(sends.form, Form::Nonblocking);
//! ```

pub mod constants;
mod function;
mod meaning;
mod parameter;
pub mod predefined;
mod rows;
pub mod rules;

pub use function::{
    Function, Language, chapters, functions, is_called_by_programs, is_mpi, meaning,
};
pub use meaning::{
    Access, Constructor, Counts, Does, Epoch, FileUse, Form, Grouping, Making, Meaning, Memory,
    Mode, Part, Partitions, Resource, Scope, SendBuffer, Shape,
};
pub use parameter::{Kind, Parameter};
