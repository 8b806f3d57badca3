package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Dialect is the form of the protocol that a site speaks. All sites of a job
// speak the same.
type Dialect string

// The dialects: IMPI 0.0 as implementations use it, and its draft of March 1999.
const (
	Published Dialect = "published"
	Draft1999 Dialect = "draft-1999"
)

// IPv4Form is the form in which a site writes its IPv4 addresses in 16 bytes. IMPI prescribes no
// form.
type IPv4Form string

// The forms.
const (
	IPv4Compatible IPv4Form = "compatible" // ::192.0.2.1, used by LAM/MPI
	IPv4Mapped     IPv4Form = "mapped"     // ::ffff:192.0.2.1, used by MetaMPICH
)

// Version is a version of the IMPI protocol that a site lists at startup.
type Version struct{ Major, Minor uint32 }

// OwnVersion is the version that own sites list, and that distinguishes them from foreign sites.
var OwnVersion = Version{0, 0x10001}

// String returns major.minor.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

func (v Version) less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Labels configures which labels a site sends at startup, and which it omits.
type Labels struct {
	Omit     []string  `hcl:"omit"`     // optional labels of IMPI that the site does not send, by name
	Versions []Version `hcl:"versions"` // versions listed, ascending, 0.0 first; none: 0.0 and OwnVersion
}

// Own reports whether the site lists OwnVersion, from which other sites see that it runs impi.
func (l Labels) Own() bool {
	return len(l.Versions) == 0 || slices.Contains(l.Versions, OwnVersion)
}

var (
	dialects           = []string{string(Published), string(Draft1999)}
	collectivesChoices = []string{"auto", "direct", "tree"}
	ipv4Forms          = []string{string(IPv4Compatible), string(IPv4Mapped)}

	// optionalLabels are the labels that a known implementation omits.
	optionalLabels = []string{
		"C_VERSION", "C_DATALEN", "C_TAGUB", "C_COLL_XSIZE", "C_COLL_MAXLINEAR", "H_ACKMARK", "H_HIWATER",
	}
	// labelValues are the attributes that set the values of optionalLabels.
	labelValues = []string{"versions", "datalen", "tag_ub", "xsize", "maxlinear", "ackmark", "hiwater"}
)

const maxVersions = 64

// versions parses a list of versions to []Version.
func versions() kind {
	example := `["0.0", "` + OwnVersion.String() + `"]`
	return kind{want: "a list of versions, ascending from \"0.0\"", example: example, parse: func(v cty.Value) (any, *wrong) {
		words, bad := stringList(v)
		if bad != nil || len(words) == 0 || len(words) > maxVersions {
			return nil, mismatch
		}
		list := make([]Version, len(words))
		for i, word := range words {
			var ok bool
			if list[i], ok = parseVersion(word); !ok {
				return nil, &wrong{problem: quote(word) + " is no version", remedy: `write major.minor, as "0.0"`, element: i}
			}
			switch {
			case i == 0 && list[0] != Version{}:
				return nil, &wrong{problem: "the list begins with " + word + ", and every site supports 0.0", remedy: "write " + example, element: 0}
			case i > 0 && !list[i-1].less(list[i]):
				return nil, &wrong{problem: word + " comes after " + words[i-1] + ": lists ascend, as they are sent without lengths", remedy: "sort the list", element: i}
			}
		}
		return list, nil
	}}
}

func parseVersion(word string) (v Version, ok bool) {
	major, minor, found := strings.Cut(word, ".")
	a, err := strconv.ParseUint(major, 10, 32)
	b, err2 := strconv.ParseUint(minor, 10, 32)
	return Version{uint32(a), uint32(b)}, found && err == nil && err2 == nil
}

// labels sets which labels s sends. Sites with the draft dialect follow the draft, so they
// do not show that they are ours.
func (s *siteDraft) labels() {
	own, shared := s.layers("protocol")
	s.Labels.Versions = []Version{{}, OwnVersion}
	if s.Protocol.Dialect == Draft1999 {
		s.Labels.Versions = s.Labels.Versions[:1]
	}
	fill(&s.Labels, own, shared)
	if s.Protocol.Dialect == Draft1999 && s.Labels.Own() {
		s.fault(placeOf("versions", own, shared), "version "+OwnVersion.String()+" stands for extensions of ours, which the draft does not have",
			"remove it, or remove dialect")
	}
	s.checkOmitted(own)
	if s == s.ours()[0] {
		s.checkOmitted(shared)
	}
}

// checkOmitted warns of values that a block sets although their labels are not sent.
func (b *builder) checkOmitted(in *block) {
	omit, _ := get[[]string](in, "omit")
	for i, label := range optionalLabels {
		if name := labelValues[i]; slices.Contains(omit, label) && in.has(name) {
			b.warn(in.at(name), name+" has no effect: omit has "+label+", so nobody is told", "remove it, or take "+label+" out of omit")
		}
	}
}

func (b *builder) checkDialects() {
	ours := ourMembers(b)
	for _, s := range ours[min(1, len(ours)):] {
		own, shared := s.layers("protocol")
		if s.Protocol.Dialect == ours[0].Protocol.Dialect || own.has("dialect") && own.values["dialect"].bad {
			continue
		}
		pos := placeOf("dialect", own, shared)
		if pos.IsZero() {
			pos = s.Pos
		}
		b.fault(pos, "dialect is "+quote(string(s.Protocol.Dialect))+" here and "+quote(string(ours[0].Protocol.Dialect))+" in site "+quote(ours[0].Name)+": packets would be misread",
			"write it once, in a protocol block at the top of the file")
	}
}
