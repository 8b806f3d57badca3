//go:build cgo && !386 && !arm

package main

import (
	"errors"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/abi/handles"
	"github.com/openimpi/impi/internal/engine/tool"
)

var controlHandles = handles.NewTable[*tool.ControlVariable](handles.ToolControl)

func controlName(i int) string { return tool.ControlVariables[i].Name }

func controlInfo(index int32, name, nameLen, verbosity, t, enumtype, desc, descLen, bind, scope uintptr) int32 {
	return tooled(func() int32 {
		if index < 0 || int(index) >= len(tool.ControlVariables) {
			return toolInvalidIndex
		}
		v := &tool.ControlVariables[index]
		tellText(name, nameLen, v.Name)
		if v.Switch {
			tell(verbosity, int32(verbosityUser))
			tell(enumtype, uintptr(enumOffOn))
		} else {
			tell(verbosity, int32(verbosityTuner))
			tell(enumtype, uintptr(enumNull))
		}
		tell(t, uintptr(typeInt))
		tellText(desc, descLen, v.Description)
		tell(bind, int32(bindNothing))
		tell(scope, int32(v.Scope))
		return success
	})
}

func allocateControl(index int32, object, out, count uintptr) int32 {
	return tooled(func() int32 {
		switch {
		case index < 0 || int(index) >= len(tool.ControlVariables):
			return toolInvalidIndex
		case out < firstAddress:
			return toolInvalid
		}
		h := controlHandles.Add(&tool.ControlVariables[index])
		if h == 0 {
			return toolMemory
		}
		tell(count, int32(1))
		tell(out, h)
		return success
	})
}

func freeControl(p uintptr) int32 {
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

func onControl(h, p uintptr, f func(v *tool.ControlVariable, p *int32) int32) int32 {
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

func readControl(v *tool.ControlVariable, p *int32) int32 {
	n, err := v.Read()
	if err == nil {
		*p = int32(n)
	}
	return toolCode(err)
}

func writeControl(v *tool.ControlVariable, p *int32) int32 { return toolCode(v.Write(int(*p))) }

func toolCode(err error) int32 {
	var e *mpierr.Error
	switch {
	case err == nil:
		return success
	case errors.As(err, &e):
		return int32(e.Code)
	}
	return toolInvalid
}
