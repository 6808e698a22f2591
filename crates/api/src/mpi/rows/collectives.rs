//! Collective operations (MPI 4.1, chapters 6 and 8.7).

use super::{Row, row};
use crate::mpi::meaning::Does::{Collective, OwnData};
use crate::mpi::meaning::{Counts, Shape};

const REDUCE_ALL: &str = "sendbuf:B recvbuf:B count:i datatype:T op:O comm:C";
const ROOTED: &str =
    "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcount:i recvtype:T root:r comm:C";
const TO_ALL: &str = "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcount:i recvtype:T comm:C";
const GATHER_ALL: &str =
    "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcounts:M displs:. recvtype:T comm:C";
const TO_ALL_V: &str = "sendbuf:B sendcounts:M sdispls:. sendtype:T recvbuf:B recvcounts:M rdispls:. \
     recvtype:T comm:C";
const GATHER_NEIGHBOURS: &str =
    "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcounts:. displs:. recvtype:T comm:C";
const TO_NEIGHBOURS: &str = "sendbuf:B sendcounts:. sdispls:. sendtype:T recvbuf:B recvcounts:. \
     rdispls:. recvtype:T comm:C";
const TO_ALL_W: &str = "sendbuf:B sendcounts:. sdispls:. sendtypes:. recvbuf:B recvcounts:. \
     rdispls:. recvtypes:. comm:C";

pub(super) const ROWS: &[Row] = &[
    row("Barrier", "comm:C", Collective(Shape::All, Counts::None)),
    row(
        "Bcast",
        "buffer:B count:i datatype:T root:r comm:C",
        Collective(Shape::FromRoot, Counts::Same),
    ),
    row(
        "Reduce",
        "sendbuf:B recvbuf:B count:i datatype:T op:O root:r comm:C",
        Collective(Shape::ToRoot, Counts::Same),
    ),
    row(
        "Allreduce",
        REDUCE_ALL,
        Collective(Shape::All, Counts::Same),
    ),
    row("Scan", REDUCE_ALL, Collective(Shape::Prefix, Counts::Same)),
    row(
        "Exscan",
        REDUCE_ALL,
        Collective(Shape::Prefix, Counts::Same),
    ),
    row(
        "Reduce_scatter",
        "sendbuf:B recvbuf:B recvcounts:M datatype:T op:O comm:C",
        Collective(Shape::All, Counts::EachResult),
    ),
    row(
        "Reduce_scatter_block",
        "sendbuf:B recvbuf:B recvcount:i datatype:T op:O comm:C",
        Collective(Shape::All, Counts::ResultBlock),
    ),
    row(
        "Reduce_local",
        "inbuf:B inoutbuf:B count:i datatype:T op:O",
        OwnData,
    ),
    row(
        "Gather",
        ROOTED,
        Collective(Shape::ToRoot, Counts::OneBlock),
    ),
    row(
        "Scatter",
        ROOTED,
        Collective(Shape::FromRoot, Counts::BlockEach),
    ),
    row(
        "Gatherv",
        "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcounts:M displs:. recvtype:T root:r comm:C",
        Collective(Shape::ToRoot, Counts::EachReceived),
    ),
    row(
        "Scatterv",
        "sendbuf:B sendcounts:M displs:. sendtype:T recvbuf:B recvcount:i recvtype:T root:r comm:C",
        Collective(Shape::FromRoot, Counts::EachSent),
    ),
    row(
        "Allgather",
        TO_ALL,
        Collective(Shape::All, Counts::OneBlock),
    ),
    row(
        "Alltoall",
        TO_ALL,
        Collective(Shape::All, Counts::BlockEach),
    ),
    row(
        "Allgatherv",
        GATHER_ALL,
        Collective(Shape::All, Counts::EachReceived),
    ),
    row("Alltoallv", TO_ALL_V, Collective(Shape::All, Counts::Each)),
    row(
        "Alltoallw",
        TO_ALL_W,
        Collective(Shape::All, Counts::EachTyped),
    ),
    row(
        "Neighbor_allgather",
        TO_ALL,
        Collective(Shape::Neighbours, Counts::OneBlock),
    ),
    row(
        "Neighbor_alltoall",
        TO_ALL,
        Collective(Shape::Neighbours, Counts::BlockEach),
    ),
    row(
        "Neighbor_allgatherv",
        GATHER_NEIGHBOURS,
        Collective(Shape::Neighbours, Counts::EachReceived),
    ),
    row(
        "Neighbor_alltoallv",
        TO_NEIGHBOURS,
        Collective(Shape::Neighbours, Counts::Each),
    ),
    row(
        "Neighbor_alltoallw",
        TO_ALL_W,
        Collective(Shape::Neighbours, Counts::EachTyped),
    ),
];
