package cmdline

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestFirstWord(t *testing.T) {
	for line, want := range map[string][2]bool{
		"": {}, "-n 4 help": {}, "helper": {}, "-v": {},
		"help": {true, false}, "-h": {true, false}, "-help x": {true, false}, "--help": {true, false},
		"version": {false, true}, "-version": {false, true}, "--version -h": {false, true},
	} {
		args := strings.Fields(line)
		if got := [2]bool{WantsHelp(args), WantsVersion(args)}; got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// TestExecute: which command gets which arguments, with one dash and with two, and what is said of
// wrong ones.
func TestExecute(t *testing.T) {
	root := sample()
	for line, want := range map[string]string{
		"":                             "0 run ",
		"-n 4 show -json":              "0 run show,-json",
		"--n=4 -- -x":                  "0 run -x",
		"show list -json":              "3 list ",
		"show list -colour-of-text x":  "3 list ",
		"make a -in d b --in=e c":      "0 make a,b,c",
		"secret a":                     "0 secret a",
		"show":                         "0 " + root.Commands[0].Help,
		"show list --help":             "0 " + root.Commands[0].Help,
		"show -h":                      "0 " + root.Commands[0].Help,
		"make help":                    "0 " + root.Commands[1].Help,
		"-help":                        "0 " + root.Help,
		"mkae":                         "2 prog: there is no command \"mkae\"; did you mean \"make\"? (known here: make, show)\nTry: prog help\n",
		"show lsit":                    "2 prog show: there is no command \"lsit\"; did you mean \"list\"? (known here: all, list)\nTry: prog help show\n",
		"show other":                   "2 prog show: there is no command \"other\"; known here: all, list\nTry: prog help show\n",
		"make -inn x":                  "2 prog make: flag provided but not defined: -inn; did you mean -in?\nTry: prog help make\n",
		"show list x":                  "2 prog show list: \"x\": this command takes only flags; name a job with -job x\nTry: prog help show\n",
		"-n x":                         "2 prog: invalid value \"x\" for flag -n: parse error\nTry: prog help\n",
		"completion csh":               "2 prog completion: there is no command \"csh\"; did you mean \"zsh\"? (known here: bash, fish, zsh)\nTry: prog help completion\n",
		"completion install":           "1 prog completion install: write: completion install FOLDER\n",
		"-quiet -colour-of-everything": "2 prog: flag provided but not defined: -colour-of-everything\nTry: prog help\n",
	} {
		var b strings.Builder
		status := sample().Execute(strings.Fields(line), &b, &b)
		if got := fmt.Sprint(status, " ", b.String()); got != want {
			t.Errorf("%q: %s\nwant %s", line, got, want)
		}
	}
}

// TestVersion: each way of asking is the command, and before others only.
func TestVersion(t *testing.T) {
	for line, want := range map[string]int{"version": 7, "-version": 7, "--version": 7, "-n 1 version": 0} {
		root := sample()
		root.Commands = append(root.Commands, &Command{Name: "version", Run: func([]string, io.Writer, io.Writer) (int, error) { return 7, nil }})
		if got := root.Execute(strings.Fields(line), io.Discard, io.Discard); got != want {
			t.Errorf("%q: %d", line, got)
		}
	}
}

// TestFaults: help texts and flags are compared in both directions.
func TestFaults(t *testing.T) {
	c := sample()
	c.Commands[1].Help += "\nFlags:\n  -x, -y WHAT  are not there\n"
	c.Commands[0].Help = strings.NewReplacer("-job NAME ", "-job", "|-nft", "|-ntf").Replace(c.Commands[0].Help)
	got := c.Faults()
	slices.Sort(got)
	if want := []string{
		`prog make has no flag -x, of which its help tells`,
		`prog make has no flag -y, of which its help tells`,
		`prog show: whether -job has a value is not as the help says ("")`,
		`the help of prog show does not tell of -nft`,
		`the help of prog show says prog show list -ntf, which there is not`,
	}; !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if got := sample().Faults(); len(got) > 0 {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}
