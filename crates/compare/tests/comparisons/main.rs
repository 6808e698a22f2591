//! Pairs of runs whose difference is known: one file a subject, all of them one binary. One file:
//! `cargo test -p lockstep-compare --test comparisons order::`.

mod builds;
mod causes;
mod diff;
mod divergence;
mod folders;
mod library;
mod made;
mod normal_runs;
mod odd_even;
mod order;
mod papers;
mod pools;
mod speed;
mod timing;
mod verdict;
mod words;
