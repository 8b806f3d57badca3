package cmdline

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/version"
)

// NewProgram returns a program with flags and a command that prints its version and the lines of
// about.
func NewProgram(name, help, about string) *Command {
	c := &Command{Name: name, Help: help, Flags: NewFlags()}
	c.Commands = append(c.Commands, &Command{Name: "version", Hidden: true, Run: func(_ []string, out, _ io.Writer) (int, error) {
		_, err := fmt.Fprintf(out, "%s %s\n%s", name, version.String(), about)
		return 0, err
	}})
	c.AddCompletion("")
	return c
}

// AddHelp adds the command help to a program, after all others. It prints the help of a command, or
// a text of more, by its name.
func (c *Command) AddHelp(more map[string]string) {
	known := slices.Sorted(slices.Values(append(c.known(), slices.Collect(maps.Keys(more))...)))
	help := &Command{Name: "help", Args: "`" + strings.Join(known, "|") + "`"}
	help.Check = func(args []string) error {
		if len(args) > 0 && !slices.Contains(known, args[0]) {
			return fmt.Errorf("there is no help on %q; the topics are %s", args[0], strings.Join(known, ", "))
		}
		return nil
	}
	help.Run = func(args []string, out, _ io.Writer) (int, error) {
		text := c.Help
		if len(args) > 0 {
			text = more[args[0]]
			if sub := c.find(args[0]); sub != nil {
				text = cmp.Or(sub.Help, c.Help)
			}
		}
		_, err := io.WriteString(out, text)
		return 0, err
	}
	c.Commands = append(c.Commands, help)
}
