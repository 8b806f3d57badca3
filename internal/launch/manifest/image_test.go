package manifest

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/skips"
)

// root is the folder of the Dockerfile.
const root = "../../.."

// dockerfile returns the words of each line of the Dockerfile.
func dockerfile(t *testing.T) (lines [][]string) {
	t.Helper()
	b, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			lines = append(lines, words)
		}
	}
	return lines
}

// TestDockerfile: what it copies is there, or comes from a stage before, and the last stage has
// nothing but that, with the user that the manifests have.
func TestDockerfile(t *testing.T) {
	stages := map[string]bool{}
	var last [][]string
	for _, line := range dockerfile(t) {
		switch {
		case line[0] == "FROM":
			last = nil
			if len(line) == 4 && line[2] == "AS" {
				stages[line[3]] = true
			}
		case line[0] == "COPY" && strings.HasPrefix(line[1], "--from="):
			if stage := strings.TrimPrefix(line[1], "--from="); !stages[stage] {
				t.Errorf("there is no stage %s before %v", stage, line)
			}
		case line[0] == "COPY":
			for _, path := range line[1 : len(line)-1] {
				if _, err := os.Stat(filepath.Join(root, path)); err != nil {
					t.Error(err)
				}
			}
		}
		last = append(last, line)
	}
	text := fmt.Sprint(last)
	for _, want := range []string{"[FROM scratch]", fmt.Sprintf("[USER %d:%[1]d]", user), `[ENTRYPOINT ["impi-node"]]`, "[COPY --from=build /out/ /]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the last stage does not have %s: %s", want, text)
		}
	}
}

// built does what the Dockerfile does to build programs: with what it copies, and the same command.
func built(t *testing.T) (dir string) {
	t.Helper()
	skips.Short(t)
	dir = t.TempDir()
	src := dir + "/src"
	if err := os.Mkdir(src, 0o700); err != nil {
		t.Fatal(err)
	}
	env := os.Environ()
	stage := ""
	for _, line := range dockerfile(t) {
		var cmd *exec.Cmd
		switch words := line[1:]; line[0] {
		case "FROM":
			stage = words[0]
		case "ENV":
			env = append(env, words...)
		case "COPY":
			if !strings.HasPrefix(words[0], "--") {
				to := src
				if last := words[len(words)-1]; strings.HasSuffix(last, "/") {
					to = filepath.Join(src, last)
				}
				if err := os.MkdirAll(to, 0o700); err != nil {
					t.Fatal(err)
				}
				cmd = exec.CommandContext(t.Context(), "cp", append(append([]string{"-r"}, words[:len(words)-1]...), to)...)
				cmd.Dir = root
			}
		case "RUN":
			text := strings.ReplaceAll(strings.Join(words, " "), "/out", dir+"/out")
			cmd = exec.CommandContext(t.Context(), "sh", "-c", text)
			cmd.Dir = src
		}
		if cmd == nil || stage == "scratch" {
			continue
		}
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", line, err, out)
		}
	}
	return dir + "/out"
}

// TestImage: the programs of the image need no others and no libraries. With nothing else, in a
// root folder of their own and by a user that is not root, they run a job.
func TestImage(t *testing.T) {
	out := built(t)
	programs := out + "/usr/local/bin"
	entries, err := os.ReadDir(programs)
	if err != nil || len(entries) != 7 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		f, err := elf.Open(filepath.Join(programs, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s is not static", e.Name())
			}
		}
		_ = f.Close()
	}
	if os.Getuid() != 0 {
		skips.NotRun(t, "a root folder is chosen by root", "run go test as root")
	}
	unshare := skips.ProgramOf(t, "unshare", "util-linux")
	image, err := os.MkdirTemp("", "image")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(image) })
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(out, image); err != nil {
		t.Fatal(err)
	}
	for dir, mode := range map[string]os.FileMode{image: 0o755, image + "/app": 0o755, image + "/dev": 0o755, image + "/proc": 0o755} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil { //nolint:gosec // another user runs what is there
			t.Fatal(err)
		}
	}
	null := image + "/dev/null"                                                                                             // which engines give containers
	if err := errors.Join(unix.Mknod(null, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))), os.Chmod(null, 0o666)); err != nil { //nolint:gosec // as everywhere
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), "go", "build", "-o", image+"/app/hello", "./examples/hello")
	program.Dir, program.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	cmd := exec.CommandContext(t.Context(), unshare, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--root="+image, "--wd=/",
		fmt.Sprintf("--setuid=%d", user), fmt.Sprintf("--setgid=%d", user), "/usr/local/bin/impi-node", "-n", "3", "/app/hello")
	cmd.Env = []string{"PATH=/usr/local/bin", "TMPDIR=/tmp"}
	text, err := cmd.CombinedOutput()
	for rank := range 3 {
		if err != nil || !strings.Contains(string(text), fmt.Sprintf("[%d] ", rank)) {
			t.Fatalf("%v: %s", err, text)
		}
	}
}

// TestImageIsBuilt has a builder of images build it.
func TestImageIsBuilt(t *testing.T) {
	skips.Short(t)
	for _, name := range []string{"docker", "podman", "buildah"} {
		builder, err := exec.LookPath(name)
		if err != nil || exec.CommandContext(t.Context(), builder, "info").Run() != nil {
			continue // it is not there, or its daemon is not
		}
		tag := fmt.Sprintf("impi-test:%d", os.Getpid())
		if out, err := exec.CommandContext(t.Context(), builder, "build", "-t", tag, root).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command(builder, "rmi", tag).Run() })
		return
	}
	skips.NotRun(t, "there is no builder of images that works", "install docker, podman or buildah, and let it pull golang")
}
