package check

import (
	"fmt"
	"time"
)

// Rule names what was violated.
type Rule string

// The rules. The package comment says what they are.
const (
	RuleFraming      Rule = "framing"
	RuleAddress      Rule = "address"
	RuleRoute        Rule = "route"
	RuleFields       Rule = "fields"
	RuleWindow       Rule = "window"
	RuleAck          Rule = "ack"
	RuleConservation Rule = "conservation"
	RuleMessage      Rule = "message"
	RuleSync         Rule = "sync"
	RuleCancel       Rule = "cancel"
	RuleFini         Rule = "fini"
	RuleDance        Rule = "dance"
	RuleStartup      Rule = "startup"
	RuleLabel        Rule = "label"
	RuleMemory       Rule = "memory"
	RuleWiring       Rule = "wiring"
)

// NoLink is the Link of a violation that does not concern a link.
const NoLink = -1

// Violation is the error of everything that a Checker finds.
type Violation struct {
	Rule     Rule
	Link     int      // NoLink if it is about the job
	From, To Endpoint // direction, if Link is one
	Offset   int64    // of the packet or command in the stream's bytes
	Now      time.Duration
	Packet   string // the packet as formatted by Line, or ""
	Text     string
}

func (v *Violation) Error() string {
	s := fmt.Sprintf("check: %s: ", v.Rule)
	if v.Link != NoLink {
		s += fmt.Sprintf("link %d, %v -> %v, byte %d, at %v: ", v.Link, v.From, v.To, v.Offset, v.Now)
	} else {
		s += fmt.Sprintf("at %v: ", v.Now)
	}
	if v.Packet != "" {
		s += v.Packet + ": "
	}
	return s + v.Text
}

// fault returns a violation that does not concern a link.
func (c *Checker) fault(r Rule, format string, args ...any) error {
	return &Violation{Rule: r, Link: NoLink, Now: c.now, Text: fmt.Sprintf(format, args...)}
}

// fault returns a violation on the stream, by what begins at offset at.
func (s *stream) fault(r Rule, at int64, format string, args ...any) *Violation {
	return &Violation{
		Rule: r, Link: s.link.id, From: s.from, To: s.to, Offset: at, Now: s.c.now,
		Text: fmt.Sprintf(format, args...),
	}
}

func (s *stream) wrong(r Rule, p *packet, format string, args ...any) error {
	return &Violation{
		Rule: r, Link: s.link.id, From: s.from, To: s.to, Offset: p.at, Now: s.c.now,
		Packet: p.line(), Text: fmt.Sprintf(format, args...),
	}
}
