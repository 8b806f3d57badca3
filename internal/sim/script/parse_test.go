package script

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	p, err := Parse(`
# a comment
procs 3   # another
message 7 from=0 to=2 comm=w tag=5 type=float64 len=70 cap=80 mode=synchronous anysource=yes anytag=yes by=mprobe sendslot=3 recvslot=4
isend 7
waitsome 2 s7 r8
cancel r7
pause 1 1m2s
split w new=a,b colors=7,none,0 keys=1,-1,0
alltoallv a id=9 type=bool counts=1,2,3,4 gap=2 inplace=yes
unmatched 1 comm=b source=any tag=4`)
	if err != nil {
		t.Fatal(err)
	}
	want := Message{
		ID: 7, To: 2, Comm: "w", Tag: 5, Kind: Float64, Len: 70, Cap: 80, Mode: Synchronous, AnySource: true, AnyTag: true,
		By: ByMprobe, SendSlot: 3, RecvSlot: 4,
	}
	if p.Procs != 3 || len(p.Messages) != 1 || p.Messages[0] != want {
		t.Errorf("%+v", p)
	}
	if s := p.Steps[3].(Pause); s.For != 62*time.Second {
		t.Errorf("%v", s)
	}
	if s := p.Steps[4].(Split); s.Colors[1] != NoColor || s.Keys[1] != -1 || s.New[1] != "b" {
		t.Errorf("%v", s)
	}
	if s := p.Steps[5].(Collective); s.Call != Alltoallv || len(s.Counts) != 4 || s.Gap != 2 || !s.InPlace {
		t.Errorf("%v", s)
	}
	again, err := Parse(p.String())
	if err != nil || again.String() != p.String() {
		t.Errorf("%v\n%s\n%s", err, p, again)
	}
}

func TestParseErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "no line",
		"procs many":                        "line 1: procs: \"many\"",
		"procs 2\nprocs 2":                  "line 2: procs: said twice",
		"procs 2\n\nfly 1":                  "line 3: fly: no such step",
		"procs 2\nisend":                    "line 2: isend: there is something missing",
		"procs 2\nisend x":                  "\"x\"",
		"procs 2\nisend 1 2":                "\"2\": no such key=value",
		"procs 2\nwait 0 t1":                "is no request",
		"procs 2\npause 0 soon":             "\"soon\": time: invalid duration",
		"procs 2\npause 0 -1s":              "negative",
		"procs 2\nbcast w id=1 id=2":        "or twice",
		"procs 2\nbcast w id=1 type=word":   "type: \"word\" is not one of uint8",
		"procs 2\nnull 0 comm=w call=fly":   "call: \"fly\" is not one of send",
		"procs 2\nsplit w colors=1 keys=no": "keys: \"no\"",
		"procs 2\nmessage 1 from=0 to=1 comm=w any=thing":             "no such key",
		"procs 2\nmessage 1 from=0 to=x comm=w tag=1 type=int8 len=1": "to: \"x\"",
		"procs 2\nmessage 1 len=99999999999999999999":                 "len: ",
		"procs 2\nscan w id=1 type=int8 op=times counts=1":            "op: ",
		"procs 2\nscan w inplace=maybe":                               "not yes or no",
	} {
		_, err := Parse(text)
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// Whatever Parse accepts is the same after String and Parse, and Check accepts or refuses it.
func FuzzParse(f *testing.F) {
	f.Add("procs 2\nmessage 1 from=0 to=1 comm=w tag=1 type=int8 len=1\nexchange 1\nbarrier w\nwait 0 s1 r1")
	f.Add("procs 3\nwindow w seed=4 len=70\nsplit w new=a,b colors=7,none,0 keys=1,-1,0\ncart w new=c dims=3,1 periodic=yes,no\ncartsub c new=d keep=yes,no\nfree a")
	f.Add("procs 3\nattach 0 100\ndetach 0\nunmatched 0 comm=w source=any tag=1\nnull 0 comm=w call=recv\nscan w id=1 type=int8 op=sum counts=1")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		written := p.String()
		q, err := Parse(written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if again := q.String(); again != written {
			t.Fatalf("%s\nand then\n%s", written, again)
		}
		if p.Procs <= 64 {
			_ = Check(p)
		}
	})
}
