package links

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
)

// Selection is what the flags of a command say about which jobs are meant, and how their nodes are
// asked.
type Selection struct {
	Job, RunDir string
	UID         int // owner of the jobs
	PID         int // a process of the job; 0: any
	Deadline    time.Duration

	user     string
	patience patience
	told     []string // whom the last line about a wait named
}

// NewSelection returns the choice without flags: all jobs of this user.
func NewSelection() *Selection { return &Selection{UID: os.Geteuid(), Deadline: firstLimit} }

// AddFlags adds -job, -run-dir and -user to the flags of a command that takes no arguments.
func (c *Selection) AddFlags(to *cmdline.Command) {
	to.Flags.StringVar(&c.Job, "job", "", cmdline.Job)
	to.Flags.StringVar(&c.RunDir, "run-dir", "", cmdline.Dir)
	to.Flags.StringVar(&c.user, "user", "", cmdline.User)
	to.Check = func([]string) (err error) {
		if c.Deadline <= 0 {
			return fmt.Errorf("-deadline %v: it must be positive", c.Deadline)
		}
		if c.user != "" {
			c.UID, err = userID(c.user)
		}
		return err
	}
}

// AddPIDAndDeadline adds -pid, for the job of a process, and -deadline, the time that nodes have to
// answer, without which Survey waits longer for some.
func (c *Selection) AddPIDAndDeadline(to *cmdline.Command) {
	to.Flags.IntVar(&c.PID, "pid", 0, "")
	to.Flags.Func("deadline", "", func(text string) (err error) {
		c.patience.fixed = true
		c.Deadline, err = time.ParseDuration(text)
		return err
	})
}

// Includes reports whether -job and -pid, where they are set, fit a job.
func (c *Selection) Includes(j *Job) bool {
	return IsCalled(c.Job, j.Name, j.ID) && (c.PID == 0 || j.HasPID(c.PID))
}

// NoJob is the error for when no node was found of a job called name, or of any if that is empty,
// with its run directories in runDir, or in the usual places.
func NoJob(name, runDir string) error {
	job, where := "job of this user", " on this machine (XDG_RUNTIME_DIR and TMPDIR must be the same as where the job was started)"
	if name != "" {
		job = fmt.Sprintf("job %q of this user", name)
	}
	if runDir != "" {
		where = " with its run directories in " + runDir
	}
	return errors.New("no " + job + " runs" + where)
}

// userID returns the number of a user. Only root may ask about another user.
func userID(name string) (int, error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("-user is for root: a node answers only its own user and root")
	}
	if n, err := strconv.Atoi(name); err == nil {
		return n, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(u.Uid)
}
