package calls

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	got := parse(`goroutine 1 [syscall]:
golang.org/x/sys/unix.EpollWait(0x7, {0xc0001, 0x8, 0x8}, 0xffffffffffffffff)
	golang.org/x/sys/unix/zsyscall_linux.go:71 +0x4c
github.com/openimpi/impi/internal/engine/proc.(*Process).doze(0xc000002)
	github.com/openimpi/impi/internal/engine/proc/progress.go:150 +0x33
github.com/openimpi/impi/internal/engine/p2p.Recv(...)
	github.com/openimpi/impi/internal/engine/p2p/sendrecv.go:10
github.com/openimpi/impi/core/mpi.Recv[...](0xc000004?, {0xc0001, 0x1, 0x1}, 0x3, 0x7)
	github.com/openimpi/impi/core/mpi/p2p.go:33 +0x12
main.exchange(0x1)
	/src/heat/heat.go:88 +0x1d
github.com/openimpi/impi/core/mpi.Init(...)
	github.com/openimpi/impi/core/mpi/init.go:3
main.main()
	/src/heat/main.go:12 +0x1d

goroutine 5 [sync.Cond.Wait]:
sync.(*Cond).Wait(0x0?)
	sync/cond.go:71 +0x85
github.com/openimpi/impi/internal/engine/proc.(*Process).watch(0xc000002)
	github.com/openimpi/impi/internal/engine/proc/progress.go:50 +0x33
github.com/openimpi/impi/core/mpi.(*Comm).Barrier.func2(0xc000004)
	github.com/openimpi/impi/core/mpi/coll.go:31 +0x12
github.com/openimpi/impi/core/mpi.(*Comm).Barrier(0xc000004)
	github.com/openimpi/impi/core/mpi/coll.go:33 +0x12
main.worker(...)
	/src/heat/heat.go:9
created by main.main in goroutine 1
	/src/heat/main.go:11 +0x1d

goroutine 6 [running]:
github.com/openimpi/impi/core/mpi.Wtime()
	github.com/openimpi/impi/core/mpi/time.go:33 +0x12
main.busy()
	/src/heat/heat.go:19 +0x1

goroutine 17 [syscall, locked to thread]:
github.com/openimpi/impi/internal/engine/proc.(*Process).doze(0xc000002)
	github.com/openimpi/impi/internal/engine/proc/progress.go:150 +0x33
main.on({0x7f, 0x4}, 0x0, 0xc00)
	github.com/openimpi/impi/cmd/libmpi/call.go:50 +0x2
main.abiWinCreate.func1()
	github.com/openimpi/impi/cmd/libmpi/calls.go:320 +0x9
main.abiWinCreate(0x7ffd, 0x8)
	github.com/openimpi/impi/cmd/libmpi/calls.go:321 +0x9
_cgoexp_2e3_abiWinCreate(0x7ffd1)
	_cgo_gotypes.go:3121 +0x2f

goroutine 18 [syscall, locked to thread]:
github.com/openimpi/impi/internal/engine/proc.(*Process).doze(0xc000002)
	github.com/openimpi/impi/internal/engine/proc/progress.go:150 +0x33
github.com/openimpi/impi/core/mpi.(*Comm).Shrink(0xc000004)
	github.com/openimpi/impi/core/mpi/communicators.go:275 +0x12
main.extCommShrink.func1(0xc000004)
	github.com/openimpi/impi/cmd/libmpi/comm.go:145 +0x9
main.extCommShrink(0x7ffd, 0x8)
	github.com/openimpi/impi/cmd/libmpi/comm.go:139 +0x9
`)
	want := []Call{
		{"mpi.Recv", "/src/heat/heat.go:88"}, {"mpi.Comm.Barrier", "/src/heat/heat.go:9"}, {Name: "MPI_Win_create"}, {Name: "MPIX_Comm_shrink"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNobodyWaits(t *testing.T) {
	if got := Waiting(); got != nil {
		t.Errorf("%+v", got)
	}
}
