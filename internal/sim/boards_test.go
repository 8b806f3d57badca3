package sim

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/soak"
)

// TestBoards runs collective operations of all kinds on the board of a host, with all of its procs
// and with some, and with blocks that fit into an entry, a room or a half, or are lent.
func TestBoards(t *testing.T) {
	text := "seed 1\njob direct=yes boards=yes\nsite hosts=4\nprocs 4\n" +
		"split w new=c1,c2 colors=0,1,0,1 keys=0,0,0,0\n"
	for _, comm := range []string{"w", "c1"} {
		for _, n := range []string{"1", "300", "5000", "9000", "40000"} {
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
		for c.Seed = range uint64(soak.Size(6, 20)) {
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

// TestBoxes sends messages of one packet and of several over links with fast boxes, and checks that
// those inside a host use them.
func TestBoxes(t *testing.T) {
	const program = "procs 2\n" +
		"message 1 from=0 to=1 comm=w tag=1 type=int32 len=3\nmessage 2 from=0 to=1 comm=w tag=1 type=int32 len=300\n" +
		"message 3 from=0 to=1 comm=w tag=1 type=int32 len=4\nmessage 4 from=1 to=0 comm=w tag=1 type=int32 len=5\n" +
		"barrier w\nisend 1\nisend 2\nisend 3\nisend 4\nrecv 1\nrecv 2\nrecv 3\nwaitall 0 s1 s2 s3\nrecv 4\nwait 1 s4\nbarrier w\n"
	for hosts, boxed := range map[string]bool{"2": true, "1,1": false} {
		c, err := Parse("seed 1\njob direct=yes boxes=yes\nsite datalen=64 hosts=" + hosts + "\n" + program)
		if err != nil {
			t.Fatal(err)
		}
		used := int64(0)
		for c.Seed = range uint64(20) {
			v := Run(c, Options{Trace: 40})
			if v.Failure != nil {
				t.Fatalf("hosts=%s, seed %d: %v\n%s", hosts, c.Seed, v.Failure, v.Trace)
			}
			used += v.Coverage["messages in fast boxes"]
		}
		if (used > 0) != boxed {
			t.Errorf("hosts=%s: %d messages in fast boxes", hosts, used)
		}
	}
}
