package conformance

import (
	"slices"
)

var outputCases = []Case{
	{ID: "P-LOG-01", Name: "log-level", Kind: Correct, run: logLevel,
		Rule: "it does not send log lines that are less severe than the level that the node wants"},
	{ID: "P-LOG-02", Name: "log-lines", Kind: Correct, run: logLines,
		Rule: "each JSON line of its log has a level and a message that a node understands"},
}

// life makes the plugin do, in a short run, everything that may be worth a log line.
func (e *env) life(level string) *node {
	n := e.configured(nodeOptions{level: level})
	address := e.listen(n)
	if answer := e.dial(n, address); answer.GetError() != nil {
		e.Fatalf("it cannot dial its own listener: %s", answer.GetError().GetReason())
	}
	e.dial(n, "nonsense")
	n.settle()
	n.fds.Close() // its node has died
	n.gone(e.wait)
	n.ended(e.wait)
	return n
}

func logLevel(e *env) {
	for _, c := range []struct{ wanted, said string }{{"error", "errors only"}, {"off", "nothing"}} {
		for _, line := range e.life(c.wanted).err.all() {
			if level, mistaken := levelOf(line); level != "" && !mistaken && level != "error" {
				e.Fatalf("the node wants %s and gets: %.200s", c.said, line)
			}
		}
	}
}

func logLines(e *env) {
	n := e.life("trace")
	seen, plain := []string{}, 0
	for _, line := range n.err.all() {
		level, mistaken := levelOf(line)
		switch {
		case mistaken:
			e.Fatalf("a node cannot see how severe this is: %.200s", line)
		case level == "":
			plain++
		case !slices.Contains(seen, level):
			seen = append(seen, level)
		}
	}
	if plain > 0 {
		e.Logf("%d lines state no level; a node logs them as debugging noise", plain)
	}
	e.Logf("levels seen: %q", seen)
}
