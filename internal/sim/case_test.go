package sim

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/sim/job"
)

// TestRegressions runs the cases that failed once, each twice. Every file says
// at its top what was wrong.
func TestRegressions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if v := Run(c, Options{Trace: 100, Twice: true}); v.Failure != nil {
				t.Errorf("%v\n%s", v.Failure, v.Trace)
			}
		})
	}
}

// TestTextIsTheCase: a case that was formatted and parsed behaves the same.
func TestTextIsTheCase(t *testing.T) {
	for seed := range uint64(200) {
		c := Generate(seed, Limits{})
		d, err := Parse(c.String())
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, c)
		}
		if d.String() != c.String() {
			t.Fatalf("seed %d: written as\n%v\nand read as\n%v", seed, c, d)
		}
		if seed%10 == 0 && Run(c, Options{}).Digest != Run(d, Options{}).Digest {
			t.Errorf("seed %d does something else when it was written and read", seed)
		}
	}
}

const small = `# two procs
seed 7

job key=no dialfail=0  # a comment
site hosts=1
fault cut #12 3
site hosts=1 datalen=10 foreign=yes falselen=yes skip=0x1300
procs 2
message 1 from=0 to=1 comm=w tag=5 type=int32 len=3
isend 1
recv 1
wait 0 s1
`

func TestParse(t *testing.T) {
	c, err := Parse(small)
	if err != nil {
		t.Fatal(err)
	}
	f := c.Sites[1].Foreign
	if c.Seed != 7 || len(c.Sites) != 2 || f == nil || !f.FalseLen || f.Eager || len(f.Skip) != 1 || c.Sites[1].Params.DataLen != 10 {
		t.Errorf("%v", c)
	}
	if len(c.Faults) != 1 || c.Faults[0] != (job.Fault{Kind: job.CutLink, Event: 12, Target: 3}) || !c.Deadly() {
		t.Errorf("%v", c.Faults)
	}
	if p := c.params(); p.DataLen <= 10 {
		t.Errorf("data length %d, though the site with 10 does not say so", p.DataLen)
	}
}

func TestParseErrors(t *testing.T) {
	for name, change := range map[string][2]string{
		"seed":            {"seed 7", "seed x"},
		"two seeds":       {"seed 7", "seed 7 8"},
		"key":             {"key=no", "key=maybe"},
		"unknown key":     {"key=no", "lock=no"},
		"chance":          {"dialfail=0", "dialfail=2"},
		"twice":           {"dialfail=0", "key=no"},
		"no value":        {"dialfail=0", "dialfail"},
		"no hosts":        {"site hosts=1\n", "site\n"},
		"hosts":           {"hosts=1\n", "hosts=0\n"},
		"too many procs":  {"hosts=1\n", "hosts=1,3\n"},
		"parameter":       {"datalen=10", "datalen=many"},
		"manner":          {"falselen=yes", "rude=yes"},
		"label":           {"0x1300", "1x"},
		"fault":           {"fault cut", "fault itch"},
		"link":            {"site hosts=1\n", "link wet delay=1s\nsite hosts=1\n"},
		"link value":      {"site hosts=1\n", "link proc delay=-1s\nsite hosts=1\n"},
		"resume":          {"site hosts=1\n", "resume window=0\nsite hosts=1\n"},
		"program":         {"recv 1", "devour 1"},
		"illegal program": {"recv 1\n", ""},
	} {
		text := strings.Replace(small, change[0], change[1], 1)
		if text == small {
			t.Fatalf("%s changes nothing", name)
		}
		if _, err := Parse(text); err == nil || !errors.Is(err, ErrCase) && name != "illegal program" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoFaultsChangesNothingElse: a seed without faults is the same case, in which an error is
// easier to see.
func TestNoFaultsChangesNothingElse(t *testing.T) {
	faults := regexp.MustCompile(`(?m)^(fault|firewall) .*\n| (cuts|parts|starts|lasts|stays|late|dialfail)=\S*`)
	for seed := range uint64(100) {
		with, without := Generate(seed, Limits{}).String(), Generate(seed, Limits{NoFaults: true}).String()
		if faults.ReplaceAllString(with, "") != faults.ReplaceAllString(without, "") {
			t.Fatalf("seed %d:\n%v\n%v", seed, with, without)
		}
		if strings.Contains(without, "\nfault ") || strings.Contains(without, "\nfirewall ") {
			t.Fatalf("seed %d has faults:\n%v", seed, without)
		}
	}
}
