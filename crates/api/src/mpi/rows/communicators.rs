//! Communicators, groups and the shape of processes (MPI 4.1, chapters 7, 8 and 11).

use super::{Row, row};
use crate::mpi::meaning::Does::{Communicator, Convert, Free, Group, Local, Query, Shift};
use crate::mpi::meaning::{Grouping, Making, Resource};

const GROUP_OF: &str = "group:G n:i ranks:Y newgroup:u";
const GROUP_OF_RANGES: &str = "group:G n:i ranges:J newgroup:u";
const CONNECT: &str = "port_name:. info:. root:r comm:C newcomm:c";
const GROUPS: &str = "group1:G group2:G newgroup:u";

pub(super) const ROWS: &[Row] = &[
    row("Comm_rank", "comm:C rank:n", Query),
    row("Comm_size", "comm:C size:n", Query),
    row("Comm_remote_size", "comm:C size:n", Local),
    row("Comm_compare", "comm1:C comm2:C result:n", Local),
    row("Comm_test_inter", "comm:C flag:f", Local),
    row("Comm_dup", "comm:C newcomm:c", Communicator(Making::Copy)),
    row(
        "Comm_idup",
        "comm:C newcomm:c request:q",
        Communicator(Making::Copy),
    ),
    row(
        "Comm_dup_with_info",
        "comm:C info:. newcomm:c",
        Communicator(Making::Copy),
    ),
    row(
        "Comm_idup_with_info",
        "comm:C info:. newcomm:c request:q",
        Communicator(Making::Copy),
    ),
    row(
        "Comm_split",
        "comm:C color:i key:i newcomm:c",
        Communicator(Making::Split),
    ),
    row(
        "Comm_split_type",
        "comm:C split_type:i key:i info:. newcomm:c",
        Communicator(Making::SplitType),
    ),
    row(
        "Comm_create",
        "comm:C group:G newcomm:c",
        Communicator(Making::Create),
    ),
    row(
        "Comm_create_group",
        "comm:C group:G tag:g newcomm:c",
        Communicator(Making::CreateGroup),
    ),
    row(
        "Comm_create_from_group",
        "group:G stringtag:. info:. errhandler:. newcomm:c",
        Communicator(Making::FromGroup),
    ),
    row(
        "Comm_spawn",
        "command:. argv:. maxprocs:i info:. root:r comm:C intercomm:c array_of_errcodes:.",
        Communicator(Making::Spawn),
    ),
    row(
        "Comm_spawn_multiple",
        "count:i array_of_commands:. array_of_argv:. array_of_maxprocs:. array_of_info:. root:r \
         comm:C intercomm:c array_of_errcodes:.",
        Communicator(Making::SpawnMultiple),
    ),
    row("Comm_get_parent", "parent:c", Communicator(Making::Parent)),
    row("Comm_accept", CONNECT, Communicator(Making::Accept)),
    row("Comm_connect", CONNECT, Communicator(Making::Connect)),
    row("Comm_join", "fd:i intercomm:c", Communicator(Making::Join)),
    row("Comm_free", "comm:b", Free(Resource::Communicator)),
    row("Comm_disconnect", "comm:b", Free(Resource::Communicator)),
    row(
        "Comm_group",
        "comm:C group:u",
        Group(Grouping::OfCommunicator),
    ),
    row(
        "Comm_remote_group",
        "comm:C group:u",
        Group(Grouping::OfRemote),
    ),
    row("Comm_set_name", "comm:C comm_name:.", Local),
    row(
        "Intercomm_create",
        "local_comm:C local_leader:r peer_comm:C remote_leader:r tag:g newintercomm:c",
        Communicator(Making::Between),
    ),
    row(
        "Intercomm_merge",
        "intercomm:C high:i newintracomm:c",
        Communicator(Making::Merge),
    ),
    row(
        "Cart_create",
        "comm_old:C ndims:i dims:Y periods:Y reorder:i comm_cart:c",
        Communicator(Making::Grid),
    ),
    row(
        "Cart_sub",
        "comm:C remain_dims:H newcomm:c",
        Communicator(Making::SubGrid),
    ),
    row("Cart_rank", "comm:C coords:. rank:P", Local),
    row("Cart_coords", "comm:C rank:p maxdims:i coords:.", Local),
    row(
        "Cart_shift",
        "comm:C direction:i disp:i rank_source:P rank_dest:P",
        Shift,
    ),
    row(
        "Graph_create",
        "comm_old:C nnodes:i index:. edges:. reorder:i comm_graph:c",
        Communicator(Making::Graph),
    ),
    row(
        "Dist_graph_create",
        "comm_old:C n:i sources:. degrees:. destinations:. weights:. info:. reorder:i \
         comm_dist_graph:c",
        Communicator(Making::DistributedGraph),
    ),
    row(
        "Dist_graph_create_adjacent",
        "comm_old:C indegree:i sources:Y sourceweights:. outdegree:i destinations:Y \
         destweights:. info:. reorder:i comm_dist_graph:c",
        Communicator(Making::AdjacentGraph),
    ),
    row("Group_size", "group:G size:n", Local),
    row("Group_rank", "group:G rank:n", Local),
    row("Group_incl", GROUP_OF, Group(Grouping::Include)),
    row("Group_excl", GROUP_OF, Group(Grouping::Exclude)),
    row(
        "Group_range_incl",
        GROUP_OF_RANGES,
        Group(Grouping::IncludeRanges),
    ),
    row(
        "Group_range_excl",
        GROUP_OF_RANGES,
        Group(Grouping::ExcludeRanges),
    ),
    row("Group_free", "group:v", Free(Resource::Group)),
    row("Group_union", GROUPS, Group(Grouping::Union)),
    row("Group_intersection", GROUPS, Group(Grouping::Intersection)),
    row("Group_difference", GROUPS, Group(Grouping::Difference)),
    row(
        "Intercomm_create_from_groups",
        "local_group:G local_leader:i remote_group:G remote_leader:i stringtag:. info:. errhandler:. newintercomm:c",
        Communicator(Making::BetweenGroups),
    ),
    row(
        "Group_from_session_pset",
        "session:. pset_name:. newgroup:u",
        Group(Grouping::OfSession),
    ),
    row("Comm_get_info", "comm:C info_used:.", Local),
    row("Comm_get_name", "comm:C comm_name:. resultlen:.", Local),
    row("Comm_set_info", "comm:C info:.", Local),
    row("Group_compare", "group1:G group2:G result:.", Local),
    row(
        "Group_translate_ranks",
        "group1:G n:i ranks1:. group2:G ranks2:.",
        Local,
    ),
    row(
        "Cart_get",
        "comm:C maxdims:i dims:. periods:. coords:.",
        Local,
    ),
    row(
        "Cart_map",
        "comm:C ndims:i dims:. periods:. newrank:.",
        Local,
    ),
    row("Cartdim_get", "comm:C ndims:.", Local),
    row("Dims_create", "nnodes:i ndims:i dims:.", Local),
    row(
        "Dist_graph_neighbors",
        "comm:C maxindegree:i sources:. sourceweights:. maxoutdegree:i destinations:. destweights:.",
        Local,
    ),
    row(
        "Dist_graph_neighbors_count",
        "comm:C indegree:. outdegree:. weighted:.",
        Local,
    ),
    row(
        "Graph_get",
        "comm:C maxindex:i maxedges:i indx:. edges:.",
        Local,
    ),
    row(
        "Graph_map",
        "comm:C nnodes:i indx:. edges:. newrank:.",
        Local,
    ),
    row(
        "Graph_neighbors",
        "comm:C rank:i maxneighbors:i neighbors:.",
        Local,
    ),
    row("Graph_neighbors_count", "comm:C rank:i nneighbors:.", Local),
    row("Graphdims_get", "comm:C nnodes:. nedges:.", Local),
    row("Topo_test", "comm:C status:.", Local),
    row("Comm_c2f", "comm:C", Convert),
    row("Comm_f2c", "comm:.", Convert),
    row("Group_c2f", "group:G", Convert),
    row("Group_f2c", "group:.", Convert),
];
