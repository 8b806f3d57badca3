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

// manager is a process manager that has an answer to each request, of which it gives one byte at a
// time, or all.
type manager struct {
	atOnce  bool
	answers []string
	asked   []string
	due     string // of an answer, what was not read yet
}

func (m *manager) Write(p []byte) (int, error) {
	m.asked = append(m.asked, string(p))
	if len(m.answers) > 0 {
		m.due, m.answers = m.due+m.answers[0], m.answers[1:]
	}
	return len(p), nil
}

func (m *manager) Read(p []byte) (int, error) {
	if m.due == "" {
		return 0, io.EOF
	}
	n := 1
	if m.atOnce {
		n = len(p)
	}
	n = copy(p[:n], m.due)
	m.due = m.due[n:]
	return n, nil
}

func (m *manager) Close() error { return nil }

// begun is a connection whose beginning is done.
func begun(t *testing.T, version int, answers ...string) (*Conn, *manager) {
	t.Helper()
	beginning := []string{ // as hydra has given it
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", "cmd=maxes kvsname_max=256 keylen_max=8 vallen_max=16\n",
		"cmd=appnum appnum=3\n", "cmd=my_kvsname kvsname=kvs_1\n",
	}
	want := []string{
		"cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=get_maxes\n", "cmd=get_appnum\n", "cmd=get_my_kvsname\n",
	}
	if version == 2 {
		beginning = []string{
			"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n",
			"   113cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=1;size=2;appnum=3;debugged=FALSE;pmiverbose=FALSE;rc=0;",
			"40    cmd=job-getid-response;jobid=kvs_1;rc=0;",
		}
		want = []string{
			"cmd=init pmi_version=2 pmi_subversion=0\n", "    48cmd=fullinit;pmijobid=;pmirank=1;threaded=FALSE;", "    14cmd=job-getid;",
		}
	}
	m := &manager{answers: append(beginning, answers...)}
	c, err := newConn(m, version, "", Identity{Rank: 1, Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.asked, want) {
		t.Errorf("asked %q, want %q", m.asked, want)
	}
	if (c.Me() != Identity{Rank: 1, Size: 2, AppNum: 3, Job: "kvs_1"}) {
		t.Errorf("%+v", c.Me())
	}
	m.asked = nil
	return c, m
}

// TestPort begins as a process does that has PMI_PORT.
func TestPort(t *testing.T) {
	m := &manager{answers: []string{
		"cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
		"cmd=maxes\n", "cmd=appnum appnum=-1\n", "cmd=my_kvsname kvsname=kvs_1\n",
	}}
	c, err := newConn(m, 1, "7", Identity{})
	if err != nil || m.asked[0] != "cmd=initack pmiid=7\n" || c.Me() != (Identity{Rank: 1, Size: 2, Job: "kvs_1"}) {
		t.Errorf("%v, asked %q", err, m.asked)
	}
}

// message is one of PMI-2.
func message(text string) string { return fmt.Sprintf("%6d%s", len(text), text) }

func TestRequests(t *testing.T) {
	for version := 1; version <= 2; version++ {
		var c *Conn
		find := func(key string, rank int) func() (string, error) {
			return func() (string, error) {
				value, found, err := c.Get(key, rank)
				if found != (value != "") {
					t.Errorf("%q, found: %v", value, found)
				}
				return value, err
			}
		}
		steps := []struct {
			name         string
			do           func() (string, error)
			send, answer [3]string
			value        string
		}{
			{
				"put", func() (string, error) { return "", c.Put("k", "v=1") },
				[3]string{1: "cmd=put kvsname=kvs_1 key=k value=v=1\n", 2: message("cmd=kvs-put;key=k;value=v=1;")},
				[3]string{1: "cmd=put_result rc=0 msg=success\n", 2: message("cmd=kvs-put-response;rc=0;")}, "",
			},
			{
				"fence", func() (string, error) { return "", c.Fence() },
				[3]string{1: "cmd=barrier_in\n", 2: message("cmd=kvs-fence;")},
				[3]string{1: "cmd=barrier_out\n", 2: message("cmd=kvs-fence-response;rc=0;")}, "",
			},
			{
				"get", find("k", 0),
				[3]string{1: "cmd=get kvsname=kvs_1 key=k\n", 2: message("cmd=kvs-get;jobid=kvs_1;srcid=0;key=k;")},
				[3]string{1: "cmd=get_result rc=0 msg=success value=v=1\n", 2: message("cmd=kvs-get-response;found=TRUE;value=v=;;1;rc=0;")}, [...]string{1: "v=1", 2: "v=;1"}[version],
			},
			{
				"get nothing", find("k", 1),
				[3]string{1: "cmd=get kvsname=kvs_1 key=k\n", 2: message("cmd=kvs-get;jobid=kvs_1;srcid=1;key=k;")},
				[3]string{1: "cmd=get_result rc=-1 msg=key_k_not_found value=unknown\n", 2: message("cmd=kvs-get-response;found=FALSE;rc=0;")}, "",
			},
			{
				"nodes", func() (string, error) { nodes, err := c.Nodes(); return fmt.Sprint(nodes), err },
				[3]string{1: "", 2: message("cmd=info-getjobattr;key=PMI_process_mapping;")}, // the key is too long for this PMI-1
				[3]string{1: "", 2: message("cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,2,1));rc=0;")}, "[0 1]",
			},
			{
				"finalize", func() (string, error) { return "", c.Close() },
				[3]string{1: "cmd=finalize\n", 2: message("cmd=finalize;")},
				[3]string{1: "cmd=finalize_ack\n", 2: message("cmd=finalize-response;rc=0;")}, "",
			},
		}
		var answers, want []string
		for _, s := range steps {
			if s.send[version] != "" {
				answers, want = append(answers, s.answer[version]), append(want, s.send[version])
			}
		}
		var m *manager
		c, m = begun(t, version, answers...)
		for _, s := range steps {
			if s.send[version] == "" {
				continue
			}
			if value, err := s.do(); err != nil || value != s.value {
				t.Errorf("PMI-%d %s: %q %v, want %q", version, s.name, value, err, s.value)
			}
		}
		if !slices.Equal(m.asked, want) {
			t.Errorf("PMI-%d: asked %q, want %q", version, m.asked, want)
		}
		for _, err := range []error{c.Fence(), c.Abort(1, "")} {
			if err == nil || !strings.Contains(err.Error(), "finalized") {
				t.Errorf("PMI-%d: after the end: %v", version, err)
			}
		}
	}
}

func TestAbort(t *testing.T) {
	for version, want := range map[int]string{1: "cmd=abort exitcode=3\n", 2: message("cmd=abort;isworld=TRUE;msg=no  luck;")} {
		c, m := begun(t, version)
		if err := c.Abort(3, "no;\nluck"); err != nil || !slices.Equal(m.asked, []string{want}) {
			t.Errorf("PMI-%d: %v, asked %q, want %q", version, err, m.asked, want)
		}
		if err := c.Fence(); err == nil || !strings.Contains(err.Error(), "aborted") {
			t.Errorf("PMI-%d: after an abort: %v", version, err)
		}
	}
}

func TestBounds(t *testing.T) {
	c, _ := begun(t, 1, "cmd=put_result rc=0\n") // keys of at most 7 bytes, values of 15
	for _, x := range [][2]string{{"", "v"}, {"12345678", "v"}, {"k", ""}, {"k", "1234567890123456"}, {"k", "a b"}, {"k", "a;b"}, {"k", "a\n"}, {"k\x80", "v"}} {
		if err := c.Put(x[0], x[1]); err == nil {
			t.Errorf("%q is taken", x)
		}
	}
	if _, _, err := c.Get("k", 2); err == nil {
		t.Error("there is no rank 2 of 2")
	}
	if err := c.Put("1234567", "123456789012345"); err != nil {
		t.Error(err)
	}
}

// TestAnswers has process managers that say what they should not.
func TestAnswers(t *testing.T) {
	for version, answers := range map[int]map[string]string{
		1: {
			"cmd=get_result rc=0\n":                   "where barrier_out is due",
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
			c, _ := begun(t, version, answer, "cmd=barrier_out\n")
			if err := c.Fence(); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("PMI-%d %.50q: %v, want %q", version, answer, err, words)
				continue
			}
			if err := c.Fence(); err == nil || !strings.Contains(err.Error(), "can be asked nothing any more") {
				t.Errorf("after an error: %v", err)
			}
		}
	}
	c, m := begun(t, 1, "cmd=barrier_out\ncmd=barrier_out\n")
	m.atOnce = true
	if err := errors.Join(c.Fence(), c.Fence()); err == nil || !strings.Contains(err.Error(), "which nobody has asked") {
		t.Errorf("two answers to one request: %v", err)
	}
	for answer, words := range map[string]string{
		"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n":                   "speaks PMI-2",
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n":                  "refuses",
		"cmd=response_to_init pmi_version=1 rc=0\n|cmd=maxes keylen_max=many\n":        "keylen_max=many",
		"cmd=response_to_init pmi_version=1 rc=0\n|cmd=maxes\n|cmd=appnum appnum=-2\n": "appnum=-2",
	} {
		if _, err := newConn(&manager{answers: strings.Split(answer, "|")}, 1, "", Identity{Size: 1}); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, want %q", answer, err, words)
		}
	}
	if _, err := newConn(&manager{}, 3, "", Identity{}); err == nil {
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

func TestCutConnection(t *testing.T) {
	_, err := newConn(&manager{answers: []string{"cmd=response_to_init pmi_ver"}}, 1, "", Identity{Size: 1})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

// FuzzConn has a process manager say all that it has to say at once, or at the requests.
func FuzzConn(f *testing.F) {
	f.Add(1, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n|cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n|cmd=appnum appnum=0\n|cmd=my_kvsname kvsname=k\n")
	f.Add(2, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n|   113cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=0;size=2;appnum=0;debugged=FALSE;pmiverbose=FALSE;rc=0;")
	f.Fuzz(func(t *testing.T, version int, text string) {
		defer watchdog.Start()()
		for _, answers := range [][]string{{text}, strings.Split(text, "|")} {
			c, err := newConn(&manager{answers: answers, atOnce: len(text)%2 == 0}, 1+version&1, "7", Identity{Size: 1})
			if err == nil && (c.me.Rank < 0 || c.me.Rank >= c.me.Size || c.me.Size > maxProcs) {
				t.Errorf("%+v", c.me)
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
