// Mistakes in the use of MPI and of threads beside it, one each; 4 ranks.
//
//   bugs cycle3                 ranks 0 to 2 receive from each other in a circle
//   bugs tag_order              rank 0 sends tags 1 and 2 synchronously, rank 1 receives 2 and 1
//   bugs wrong_source           rank 1 receives from rank 2 what rank 0 sent
//   bugs other_communicator     rank 0 sends in a copy of the communicator
//   bugs ring_and_copy          rank 2 leaves a ring a step too early; beside it, all add up by messages in a copy of the communicator
//   bugs wildcard_steals        a receive from anybody takes what a later one needs
//   bugs waitany_never          MPI_Waitany for two messages that nobody sends
//   bugs test_loop              MPI_Test again and again for a message that nobody sends
//   bugs iprobe_loop            MPI_Iprobe again and again
//   bugs consensus              rank 2 probes for another tag than what is sent to all, who poll until everybody is there
//   bugs split_missing          rank 3 does not come to MPI_Allreduce of its half
//   bugs grid_row               rank 3 does not come to MPI_Allreduce of its row of a grid
//   bugs two_orders             barriers of two copies in another order in rank 2
//   bugs mixed_barrier          rank 1 calls MPI_Barrier, the others MPI_Ibarrier
//   bugs iallreduce_missing     rank 1 does not call MPI_Iallreduce
//   bugs intercomm_receive      rank 1 receives from the other side of an intercommunicator
//   bugs intercomm_barrier      rank 3 does not come to a barrier of both sides
//   bugs intercomm_tags          the leaders of two groups introduce themselves with other tags
//   bugs intercomm_nobody       a broadcast of both sides in which nobody is the root
//   bugs intercomm_leaders      rank 0 takes rank 3 for the leader of the other group, which is rank 2
//   bugs file_left              rank 2 closes a file that the others write together
//   bugs persistent_alone       a persistent receive without a sender
//   bugs persistent_unstarted   rank 1 makes a persistent send and does not start it
//   bugs persistent_once        or once, for two receives
//   bugs startall_short         rank 1 starts one of two persistent requests once
//   bugs probed_only            rank 0 takes a message of rank 2 by a matched probe, and does not receive it
//   bugs edges_differ           rank 2 tells another edge than its neighbours
//   bugs partition_left         rank 0 does not mark one partition of a send
//   bugs singles                no mistake: collective operations by whichever thread comes first
//   bugs singles_missing        the same, and rank 2 leaves one out
//   bugs start_without_post     MPI_Win_start without MPI_Win_post
//   bugs start_for_range        the same, for the other ranks, of which rank 2 does not call MPI_Win_post
//   bugs post_without_complete  MPI_Win_wait without an access
//   bugs windows_crossed        rank 2 frees two windows in another order
//   bugs starts_crossed         rank 2 starts two persistent collective operations in another order once
//   bugs lock_held              rank 2 needs the lock of a window that rank 0 holds, who waits for it
//   bugs barrier_left           one of three threads of rank 1 does not come to their barrier
//   bugs stop_twice             rank 0 tells rank 3 twice to stop, and rank 2 never
//   bugs dies                   rank 2 dies of a signal
//   bugs killed                 rank 2 is killed, as when memory is short
//   bugs stopped                rank 2 is stopped by a signal
//   bugs omp_barrier            thread 2 of rank 1 does not come to a barrier
//   bugs omp_barrier_left       thread 2 of rank 1 leaves out a barrier, and the others wait at a later one
//   bugs omp_critical_first     rank 1 waits for a message in a critical section, and its thread 1 for that
//   bugs omp_critical_receive   thread 1 of rank 1 waits for a message in a critical section
//   bugs ab_ba                  two threads of rank 1 take two locks in another order
//   bugs never_unlocked         a thread of rank 1 ends with a lock
//   bugs never_signalled        a thread of rank 1 waits for a condition
//   bugs join_receiver          rank 1 joins a thread that waits for a message
//   bugs lock_across_receive    rank 1 waits for a lock that its thread holds while it receives
//   bugs gather_missing         rank 2 does not come to MPI_Gather
//   bugs fewer_rounds           rank 2 leaves the loop a round too early
//   bugs one_of_two             rank 2 leaves out one of two messages of a call, which looks like another call of one message then
//   bugs halo_first             rank 2 leaves out one message of the first exchange with its neighbours, and goes on to the next
//   bugs min_for_sum            rank 1 reduces by MPI_MIN where others do by MPI_SUM, and leaves the loop
//   bugs prints_first           rank 0 prints before the steps, and waits for a message that rank 3 did not send
//   bugs neighbours_missing     rank 2 does not come to MPI_Neighbor_allgather
//   bugs one_sends_twice        rank 3 sends the tag of rank 2
//   bugs worker_tag             rank 2 sends its last result with another tag
//   bugs numbered_receive       of messages with tags by their rounds, rank 3 asks for that of the next round once
//   bugs numbered_send          rank 2 sends one with the tag of the next round
//   bugs numbered_source        rank 3 asks rank 1 once for what rank 2 sends
//   bugs rows_and_columns       ranks 0 and 3 sum over columns before rows once
//   bugs serialized             two threads of rank 1 receive at once, at MPI_THREAD_SERIALIZED
//   bugs waitany_null           rank 0 waits for any of two requests until one is over, and there is none
//   bugs testsome_null          rank 0 asks for them until one is over
//   bugs wildcard_untold        a receive from anybody takes what a later one needs, and nothing tells whose it was
//   bugs window_poll            rank 1 looks again and again for what nobody puts into a window
//   bugs test_loop_copy         MPI_Test again and again for a message that is sent in another communicator
//
// A right trace of a run that was killed shows each rank, and each of its threads, in the call in which it waits.

#include <mpi.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank, size, word, other_word, received[64];
static volatile double sink;
#define KERNEL(name) __attribute__((noinline)) static void name(void)

#define SEND(to, tag) MPI_Send(&rank, 1, MPI_INT, to, tag, MPI_COMM_WORLD)
#define SSEND(to, tag) MPI_Ssend(&rank, 1, MPI_INT, to, tag, MPI_COMM_WORLD)
#define RECV(from, tag) MPI_Recv(&word, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)

KERNEL(cycle3) {
    if (rank < 3) {
        RECV((rank + 2) % 3, 4);
        SEND((rank + 1) % 3, 4);
    }
}

KERNEL(tag_order) {
    if (rank == 0) {
        SSEND(1, 1);
        SSEND(1, 2);
    }
    if (rank == 1) {
        RECV(0, 2);
        RECV(0, 1);
    }
}

KERNEL(wrong_source) {
    if (rank == 0) SEND(1, 3);
    if (rank == 1) RECV(2, 3);
}

KERNEL(other_communicator) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 1, 3, copy);
    if (rank == 1) RECV(0, 3);
}

// Tags are those of the step in both communicators: the message of rank 1 that waits in the ring is none of those that rank 0
// waits for in the copy.
KERNEL(ring_and_copy) {
    static double out[4096], in[4096];
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int step = 0; step < 6; step++) {
        if (rank != 2 || step < 4)
            MPI_Sendrecv(out, 4096, MPI_DOUBLE, (rank + 1) % size, step, in, 4096, MPI_DOUBLE, (rank + size - 1) % size, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int apart = 1; apart < size; apart *= 2) {
            if (rank & apart) {
                MPI_Send(&word, 1, MPI_INT, rank - apart, step, copy);
                break;
            }
            if (rank + apart < size) MPI_Recv(&word, 1, MPI_INT, rank + apart, step, copy, MPI_STATUS_IGNORE);
        }
    }
}

KERNEL(wildcard_steals) {
    if (rank == 0) {
        RECV(MPI_ANY_SOURCE, 3);
        RECV(1, 3);
    }
    if (rank == 1) SEND(0, 3);
    if (rank == 2) {
        usleep(300000);
        SEND(0, 3);
    }
}

KERNEL(waitany_never) {
    MPI_Request requests[2];
    int which;
    if (rank == 0) {
        MPI_Irecv(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&other_word, 1, MPI_INT, 2, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
    }
}

KERNEL(test_loop) {
    MPI_Request request;
    int done = 0;
    if (rank == 0) {
        MPI_Irecv(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
        while (!done && usleep(500) == 0) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

// A non-blocking consensus: who has sent to all goes to the barrier, and all take what comes until everybody is there.
KERNEL(consensus) {
    int next = (rank + 1) % 4, tag = rank == 2 ? 4 : 3, sent = 0, over = 0, there;
    MPI_Request send, barrier;
    MPI_Issend(&word, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &send);
    while (!over) {
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &status);
        if (there) MPI_Recv(&word, 1, MPI_INT, status.MPI_SOURCE, tag, MPI_COMM_WORLD, &status);
        if (sent) {
            MPI_Test(&barrier, &over, &status);
        } else {
            MPI_Test(&send, &sent, &status);
            if (sent) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
        }
    }
}

KERNEL(iprobe_loop) {
    int done = 0;
    if (rank == 0)
        while (!done && usleep(500) == 0) MPI_Iprobe(1, 3, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
}

KERNEL(split_missing) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    if (rank != 3) MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_SUM, half);
}

KERNEL(grid_row) {
    const int dims[2] = {2, 2}, periods[2] = {0, 0}, remain[2] = {0, 1};
    MPI_Comm grid, row;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_sub(grid, remain, &row);
    if (rank != 3) MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_SUM, row);
    MPI_Barrier(grid);
}

KERNEL(two_orders) {
    MPI_Comm a, b;
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_dup(MPI_COMM_WORLD, &b);
    MPI_Barrier(rank == 2 ? b : a);
    MPI_Barrier(rank == 2 ? a : b);
}

KERNEL(mixed_barrier) {
    MPI_Request request;
    if (rank == 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

KERNEL(iallreduce_missing) {
    MPI_Request request;
    if (rank == 1) return;
    MPI_Iallreduce(&rank, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static MPI_Comm bridge(void) {
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 9, &both);
    return both;
}

KERNEL(intercomm_receive) {
    MPI_Comm both = bridge();
    if (rank == 1) MPI_Recv(&word, 1, MPI_INT, 0, 3, both, MPI_STATUS_IGNORE);
}

KERNEL(intercomm_barrier) {
    MPI_Comm both = bridge();
    if (rank != 3) MPI_Barrier(both);
}

KERNEL(intercomm_tags) {
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, rank < 2 ? 5 : 6, &both);
}

KERNEL(intercomm_nobody) {
    MPI_Comm both = bridge();
    MPI_Bcast(&word, 1, MPI_INT, rank < 2 ? MPI_PROC_NULL : 1, both);
}

KERNEL(intercomm_leaders) {
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 3 : 0, 9, &both);
}

KERNEL(file_left) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    if (rank != 2) MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_close(&file);
}

KERNEL(persistent_alone) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Recv_init(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// Rank 0 receives two messages from a persistent send of rank 1 that is started so often.
static void persistent(int starts) {
    MPI_Request request;
    if (rank == 0) {
        RECV(1, 3);
        RECV(1, 3);
    }
    if (rank == 1) {
        MPI_Send_init(&rank, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
        for (int i = 0; i < starts; i++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
}

KERNEL(persistent_unstarted) { persistent(0); }

KERNEL(persistent_once) { persistent(1); }

KERNEL(startall_short) {
    MPI_Request requests[2];
    MPI_Recv_init(received, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(&word, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 20; i++) {
        MPI_Startall(rank == 1 && i == 11 ? 1 : 2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); // for both
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

KERNEL(probed_only) {
    MPI_Message message;
    for (int i = 0; i < 10; i++) {
        for (int from = 1; rank == 0 && from < size; from++) {
            MPI_Mprobe(from, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            if (i != 7 || from != 2) MPI_Mrecv(&word, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        }
        if (rank != 0) MPI_Ssend(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

KERNEL(edges_differ) {
    int before = (rank + size - 1) % size, next = (rank + 1) % size, got;
    int from = rank == 2 ? next : before;
    MPI_Comm ring;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    for (int i = 0; i < 5; i++) MPI_Neighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

KERNEL(partition_left) {
#if MPI_VERSION >= 4
    double parts[8] = {0};
    MPI_Request request;
    if (rank == 0) MPI_Psend_init(parts, 4, 2, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (rank == 1) MPI_Precv_init(parts, 4, 2, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; rank < 2 && i < 6; i++) {
        MPI_Start(&request);
        if (rank == 0) MPI_Pready_range(0, 1, request);
        if (rank == 0 && i != 3) MPI_Pready(2, request);
        if (rank == 0) MPI_Pready(3, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE); // for all partitions
    }
    if (rank < 2) MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
#endif
}

KERNEL(starts_crossed) {
#if MPI_VERSION >= 4
    int given = rank, all = 0;
    MPI_Request both[2];
    MPI_Allreduce_init(&given, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Bcast_init(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    for (int i = 0; i < 4; i++) {
        int crossed = rank == 2 && i == 2;
        MPI_Start(&both[crossed]); // one first
        MPI_Wait(&both[crossed], MPI_STATUS_IGNORE);
        MPI_Start(&both[!crossed]);
        MPI_Wait(&both[!crossed], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
#endif
}

static MPI_Win window(void) {
    int *memory;
    MPI_Win made;
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &made);
    return made;
}

KERNEL(start_without_post) {
    MPI_Win made = window();
    MPI_Group all, one;
    int other = 1;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &one);
    if (rank == 0) {
        MPI_Win_start(one, 0, made);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, made);
        MPI_Win_complete(made);
    }
}

KERNEL(start_for_range) {
    MPI_Win made = window();
    MPI_Group all, others, zero;
    int ranges[1][3] = {{1, 3, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_range_incl(all, 1, ranges, &others);
    MPI_Group_difference(all, others, &zero);
    if (rank == 0) {
        MPI_Win_start(others, 0, made);
        MPI_Win_complete(made);
    } else if (rank != 2) {
        MPI_Win_post(zero, 0, made);
        MPI_Win_wait(made);
    }
    MPI_Win_free(&made);
}

KERNEL(post_without_complete) {
    MPI_Win made = window();
    MPI_Group all, one;
    int other = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &one);
    if (rank == 1) {
        MPI_Win_post(one, 0, made);
        MPI_Win_wait(made);
    }
}

KERNEL(windows_crossed) {
    MPI_Win both[2] = {window(), window()};
    MPI_Win_free(&both[rank == 2]);
    MPI_Win_free(&both[rank != 2]);
}

KERNEL(lock_held) {
    MPI_Win made = window();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, made);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, made);
        MPI_Win_flush(1, made);
        SEND(2, 3);
        RECV(2, 3);
        MPI_Win_unlock(1, made);
    }
    if (rank == 2) {
        RECV(0, 3);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, made);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, made);
        MPI_Win_unlock(1, made);
        SEND(0, 3);
    }
}

KERNEL(stopped) {
    if (rank == 2) raise(SIGSTOP);
    MPI_Barrier(MPI_COMM_WORLD);
}

KERNEL(dies) {
    MPI_Barrier(MPI_COMM_WORLD); // all are beyond MPI_Init
    if (rank == 2) raise(SIGSEGV);
    MPI_Barrier(MPI_COMM_WORLD);
}

KERNEL(killed) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) kill(getpid(), SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
}

KERNEL(omp_barrier) {
#pragma omp parallel num_threads(3)
    {
        if (rank == 1 && omp_get_thread_num() == 2)
            for (;;) pause();
#pragma omp barrier
        sink++;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

__attribute__((noinline)) static void omp_step(int thread, int step) {
    sink++;
    if (rank == 1 && thread == 2 && step == 4) return;
#pragma omp barrier
}

KERNEL(omp_barrier_left) {
#pragma omp parallel num_threads(4)
    for (int step = 0; step < 8; step++) omp_step(omp_get_thread_num(), step);
    MPI_Barrier(MPI_COMM_WORLD);
}

KERNEL(omp_critical_first) {
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1) usleep(200000);
#pragma omp critical
        {
            if (rank == 1 && omp_get_thread_num() == 0) RECV(0, 3);
            sink++;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static volatile int inside;
KERNEL(omp_critical_receive) {
#pragma omp parallel num_threads(3)
    {
        // Of rank 1, thread 1 comes first.
        while (rank == 1 && omp_get_thread_num() != 1 && !inside) usleep(1000);
#pragma omp critical(mine)
        {
            inside = 1;
            if (rank == 1 && omp_get_thread_num() == 1) RECV(0, 3);
            sink++;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}
KERNEL(waitany_null) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int index = MPI_UNDEFINED;
    while (rank == 0 && index == MPI_UNDEFINED) {
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        usleep(50);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}
KERNEL(testsome_null) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int done = 0, indices[2];
    while (rank == 0 && done < 1) {
        MPI_Testsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
        usleep(50);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}
static void *receives_7(void *unused) {
    RECV(0, 7);
    return unused;
}

KERNEL(serialized) {
    pthread_t thread;
    if (rank == 1) {
        pthread_create(&thread, NULL, receives_7, NULL);
        RECV(0, 8);
        pthread_join(thread, NULL);
        SEND(0, 9);
    } else if (rank == 0) {
        RECV(1, 9);
        SEND(1, 7);
        SEND(1, 8);
    }
}
static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static void *b_then_a(void *unused) {
    pthread_mutex_lock(&lock_b);
    usleep(200000);
    pthread_mutex_lock(&lock_a);
    pthread_mutex_unlock(&lock_a);
    pthread_mutex_unlock(&lock_b);
    return unused;
}

KERNEL(ab_ba) {
    pthread_t thread;
    if (rank == 1) {
        pthread_create(&thread, NULL, b_then_a, NULL);
        pthread_mutex_lock(&lock_a);
        usleep(200000);
        pthread_mutex_lock(&lock_b);
        pthread_mutex_unlock(&lock_b);
        pthread_mutex_unlock(&lock_a);
        pthread_join(thread, NULL);
    }
    MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}
static void *forgets(void *unused) {
    pthread_mutex_lock(&lock_a);
    return unused;
}

KERNEL(never_unlocked) {
    pthread_t thread;
    if (rank == 1) {
        pthread_create(&thread, NULL, forgets, NULL);
        pthread_join(thread, NULL);
        pthread_mutex_lock(&lock_a);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}
static void *waits(void *unused) {
    pthread_mutex_lock(&lock_a);
    pthread_cond_wait(&condition, &lock_a);
    pthread_mutex_unlock(&lock_a);
    return unused;
}

KERNEL(never_signalled) {
    pthread_t thread;
    if (rank == 1) {
        pthread_create(&thread, NULL, waits, NULL);
        pthread_join(thread, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}
static void *receives(void *unused) {
    RECV(0, 3);
    return unused;
}

KERNEL(join_receiver) {
    pthread_t thread;
    if (rank == 1) {
        pthread_create(&thread, NULL, receives, NULL);
        pthread_join(thread, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static pthread_barrier_t meeting;

static void *comes(void *is_last) {
    if (!is_last) pthread_barrier_wait(&meeting);
    return NULL;
}

KERNEL(barrier_left) {
    pthread_t threads[2];
    if (rank == 1) {
        pthread_barrier_init(&meeting, NULL, 3);
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, comes, i == 1 ? threads : NULL);
        pthread_barrier_wait(&meeting);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *holds_and_receives(void *unused) {
    pthread_mutex_lock(&lock_a);
    RECV(0, 3);
    pthread_mutex_unlock(&lock_a);
    return unused;
}

KERNEL(lock_across_receive) {
    pthread_t thread;
    if (rank == 1) {
        pthread_create(&thread, NULL, holds_and_receives, NULL);
        usleep(300000);
        pthread_mutex_lock(&lock_a);
        pthread_mutex_unlock(&lock_a);
        pthread_join(thread, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) SEND(1, 3);
}

KERNEL(gather_missing) {
    if (rank != 2) MPI_Gather(&rank, 1, MPI_INT, received, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void each_by_one(int leaves_out) {
    #pragma omp parallel num_threads(3)
    for (int round = 0; round < 12; round++) {
        #pragma omp single
        if (rank != 2 || round != leaves_out) MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // by one of three
        #pragma omp single
        MPI_Bcast(received, 1, MPI_INT, 0, MPI_COMM_WORLD); // and this
    }
}

KERNEL(singles) { each_by_one(-1); }

KERNEL(singles_missing) { each_by_one(7); }

KERNEL(fewer_rounds) {
    for (int round = 0; round < (rank == 2 ? 9 : 10); round++)
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &word, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

__attribute__((noinline)) static void to_some(int way, int round) {
    if (way == 1) {
        SEND((rank + 3) % 4, 4);
        return;
    }
    if (rank != 2 || round != 6) SEND((rank + 1) % 4, 4);
    SEND((rank + 2) % 4, 4);
}

KERNEL(one_of_two) {
    for (int round = 0; round < 9; round++) {
        to_some(0, round);
        RECV((rank + 3) % 4, 4);
        RECV((rank + 2) % 4, 4);
        to_some(1, round);
        RECV((rank + 1) % 4, 4);
    }
}

__attribute__((noinline)) static void halo(int tag, int less) {
    MPI_Request requests[2];
    int sides[2] = {(rank + size - 1) % size, (rank + 1) % size}, got[2];
    for (int i = 0; i < 2; i++) MPI_Irecv(&got[i], 1, MPI_INT, sides[i], tag, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 2; i++)
        if (!less || i == 0) SEND(sides[i], tag);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

KERNEL(halo_first) {
    halo(4, rank == 2);
    halo(5, 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

KERNEL(min_for_sum) {
    for (int round = 0; round < 9; round++) {
        SEND((rank + 1) % size, 4);
        RECV((rank + size - 1) % size, 4);
        int is_wrong = rank == 1 && round == 5;
        MPI_Allreduce(&rank, &word, 1, MPI_INT, is_wrong ? MPI_MIN : MPI_SUM, MPI_COMM_WORLD);
        if (is_wrong) break;
    }
    MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void print(const char *text) { fputs(text, stderr); }
__attribute__((noinline)) static void exchange(int round) {
    for (int by = 1; by < size; by++)
        if (rank != 3 || round != 2 || by != 1) SEND((rank + by) % size, 4);
    for (int by = 1; by < size; by++) RECV((rank + by) % size, 4);
}
__attribute__((noinline)) static void steps(void) {
    for (int round = 0; round < 3; round++) {
        exchange(round);
        MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

KERNEL(prints_first) {
    if (rank == 0) print("begins\n");
    steps();
}

KERNEL(neighbours_missing) {
    MPI_Comm ring;
    int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    if (rank != 2) MPI_Neighbor_allgather(&rank, 1, MPI_INT, received, 1, MPI_INT, ring);
}

KERNEL(one_sends_twice) {
    if (rank == 0)
        for (int i = 1; i < size; i++) RECV(MPI_ANY_SOURCE, i);
    if (rank == 1) SEND(0, 1);
    if (rank == 2) SEND(0, 2);
    if (rank == 3) SEND(0, 2);
}

KERNEL(stop_twice) {
    if (rank == 0) {
        SEND(1, 2);
        SEND(3, 2);
        SEND(3, 2);
    } else {
        RECV(0, MPI_ANY_TAG);
    }
}

// Ranks 1 and 2 send two results each, of tag 2, and get an answer.
KERNEL(worker_tag) {
    MPI_Status status;
    if (rank == 0)
        for (int i = 0; i < 4; i++) {
            MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
            SEND(status.MPI_SOURCE, 5);
        }
    if (rank == 1 || rank == 2)
        for (int i = 0; i < 2; i++) {
            SEND(0, rank == 2 && i == 1 ? 1 : 2);
            RECV(0, 5);
        }
}

// A message to the next rank each round, its tag the round's; `wrong` says what rank 2 or 3 does in the fourth.
static void numbered(int wrong) {
    for (int round = 1; round <= 8; round++) {
        int is_wrong = round == 4;
        int from = is_wrong && rank == 3 && wrong == 3 ? 1 : (rank + size - 1) % size;
        int asked = is_wrong && rank == 3 && wrong == 1 ? round + 1 : round;
        int sent = is_wrong && rank == 2 && wrong == 2 ? round + 1 : round;
        MPI_Request request;
        MPI_Irecv(&word, 1, MPI_INT, from, asked, MPI_COMM_WORLD, &request);
        SEND((rank + 1) % size, sent);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

KERNEL(numbered_receive) { numbered(1); }

KERNEL(numbered_send) { numbered(2); }

KERNEL(numbered_source) { numbered(3); }

__attribute__((noinline)) static void sum(MPI_Comm over) { MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_SUM, over); }

KERNEL(rows_and_columns) {
    MPI_Comm row, column;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &column);
    for (int round = 0; round < 5; round++) {
        int is_wrong = round == 2 && (rank == 0 || rank == 3);
        sum(is_wrong ? column : row);
        sum(is_wrong ? row : column);
    }
}

KERNEL(wildcard_untold) {
    if (rank != 2) usleep(300000);
    if (rank > 0) SEND(0, 3);
    if (rank == 0) {
        RECV(MPI_ANY_SOURCE, 3);
        for (int from = 2; from < size; from++) RECV(from, 3);
    }
}

KERNEL(test_loop_copy) {
    MPI_Comm copy;
    MPI_Request request;
    int done = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (rank == 1) SEND(0, 3);
    if (rank == 0) {
        MPI_Irecv(&word, 1, MPI_INT, 1, 3, copy, &request);
        while (!done && usleep(500) == 0) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

KERNEL(window_poll) {
    MPI_Win window;
    int *flag, seen = 0;
    MPI_Win_allocate(sizeof *flag, sizeof *flag, MPI_INFO_NULL, MPI_COMM_WORLD, &flag, &window);
    *flag = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        while (!seen) {
            MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
            MPI_Win_flush(0, window);
        }
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

static const struct {
    const char *name;
    void (*run)(void);
} KERNELS[] = {
#define X(f) {#f, f}
    X(cycle3), X(tag_order), X(wrong_source), X(other_communicator), X(ring_and_copy), X(wildcard_steals), X(waitany_never), X(test_loop), X(iprobe_loop),
    X(split_missing), X(grid_row), X(two_orders), X(mixed_barrier), X(iallreduce_missing), X(intercomm_receive), X(intercomm_barrier), X(intercomm_tags), X(intercomm_nobody), X(intercomm_leaders), X(file_left),
    X(persistent_alone), X(persistent_unstarted), X(persistent_once), X(startall_short), X(probed_only), X(edges_differ), X(partition_left), X(singles), X(singles_missing), X(start_without_post), X(start_for_range), X(post_without_complete), X(lock_held), X(windows_crossed), X(starts_crossed), X(dies), X(killed),
    X(stopped), X(omp_barrier), X(omp_barrier_left), X(omp_critical_first), X(omp_critical_receive), X(ab_ba), X(never_unlocked), X(never_signalled), X(join_receiver), X(lock_across_receive), X(gather_missing), X(fewer_rounds), X(one_of_two), X(halo_first), X(min_for_sum), X(prints_first),
    X(neighbours_missing), X(one_sends_twice), X(stop_twice), X(barrier_left), X(worker_tag), X(numbered_receive), X(numbered_send), X(numbered_source), X(rows_and_columns),
    X(wildcard_untold), X(consensus), X(test_loop_copy), X(serialized), X(waitany_null), X(testsome_null), X(window_poll),
};

int main(int argc, char **argv) {
    int provided;
    int is_serialized = argc > 1 && strcmp(argv[1], "serialized") == 0;
    MPI_Init_thread(&argc, &argv, is_serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (unsigned i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (argc > 1 && strcmp(KERNELS[i].name, argv[1]) == 0) KERNELS[i].run();
    MPI_Finalize();
    return 0;
}
