//! Everything that is written in assembly.

pub mod arguments;
pub mod check;
pub mod every_time;
pub mod fault;
pub mod handlers;
pub mod memory;
pub mod routines;
pub mod slow;
pub mod spawn;
pub mod syscall;
pub mod timed;
