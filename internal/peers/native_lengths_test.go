package peers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
)

// lengths is a program whose members disagree on the length of broadcasts, and that goes on. The
// argument is how many of them think as the root does.
const lengths = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static int rank;
static void bcast(const char *what, int n)
{
	int class, buf[10] = {0};
	MPI_Error_class(MPI_Bcast(buf, n, MPI_INT, 0, MPI_COMM_WORLD), &class);
	printf("rank %d, %s: %s\n", rank, what, class == MPI_SUCCESS ? "nothing" : class == MPI_ERR_TRUNCATE ? "truncated" : class == MPI_ERR_COUNT ? "count" : "other");
}
int main(int argc, char **argv)
{
	int sum, one, like = atoi(argv[1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) { // at first C does not know the memory
		bcast("less", rank < like ? 1 : 10);
		bcast("more", rank < like ? 10 : 1);
	}
	for (int i = 0; i < 100; i++) {
		one = rank == i % 4, sum = 0;
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Bcast(&one, 1, MPI_INT, i % 4, MPI_COMM_WORLD);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (sum != 4)
			printf("turn %d: the sum is %d\n", i, sum);
	}
	printf("rank %d: the sum is %d\n", rank, sum);
	return MPI_Finalize();
}
`

// TestBcastOfOtherLength: whoever expects another length than the root of a broadcast sends is
// told, and takes part all the same, so that later operations find the members in step: among the
// procs of one site's MPI, and where the broadcast goes on to another site.
func TestBcastOfOtherLength(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	program := compileWith(t, k, t.TempDir(), "lengths", lengths)
	for name, sites := range map[string][]string{
		"Open MPI": {openMPISite + always}, "MPICH": {mpichSite + always},
		"both": {mpichSite + always, openMPISite + always}, "both, turned": {openMPISite + always, mpichSite + always},
	} {
		for like := 1; like <= len(sites); like++ {
			t.Run(fmt.Sprintf("%s %d", name, like), func(t *testing.T) {
				out, status := inProcs(t, k, 4, program, []string{fmt.Sprint(like)}, sites...)
				if status != 0 {
					t.Errorf("status %d", status)
				}
				for rank := range 4 {
					less, more := "nothing", "nothing"
					if rank >= like {
						less, more = "count", "truncated"
					}
					for says, times := range map[string]int{
						fmt.Sprintf("rank %d, less: %s\n", rank, less): 3, fmt.Sprintf("rank %d, more: %s\n", rank, more): 3, fmt.Sprintf("rank %d: the sum is 4\n", rank): 1,
					} {
						if n := strings.Count(out, says); n != times {
							t.Errorf("%d times %q, want %d:\n%s", n, says, times, out)
						}
					}
				}
			})
		}
	}
}
