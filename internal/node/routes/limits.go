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

// Resume is how long a connection of a job that begins may take to be resumed.
func Resume(job *config.Job) time.Duration { return resumeLimit(job.Limits) }

func resumeLimit(l config.Limits) time.Duration {
	if l.Resume > 0 {
		return l.Resume
	}
	return config.DefaultResume
}
