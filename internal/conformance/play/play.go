package play

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/openimpi/impi/internal/conformance/iut"
	"github.com/openimpi/impi/internal/conformance/script"
)

// files are the cases, a file for each chapter or several; docs/conformance/README.md says what
// their steps are.
//
//go:embed cases/*.txt
var files embed.FS

// texts reads all files. They are embedded here, so one that cannot be read is a bug.
var texts = sync.OnceValue(func() script.Text {
	all := script.Text{Routines: map[string]script.Routine{}}
	names, err := fs.Glob(files, "cases/*.txt")
	for _, name := range names {
		text, failed := files.ReadFile(name)
		read, wrong := script.Parse(path.Base(name), string(text))
		err = errors.Join(err, failed, wrong)
		all.Cases = append(all.Cases, read.Cases...)
		maps.Copy(all.Routines, read.Routines)
	}
	if err != nil {
		panic("protocol: " + err.Error())
	}
	return all
})

type player struct {
	*T
	vars script.Vars

	// Against a client: the job, the objects of the current steps, and named objects.
	j        *job
	k        *procPair
	said     map[string]*said
	calls    map[string]*call
	begun    []*call        // calls that all procs have begun
	held     []packet       // packets that go out together
	expected []script.Words // messages that come in any order
	acked    int            // PROTOACKs that have come among answers
	g        *group         // group of the collective operations
	words    int32          // lines that the IUT has printed before its end was due

	// Against a server; members can be connections to a host, too.
	served  *served
	members map[int]*member
}

// said is a message of which the first packet was sent or received, with all of its data.
type said struct {
	packet
	data []byte
}

type verb func(p *player, w script.Words)

func (t *T) play(steps []script.Step) {
	p := &player{T: t, vars: script.Vars{}, said: map[string]*said{}, calls: map[string]*call{}, members: map[int]*member{}}
	script.Run(steps, p.vars, p.one)
}

// one plays a step. A word @u.p behind the verb says that it is about the IUT's proc u and
// the tester's p; otherwise it is about the first of both, or those that "pair" has named.
func (p *player) one(s script.Step) {
	w := script.Split(s.Text)
	if routine, is := texts().Routines[w.Verb]; is {
		p.vars.Call(routine, w)
		script.Run(routine.Steps, p.vars, p.one)
		return
	}
	p.at = s.At
	if at, is := strings.CutPrefix(w.Word(0), "@"); is {
		before := p.k
		defer func() { p.k = before }()
		u, peer, _ := strings.Cut(at, ".")
		p.k = p.j.pairOf(p.j.iut(int(script.Number(u))), p.j.peer(int(script.Number(peer))))
		w = script.Split(w.Verb + strings.TrimPrefix(w.Rest, "@"+at))
	}
	verbNamed(w.Verb)(p, w)
}

func verbNamed(name string) verb {
	for _, verbs := range allVerbs() {
		if play := verbs[name]; play != nil {
			return play
		}
	}
	panic("protocol: no step is called " + name)
}

func allVerbs() []map[string]verb {
	return []map[string]verb{clientVerbs, watchVerbs, groupVerbs, startupVerbs, danceVerbs, serverVerbs}
}

// setupOf reads the job that a step wants. others=2,1/1 are two clients of the tester, of
// which the first has two hosts; clients=3 are three with a host each, of which the first
// has two procs and the others one.
func setupOf(w script.Words) (s setup) {
	s.place = map[string]place{"first": first, "middle": middle}[w.Named["place"]]
	s.iutHosts = ints(w.Named["hosts"])
	for _, hosts := range strings.FieldsFunc(w.Named["others"], func(r rune) bool { return r == '/' }) {
		s.others = append(s.others, ints(hosts))
	}
	for n := range w.Int("clients", 0) {
		s.others = append(s.others, []int{1 + max(0, 1-n)})
	}
	s.datalen, s.ackmark, s.hiwater = uint32(w.Int("datalen", 0)), uint32(w.Int("ackmark", 0)), uint32(w.Int("hiwater", 0))
	s.tagub, s.xsize, s.maxlinear = int32(w.Int("tagub", 0)), int32(w.Int("xsize", 0)), int32(w.Int("maxlinear", 0))
	s.iutMaxLinear, s.mapped, s.pieces = int32(w.Int("iutmaxlinear", 0)), w.Has("mapped"), w.Has("pieces")
	s.iutAuth = authOf(w.Named["auth"])
	for _, v := range strings.FieldsFunc(w.Named["versions"], func(r rune) bool { return r == '/' }) {
		major, minor, _ := strings.Cut(v, ".")
		s.versions = append(s.versions, [2]uint32{uint32(script.Number(major)), uint32(script.Number(minor))})
	}
	return s
}

func ints(text string) (all []int) {
	for _, n := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		all = append(all, int(script.Number(n)))
	}
	return all
}

// authOf reads mechanisms: "none", "key" or both.
func authOf(words string) (a iut.Auth) {
	a.None = strings.Contains(words, "none")
	if strings.Contains(words, "key") {
		a.Key = aKey
	}
	return a
}

func labelNamed(name string) label {
	for _, x := range labels {
		if x.name == name {
			return x.label
		}
	}
	if name == "DONE" {
		return 0
	}
	return label(script.Number(name))
}

// wireValues reads values, with commas: 7 has 4 bytes, 7L 8, x1f90 is bytes, - nothing, and
// what stands before *9 comes so often.
func wireValues(text string) (b []byte) {
	for _, v := range strings.Split(text, ",") {
		if v, times, is := strings.Cut(v, "*"); is {
			b = append(b, bytes.Repeat(wireValues(v), int(script.Number(times)))...)
		} else if digits, is := strings.CutPrefix(v, "x"); is {
			for i := 0; i+1 < len(digits); i += 2 {
				b = append(b, byte(script.Number("0x"+digits[i:i+2])))
			}
		} else if long, is := strings.CutSuffix(v, "L"); is {
			b = append(b, u64(script.Number(long))...)
		} else if v != "-" && v != "" {
			b = append(b, u32(uint32(script.Number(v)))...)
		}
	}
	return b
}

// recordOf reads a record from words: COLL and a label, ANSWER, a label and a mask, or the
// name of another command or its number; and values behind it.
func recordOf(words []string) record {
	words = append(slices.Clone(words), "", "", "")
	switch words[0] {
	case "COLL":
		return coll(labelNamed(words[1]), wireValues(words[2]))
	case "ANSWER":
		return answer(labelNamed(words[1]), uint32(script.Number(words[2])), wireValues(words[3]))
	}
	return record{commandNamed(words[0]), wireValues(words[1])}
}

func commandNamed(name string) command {
	c, known := map[string]command{"AUTH": cmdAuth, "IMPI": cmdIMPI, "COLL": cmdColl, "DONE": cmdDone, "FINI": cmdFini}[name]
	if !known {
		c = command(script.Number(name))
	}
	return c
}

func typeNamed(name string) pkType {
	for k := pkData; k <= pkFini; k++ {
		if k.String() == name {
			return k
		}
	}
	return pkType(script.Number(name))
}

// keep gives a message a name, if words like "as p" ask for it. From then on p.v0 and p.v1 are its
// first numbers of 8 bytes.
func (p *player) keep(m *said, w script.Words) {
	i := slices.Index(w.Plain, "as")
	if i < 0 {
		return
	}
	name := w.Word(i + 1)
	p.said[name] = m
	p.vars[name+".srqid"] = strconv.FormatUint(m.srqid, 10)
	p.vars[name+".drqid"] = strconv.FormatUint(m.drqid, 10)
	for i, v := range uint8s(m.packet.data) {
		if i < 2 {
			p.vars[fmt.Sprintf("%s.v%d", name, i)] = strconv.FormatUint(v, 10)
		}
	}
}

func what(w script.Words) string {
	return cmp.Or(w.Quote, fmt.Sprintf("the packet %q", w.Rest))
}
