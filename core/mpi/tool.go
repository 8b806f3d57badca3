package mpi

import (
	"slices"

	"github.com/openimpi/impi/internal/engine/tool"
)

// Which procs have to set a control variable.
const (
	ScopeConstant = tool.Constant // none can
	ScopeLocal    = tool.Local    // each proc independently
	ScopeAllEqual = tool.AllEqual // all procs, to the same value
)

// Classes of performance variables.
const (
	ClassLevel   = tool.Level   // current state
	ClassCounter = tool.Counter // count since Init
)

// The errors of control variables.
var (
	// ErrToolNotNow means that the variable can be written before Init only.
	ErrToolNotNow = tool.ErrNotNow
	// ErrToolNever means that the variable cannot be written.
	ErrToolNever = tool.ErrNever
	// ErrToolNotAccessible means that the variable has no value before Init or after Finalize.
	ErrToolNotAccessible = tool.ErrNotAccessible
	// ErrToolValue means a value that is not valid for the variable.
	ErrToolValue = tool.ErrValue
)

// ControlVariable is a setting of the library (MPI_T_cvar). It has a Name, a Description, a Scope,
// and is a Switch, which is 0 or 1, or a number.
type ControlVariable tool.ControlVariable

// ControlVariables returns all control variables. They can be used at any time, before Init as
// well.
func ControlVariables() []ControlVariable {
	return inner[ControlVariable](slices.Clone(tool.ControlVariables))
}

// Read returns the value. Errors are not passed to an error handler (MPI_T_cvar_read).
func (v *ControlVariable) Read() (int, error) { return (*tool.ControlVariable)(v).Read() }

// Write sets the value. Errors are not passed to an error handler (MPI_T_cvar_write).
func (v *ControlVariable) Write(n int) error { return (*tool.ControlVariable)(v).Write(n) }

// PerformanceVariable is a count or measurement of the library itself (MPI_T_pvar). It has a Name,
// a Description and a Class. All of them always run, and cannot be reset.
type PerformanceVariable tool.PerformanceVariable

// PerformanceVariables returns all performance variables. Measure returns most of their values at
// one moment.
func PerformanceVariables() []PerformanceVariable {
	return inner[PerformanceVariable](slices.Clone(tool.PerformanceVariables))
}

// Read returns the value, 0 before Init and after Finalize (MPI_T_pvar_read).
func (v *PerformanceVariable) Read() uint64 { return (*tool.PerformanceVariable)(v).Read() }
