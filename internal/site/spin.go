package site

import (
	"github.com/openimpi/impi/config"
)

// EncodeWait returns a wait setting in the form that procs and switches read.
func EncodeWait(w config.Wait) string {
	if w.Auto {
		return "auto"
	}
	return w.Spin.String()
}
