package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/openimpi/impi/internal/hcldepth"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// Runs is why a listener cannot be opened if a node of the same job has it: the job runs already.
type Runs struct {
	Who string
}

func (r Runs) Error() string { return r.Who + " listens there" }

// Options has what Load cannot find out itself.
type Options struct {
	// Builtins are the transports that need no plugin, best first. In a site's order of
	// transports those that need a block come last.
	Builtins []Builtin

	// Local limits the checks of files, programs and ports to sites with a host whose address it
	// accepts. nil means all own sites.
	Local func(netip.Addr) bool

	// CheckPort returns the reason why a listener cannot be opened on an address that the file
	// gives to an own site, or nil. It is not called for port 0. If it is nil, ports are not
	// checked.
	//
	// With Runs as the reason there is only a warning.
	CheckPort func(netip.AddrPort) error

	// Allocation returns the hosts of a site without hosts in the file, whose launch block names a
	// scheduler that knows them. It returns no hosts if the site is on other machines; if
	// Allocation is nil, it is the same.
	Allocation func(site string, l Launch) []Host

	// Cores is the number of cores of this machine, shared by the hosts on it with procs = "auto",
	// or 0 if it is not known.
	Cores int

	// Tasks returns the number of procs that a scheduler has allocated for a host, or 0 if no
	// scheduler has. It returns an error if there is a scheduler but the number cannot be found
	// out. nil is the same as returning 0.
	Tasks func(Host) (int, error)

	// KeysKnown is true if Load need not read the keys of auth blocks, since its caller has them.
	KeysKnown bool

	// Addresses has the addresses of host names, since Load looks up none. A host whose name is
	// missing here gets the zero address and counts as another machine's: see Site.Unknown.
	Addresses map[string]netip.Addr

	// Environ are the environment variables, as NAME=value. nil means os.Environ.
	Environ []string
}

// Load reads the file at path. The job is nil if the diagnostics have errors. If the file
// is not valid HCL only its syntax errors are reported; otherwise all faults are found at
// once.
func Load(path string, opt Options) (*Job, Diagnostics) {
	f := &faults{file: path}
	src, dir := readJobFile(f, path)
	if dir == "" {
		return nil, f.list
	}
	return load(f, src, dir, opt)
}

// readJobFile reads a file. The folder is empty if that fails, which is a fault.
func readJobFile(f *faults, path string) (src []byte, dir string) {
	src, err := readText(path, maxJobFile)
	if err != nil {
		problem, remedy := unreadable(path, err)
		f.fault(Pos{}, problem, remedy)
		return nil, ""
	}
	if dir, err = filepath.Abs(filepath.Dir(path)); err != nil {
		f.fault(Pos{}, "cannot tell the folder of the job file: "+err.Error(), "write its absolute path")
	}
	return src, dir
}

// LoadText is like Load for a file that is on another machine: path is its absolute path there, and
// text its contents. Relative paths start from the folder of that path, on this machine.
func LoadText(path string, text []byte, opt Options) (*Job, Diagnostics) {
	return load(&faults{file: path}, text, filepath.Dir(path), opt)
}

// maxSyntaxFaults is how many syntax errors are shown. A file that is not a job file has
// one in every line.
const maxSyntaxFaults = 20

func unreadable(path string, err error) (problem, remedy string) {
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.hcl"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(beside) > 0:
		return "there is no such job file", "correct the path; there is " + strings.Join(beside[:min(len(beside), 5)], ", ")
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such job file", "correct the path: no job file (*.hcl) is in that folder"
	case isFolder(path):
		return "that is a folder, and no job file", "name the file in it"
	case errors.Is(err, plainfile.ErrKind):
		return "that is no job file: " + reason(err), "name the file that has the job's sites (*.hcl); a job file is read more than once, so write into a file what comes by a pipe"
	case errors.Is(err, plainfile.ErrSize):
		return "that is no job file: " + reason(err), "name the file that has the job's sites (*.hcl)"
	case errors.Is(err, errNoText):
		return "that is no job file: it is no text", "name the file that has the job's sites (*.hcl)"
	case errors.Is(err, fs.ErrPermission):
		return "you may not read the job file", "ask its owner, or run as the user that it belongs to"
	}
	return "cannot read the job file: " + reason(err), "correct the path"
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func load(f *faults, src []byte, dir string, opt Options) (*Job, Diagnostics) {
	if opt.Environ == nil {
		opt.Environ = os.Environ()
	}
	env := environment(opt.Environ)
	root := decode(f, src, env, opt.Addresses)
	if root == nil {
		return nil, f.sorted()
	}
	b := &builder{faults: f, opt: opt, env: env, dir: dir, root: root}
	job := b.build()
	found := f.sorted()
	if found.HasErrors() {
		return nil, found
	}
	return job, found
}

// decode takes the blocks of a file; the result is nil if its syntax has faults.
func decode(f *faults, src []byte, env map[string]cty.Value, addresses map[string]netip.Addr) *block {
	f.lines = splitLines(src)
	d := &decoder{faults: f, src: newSource(src), env: env, addresses: addresses}
	if at, deep := hcldepth.TooDeep(d.src.text, f.file); deep {
		f.fault(d.pos(at), "this is nested too deep for a job file", "write it in fewer levels")
		return nil
	}
	parsed, diags := hclparse.NewParser().ParseHCL(d.src.text, f.file)
	for i, diag := range diags {
		if i == maxSyntaxFaults {
			f.fault(Pos{}, fmt.Sprintf("%d more faults of syntax", len(diags)-i), "correct the first ones: they may have caused the others")
			break
		}
		d.foreign(diag, Pos{})
	}
	if diags.HasErrors() {
		return nil
	}
	root := &block{spec: fileSpec}
	d.body(root, parsed.Body.(*hclsyntax.Body))
	return root
}

func environment(environ []string) map[string]cty.Value {
	env := make(map[string]cty.Value, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = cty.StringVal(value)
		}
	}
	return env
}

func (d *decoder) foreign(diag *hcl.Diagnostic, otherwise Pos) {
	pos := otherwise
	if diag.Subject != nil {
		pos = d.pos(*diag.Subject)
	}
	severity := Error
	if diag.Severity == hcl.DiagWarning {
		severity = Warning
	}
	first, size := utf8.DecodeRuneInString(diag.Summary)
	problem := string(unicode.ToLower(first)) + diag.Summary[size:]
	d.add(severity, pos, problem, strings.Join(strings.Fields(diag.Detail), " "))
}

// reason returns the text of err without the path, which the message already has.
func reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// TransportFault makes a diagnostic of a fault that transport t's own schema found in a
// setting. Its position is that of the setting, or of the config block, or of the transport
// block, whichever exists.
func (j *Job) TransportFault(t Transport, setting, problem, remedy string) Diagnostic {
	pos := t.Pos
	if !t.settings.IsZero() {
		pos = t.settings
	}
	for _, s := range t.Settings {
		if s.Name == setting {
			pos = s.Pos
		}
	}
	return j.Fault(pos, "transport "+quote(t.Name)+": "+setting+": "+problem, remedy)
}

// Fault makes an Error at a place of j's file.
func (j *Job) Fault(pos Pos, problem, remedy string) Diagnostic {
	return Diagnostic{
		Severity: Error, Pos: pos, Problem: problem, Remedy: remedy,
		Source: sourceLine(j.source, pos),
	}
}
