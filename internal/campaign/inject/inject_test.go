package inject

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/skips"
)

// victim has this program make system calls instead of running tests.
const victim = "IMPI_TEST_VICTIM"

func TestMain(m *testing.M) {
	Shim()
	if what := os.Getenv(victim); what != "" {
		victims[what]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var victims = map[string]func(){
	// Many threads make the same call.
	"threads": func() {
		var all sync.WaitGroup
		var mu sync.Mutex
		failed := 0
		for range 8 {
			all.Go(func() {
				if _, err := unix.MemfdCreate("victim", 0); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		fmt.Println("failed:", failed)
	},
	"short": func() {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			panic(err)
		}
		n, err := unix.Write(pair[0], []byte("abcdefgh"))
		fmt.Println("wrote:", n, err)
		b := make([]byte, 16)
		n, err = unix.Read(pair[1], b)
		fmt.Printf("read: %s %v\n", b[:n], err)
	},
	"vector": func() {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			panic(err)
		}
		n, err := unix.SendmsgBuffers(pair[0], [][]byte{[]byte("abc"), []byte("defgh")}, nil, nil, 0)
		fmt.Println("wrote:", n, err)
		b := make([]byte, 16)
		n, err = unix.Read(pair[1], b)
		fmt.Printf("read: %s %v\n", b[:n], err)
	},
	"datagram": func() { // which must not be divided
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			panic(err)
		}
		n, err := unix.Write(pair[0], []byte("abcdefgh"))
		fmt.Println("wrote:", n, err)
	},
	"parent": func() {
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), victim+"=threads")
		out, err := cmd.CombinedOutput()
		fmt.Printf("child: %v, %s", err, out)
	},
}

// do runs a victim and returns what it has printed, the calls that it made, and whether one was
// failed.
func do(t *testing.T, what string, calls []string, decide func(Call) Fault) (out string, made []Call, applied bool) {
	t.Helper()
	if err := Missing(); err != nil {
		skips.NotRun(t, err.Error(), "use Linux 5.19 or newer, on amd64 or arm64")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), victim+"="+what)
	var b strings.Builder
	cmd.Stdout, cmd.Stderr = &b, &b
	tree, err := Start(cmd, Options{Calls: calls, Role: func(args []string) string { return filepath.Base(args[0]) }, Decide: func(c Call) Fault {
		made = append(made, c)
		return decide(c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, b.String())
	}
	select {
	case <-tree.Exited():
	case <-time.After(time.Minute):
		t.Fatal("the end of the tree is not noticed")
	}
	return b.String(), made, tree.Applied()
}

// The n-th call of a process fails, whichever of its threads makes it, and that one only.
func TestOneCallFails(t *testing.T) {
	out, made, applied := do(t, "threads", []string{"memfd_create"}, func(c Call) Fault {
		if c.N == 5 {
			return "EMFILE"
		}
		return ""
	})
	if out != "failed: 1\n" || len(made) != 8 || made[7].N != 8 || made[7].Process != "inject.test 1" || !applied {
		t.Errorf("%q, %v", out, made)
	}
}

// A short write has done what it says.
func TestShortWrite(t *testing.T) {
	for what, name := range map[string]string{"short": "write/socket", "vector": "sendmsg/socket"} {
		out, _, applied := do(t, what, []string{"write", "sendmsg"}, func(c Call) Fault {
			if c.Name == name {
				return Short
			}
			return ""
		})
		if out != "wrote: 4 <nil>\nread: abcd <nil>\n" || !applied {
			t.Errorf("%s: %q", what, out)
		}
	}
	out, _, applied := do(t, "datagram", []string{"write"}, func(Call) Fault { return Short })
	if out != "wrote: 8 <nil>\n" || applied {
		t.Errorf("a datagram: %q, %v", out, applied)
	}
}

// A child counts for itself, and for its parent until it is a program of its own.
func TestChildren(t *testing.T) {
	out, made, _ := do(t, "parent", []string{"memfd_create", "execve"}, func(Call) Fault { return "" })
	if !strings.Contains(out, "child: <nil>, failed: 0") || !slices.Contains(made, Call{"inject.test 1", "execve", 1}) || !slices.Contains(made, Call{"inject.test 2", "memfd_create", 8}) {
		t.Errorf("%q, %v", out, made)
	}
	out, made, _ = do(t, "parent", []string{"execve"}, func(Call) Fault { return "ENOMEM" })
	if !strings.Contains(out, "cannot allocate memory") || len(made) != 1 {
		t.Errorf("%q, %v", out, made)
	}
}

// Every fault has an error, every call something that can become of it, and names are not used
// twice.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range table {
		faults := slices.Clone(s.faults)
		for of, f := range s.of {
			faults = append(faults, f...)
			if !slices.Equal(Faults(s.name+"/"+of), f) {
				t.Errorf("%s/%s: %v", s.name, of, Faults(s.name+"/"+of))
			}
		}
		if seen[s.name] || len(faults) == 0 {
			t.Errorf("%s is there twice, or has no fault", s.name)
		}
		seen[s.name] = true
		for _, f := range faults {
			if (f.Errno() == 0) != (f == Short) {
				t.Errorf("%s: %s is unknown", s.name, f)
			}
		}
	}
}
