//go:build cgo && !386 && !arm

package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/openimpi/impi/internal/engine/tool"
)

// The tool interface: it can be used before MPI_Init and after MPI_Finalize, has its own error
// codes, and never calls an error handler.

// The codes of the tool interface.
const (
	toolNotInitialized = 1003
	toolMemory         = 1005
	toolInvalid        = 1006
	toolInvalidIndex   = 1007
	toolInvalidItem    = 1008
	toolInvalidSession = 1009
	toolInvalidHandle  = 1010
	toolInvalidName    = 1011
	toolNoWrite        = 1016
	toolNoStartStop    = 1017
)

// toolUsers counts the calls of MPI_T_init_thread that MPI_T_finalize has not undone.
var toolUsers atomic.Int32

// tooled executes a call of the tool interface, which must have been initialized.
func tooled(f func() int32) int32 {
	return atAnyTime(func() int32 {
		if toolUsers.Load() == 0 {
			return toolNotInitialized
		}
		return f()
	})
}

// atAnyTime executes a call of the tool interface at any time. A fault in memory is reported as an
// invalid argument.
func atAnyTime(f func() int32) (code int32) {
	guard()
	defer func() {
		if r := recover(); r != nil {
			if os.Getenv(tool.Traceback) != "" {
				fmt.Fprintf(os.Stderr, "%v\n%s", r, debug.Stack())
			}
			code = toolInvalid
		}
	}()
	return f()
}

func initializeTool(_ int32, provided uintptr) int32 {
	return atAnyTime(func() int32 {
		if put("provided", provided, int32(threadMultiple)) != nil {
			return toolInvalid
		}
		toolUsers.Add(1)
		return success
	})
}

func finalizeTool() int32 {
	return atAnyTime(func() int32 {
		for n := toolUsers.Load(); n > 0; n = toolUsers.Load() {
			if toolUsers.CompareAndSwap(n, n-1) {
				return success
			}
		}
		return toolNotInitialized
	})
}

func toolNumber(out uintptr, n int) int32 {
	return tooled(func() int32 {
		if putInt("num", out, n) != nil {
			return toolInvalid
		}
		return success
	})
}

// toolIndex stores the index i below n for which name(i) is the string at p.
func toolIndex(p, out uintptr, n int, name func(i int) string) int32 {
	return tooled(func() int32 {
		wanted, err := text("name", p, 1<<10)
		if err != nil || out < firstAddress {
			return toolInvalid
		}
		for i := range n {
			if name(i) == wanted {
				*(*int32)(pointer(out)) = int32(i)
				return success
			}
		}
		return toolInvalidName
	})
}

// tell stores a result, unless the caller has passed no address for it.
func tell[T any](p uintptr, v T) {
	if p >= firstAddress {
		*(*T)(pointer(p)) = v
	}
}

// tellText stores a string, cut to the *length bytes at p, and sets *length to the bytes that it
// needs. If p is no address or *length is 0, it only does the latter.
func tellText(p, length uintptr, s string) {
	if length < firstAddress {
		return
	}
	room := (*int32)(pointer(length))
	if p >= firstAddress && *room > 0 {
		_ = putText("text", p, int(*room), s) // cannot fail: there is room, and p is an address
	}
	*room = int32(len(s) + 1)
}

type toolEnum struct {
	name  string
	items []string // names of the values, by value
}

// offOn is the only enumeration. Its handle is a number that no object has.
var offOn = toolEnum{"impi_switch", []string{"off", "on"}}

const (
	enumNull  = 0
	enumOffOn = firstAddress
)

func enumInfo(h, num, name, length uintptr) int32 {
	return tooled(func() int32 {
		if h != enumOffOn {
			return toolInvalidHandle
		}
		tell(num, int32(len(offOn.items)))
		tellText(name, length, offOn.name)
		return success
	})
}

func enumItem(h uintptr, index int32, value, name, length uintptr) int32 {
	return tooled(func() int32 {
		switch {
		case h != enumOffOn:
			return toolInvalidHandle
		case index < 0 || int(index) >= len(offOn.items):
			return toolInvalidItem
		}
		tell(value, index)
		tellText(name, length, offOn.items[index])
		return success
	})
}

// noEvent is a call about events or their sources. There are none, so no index, name, registration
// or instance is valid.
func noEvent(code int32) int32 { return tooled(func() int32 { return code }) }

var numControls, numMeasures = len(tool.ControlVariables), len(tool.PerformanceVariables)

// toolLock guards what handles of the tool interface stand for.
var toolLock sync.Mutex

// Verbosities, scopes and bindings.
const (
	verbosityUser  = 9
	verbosityTuner = 17
	bindNothing    = 1
)

// There is one category, which has all variables. It never changes.
const (
	categoryName = "impi"
	categoryDesc = "what can be set and measured of the library"
	categories   = 1
)

func nameOfCategory(int) string { return categoryName }

func onCategory(index int32, f func() int32) int32 {
	return tooled(func() int32 {
		if index < 0 || index >= categories {
			return toolInvalidIndex
		}
		return f()
	})
}

func categoryInfo(index int32, name, nameLen, desc, descLen, cvars, pvars, cats uintptr) int32 {
	return onCategory(index, func() int32 {
		tellText(name, nameLen, categoryName)
		tellText(desc, descLen, categoryDesc)
		tell(cvars, int32(len(tool.ControlVariables)))
		tell(pvars, int32(len(tool.PerformanceVariables)))
		tell(cats, int32(0))
		return success
	})
}

// list stores the numbers from 0 up to, but not including, n, as many as there is room for.
func list(index, room int32, out uintptr, n int) int32 {
	return onCategory(index, func() int32 {
		if room < 0 {
			return toolInvalid
		}
		to, err := array[int32]("indices", out, min(n, int(room)))
		if err != nil {
			return toolInvalid
		}
		for i := range to {
			to[i] = int32(i)
		}
		return success
	})
}
