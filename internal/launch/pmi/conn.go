package pmi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What PMI-2 bounds keys and values by; PMI-1 asks. Both are lengths with a byte for the end, as in
// C.
const (
	maxKey   = 64
	maxValue = 1024
)

// Identity identifies a process among those that were started with it.
type Identity struct {
	Rank, Size int
	AppNum     int    // which program of a command line with several
	Job        string // the name of the key-value space, or of the job
	Machine    string // the process manager's name for the process's machine; empty if not known
}

// Conn is a connection to a process manager. It is for one goroutine. After an error nothing more
// can be asked.
type Conn struct {
	rw      io.ReadWriteCloser
	version int
	me      Identity
	key     int // bounds, as above
	value   int
	got     []byte // received bytes of an incomplete answer
	dead    error  // why nothing can be asked any more
}

// Started reports whether the environment says that a process manager has started this process.
func Started(environ func(string) string) bool {
	return environ("PMI_FD") != "" || environ("PMI_PORT") != "" && environ("PMI_ID") != ""
}

const dialTime = 30 * time.Second

// Open connects to the process manager that the environment names, and gets the identity of this
// process. version is 1 or 2; hydra and Slurm's mpi/pmi2 both support either. The descriptor of
// PMI_FD belongs to the connection then.
func Open(environ func(string) string, version int) (*Conn, error) {
	c, err := open(environ, version)
	if err != nil {
		return nil, fmt.Errorf("cannot speak PMI-%d to the process manager that has started this process: %w", version, err)
	}
	return c, nil
}

func open(environ func(string) string, version int) (*Conn, error) {
	me := Identity{Job: environ("PMI_JOBID")}
	text := environ("PMI_FD")
	if text == "" {
		port, id := environ("PMI_PORT"), environ("PMI_ID")
		if port == "" || id == "" {
			return nil, errors.New("neither PMI_FD nor PMI_PORT and PMI_ID are in the environment. Start it by srun --mpi=pmi2 or mpiexec.hydra")
		}
		rw, err := net.DialTimeout("tcp", port, dialTime)
		if err != nil {
			return nil, fmt.Errorf("PMI_PORT=%s: %w", port, err)
		}
		return newConn(rw, version, id, me)
	}
	for name, into := range map[string]*int{"PMI_RANK": &me.Rank, "PMI_SIZE": &me.Size} {
		n, err := strconv.ParseUint(environ(name), 10, 31)
		if err != nil || n > maxProcs {
			return nil, fmt.Errorf("%s=%q in the environment is no number from 0 to %d", name, environ(name), maxProcs)
		}
		*into = int(n)
	}
	fd, err := strconv.ParseUint(text, 10, 20)
	if err != nil {
		return nil, fmt.Errorf("PMI_FD=%q in the environment is no number of a descriptor", text)
	}
	unix.CloseOnExec(int(fd)) // processes that we start must not have it
	f := os.NewFile(uintptr(fd), "PMI_FD")
	if _, err := f.Stat(); err != nil {
		return nil, fmt.Errorf("PMI_FD=%d is not open. Something between the process manager and this process has closed it: %w", fd, err)
	}
	return newConn(f, version, "", me)
}

// newConn begins PMI in version 1 or 2 on rw, which it owns. id is that of PMI_PORT's way to begin,
// or ""; with it rank and size need not be known before.
func newConn(rw io.ReadWriteCloser, version int, id string, me Identity) (*Conn, error) {
	c := &Conn{rw: rw, version: version, me: me, key: maxKey, value: maxValue}
	if err := c.begin(id); err != nil {
		_ = rw.Close()
		return nil, err
	}
	return c, nil
}

// step is a request of the beginning: what is sent, if anything, and which command answers.
type step struct {
	send fields
	due  string
}

func (c *Conn) begin(id string) error {
	if c.version != 1 && c.version != 2 {
		return fmt.Errorf("there is no PMI-%d here, only 1 and 2", c.version)
	}
	var steps []step
	if id != "" {
		if err := checkWord("PMI_ID", id, maxKey); err != nil {
			return err
		}
		steps = []step{{fields{{"cmd", "initack"}, {"pmiid", id}}, "initack"}, {nil, "set"}, {nil, "set"}, {nil, "set"}}
	}
	steps = append(steps, step{fields{{"cmd", "init"}, {"pmi_version", strconv.Itoa(c.version)}, {"pmi_subversion", strconv.Itoa(2 - c.version)}}, "response_to_init"})
	for len(steps) > 0 {
		s := steps[0]
		if err := c.learn(s); err != nil {
			return err
		}
		if steps = steps[1:]; s.due == "response_to_init" {
			steps = c.rest()
		}
	}
	if c.me.Size < 1 || c.me.Rank < 0 || c.me.Rank >= c.me.Size || c.me.Job == "" {
		return fmt.Errorf("the process manager has not said who we are: rank %d of %d in job %q", c.me.Rank, c.me.Size, c.me.Job)
	}
	return nil
}

func (c *Conn) rest() []step {
	if c.version == 1 {
		return []step{
			{fields{{"cmd", "get_maxes"}}, "maxes"},
			{fields{{"cmd", "get_appnum"}}, "appnum"},
			{fields{{"cmd", "get_my_kvsname"}}, "my_kvsname"},
		}
	}
	return []step{
		{fields{{"cmd", "fullinit"}, {"pmijobid", c.me.Job}, {"pmirank", strconv.Itoa(c.me.Rank)}, {"threaded", "FALSE"}}, "fullinit-response"},
		{fields{{"cmd", "job-getid"}}, "job-getid-response"},
	}
}

// learn takes a step, and what its answer says about this process.
func (c *Conn) learn(s step) error {
	f, err := c.ask(s.due, s.send)
	if err != nil {
		return err
	}
	numbers := map[string]*int{}
	switch s.due {
	case "set", "fullinit-response":
		numbers = map[string]*int{"rank": &c.me.Rank, "size": &c.me.Size, "appnum": &c.me.AppNum}
	case "appnum":
		numbers = map[string]*int{"appnum": &c.me.AppNum}
	case "maxes":
		numbers = map[string]*int{"keylen_max": &c.key, "vallen_max": &c.value}
	case "my_kvsname", "job-getid-response":
		for _, key := range []string{"kvsname", "jobid"} {
			if name, found := f.get(key); found {
				c.me.Job = name
			}
		}
		return checkWord("name of the job", c.me.Job, maxValue)
	case "response_to_init":
		if got := f.value("pmi_version"); got != strconv.Itoa(c.version) {
			return fmt.Errorf("the process manager speaks PMI-%.10s, not PMI-%d", got, c.version)
		}
	}
	for key, into := range numbers {
		text, found := f.get(key)
		if !found {
			continue
		}
		if key == "appnum" && text == "-1" {
			text = "0" // by which Slurm means that there is one program only
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n > maxProcs {
			return fmt.Errorf("the process manager says %s=%.40s, which is no number from 0 to %d", key, text, maxProcs)
		}
		*into = int(n)
	}
	return nil
}

// ask sends a request, if any, and returns its answer, which must be of the command due.
func (c *Conn) ask(due string, request fields) (fields, error) {
	if c.dead != nil {
		return nil, fmt.Errorf("PMI can be asked nothing any more: %w", c.dead)
	}
	answer, err := c.exchange(due, request)
	c.dead = err
	return answer, err
}

func (c *Conn) exchange(due string, request fields) (fields, error) {
	if request != nil {
		if len(c.got) > 0 {
			return nil, fmt.Errorf("the process manager says %.80q, which nobody has asked", c.got)
		}
		if err := c.send(due, request); err != nil {
			return nil, err
		}
	}
	f, err := c.receive(due)
	if err != nil {
		return nil, err
	}
	if cmd := f.value("cmd"); cmd != due {
		return nil, fmt.Errorf("the process manager answers %.40q where %s is due", cmd, due)
	}
	rc, hasRC := f.get("rc")
	if hasRC && rc != "0" && !slices.Contains(finding, due) {
		return nil, fmt.Errorf("the process manager refuses: %s with rc=%.20s %.200s", due, rc, f.value("msg")+f.value("errmsg"))
	}
	return f, nil
}

// lines reports whether a request and its answer are lines: in PMI-2 those up to the answer to init
// are.
func (c *Conn) lines(due string) bool {
	return c.version == 1 || slices.Contains([]string{"initack", "set", "response_to_init"}, due)
}

func (c *Conn) send(due string, request fields) error {
	text := request.message()
	if c.lines(due) {
		text = request.line()
	}
	if _, err := c.rw.Write(text); err != nil {
		return fmt.Errorf("the process manager takes nothing any more: %w", err)
	}
	return nil
}

func (c *Conn) receive(due string) (fields, error) {
	parse := parseMessage
	if c.lines(due) {
		parse = parseLine
	}
	buf := make([]byte, 4<<10)
	for {
		f, n, err := parse(c.got)
		if err != nil {
			return nil, fmt.Errorf("the process manager's answer cannot be read: %w", err)
		}
		if n > 0 {
			c.got = c.got[n:]
			return f, nil
		}
		if n, err = c.rw.Read(buf); n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("the process manager does not answer: %w", err)
		}
		c.got = append(c.got, buf[:n]...)
	}
}

// Me returns who this process is, as the process manager said at Open.
func (c *Conn) Me() Identity { return c.me }

// Put publishes a value under a key. Others get it after the next Fence of all.
func (c *Conn) Put(key, value string) error {
	err := errors.Join(checkWord("key", key, c.key), checkWord("value of "+key, value, c.value))
	switch {
	case err != nil:
	case c.version == 1:
		_, err = c.ask("put_result", fields{{"cmd", "put"}, {"kvsname", c.me.Job}, {"key", key}, {"value", value}})
	default:
		_, err = c.ask("kvs-put-response", fields{{"cmd", "kvs-put"}, {"key", key}, {"value", value}})
	}
	return err
}

// Fence waits until all processes have called it. After that Get returns what they have Put before.
func (c *Conn) Fence() (err error) {
	if c.version == 1 {
		_, err = c.ask("barrier_out", fields{{"cmd", "barrier_in"}})
	} else {
		_, err = c.ask("kvs-fence-response", fields{{"cmd", "kvs-fence"}})
	}
	return err
}

// finding are the answers that may say, by rc too, that there is no value.
var finding = []string{"get_result", "kvs-get-response", "info-getjobattr-response"}

// Get returns a value that a rank has put before the last Fence. Not all process managers look at
// the rank.
func (c *Conn) Get(key string, rank int) (value string, found bool, err error) {
	if rank < 0 || rank >= c.me.Size {
		return "", false, fmt.Errorf("rank %d is none of %d", rank, c.me.Size)
	}
	return c.find(key, "kvs-get-response", fields{{"cmd", "kvs-get"}, {"jobid", c.me.Job}, {"srcid", strconv.Itoa(rank)}, {"key", key}})
}

func (c *Conn) find(key, due string, request fields) (value string, found bool, err error) {
	if err := checkWord("key", key, c.key); err != nil {
		return "", false, err
	}
	if c.version == 1 {
		due, request = "get_result", fields{{"cmd", "get"}, {"kvsname", c.me.Job}, {"key", key}}
	}
	f, err := c.ask(due, request)
	value, found = f.get("value")
	if rc, hasRC := f.get("rc"); !found || hasRC && rc != "0" || f.value("found") == "FALSE" {
		return "", false, err
	}
	return value, true, err
}

// Nodes returns the node of each rank, from 0, or nil if the process manager does not report it.
func (c *Conn) Nodes() ([]int, error) {
	const key = "PMI_process_mapping"
	text, _, err := c.find(key, "info-getjobattr-response", fields{{"cmd", "info-getjobattr"}, {"key", key}})
	if err != nil {
		return nil, err
	}
	return ParseMapping(text, c.me.Size)
}

// Abort makes the process manager end all processes. It returns when that was sent: there is no
// answer.
func (c *Conn) Abort(status int, message string) error {
	if c.dead != nil {
		return fmt.Errorf("PMI can be asked nothing any more: %w", c.dead)
	}
	c.dead = errors.New("the job was aborted")
	if c.version == 1 {
		return c.send("", fields{{"cmd", "abort"}, {"exitcode", strconv.Itoa(status)}})
	}
	words := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == ';' {
			return ' '
		}
		return r
	}, message)
	return c.send("", fields{{"cmd", "abort"}, {"isworld", "TRUE"}, {"msg", words[:min(len(words), maxValue)]}})
}

// Close finalizes: the process may end then, without that being a failure of the job.
func (c *Conn) Close() error {
	due := "finalize_ack"
	if c.version == 2 {
		due = "finalize-response"
	}
	_, err := c.ask(due, fields{{"cmd", "finalize"}})
	if err == nil {
		c.dead = errors.New("it was finalized")
	}
	return errors.Join(err, c.rw.Close())
}

// checkWord checks that both versions can carry a text, and that it has less than most bytes.
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
