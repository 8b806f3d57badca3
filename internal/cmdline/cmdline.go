// Package cmdline has what the command lines of all programs of this repository have in common: the
// words that ask for help or the version, and flags among other arguments.
package cmdline

import (
	"flag"
	"slices"
)

// WantsHelp reports whether the first argument asks for help.
func WantsHelp(args []string) bool { return first(args, "help", "-h", "-help", "--help") }

// WantsVersion reports whether the first argument asks for the version.
func WantsVersion(args []string) bool { return first(args, "version", "-version", "--version") }

// ParseMixed parses flags before, between and after other arguments, and returns those.
func ParseMixed(f *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
}

func first(args []string, words ...string) bool {
	return len(args) > 0 && slices.Contains(words, args[0])
}
