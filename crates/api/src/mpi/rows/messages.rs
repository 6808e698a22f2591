//! Messages from one task to another (MPI 4.1, chapters 3 and 4).

use super::{Row, row};
use crate::mpi::meaning::Does::{
    Arrived, MatchedProbe, MatchedReceive, PartitionedReceive, PartitionedSend, Probe, Ready,
    Receive, Replace, Send, SendReceive,
};
use crate::mpi::meaning::{Mode, Partitions};

const SEND: &str = "buf:B count:i datatype:T dest:p tag:g comm:C";
const RECEIVE: &str = "buf:B count:i datatype:T source:p tag:g comm:C request:q";

pub(super) const ROWS: &[Row] = &[
    row("Send", SEND, Send(Mode::Standard)),
    row("Bsend", SEND, Send(Mode::Buffered)),
    row("Ssend", SEND, Send(Mode::Synchronous)),
    row("Rsend", SEND, Send(Mode::Ready)),
    row(
        "Recv",
        "buf:B count:i datatype:T source:p tag:g comm:C status:s",
        Receive,
    ),
    row("Irecv", RECEIVE, Receive),
    row("Recv_init", RECEIVE, Receive),
    row(
        "Sendrecv",
        "sendbuf:B sendcount:i sendtype:T dest:p sendtag:g recvbuf:B recvcount:i recvtype:T \
         source:p recvtag:g comm:C status:s",
        SendReceive,
    ),
    row(
        "Isendrecv",
        "sendbuf:B sendcount:i sendtype:T dest:p sendtag:g recvbuf:B recvcount:i recvtype:T \
         source:p recvtag:g comm:C request:q",
        SendReceive,
    ),
    row(
        "Sendrecv_replace",
        "buf:B count:i datatype:T dest:p sendtag:g source:p recvtag:g comm:C status:s",
        Replace,
    ),
    row(
        "Isendrecv_replace",
        "buf:B count:i datatype:T dest:p sendtag:g source:p recvtag:g comm:C request:q",
        Replace,
    ),
    row("Probe", "source:p tag:g comm:C status:s", Probe),
    row("Iprobe", "source:p tag:g comm:C flag:f status:s", Probe),
    row(
        "Mprobe",
        "source:p tag:g comm:C message:m status:s",
        MatchedProbe,
    ),
    row(
        "Improbe",
        "source:p tag:g comm:C flag:f message:m status:s",
        MatchedProbe,
    ),
    row(
        "Mrecv",
        "buf:B count:i datatype:T message:N status:s",
        MatchedReceive,
    ),
    row(
        "Imrecv",
        "buf:B count:i datatype:T message:N request:q",
        MatchedReceive,
    ),
    row(
        "Psend_init",
        "buf:B partitions:i count:l datatype:T dest:p tag:g comm:C info:. request:q",
        PartitionedSend,
    ),
    row(
        "Precv_init",
        "buf:B partitions:i count:l datatype:T source:p tag:g comm:C info:. request:q",
        PartitionedReceive,
    ),
    row("Pready", "partition:i request:R", Ready(Partitions::One)),
    row(
        "Pready_range",
        "partition_low:i partition_high:i request:R",
        Ready(Partitions::Range),
    ),
    row(
        "Pready_list",
        "length:i array_of_partitions:Y request:R",
        Ready(Partitions::List),
    ),
    row("Parrived", "request:R partition:i flag:f", Arrived),
];
