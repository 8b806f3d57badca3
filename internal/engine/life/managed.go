package life

import (
	"errors"
	"os"

	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
)

type managed struct {
	machine.Local
	self *bootstrap.Managed
}

// Exit ends the program, and makes the process manager end the other procs with the same status.
func (m managed) Exit(code int, why string) {
	machine.Report(why) // before the process manager ends this one, too
	m.self.Abort(code)
	m.Local.Exit(code, "")
}

// joinManaged joins the job of the processes that the process manager has started. A process that
// is alone in its job needs no library of the process manager.
func joinManaged() (*proc.Process, error) {
	m, err := bootstrap.Join()
	if errors.Is(err, bootstrap.ErrNoLibrary) && mayBeAlone(os.Getenv) == nil {
		return alone()
	}
	if err != nil {
		return nil, err
	}
	if m.Control == nil {
		return alone()
	}
	return Join(proc.NodeConn{Conn: m.Control}, managed{self: m})
}
