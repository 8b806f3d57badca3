package cmdline

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// sample is a program with commands.
func sample() *Command {
	says := func(text string, status int) func([]string, io.Writer, io.Writer) (int, error) {
		return func(args []string, out, _ io.Writer) (int, error) {
			_, err := io.WriteString(out, text+" "+strings.Join(args, ","))
			return status, err
		}
	}
	root := &Command{Name: "prog", Program: true, Flags: NewFlags(), Run: says("run", 0),
		Help: "prog does things. It does more.\n\nUsage:\n  prog -n N FILE\n  prog show list|all [-json]\n\nFlags:\n  -n N     how many\n  -quiet   say nothing\n"}
	root.Flags.Int("n", 1, "")
	root.Flags.Bool("quiet", false, "")
	show := &Command{Name: "show", Help: "prog show shows what there is,\nor not.\n\nUsage:\n  prog show list|all [-json|-nft]\n\nFlags:\n  -json        print JSON: isn't it\n               nice; or not,\n               who knows\n  -job NAME    the job of\n  -colour-of-text WHAT\n               red or blue\n"}
	for _, name := range []string{"list", "all"} {
		sub := &Command{Name: name, Flags: NewFlags(), Run: says(name, 3)}
		sub.Flags.Bool("json", false, "")
		sub.Flags.Bool("nft", false, "")
		sub.Flags.String("job", "", File)
		sub.Flags.String("colour-of-text", "", "`red|blue`")
		show.Commands = append(show.Commands, sub)
	}
	mk := &Command{Name: "make", Args: File, Run: says("make", 0), Flags: NewFlags(),
		Help: "prog make makes it.\n\nUsage:\n  prog make FILE [-in DIR]\n\n.dots and -- \\ are shown\n"}
	mk.Flags.String("in", "", Dir)
	root.Commands = []*Command{show, mk, {Name: "secret", Hidden: true, Args: File, Run: says("secret", 0)}}
	root.AddCompletion("")
	return root
}

// TestManPage: groff understands the page, and shows the help as it is.
func TestManPage(t *testing.T) {
	man := skips.ProgramOf(t, "man", "man-db")
	dir := t.TempDir()
	if err := sample().Install([]string{"completion", "install", dir}); err != nil {
		t.Fatal(err)
	}
	for _, c := range sample().places() {
		if c.Help == "" {
			continue
		}
		path := filepath.Join(dir, "man/man1", strings.ReplaceAll(c.path, " ", "-")+".1")
		cmd := exec.Command(man, "--warnings", "-l", "-P", "cat", "-Tascii", path)
		cmd.Env = append(os.Environ(), "MANWIDTH=120", "LC_ALL=C", "GROFF_NO_SGR=1", "MAN_KEEP_FORMATTING=")
		var errs strings.Builder
		cmd.Stderr = &errs
		b, err := cmd.Output()
		if err != nil || errs.Len() > 0 {
			t.Fatalf("%v\n%s", err, &errs)
		}
		shown := string(b)
		for line := range strings.Lines(c.Help + c.title()) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, ":") && !strings.Contains(shown, line) {
				t.Errorf("the page of %s has no %q:\n%s", c.Name, line, shown)
			}
		}
	}
}

// completions are what shells propose for lines, in a folder with the files a.hcl, red.txt and the
// folder sub.
var completions = map[string]string{
	"prog s": "show", "prog -": "-n -quiet", "prog m": "make", "prog show ": "all list", "prog show list -j": "-job -json",
	"prog show list -job a": "a.hcl", "prog show all -colour-of-text r": "red", "prog make -in s": "sub", "prog make -json": "",
	"prog make a": "a.hcl", "prog show list a": "", "prog make x -": "-in", "prog -n ": "", "prog -quiet -": "-n -quiet",
}

// captured has a zsh in a terminal complete, which prints what it would show. The file is read by
// it when it completes the first time.
const captured = `zmodload zsh/zpty && zpty z zsh -f -i || exit 1
zpty -w z 'PS1=; fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -D
compadd() {
	if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
	local -a hits; builtin compadd -A hits "$@"; local hit
	for hit in $hits; do print -r -- "M:$hit"; done
	builtin compadd "$@"
}
shown() { _main_complete; print E""ND; compstate[insert]=; compstate[list]= }
bindkey -e; zle -C shown .list-choices shown; bindkey "^I" shown; print REA""DY'
zpty -r -m z out '*READY*'
`

// TestShells asks real ones.
func TestShells(t *testing.T) {
	quoted := func(line string) string { return "'" + strings.Join(strings.Split(line, " "), "' '") + "'" }
	for name, shell := range map[string]struct {
		options, start string
		ask            func(line string) string
	}{
		"bash": {"--norc", "source ./script\n", func(line string) string {
			return "COMP_WORDS=(" + quoted(line) + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _prog; printf '%s\n' ${COMPREPLY[@]}"
		}},
		"zsh": {"-f", captured, func(line string) string {
			return "zpty -w -n z '" + line + "'$'\\t'; zpty -r -m z out '*END*'; print -rl -- ${${(M)${(f)out}:#*M:*}#*M:}; zpty -w -n z $'\\C-u'"
		}},
		"fish": {"-N", "source ./script\n", func(line string) string { return "complete -C '" + line + "'" }},
	} {
		t.Run(name, func(t *testing.T) {
			program := skips.Program(t, name)
			dir := t.TempDir()
			script := shell.start
			lines := slices.Sorted(maps.Keys(completions))
			for _, line := range lines {
				script += shell.ask(line) + "\necho '=='\n"
			}
			for file, text := range map[string]string{"script": shells[name](sample()), "a.hcl": "", "red.txt": "", "questions": script} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.Mkdir(filepath.Join(dir, "functions"), 0o700),
				os.Symlink("../script", filepath.Join(dir, "functions/_prog"))); err != nil {
				t.Fatal(err)
			}
			if b, err := exec.Command(program, "-n", filepath.Join(dir, "script")).CombinedOutput(); err != nil || len(b) > 0 {
				t.Fatalf("%v\n%s", err, b)
			}
			cmd := exec.Command(program, shell.options, "./questions")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
			b, err := cmd.CombinedOutput()
			answers := strings.Split(string(b), "==\n")
			if err != nil || len(answers) != len(lines)+1 {
				t.Fatalf("%v: %d answers\n%s", err, len(answers), b)
			}
			for i, line := range lines {
				var got []string
				for l := range strings.Lines(answers[i]) {
					word, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
					if word = strings.TrimSuffix(word, "/"); word != "" {
						got = append(got, word)
					}
				}
				slices.Sort(got)
				got = slices.Compact(got) // which a shell shows once
				if got, want := strings.Join(got, " "), completions[line]; got != want {
					t.Errorf("%q: %q, want %q\n%s", line, got, want, answers[i])
				}
			}
		})
	}
}

// TestZsh: descriptions are those of the help texts.
func TestZsh(t *testing.T) {
	script := zsh(sample())
	for _, want := range []string{
		"subs=('make:makes it' 'show:shows what there is, or not')", `'-json:print JSON: isn'\''t it nice'`, "'-colour-of-text:red or blue'", "'-quiet:say nothing'",
		"values=('-colour-of-text=red|blue' '-job=FILE')",
	} {
		if !strings.Contains(script, want) {
			t.Errorf("there is no %q in\n%s", want, script)
		}
	}
}

// TestFish: descriptions are those of the help texts.
func TestFish(t *testing.T) {
	script := fish(sample())
	for _, want := range []string{
		"complete -c prog -n '__prog_is' -f -a show -d 'shows what there is, or not'\n",
		"complete -c prog -n '__prog_is show' -f -a list\n",
		"complete -c prog -n '__prog_in show list' -o json -d 'print JSON: isn\\'t it nice'\n",
		"complete -c prog -n '__prog_in show list' -o colour-of-text -x -a 'red blue' -d 'red or blue'\n",
		"complete -c prog -n 'not __fish_seen_subcommand_from make show' -o quiet -d 'say nothing'\n",
	} {
		if !strings.Contains(script, want) {
			t.Errorf("there is no %q in\n%s", want, script)
		}
	}
}

// TestWrap: what a flag does goes on below where it begins; other lines stay as they are.
func TestWrap(t *testing.T) {
	const text = "a line that is not of a flag and long\n  -n PROCS  how many procs there are\n  -x\n    \twhat package flag says\n  -json     short\n"
	const want = "a line that is not of a flag and long\n  -n PROCS  how many\n            procs there\n            are\n  -x\n    \twhat package\n    \tflag says\n  -json     short\n"
	if got := Wrap(text, 24); got != want {
		t.Errorf("%s", got)
	}
}
