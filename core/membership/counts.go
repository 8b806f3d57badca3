package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrCount means a count of procs that no host can have.
var ErrCount = errors.New("a malformed count of procs")

// Count is how many procs a host has, as it tells the head.
type Count struct {
	Host  int `json:"host"`
	Procs int `json:"procs"`
}

// Question returns what the host asks the head: what all hosts have.
func (x Count) Question() []byte {
	b, _ := json.Marshal(x) // numbers
	return b
}

// Counts gather, at the head, how many procs each host has, where only the hosts themselves know that.
type Counts struct {
	procs []int // by host; 0: it has not said so
	most  int
}

// NewCounts makes the counts of so many hosts, of which each has 1 to most procs.
func NewCounts(hosts, most int) *Counts { return &Counts{make([]int, hosts), most} }

// Take takes a host's question, which it may repeat.
func (c *Counts) Take(question []byte) error {
	var x Count
	if err := json.Unmarshal(question, &x); err != nil || x.Host < 0 || x.Host >= len(c.procs) || x.Procs < 1 || x.Procs > c.most {
		return fmt.Errorf("%w: %.100q", ErrCount, question)
	}
	c.procs[x.Host] = x.Procs
	return nil
}

// Whole reports whether all hosts have said how many procs they have.
func (c *Counts) Whole() bool { return !slices.Contains(c.procs, 0) }

// Answer returns the answer to a host: what all have, or that it is to ask again.
func (c *Counts) Answer() []byte {
	if !c.Whole() {
		return []byte("[]")
	}
	b, _ := json.Marshal(c.procs) // numbers
	return b
}

// ReadCounts reads the head's answer to one of so many hosts. It returns nil if the host is to ask again.
func ReadCounts(answer []byte, hosts int) (procs []int, err error) {
	if err := json.Unmarshal(answer, &procs); err != nil || len(procs) != 0 && len(procs) != hosts {
		return nil, fmt.Errorf("%w: %.100q", ErrCount, answer)
	}
	return procs, nil
}
