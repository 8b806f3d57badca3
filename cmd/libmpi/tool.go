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

// The tool interface: it can be used before MPI_Init and after MPI_Finalize, has codes
// of its own, and never calls an error handler.

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

// toolUsers are the calls of MPI_T_init_thread that MPI_T_finalize has not undone.
var toolUsers atomic.Int32

// tooled is a call of the tool interface between its start and its end.
func tooled(f func() int32) int32 {
	return atAnyTime(func() int32 {
		if toolUsers.Load() == 0 {
			return toolNotInitialized
		}
		return f()
	})
}

// atAnyTime is tooled at any time. Memory that is not there is an invalid argument.
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

// toolNumber stores how many there are of something.
func toolNumber(out uintptr, n int) int32 {
	return tooled(func() int32 {
		if putInt("num", out, n) != nil {
			return toolInvalid
		}
		return success
	})
}

// toolIndex stores the index of what has a name, of n that name tells.
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

// tell stores a result that the caller may not want to know.
func tell[T any](p uintptr, v T) {
	if p >= firstAddress {
		*(*T)(pointer(p)) = v
	}
}

// tellText stores a string in as many bytes as length says there are, and how many it
// needs. A caller that gives no room is told that only.
func tellText(p, length uintptr, s string) {
	if length < firstAddress {
		return
	}
	room := (*int32)(pointer(length))
	if p >= firstAddress && *room > 0 {
		_ = putText("text", p, int(*room), s) // there is room, and p is an address
	}
	*room = int32(len(s) + 1)
}

// toolEnum is the meaning of the values of a variable.
type toolEnum struct {
	name  string
	items []string // by value
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

// noEvent is a call about events, or sources of them: there are none, so that no index has one, no
// name, and no registration or instance was ever given.
func noEvent(code int32) int32 { return tooled(func() int32 { return code }) }

// How many variables there are.
var numControls, numMeasures = len(tool.Controls), len(tool.Measures)

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

// onCategory is a call on a category.
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
		tell(cvars, int32(len(tool.Controls)))
		tell(pvars, int32(len(tool.Measures)))
		tell(cats, int32(0))
		return success
	})
}

// list stores the first numbers of n, as many as there is room for.
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
