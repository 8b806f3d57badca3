// Package asked reads command lines as all programs of this repository do: the words by which
// they are asked what they are, instead of being told to work, and flags among other arguments.
package asked

import (
	"flag"
	"slices"
)

// Help reports whether the first argument asks for help.
func Help(args []string) bool { return first(args, "help", "-h", "-help", "--help") }

// Version reports whether the first argument asks for the version.
func Version(args []string) bool { return first(args, "version", "-version", "--version") }

// Mixed parses flags before, between and behind other arguments, which it returns.
func Mixed(f *flag.FlagSet, args []string) (rest []string, err error) {
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
