package trace_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/transports/support/trace"
)

// stepsTaken are steps, and the lines that show them.
var stepsTaken = []struct {
	step trace.Step
	line string
}{
	{trace.Step{Procedure: "accept#2", Number: trace.NoStep, Text: "begins"}, "accept#2: begins"},
	{trace.Step{Procedure: "accept#2", Number: 0, Text: "open"}, "accept#2 step 0: open"},
	{trace.Step{Procedure: "accept#2", Number: 15, Text: "all have it"}, "accept#2 step 15: all have it"},
	{trace.Step{Procedure: "spawn#1", Number: trace.NoStep, Text: "failed: exit\n3 \xff"}, "spawn#1: failed: exit 3 ?"},
}

func TestStepsAsText(t *testing.T) {
	for _, s := range stepsTaken {
		var w bytes.Buffer
		if s.step.Show(&w); w.String() != s.line+"\n" {
			t.Errorf("%q, want %q", w.String(), s.line)
		}
	}
}

// TestStepsInACapture has steps between packets, before and after a link is made.
func TestStepsInACapture(t *testing.T) {
	var file bytes.Buffer
	c := trace.NewCapture(&file, "rank 4")
	c.Step(4, stepsTaken[0].step)
	a, b := linktest.Pair(1000)
	l := c.Link(a, "to 1", trace.Between(4, 1))
	if _, err := l.Send([][]byte{packet(wire.Packet{Type: wire.PkProtoAck}, "")}); err != nil {
		t.Fatal(err)
	}
	c.Step(4, trace.Step{Procedure: strings.Repeat("p", 300), Number: 7, Text: strings.Repeat("t", 3000)})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Recv([][]byte{make([]byte, 500)}); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	f := readPcap(t, file.Bytes()) // which checks the snapshot length
	if len(f.links) != 2 || f.links[0].options[2] != "steps" || f.links[1].options[2] != "to 1" || len(f.records) != 3 {
		t.Fatalf("interfaces %v, %d records", f.links, len(f.records))
	}
	for i, want := range []struct {
		network uint32
		kind    byte
		number  int32
		name    string
		text    string
	}{
		{0, 3, -1, "accept#2", "begins"},
		{1, 0, 0, "", ""},
		{0, 3, 7, strings.Repeat("p", 255), strings.Repeat("t", 1000)},
	} {
		r := f.records[i]
		if r.network != want.network || r.blob[5] != want.kind {
			t.Fatalf("record %d on interface %d of kind %d", i, r.network, r.blob[5])
		}
		if want.kind != 3 {
			continue
		}
		body := r.blob[24:]
		n := int(body[4])
		if int32(binary.BigEndian.Uint32(body)) != want.number || string(body[5:5+n]) != want.name || string(body[5+n:]) != want.text {
			t.Errorf("record %d: %q", i, body)
		}
		if from, to := int32(binary.BigEndian.Uint32(r.blob[8:])), int32(binary.BigEndian.Uint32(r.blob[12:])); from != 4 || to != trace.NoRank {
			t.Errorf("record %d is from %d to %d", i, from, to)
		}
	}
}

func TestDissectorShowsSteps(t *testing.T) {
	var file bytes.Buffer
	c := trace.NewCapture(&file, "rank 4")
	var want []string
	for _, s := range stepsTaken {
		c.Step(4, s.step)
		want = append(want, "rank 4 → IMPI "+s.line)
	}
	expect(t, "packet list", list(t, file.Bytes()), want)
	expect(t, "fields", tshark(t, file.Bytes(), "-T", "fields", "-Y", "impi_trace.step >= 0", "-e", "impi_trace.procedure", "-e", "impi_trace.step", "-e", "impi_trace.text"),
		[]string{"accept#2\t0\topen", "accept#2\t15\tall have it"})
}

// TestDissectorFindsStepsOfConnecting looks at messages of two jobs that connect.
func TestDissectorFindsStepsOfConnecting(t *testing.T) {
	const meeting wire.ContextID = 1<<64 - 16
	stream := packet(wire.Packet{LSRank: 1, Tag: 9, Context: meeting}, "")
	stream = append(stream, packet(wire.Packet{LSRank: 3<<28 + 2, Tag: 4<<5 | 10, Context: 1}, "")...)
	stream = append(stream, packet(wire.Packet{LSRank: 3, Tag: 4<<5 | 10, Context: 1}, "")...)
	stream = append(stream, packet(wire.Packet{LSRank: 1<<28 + 2, Tag: 4, Context: 1}, "")...)
	file := captured(t, stream)
	expect(t, "steps", tshark(t, file, "-Y", "impi", "-T", "fields", "-e", "impi.step"), []string{"9", "10", "", ""})
	text := list(t, file)
	if !strings.HasSuffix(text[1], " step 10 of connecting") || strings.Contains(text[2], "step") {
		t.Errorf("the packet list is %q", text)
	}
}
