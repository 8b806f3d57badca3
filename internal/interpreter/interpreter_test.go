package interpreter

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpi"
)

// The test is a job of its own, with one rank.
func TestMain(m *testing.M) {
	if err := mpi.Init(); err != nil {
		panic(err)
	}
	if err := mpi.World().SetErrhandler(mpi.ErrorsReturn); err != nil {
		panic(err)
	}
	status := m.Run()
	if err := mpi.Finalize(); err != nil {
		panic(err)
	}
	os.Exit(status)
}

func newInterpreter() *interpreter {
	return &interpreter{comms: map[int]*mpi.Comm{0: mpi.World()}, requests: map[int]*request{}}
}

// Commands and the answers that they must have. Hashes are of FNV-1a over the elements
// as 8 bytes each; the interpreter in C was seen to give the same.
func TestDialogue(t *testing.T) {
	in := newInterpreter()
	for _, c := range []struct{ command, want string }{
		{"ping", "ok"},
		{"info", "ok rank=0 size=1 tagub=2147483647"},
		{"isend dst=0 tag=5 n=3 seed=1 req=7", "ok"},
		{"iprobe src=any tag=any", "ok found=1 source=0 tag=5 count=3"},
		{"recv src=any tag=5 n=9", "ok source=0 tag=5 count=3 hash=ce4d99cb383b8713 first=1,8,15"},
		{"wait req=7", "ok cancelled=0"},
		{"wait req=7", "error .*there is no request 7"},
		{"irecv src=0 tag=1 type=double n=4 req=1", "ok"},
		{"test req=1", "ok done=0"},
		{"send dst=0 tag=1 type=double n=2 seed=-7", "ok"},
		{"test req=1", "ok done=1 cancelled=0 source=0 tag=1 count=2 .* first=-7,0"},
		{"irecv src=0 tag=2 n=4 req=2", "ok"},
		{"cancel req=2", "ok"},
		{"wait req=2", "ok cancelled=1"},
		{"sendrecv dst=0 stag=3 src=0 rtag=any n=1 seed=255 rn=1", "ok source=0 tag=3 count=1 .* first=255"},
		{"isend dst=0 tag=4 n=9 req=3", "ok"},
		{"recv src=0 tag=4 n=1", "error class=1[0-9] .*"},
		{"barrier", "ok"},
		{"bcast root=0 type=short n=2 seed=32767", "ok .* first=32767,6"},
		{"allreduce op=sum type=int n=2 seed=3", "ok .* first=3,10"},
		{"reduce op=concat root=0 type=int n=2 seed=4", "ok .* first=10,4"},
		{"scan op=max type=llong n=1 seed=-9", "ok .* first=-9"},
		{"reduce_scatter op=sum type=int counts=2 seed=1", "ok .* first=1,8"},
		{"gather root=0 type=int n=1 seed=6", "ok .* first=6"},
		{"scatterv root=0 type=int counts=2 seed=6", "ok .* first=6,13"},
		{"alltoallv type=int counts=1 rcounts=1 seed=8", "ok .* first=8"},
		{"gatherv root=0 counts=1,2", "error .*2 counts for 1 procs"},
		{"dup new=1", "ok member=1 rank=0 size=1"},
		{"split comm=1 color=-1 new=2", "ok member=0"},
		{"create comm=1 ranks=0 new=3", "ok member=1 rank=0 size=1"},
		{"free comm=1", "ok"},
		{"barrier comm=1", `error .*comm="1"`},
		{"send dst=0 tag=x", `error .*tag="x"`},
		{"send dst=99 tag=1", "error class=[0-9]+ .*"},
		{"recv type=colour n=1 src=-3", `error .*no type "colour"`},
		{"reduce op=average", `error .*op="average"`},
		{"dance", "error .*no such command"},
		{"", "error .*empty command"},
		{"finalize", "ok"},
	} {
		if got := in.command(c.command); !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
			t.Errorf("%s\n%s, want %s", c.command, got, c.want)
		}
	}
	if !in.ended {
		t.Error("finalize does not end it")
	}
}

// Every command of the interpreter in Go is in the one in C, and its types and
// operations.
func TestProgramInC(t *testing.T) {
	words := []string{
		"ping", "finalize", "exit", "abort", "info", "recv", "irecv", "wait", "test", "cancel", "probe", "iprobe", "sendrecv", "barrier", "bcast",
		"reduce", "allreduce", "scan", "reduce_scatter", "gather", "scatter", "allgather", "alltoall", "gatherv", "scatterv", "allgatherv",
		"alltoallv", "dup", "split", "create", "intercomm", "merge", "free",
	}
	for word := range sends {
		words = append(words, word)
	}
	for word := range isends {
		words = append(words, word)
	}
	for name := range elements {
		words = append(words, name)
	}
	for name := range ops {
		words = append(words, name)
	}
	for _, word := range words {
		if !strings.Contains(C, `"`+word+`"`) {
			t.Errorf("c/interpreter.c has no %q", word)
		}
	}
}
