package wire

import (
	"bytes"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

// FuzzFields reads the parts that have no command around them: versions, the
// answer to AUTH, host IDs, masks and labels. What is read is written again, and
// everything has a name.
func FuzzFields(f *testing.F) {
	for _, b := range loadGolden(f) {
		f.Add(b)
	}
	f.Add(bytes.Repeat([]byte{0xff}, 16))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		if len(b) < 16 {
			return
		}
		if v := ParseVersion(b); !bytes.Equal(AppendVersion(nil, v), b[:VersionSize]) || v.Less(v) || v.String() == "" {
			t.Fatalf("version %v of %x", v, b[:VersionSize])
		}
		if m, n := ParseAuthChoice(b); !bytes.Equal(AppendAuthChoice(nil, m)[:4], b[:4]) || n == 0 && !bytes.Equal(AppendAuthChoice(nil, m), b[:8]) {
			t.Fatalf("mechanism %v, %d of %x", m, n, b[:8])
		}
		h := HostID(b)
		a := h.Addr()
		nobody := h == (HostID{}) || h == (HostID{10: 0xff, 11: 0xff})
		if a.IsValid() == nobody || nobody != (h.String() == "none") {
			t.Fatalf("%x is %v", b[:16], a)
		}
		if a.IsValid() {
			if form := HostIDFrom(a, IPv4Compatible); form != h && HostIDFrom(a, IPv4Mapped) != h {
				t.Fatalf("%x is %v, which is %x", b[:16], a, form)
			}
		}
		l := Label(int32(b[0])<<24 | int32(b[1])<<16 | int32(b[2])<<8 | int32(b[3]))
		info, known := l.Info()
		if info.Label != l || l.String() == "" || known && (info.NameIn(Draft) == "" || info.WidthIn(Draft) > info.Width) {
			t.Fatalf("label %v is %+v", l, info)
		}
		mask := ClientMask(l)
		n := 0
		for c := range ClientRank(MaxClients) {
			if mask.Has(c) {
				n++
			}
		}
		if n != mask.Len() || mask.String() == "" || AuthMask(mask).String() == "" {
			t.Fatalf("mask %x has %d clients", uint32(mask), mask.Len())
		}
	})
}
