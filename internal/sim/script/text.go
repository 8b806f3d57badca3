package script

import (
	"fmt"
	"strconv"
	"strings"
)

// String is the program as text, which Parse reads: a line for each step, and one
// for each message before the first step that touches it.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "procs %d\n", p.Procs)
	byID, written := p.index(), map[int]bool{}
	for _, s := range p.Steps {
		for _, id := range s.messages() {
			if m := byID[id]; m != nil && !written[id] {
				written[id] = true
				fmt.Fprintln(&b, m)
			}
		}
		fmt.Fprintln(&b, s.text())
	}
	for i := range p.Messages {
		if m := &p.Messages[i]; !written[m.ID] {
			fmt.Fprintln(&b, m)
		}
	}
	return b.String()
}

// String is the message's line in a program.
func (m *Message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "message %d %d>%d comm=%s tag=%d type=%s len=%d", m.ID, m.From, m.To, m.Comm, m.Tag, m.Kind, m.Len)
	if m.Cap != m.Len {
		fmt.Fprintf(&b, " cap=%d", m.Cap)
	}
	if m.Mode != Standard {
		fmt.Fprintf(&b, " mode=%s", m.Mode)
	}
	switch {
	case m.AnySource && m.AnyTag:
		b.WriteString(" any=source+tag")
	case m.AnySource:
		b.WriteString(" any=source")
	case m.AnyTag:
		b.WriteString(" any=tag")
	}
	if m.By != ByRecv {
		fmt.Fprintf(&b, " by=%s", m.By)
	}
	if m.SendSlot != 0 {
		fmt.Fprintf(&b, " sendslot=%d", m.SendSlot)
	}
	if m.RecvSlot != 0 {
		fmt.Fprintf(&b, " recvslot=%d", m.RecvSlot)
	}
	return b.String()
}

// String is the request as the steps name it: s or r and the message.
func (q Req) String() string {
	if q.Side == SendSide {
		return "s" + strconv.Itoa(q.Msg)
	}
	return "r" + strconv.Itoa(q.Msg)
}

func (s Start) text() string {
	verb := [2]string{"send", "recv"}[s.Side]
	if !s.Blocking {
		verb = "i" + verb
	}
	return verb + " " + strconv.Itoa(s.Msg)
}

func (s Exchange) text() string {
	verb := "exchange"
	if s.Replace {
		verb = "replace"
	}
	for _, id := range s.Msgs {
		verb += " " + strconv.Itoa(id)
	}
	return verb
}

func (s Wait) text() string {
	line := fmt.Sprintf("%s %d", s.How, s.Rank)
	for _, q := range s.Reqs {
		line += " " + q.String()
	}
	return line
}

func (s Cancel) text() string { return "cancel " + s.Req.String() }

func (s Lone) text() string {
	source := "any"
	if s.Source != anySource {
		source = strconv.Itoa(s.Source)
	}
	return fmt.Sprintf("lone %d comm=%s source=%s tag=%d", s.Rank, s.Comm, source, s.Tag)
}

func (s Null) text() string   { return fmt.Sprintf("null %d comm=%s call=%s", s.Rank, s.Comm, s.What) }
func (s Pause) text() string  { return fmt.Sprintf("pause %d %s", s.Rank, s.For) }
func (s Attach) text() string { return fmt.Sprintf("attach %d %d", s.Rank, s.Size) }
func (s Detach) text() string { return fmt.Sprintf("detach %d", s.Rank) }

func (s Collective) text() string {
	if s.Call == Barrier {
		return "barrier " + s.Comm
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s id=%d type=%s", s.Call, s.Comm, s.ID, s.Kind)
	if s.Call.rooted() {
		fmt.Fprintf(&b, " root=%d", s.Root)
	}
	if s.Call.reduces() {
		fmt.Fprintf(&b, " op=%s", s.Op)
	}
	fmt.Fprintf(&b, " counts=%s", list(s.Counts))
	if s.Gap != 0 {
		fmt.Fprintf(&b, " gap=%d", s.Gap)
	}
	if s.InPlace {
		b.WriteString(" inplace=1")
	}
	return b.String()
}

func (s Dup) text() string { return fmt.Sprintf("dup %s new=%s", s.Comm, s.New) }

func (s Split) text() string {
	colors := make([]string, len(s.Colors))
	for i, c := range s.Colors {
		colors[i] = strconv.Itoa(c)
		if c == NoColor {
			colors[i] = "none"
		}
	}
	return fmt.Sprintf("split %s new=%s colors=%s keys=%s", s.Comm, strings.Join(s.New, ","), strings.Join(colors, ","), list(s.Keys))
}

func (s Cart) text() string {
	return fmt.Sprintf("cart %s new=%s dims=%s periodic=%s", s.Comm, s.New, list(s.Dims), flags(s.Periodic))
}

func (s CartSub) text() string {
	return fmt.Sprintf("cartsub %s new=%s keep=%s", s.Comm, strings.Join(s.New, ","), flags(s.Keep))
}

func (s Free) text() string { return "free " + s.Comm }

func list(n []int) string {
	words := make([]string, len(n))
	for i, v := range n {
		words[i] = strconv.Itoa(v)
	}
	return strings.Join(words, ",")
}

func flags(f []bool) string {
	words := make([]string, len(f))
	for i, v := range f {
		words[i] = "0"
		if v {
			words[i] = "1"
		}
	}
	return strings.Join(words, ",")
}
