//! The begin and the end, error handlers, attributes, info objects, ports, sessions (MPI 4.1, chapters 9 to 11).

use super::{Row, row};
use crate::mpi::meaning::Does::{
    Abort, Begin, BeginSession, Convert, End, Free, Local, Other, Query,
};
use crate::mpi::meaning::{Does, Resource, SendBuffer};

const ERRHANDLER: &str = "function:. errhandler:h";
const KEYVAL: &str = "copy_fn:. delete_fn:. keyval:y extra_state:.";

pub(super) const ROWS: &[Row] = &[
    row("Init", "argc:. argv:.", Begin { threads: false }),
    row("Finalize", "", End),
    row(
        "Init_thread",
        "argc:. argv:. required:i provided:n",
        Begin { threads: true },
    ),
    row("Initialized", "flag:f", Local).anytime(),
    row("Finalized", "flag:f", Local).anytime(),
    row("Query_thread", "provided:n", Local).anytime(),
    row("Abort", "comm:C errorcode:i", Abort),
    row(
        "Buffer_attach",
        "buffer:B size:i",
        Does::SendBuffer(SendBuffer::Attach),
    ),
    row(
        "Buffer_detach",
        "buffer_addr:. size:n",
        Does::SendBuffer(SendBuffer::Detach),
    ),
    row("Info_create", "info:j", Local).anytime(),
    row("Info_dup", "info:. newinfo:j", Local).anytime(),
    row("Info_free", "info:I", Free(Resource::Info)).anytime(),
    row("Comm_create_errhandler", ERRHANDLER, Other),
    row(
        "Errhandler_free",
        "errhandler:E",
        Free(Resource::Errhandler),
    )
    .anytime(),
    row("Comm_create_keyval", KEYVAL, Other),
    row("Comm_free_keyval", "keyval:K", Free(Resource::Keyval)),
    row("Info_create_env", "argc:. argv:. info:j", Local).anytime(),
    row(
        "Keyval_create",
        "copy_fn:. delete_fn:. keyval:y extra_state:.",
        Other,
    ),
    row("Keyval_free", "keyval:K", Free(Resource::Keyval)),
    row("Session_create_errhandler", ERRHANDLER, Other).anytime(),
    row("Errhandler_create", ERRHANDLER, Local).anytime(),
    row("Wtime", "", Query).anytime(),
    row("Wtick", "", Query).anytime(),
    row("Pcontrol", "level:.", Other).anytime(),
    row(
        "Comm_attach_buffer",
        "comm:C buffer:B size:i",
        Does::SendBuffer(SendBuffer::AttachTo),
    ),
    row(
        "Session_attach_buffer",
        "session:. buffer:B size:i",
        Does::SendBuffer(SendBuffer::AttachTo),
    )
    .anytime(),
    row(
        "Comm_detach_buffer",
        "comm:C buffer_addr:. size:n",
        Does::SendBuffer(SendBuffer::DetachFrom),
    ),
    row(
        "Session_detach_buffer",
        "session:. buffer_addr:. size:n",
        Does::SendBuffer(SendBuffer::DetachFrom),
    )
    .anytime(),
    row("Buffer_flush", "", Does::SendBuffer(SendBuffer::Flush)),
    row(
        "Comm_flush_buffer",
        "comm:C",
        Does::SendBuffer(SendBuffer::Flush),
    ),
    row(
        "Session_flush_buffer",
        "session:.",
        Does::SendBuffer(SendBuffer::Flush),
    )
    .anytime(),
    row(
        "Buffer_iflush",
        "request:q",
        Does::SendBuffer(SendBuffer::Flush),
    ),
    row(
        "Comm_iflush_buffer",
        "comm:C request:q",
        Does::SendBuffer(SendBuffer::Flush),
    ),
    row(
        "Session_iflush_buffer",
        "session:. request:q",
        Does::SendBuffer(SendBuffer::Flush),
    )
    .anytime(),
    row("Remove_error_class", "errorclass:.", Other).anytime(),
    row("Remove_error_code", "errorcode:.", Other).anytime(),
    row("Remove_error_string", "errorcode:.", Other).anytime(),
    row("Get_hw_resource_info", "hw_info:j", Local),
    row("Attr_delete", "comm:C keyval:i", Local),
    row("Attr_get", "comm:C keyval:i attribute_val:. flag:.", Local),
    row("Attr_put", "comm:C keyval:i attribute_val:.", Local),
    row("Comm_delete_attr", "comm:C comm_keyval:i", Other),
    row(
        "Comm_get_attr",
        "comm:C comm_keyval:i attribute_val:. flag:.",
        Local,
    ),
    row(
        "Comm_set_attr",
        "comm:C comm_keyval:i attribute_val:.",
        Local,
    ),
    row("Add_error_class", "errorclass:.", Other).anytime(),
    row("Add_error_code", "errorclass:i errorcode:.", Other).anytime(),
    row("Add_error_string", "errorcode:i string:.", Other).anytime(),
    row("Comm_call_errhandler", "comm:C errorcode:i", Other),
    row("Comm_get_errhandler", "comm:C errhandler:.", Local),
    row("Comm_set_errhandler", "comm:C errhandler:.", Local),
    row("Error_class", "errorcode:i errorclass:.", Local).anytime(),
    row("Error_string", "errorcode:i string:. resultlen:.", Local).anytime(),
    row("Session_call_errhandler", "session:. errorcode:i", Local).anytime(),
    row("Session_get_errhandler", "session:. errhandler:.", Local).anytime(),
    row("Session_set_errhandler", "session:. errhandler:.", Local).anytime(),
    row("Errhandler_get", "comm:C errhandler:.", Local).anytime(),
    row("Errhandler_set", "comm:C errhandler:.", Local).anytime(),
    row("Info_delete", "info:. key:.", Local).anytime(),
    row("Info_get", "info:. key:. valuelen:i value:. flag:.", Local).anytime(),
    row("Info_get_nkeys", "info:. nkeys:.", Local).anytime(),
    row("Info_get_nthkey", "info:. n:i key:.", Local).anytime(),
    row(
        "Info_get_string",
        "info:. key:. buflen:. value:. flag:.",
        Local,
    )
    .anytime(),
    row("Info_get_valuelen", "info:. key:. valuelen:. flag:.", Local).anytime(),
    row("Info_set", "info:. key:. value:.", Local).anytime(),
    row("Is_thread_main", "flag:.", Local).anytime(),
    row("Session_finalize", "session:.", Free(Resource::Session)).anytime(),
    row("Session_get_info", "session:. info_used:.", Local).anytime(),
    row(
        "Session_get_nth_pset",
        "session:. info:. n:i pset_len:. pset_name:.",
        Local,
    )
    .anytime(),
    row(
        "Session_get_num_psets",
        "session:. info:. npset_names:.",
        Local,
    )
    .anytime(),
    row(
        "Session_get_pset_info",
        "session:. pset_name:. info:.",
        Local,
    )
    .anytime(),
    row(
        "Session_init",
        "info:. errhandler:. session:.",
        BeginSession,
    )
    .anytime(),
    row("Get_library_version", "version:. resultlen:.", Local).anytime(),
    row("Get_processor_name", "name:. resultlen:.", Local),
    row("Get_version", "version:. subversion:.", Local).anytime(),
    row("Alloc_mem", "size:. info:. baseptr:.", Local),
    row("Free_mem", "base:.", Local),
    row("Close_port", "port_name:.", Other),
    row("Lookup_name", "service_name:. info:. port_name:.", Other),
    row("Open_port", "info:. port_name:.", Other),
    row("Publish_name", "service_name:. info:. port_name:.", Other),
    row("Unpublish_name", "service_name:. info:. port_name:.", Other),
    row("Errhandler_c2f", "errhandler:.", Convert).anytime(),
    row("Errhandler_f2c", "errhandler:.", Convert).anytime(),
    row("Info_c2f", "info:.", Convert).anytime(),
    row("Info_f2c", "info:.", Convert).anytime(),
    row("Message_c2f", "message:.", Convert),
    row("Message_f2c", "message:.", Convert),
];
