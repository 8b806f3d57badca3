// Package report tells a node's operator what happens: by the log, and by saying what the node
// waits for.
package report

import (
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/loglimit"
)

const (
	firstReport = 2 * time.Second // of waiting, after which it is mentioned
	nextReport  = 10 * time.Second
)

// NewLogger returns the logger that a site's file asks for. The limiter has to be closed at the
// end.
func NewLogger(c config.Log, w io.Writer) (hclog.Logger, *loglimit.Limiter) {
	return loglimit.New(hclog.LoggerOptions{
		Name: "impi-node", Level: hclog.LevelFromString(c.Level), JSONFormat: c.Format == "json", Output: w,
	})
}

// LogWait logs at intervals what a node waits for, until stop is called. what is called by another
// goroutine; nothing is logged while it returns an empty string.
func LogWait(log hclog.Logger, deadline time.Time, what func() string) (stop func()) {
	return LogWaitEvery(nextReport, log, deadline, what)
}

// LogWaitEvery is LogWait with an interval between two reports.
func LogWaitEvery(interval time.Duration, log hclog.Logger, deadline time.Time, what func() string) (stop func()) {
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

// QuietLogger is a logger for parts whose progress does not interest the operator: what they log as
// info is logged as debug. What they pass on by Log, such as the lines of a plugin, keeps its
// level.
type QuietLogger struct{ hclog.Logger }

// Info logs msg at level debug.
func (q QuietLogger) Info(msg string, args ...any) { q.Debug(msg, args...) }

// Named implements hclog.Logger; the new logger is QuietLogger, too.
func (q QuietLogger) Named(name string) hclog.Logger { return QuietLogger{q.Logger.Named(name)} }

// With implements hclog.Logger; the new logger is QuietLogger, too.
func (q QuietLogger) With(args ...any) hclog.Logger { return QuietLogger{q.Logger.With(args...)} }
