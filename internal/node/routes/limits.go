package routes

import (
	"time"

	"github.com/openimpi/impi/config"
)

// Silence is how long nothing may be heard of another machine.
func Silence(job *config.Job) time.Duration {
	if s := job.Limits.Silence; s > 0 {
		return s
	}
	return config.DefaultSilence
}

// Resume is how long a link or a channel may take to be resumed.
func Resume(job *config.Job) time.Duration {
	if d := job.Limits.Resume; d > 0 {
		return d
	}
	return config.DefaultResume
}
