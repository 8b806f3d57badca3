package pmi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

// begun is a machine whose beginning is done.
func begun(t *testing.T, version int) *Machine {
	t.Helper()
	m, err := NewMachine(version, "", Identity{Rank: 1, Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.Begin()
	if err != nil {
		t.Fatal(err)
	}
	answers := []string{ // as hydra has given them
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", "cmd=maxes kvsname_max=256 keylen_max=8 vallen_max=16\n",
		"cmd=appnum appnum=3\n", "cmd=my_kvsname kvsname=kvs_1\n",
	}
	want := []string{
		"cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=get_maxes\n", "cmd=get_appnum\n", "cmd=get_my_kvsname\n",
	}
	if version == 2 {
		answers = []string{
			"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n",
			"   113cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=1;size=2;appnum=3;debugged=FALSE;pmiverbose=FALSE;rc=0;",
			"40    cmd=job-getid-response;jobid=kvs_1;rc=0;",
		}
		want = []string{
			"cmd=init pmi_version=2 pmi_subversion=0\n", "    48cmd=fullinit;pmijobid=;pmirank=1;threaded=FALSE;", "    14cmd=job-getid;",
		}
	}
	sent := []string{string(first)}
	for i, a := range answers {
		var all []byte
		done := false
		for _, b := range []byte(a) { // however it is cut
			send, d, err := m.Receive([]byte{b})
			if err != nil {
				t.Fatalf("%q: %v", a, err)
			}
			all, done = append(all, send...), d
		}
		if done != (i == len(answers)-1) {
			t.Fatalf("after %q it is done: %v", a, done)
		}
		if !done {
			sent = append(sent, string(all))
		}
	}
	if !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	if (m.Me() != Identity{Rank: 1, Size: 2, AppNum: 3, Job: "kvs_1"}) {
		t.Errorf("%+v", m.Me())
	}
	return m
}

func TestRequests(t *testing.T) {
	for version := 1; version <= 2; version++ {
		m := begun(t, version)
		for _, step := range []struct {
			name         string
			ask          func() ([]byte, error)
			send, answer [3]string
			value        string
			found        bool
		}{
			{
				"put", func() ([]byte, error) { return m.Put("k", "v=1") },
				[3]string{1: "cmd=put kvsname=kvs_1 key=k value=v=1\n", 2: "    30cmd=kvs-put;key=k;value=v=1;;"},
				[3]string{1: "cmd=put_result rc=0 msg=success\n", 2: "    26cmd=kvs-put-response;rc=0;"}, "", false,
			},
			{
				"fence", m.Fence,
				[3]string{1: "cmd=barrier_in\n", 2: "    14cmd=kvs-fence;"},
				[3]string{1: "cmd=barrier_out\n", 2: "    28cmd=kvs-fence-response;rc=0;"}, "", false,
			},
			{
				"get", func() ([]byte, error) { return m.Get("k", 0) },
				[3]string{1: "cmd=get kvsname=kvs_1 key=k\n", 2: "    40cmd=kvs-get;jobid=kvs_1;srcid=0;key=k;"},
				[3]string{1: "cmd=get_result rc=0 msg=success value=v=1\n", 2: "    49cmd=kvs-get-response;found=TRUE;value=v=;;1;rc=0;"}, "v=1", true,
			},
			{
				"get nothing", func() ([]byte, error) { return m.Get("k", 0) },
				[3]string{1: "cmd=get kvsname=kvs_1 key=k\n", 2: ""},
				[3]string{1: "cmd=get_result rc=-1 msg=key_k_not_found value=unknown\n", 2: "    38cmd=kvs-get-response;found=FALSE;rc=0;"}, "", false,
			},
			{
				"attribute", func() ([]byte, error) { return m.Attribute("a") },
				[3]string{1: "cmd=get kvsname=kvs_1 key=a\n", 2: "    30cmd=info-getjobattr;key=a;"},
				[3]string{1: "cmd=get_result rc=0 msg=success value=(x)\n", 2: "    56cmd=info-getjobattr-response;found=TRUE;value=(x);rc=0;"}, "(x)", true,
			},
			{
				"finalize", m.Finalize,
				[3]string{1: "cmd=finalize\n", 2: "    13cmd=finalize;"},
				[3]string{1: "cmd=finalize_ack\n", 2: "    27cmd=finalize-response;rc=0;"}, "", false,
			},
		} {
			send, err := step.ask()
			if err != nil {
				t.Fatalf("PMI-%d %s: %v", version, step.name, err)
			}
			if version == 2 { // the length is what is there
				if n := fmt.Sprintf("%6d", len(send)-6); string(send[:6]) != n {
					t.Errorf("%s: %q begins with a wrong length", step.name, send)
				}
				_, body, _ := strings.Cut(step.answer[2], "cmd")
				step.answer[2] = fmt.Sprintf("%6dcmd%s", len(body)+3, body)
			} else if string(send) != step.send[1] {
				t.Errorf("%s: sent %q, want %q", step.name, send, step.send[1])
			}
			if _, err := m.Fence(); err == nil {
				t.Errorf("%s: another request is taken before the answer", step.name)
			}
			if _, done, err := m.Receive([]byte(step.answer[version])); err != nil || !done {
				t.Fatalf("PMI-%d %s: %v %v", version, step.name, done, err)
			}
			if value, found := m.Value(); step.found && (value != step.value && value != "v=;1" || !found) || step.name == "get nothing" && (found || value != "") {
				t.Errorf("PMI-%d %s: %q %v", version, step.name, value, found)
			}
		}
		if _, err := m.Fence(); err == nil || !strings.Contains(err.Error(), "finalized") {
			t.Errorf("PMI-%d: after the end: %v", version, err)
		}
	}
}

func TestBounds(t *testing.T) {
	m := begun(t, 1) // keys of at most 7 bytes, values of 15
	for _, c := range [][2]string{{"", "v"}, {"12345678", "v"}, {"k", ""}, {"k", "1234567890123456"}, {"k", "a b"}, {"k", "a;b"}, {"k", "a\n"}, {"k\x80", "v"}} {
		if _, err := m.Put(c[0], c[1]); err == nil {
			t.Errorf("%q is taken", c)
		}
	}
	if _, err := m.Get("k", 2); err == nil {
		t.Error("there is no rank 2 of 2")
	}
	if _, err := m.Put("1234567", "123456789012345"); err != nil {
		t.Error(err)
	}
}

// TestAnswers has process managers that say what they should not.
func TestAnswers(t *testing.T) {
	for version, answers := range map[int]map[string]string{
		1: {
			"cmd=get_result rc=0\n":                   "where barrier_out is due",
			"cmd=barrier_out\ncmd=barrier_out\n":      "which nobody has asked",
			"cmd=barrier_out rc=7 msg=no such luck\n": "rc=7 no such luck",
			"hello\n":                      "no key=value",
			strings.Repeat("x", maxLine+1): "more than 65536 bytes",
		},
		2: {
			"    14cmd=kvs-fence;": "where kvs-fence-response is due",
			"abc":                  "no length of a message",
			"999999":               "more than 65536",
			"-00014":               "no length",
			"    43cmd=kvs-fence-response;rc=3;errmsg=no luck;;": "rc=3",
			"     5hello": "no key=value",
		},
	} {
		for answer, words := range answers {
			m := begun(t, version)
			if _, err := m.Fence(); err != nil {
				t.Fatal(err)
			}
			_, _, err := m.Receive([]byte(answer))
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("PMI-%d %.50q: %v, want %q", version, answer, err, words)
				continue
			}
			if _, _, err := m.Receive([]byte("cmd=barrier_out\n")); err == nil {
				t.Error("it is heard after an error")
			}
		}
	}
	for answer, words := range map[string]string{
		"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n":                 "speaks PMI-2",
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n":                "refuses",
		"cmd=response_to_init pmi_version=1 rc=0\ncmd=maxes keylen_max=many\n":       "keylen_max=many",
		"cmd=response_to_init pmi_version=1 rc=0\ncmd=maxes\ncmd=appnum appnum=-2\n": "appnum=-2",
	} {
		m, err := NewMachine(1, "", Identity{Size: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Begin(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.Receive([]byte(answer)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, want %q", answer, err, words)
		}
	}
	if _, err := NewMachine(3, "", Identity{}); err == nil {
		t.Error("PMI-3 is spoken")
	}
}

func TestParseMapping(t *testing.T) {
	for _, c := range []struct {
		text  string
		procs int
		want  []int
	}{
		{"(vector,(0,2,2))", 4, []int{0, 0, 1, 1}},
		{"(vector,(0,1,1))", 3, []int{0, 0, 0}}, // hydra's way to say that all are on one node
		{"(vector, (0,1,4), (1,2,2))", 8, []int{0, 0, 0, 0, 1, 1, 2, 2}},
		{"(vector,(0,3,2))", 5, []int{0, 0, 1, 1, 2}},
		{"(vector,(1,1,1),(0,1,1))", 4, []int{1, 0, 1, 0}},
		{"", 3, nil}, {"(void)", 3, nil},
		{"(vector,(0,1,1))", 0, []int{}},
	} {
		got, err := ParseMapping(c.text, c.procs)
		if err != nil || !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s of %d: %v %v, want %v", c.text, c.procs, got, err, c.want)
		}
	}
	for _, text := range []string{"vector", "(vector)", "(vector,(0,1))", "(vector,(0,0,1))", "(vector,(0,1,0))", "(vector,(0,1,-1))", "(vector,(0,1,1)", "(matrix,(0,1,1))", "(vector,(0,99999999999,1))", "(vector,(0,1,1)x)"} {
		if got, err := ParseMapping(text, 4); err == nil {
			t.Errorf("%s: %v, want an error", text, got)
		}
	}
	if _, err := ParseMapping("(vector,(0,1,1))", maxProcs+1); err == nil {
		t.Error("so many procs are taken")
	}
}

func TestOpen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close() // it says nothing
		}
	}()
	defer l.Close()
	for words, environ := range map[string]map[string]string{
		"neither PMI_FD nor PMI_PORT": {},
		"PMI_RANK=\"\"":               {"PMI_FD": "3", "PMI_SIZE": "2"},
		"no number of a descriptor":   {"PMI_FD": "x", "PMI_RANK": "0", "PMI_SIZE": "1"},
		"PMI_FD=9999 is not open":     {"PMI_FD": "9999", "PMI_RANK": "0", "PMI_SIZE": "1"},
		"PMI_PORT=nowhere":            {"PMI_PORT": "nowhere", "PMI_ID": "0"},
		"the process manager":         {"PMI_PORT": l.Addr().String(), "PMI_ID": "0"},
	} {
		_, err := Open(func(name string) string { return environ[name] }, 2)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

// cut is a connection that ends in the middle.
type cut struct{ io.Reader }

func (cut) Write(p []byte) (int, error) { return len(p), nil }
func (cut) Close() error                { return nil }

func TestCutConnection(t *testing.T) {
	_, err := begin(cut{strings.NewReader("cmd=response_to_init pmi_ver")}, 1, "", Identity{Size: 1})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

func FuzzMachine(f *testing.F) {
	f.Add(1, []byte("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\ncmd=appnum appnum=0\ncmd=my_kvsname kvsname=k\n"))
	f.Add(2, []byte("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n   113cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=0;size=2;appnum=0;debugged=FALSE;pmiverbose=FALSE;rc=0;"))
	f.Fuzz(func(t *testing.T, version int, text []byte) {
		defer watchdog.Start()()
		for _, step := range []int{1, len(text) + 1} {
			m, err := NewMachine(1+version&1, "7", Identity{Size: 1})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Begin(); err != nil {
				t.Fatal(err)
			}
			for chunk := range slices.Chunk(text, step) {
				_, done, err := m.Receive(chunk)
				if err != nil {
					break
				}
				if me := m.Me(); done && (me.Rank < 0 || me.Rank >= me.Size || me.Size > maxProcs) {
					t.Errorf("%+v", me)
				}
			}
			if len(m.got) > maxLine+digits+len(text) {
				t.Errorf("%d bytes are kept", len(m.got))
			}
		}
	})
}

func FuzzMapping(f *testing.F) {
	f.Add("(vector,(0,2,2),(2,1,4))", 9)
	f.Fuzz(func(t *testing.T, text string, procs int) {
		defer watchdog.Start()()
		procs = min(procs, 1<<12)
		nodes, err := ParseMapping(text, procs)
		if err == nil && nodes != nil && len(nodes) != procs {
			t.Errorf("%d nodes of %d procs", len(nodes), procs)
		}
	})
}
