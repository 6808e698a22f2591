//! Whether a message fits the receive that takes it.

use crate::datatypes::{Unit, are_unlike};
use crate::message::Size;

/// What of a send does not fit a receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// What is sent is of one kind, what is received of another.
    OtherDatatype {
        /// What is sent.
        sent: Unit,
        /// What is received.
        received: Unit,
    },
    /// More is sent than there is room for.
    TooLarge {
        /// How many.
        sent: i64,
        /// For how many.
        room: i64,
        /// Of what.
        of: Unit,
    },
}

/// What of a send does not fit a receive, as far as both are known.
#[must_use]
pub fn misfit(sent: &Size, room: &Size) -> Option<Misfit> {
    let (Some(sent_type), Some(room_type)) = (&sent.datatype, &room.datatype) else {
        return None;
    };
    if sent_type != room_type {
        // Where a count is not known, so is not how far they agree.
        let one = |count: Option<i64>| count.unwrap_or(1);
        let differ = are_unlike((sent_type, one(sent.count)), (room_type, one(room.count)));
        return (differ && sent.count != Some(0)).then(|| Misfit::OtherDatatype {
            sent: sent_type.clone(),
            received: room_type.clone(),
        });
    }
    let (sent, room) = (sent.count?, room.count?);
    (sent > room).then(|| Misfit::TooLarge {
        sent,
        room,
        of: sent_type.clone(),
    })
}
