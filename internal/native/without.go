//go:build !cgo || !linux

package native

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// CanLoad reports whether this build of the program can load a site's MPI.
const CanLoad = false

// Library is the MPI library of the site, which this build cannot load.
type Library struct {
	Text       string
	Rank, Size int
}

// Load returns an error about how the program has to be built.
func Load(string) (*Library, error) {
	return nil, fmt.Errorf("%w: the program is built without cgo, which loading the site's MPI takes: build it with CGO_ENABLED=1 and a C compiler", ErrNoLibrary)
}

// Init, like all methods below, is never called, as nothing can be loaded.
func (*Library) Init() error { return ErrNoLibrary }

// Finalize is never called.
func (*Library) Finalize() error { return ErrNoLibrary }

func (*Library) onlyHome() bool { return false }

func (*Library) open([]int32, int) (Comm, error)                       { return 0, ErrNoLibrary }
func (*Library) close(Comm) error                                      { return ErrNoLibrary }
func (*Library) begin(Comm, *Phase) (request, error)                   { return none, ErrNoLibrary }
func (*Library) send(int, int32, unsafe.Pointer, int) (request, error) { return none, ErrNoLibrary }
func (*Library) poll(unsafe.Pointer, int, *arrival) (bool, error)      { return false, ErrNoLibrary }
func (*Library) recv(int32, unsafe.Pointer, int) (request, error)      { return none, ErrNoLibrary }
func (*Library) test(request) (bool, error)                            { return false, ErrNoLibrary }
func (*Library) failure(int32) error                                   { return ErrNoLibrary }
func (*Library) beginShorts() carrier                                  { return nil }

// ShortMessageCalls returns the zero value: without cgo, C code has nothing to call.
func (*Library) ShortMessageCalls() link.CarrierCalls { return link.CarrierCalls{} }
