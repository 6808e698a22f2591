//! The arguments of MPI functions by the names that the standard gives them in C.

/// One function a line: its name, then its arguments in order.
const FUNCTIONS: &str = "\
MPI_Send buf count datatype dest tag comm
MPI_Bsend buf count datatype dest tag comm
MPI_Ssend buf count datatype dest tag comm
MPI_Rsend buf count datatype dest tag comm
MPI_Isend buf count datatype dest tag comm request
MPI_Ibsend buf count datatype dest tag comm request
MPI_Issend buf count datatype dest tag comm request
MPI_Irsend buf count datatype dest tag comm request
MPI_Send_init buf count datatype dest tag comm request
MPI_Recv buf count datatype source tag comm status
MPI_Irecv buf count datatype source tag comm request
MPI_Recv_init buf count datatype source tag comm request
MPI_Sendrecv sendbuf sendcount sendtype dest sendtag recvbuf recvcount recvtype source recvtag comm status
MPI_Sendrecv_replace buf count datatype dest sendtag source recvtag comm status
MPI_Probe source tag comm status
MPI_Iprobe source tag comm flag status
MPI_Mprobe source tag comm message status
MPI_Wait request status
MPI_Waitall count array_of_requests array_of_statuses
MPI_Waitany count array_of_requests index status
MPI_Waitsome incount array_of_requests outcount array_of_indices array_of_statuses
MPI_Test request flag status
MPI_Testall count array_of_requests flag array_of_statuses
MPI_Testany count array_of_requests index flag status
MPI_Start request
MPI_Startall count array_of_requests
MPI_Cancel request
MPI_Request_free request
MPI_Barrier comm
MPI_Ibarrier comm request
MPI_Bcast buffer count datatype root comm
MPI_Ibcast buffer count datatype root comm request
MPI_Reduce sendbuf recvbuf count datatype op root comm
MPI_Ireduce sendbuf recvbuf count datatype op root comm request
MPI_Allreduce sendbuf recvbuf count datatype op comm
MPI_Iallreduce sendbuf recvbuf count datatype op comm request
MPI_Reduce_scatter sendbuf recvbuf recvcounts datatype op comm
MPI_Reduce_scatter_block sendbuf recvbuf recvcount datatype op comm
MPI_Scan sendbuf recvbuf count datatype op comm
MPI_Exscan sendbuf recvbuf count datatype op comm
MPI_Gather sendbuf sendcount sendtype recvbuf recvcount recvtype root comm
MPI_Gatherv sendbuf sendcount sendtype recvbuf recvcounts displs recvtype root comm
MPI_Scatter sendbuf sendcount sendtype recvbuf recvcount recvtype root comm
MPI_Scatterv sendbuf sendcounts displs sendtype recvbuf recvcount recvtype root comm
MPI_Allgather sendbuf sendcount sendtype recvbuf recvcount recvtype comm
MPI_Allgatherv sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm
MPI_Alltoall sendbuf sendcount sendtype recvbuf recvcount recvtype comm
MPI_Alltoallv sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm
MPI_Comm_rank comm rank
MPI_Comm_size comm size
MPI_Comm_dup comm newcomm
MPI_Comm_split comm color key newcomm
MPI_Comm_create comm group newcomm
MPI_Comm_free comm
MPI_Cart_create comm_old ndims dims periods reorder comm_cart
MPI_Cart_shift comm direction disp rank_source rank_dest
MPI_Put origin_addr origin_count origin_datatype target_rank target_disp target_count target_datatype win
MPI_Get origin_addr origin_count origin_datatype target_rank target_disp target_count target_datatype win
MPI_Accumulate origin_addr origin_count origin_datatype target_rank target_disp target_count target_datatype op win
MPI_Win_create base size disp_unit info comm win
MPI_Win_fence assert win
MPI_Win_lock lock_type rank assert win
MPI_Win_unlock rank win
MPI_Win_free win
MPI_Abort comm errorcode
MPI_File_open comm filename amode info fh
MPI_File_read_at fh offset buf count datatype status
MPI_File_write_at fh offset buf count datatype status";

/// The arguments of `function`, in order; `PMPI_` counts as `MPI_`.
pub fn of(function: &str) -> Option<Vec<&'static str>> {
    let name = function.strip_prefix('P').unwrap_or(function);
    FUNCTIONS.lines().find_map(|line| {
        let mut words = line.split(' ');
        (words.next() == Some(name)).then(|| words.collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_as_the_standard_has_them() {
        let place = |function, name| of(function)?.iter().position(|found| *found == name);
        assert_eq!(place("MPI_Send", "dest"), Some(3));
        assert_eq!(place("PMPI_Recv", "source"), Some(3));
        assert_eq!(place("MPI_Sendrecv", "status"), Some(11));
        assert_eq!(place("MPI_Reduce", "root"), Some(5));
        assert_eq!(place("MPI_Bcast", "dest"), None);
        assert_eq!(of("MPI_Nothing"), None);
        assert_eq!(of("memcpy"), None);
    }
}
