// Package asked knows the words by which every program of this repository is asked what
// it is, instead of being told to work.
package asked

import "slices"

// Help tells whether the first argument asks for help.
func Help(args []string) bool { return first(args, "help", "-h", "-help", "--help") }

// Version tells whether the first argument asks for the version.
func Version(args []string) bool { return first(args, "version", "-version", "--version") }

func first(args []string, words ...string) bool {
	return len(args) > 0 && slices.Contains(words, args[0])
}
