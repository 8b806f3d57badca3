package tool

import (
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/engine/calls"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

// The classes of performance variables, with the values of the MPI ABI (MPI-4.1, 15.3.7).
const (
	Level   = 2 // the current value
	Counter = 7 // a count since Init
	Timer   = 9 // time since Init, in nanoseconds
)

// PerformanceVariable is a performance variable. All are read-only and always started.
type PerformanceVariable struct {
	Name, Description string
	Class             int
	value             func(f *proc.Figures) uint64
	account           func(a *wireup.Account) uint64 // used instead of value
}

// Read returns the value, 0 before Init and after Finalize.
func (v *PerformanceVariable) Read() uint64 {
	if v.account != nil {
		if a := proc.CurrentAccount(); a != nil {
			return v.account(a)
		}
		return 0
	}
	f, err := proc.CurrentFigures()
	if err != nil {
		return 0
	}
	return v.value(&f)
}

// PerformanceVariables are all performance variables. The values that a node serves for a proc are
// here too (docs/metrics.md).
var PerformanceVariables = slices.Concat([]PerformanceVariable{
	of("impi_messages_sent", "messages to other procs and to this one", Counter, func(f *proc.Figures) uint64 { return f.Messages }),
	of("impi_requests_completed", "sends and receives that are complete, those of the library's own included", Counter, func(f *proc.Figures) uint64 { return f.Completed }),
	of("impi_data_bytes_sent", "bytes of data in these messages, whatever way they went", Counter, func(f *proc.Figures) uint64 { return f.Data }),
	of("impi_bytes_sent", "bytes that have left by sockets and rings", Counter, func(f *proc.Figures) uint64 { return f.Sent }),
	of("impi_bytes_received", "bytes that have come by sockets and rings", Counter, func(f *proc.Figures) uint64 { return f.Received }),
	of("impi_links", "links to other procs, without an agent between", Level, func(f *proc.Figures) uint64 { return uint64(f.Links) }),
	of("impi_unexpected_messages", "messages that wait for a receive", Level, func(f *proc.Figures) uint64 { return uint64(f.Unexpected) }),
	of("impi_unexpected_bytes", "bytes of these messages that are in the proc's memory", Level, func(f *proc.Figures) uint64 { return uint64(f.UnexpectedBytes) }),
	of("impi_posted_receives", "receives that wait for a message", Level, func(f *proc.Figures) uint64 { return uint64(f.Posted) }),
	of("impi_buffered_bytes", "bytes of the memory of MPI_Buffer_attach that are taken", Level, func(f *proc.Figures) uint64 { return uint64(f.Buffered) }),
	of("impi_sleeps", "how often the proc has gone to sleep in a call of MPI, after polling", Counter, func(f *proc.Figures) uint64 { return f.Sleeps }),
	of("impi_sleep_time", "nanoseconds for which it has slept there", Timer, func(f *proc.Figures) uint64 { return uint64(f.Slept) }),
	of("impi_retransmits", "TCP segments and QUIC packets of this proc's links that had to be sent again", Counter, func(f *proc.Figures) uint64 { return f.Retransmits }),
}, ofClasses(), ofCauses())

func of(name, description string, class int, value func(*proc.Figures) uint64) PerformanceVariable {
	return PerformanceVariable{Name: name, Description: description, Class: class, value: value}
}

const counted = "; 0 unless the job file has metrics { calls = true } or a report"

func ofClasses() (list []PerformanceVariable) {
	for _, class := range calls.Classes {
		sum := func(value func(*wireup.CallSum) uint64) func(*wireup.Account) uint64 {
			return func(a *wireup.Account) (n uint64) {
				for i := range a.Calls {
					if a.Calls[i].Class == class {
						n += value(&a.Calls[i])
					}
				}
				return n
			}
		}
		list = append(list,
			PerformanceVariable{Name: "impi_calls_" + word(class), Description: "calls of MPI of the class " + class + counted, Class: Counter,
				account: sum(func(c *wireup.CallSum) uint64 { return c.Calls })},
			PerformanceVariable{Name: "impi_call_time_" + word(class), Description: "nanoseconds in calls of MPI of the class " + class + counted, Class: Timer,
				account: sum(func(c *wireup.CallSum) uint64 { return uint64(c.Time) })})
	}
	return list
}

func ofCauses() (list []PerformanceVariable) {
	for _, cause := range proc.WaitCauseNames() {
		list = append(list, PerformanceVariable{
			Name: "impi_wait_time_" + word(cause), Description: "nanoseconds in calls of MPI blocked by " + cause + counted, Class: Timer,
			account: func(a *wireup.Account) (n uint64) {
				for _, w := range a.Waits {
					if w.Cause == cause {
						n += uint64(w.Time)
					}
				}
				return n
			},
		})
	}
	return list
}

func word(name string) string { return strings.NewReplacer(" ", "_", "-", "_").Replace(name) }
