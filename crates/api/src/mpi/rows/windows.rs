//! One-sided communication (MPI 4.1, chapter 12).

use super::{Row, row};
use crate::mpi::meaning::Does::{Convert, Free, Group, Other, Window};
use crate::mpi::meaning::{Access, Does, Epoch, Grouping, Memory, Resource};

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

pub(super) const ROWS: &[Row] = &[
    row("Win_create_errhandler", ERRHANDLER, Other),
    row("Win_create_keyval", KEYVAL, Other),
    row("Win_free_keyval", "keyval:K", Free(Resource::Keyval)),
    row(
        "Win_create",
        "base:B size:L disp_unit:i info:. comm:C win:w",
        Window(Memory::Given),
    ),
    row(
        "Win_allocate",
        "size:L disp_unit:i info:. comm:C baseptr:. win:w",
        Window(Memory::Allocated),
    ),
    row(
        "Win_allocate_shared",
        "size:L disp_unit:i info:. comm:C baseptr:. win:w",
        Window(Memory::Shared),
    ),
    row(
        "Win_create_dynamic",
        "info:. comm:C win:w",
        Window(Memory::Dynamic),
    ),
    row("Win_free", "win:V", Free(Resource::Window)),
    row("Win_get_group", "win:W group:u", Group(Grouping::OfWindow)),
    row("Win_fence", "assert:i win:W", Does::Epoch(Epoch::Fence)),
    row(
        "Win_start",
        "group:G assert:i win:W",
        Does::Epoch(Epoch::Start),
    ),
    row(
        "Win_post",
        "group:G assert:i win:W",
        Does::Epoch(Epoch::Post),
    ),
    row("Win_complete", "win:W", Does::Epoch(Epoch::Complete)),
    row("Win_wait", "win:W", Does::Epoch(Epoch::Wait)),
    row("Win_test", "win:W flag:f", Does::Epoch(Epoch::Test)),
    row(
        "Win_lock",
        "lock_type:i rank:p assert:i win:W",
        Does::Epoch(Epoch::Lock),
    ),
    row("Win_unlock", "rank:p win:W", Does::Epoch(Epoch::Unlock)),
    row(
        "Win_lock_all",
        "assert:i win:W",
        Does::Epoch(Epoch::LockAll),
    ),
    row("Win_unlock_all", "win:W", Does::Epoch(Epoch::UnlockAll)),
    row(
        "Win_flush",
        "rank:p win:W",
        Does::Epoch(Epoch::Flush {
            all: false,
            local: false,
        }),
    ),
    row(
        "Win_flush_local",
        "rank:p win:W",
        Does::Epoch(Epoch::Flush {
            all: false,
            local: true,
        }),
    ),
    row(
        "Win_flush_all",
        "win:W",
        Does::Epoch(Epoch::Flush {
            all: true,
            local: false,
        }),
    ),
    row(
        "Win_flush_local_all",
        "win:W",
        Does::Epoch(Epoch::Flush {
            all: true,
            local: true,
        }),
    ),
    row("Win_sync", "win:W", Does::Epoch(Epoch::Sync)),
    row("Put", PUT, Does::Access(Access::Put)),
    row("Get", PUT, Does::Access(Access::Get)),
    row("Rput", PUT_REQUEST, Does::Access(Access::Put)),
    row("Rget", PUT_REQUEST, Does::Access(Access::Get)),
    row("Accumulate", ACCUMULATE, Does::Access(Access::Accumulate)),
    row(
        "Raccumulate",
        ACCUMULATE_REQUEST,
        Does::Access(Access::Accumulate),
    ),
    row(
        "Fetch_and_op",
        "origin_addr:B result_addr:B datatype:T target_rank:p target_disp:l op:O win:W",
        Does::Access(Access::FetchAndOp),
    ),
    row(
        "Compare_and_swap",
        "origin_addr:B compare_addr:B result_addr:B datatype:T target_rank:p target_disp:l win:W",
        Does::Access(Access::CompareAndSwap),
    ),
    row(
        "Get_accumulate",
        "origin_addr:B origin_count:i origin_datatype:T result_addr:B result_count:i \
         result_datatype:T target_rank:p target_disp:l target_count:i target_datatype:T op:O win:W",
        Does::Access(Access::GetAccumulate),
    ),
    row(
        "Rget_accumulate",
        "origin_addr:B origin_count:i origin_datatype:T result_addr:B result_count:i result_datatype:T target_rank:p target_disp:l target_count:i target_datatype:T op:O win:W request:q",
        Does::Access(Access::GetAccumulate),
    ),
    row("Win_delete_attr", "win:W win_keyval:i", Other),
    row(
        "Win_get_attr",
        "win:W win_keyval:i attribute_val:. flag:.",
        Other,
    ),
    row("Win_set_attr", "win:W win_keyval:i attribute_val:.", Other),
    row("Win_call_errhandler", "win:W errorcode:i", Other),
    row("Win_get_errhandler", "win:W errhandler:.", Other),
    row("Win_set_errhandler", "win:W errhandler:.", Other),
    row("Win_attach", "win:W base:. size:.", Other),
    row("Win_detach", "win:W base:.", Other),
    row("Win_get_info", "win:W info_used:.", Other),
    row("Win_get_name", "win:W win_name:. resultlen:.", Other),
    row("Win_set_info", "win:W info:.", Other),
    row("Win_set_name", "win:W win_name:.", Other),
    row(
        "Win_shared_query",
        "win:W rank:i size:. disp_unit:. baseptr:.",
        Does::Epoch(Epoch::SharedQuery),
    ),
    row("Win_c2f", "win:W", Convert),
    row("Win_f2c", "win:.", Convert),
];
