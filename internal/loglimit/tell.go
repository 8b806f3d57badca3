package loglimit

import "github.com/hashicorp/go-hclog"

// SetLevel changes the level of a log, and calls say while the log has the more verbose one of the
// old and the new level.
func SetLevel(log hclog.Logger, level hclog.Level, say func()) {
	log.SetLevel(min(level, log.GetLevel()))
	say()
	log.SetLevel(level)
}

// ReportReload logs the result of a reload for the operator who has asked for it, at a higher level
// if the log would not show it otherwise.
func ReportReload(log hclog.Logger, level hclog.Level, text string, args ...any) {
	log.Log(max(level, log.GetLevel()), text, args...)
}
