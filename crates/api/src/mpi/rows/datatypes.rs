//! Datatypes, reductions and packing (MPI 4.1, chapters 5, 6.9 and 19.3).

use super::{Row, row};
use crate::mpi::meaning::Does::{Commit, Convert, Datatype, Free, Local, OwnData, Reduction};
use crate::mpi::meaning::{Constructor, Resource};

const KEYVAL: &str = "copy_fn:. delete_fn:. keyval:y extra_state:.";
const HVECTOR: &str = "count:i blocklength:i stride:L oldtype:T newtype:t";
const INDEXED: &str = "count:i blocklengths:Y displacements:X oldtype:T newtype:t";
const HINDEXED: &str = "count:i blocklengths:Y displacements:Z oldtype:T newtype:t";
const BLOCKS: &str = "count:i blocklength:i displacements:X oldtype:T newtype:t";
const HBLOCKS: &str = "count:i blocklength:i displacements:Z oldtype:T newtype:t";

pub(super) const ROWS: &[Row] = &[
    row("Type_create_keyval", KEYVAL, Local),
    row("Type_free_keyval", "keyval:K", Free(Resource::Keyval)),
    row(
        "Type_contiguous",
        "count:i oldtype:T newtype:t",
        Datatype(Constructor::Contiguous),
    ),
    row(
        "Type_vector",
        "count:i blocklength:i stride:i oldtype:T newtype:t",
        Datatype(Constructor::Vector),
    ),
    row(
        "Type_create_hvector",
        HVECTOR,
        Datatype(Constructor::HVector),
    ),
    row("Type_indexed", INDEXED, Datatype(Constructor::Indexed)),
    row(
        "Type_create_hindexed",
        HINDEXED,
        Datatype(Constructor::HIndexed),
    ),
    row(
        "Type_create_indexed_block",
        BLOCKS,
        Datatype(Constructor::IndexedBlock),
    ),
    row(
        "Type_create_hindexed_block",
        HBLOCKS,
        Datatype(Constructor::HIndexedBlock),
    ),
    row(
        "Type_create_struct",
        "count:i blocklengths:Y displacements:Z types:z newtype:t",
        Datatype(Constructor::Struct),
    ),
    row(
        "Type_create_subarray",
        "ndims:i sizes:Y subsizes:Y starts:Y order:i oldtype:T newtype:t",
        Datatype(Constructor::Subarray),
    ),
    row(
        "Type_create_resized",
        "oldtype:T lb:L extent:L newtype:t",
        Datatype(Constructor::Resized),
    ),
    row(
        "Type_dup",
        "oldtype:T newtype:t",
        Datatype(Constructor::Copy),
    ),
    row("Type_commit", "datatype:d", Commit),
    row("Type_free", "datatype:d", Free(Resource::Datatype)),
    row("Type_size", "datatype:T size:n", Local),
    row("Op_create", "user_fn:. commute:i op:o", Reduction),
    row("Op_free", "op:a", Free(Resource::Reduction)),
    row("Type_match_size", "typeclass:i size:i datatype:.", Local),
    row(
        "Type_hindexed",
        "count:i blocklengths:Y displacements:. oldtype:T newtype:t",
        Datatype(Constructor::Other),
    ),
    row(
        "Type_hvector",
        "count:i blocklength:i stride:. oldtype:T newtype:t",
        Datatype(Constructor::Other),
    ),
    row(
        "Type_struct",
        "count:i blocklengths:Y displacements:. types:z newtype:t",
        Datatype(Constructor::Other),
    ),
    row(
        "Type_create_darray",
        "size:i rank:i ndims:i gsizes:. distribs:. dargs:. psizes:. order:i oldtype:T newtype:t",
        Datatype(Constructor::Darray),
    ),
    row("Type_create_f90_integer", "r:i newtype:.", Local),
    row("Type_create_f90_real", "p:i r:i newtype:.", Local),
    row("Type_create_f90_complex", "p:i r:i newtype:.", Local),
    row("Aint_add", "base:. disp:.", Local),
    row("Aint_diff", "addr1:. addr2:.", Local),
    row(
        "Type_get_value_index",
        "value_type:T index_type:T pair_type:.",
        Local,
    ),
    row("Type_delete_attr", "datatype:T type_keyval:i", Local),
    row(
        "Type_get_attr",
        "datatype:T type_keyval:i attribute_val:. flag:.",
        Local,
    ),
    row(
        "Type_set_attr",
        "datatype:T type_keyval:i attribute_val:.",
        Local,
    ),
    row("Get_address", "location:. address:.", Local),
    row(
        "Pack",
        "inbuf:. incount:i datatype:T outbuf:. outsize:i position:. comm:C",
        OwnData,
    ),
    row(
        "Pack_external",
        "datarep:. inbuf:. incount:i datatype:T outbuf:. outsize:. position:.",
        OwnData,
    ),
    row(
        "Pack_external_size",
        "datarep:. incount:i datatype:T size:.",
        OwnData,
    ),
    row("Pack_size", "incount:i datatype:T comm:C size:.", OwnData),
    row(
        "Type_get_contents",
        "datatype:T max_integers:i max_addresses:i max_datatypes:i array_of_integers:. array_of_addresses:. array_of_datatypes:.",
        Local,
    ),
    row(
        "Type_get_contents_c",
        "datatype:T max_integers:. max_addresses:. max_large_counts:. max_datatypes:. array_of_integers:. array_of_addresses:. array_of_large_counts:. array_of_datatypes:.",
        Local,
    ),
    row(
        "Type_get_envelope_c",
        "datatype:T num_integers:. num_addresses:. num_large_counts:. num_datatypes:. combiner:.",
        Local,
    ),
    row(
        "Type_get_envelope",
        "datatype:T num_integers:. num_addresses:. num_datatypes:. combiner:.",
        Local,
    ),
    row("Type_get_extent", "datatype:T lb:. extent:.", Local),
    row("Type_get_extent_x", "datatype:T lb:. extent:.", Local),
    row("Type_get_name", "datatype:T type_name:. resultlen:.", Local),
    row(
        "Type_get_true_extent",
        "datatype:T true_lb:. true_extent:.",
        Local,
    ),
    row(
        "Type_get_true_extent_x",
        "datatype:T true_lb:. true_extent:.",
        Local,
    ),
    row("Type_set_name", "datatype:T type_name:.", Local),
    row("Type_size_x", "datatype:T size:.", Local),
    row(
        "Unpack",
        "inbuf:. insize:i position:. outbuf:. outcount:i datatype:T comm:C",
        OwnData,
    ),
    row(
        "Unpack_external",
        "datarep:. inbuf:. insize:. position:. outbuf:. outcount:i datatype:T",
        OwnData,
    ),
    row("Address", "location:. address:.", Local),
    row("Type_extent", "datatype:T extent:.", Local),
    row("Type_lb", "datatype:T displacement:.", Local),
    row("Type_ub", "datatype:T displacement:.", Local),
    row("Op_commutative", "op:O commute:.", Local),
    row("Op_c2f", "op:O", Convert),
    row("Op_f2c", "op:.", Convert),
    row("Type_c2f", "datatype:T", Convert),
    row("Type_f2c", "datatype:.", Convert),
];
