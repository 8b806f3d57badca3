package site

import (
	"github.com/openimpi/impi/config"
)

// Spin returns a wait setting in the form that procs and switches read.
func Spin(w config.Wait) string {
	if w.Auto {
		return "auto"
	}
	return w.Spin.String()
}
