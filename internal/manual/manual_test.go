package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

var sample = []Command{
	{"prog", "prog does things. It does more.\n\nUsage:\n  prog -n N FILE\n  prog show [-json]\n\nFlags:\n  -n N     how many\n  -quiet   say nothing\n"},
	{"prog show", "prog show shows what there is,\nor not.\n\nUsage:\n  prog show list|all [-json|-nft] [-job NAME]\n\nFlags:\n  -json        print JSON: isn't it\n               nice\n  -job NAME    the job of\n  -run-dir DIR where\n"},
	{"prog make", "prog make makes it.\n\nUsage:\n  prog make FILE\n\n.dots and -- \\ are shown\n"},
}

func TestHelpIsUnderstood(t *testing.T) {
	c := &sample[1]
	if got, want := c.Flags(), []Flag{{"-json", "", "print JSON: isn't it"}, {"-job", "NAME", "the job of"}, {Name: "-nft"}}; !slices.Equal(got, want) {
		t.Errorf("flags %+v, want %+v", got, want)
	}
	if got := c.Words(); !slices.Equal(got, []string{"list", "all"}) {
		t.Errorf("words %q", got)
	}
	if got := c.Title(); got != "shows what there is, or not" {
		t.Errorf("title %q", got)
	}
	if got := sample[0].Title(); got != "does things" {
		t.Errorf("title %q", got)
	}
	if got := sample[0].Words(); !slices.Equal(got, []string{"show"}) {
		t.Errorf("words %q", got)
	}
}

// TestManPage: groff understands the page, and shows the help as it is.
func TestManPage(t *testing.T) {
	man := skips.ProgramOf(t, "man", "man-db")
	for i := range sample {
		c := &sample[i]
		path := filepath.Join(t.TempDir(), "x.1")
		if err := os.WriteFile(path, []byte(c.Page("1.2")), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(man, "--warnings", "-l", "-P", "cat", "-Tascii", path)
		cmd.Env = append(os.Environ(), "MANWIDTH=120", "LC_ALL=C", "GROFF_NO_SGR=1", "MAN_KEEP_FORMATTING=")
		var errs strings.Builder
		cmd.Stderr = &errs
		b, err := cmd.Output()
		if err != nil || errs.Len() > 0 {
			t.Fatalf("%v\n%s", err, &errs)
		}
		shown := string(b)
		for line := range strings.Lines(c.Help) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, ":") && !strings.Contains(shown, line) {
				t.Errorf("the page of %s has no %q:\n%s", c.Name, line, shown)
			}
		}
	}
}

// TestBash asks a real bash.
func TestBash(t *testing.T) {
	shell := skips.Program(t, "bash")
	dir := t.TempDir()
	script, _ := Complete("bash", sample)
	for name, text := range map[string]string{"c.bash": script, "job.hcl": "", "show.txt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"prog s": "show show.txt", "prog -": "-n -quiet", "prog m": "make", "prog show ": "list all c.bash job.hcl show.txt", "prog show -j": "-json -job",
		"prog show -job j": "job.hcl", "prog make j": "job.hcl", "prog show list -": "-json -job -nft", "prog show list a": "",
	} {
		words := strings.Split(line, " ")
		quoted := "'" + strings.Join(words, "' '") + "'"
		cmd := exec.Command(shell, "-c", "source ./c.bash; COMP_WORDS=("+quoted+"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _prog; printf '%s ' ${COMPREPLY[@]}")
		cmd.Dir = dir
		b, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(b)); err != nil || got != want {
			t.Errorf("%q: %q, want %q (%v)", line, got, want, err)
		}
	}
}

// TestSyntax: each shell reads its script.
func TestSyntax(t *testing.T) {
	for _, name := range Shells {
		t.Run(name, func(t *testing.T) {
			shell := skips.Program(t, name)
			script, _ := Complete(name, sample)
			path := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			if b, err := exec.Command(shell, "-n", path).CombinedOutput(); err != nil || len(b) > 0 {
				t.Errorf("%v\n%s\n%s", err, b, script)
			}
		})
	}
}

func TestOtherShells(t *testing.T) {
	script, _ := Complete("fish", sample)
	for _, want := range []string{
		"complete -c prog -n __fish_use_subcommand -a show -d 'shows what there is, or not'\n",
		"complete -c prog -n '__fish_seen_subcommand_from show' -a 'list all'\n",
		"complete -c prog -n '__fish_seen_subcommand_from show' -o json -d 'print JSON: isn\\'t it'\n",
		"complete -c prog -n '__fish_seen_subcommand_from show' -o job -r -d 'the job of'\n",
		"complete -c prog -n __fish_use_subcommand -o quiet -d 'say nothing'\n",
	} {
		if !strings.Contains(script, want) {
			t.Errorf("there is no %q in\n%s", want, script)
		}
	}
	if script, ok := Complete("zsh", sample); !ok || !strings.HasPrefix(script, "#compdef prog\n") {
		t.Errorf("%s", script)
	}
	if _, ok := Complete("csh", sample); ok {
		t.Error("there are completions for csh")
	}
}
