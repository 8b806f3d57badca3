// Package report is how a node speaks to its operator: the log, and what it waits for.
package report

import (
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/loglimit"
)

const (
	firstReport = 2 * time.Second // until an operator begins to wonder
	nextReport  = 10 * time.Second
)

// NewLogger makes the logger that a site's file asks for. The limiter is to be closed
// at the end.
func NewLogger(c config.Log, w io.Writer) (hclog.Logger, *loglimit.Limiter) {
	return loglimit.New(hclog.LoggerOptions{
		Name: "impi-node", Level: hclog.LevelFromString(c.Level), JSONFormat: c.Format == "json", Output: w,
	})
}

// While tells the operator at intervals what a node waits for, until stop is
// called. what may be called by another goroutine; empty means nothing.
func While(log hclog.Logger, deadline time.Time, what func() string) (stop func()) {
	return Every(nextReport, log, deadline, what)
}

// Every is While with an interval between two reports.
func Every(interval time.Duration, log hclog.Logger, deadline time.Time, what func() string) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		level := hclog.Info
		for wait := firstReport; ; wait, level = interval, hclog.Warn {
			select {
			case <-quit:
				return
			case <-time.After(wait):
			}
			if s := what(); s != "" {
				log.Log(level, "waiting for "+s, "left", max(0, time.Until(deadline)).Round(time.Second))
			}
		}
	}()
	return func() { close(quit); <-done }
}

// Quiet is a logger for parts whose progress is a detail to the operator: what
// they log as info becomes debug. What they pass on by Log, such as the lines of a
// plugin, keeps its level.
type Quiet struct{ hclog.Logger }

// Info logs a detail.
func (q Quiet) Info(msg string, args ...any) { q.Debug(msg, args...) }

// Named stays quiet.
func (q Quiet) Named(name string) hclog.Logger { return Quiet{q.Logger.Named(name)} }

// With stays quiet.
func (q Quiet) With(args ...any) hclog.Logger { return Quiet{q.Logger.With(args...)} }
