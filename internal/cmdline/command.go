package cmdline

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Command is a program, or a command of one: the function that runs it, and the data that its
// completions for shells and its man page are made of. Its flags are package flag's. The usage of a
// flag is no text but the kind of its value, as in completions, or empty: the texts are in Help,
// which is written by hand, and Faults compares the two.
type Command struct {
	Name     string        // as it is typed
	Also     []string      // its names in other programs, whose users get a hint
	Help     string        // all of it; empty: it is in that of the command above
	Args     string        // the kind of its arguments; empty: none, unless Program
	Flags    *flag.FlagSet // of NewFlags; nil: it has none
	Commands []*Command
	Hidden   bool // only the program itself uses it
	Program  bool // the first argument is another program, whose flags follow it

	Check   func(args []string) error // returns what is wrong with the arguments and flags
	Run     func(args []string, out, errs io.Writer) (status int, err error)
	Unknown func(word string) string // returns advice for an unknown command; "" and nil: similar names
}

// Kinds of values and arguments. Others are words with | between them.
const (
	File = "`FILE`"
	Dir  = "`DIR`"
	Host = "`HOST`"
	User = "`USER`"
	Job  = "`JOB`" // the name of a job that runs here
)

// StatusUsage is the exit status for a wrong command line.
const StatusUsage = 2

// NewFlags returns a command's flags. It prints nothing by itself.
func NewFlags() *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// ExactArgs returns the Check of a command that has exactly n arguments; what describes them in the
// message.
func ExactArgs(n int, what string) func(args []string) error {
	return func(args []string) error {
		if len(args) != n {
			return fmt.Errorf("give %s, not %d", what, len(args))
		}
		return nil
	}
}

// wrong is a mistake in the command line.
type wrong struct{ error }

func (w wrong) Unwrap() error { return w.error }

// UsageError marks an error that Run returns as one of the command line: the status is StatusUsage,
// and the message says how to get help.
func UsageError(err error) error { return wrong{err} }

// NeedsCommand is the Run of a command that does nothing without a subcommand.
func (c *Command) NeedsCommand([]string, io.Writer, io.Writer) (int, error) {
	return 0, UsageError(fmt.Errorf("give a command: %s", strings.Join(c.known(), ", ")))
}

// Execute runs a program with its arguments, and returns the exit status.
func (c *Command) Execute(args []string, out, errs io.Writer) int {
	if WantsVersion(args) && c.find("version") != nil {
		args = append([]string{"version"}, args[1:]...)
	}
	return c.execute(c.Name, c.Help, args, out, errs)
}

// execute runs the command whose full name is path, or one below it. help is that of the nearest
// command above, used if c has none itself.
func (c *Command) execute(path, help string, args []string, out, errs io.Writer) int {
	help = cmp.Or(c.Help, help)
	if len(args) > 0 {
		if sub := c.find(args[0]); sub != nil {
			return sub.execute(path+" "+sub.Name, help, args[1:], out, errs)
		}
	}
	rest, err := c.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, help)
		return 0
	}
	status := 0
	if err != nil {
		err = wrong{err}
	} else {
		status, err = c.Run(rest, out, errs)
	}
	if err == nil {
		return status
	}
	fmt.Fprintf(errs, "%s: %v\n", path, err)
	if !errors.As(err, new(wrong)) {
		return cmp.Or(status, 1)
	}
	words := strings.Fields(path)
	topic := append(words[1:], "")[0]
	fmt.Fprintln(errs, "Try:", strings.TrimSpace(words[0]+" help "+strings.TrimPrefix(topic, "help")))
	return StatusUsage
}

func (c *Command) find(name string) *Command {
	for _, sub := range c.Commands {
		if sub.Name == name {
			return sub
		}
	}
	return nil
}

// Parse reads and checks flags, and returns the other arguments. The error is flag.ErrHelp if they
// ask for help.
func (c *Command) Parse(args []string) (rest []string, err error) {
	rest, err = c.parse(args)
	switch {
	case err != nil:
	case len(rest) > 0 && c.Args == "" && !c.Program:
		err = fmt.Errorf("%q: this command takes only flags", rest[0])
		if c.Flags != nil && c.Flags.Lookup("job") != nil {
			err = fmt.Errorf("%w; name a job with -job %s", err, rest[0])
		}
	case c.Check != nil:
		err = c.Check(rest)
	}
	return rest, err
}

// parse reads flags before, between and after other arguments, and returns those.
func (c *Command) parse(args []string) (rest []string, err error) {
	known := c.known()
	switch {
	case WantsHelp(args), c.Run == nil && len(args) == 0 && len(known) > 0:
		return nil, flag.ErrHelp
	case len(args) > 0 && len(known) > 0 && c.Args == "" && !strings.HasPrefix(args[0], "-"):
		return nil, errors.New(c.unknown(args[0], known))
	}
	f := c.Flags
	if f == nil {
		f = NewFlags()
	}
	for {
		if err := f.Parse(args); err != nil {
			return nil, unknownFlag(f, err)
		}
		if c.Program || f.NArg() == 0 {
			return append(rest, f.Args()...), nil
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
}

func (c *Command) known() (list []string) {
	for _, sub := range c.Commands {
		if !sub.Hidden {
			list = append(list, sub.Name)
		}
	}
	slices.Sort(list)
	return list
}

func (c *Command) unknown(word string, known []string) string {
	if c.Unknown != nil {
		if text := c.Unknown(word); text != "" {
			return text
		}
	}
	all := "known here: " + strings.Join(known, ", ")
	near := Nearest(word, known)
	for _, sub := range c.Commands {
		if slices.Contains(sub.Also, word) {
			near = sub.Name
		}
	}
	if near != "" {
		all = fmt.Sprintf("did you mean %q? (%s)", near, all)
	}
	return fmt.Sprintf("there is no command %q; %s", word, all)
}

// unknownFlag adds the flag that was probably meant to an error of package flag.
func unknownFlag(f *flag.FlagSet, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		return err
	}
	var known []string
	f.VisitAll(func(x *flag.Flag) { known = append(known, x.Name) })
	if near := Nearest(name, known); near != "" {
		return fmt.Errorf("%w; did you mean -%s?", err, near)
	}
	return err
}

// Nearest returns the word that was probably meant, or "".
func Nearest(word string, known []string) string {
	best, least := "", 1
	if len(word) > 3 {
		least = max(2, len(word)/3) // two letters that are swapped count as two
	}
	for _, k := range known {
		if d := levenshtein.Distance(word, k, nil); d <= least {
			best, least = k, d-1
		}
	}
	return best
}
