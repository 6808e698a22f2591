/* A file that all ranks write together. Its name is the first argument. */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_File file;
    int rank, numbers[64] = {0};

    if (argc < 2)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    numbers[0] = rank;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_all(file, numbers, 64, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
