package routes

import (
	"time"

	"github.com/openimpi/impi/config"
)

// SilenceLimit returns the maximum time without any sign of another machine.
func SilenceLimit(job *config.Job) time.Duration {
	if s := job.Limits.Silence; s > 0 {
		return s
	}
	return config.DefaultSilence
}

// ResumeLimit returns the maximum time to resume a connection of a job that begins.
func ResumeLimit(job *config.Job) time.Duration { return resumeLimit(job.Limits) }

func resumeLimit(l config.Limits) time.Duration {
	if l.Resume > 0 {
		return l.Resume
	}
	return config.DefaultResume
}
