package mpierr

import "strconv"

// Class is an MPI error class, with its number in MPI's standard ABI, or an error code of a class:
// every class is also a code.
type Class int

// LastCode is the largest code that MPI reserves; a program's own classes
// are above it.
const LastCode Class = 16383

// The classes of User-Level Failure Mitigation, which MPI's standard ABI does not number.
const (
	ProcFailed Class = iota + 101
	ProcFailedPending
	Revoked
)

var extensions = [...]struct{ name, text string }{
	{"MPIX_ERR_PROC_FAILED", "process has failed"},
	{"MPIX_ERR_PROC_FAILED_PENDING", "request is pending, and a process has failed that might match it"},
	{"MPIX_ERR_REVOKED", "communicator is revoked"},
}

// OfLoss reports whether an operation with this class has failed because procs are lost, or because
// the communicator is revoked, so that the program can continue.
func (c Class) OfLoss() bool { return c.extends() }

func (c Class) extends() bool { return c >= ProcFailed && c <= Revoked }

// String returns the class's name in MPI.
func (c Class) String() string {
	if c.extends() {
		return extensions[c-ProcFailed].name
	}
	if c >= 0 && int(c) < len(classes) {
		return classes[c].name
	}
	return "MPI error class " + strconv.Itoa(int(c))
}

// Text describes the class in a few words, as MPI_Error_string does.
func (c Class) Text() string {
	if c.extends() {
		return extensions[c-ProcFailed].text
	}
	if c >= 0 && int(c) < len(classes) {
		return classes[c].text
	}
	return "unknown error class " + strconv.Itoa(int(c))
}

// Valid reports whether MPI or Failure Mitigation defines the class.
func (c Class) Valid() bool { return c >= 0 && int(c) < len(classes) || c.extends() }
