package node

import (
	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/poll"
)

// spinSetting is a wait setting as procs and switches read it.
func spinSetting(w config.Wait) string {
	if w.Auto {
		return "auto"
	}
	return w.Spin.String()
}

// newSpinner is how a switch of the site waits.
func newSpinner(w config.Wait) (poll.Spinner, error) { return poll.NewSpinner(spinSetting(w)) }
