//! The papers (DiffTrace): what a filter leaves of each trace, its attributes, how alike traces are, and the sweep over all options.

pub(crate) mod attribute;
pub(crate) mod b_score;
pub(crate) mod cluster;
pub(crate) mod filter;
pub(crate) mod lattice;
pub(crate) mod loops;
pub(crate) mod names;
pub(crate) mod one_run;
pub(crate) mod options;
pub(crate) mod pairing;
pub(crate) mod part;
pub(crate) mod parting;
pub(crate) mod sequence;
pub(crate) mod similarity;
pub(crate) mod sweep;
pub(crate) mod trees;
