//! Everything that is written in assembly.

pub mod fault;
pub mod arguments;
pub mod memory;
pub mod routines;
pub mod spawn;
pub mod syscall;
