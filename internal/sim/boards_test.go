package sim

import (
	"strings"
	"testing"
)

// TestBoards runs collective operations of all kinds on the board of a host, of all its procs and of
// some, with blocks that fit into an entry, into a room and into a half.
func TestBoards(t *testing.T) {
	text := "seed 1\njob direct=yes boards=yes\nsite hosts=4\nprocs 4\n" +
		"split w new=c1,c2 colors=0,1,0,1 keys=0,0,0,0\n"
	for _, comm := range []string{"w", "c1"} {
		for _, n := range []string{"1", "300", "9000"} {
			text += "barrier " + comm + "\n"
			for _, op := range []string{
				"bcast C id=1 root=2 type=int32 counts=N", "gather C id=2 root=2 type=int32 counts=N", "scatter C id=3 root=2 type=int32 counts=N",
				"allgather C id=4 type=int32 counts=N", "alltoall C id=5 type=int32 counts=N", "reduce C id=6 root=2 type=int32 counts=N", "allreduce C id=7 type=int32 counts=N",
			} {
				text += strings.NewReplacer("C", comm, "N", n).Replace(op) + "\n"
			}
		}
	}
	text += "free c1\nfree c2\n"
	for _, boards := range []bool{true, false} {
		if !boards {
			text = strings.Replace(text, " boards=yes", "", 1)
		}
		c, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for c.Seed = range uint64(20) {
			v := Run(c, Options{Trace: 40})
			if v.Failure != nil {
				t.Fatalf("seed %d: %v\n%s", c.Seed, v.Failure, v.Trace)
			}
			if used := v.Coverage["jobs with boards"] > 0; used != boards {
				t.Fatalf("seed %d: the board was used: %v", c.Seed, used)
			}
		}
	}
}
