package abi

import (
	"cmp"
	"slices"
)

// Support reports whether the C library implements a function. A function that is not implemented
// returns MPI_ERR_UNSUPPORTED_OPERATION through the error handler.
type Support struct {
	Name        string `json:"name"`
	Implemented bool   `json:"implemented"`
}

// Functions returns all functions of the MPI ABI, sorted by name.
func Functions() []Support {
	all := slices.Clone(functions[:])
	slices.SortFunc(all, func(a, b Support) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Name returns the name of the function that has a number in the generated C code.
func Name(number int) string {
	if number < 0 || number >= len(functions) {
		return "MPI"
	}
	return functions[number].Name
}
