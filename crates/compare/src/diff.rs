//! diffNLR: what two traces have in common, loops aligned as loops.
