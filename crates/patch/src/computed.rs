//! Whether a computed jump stays inside its function.
//!
//! It is a switch, a computed goto, or a tail call through a pointer. The last leaves the function,
//! and then its return cannot be patched. What tells them apart, any one of these:
//!
//! * the address is a sum of a table's address and an offset of 32 bits loaded from there, or comes
//!   by index from a table of addresses, and the table leads into the function (its first row does,
//!   where it is a table of addresses): a switch. A table of functions leads to entries of others;
//! * the frame description says that something of the function's frame is still on the stack, and no
//!   instruction just before takes it off. A tail call has nothing there but the return address.
//!   This is what recognises interpreters, whose loops jump through tables of labels in many forms.
//!
//! Where such a jump can lead is a second question: windows are only laid over instructions that
//! nothing leads to. Tables of offsets must have been found. Addresses of labels are all visible: they
//! stand in data as words that the loader relocates (every word that looks like one, in images that
//! are not), or in instructions.

use lockstep_binary::Image;

use crate::domain::Domain;
use crate::flow::{Computed, WayOut};
use crate::survey::Survey;

/// A computed jump that stays inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    /// All that it can lead to is known.
    Known,
    /// It may lead to any instruction of the function.
    Anywhere,
}

/// Says of a computed jump that it stays inside its function; `None` where it may leave it.
pub(crate) fn inside(
    image: &Image<'_>,
    survey: &Survey<'_>,
    domain: &Domain<'_>,
    way: &WayOut,
    jump: &Computed,
) -> Option<Inside> {
    let is_known = |table: u64| survey.tables.contains(&(table, way.range));
    let has_tables = || survey.with_tables.contains(&way.range);
    if jump.is_sum && jump.table.map_or_else(has_tables, is_known) {
        return Some(Inside::Known);
    }
    let leads_inside = |table: u64| {
        let first = survey.word_at(table)?;
        let range = survey.range_of(first)?;
        let is_own = domain.owner[range] == domain.owner[way.range as usize];
        (is_own && first != survey.ranges[range].address).then_some(())
    };
    if jump.is_indexed && jump.table.and_then(leads_inside).is_some() {
        return Some(Inside::Known);
    }
    let range = &survey.ranges[way.range as usize];
    let is_framed = image.is_framed_at(range, way.at) == Some(true);
    if jump.takes_down || !is_framed {
        return None;
    }
    Some(if jump.is_loaded {
        Inside::Known
    } else {
        Inside::Anywhere
    })
}
