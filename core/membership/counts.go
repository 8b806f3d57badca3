package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrCount means a count of procs that is not valid for any host.
var ErrCount = errors.New("a malformed count of procs")

// Count is a host's number of procs, as the host reports it to the head.
type Count struct {
	Host  int `json:"host"`
	Procs int `json:"procs"`
}

// Question returns the host's question to the head: the numbers of procs of all hosts.
func (x Count) Question() []byte {
	b, _ := json.Marshal(x) // cannot fail: numbers only
	return b
}

// Counts collect, at the head, the number of procs of each host, if only the hosts themselves know
// it.
type Counts struct {
	procs []int // by host; 0: not reported yet
	most  int
}

// NewCounts returns the empty counts of that many hosts, of which each has 1 to most procs.
func NewCounts(hosts, most int) *Counts { return &Counts{make([]int, hosts), most} }

// Add takes a host's question, which it may repeat.
func (c *Counts) Add(question []byte) error {
	var x Count
	if err := json.Unmarshal(question, &x); err != nil || x.Host < 0 || x.Host >= len(c.procs) || x.Procs < 1 || x.Procs > c.most {
		return fmt.Errorf("%w: %.100q", ErrCount, question)
	}
	c.procs[x.Host] = x.Procs
	return nil
}

// Complete reports whether all hosts have reported their number of procs.
func (c *Counts) Complete() bool { return !slices.Contains(c.procs, 0) }

// countTurn is how long a host waits for one answer. It asks again, as no question may take longer
// than a minute.
const countTurn = 20 * time.Second

// Until returns when the head answers a host that asks now: then, or once the counts are complete.
func (c *Counts) Until(now time.Time) time.Time { return now.Add(countTurn) }

// Answer returns the answer to a host: the numbers of all hosts, or that it should ask again.
func (c *Counts) Answer() []byte {
	if !c.Complete() {
		return []byte("[]")
	}
	b, _ := json.Marshal(c.procs) // cannot fail: numbers only
	return b
}

// ReadCounts parses the head's answer to one of that many hosts. It returns nil if the host should
// ask again.
func ReadCounts(answer []byte, hosts int) (procs []int, err error) {
	if err := json.Unmarshal(answer, &procs); err != nil || len(procs) != 0 && len(procs) != hosts {
		return nil, fmt.Errorf("%w: %.100q", ErrCount, answer)
	}
	return procs, nil
}
