package object

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// The predefined attributes of communicators (MPI-4.1, 9.1.2), all ints, and of windows (MPI-4.1,
// 12.2.6), with the values of the MPI ABI. They cannot be set, deleted or freed.
const (
	TagUB         comm.Keyval = 501 // the largest tag
	IO            comm.Keyval = 502 // rank that can do input and output: AnySource, which is all
	Host          comm.Keyval = 503 // rank of a host process: ProcNull, which is none
	WtimeIsGlobal comm.Keyval = 504 // 1 if the ranks' clocks are synchronised
	AppNum        comm.Keyval = 505 // place of the proc's program in the job file
	LastUsedCode  comm.Keyval = 506 // the largest error code in use
	UniverseSize  comm.Keyval = 507 // maximum number of procs of the job

	WinBase         comm.Keyval = 601
	WinDispUnit     comm.Keyval = 602
	WinSize         comm.Keyval = 603
	WinCreateFlavor comm.Keyval = 604
	WinModel        comm.Keyval = 605
)

// predefined returns the value of one of MPI's attributes of communicators; ok is false for other
// keys.
func predefined(c *proc.Comm, key comm.Keyval) (value int, ok bool) {
	if key >= comm.FirstKeyval {
		return 0, false
	}
	job := c.Process().Job
	switch key {
	case TagUB:
		return int(job.TagUB), true
	case IO:
		return proc.AnySource, true
	case Host:
		return proc.ProcNull, true
	case WtimeIsGlobal:
		return 0, true
	case AppNum:
		return job.AppNum, true
	case LastUsedCode:
		last, _ := proc.WithCodes(func(c *mpierr.Codes) (proc.Class, error) { return c.Last(), nil })
		return int(last), true
	case UniverseSize:
		return job.Size(), true
	default:
		return ofIMPI(c, key)
	}
}
