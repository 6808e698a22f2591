//! Statistics: how unusual a trace is beside several normal runs, or beside the others of its run, and what a gate allows.

pub(crate) mod gate;
pub(crate) mod normality;
pub(crate) mod outliers;
