package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/file"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Generalized contains the functions of a generalized request: an operation of the program's own
// that is waited for like those of MPI. Each may be nil. They are called in the goroutine of the
// MPI call that needs them, and may call MPI.
type Generalized struct {
	// Query fills in the status of the operation, which is complete. It may be
	// called more than once.
	Query func(st *Status) error
	// Free is called once, last of all: when the operation is complete and
	// the request has been completed or freed.
	Free func() error
	// Cancel is called to cancel the operation, complete or not. If that works, Query reports it by
	// SetCancelled; Complete has to be called in any case.
	Cancel func(complete bool) error
}

// Pair is the operand of MinLoc and MaxLoc: a value and its location.
type Pair[V datatype.PairValue] = datatype.Pair[V]

// GroupEmpty is the group without members. It cannot be freed: Free of it does nothing, but is
// allowed, as many operations return it.
var GroupEmpty = (*Group)(proc.GroupEmpty)

// FileView is a member's view of a file: from byte Displacement on there are items of Filetype, one
// after the other, which are made of Etypes and have holes that the member does not see. Offsets
// count Etypes. Datarep is the representation of the data in the file: native, internal,
// external32, or one that was registered with RegisterDatarep.
type FileView struct {
	Displacement    int64
	Etype, Filetype *Datatype
	Datarep         string
}

// Datarep is a representation that data have in files, by functions of the program. They may call
// no function of a file.
//
// Extent returns how many bytes an element of a predefined datatype takes in a file. Read converts
// what a file has for memory, and Write the other way; without one data are in a file as in memory,
// and Extent has to say so. Name, of 1 to 127 bytes, is what views name.
type Datarep = file.Datarep

// Conversion is the task of a function of a Datarep. File contains Count elements, one after the
// other, each with its extent. In Memory they are laid out like the elements of items of Datatype,
// one item after the other, from the element at index Position on. The last item may be a part of
// one.
type Conversion = file.Conversion

func (r Remains) String() string { return meet.Remains(r).String() }

// Command is a program that Spawn starts.
type Command struct {
	Path  string   // a name without a slash is looked up; a relative path starts from the program's folder of the job file
	Args  []string // arguments, without the name of the program
	Procs int      // at least 1
	Info  *Info    // nil: none
}
