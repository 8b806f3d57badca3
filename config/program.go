package config

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// program merges s's own program block over the one at the top of the file,
// attribute by attribute; the environments are united.
func (s *siteDraft) program() {
	own, shared := s.layers("program")
	if own == nil && shared == nil && s.Spare {
		s.Program = Program{Dir: absolute(s.dir, "."), Env: map[string]string{}, PrefixOutput: true, Stdin: -1, Pos: s.Pos}
		return
	}
	if own == nil && shared == nil {
		s.fault(s.Pos, "site "+quote(s.Name)+" has no program", `add program { command = ["./prog"] }`)
		return
	}
	at := cmp.Or(own, shared)
	s.Program = Program{Dir: ".", Env: map[string]string{}, PrefixOutput: true, Pos: at.pos}
	fill(&s.Program, own, shared)
	s.Program.Dir = absolute(s.dir, s.Program.Dir)
	for _, layer := range []*block{shared, own} {
		maps.Copy(s.Program.Env, pick(map[string]string(nil), "env", layer))
	}
	if !own.has("command") && !shared.has("command") && !s.Spare {
		s.fault(at.pos, "program has no command", `add command = ["./prog"]`)
	}
	s.checkStdin(own, shared)
	if s.here() {
		s.findProgram(own, shared)
	}
}

func (s *siteDraft) findProgram(own, shared *block) {
	if command := s.Program.Command; len(command) > 0 && !s.Spare {
		path, problem, remedy := findCommand(s.dir, command[0], s.shown(command[0]))
		s.Program.Path = path
		if problem != "" {
			s.fault(placeOf("command", own, shared), problem, remedy)
		}
	}
	info, err := os.Stat(s.Program.Dir)
	dir := quote(s.shown(pick(".", "dir", own, shared)))
	switch {
	case err != nil:
		s.fault(placeOf("dir", own, shared), "there is no folder "+dir, "make it, or correct dir, which starts from the folder of the job file")
	case !info.IsDir():
		s.fault(placeOf("dir", own, shared), dir+" is not a folder", "name the folder that the program should run in")
	}
}

// placeOf returns the position of an attribute in the first block that has it. For a list it is
// that of the first element, which has the fault most often.
func placeOf(name string, blocks ...*block) Pos {
	for _, in := range blocks {
		if !in.has(name) {
			continue
		}
		if elements := in.values[name].elements; len(elements) > 0 {
			return elements[0]
		}
		return in.at(name)
	}
	return Pos{}
}

func (s *siteDraft) checkStdin(own, shared *block) {
	if !s.result.Complete || len(s.ours()) != len(s.sites) {
		return
	}
	total := 0
	for _, other := range ourMembers(s.builder) {
		if !other.CountsKnown() {
			return
		}
		total += other.Procs()
	}
	if s.Program.Stdin >= total && total > 0 {
		s.fault(placeOf("stdin", own, shared), "the job has no rank "+itoa(s.Program.Stdin),
			"write a rank from 0 to "+itoa(total-1)+", or -1 for none")
	}
}

// interpreters run a program that is one of their arguments. Their names may end in a version.
var interpreters = []string{"python", "perl", "ruby", "julia", "Rscript"}

// shells run a file that is one of their arguments, or a text that follows -c.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh"}

// starters are words with which commands of shells begin before the program that they start.
var starters = []string{"exec", "env", "nice", "nohup", "time", "command", "then", "else", "do", "{", "!"}

// notPrograms are words with which commands of shells begin that start no program.
var notPrograms = []string{
	"", "cd", "export", "set", "unset", "ulimit", "umask", "source", ".", ":", "module", "trap", "echo", "printf", "sleep", "test", "[", "[[",
	"if", "fi", "for", "while", "until", "done", "case", "esac", "}", "true", "false", "wait", "read", "local", "eval",
}

// name returns the program's name without the folder; for an interpreter or a shell, that of the
// program that it runs.
func (p *Program) name() string {
	switch {
	case len(p.Command) > 0:
		return nameOf(p.Command)
	case p.Path != "":
		return filepath.Base(p.Path)
	}
	return ""
}

func nameOf(command []string) string {
	name := filepath.Base(command[0])
	switch plain := strings.TrimRight(name, ".0123456789"); {
	case slices.Contains(interpreters, plain):
		for _, word := range command[1:] {
			if word == "-c" || word == "-e" {
				break // a text in its language
			}
			if !strings.HasPrefix(word, "-") {
				return filepath.Base(word)
			}
		}
	case slices.Contains(shells, plain):
		return cmp.Or(inShell(command[1:]), name)
	}
	return name
}

// inShell returns the name of the program that a shell runs with these arguments, or "".
func inShell(args []string) string {
	text := false
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "" || word[0] != '-' && word[0] != '+':
			if text {
				return inScript(word)
			}
			return strings.TrimSuffix(filepath.Base(word), ".sh")
		case strings.HasPrefix(word, "--"):
		default:
			text = text || word[0] == '-' && strings.Contains(word, "c")
			if strings.HasSuffix(word, "o") {
				i++ // the option's name
			}
		}
	}
	return ""
}

// inScript returns the name of the first program that a text for a shell starts, as far as that can
// be seen without running it, or "".
func inScript(text string) string {
	for _, command := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(";&|\n()", r) }) {
		words := strings.Fields(command)
		for len(words) > 0 && (isAssignment(words[0]) || slices.Contains(starters, words[0])) {
			words = words[1:]
		}
		if len(words) == 0 || slices.Contains(notPrograms, words[0]) {
			continue
		}
		words[0] = strings.Trim(words[0], `"'`)
		if base := filepath.Base(words[0]); words[0] == "" || strings.ContainsAny(base, "$`\"'<>*?\\#") {
			return ""
		}
		return nameOf(words)
	}
	return ""
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/$\"'")
}
