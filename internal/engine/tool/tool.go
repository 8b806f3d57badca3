// Package tool has MPI_T (MPI-4.1, 15.3): control variables and performance variables. They can be
// used before Init and after Finalize, and no error handler is told of their errors.
package tool

import (
	"fmt"
	"os"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Traceback is the environment variable that makes error messages name the place in the library
// where the error was found.
const Traceback = "IMPI_TRACEBACK"

// The scopes of control variables: which procs must set one, with the values of the MPI ABI.
const (
	Constant = 1 // no proc can set it
	Local    = 3 // each proc by itself
	AllEqual = 7 // all procs must set the same value
)

// The errors of variables, with the codes of MPI_T in the MPI ABI.
var (
	// ErrNotNow means that the variable can only be written before Init.
	ErrNotNow = error(&mpierr.Error{Code: 1014, Class: mpierr.Access, Text: "the variable can be written before Init only"})
	// ErrNever means that the variable cannot be written.
	ErrNever = error(&mpierr.Error{Code: 1015, Class: mpierr.Access, Text: "the variable cannot be written"})
	// ErrNotAccessible means that the variable has no value before Init or after Finalize.
	ErrNotAccessible = error(&mpierr.Error{Code: 1002, Class: mpierr.Other, Text: "the variable has no value before Init or after Finalize"})
	// ErrValue means a value that the variable cannot have.
	ErrValue = error(&mpierr.Error{Code: 1006, Class: mpierr.Arg, Text: "the variable cannot have this value"})
)

// ControlVariable is a control variable of MPI_T: a setting of the library (MPI-4.1, 15.3.6).
type ControlVariable struct {
	Name, Description string
	Switch            bool // 0 is off and 1 is on; otherwise the variable is a number
	Scope             int
	read              func() (int, error)
	write             func(v int) error
}

// Read returns the value that holds at present.
func (v *ControlVariable) Read() (int, error) {
	n, err := v.read()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", v.Name, err)
	}
	return n, nil
}

// Write sets the value. The error is ErrNever, ErrNotNow or ErrValue if that cannot be.
func (v *ControlVariable) Write(n int) error {
	if err := v.write(n); err != nil {
		return fmt.Errorf("%s: %w", v.Name, err)
	}
	return nil
}

// ControlVariables are all control variables, in the order of their indexes in MPI_T.
var ControlVariables = []ControlVariable{
	{
		Name: "impi_check", Description: "compare what the members of a collective operation call, and sends with their receives; set it before MPI_Init, in all procs",
		Switch: true, Scope: AllEqual,
		read: func() (int, error) {
			if f, err := proc.CurrentFigures(); err == nil {
				return number(f.Check), nil
			}
			return number(os.Getenv(proc.CheckVariable) == "1"), nil
		},
		write: func(v int) error {
			if proc.Initialized() {
				return ErrNotNow
			}
			return setSwitch(proc.CheckVariable, v)
		},
	},
	{
		Name: "impi_traceback", Description: "print where in the library a fault was found",
		Switch: true, Scope: Local,
		read:  func() (int, error) { return number(os.Getenv(Traceback) != ""), nil },
		write: func(v int) error { return setSwitch(Traceback, v) },
	},
	ofJob("impi_packet_data", "most bytes of data in a packet to another site", func(f *proc.Figures) int { return f.PacketData }),
	ofJob("impi_ackmark", "packets to another site after which an acknowledgement is asked for", func(f *proc.Figures) int { return f.AckMark }),
	ofJob("impi_hiwater", "packets to another site that may be without acknowledgement", func(f *proc.Figures) int { return f.HiWater }),
}

// ofJob returns a variable that the launcher sets for all procs before they start.
func ofJob(name, description string, value func(f *proc.Figures) int) ControlVariable {
	return ControlVariable{
		Name: name, Description: description, Scope: Constant,
		read: func() (int, error) {
			f, err := proc.CurrentFigures()
			if err != nil {
				return 0, ErrNotAccessible
			}
			return value(&f), nil
		},
		write: func(int) error { return ErrNever },
	}
}

// setSwitch sets an environment variable to 0 or 1, in the copy that Go's runtime keeps.
func setSwitch(name string, v int) error {
	switch v {
	case 0:
		return os.Unsetenv(name)
	case 1:
		return os.Setenv(name, "1")
	}
	return ErrValue
}

func number(on bool) int {
	if on {
		return 1
	}
	return 0
}
