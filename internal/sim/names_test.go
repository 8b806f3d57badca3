package sim

import (
	"strings"
	"testing"
)

// naming is two jobs that share a name server, one of two sites and one of one, and a world that
// the first spawns.
const naming = `seed 1
job names=2
site hosts=1
site hosts=1 slots=1
site hosts=1
procs 2 1 1
`

// TestNames runs programs about names, each of which has one possible outcome.
func TestNames(t *testing.T) {
	for name, program := range map[string]string{
		"seen by all":            "publish 0 heat text=1\nlookup 2 heat\nunpublish 1 heat\nlookup 2 heat\n",
		"of another job":         "publish 0 heat text=1\nunpublish 2 heat\npublish 2 heat text=2\nlookup 1 heat\n",
		"in scopes":              "publish 0 heat scope=x text=1\npublish 0 heat text=2\nlookup 2 heat scope=x\nlookup 2 heat\n",
		"of the job alone":       "publish 0 heat scope=job text=1\nlookup 1 heat scope=job\nlookup 2 heat scope=job\n",
		"no room":                "publish 0 a text=1\npublish 0 b text=1\npublish 2 c text=1\nunpublish 1 a\npublish 2 c text=1\nlookup 0 c\n",
		"of a lost connection":   "publish 0 heat text=1\nsever 0\nlookup 2 heat\nlookup 0 heat\nrejoin 0\nlookup 2 heat\n",
		"taken meanwhile":        "publish 0 heat text=1\nsever 0\npublish 2 heat text=2\nrejoin 0\nlookup 0 heat\nunpublish 2 heat\nsever 0\nrejoin 0\nlookup 0 heat\n",
		"whose end comes late":   "publish 0 heat text=1\nsever 0 late=yes\nlookup 2 heat\nrejoin 0\npause 2 20ms\nlookup 2 heat\n",
		"whose answers are lost": "publish 0 heat lost=yes text=1\npublish 0 heat lost=yes text=2\nlookup 2 heat lost=yes\nunpublish 0 heat lost=yes\n",
		"of spawned procs":       "spawn a world=c new=x root=1 procs=1\npublish 0 heat scope=job text=1\nlookup 3 heat scope=job\nunpublish 3 heat scope=job\npublish 3 cold text=1\nunpublish 0 cold\ndisconnect x\n",
	} {
		text := naming + program
		if !strings.Contains(program, "spawn") {
			text = strings.Replace(text, "procs 2 1 1", "procs 2 1", 1)
		}
		c, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v := Run(c, Options{Trace: 40, Twice: true}); v.Failure != nil {
			t.Errorf("%s: %v\n%s", name, v.Failure, v.Trace)
		}
	}
}

// TestNamesAreJudged: an outcome that differs from the model's is found.
func TestNamesAreJudged(t *testing.T) {
	c, err := Parse(strings.Replace(naming, "procs 2 1 1", "procs 2 1", 1) + "publish 0 a text=1\npublish 0 b text=1\npublish 0 c text=1\n")
	if err != nil {
		t.Fatal(err)
	}
	v := runTwisted(c, 0, func(x *execution) { x.shared.Room = 3 })
	if v.Failure == nil || v.Failure.Oracle != "result" || !strings.Contains(v.Failure.Error(), "publish 0 c") {
		t.Errorf("%v", v.Failure)
	}
}
