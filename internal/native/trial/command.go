// Package trial is the subcommand native of impi-node: it builds the shim for a site's own MPI, and
// tries it.
package trial

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/native"
)

// Help is what the subcommand says of itself.
//
//go:embed help.txt
var Help string

// The exit statuses.
const (
	ok    = 0
	bad   = 1
	usage = 2
)

// rank is the hidden command that the launcher starts: Selftest by a shim.
const rank = "rank"

// command is one run of the subcommand.
type command struct {
	cc, file, launch string
	json             bool
	out, complaints  io.Writer
}

// Run runs the subcommand.
func Run(args []string, out, complaints io.Writer) (status int) {
	if len(args) == 0 || cmdline.WantsHelp(args) {
		fmt.Fprint(out, Help)
		return ok
	}
	c := command{out: out, complaints: complaints}
	does, flags := c.verb(args[0])
	if does == nil {
		fmt.Fprintf(complaints, "impi-node native: unknown command %q; write build or test\nTry: impi-node help native\n", args[0])
		return usage
	}
	if args[0] == rank && len(args) == 2 {
		return native.Selftest(args[1], out, complaints)
	}
	flags.SetOutput(io.Discard)
	err := flags.Parse(args[1:])
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("it takes flags only, not %q", flags.Arg(0))
	}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, Help)
		return ok
	}
	if err != nil {
		fmt.Fprintf(complaints, "impi-node native %s: %v\nTry: impi-node help native\n", args[0], err)
		return usage
	}
	if err := does(context.Background()); err != nil {
		fmt.Fprintf(complaints, "impi-node native %s: %v\n", args[0], err)
		return bad
	}
	return ok
}

func (c *command) verb(name string) (does func(context.Context) error, flags *flag.FlagSet) {
	flags = flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&c.cc, "cc", "mpicc", "")
	switch name {
	case "build":
		does = c.build
		flags.StringVar(&c.file, "o", "", "")
	case "test":
		does = c.test
		flags.StringVar(&c.launch, "launch", "", "")
		flags.BoolVar(&c.json, "json", false, "")
	case rank:
		does = func(context.Context) error { return errors.New("it needs the shim") }
	}
	return does, flags
}

// build prints whose MPI it is, and where the shim for it is.
func (c *command) build(ctx context.Context) error {
	path, info, err := native.Build(ctx, c.cc, c.says)
	if err != nil {
		return err
	}
	if c.file != "" {
		if err := copyTo(c.file, path); err != nil {
			return err
		}
		path = c.file
	}
	fmt.Fprintf(c.out, "%s\n%s\n", strings.TrimSpace(info.Vendor+" "+info.Version), path)
	return nil
}

func (c *command) says(what string) { fmt.Fprintln(c.complaints, "impi-node:", what) }

// copyTo copies the shim into a file, of which nobody sees a part.
func copyTo(file, shim string) error {
	b, err := os.ReadFile(shim)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".shim-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when all went well
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
