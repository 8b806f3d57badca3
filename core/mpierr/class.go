package mpierr

import "strconv"

// Class is an MPI error class, numbered as MPI's standard ABI has it, or a code of one: every class
// is a code.
type Class int

// LastCode is the largest code that MPI reserves; a program's own classes
// are above it.
const LastCode Class = 16383

// String returns the class's name in MPI.
func (c Class) String() string {
	if c >= 0 && int(c) < len(classes) {
		return classes[c].name
	}
	return "MPI error class " + strconv.Itoa(int(c))
}

// Text describes the class in a few words, as MPI_Error_string does.
func (c Class) Text() string {
	if c >= 0 && int(c) < len(classes) {
		return classes[c].text
	}
	return "unknown error class " + strconv.Itoa(int(c))
}

// Valid reports whether MPI defines the class.
func (c Class) Valid() bool { return c >= 0 && int(c) < len(classes) }
