//! Files (MPI 4.1, chapter 14).

use super::{Row, row};
use crate::mpi::meaning::Does::{Convert, File, Group, Local, Other};
use crate::mpi::meaning::{Does, FileUse, Grouping, Part};

const ERRHANDLER: &str = "function:. errhandler:h";
const IN_FILE: &str = "fh:D buf:B count:i datatype:T status:s";
const IN_FILE_LATER: &str = "fh:D buf:B count:i datatype:T request:q";
const IN_FILE_BEGUN: &str = "fh:D buf:B count:i datatype:T";
const IN_FILE_ENDED: &str = "fh:D buf:B status:s";
const AT_OFFSET: &str = "fh:D offset:. buf:B count:i datatype:T status:s";
const AT_OFFSET_LATER: &str = "fh:D offset:. buf:B count:i datatype:T request:q";
const AT_OFFSET_BEGUN: &str = "fh:D offset:. buf:B count:i datatype:T";

const READS: Does = File(FileUse::Transfer {
    writes: false,
    together: false,
    part: Part::Whole,
});
const READS_TOGETHER: Does = File(FileUse::Transfer {
    writes: false,
    together: true,
    part: Part::Whole,
});
const READS_TOGETHER_BEGIN: Does = File(FileUse::Transfer {
    writes: false,
    together: true,
    part: Part::Begin,
});
const READS_TOGETHER_END: Does = File(FileUse::Transfer {
    writes: false,
    together: true,
    part: Part::End,
});
const WRITES: Does = File(FileUse::Transfer {
    writes: true,
    together: false,
    part: Part::Whole,
});
const WRITES_TOGETHER: Does = File(FileUse::Transfer {
    writes: true,
    together: true,
    part: Part::Whole,
});
const WRITES_TOGETHER_BEGIN: Does = File(FileUse::Transfer {
    writes: true,
    together: true,
    part: Part::Begin,
});
const WRITES_TOGETHER_END: Does = File(FileUse::Transfer {
    writes: true,
    together: true,
    part: Part::End,
});

pub(super) const ROWS: &[Row] = &[
    row("File_create_errhandler", ERRHANDLER, Other),
    row(
        "File_open",
        "comm:C filename:. amode:i info:. fh:e",
        File(FileUse::Open),
    ),
    row("File_close", "fh:F", File(FileUse::Close)),
    row("File_set_size", "fh:D size:.", File(FileUse::Together)),
    row("File_preallocate", "fh:D size:.", File(FileUse::Together)),
    row(
        "File_set_view",
        "fh:D disp:. etype:T filetype:T datarep:. info:.",
        File(FileUse::Together),
    ),
    row("File_set_atomicity", "fh:D flag:i", File(FileUse::Together)),
    row("File_sync", "fh:D", File(FileUse::Together)),
    row(
        "File_seek_shared",
        "fh:D offset:. whence:i",
        File(FileUse::Together),
    ),
    row("File_read", IN_FILE, READS),
    row("File_write", IN_FILE, WRITES),
    row("File_read_all", IN_FILE, READS_TOGETHER),
    row("File_write_all", IN_FILE, WRITES_TOGETHER),
    row("File_read_shared", IN_FILE, READS),
    row("File_write_shared", IN_FILE, WRITES),
    row("File_read_ordered", IN_FILE, READS_TOGETHER),
    row("File_write_ordered", IN_FILE, WRITES_TOGETHER),
    row("File_read_at", AT_OFFSET, READS),
    row("File_write_at", AT_OFFSET, WRITES),
    row("File_read_at_all", AT_OFFSET, READS_TOGETHER),
    row("File_write_at_all", AT_OFFSET, WRITES_TOGETHER),
    row("File_iread", IN_FILE_LATER, READS),
    row("File_iwrite", IN_FILE_LATER, WRITES),
    row("File_iread_all", IN_FILE_LATER, READS),
    row("File_iwrite_all", IN_FILE_LATER, WRITES),
    row("File_iread_shared", IN_FILE_LATER, READS),
    row("File_iwrite_shared", IN_FILE_LATER, WRITES),
    row("File_iread_at", AT_OFFSET_LATER, READS),
    row("File_iwrite_at", AT_OFFSET_LATER, WRITES),
    row("File_iread_at_all", AT_OFFSET_LATER, READS),
    row("File_iwrite_at_all", AT_OFFSET_LATER, WRITES),
    row("File_read_all_begin", IN_FILE_BEGUN, READS_TOGETHER_BEGIN),
    row("File_write_all_begin", IN_FILE_BEGUN, WRITES_TOGETHER_BEGIN),
    row(
        "File_read_ordered_begin",
        IN_FILE_BEGUN,
        READS_TOGETHER_BEGIN,
    ),
    row(
        "File_write_ordered_begin",
        IN_FILE_BEGUN,
        WRITES_TOGETHER_BEGIN,
    ),
    row(
        "File_read_at_all_begin",
        AT_OFFSET_BEGUN,
        READS_TOGETHER_BEGIN,
    ),
    row(
        "File_write_at_all_begin",
        AT_OFFSET_BEGUN,
        WRITES_TOGETHER_BEGIN,
    ),
    row("File_read_all_end", IN_FILE_ENDED, READS_TOGETHER_END),
    row("File_write_all_end", IN_FILE_ENDED, WRITES_TOGETHER_END),
    row("File_read_ordered_end", IN_FILE_ENDED, READS_TOGETHER_END),
    row("File_write_ordered_end", IN_FILE_ENDED, WRITES_TOGETHER_END),
    row("File_read_at_all_end", IN_FILE_ENDED, READS_TOGETHER_END),
    row("File_write_at_all_end", IN_FILE_ENDED, WRITES_TOGETHER_END),
    row("File_get_group", "fh:D group:u", Group(Grouping::OfFile)),
    row(
        "File_call_errhandler",
        "fh:D errorcode:i",
        File(FileUse::Alone),
    ),
    row(
        "File_get_errhandler",
        "file:D errhandler:.",
        File(FileUse::Alone),
    ),
    row(
        "File_set_errhandler",
        "file:D errhandler:.",
        File(FileUse::Alone),
    ),
    row("File_c2f", "file:D", Convert),
    row("File_f2c", "file:.", Convert),
    row("File_delete", "filename:. info:.", File(FileUse::Alone)),
    row("File_get_size", "fh:D size:.", File(FileUse::Alone)),
    row("File_get_amode", "fh:D amode:.", File(FileUse::Alone)),
    row("File_set_info", "fh:D info:.", File(FileUse::Alone)),
    row("File_get_info", "fh:D info_used:.", File(FileUse::Alone)),
    row(
        "File_get_view",
        "fh:D disp:. etype:. filetype:. datarep:.",
        File(FileUse::Alone),
    ),
    row("File_seek", "fh:D offset:. whence:i", File(FileUse::Alone)),
    row("File_get_position", "fh:D offset:.", File(FileUse::Alone)),
    row(
        "File_get_byte_offset",
        "fh:D offset:. disp:.",
        File(FileUse::Alone),
    ),
    row(
        "File_get_position_shared",
        "fh:D offset:.",
        File(FileUse::Alone),
    ),
    row(
        "File_get_type_extent",
        "fh:D datatype:T extent:.",
        File(FileUse::Alone),
    ),
    row("File_get_atomicity", "fh:D flag:.", File(FileUse::Alone)),
    row(
        "Register_datarep",
        "datarep:. read_conversion_fn:. write_conversion_fn:. dtype_file_extent_fn:. extra_state:.",
        Local,
    ),
];
