//! Requests and statuses (MPI 4.1, 3.7, 3.9, 13.2).

use super::{Row, row};
use crate::mpi::meaning::Does::{
    Cancel, Convert, Free, Local, Other, Query, Start, Status, Test, Wait,
};
use crate::mpi::meaning::{Resource, Scope};

const SOME: &str =
    "incount:i array_of_requests:A outcount:k array_of_indices:x array_of_statuses:S";

pub(super) const ROWS: &[Row] = &[
    row("Wait", "request:Q status:s", Wait(Scope::One)),
    row("Test", "request:Q flag:f status:s", Test(Scope::One)),
    row(
        "Waitall",
        "count:i array_of_requests:A array_of_statuses:S",
        Wait(Scope::All),
    ),
    row(
        "Testall",
        "count:i array_of_requests:A flag:f array_of_statuses:S",
        Test(Scope::All),
    ),
    row(
        "Waitany",
        "count:i array_of_requests:A index:n status:s",
        Wait(Scope::Any),
    ),
    row(
        "Testany",
        "count:i array_of_requests:A index:n flag:f status:s",
        Test(Scope::Any),
    ),
    row("Waitsome", SOME, Wait(Scope::Some)),
    row("Testsome", SOME, Test(Scope::Some)),
    row("Start", "request:Q", Start(Scope::One)),
    row("Startall", "count:i array_of_requests:A", Start(Scope::All)),
    row("Cancel", "request:Q", Cancel),
    row(
        "Request_free",
        "request:Q",
        Free(Resource::PersistentRequest),
    ),
    row(
        "Request_get_status",
        "request:R flag:f status:s",
        Status(Scope::One),
    ),
    row("Get_count", "status:. datatype:T count:n", Query),
    row("Test_cancelled", "status:. flag:f", Query),
    row("Get_elements", "status:. datatype:T count:n", Query),
    row("Get_elements_x", "status:. datatype:T count:.", Query),
    row(
        "Request_get_status_all",
        "count:i array_of_requests:A flag:f array_of_statuses:S",
        Status(Scope::All),
    ),
    row(
        "Request_get_status_any",
        "count:i array_of_requests:A index:n flag:f status:s",
        Status(Scope::Any),
    ),
    row(
        "Request_get_status_some",
        "incount:i array_of_requests:A outcount:k array_of_indices:x array_of_statuses:S",
        Status(Scope::Some),
    ),
    row("Status_get_error", "status:. err:.", Query),
    row("Status_get_source", "status:. source:.", Query),
    row("Status_get_tag", "status:. tag:.", Query),
    row("Status_set_error", "status:. err:.", Local),
    row("Status_set_source", "status:. source:.", Local),
    row("Status_set_tag", "status:. tag:.", Local),
    row("Status_c2f", "c_status:. f_status:.", Convert),
    row("Status_f2c", "f_status:. c_status:.", Convert),
    row("Status_f082c", "f08_status:. c_status:.", Convert),
    row("Status_c2f08", "c_status:. f08_status:.", Convert),
    row("Status_f082f", "f08_status:. f_status:.", Convert),
    row("Status_f2f08", "f_status:. f08_status:.", Convert),
    row("Status_set_elements", "status:. datatype:T count:i", Local),
    row(
        "Status_set_elements_x",
        "status:. datatype:T count:.",
        Local,
    ),
    row("Grequest_complete", "request:R", Other),
    row(
        "Grequest_start",
        "query_fn:. free_fn:. cancel_fn:. extra_state:. request:.",
        Other,
    ),
    row("Status_set_cancelled", "status:. flag:i", Local),
    row("Request_c2f", "request:R", Convert),
    row("Request_f2c", "request:.", Convert),
];
