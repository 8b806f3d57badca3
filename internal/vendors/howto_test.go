package vendors

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// block is a piece of a page: shell commands, or a file whose name is the
// last thing in backquotes before it.
type block struct{ kind, file, text string }

var (
	fence    = regexp.MustCompile("(?ms)^```(sh|go|hcl|c|python)\n(.*?)^```$")
	fileName = regexp.MustCompile("`((?:src/)?[a-z_]+\\.(?:go|hcl|c|py))`[^`]*$")
)

// blocks reads the page. A file's block that no name precedes is an illustration.
func blocks(page string) (list []block) {
	before := 0
	for _, m := range fence.FindAllStringSubmatchIndex(page, -1) {
		b := block{kind: page[m[2]:m[3]], text: page[m[4]:m[5]]}
		if name := fileName.FindStringSubmatch(page[before:m[0]]); name != nil {
			b.file = name[1]
		}
		if before = m[1]; b.kind == "sh" || b.file != "" {
			list = append(list, b)
		}
	}
	return list
}

// The page is followed to the letter: each block in turn, nothing else.
func TestHowto(t *testing.T) {
	for _, name := range []string{"go", "sh"} {
		skips.Program(t, name)
	}
	soak.SkipUnlessSoak(t, "a plugin is built in a module of its own")
	bin, dir := programs(t), t.TempDir()
	said, dir := follow(t, bin, dir, "plugin-howto.md")
	for _, words := range []string{"correct  yes", "robust   yes", "2 sites, 4 procs, no faults", "as it must be"} {
		if !strings.Contains(said, words) {
			t.Errorf("%q is not in what the commands say:\n%s", words, said)
		}
	}
	if log := runJob(t, bin, dir, "job.hcl"); !strings.Contains(log, "transport=plain") {
		t.Errorf("the job does not use the transport:\n%s", log)
	}
}

// The guide is followed in the same way, in its three languages.
func TestGuide(t *testing.T) {
	for _, name := range []string{"go", "sh"} {
		skips.Program(t, name)
	}
	soak.SkipUnlessSoak(t, "plugins in three languages are built and judged")
	for _, g := range All {
		if !slices.Contains(goGuests, g.Name) { // C and Python: with what they need
			built(t, g)
		}
	}
	bin := programs(t)
	said, dir := follow(t, bin, t.TempDir(), "plugin-guide.md")
	if n := strings.Count(said, "correct  yes"); n != 3 || strings.Count(said, "robust   yes") != 3 || !strings.Contains(said, "as it must be") {
		t.Errorf("%d plugins are correct:\n%s", n, said)
	}
	if log := runJob(t, bin, dir, "job.hcl"); !strings.Contains(log, "transport=mine") || strings.Contains(log, "through the agents") {
		t.Errorf("the job does not use the transport:\n%s", log)
	}
}

// follow does what a page of docs says, block after block, and gives what the commands said and the
// folder in which it ends.
func follow(t *testing.T, bin, dir, name string) (said, end string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	where := filepath.Join(t.TempDir(), "where")
	for i, b := range blocks(string(page)) {
		if b.file != "" && b.kind != "sh" {
			if err := os.WriteFile(filepath.Join(dir, b.file), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		// The folder that a block ends in is where the next one begins.
		cmd := exec.Command("sh", "-e", "-c", b.text+"\npwd > '"+where+"'\n")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "IMPI="+checkout, "GOPROXY=off", "GOFLAGS=-trimpath", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("block %d: %v\n%s\n%s", i, err, b.text, out)
		}
		now, err := os.ReadFile(where)
		if err != nil {
			t.Fatal(err)
		}
		dir, said = strings.TrimSpace(string(now)), said+string(out)
	}
	return said, dir
}

// runJob runs a job and gives all that its nodes log.
func runJob(t *testing.T, bin, dir, file string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "impi-node"), "-log-level", "debug", "-config", file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// ours is the folder of our programs. All tests share it.
var ours = struct {
	sync.Once
	dir string
	err error
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(ours.dir)
	os.Exit(code)
}

// programs returns the folder of what jobs need, and impi-conform.
func programs(t *testing.T) (bin string) {
	t.Helper()
	ours.Do(func() {
		if ours.dir, ours.err = os.MkdirTemp("", "impi-vendors-bin-"); ours.err != nil {
			return
		}
		build := exec.Command("go", "build", "-o", ours.dir+"/", "./cmd/impi-node", "./cmd/impi-conform", "./examples/ring")
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			ours.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if ours.err != nil {
		t.Fatal(ours.err)
	}
	return ours.dir
}

// A job across two sites whose procs have nothing but a vendor's transport, by each of
// its data planes.
func TestJobs(t *testing.T) {
	bin := programs(t)
	for _, g := range All {
		for _, plane := range g.Planes {
			t.Run(g.Name+" by "+string(plane), func(t *testing.T) { runJobBy(t, bin, g, plane) })
		}
	}
}

func runJobBy(t *testing.T, bin string, g Plugin, plane transports.DataPlane) {
	path := built(t, g)
	dir := t.TempDir()
	mtls := ""
	if g.NoMTLS {
		mtls = "auto_mtls = false"
	}
	job := `
job { embedded_server {} }
program { command = ["` + bin + `/ring"] }
site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}
site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
transport "` + g.Name + `" {
  plugin = "` + path + `"
  ` + mtls + `
}
route "*" {
  prefer     = ["` + g.Name + `"]
  data_plane = ["` + string(plane) + `"]
}
`
	if err := os.WriteFile(filepath.Join(dir, "job.hcl"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	log := runJob(t, bin, dir, "job.hcl")
	if !strings.Contains(log, "as it must be") || !strings.Contains(log, "transport="+g.Name+" data_plane="+string(plane)) || strings.Contains(log, "through the agents") {
		t.Errorf("%s", log)
	}
}

func TestBlocks(t *testing.T) {
	page := "a `x.go` b\n\n```go\none\n```\nthen\n```sh\ntwo\n```\n```hcl\nthree\n```\n`y.hcl`, which is\n```hcl\nfour\n```\n"
	got := blocks(page)
	if len(got) != 3 || got[0] != (block{"go", "x.go", "one\n"}) || got[1] != (block{"sh", "", "two\n"}) || got[2] != (block{"hcl", "y.hcl", "four\n"}) {
		t.Errorf("%q", got)
	}
}
