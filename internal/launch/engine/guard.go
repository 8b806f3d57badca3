package engine

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed guard.sh
var guardText string

// guard is the script without its comment lines, since a shell reads it byte by byte on each
// machine.
var guard = sync.OnceValue(func() string {
	var b strings.Builder
	for line := range strings.Lines(guardText) {
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
})

// shell is the command that is run on a machine: it reads a line from standard input and executes
// it. Every user's shell can parse it, since it is in single quotes.
var shell = []string{"sh", "-c", `IFS= read -r line; eval "$line"`}

// shellLine is shell as one word, for a program that makes the user's shell parse it.
var shellLine = "exec " + shell[0] + " " + shell[1] + " " + quote(shell[2])

// over marks the end of the script behind the first line.
const over = "end of script"

// loader is the first line; it reads the script. A shell's read takes single bytes, so nothing
// after the script is lost. A shell that reads its program from a pipe may read ahead.
var loader = `newline=$(printf '\nx'); newline=${newline%x}; script=; ` +
	`while IFS= read -r line && [ "$line" != ` + quote(over) + ` ]; do script=$script$line$newline; done; eval "$script"`

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// newMark returns the word that distinguishes what the guard reports from what programs print. It
// is not a secret: a program that prints it on purpose can deceive only the user who has started
// it.
func newMark() string { return "impi-" + rand.Text() }

func (c Command) check() error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return fmt.Errorf("there is no program to start")
	}
	if strings.ContainsAny(c.Secret, "\n\x00") {
		return fmt.Errorf("the secret has a line break or a NUL in it")
	}
	for _, text := range append(append([]string{c.Dir}, c.Args...), c.Env...) {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("%q has a NUL in it, which no program can be given", text)
		}
		for line := range strings.Lines(text) {
			if strings.TrimSuffix(line, "\n") == over || strings.HasSuffix(line, "'"+over) {
				return fmt.Errorf("%q has a line %q, which ends what engines send to machines", text, over)
			}
		}
	}
	for _, variable := range c.Env {
		if name, _, found := strings.Cut(variable, "="); !found || !isName(name) {
			return fmt.Errorf("%q is no NAME=value that a shell can set", variable)
		}
	}
	return nil
}

func isName(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// script returns what is written to the shell of one machine, or to the shells of several, each of
// which finds by the variable which machine it is.
func (c Command) script(mark string, machines []Machine, serves []int, which string, sweep bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	b.WriteString(loader + "\n")
	for _, variable := range c.Env {
		name, value, _ := strings.Cut(variable, "=")
		line("export %s=%s", name, quote(value))
	}
	place := func(i int) string {
		return fmt.Sprintf("%s=%s %s=%d", NameVariable, quote(machines[i].Name), IndexVariable, i)
	}
	if which == "" {
		line("export %s", place(serves[0]))
	} else {
		line(`case "$%s" in`, which)
		for _, i := range serves {
			line("%s) export %s ;;", quote(machines[i].Name), place(i))
		}
		line("esac")
	}
	line("mark=%s dir=%s grace=%d sweep=%d", mark, quote(c.Dir), int(c.grace()/time.Second), map[bool]int{true: 1}[sweep])
	words := make([]string, len(c.Args))
	for i, a := range c.Args {
		words[i] = quote(a)
	}
	line("set -- %s", strings.Join(words, " "))
	b.WriteString(guard())
	line("%s", over)
	line("%s", c.Secret)
	return b.String()
}

const defaultGrace = 5 * time.Second

func (c Command) grace() time.Duration {
	if c.Grace < time.Second {
		return defaultGrace
	}
	return c.Grace.Truncate(time.Second)
}

type said struct {
	word   string // here, folder, missing, up, end
	number int    // here: index of the machine; end: status
}

func parseSaid(text string) (s said, ok bool) {
	word, number, more := strings.Cut(text, " ")
	switch word {
	case "here", "end":
		n, err := strconv.ParseUint(number, 10, 31)
		return said{word, int(n)}, err == nil
	case "up", "folder", "missing":
		return said{word: word}, !more
	}
	return said{}, false
}
