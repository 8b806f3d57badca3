package node

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/mpi"
)

// fateVariable says what becomes of the procs of program "fate": when rank 2 dies, how,
// and what the others do with errors: "finalize SIGSEGV fatal".
const fateVariable = "IMPI_TEST_FATE"

const doomed = 2 // the rank that dies; before it has one, the proc of that number at its site

// fate is a job in which one proc dies while the others wait for it.
func fate() {
	words := strings.Fields(os.Getenv(fateVariable))
	when, how, errors := words[0], words[1], words[2]
	if when == "start" && os.Getenv("IMPI_SITE_PROC") == "1" && os.Getenv("IMPI_SITE") == "beta" {
		die(how)
	}
	if errors == "fatal" { // as in C
		check(mpi.SetDefaultErrhandler(mpi.ErrorsAreFatal))
	}
	fmt.Println("pid", os.Getpid())
	w := initialize()
	everybody(w) // all are linked now
	fmt.Println("linked")
	me := w.Rank()
	switch {
	case me == doomed && when == "alone": // nobody needs it in a hurry
		die(how)
	case me == doomed && when == "after":
		finalize()
		die(how)
	case me == doomed:
		for from := range w.Size() {
			if from != me {
				_, err := mpi.Recv(w, make([]int64, 1), from, 2)
				check(err)
			}
		}
		die(how)
	case when == "alone":
		hang()
	case when != "after":
		check(mpi.Send(w, []int64{1}, doomed, 2))
	}
	if when == "recv" {
		_, err := mpi.Recv(w, make([]int64, 1), doomed, 3)
		check(err)
	}
	fmt.Println("finalizing")
	finalize()
}

// die ends this proc as how says.
func die(how string) {
	switch how {
	case "exit0":
		os.Exit(0)
	case "exit3":
		os.Exit(3)
	case "abort":
		mpi.Abort(7, "on purpose")
	case "SIGKILL":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "SIGSEGV":
		crash(syscall.SIGSEGV)
	case "SIGABRT":
		crash(syscall.SIGABRT)
	}
	hang()
}

// crash has a signal kill this proc as it would a program in C: of most signals Go makes
// a panic.
func crash(s syscall.Signal) {
	var byDefault [4]uint64 // struct sigaction of the kernel: handler, flags, restorer, mask
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	if errno != 0 {
		panic(errno)
	}
	_ = syscall.Kill(os.Getpid(), s)
}
