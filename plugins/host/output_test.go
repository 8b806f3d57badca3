package host

import (
	"testing"

	"github.com/hashicorp/go-hclog"
)

// A line that a plugin prints becomes a line of the node's log, under the plugin's name and
// at the level that the plugin gave it in any of the forms; the node leaves it out if its
// own level is higher.
func TestLogLevels(t *testing.T) {
	levels := []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error}
	for _, wanted := range levels {
		t.Run(wanted.String(), func(t *testing.T) {
			t.Parallel()
			w := builtin("tcp", "all levels")
			w.Logger = hclog.New(&hclog.LoggerOptions{Name: "node", Level: wanted, Output: w.log, JSONFormat: true})
			w.start(t)
			w.log.wait(t, `"@message":"the end"`)
			w.log.wait(t, `"@message":"the end of the logs"`)
			w.log.mu.Lock()
			defer w.log.mu.Unlock()
			for _, level := range levels {
				for _, form := range []string{"sdk", "std", "text", "hclog", "slog", "zap", "plain"} {
					if form == "plain" && level != hclog.Debug {
						continue
					}
					message := `"@message":"` + form + " " + level.String() + `"`
					right := w.log.has(message, `"@level":"`+level.String()+`"`, `"@module":"node.tcp"`)
					if right != (level >= wanted) || w.log.has(message) != right {
						t.Errorf("%s at level %s: in the log with its name and level: %v, at all: %v", form, level, right, w.log.has(message))
					}
				}
			}
		})
	}
}

// Every line of a panic is an error, so that it appears also where the node logs only
// errors.
func TestLogOfPanic(t *testing.T) {
	w := builtin("tcp", "")
	w.Logger = hclog.New(&hclog.LoggerOptions{Name: "node", Level: hclog.Error, Output: w.log, JSONFormat: true})
	p := w.start(t)
	dialInto(t, p, "crash")
	w.log.wait(t, `"@level":"error"`, "panic: dialled into the abyss", `"@module":"node.tcp"`)
	w.log.wait(t, `"@level":"error"`, "goroutine ", "[running]:")
	w.log.wait(t, `"@level":"error"`, "main_test.go:") // the stack
}

// TestLogLevelChanges: a plugin that has begun at one level sends the lines of another one once the
// node has told it.
func TestLogLevelChanges(t *testing.T) {
	w := builtin("tcp", "")
	w.Logger.SetLevel(hclog.Info)
	p := w.start(t)
	dialInto(t, p, "say")
	w.log.wait(t, `"@message":"what was dialled"`)
	if w.log.has(`"@message":"a detail"`) {
		t.Error("the node shows what it should not")
	}
	w.Logger.SetLevel(hclog.Debug)
	if err := p.TellLogLevel(soon(t)); err != nil {
		t.Fatal(err)
	}
	dialInto(t, p, "say")
	w.log.wait(t, `"@message":"a detail"`, `"@level":"debug"`)
}
