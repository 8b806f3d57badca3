package node

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/mpi"
)

func init() {
	programs["namingparent"] = func() {
		w := initialize()
		check(mpi.PublishName("of the parent", nil, "hunter2"))
		carryOut(w, order{Commands: []ordered{{Mode: "namingchild", Procs: 1}}})
		port, err := mpi.LookupName("of the child", nil)
		tellClass("the child's "+port, err)
		check(mpi.UnpublishName("of the parent", nil, ""))
		finalize()
	}
	programs["namingchild"] = func() {
		initialize()
		port, err := mpi.LookupName("of the parent", nil)
		tellClass("the parent's "+port, err)
		tellClass("publish", mpi.PublishName("of the child", nil, "child"))
		tellClass("unpublish", mpi.UnpublishName("of the child", nil, ""))
		greet(mpi.Parent(), true)
		check(mpi.Parent().Disconnect())
		finalize()
	}
}

// TestSpawnedProcsHaveTheNamesOfTheirJob: they see what the procs of the job published.
func TestSpawnedProcsHaveTheNamesOfTheirJob(t *testing.T) {
	job := testJob("namingparent", 1)
	job.Sites[0].Spawn = config.Spawn{Slots: 2}
	all := start(t, job)
	wantNone(t, all)
	out := all[0].out.String()
	for _, line := range []string{"the parent's hunter2 MPI_SUCCESS", "publish MPI_SUCCESS", "unpublish MPI_SUCCESS", "the child's  MPI_ERR_NAME"} {
		if !strings.Contains(out, "0] "+line+"\n") {
			t.Errorf("%q is missing in\n%s", line, out)
		}
	}
}
