// Memory that MPI uses while others use it, and buffers that it cannot have; 2 ranks or more. All come to their end.
//
//   overlaps receives       two receives into one place run at once
//   overlaps written        a receive writes what a send that runs reads
//   overlaps early          a send reads what a receive that runs writes
//   overlaps persistent     a persistent send does
//   overlaps columns        two columns of a matrix are received into one
//   overlaps structures    two receives of structures
//   overlaps indexed       two receives, one of them of pieces
//   overlaps broadcast      a broadcast writes what a send that runs reads
//   overlaps gotten         two gets into one place in one epoch
//   overlaps aliased        MPI_Allreduce from where it writes to
//   overlaps place          MPI_IN_PLACE where it may not be
//   overlaps null           a message of four integers from nowhere
//   overlaps fine           all of these things done right: beside each other, one after the other, only read

#include <mpi.h>
#include <string.h>

enum { N = 8 };

static int rank, other;
static int a[N * N], b[N * N];

static void receives(int second) {
  MPI_Request requests[2];
  if (rank == 0) {
    MPI_Irecv(a, 4, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(a + second, 4, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  } else if (rank == 1) {
    MPI_Send(b, 4, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Send(b, 4, MPI_INT, 0, 2, MPI_COMM_WORLD);
  }
}

static void written(int first) {
  MPI_Request request;
  if (rank > 1) return;
  MPI_Isend(a, 4, MPI_INT, other, 1, MPI_COMM_WORLD, &request);  // sent
  MPI_Recv(a + first, 4, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void early(int first) {
  MPI_Request request;
  if (rank > 1) return;
  MPI_Irecv(a, 4, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
  MPI_Send(a + first, 4, MPI_INT, other, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void persistent(int first) {
  MPI_Request receive, send;
  if (rank > 1) return;
  MPI_Recv_init(a, 4, MPI_INT, other, 1, MPI_COMM_WORLD, &receive);
  MPI_Send_init(a + first, 4, MPI_INT, other, 1, MPI_COMM_WORLD, &send);
  for (int round = 0; round < 2; round++) {
    MPI_Start(&receive);
    MPI_Start(&send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&receive);
  MPI_Request_free(&send);
}

static void columns(int second) {
  MPI_Datatype column;
  MPI_Request requests[4];
  MPI_Type_vector(N, 1, N, MPI_INT, &column);
  MPI_Type_commit(&column);
  if (rank < 2) {
    MPI_Irecv(a, 1, column, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(a + second, 1, column, other, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(a + 3, 1, column, other, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(a + 3, 1, column, other, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Type_free(&column);
}

// Four places of 24 bytes each: the last four of these are padding.
static void structures(int second) {
  static struct { double x[2]; int count; } places[4];
  MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT}, place;
  MPI_Request requests[2];
  MPI_Type_create_struct(2, (int[]){2, 1}, (MPI_Aint[]){0, 16}, types, &place);
  MPI_Type_commit(&place);
  if (rank == 0) {
    MPI_Irecv(places, 2, place, 1, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(places + second, 2, place, 1, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  } else if (rank == 1) {
    MPI_Send(places, 2, place, 0, 1, MPI_COMM_WORLD);
    MPI_Send(places, 2, place, 0, 2, MPI_COMM_WORLD);
  }
  MPI_Type_free(&place);
}

static void indexed(int second) {
  MPI_Datatype pieces;
  MPI_Request requests[2];
  MPI_Type_indexed(2, (int[]){2, 2}, (int[]){0, 6}, MPI_INT, &pieces);
  MPI_Type_commit(&pieces);
  if (rank == 0) {
    MPI_Irecv(a, 1, pieces, 1, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(a + second, 3, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  } else if (rank == 1) {
    MPI_Send(b, 1, pieces, 0, 1, MPI_COMM_WORLD);
    MPI_Send(b, 3, MPI_INT, 0, 2, MPI_COMM_WORLD);
  }
  MPI_Type_free(&pieces);
}

static void broadcast(int first) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1) MPI_Isend(a, 4, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
  MPI_Bcast(a + first, 4, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(b, 4, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void gotten(int second, int fences) {
  MPI_Win window;
  MPI_Win_create(b, sizeof b, sizeof *b, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  if (rank == 0) MPI_Get(a, 4, MPI_INT, 1, 0, 4, MPI_INT, window);
  if (fences) MPI_Win_fence(0, window);
  if (rank == 0) MPI_Get(a + second, 4, MPI_INT, 1, 4, 4, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

// What follows is refused, by one library or the other.
static void aliased(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Allreduce(a + 2, a, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // both
}

static void place(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Allgather(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, MPI_COMM_WORLD);
}

static void null(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) MPI_Send(NULL, 4, MPI_INT, 1, 1, MPI_COMM_WORLD);
}

static void fine(void) {
  MPI_Request requests[2];
  MPI_Datatype block, row;
  receives(4);
  written(4);
  early(4);
  persistent(4);
  columns(1);
  structures(2);
  indexed(2);
  broadcast(4);
  gotten(4, 0);
  gotten(0, 1);
  MPI_Allreduce(MPI_IN_PLACE, a, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(a + 4, a, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  // Read twice; no elements; nobody.
  MPI_Gather(a, 1, MPI_INT, rank == 0 ? b : a, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Sendrecv(a, 4, MPI_INT, MPI_PROC_NULL, 1, a, 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  // A quarter of a matrix, and the rows beside it.
  MPI_Type_create_subarray(2, (int[]){N, N}, (int[]){N / 2, N / 2}, (int[]){N / 2, N / 2}, MPI_ORDER_C, MPI_INT, &block);
  MPI_Type_contiguous(N / 2, MPI_INT, &row);
  MPI_Type_commit(&block);
  MPI_Type_commit(&row);
  if (rank < 2) {
    MPI_Irecv(a, 1, block, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(a + N * (N - 1), 1, row, other, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(b, 1, block, other, 1, MPI_COMM_WORLD);
    MPI_Send(b, 1, row, other, 2, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    // One after the other, found complete without being waited for.
    int is_complete = 0;
    MPI_Irecv(a, 4, MPI_INT, other, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(b, 4, MPI_INT, other, 3, MPI_COMM_WORLD);
    while (!is_complete) MPI_Request_get_status(requests[0], &is_complete, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a, 4, MPI_INT, other, 4, b, 4, MPI_INT, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  }
  MPI_Type_free(&block);
  MPI_Type_free(&row);
}

int main(int argc, char **argv) {
  const char *lapse = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  if (strcmp(lapse, "receives") == 0) receives(2);
  if (strcmp(lapse, "written") == 0) written(3);
  if (strcmp(lapse, "early") == 0) early(1);
  if (strcmp(lapse, "persistent") == 0) persistent(2);
  if (strcmp(lapse, "columns") == 0) columns(0);
  if (strcmp(lapse, "structures") == 0) structures(1);
  if (strcmp(lapse, "indexed") == 0) indexed(4);
  if (strcmp(lapse, "broadcast") == 0) broadcast(2);
  if (strcmp(lapse, "gotten") == 0) gotten(2, 0);
  if (strcmp(lapse, "aliased") == 0) aliased();
  if (strcmp(lapse, "place") == 0) place();
  if (strcmp(lapse, "null") == 0) null();
  if (strcmp(lapse, "fine") == 0) fine();
  MPI_Finalize();
  return 0;
}
