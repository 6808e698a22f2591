//! The functions of MPI: each with its parameters, `NAME:LETTER`, by the letters of [`Kind`](super::Kind).

const SEND: &str = "buf:B count:i datatype:T dest:p tag:g comm:C";
const RECEIVE: &str = "buf:B count:i datatype:T source:p tag:g comm:C request:q";
const REDUCE_ALL: &str = "sendbuf:B recvbuf:B count:i datatype:T op:O comm:C";
const ROOTED: &str =
    "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcount:i recvtype:T root:r comm:C";
const TO_ALL: &str = "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcount:i recvtype:T comm:C";
const GATHER_ALL: &str =
    "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcounts:M displs:. recvtype:T comm:C";
const TO_ALL_V: &str = "sendbuf:B sendcounts:M sdispls:. sendtype:T recvbuf:B recvcounts:M rdispls:. \
     recvtype:T comm:C";
// As many counts as there are neighbours.
const GATHER_NEIGHBOURS: &str =
    "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcounts:. displs:. recvtype:T comm:C";
const TO_NEIGHBOURS: &str = "sendbuf:B sendcounts:. sdispls:. sendtype:T recvbuf:B recvcounts:. \
     rdispls:. recvtype:T comm:C";
const TO_ALL_W: &str = "sendbuf:B sendcounts:. sdispls:. sendtypes:. recvbuf:B recvcounts:. \
     rdispls:. recvtypes:. comm:C";
const SOME: &str =
    "incount:i array_of_requests:A outcount:k array_of_indices:x array_of_statuses:S";
const PUT: &str = "origin_addr:B origin_count:i origin_datatype:T target_rank:p target_disp:l \
     target_count:i target_datatype:T win:W";
const PUT_REQUEST: &str = "origin_addr:B origin_count:i origin_datatype:T target_rank:p \
     target_disp:l target_count:i target_datatype:T win:W request:q";
const ERRHANDLER: &str = "function:. errhandler:h";
const KEYVAL: &str = "copy_fn:. delete_fn:. keyval:y extra_state:.";
const ACCUMULATE: &str = "origin_addr:B origin_count:i origin_datatype:T target_rank:p \
     target_disp:l target_count:i target_datatype:T op:O win:W";
const ACCUMULATE_REQUEST: &str = "origin_addr:B origin_count:i origin_datatype:T target_rank:p \
     target_disp:l target_count:i target_datatype:T op:O win:W request:q";
const GROUP_OF: &str = "group:G n:i ranks:Y newgroup:u";
const IN_FILE: &str = "fh:D buf:B count:i datatype:T status:s";
const IN_FILE_LATER: &str = "fh:D buf:B count:i datatype:T request:q";
const IN_FILE_BEGUN: &str = "fh:D buf:B count:i datatype:T";
const IN_FILE_ENDED: &str = "fh:D buf:B status:s";
const AT_OFFSET: &str = "fh:D offset:. buf:B count:i datatype:T status:s";
const AT_OFFSET_LATER: &str = "fh:D offset:. buf:B count:i datatype:T request:q";
const AT_OFFSET_BEGUN: &str = "fh:D offset:. buf:B count:i datatype:T";
const GROUP_OF_RANGES: &str = "group:G n:i ranges:J newgroup:u";
const CONNECT: &str = "port_name:. info:. root:r comm:C newcomm:c";
const GROUPS: &str = "group1:G group2:G newgroup:u";
const HVECTOR: &str = "count:i blocklength:i stride:L oldtype:T newtype:t";
const INDEXED: &str = "count:i blocklengths:Y displacements:X oldtype:T newtype:t";
const HINDEXED: &str = "count:i blocklengths:Y displacements:Z oldtype:T newtype:t";
const BLOCKS: &str = "count:i blocklength:i displacements:X oldtype:T newtype:t";
const HBLOCKS: &str = "count:i blocklength:i displacements:Z oldtype:T newtype:t";

/// Names without `MPI_`, and parameters. Nonblocking and persistent collectives follow from the
/// blocking ones, as do `Isend` and `Send_init` and their kin.
pub(super) const FUNCTIONS: &[(&str, &str)] = &[
    // Point to point.
    ("Send", SEND),
    ("Bsend", SEND),
    ("Ssend", SEND),
    ("Rsend", SEND),
    (
        "Recv",
        "buf:B count:i datatype:T source:p tag:g comm:C status:s",
    ),
    ("Irecv", RECEIVE),
    ("Recv_init", RECEIVE),
    (
        "Sendrecv",
        "sendbuf:B sendcount:i sendtype:T dest:p sendtag:g recvbuf:B recvcount:i recvtype:T \
         source:p recvtag:g comm:C status:s",
    ),
    (
        "Isendrecv",
        "sendbuf:B sendcount:i sendtype:T dest:p sendtag:g recvbuf:B recvcount:i recvtype:T \
         source:p recvtag:g comm:C request:q",
    ),
    (
        "Sendrecv_replace",
        "buf:B count:i datatype:T dest:p sendtag:g source:p recvtag:g comm:C status:s",
    ),
    (
        "Isendrecv_replace",
        "buf:B count:i datatype:T dest:p sendtag:g source:p recvtag:g comm:C request:q",
    ),
    ("Probe", "source:p tag:g comm:C status:s"),
    ("Iprobe", "source:p tag:g comm:C flag:f status:s"),
    ("Mprobe", "source:p tag:g comm:C message:m status:s"),
    ("Improbe", "source:p tag:g comm:C flag:f message:m status:s"),
    ("Mrecv", "buf:B count:i datatype:T message:N status:s"),
    ("Imrecv", "buf:B count:i datatype:T message:N request:q"),
    (
        "Psend_init",
        "buf:B partitions:i count:l datatype:T dest:p tag:g comm:C info:. request:q",
    ),
    (
        "Precv_init",
        "buf:B partitions:i count:l datatype:T source:p tag:g comm:C info:. request:q",
    ),
    ("Pready", "partition:i request:R"),
    ("Pready_range", "partition_low:i partition_high:i request:R"),
    ("Pready_list", "length:i array_of_partitions:Y request:R"),
    ("Parrived", "request:R partition:i flag:f"),
    // Completion.
    ("Wait", "request:Q status:s"),
    ("Test", "request:Q flag:f status:s"),
    ("Waitall", "count:i array_of_requests:A array_of_statuses:S"),
    (
        "Testall",
        "count:i array_of_requests:A flag:f array_of_statuses:S",
    ),
    ("Waitany", "count:i array_of_requests:A index:n status:s"),
    (
        "Testany",
        "count:i array_of_requests:A index:n flag:f status:s",
    ),
    ("Waitsome", SOME),
    ("Testsome", SOME),
    ("Start", "request:Q"),
    ("Startall", "count:i array_of_requests:A"),
    ("Cancel", "request:Q"),
    ("Request_free", "request:Q"),
    ("Request_get_status", "request:R flag:f status:s"),
    ("Get_count", "status:. datatype:T count:n"),
    ("Test_cancelled", "status:. flag:f"),
    // Collectives.
    ("Barrier", "comm:C"),
    ("Bcast", "buffer:B count:i datatype:T root:r comm:C"),
    (
        "Reduce",
        "sendbuf:B recvbuf:B count:i datatype:T op:O root:r comm:C",
    ),
    ("Allreduce", REDUCE_ALL),
    ("Scan", REDUCE_ALL),
    ("Exscan", REDUCE_ALL),
    (
        "Reduce_scatter",
        "sendbuf:B recvbuf:B recvcounts:M datatype:T op:O comm:C",
    ),
    (
        "Reduce_scatter_block",
        "sendbuf:B recvbuf:B recvcount:i datatype:T op:O comm:C",
    ),
    ("Reduce_local", "inbuf:B inoutbuf:B count:i datatype:T op:O"),
    ("Gather", ROOTED),
    ("Scatter", ROOTED),
    (
        "Gatherv",
        "sendbuf:B sendcount:i sendtype:T recvbuf:B recvcounts:M displs:. recvtype:T root:r comm:C",
    ),
    (
        "Scatterv",
        "sendbuf:B sendcounts:M displs:. sendtype:T recvbuf:B recvcount:i recvtype:T root:r comm:C",
    ),
    ("Allgather", TO_ALL),
    ("Alltoall", TO_ALL),
    ("Allgatherv", GATHER_ALL),
    ("Alltoallv", TO_ALL_V),
    ("Alltoallw", TO_ALL_W),
    ("Neighbor_allgather", TO_ALL),
    ("Neighbor_alltoall", TO_ALL),
    ("Neighbor_allgatherv", GATHER_NEIGHBOURS),
    ("Neighbor_alltoallv", TO_NEIGHBOURS),
    ("Neighbor_alltoallw", TO_ALL_W),
    // Communicators and groups.
    ("Comm_rank", "comm:C rank:n"),
    ("Comm_size", "comm:C size:n"),
    ("Comm_remote_size", "comm:C size:n"),
    ("Comm_compare", "comm1:C comm2:C result:n"),
    ("Comm_test_inter", "comm:C flag:f"),
    ("Comm_dup", "comm:C newcomm:c"),
    ("Comm_idup", "comm:C newcomm:c request:q"),
    ("Comm_dup_with_info", "comm:C info:. newcomm:c"),
    ("Comm_idup_with_info", "comm:C info:. newcomm:c request:q"),
    ("Comm_split", "comm:C color:i key:i newcomm:c"),
    (
        "Comm_split_type",
        "comm:C split_type:i key:i info:. newcomm:c",
    ),
    ("Comm_create", "comm:C group:G newcomm:c"),
    ("Comm_create_group", "comm:C group:G tag:g newcomm:c"),
    (
        "Comm_create_from_group",
        "group:G stringtag:. info:. errhandler:. newcomm:c",
    ),
    (
        "Comm_spawn",
        "command:. argv:. maxprocs:i info:. root:r comm:C intercomm:c array_of_errcodes:.",
    ),
    (
        "Comm_spawn_multiple",
        "count:i array_of_commands:. array_of_argv:. array_of_maxprocs:. array_of_info:. root:r \
         comm:C intercomm:c array_of_errcodes:.",
    ),
    ("Comm_get_parent", "parent:c"),
    ("Comm_accept", CONNECT),
    ("Comm_connect", CONNECT),
    ("Comm_join", "fd:i intercomm:c"),
    ("Comm_free", "comm:b"),
    ("Comm_disconnect", "comm:b"),
    ("Comm_group", "comm:C group:u"),
    ("Comm_remote_group", "comm:C group:u"),
    ("Comm_set_name", "comm:C comm_name:."),
    (
        "Intercomm_create",
        "local_comm:C local_leader:r peer_comm:C remote_leader:r tag:g newintercomm:c",
    ),
    ("Intercomm_merge", "intercomm:C high:i newintracomm:c"),
    (
        "Cart_create",
        "comm_old:C ndims:i dims:Y periods:Y reorder:i comm_cart:c",
    ),
    ("Cart_sub", "comm:C remain_dims:H newcomm:c"),
    ("Cart_rank", "comm:C coords:. rank:n"),
    ("Cart_coords", "comm:C rank:p maxdims:i coords:."),
    (
        "Cart_shift",
        "comm:C direction:i disp:i rank_source:n rank_dest:n",
    ),
    (
        "Graph_create",
        "comm_old:C nnodes:i index:. edges:. reorder:i comm_graph:c",
    ),
    (
        "Dist_graph_create",
        "comm_old:C n:i sources:. degrees:. destinations:. weights:. info:. reorder:i \
         comm_dist_graph:c",
    ),
    (
        "Dist_graph_create_adjacent",
        "comm_old:C indegree:i sources:Y sourceweights:. outdegree:i destinations:Y \
         destweights:. info:. reorder:i comm_dist_graph:c",
    ),
    ("Group_size", "group:G size:n"),
    ("Group_rank", "group:G rank:n"),
    ("Group_incl", GROUP_OF),
    ("Group_excl", GROUP_OF),
    ("Group_range_incl", GROUP_OF_RANGES),
    ("Group_range_excl", GROUP_OF_RANGES),
    ("Group_free", "group:v"),
    ("Group_union", GROUPS),
    ("Group_intersection", GROUPS),
    ("Group_difference", GROUPS),
    // The beginning and the end.
    ("Init", "argc:. argv:."),
    ("Finalize", ""),
    ("Init_thread", "argc:. argv:. required:i provided:n"),
    ("Initialized", "flag:f"),
    ("Finalized", "flag:f"),
    ("Query_thread", "provided:n"),
    ("Abort", "comm:C errorcode:i"),
    ("Buffer_attach", "buffer:B size:i"),
    ("Buffer_detach", "buffer_addr:. size:n"),
    // Info objects, error handlers, attributes.
    ("Info_create", "info:j"),
    ("Info_dup", "info:. newinfo:j"),
    ("Info_free", "info:I"),
    ("Comm_create_errhandler", ERRHANDLER),
    ("Win_create_errhandler", ERRHANDLER),
    ("File_create_errhandler", ERRHANDLER),
    ("Errhandler_free", "errhandler:E"),
    ("Comm_create_keyval", KEYVAL),
    ("Type_create_keyval", KEYVAL),
    ("Win_create_keyval", KEYVAL),
    ("Comm_free_keyval", "keyval:K"),
    ("Type_free_keyval", "keyval:K"),
    ("Win_free_keyval", "keyval:K"),
    // Datatypes and reductions.
    ("Type_contiguous", "count:i oldtype:T newtype:t"),
    (
        "Type_vector",
        "count:i blocklength:i stride:i oldtype:T newtype:t",
    ),
    ("Type_create_hvector", HVECTOR),
    ("Type_indexed", INDEXED),
    ("Type_create_hindexed", HINDEXED),
    ("Type_create_indexed_block", BLOCKS),
    ("Type_create_hindexed_block", HBLOCKS),
    (
        "Type_create_struct",
        "count:i blocklengths:Y displacements:Z types:z newtype:t",
    ),
    (
        "Type_create_subarray",
        "ndims:i sizes:Y subsizes:Y starts:Y order:i oldtype:T newtype:t",
    ),
    ("Type_create_resized", "oldtype:T lb:L extent:L newtype:t"),
    ("Type_dup", "oldtype:T newtype:t"),
    ("Type_commit", "datatype:d"),
    ("Type_free", "datatype:d"),
    ("Type_size", "datatype:T size:n"),
    ("Op_create", "user_fn:. commute:i op:o"),
    ("Op_free", "op:a"),
    // One-sided.
    (
        "Win_create",
        "base:B size:L disp_unit:i info:. comm:C win:w",
    ),
    (
        "Win_allocate",
        "size:L disp_unit:i info:. comm:C baseptr:. win:w",
    ),
    (
        "Win_allocate_shared",
        "size:L disp_unit:i info:. comm:C baseptr:. win:w",
    ),
    ("Win_create_dynamic", "info:. comm:C win:w"),
    ("Win_free", "win:V"),
    ("Win_get_group", "win:W group:u"),
    ("Win_fence", "assert:i win:W"),
    ("Win_start", "group:G assert:i win:W"),
    ("Win_post", "group:G assert:i win:W"),
    ("Win_complete", "win:W"),
    ("Win_wait", "win:W"),
    ("Win_test", "win:W flag:f"),
    ("Win_lock", "lock_type:i rank:p assert:i win:W"),
    ("Win_unlock", "rank:p win:W"),
    ("Win_lock_all", "assert:i win:W"),
    ("Win_unlock_all", "win:W"),
    ("Win_flush", "rank:p win:W"),
    ("Win_flush_local", "rank:p win:W"),
    ("Win_flush_all", "win:W"),
    ("Win_flush_local_all", "win:W"),
    ("Win_sync", "win:W"),
    ("Put", PUT),
    ("Get", PUT),
    ("Rput", PUT_REQUEST),
    ("Rget", PUT_REQUEST),
    ("Accumulate", ACCUMULATE),
    ("Raccumulate", ACCUMULATE_REQUEST),
    (
        "Fetch_and_op",
        "origin_addr:B result_addr:B datatype:T target_rank:p target_disp:l op:O win:W",
    ),
    (
        "Compare_and_swap",
        "origin_addr:B compare_addr:B result_addr:B datatype:T target_rank:p target_disp:l win:W",
    ),
    (
        "Get_accumulate",
        "origin_addr:B origin_count:i origin_datatype:T result_addr:B result_count:i \
         result_datatype:T target_rank:p target_disp:l target_count:i target_datatype:T op:O win:W",
    ),
    // Files.
    ("File_open", "comm:C filename:. amode:i info:. fh:e"),
    ("File_close", "fh:F"),
    ("File_set_size", "fh:D size:."),
    ("File_preallocate", "fh:D size:."),
    (
        "File_set_view",
        "fh:D disp:. etype:T filetype:T datarep:. info:.",
    ),
    ("File_set_atomicity", "fh:D flag:i"),
    ("File_sync", "fh:D"),
    ("File_seek_shared", "fh:D offset:. whence:i"),
    ("File_read", IN_FILE),
    ("File_write", IN_FILE),
    ("File_read_all", IN_FILE),
    ("File_write_all", IN_FILE),
    ("File_read_shared", IN_FILE),
    ("File_write_shared", IN_FILE),
    ("File_read_ordered", IN_FILE),
    ("File_write_ordered", IN_FILE),
    ("File_read_at", AT_OFFSET),
    ("File_write_at", AT_OFFSET),
    ("File_read_at_all", AT_OFFSET),
    ("File_write_at_all", AT_OFFSET),
    ("File_iread", IN_FILE_LATER),
    ("File_iwrite", IN_FILE_LATER),
    ("File_iread_all", IN_FILE_LATER),
    ("File_iwrite_all", IN_FILE_LATER),
    ("File_iread_shared", IN_FILE_LATER),
    ("File_iwrite_shared", IN_FILE_LATER),
    ("File_iread_at", AT_OFFSET_LATER),
    ("File_iwrite_at", AT_OFFSET_LATER),
    ("File_iread_at_all", AT_OFFSET_LATER),
    ("File_iwrite_at_all", AT_OFFSET_LATER),
    ("File_read_all_begin", IN_FILE_BEGUN),
    ("File_write_all_begin", IN_FILE_BEGUN),
    ("File_read_ordered_begin", IN_FILE_BEGUN),
    ("File_write_ordered_begin", IN_FILE_BEGUN),
    ("File_read_at_all_begin", AT_OFFSET_BEGUN),
    ("File_write_at_all_begin", AT_OFFSET_BEGUN),
    ("File_read_all_end", IN_FILE_ENDED),
    ("File_write_all_end", IN_FILE_ENDED),
    ("File_read_ordered_end", IN_FILE_ENDED),
    ("File_write_ordered_end", IN_FILE_ENDED),
    ("File_read_at_all_end", IN_FILE_ENDED),
    ("File_write_at_all_end", IN_FILE_ENDED),
];
