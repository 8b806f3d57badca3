package cmdline

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

var shells = map[string]func(root *Command) string{"bash": bash, "fish": fish, "zsh": zsh}

const jobs = "impi-node completion jobs 2>/dev/null"

// kindOf returns the kind of a flag's value, or "" for any and none.
func kindOf(f *flag.Flag) string {
	if kind, _ := flag.UnquoteUsage(f); strings.Contains(f.Usage, "`") {
		return kind
	}
	return ""
}

func (p *place) text(f *flag.Flag) string {
	if kind, text := flag.UnquoteUsage(f); text != "" && text != kind {
		return text
	}
	for _, e := range entries(p.help) {
		if slices.Contains(e.names, f.Name) {
			text, _, _ := strings.Cut(e.text, "; ") // a menu has room for the first of its parts
			text, _, _ = strings.Cut(text, ". ")
			return text
		}
	}
	return ""
}

// bash is a function that finds the command by the words before the cursor, and completes its flags,
// their values, its commands and its arguments.
func bash(root *Command) string {
	name := "_" + strings.ReplaceAll(root.Name, "-", "_")
	var b strings.Builder
	fmt.Fprintf(&b, `# Completions of %s for bash, made by its command completion.
%s() {
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags values words kind depth
	COMPREPLY=()
	case "${COMP_WORDS[*]:1:$((COMP_CWORD-1))} " in
`, root.Name, name)
	list := root.places()
	slices.Reverse(list) // bash takes the first that matches
	for _, p := range list {
		pattern := "*"
		words := strings.Fields(p.path)
		if len(words) > 1 {
			pattern = fmt.Sprintf(`"%s "*`, strings.Join(words[1:], " "))
		}
		var flags, values []string
		for _, f := range p.flags() {
			flags = append(flags, "-"+f.Name)
			if !isSwitch(f) {
				values = append(values, "-"+f.Name+"="+kindOf(f))
			}
		}
		fmt.Fprintf(&b, "\t%s) depth=%d flags='%s' values='%s' words='%s' kind='%s' ;;\n", pattern, len(words),
			strings.Join(flags, " "), strings.Join(values, " "), strings.Join(p.known(), " "), strings.Trim(p.Args, "`"))
	}
	fmt.Fprintf(&b, `	esac
	if [ "$COMP_CWORD" -ne "$depth" ]; then words=; fi
	case " $values " in
	*" $before="*) kind=${values##*"$before="} flags= words=; kind=${kind%%%% *} ;;
	*) case $cur in -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")); return ;; esac ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	local IFS=$'\n'
	case $kind in
	FILE) COMPREPLY+=($(compgen -f -- "$cur")) ;;
	DIR) COMPREPLY+=($(compgen -d -- "$cur")) ;;
	HOST) COMPREPLY+=($(compgen -A hostname -- "$cur")) ;;
	USER) COMPREPLY+=($(compgen -u -- "$cur")) ;;
	JOB) COMPREPLY+=($(compgen -W "$(%s)" -- "$cur")) ;;
	*"|"*) COMPREPLY+=($(compgen -W "${kind//|/$IFS}" -- "$cur")) ;;
	esac
}
complete -o filenames -F %s %s
`, jobs, name, root.Name)
	return b.String()
}

// zsh is bash's function with what zsh has for descriptions. The file is read when zsh completes
// the first time, as the function that completes, or by source.
func zsh(root *Command) string {
	name := "_" + strings.ReplaceAll(root.Name, "-", "_")
	var b strings.Builder
	fmt.Fprintf(&b, `#compdef %s
# Completions of %[1]s for zsh, made by its command completion.
%[2]s() {
	local before=${words[CURRENT-1]} kind depth
	local -a flags values subs
	case "${(j: :)words[2,CURRENT-1]} " in
`, root.Name, name)
	list := root.places()
	slices.Reverse(list) // zsh takes the first that matches
	for _, p := range list {
		pattern := "*"
		words := strings.Fields(p.path)
		if len(words) > 1 {
			pattern = fmt.Sprintf(`"%s "*`, strings.Join(words[1:], " "))
		}
		var flags, values, subs []string
		for _, f := range p.flags() {
			flags = append(flags, item("-"+f.Name, p.text(f)))
			if !isSwitch(f) {
				values = append(values, zshQuote("-"+f.Name+"="+kindOf(f)))
			}
		}
		for _, word := range p.known() {
			sub := place{p.find(word), p.path + " " + word, ""}
			subs = append(subs, item(word, sub.title()))
		}
		fmt.Fprintf(&b, "\t%s)\n\t\tdepth=%d kind=%s\n\t\tflags=(%s)\n\t\tvalues=(%s)\n\t\tsubs=(%s) ;;\n", pattern, len(words),
			zshQuote(strings.Trim(p.Args, "`")), strings.Join(flags, " "), strings.Join(values, " "), strings.Join(subs, " "))
	}
	fmt.Fprintf(&b, `	esac
	local value=${values[(r)$before=*]}
	if [[ -n $value ]]; then
		kind=${value#*=}
	elif [[ $PREFIX == -* ]]; then
		_describe -o flag flags
		return
	elif (( CURRENT - 1 == depth && $#subs )); then
		_describe command subs
	fi
	case $kind in
	FILE) _files ;;
	DIR) _files -/ ;;
	HOST) _hosts ;;
	USER) _users ;;
	JOB) compadd -- ${(f)"$(%s)"} ;;
	*"|"*) compadd -- ${(s:|:)kind} ;;
	esac
}
if [[ ${funcstack[1]} == _%s ]]; then %[3]s "$@"; else compdef %[3]s %[2]s; fi
`, jobs, root.Name, name)
	return b.String()
}

func item(word, text string) string {
	word = strings.ReplaceAll(word, ":", `\:`)
	if text != "" {
		word += ":" + text
	}
	return zshQuote(word)
}

func zshQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// fish returns a script with lines for each command and flag. Its functions _is and _in tell
// whether the words before the cursor are those of a command, and whether they begin with them.
func fish(root *Command) string {
	name := "__" + strings.ReplaceAll(root.Name, "-", "_")
	var b strings.Builder
	fmt.Fprintf(&b, `# Completions of %s for fish, made by its command completion.
function %s_is
	set -l words (commandline -opc)
	test "$argv" = "$words[2..-1]"
end
function %[2]s_in
	set -l words (commandline -opc)
	set -l last (math 1 + (count $argv))
	test "$argv" = "$words[2..$last]"
end
`, root.Name, name)
	line := func(when, what string) { fmt.Fprintf(&b, "complete -c %s -n %s%s\n", root.Name, quote(when), what) }
	for _, p := range root.places() {
		command := strings.TrimPrefix(p.path, root.Name)
		when := name + "_in" + command
		if len(p.Commands) > 0 {
			when = "not __fish_seen_subcommand_from " + strings.Join(p.known(), " ")
			for _, word := range p.known() {
				sub := place{p.find(word), p.path + " " + word, ""}
				line(name+"_is"+command, " -f -a "+word+described(sub.title()))
			}
		}
		if kind := strings.Trim(p.Args, "`"); p.Run != nil && kind != fileKind {
			line(when, " -f"+candidates(kind))
		}
		for _, f := range p.flags() {
			value := ""
			switch kind := kindOf(f); {
			case isSwitch(f):
			case kind == fileKind:
				value = " -r -F"
			default:
				value = " -x" + candidates(kind)
			}
			line(when, " -o "+f.Name+value+described(p.text(f)))
		}
	}
	return b.String()
}

var fileKind = strings.Trim(File, "`")

// candidates is the option by which fish gets the words of a kind.
func candidates(kind string) string {
	words := strings.ReplaceAll(kind, "|", " ")
	switch "`" + kind + "`" {
	case Dir:
		words = "(__fish_complete_directories)"
	case Host:
		words = "(__fish_print_hostnames)"
	case User:
		words = "(__fish_complete_users)"
	case Job:
		words = "(" + jobs + ")"
	}
	if words == "" {
		return ""
	}
	return " -a " + quote(words)
}

func described(text string) string {
	if text == "" {
		return ""
	}
	return " -d " + quote(text)
}

func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
