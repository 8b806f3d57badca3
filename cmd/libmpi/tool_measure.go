//go:build cgo && !386 && !arm

package main

import (
	"github.com/openimpi/impi/internal/abi/handles"
	"github.com/openimpi/impi/internal/engine/tool"
)

// allHandles is MPI_T_PVAR_ALL_HANDLES.
const allHandles = 1

type measureHandle struct {
	v       *tool.PerformanceVariable
	session uintptr
}

var (
	measureHandles = handles.NewTable[measureHandle](handles.ToolMeasure)
	toolSessions   = handles.NewTable[struct{}](handles.ToolSession)
)

func measureIndex(name uintptr, class int32, out uintptr) int32 {
	return toolIndex(name, out, len(tool.PerformanceVariables), func(i int) string {
		if tool.PerformanceVariables[i].Class != int(class) {
			return ""
		}
		return tool.PerformanceVariables[i].Name
	})
}

func measureInfo(index int32, name, nameLen, verbosity, class, t, enumtype, desc, descLen, bind, readonly, continuous, atomic uintptr) int32 {
	return tooled(func() int32 {
		if index < 0 || int(index) >= len(tool.PerformanceVariables) {
			return toolInvalidIndex
		}
		v := &tool.PerformanceVariables[index]
		tellText(name, nameLen, v.Name)
		tell(verbosity, int32(verbosityUser))
		tell(class, int32(v.Class))
		tell(t, uintptr(typeUnsignedLongLong))
		tell(enumtype, uintptr(enumNull))
		tellText(desc, descLen, v.Description)
		tell(bind, int32(bindNothing))
		tell(readonly, int32(1))
		tell(continuous, int32(1))
		tell(atomic, int32(0))
		return success
	})
}

func createToolSession(out uintptr) int32 {
	return tooled(func() int32 {
		if out < firstAddress {
			return toolInvalid
		}
		h := toolSessions.Add(struct{}{})
		if h == 0 {
			return toolMemory
		}
		tell(out, h)
		return success
	})
}

func freeToolSession(p uintptr) int32 {
	return tooled(func() int32 {
		if p < firstAddress {
			return toolInvalid
		}
		s := *(*uintptr)(pointer(p))
		if !toolSessions.Free(s) {
			return toolInvalidSession
		}
		toolLock.Lock()
		defer toolLock.Unlock()
		var mine []uintptr
		measureHandles.Each(func(h uintptr, m *measureHandle) {
			if m.session == s {
				mine = append(mine, h)
			}
		})
		for _, h := range mine {
			measureHandles.Free(h)
		}
		tell(p, uintptr(0))
		return success
	})
}

func allocateMeasure(s uintptr, index int32, object, out, count uintptr) int32 {
	return tooled(func() int32 {
		switch {
		case toolSessions.Get(s) == nil:
			return toolInvalidSession
		case index < 0 || int(index) >= len(tool.PerformanceVariables):
			return toolInvalidIndex
		case out < firstAddress:
			return toolInvalid
		}
		toolLock.Lock()
		defer toolLock.Unlock()
		h := measureHandles.Add(measureHandle{&tool.PerformanceVariables[index], s})
		if h == 0 {
			return toolMemory
		}
		tell(count, int32(1))
		tell(out, h)
		return success
	})
}

// onMeasure executes a call on a handle of a performance variable, in its session. v is nil for all
// handles, which are allowed only with all.
func onMeasure(s, h uintptr, all bool, f func(v *tool.PerformanceVariable) int32) int32 {
	return tooled(func() int32 {
		if toolSessions.Get(s) == nil {
			return toolInvalidSession
		}
		if h == allHandles && all {
			return f(nil)
		}
		m := measureHandles.Get(h)
		if m == nil || m.session != s {
			return toolInvalidHandle
		}
		return f(m.v)
	})
}

func freeMeasure(s, p uintptr) int32 {
	if p < firstAddress {
		return tooled(func() int32 { return toolInvalid })
	}
	return tooled(func() int32 {
		h := *(*uintptr)(pointer(p))
		return onMeasure(s, h, false, func(*tool.PerformanceVariable) int32 {
			measureHandles.Free(h)
			tell(p, uintptr(0))
			return success
		})
	})
}

// refusedOne is refused for a call that does not take all handles.
func refusedOne(s, h uintptr, code int32) int32 {
	return onMeasure(s, h, false, func(*tool.PerformanceVariable) int32 { return code })
}

// refused is a call that no variable here allows. For one handle it returns code; for all handles
// it succeeds, since such variables are left out.
func refused(s, h uintptr, code int32) int32 {
	return onMeasure(s, h, true, func(v *tool.PerformanceVariable) int32 {
		if v == nil {
			return success
		}
		return code
	})
}

func readMeasure(s, h, buf uintptr) int32 {
	return onMeasure(s, h, false, func(v *tool.PerformanceVariable) int32 {
		if buf < firstAddress {
			return toolInvalid
		}
		tell(buf, v.Read())
		return success
	})
}
