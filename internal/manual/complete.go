package manual

import (
	"fmt"
	"slices"
	"strings"
)

// Shells are those for which there are completions.
var Shells = []string{"bash", "fish", "zsh"}

// Complete returns the completions of a program for a shell. The first of the commands is the
// program itself, the others are its commands.
func Complete(shell string, commands []Command) (script string, ok bool) {
	switch shell {
	case "bash":
		return bash(commands), true
	case "fish":
		return fish(commands), true
	case "zsh":
		// zsh understands bash's completions, with the names of files at the end.
		return "#compdef " + commands[0].Name + "\nautoload -U +X bashcompinit && bashcompinit\n" + bash(commands), true
	}
	return "", false
}

func flagNames(c *Command) string {
	var names []string
	for _, f := range c.Flags() {
		names = append(names, f.Name)
	}
	return strings.Join(names, " ")
}

// verbs are the names of a program's commands.
func verbs(commands []Command) (list []string) {
	for _, c := range commands[1:] {
		list = append(list, strings.TrimPrefix(c.Name, commands[0].Name+" "))
	}
	slices.Sort(list)
	return list
}

// bash is a function that looks at the command and the word before. After flags that have a value,
// and where no word fits, it completes names of files.
func bash(commands []Command) string {
	program := commands[0].Name
	f := "_" + strings.ReplaceAll(program, "-", "_")
	var b strings.Builder
	fmt.Fprintf(&b, "# Completions of %s for bash, made by impi-node completion.\n%s() {\n", program, f)
	fmt.Fprint(&b, "\tlocal cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags values words=\n")
	fmt.Fprintf(&b, "\tCOMPREPLY=()\n\tcase ${COMP_WORDS[1]} in\n")
	for i := range commands[1:] {
		c := &commands[i+1]
		fmt.Fprintf(&b, "\t%s) flags=%q values=%q words=%q ;;\n", strings.TrimPrefix(c.Name, program+" "), flagNames(c), valued(c), strings.Join(c.Words(), " "))
	}
	fmt.Fprintf(&b, "\t*) flags=%q values=%q ;;\n\tesac\n", flagNames(&commands[0]), valued(&commands[0]))
	fmt.Fprintf(&b, "\tif [ \"$COMP_CWORD\" -eq 1 ]; then words=%q; fi\n", strings.Join(verbs(commands), " "))
	b.WriteString(`	if [ "$COMP_CWORD" -gt 2 ]; then words=; fi
	case " $values " in *" $before "*) COMPREPLY=($(compgen -f -- "$cur")); return ;; esac
	case $cur in
	-*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
	*) COMPREPLY=($(compgen -W "$words" -- "$cur") $(compgen -f -- "$cur")) ;;
	esac
}
`)
	fmt.Fprintf(&b, "complete -o filenames -F %s %s\n", f, program)
	return b.String()
}

// valued are the flags of a command that have a value.
func valued(c *Command) string {
	var names []string
	for _, f := range c.Flags() {
		if f.Value != "" {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, " ")
}

// fish has a line for each command and flag.
func fish(commands []Command) string {
	program := commands[0].Name
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Completions of %s for fish, made by impi-node completion.\n", program)
	for i := range commands {
		c := &commands[i]
		verb := strings.TrimSpace(strings.TrimPrefix(c.Name, program))
		when := "__fish_use_subcommand"
		if i > 0 {
			fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -a %s -d %s\n", program, verb, quote(c.Title()))
			when = quote("__fish_seen_subcommand_from " + verb)
		}
		if w := c.Words(); i > 0 && len(w) > 0 {
			fmt.Fprintf(&b, "complete -c %s -n %s -a %s\n", program, when, quote(strings.Join(w, " ")))
		}
		for _, f := range c.Flags() {
			value := ""
			if f.Value != "" {
				value = " -r"
			}
			fmt.Fprintf(&b, "complete -c %s -n %s -o %s%s -d %s\n", program, when, strings.TrimLeft(f.Name, "-"), value, quote(f.Text))
		}
	}
	return b.String()
}
