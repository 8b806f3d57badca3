// Package manual makes man pages and completions for shells of the help texts of commands, so that
// they say what the commands say.
package manual

import (
	"regexp"
	"slices"
	"strings"
)

// Command is a program, or a command of one, with its help text.
type Command struct {
	Name string // "impi-node", "impi-node status"
	Help string
}

// Flag is a flag in a help text.
type Flag struct {
	Name  string // "-json"
	Value string // what comes after it, as "FILE"; empty: nothing
	Text  string // the beginning of its description
}

// flagLine is a line of the list of flags: two blanks, the flag, its value, and at least two more
// blanks.
var flagLine = regexp.MustCompile(`(?m)^  (--?[a-z][a-z-]*)(?:, -[a-zA-Z])?(?: ([A-Z][A-Z.|]*|[a-z]+))?  +(\S.*)$`)

// inUsage is a flag in brackets in a line of usage, which has no line of its own.
var inUsage = regexp.MustCompile(`[\[|](-[a-z][a-z-]*)`)

// Flags are those that a command's help lists, and then those that its usage names alone.
func (c *Command) Flags() (list []Flag) {
	for _, m := range flagLine.FindAllStringSubmatch(c.Help, -1) {
		list = append(list, Flag{m[1], m[2], m[3]})
	}
	for _, line := range c.usage() {
		if !strings.Contains(c.Name, " ") && words.MatchString(first(line, c.Name)) {
			continue // it is of one of the program's commands
		}
		for _, m := range inUsage.FindAllStringSubmatch(line, -1) {
			if !slices.ContainsFunc(list, func(f Flag) bool { return f.Name == m[1] }) {
				list = append(list, Flag{Name: m[1]})
			}
		}
	}
	return list
}

// usage are the lines of usage of a command.
func (c *Command) usage() (lines []string) {
	for line := range strings.Lines(c.Help) {
		if strings.HasPrefix(strings.TrimPrefix(strings.ToLower(line), "usage: "), "  "+c.Name+" ") || strings.HasPrefix(line, "  "+c.Name+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// words matches the alternatives that follow a command's name in a line of usage.
var words = regexp.MustCompile(`^[a-z]+(\|[a-z]+)*$`)

// Words are what can come right after the command's name, besides flags and files.
func (c *Command) Words() (list []string) {
	for _, line := range c.usage() {
		if alternatives := first(line, c.Name); words.MatchString(alternatives) {
			for _, w := range strings.Split(alternatives, "|") {
				if !slices.Contains(list, w) {
					list = append(list, w)
				}
			}
		}
	}
	return list
}

// first is the word after a command's name in a line of usage.
func first(line, name string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, name)), " ")
	return word
}

// Title is the first sentence of a command's help, without its name and up to a colon.
func (c *Command) Title() string {
	text, _, _ := strings.Cut(c.Help, "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, c.Name), ":")
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i]
	}
	if i := strings.Index(text, ": "); i > 0 {
		text = text[:i]
	}
	return strings.TrimRight(strings.TrimSpace(text), ".:")
}
