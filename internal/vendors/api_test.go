package vendors

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-version"

	"github.com/openimpi/impi/internal/exported"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk"
)

var updateAPI = flag.Bool("update", false, "write api.txt and header.txt of plugins/sdk/testdata: what the versions promise")

// These files have the version that was published last in their first line, and then what it
// declares.
const (
	apiFile    = root + "/plugins/sdk/testdata/api.txt"
	headerFile = root + "/plugins/sdk/testdata/header.txt"
)

const (
	ourModule = "github.com/openimpi/impi"
	sdkModule = ourModule + "/plugins/sdk"
)

// promised are the packages that vendors may import, and the files that are not for them.
var promised = map[string][]string{
	"plugins/sdk":                          nil,
	"plugins/sdk/link":                     {"fastbox.go", "lender.go"}, // of procs, for each other
	"plugins/sdk/transports":               nil,
	"plugins/sdk/transports/conn":          nil,
	"plugins/sdk/transports/fabric":        nil,
	"plugins/sdk/transports/identity":      nil,
	"plugins/sdk/transports/socket":        nil,
	"plugins/sdk/transports/stripe":        nil,
	"plugins/sdk/transports/transporttest": nil,
}

// api lists what vendors can name.
func api(t *testing.T) (lines []string) {
	t.Helper()
	skips.Program(t, "go")
	var paths []string
	for p := range promised {
		paths = append(paths, ourModule+"/"+p)
	}
	packages, err := exported.Load(paths...)
	if err != nil {
		t.Fatal(err)
	}
	for p, without := range promised {
		list, err := packages.Lines(ourModule+"/"+p, without...)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range list {
			if !strings.HasPrefix(line, "const Version ") { // whose value is what changes
				lines = append(lines, p+": "+line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// judgeAPI compares what was published in version was with what there is in version is, and says
// what the version does not allow.
func judgeAPI(was, is string, published, now []string) (faults []string) {
	old, err := version.NewVersion(was)
	if err != nil {
		return []string{err.Error()}
	}
	next, err := version.NewVersion(is)
	if err != nil {
		return []string{err.Error()}
	}
	if next.LessThan(old) {
		faults = append(faults, fmt.Sprintf("version %s comes before %s, which was published", is, was))
	}
	a, b := old.Segments(), next.Segments()
	major, minor := b[0] > a[0], b[0] > a[0] || b[1] > a[1]
	for _, line := range published {
		if !major && !slices.Contains(now, line) {
			faults = append(faults, fmt.Sprintf("%s, which version %s published, is lost or has another form: plugins break. Bring it back, or raise Version to %d.0.0", line, was, a[0]+1))
		}
	}
	for _, line := range now {
		if !minor && !slices.Contains(published, line) {
			faults = append(faults, fmt.Sprintf("%s is new: raise Version to %d.%d.0, and say it in CHANGELOG.md", line, a[0], a[1]+1))
		}
	}
	return faults
}

// hold compares what there is now with what a file says was published. When a version is published,
// -update notes what it has.
func hold(t *testing.T, file, version string, now []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !*updateAPI {
		t.Fatal(err)
	}
	was, published := version, now
	if err == nil {
		published = strings.Split(strings.TrimSpace(string(text)), "\n")
		was, published = strings.TrimPrefix(published[0], "version "), published[1:]
	}
	faults := judgeAPI(was, version, published, now)
	for _, f := range faults {
		t.Error(f)
	}
	if *updateAPI && len(faults) == 0 {
		if err := os.WriteFile(file, []byte("version "+version+"\n"+strings.Join(now, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAPI holds what vendors' plugins in Go are compiled against against what was published:
// go test -run TestAPI -update ./internal/vendors.
func TestAPI(t *testing.T) { hold(t, apiFile, sdk.Version, api(t)) }

// TestHeader does so for plugins in C. Members of structs may be added anywhere: vendors name them,
// and compile against the header of their library.
func TestHeader(t *testing.T) {
	text, err := os.ReadFile(root + "/plugins/c/impi_plugin.h")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`#define IMPI_PLUGIN_VERSION "(.*)"`).FindStringSubmatch(string(text))
	if version == nil {
		t.Fatal("the header has no version")
	}
	hold(t, headerFile, version[1], declarations(string(text)))
}

var (
	comment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	other   = regexp.MustCompile(`(?m)^(#.*|extern "C" \{|\})$`)
	opening = regexp.MustCompile(`^(struct \w+) \{$`)
)

// declarations lists what a header declares: functions, and members with their struct.
func declarations(text string) (list []string) {
	text = other.ReplaceAllString(comment.ReplaceAllString(text, ""), "")
	text = strings.ReplaceAll(text, "\n\t__attribute__", " __attribute__")
	within := ""
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		switch m := opening.FindStringSubmatch(line); {
		case m != nil:
			within = m[1] + ": "
			list = append(list, m[1])
		case line == "};":
			within = ""
		case line != "":
			list = append(list, within+line)
		}
	}
	slices.Sort(list)
	return list
}

// Comments, preprocessor and blanks are no declarations.
func TestDeclarations(t *testing.T) {
	got := declarations("/* a\n b */\n#define X 1\nstruct s {\n\tint a; /* one */\n\n\tint  b;\n};\nint f(void)\n\t__attribute__((x));\n")
	if want := []string{"int f(void) __attribute__((x));", "struct s", "struct s: int a;", "struct s: int b;"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What versions allow, and what not.
func TestJudgeAPI(t *testing.T) {
	one, two := []string{"p: func F()"}, []string{"p: func F()", "p: func G()"}
	other := []string{"p: func F(int)"}
	for _, c := range []struct {
		is             string
		published, now []string
		fault          string
	}{
		{"1.2.3", one, one, ""}, {"1.2.4", one, one, ""},
		{"1.2.4", one, two, "raise Version to 1.3.0"}, {"1.3.0", one, two, ""},
		{"1.3.0", two, one, "raise Version to 2.0.0"}, {"1.3.0", one, other, "plugins break"}, {"2.0.0", one, other, ""},
		{"1.2.2", one, one, "comes before"}, {"one", one, one, "malformed"},
	} {
		got := strings.Join(judgeAPI("1.2.3", c.is, c.published, c.now), "\n")
		if c.fault == "" && got != "" || !strings.Contains(got, c.fault) {
			t.Errorf("from %q to %q in version %s: %q", c.published, c.now, c.is, got)
		}
	}
}

// What requires the SDK in this tree requires its version, so that the releases of both fit
// together.
func TestVersionIsRequired(t *testing.T) {
	for _, file := range []string{"go.mod", "examples/plugins/websocket/go.mod", "examples/plugins/ofi/go.mod"} {
		text, err := os.ReadFile(root + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		required := regexp.MustCompile(`(?m)^(?:require)?\s+` + sdkModule + ` v(.*)$`).FindStringSubmatch(string(text))
		if required == nil || required[1] != sdk.Version {
			t.Errorf("%s requires %q of the SDK, whose version is %s", file, required, sdk.Version)
		}
	}
}

// The SDK is a module that needs nothing of ours, in tests neither: vendors' go mod tidy follows
// those. Its own go.mod and go.sum have all that it needs.
func TestSDKStandsAlone(t *testing.T) {
	cmd := exec.Command(skips.Program(t, "go"), "list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}}{{end}}", "./...")
	cmd.Dir, cmd.Env = root+"/plugins/sdk", append(os.Environ(), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, &stderr)
	}
	modules := strings.Fields(string(out))
	if !slices.Contains(modules, sdkModule) || slices.Contains(modules, ourModule) {
		t.Errorf("the modules of the SDK are %v", slices.Compact(modules))
	}
}

// The changelog begins with the version that this is.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile(root + "/plugins/sdk/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(string(text), "\n## ")
	if got, _, _ := strings.Cut(first, "\n"); got != sdk.Version {
		t.Errorf("the first entry of CHANGELOG.md is that of %q, and the version is %s", got, sdk.Version)
	}
}
