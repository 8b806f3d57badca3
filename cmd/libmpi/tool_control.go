//go:build cgo && !386 && !arm

package main

import "C"

import (
	"os"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/abi/handles"
)

// Variables of the environment that control variables are.
const (
	checkVariable     = "IMPI_CHECK"
	tracebackVariable = "IMPI_TRACEBACK"
)

// Scopes of control variables.
const (
	scopeConstant = 1
	scopeLocal    = 3
	scopeAllEqual = 7
)

// control is a control variable: an int.
type control struct {
	name, desc string
	verbosity  int32
	enum       uintptr
	scope      int32
	read       func() (v int32, code int32)
	write      func(v int32) (code int32)
}

// ofJob is a variable that the launcher sets for all procs before they begin.
func ofJob(name, desc string, value func(f *mpi.Figures) int) control {
	return control{
		name: name, desc: desc, verbosity: verbosityTuner, scope: scopeConstant,
		read: func() (int32, int32) {
			f, err := mpi.Measure()
			if err != nil {
				return 0, toolNotAccessible
			}
			return int32(value(&f)), success
		},
		write: func(int32) int32 { return toolNever },
	}
}

var controls = [...]control{
	{
		name: "impi_check", desc: "compare what the members of a collective operation call, and sends with their receives; set it before MPI_Init, in all procs",
		verbosity: verbosityUser, enum: enumOffOn, scope: scopeAllEqual,
		read: func() (int32, int32) {
			if f, err := mpi.Measure(); err == nil {
				return cbool(f.Check), success
			}
			return cbool(os.Getenv(checkVariable) == "1"), success
		},
		write: func(v int32) int32 {
			if phase.Load() != before {
				return toolNotNow
			}
			return setSwitch(checkVariable, v)
		},
	},
	{
		name: "impi_traceback", desc: "print where in the library a fault was found",
		verbosity: verbosityUser, enum: enumOffOn, scope: scopeLocal,
		read:  func() (int32, int32) { return cbool(os.Getenv(tracebackVariable) != ""), success },
		write: func(v int32) int32 { return setSwitch(tracebackVariable, v) },
	},
	ofJob("impi_packet_data", "most bytes of data in a packet to another site", func(f *mpi.Figures) int { return f.PacketData }),
	ofJob("impi_ackmark", "packets to another site after which an acknowledgement is asked for", func(f *mpi.Figures) int { return f.AckMark }),
	ofJob("impi_hiwater", "packets to another site that may be without acknowledgement", func(f *mpi.Figures) int { return f.HiWater }),
}

// setSwitch sets a variable of the environment, which Go's runtime keeps.
func setSwitch(name string, v int32) int32 {
	var err error
	switch v {
	case 0:
		err = os.Unsetenv(name)
	case 1:
		err = os.Setenv(name, "1")
	default:
		return toolInvalid
	}
	if err != nil {
		return toolInvalid
	}
	return success
}

// controlHandles are handles of control variables.
var controlHandles = handles.NewTable[*control](handles.ToolControl)

//export abiTCvarGetNum
func abiTCvarGetNum(out uintptr) int32 { return toolNumber(out, len(controls)) }

//export abiTCvarGetIndex
func abiTCvarGetIndex(name, out uintptr) int32 {
	return toolIndex(name, out, len(controls), func(i int) string { return controls[i].name })
}

//export abiTCvarGetInfo
func abiTCvarGetInfo(index int32, name, nameLen, verbosity, t, enumtype, desc, descLen, bind, scope uintptr) int32 {
	return tooled(func() int32 {
		if index < 0 || int(index) >= len(controls) {
			return toolInvalidIndex
		}
		v := &controls[index]
		tellText(name, nameLen, v.name)
		tell(verbosity, v.verbosity)
		tell(t, uintptr(typeInt))
		tell(enumtype, v.enum)
		tellText(desc, descLen, v.desc)
		tell(bind, int32(bindNothing))
		tell(scope, v.scope)
		return success
	})
}

//export abiTCvarHandleAlloc
func abiTCvarHandleAlloc(index int32, object, out, count uintptr) int32 {
	return tooled(func() int32 {
		switch {
		case index < 0 || int(index) >= len(controls):
			return toolInvalidIndex
		case out < firstAddress:
			return toolInvalid
		}
		h := controlHandles.Add(&controls[index])
		if h == 0 {
			return toolMemory
		}
		tell(count, int32(1))
		tell(out, h)
		return success
	})
}

//export abiTCvarHandleFree
func abiTCvarHandleFree(p uintptr) int32 {
	return tooled(func() int32 {
		if p < firstAddress {
			return toolInvalid
		}
		if !controlHandles.Free(*(*uintptr)(pointer(p))) {
			return toolInvalidHandle
		}
		tell(p, uintptr(0))
		return success
	})
}

// onControl is a call on a handle of a control variable and the int at p.
func onControl(h, p uintptr, f func(v *control, p *int32) int32) int32 {
	return tooled(func() int32 {
		v := controlHandles.Get(h)
		switch {
		case v == nil:
			return toolInvalidHandle
		case p < firstAddress:
			return toolInvalid
		}
		return f(*v, (*int32)(pointer(p)))
	})
}

//export abiTCvarRead
func abiTCvarRead(h, buf uintptr) int32 {
	return onControl(h, buf, func(v *control, p *int32) int32 {
		n, code := v.read()
		if code == success {
			*p = n
		}
		return code
	})
}

//export abiTCvarWrite
func abiTCvarWrite(h, buf uintptr) int32 {
	return onControl(h, buf, func(v *control, p *int32) int32 { return v.write(*p) })
}
