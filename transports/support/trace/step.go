package trace

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Step is a step of a procedure that procs do together by many packets, such as connecting
// two jobs (docs/tracing.md). A trace shows it among the packets, once the proc has
// completed it.
type Step struct {
	Procedure string // with the number of its kind, at most 255 bytes: "accept#2"
	Number    int    // NoStep: the procedure's begin or end
	Text      string // the result
}

// NoStep is the number of the begin and the end of a procedure.
const NoStep = -1

func (s Step) String() string {
	if s.Number == NoStep {
		return s.Procedure + ": " + s.Text
	}
	return fmt.Sprintf("%s step %d: %s", s.Procedure, s.Number, s.Text)
}

// Show writes the step as one line to w, with one Write.
func (s Step) Show(w io.Writer) {
	fmt.Fprintf(w, "%s\n", oneLine(s.String()))
}

func oneLine(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\n", " "), "?")
}

// steps is the name of the interface of a capture that has the steps.
const steps = "steps"

// Step writes a step that a rank has completed. All steps are on one interface, called
// "steps".
func (c *Capture) Step(rank int, s Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps == nil {
		c.put(interfaceBlock(steps, fmt.Sprintf("steps of rank %d", rank), recordHead+stepHead+maxProcedure+maxText))
		c.steps = &records{c: c, network: c.interfaces, from: rank, to: NoRank}
		c.interfaces++
	}
	r, name := c.steps, s.Procedure[:min(len(s.Procedure), maxProcedure)]
	r.begin(recordStep, r.from, r.to)
	r.block = binary.BigEndian.AppendUint32(r.block, uint32(int32(s.Number)))
	r.block = append(append(r.block, byte(len(name))), name...)
	r.block = append(r.block, oneLine(s.Text[:min(len(s.Text), maxText)])...)
	r.write()
}

// A record of a step consists of its number, in 4 bytes, the length of the procedure's name, in
// one, the name, and the text.
const (
	stepHead     = 4 + 1
	maxProcedure = 255
)
