package cmdline

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// entry is what a help text says of a flag, beginning with a line of its own: two blanks, its names,
// its value, two blanks or more, and the text, which goes on in lines that are further to the right.
type entry struct {
	names       []string // without dashes
	value, text string
}

func entries(help string) (list []entry) {
	lines := strings.Split(help, "\n")
	for i, line := range lines {
		line, ok := strings.CutPrefix(line, "  -")
		if !ok {
			continue
		}
		head, text, _ := strings.Cut(line, "  ") // without a text the value leaves no room for it
		for _, more := range lines[i+1:] {
			if !strings.HasPrefix(more, "    ") {
				break
			}
			text += " " + more
		}
		e := entry{text: strings.Join(strings.Fields(text), " ")}
		parts := strings.Split("-"+head, ", ")
		if slices.ContainsFunc(parts, func(part string) bool { return !strings.HasPrefix(part, "-") }) {
			continue // a sentence
		}
		for _, part := range parts {
			name, value, _ := strings.Cut(part, " ")
			name, _, _ = strings.Cut(strings.TrimLeft(name, "-"), "=")
			e.names, e.value = append(e.names, name), value
		}
		list = append(list, e)
	}
	return list
}

// Wrap breaks the lines of flags in a help text that are wider than most columns. What follows a
// flag goes on below it, as far to the right as it begins.
func Wrap(help string, most int) string {
	const tab = "    \t" // of package flag
	var b strings.Builder
	for line := range strings.Lines(help) {
		line = strings.TrimSuffix(line, "\n")
		indent, columns, rest := tab, 8, strings.TrimPrefix(line, tab)
		if flag, text, ok := strings.Cut(strings.TrimPrefix(line, "  -"), "  "); rest == line && ok && strings.HasPrefix(line, "  -") {
			rest = strings.TrimLeft(text, " ")
			columns = len("  -") + len(flag) + len("  ") + len(text) - len(rest)
			indent = strings.Repeat(" ", columns)
		}
		head := strings.TrimSuffix(line, rest)
		if rest == line || columns+utf8.RuneCountInString(rest) <= most {
			b.WriteString(line + "\n")
			continue
		}
		for words := strings.Fields(rest); len(words) > 0; head = indent {
			n, wide := 1, columns+utf8.RuneCountInString(words[0])
			for n < len(words) && wide+1+utf8.RuneCountInString(words[n]) <= most {
				wide += 1 + utf8.RuneCountInString(words[n])
				n++
			}
			b.WriteString(head + strings.Join(words[:n], " ") + "\n")
			words = words[n:]
		}
	}
	return b.String()
}

// title is the first sentence of a command's help, without its name and up to a colon.
func (p *place) title() string {
	text, _, _ := strings.Cut(p.Help, "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, p.path), ":")
	text, _, _ = strings.Cut(text, ". ")
	text, _, _ = strings.Cut(text, ": ")
	return strings.TrimRight(strings.TrimSpace(text), ".:")
}

type place struct {
	*Command
	path string // its name, after those of the commands above
	help string // its own or that of the command above
}

// places are a program and its commands, those above before those below. Hidden ones are left out.
func (c *Command) places() []place { return places(c, c.Name, c.Help) }

func places(c *Command, path, help string) []place {
	help = cmp.Or(c.Help, help)
	list := []place{{c, path, help}}
	for _, sub := range c.Commands {
		if !sub.Hidden {
			list = append(list, places(sub, path+" "+sub.Name, help)...)
		}
	}
	return list
}

func (c *Command) flags() (list []*flag.Flag) {
	if c.Flags != nil {
		c.Flags.VisitAll(func(f *flag.Flag) { list = append(list, f) })
	}
	return list
}

// isSwitch reports whether a flag takes no value.
func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// Faults returns the differences between help texts and flags of a program and its commands.
func (c *Command) Faults() (list []string) {
	for _, top := range c.places() {
		if top.Help == "" {
			continue
		}
		known := map[string]*flag.Flag{} // flags of it, and of the commands that have no help of their own
		for _, p := range places(top.Command, top.path, "") {
			if p.help == top.Help {
				for _, f := range p.flags() {
					known[f.Name] = f
				}
			}
		}
		said := map[string]bool{"help": true, "version": true}
		for _, e := range entries(top.Help) {
			for i, name := range e.names {
				f := known[name]
				switch {
				case f == nil && !said[name]:
					list = append(list, fmt.Sprintf("%s has no flag -%s, of which its help tells", top.path, name))
				case f != nil && i == len(e.names)-1 && isSwitch(f) != (e.value == ""):
					list = append(list, fmt.Sprintf("%s: whether -%s has a value is not as the help says (%q)", top.path, name, e.value))
				}
				said[name] = true
			}
		}
		for _, u := range c.usages(top.Help) {
			for _, name := range u.flags {
				if !slices.ContainsFunc(u.of, func(p place) bool { return p.Flags != nil && p.Flags.Lookup(name) != nil }) {
					list = append(list, fmt.Sprintf("the help of %s says %s -%s, which there is not", top.path, u.of[0].path, name))
				}
				said[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if !said[name] {
				list = append(list, fmt.Sprintf("the help of %s does not tell of -%s", top.path, name))
			}
		}
	}
	return list
}

type usage struct {
	of    []place
	flags []string
}

// usages are the lines of a help text that begin with two blanks and the program's name.
func (c *Command) usages(help string) (list []usage) {
	for line := range strings.Lines(help) {
		line, ok := strings.CutPrefix(line, "  "+c.Name+" ")
		if !ok {
			continue
		}
		words := strings.Fields(line)
		u := usage{of: []place{{c, c.Name, c.Help}}}
		for ; len(words) > 0; words = words[1:] {
			var below []place
			for _, name := range strings.Split(words[0], "|") {
				for _, p := range u.of {
					if sub := p.find(name); sub != nil {
						below = append(below, place{sub, p.path + " " + name, sub.Help})
					}
				}
			}
			if len(below) == 0 {
				break
			}
			u.of = below
		}
		for _, word := range strings.FieldsFunc(strings.Join(words, " "), func(r rune) bool { return strings.ContainsRune(" []|", r) }) {
			if name := strings.TrimLeft(word, "-"); name != word && name != "" {
				u.flags = append(u.flags, name)
			}
		}
		list = append(list, u)
	}
	return list
}
