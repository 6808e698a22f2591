//! To be written.
use lockstep_compare::{Lattice, Similarity};
/// x
pub fn lattice_svg(_: &Lattice) -> String {
    String::new()
}
/// x
pub fn lattice_dot(_: &Lattice) -> String {
    String::new()
}
/// x
pub fn similarity_svg(_: &Similarity) -> String {
    String::new()
}
