package pmi

import (
	"fmt"
	"strconv"
	"strings"
)

// What PMI-2 bounds keys and values by; PMI-1 asks. Both are lengths with a byte for the end, as in C.
const (
	maxKey   = 64
	maxValue = 1024
)

// Identity is who a process is among those that were started with it.
type Identity struct {
	Rank, Size int
	AppNum     int    // which program of a command line with several
	Job        string // the name of the key-value space, or of the job
	Machine    string // what the process manager calls the process's machine; empty if it does not say
}

// Machine is the client's side of PMI. A request gives bytes to send; then the bytes of the process manager
// go to Receive, until the request is done. One request is under way at a time. After an error nothing
// more can be asked.
type Machine struct {
	version int
	me      Identity
	key     int // bounds, as above
	value   int

	got     []byte // of a reply that is not complete
	due     string // the command that is waited for; "": none
	steps   []step // of the beginning, that are to come
	dead    string // why nothing can be asked any more
	ready   bool
	gotText string // what Get found
	found   bool
}

// step is a request of the beginning: what is sent, if anything, and which command answers.
type step struct {
	send fields
	due  string
}

// NewMachine makes a machine for version 1 or 2 of PMI. id is that of PMI_PORT's way to begin, or "";
// with it rank and size need not be known before.
func NewMachine(version int, id string, me Identity) (*Machine, error) {
	if version != 1 && version != 2 {
		return nil, fmt.Errorf("there is no PMI-%d here, only 1 and 2", version)
	}
	m := &Machine{version: version, me: me, key: maxKey, value: maxValue}
	if id != "" {
		if err := checkWord("PMI_ID", id, maxKey); err != nil {
			return nil, err
		}
		m.steps = append(m.steps, step{fields{{"cmd", "initack"}, {"pmiid", id}}, "initack"}, step{nil, "set"}, step{nil, "set"}, step{nil, "set"})
	}
	subversion := "1"
	if version == 2 {
		subversion = "0"
	}
	m.steps = append(m.steps, step{fields{{"cmd", "init"}, {"pmi_version", strconv.Itoa(version)}, {"pmi_subversion", subversion}}, "response_to_init"})
	return m, nil
}

// rest are the steps behind init.
func (m *Machine) rest() []step {
	if m.version == 1 {
		return []step{
			{fields{{"cmd", "get_maxes"}}, "maxes"},
			{fields{{"cmd", "get_appnum"}}, "appnum"},
			{fields{{"cmd", "get_my_kvsname"}}, "my_kvsname"},
		}
	}
	return []step{
		{fields{{"cmd", "fullinit"}, {"pmijobid", m.me.Job}, {"pmirank", strconv.Itoa(m.me.Rank)}, {"threaded", "FALSE"}}, "fullinit-response"},
		{fields{{"cmd", "job-getid"}}, "job-getid-response"},
	}
}

// Begin gives what is sent first.
func (m *Machine) Begin() ([]byte, error) {
	if m.ready || m.due != "" || m.dead != "" || len(m.steps) == 0 {
		return nil, fmt.Errorf("PMI has begun before")
	}
	return m.next(), nil
}

// next takes the next step of the beginning.
func (m *Machine) next() []byte {
	s := m.steps[0]
	m.steps = m.steps[1:]
	m.due = s.due
	if s.send == nil {
		return nil
	}
	return m.write(s.send)
}

// lines tells whether the next message is a line: in PMI-2 those up to the answer to init are.
func (m *Machine) lines() bool {
	switch m.due {
	case "initack", "set", "response_to_init":
		return true
	}
	return m.version == 1
}

func (m *Machine) write(f fields) []byte {
	if m.lines() {
		return f.line()
	}
	return f.message()
}

// Me is who the process is, once the beginning is done.
func (m *Machine) Me() Identity { return m.me }

// Value is what the last Get has found.
func (m *Machine) Value() (text string, found bool) { return m.gotText, m.found }

// ask makes a request.
func (m *Machine) ask(due string, f fields) ([]byte, error) {
	switch {
	case m.dead != "":
		return nil, fmt.Errorf("PMI can be asked nothing any more: %s", m.dead)
	case !m.ready:
		return nil, fmt.Errorf("PMI has not begun")
	case m.due != "":
		return nil, fmt.Errorf("PMI has not answered yet what it was asked before (%s is due)", m.due)
	}
	m.due = due
	return m.write(f), nil
}

// Put publishes a value under a key. Others get it after the next Fence of all.
func (m *Machine) Put(key, value string) ([]byte, error) {
	if err := checkWord("key", key, m.key); err != nil {
		return nil, err
	}
	if err := checkWord("value of "+key, value, m.value); err != nil {
		return nil, err
	}
	if m.version == 1 {
		return m.ask("put_result", fields{{"cmd", "put"}, {"kvsname", m.me.Job}, {"key", key}, {"value", value}})
	}
	return m.ask("kvs-put-response", fields{{"cmd", "kvs-put"}, {"key", key}, {"value", value}})
}

// Fence waits until all processes have called it; what they have put before can be got then.
func (m *Machine) Fence() ([]byte, error) {
	if m.version == 1 {
		return m.ask("barrier_out", fields{{"cmd", "barrier_in"}})
	}
	return m.ask("kvs-fence-response", fields{{"cmd", "kvs-fence"}})
}

// Get asks for a value that a rank has put. Not all process managers look at the rank.
func (m *Machine) Get(key string, rank int) ([]byte, error) {
	if err := checkWord("key", key, m.key); err != nil {
		return nil, err
	}
	if rank < 0 || rank >= m.me.Size {
		return nil, fmt.Errorf("rank %d is none of %d", rank, m.me.Size)
	}
	if m.version == 1 {
		return m.ask("get_result", fields{{"cmd", "get"}, {"kvsname", m.me.Job}, {"key", key}})
	}
	return m.ask("kvs-get-response", fields{{"cmd", "kvs-get"}, {"jobid", m.me.Job}, {"srcid", strconv.Itoa(rank)}, {"key", key}})
}

// Attribute asks for something that the process manager knows of the job, such as PMI_process_mapping.
func (m *Machine) Attribute(key string) ([]byte, error) {
	if err := checkWord("key", key, m.key); err != nil {
		return nil, err
	}
	if m.version == 1 {
		return m.ask("get_result", fields{{"cmd", "get"}, {"kvsname", m.me.Job}, {"key", key}})
	}
	return m.ask("info-getjobattr-response", fields{{"cmd", "info-getjobattr"}, {"key", key}})
}

// Finalize says that the process is done with PMI, and may end without that being a failure of the job.
func (m *Machine) Finalize() ([]byte, error) {
	if m.version == 1 {
		return m.ask("finalize_ack", fields{{"cmd", "finalize"}})
	}
	return m.ask("finalize-response", fields{{"cmd", "finalize"}})
}

// Abort has the process manager end all processes. There is no answer.
func (m *Machine) Abort(status int, message string) ([]byte, error) {
	send, err := m.ask("", fields{{"cmd", "abort"}, {"exitcode", strconv.Itoa(status)}})
	if err != nil {
		return nil, err
	}
	if m.version == 2 {
		words := strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' || r == ';' {
				return ' '
			}
			return r
		}, message)
		send = m.write(fields{{"cmd", "abort"}, {"isworld", "TRUE"}, {"msg", words[:min(len(words), maxValue)]}})
	}
	m.dead = "the job was aborted"
	return send, nil
}

// checkWord wants text that both versions can carry, and that has less than most bytes.
func checkWord(what, text string, most int) error {
	if text == "" || len(text) >= most {
		return fmt.Errorf("PMI: the %s has %d bytes, and may have 1 to %d", what, len(text), most-1)
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || c == ';' {
			return fmt.Errorf("PMI: the %s has the byte %q in it. Letters, digits and punctuation but ; can be sent", what, c)
		}
	}
	return nil
}

// Receive takes bytes of the process manager. It gives what is to be sent now, if anything, and whether
// what was asked is done.
func (m *Machine) Receive(p []byte) (send []byte, done bool, err error) {
	if m.dead != "" {
		return nil, false, fmt.Errorf("PMI is not heard any more: %s", m.dead)
	}
	m.got = append(m.got, p...)
	for len(m.got) > 0 {
		if m.due == "" {
			return nil, false, m.fail(fmt.Errorf("the process manager says %.80q, which nobody has asked", m.got))
		}
		parse := parseMessage
		if m.lines() {
			parse = parseLine
		}
		f, n, err := parse(m.got)
		if err != nil {
			return nil, false, m.fail(fmt.Errorf("the process manager's answer cannot be read: %w", err))
		}
		if n == 0 {
			break
		}
		m.got = m.got[n:]
		more, over, err := m.take(f)
		if err != nil {
			return nil, false, m.fail(err)
		}
		send, done = append(send, more...), over
	}
	return send, done, nil
}

func (m *Machine) fail(err error) error {
	m.dead = err.Error()
	return err
}

// take takes the answer that is due.
func (m *Machine) take(f fields) (send []byte, done bool, err error) {
	if cmd := f.value("cmd"); cmd != m.due {
		return nil, false, fmt.Errorf("the process manager answers %.40q where %s is due", cmd, m.due)
	}
	rc, hasRC := f.get("rc")
	isGet := m.due == "get_result" || m.due == "kvs-get-response" || m.due == "info-getjobattr-response"
	if hasRC && rc != "0" && !isGet {
		return nil, false, fmt.Errorf("the process manager refuses: %s with rc=%.20s %.200s", m.due, rc, f.value("msg")+f.value("errmsg"))
	}
	if isGet {
		m.gotText, m.found = f.get("value")
		m.found = m.found && (!hasRC || rc == "0") && f.value("found") != "FALSE"
		if !m.found {
			m.gotText = ""
		}
	} else if err := m.learn(f); err != nil {
		return nil, false, err
	}
	switch m.due {
	case "response_to_init":
		m.steps = m.rest()
	case "finalize_ack", "finalize-response":
		m.dead = "it was finalized"
	}
	m.due = ""
	if len(m.steps) > 0 {
		return m.next(), false, nil
	}
	if !m.ready && (m.me.Size < 1 || m.me.Rank < 0 || m.me.Rank >= m.me.Size || m.me.Job == "") {
		return nil, false, fmt.Errorf("the process manager has not said who we are: rank %d of %d in job %q", m.me.Rank, m.me.Size, m.me.Job)
	}
	m.ready = true
	return nil, true, nil
}

// learn takes from an answer what it says of us.
func (m *Machine) learn(f fields) error {
	numbers := map[string]*int{}
	switch m.due {
	case "set", "fullinit-response":
		numbers = map[string]*int{"rank": &m.me.Rank, "size": &m.me.Size, "appnum": &m.me.AppNum}
	case "appnum":
		numbers = map[string]*int{"appnum": &m.me.AppNum}
	case "maxes":
		numbers = map[string]*int{"keylen_max": &m.key, "vallen_max": &m.value}
	case "my_kvsname", "job-getid-response":
		for _, key := range []string{"kvsname", "jobid"} {
			if name, found := f.get(key); found {
				m.me.Job = name
			}
		}
		return checkWord("name of the job", m.me.Job, maxValue)
	case "response_to_init":
		if got := f.value("pmi_version"); got != strconv.Itoa(m.version) {
			return fmt.Errorf("the process manager speaks PMI-%.10s, not PMI-%d", got, m.version)
		}
	}
	for key, into := range numbers {
		text, found := f.get(key)
		if !found {
			continue
		}
		if key == "appnum" && text == "-1" {
			text = "0" // Slurm's way to say that there is one program only
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n > maxProcs {
			return fmt.Errorf("the process manager says %s=%.40s, which is no number from 0 to %d", key, text, maxProcs)
		}
		*into = int(n)
	}
	return nil
}
