package loglimit

import "github.com/hashicorp/go-hclog"

// SetLevel gives a log another level, and calls say while the log has that of both which shows more.
func SetLevel(log hclog.Logger, level hclog.Level, say func()) {
	log.SetLevel(min(level, log.GetLevel()))
	say()
	log.SetLevel(level)
}

// Tell logs what came of a reload for the operator who has asked for it, so it is logged at a higher level
// if the log would not show it otherwise.
func Tell(log hclog.Logger, level hclog.Level, text string, args ...any) {
	log.Log(max(level, log.GetLevel()), text, args...)
}
