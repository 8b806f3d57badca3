//go:build cgo && !386 && !arm

package main

import "C"

import "github.com/openimpi/impi/internal/engine/tool"

// There is one category, which has all variables. It never changes.
const (
	categoryName = "impi"
	categoryDesc = "what can be set and measured of the library"
	categories   = 1
)

//export abiTCategoryGetNum
func abiTCategoryGetNum(out uintptr) int32 { return toolNumber(out, categories) }

//export abiTCategoryChanged
func abiTCategoryChanged(out uintptr) int32 { return toolNumber(out, 0) }

//export abiTCategoryGetIndex
func abiTCategoryGetIndex(name, out uintptr) int32 {
	return toolIndex(name, out, categories, func(int) string { return categoryName })
}

// onCategory is a call on a category.
func onCategory(index int32, f func() int32) int32 {
	return tooled(func() int32 {
		if index < 0 || index >= categories {
			return toolInvalidIndex
		}
		return f()
	})
}

//export abiTCategoryGetInfo
func abiTCategoryGetInfo(index int32, name, nameLen, desc, descLen, cvars, pvars, cats uintptr) int32 {
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

//export abiTCategoryGetCvars
func abiTCategoryGetCvars(index, room int32, out uintptr) int32 {
	return list(index, room, out, len(tool.Controls))
}

//export abiTCategoryGetPvars
func abiTCategoryGetPvars(index, room int32, out uintptr) int32 {
	return list(index, room, out, len(tool.Measures))
}

//export abiTCategoryGetEvents
func abiTCategoryGetEvents(index, room int32, out uintptr) int32 { return list(index, room, out, 0) }

//export abiTCategoryGetCategories
func abiTCategoryGetCategories(index, room int32, out uintptr) int32 {
	return list(index, room, out, 0)
}

//export abiTCategoryGetNumEvents
func abiTCategoryGetNumEvents(index int32, out uintptr) int32 {
	return onCategory(index, func() int32 {
		if putInt("num_events", out, 0) != nil {
			return toolInvalid
		}
		return success
	})
}
