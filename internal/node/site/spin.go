package site

import (
	"github.com/openimpi/impi/config"
)

// Spin is a wait setting as procs and switches read it.
func Spin(w config.Wait) string {
	if w.Auto {
		return "auto"
	}
	return w.Spin.String()
}
