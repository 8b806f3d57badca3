package doctor

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/version"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/proto"
)

// versionLimit is how long a program may take to print its version.
const versionLimit = 5 * time.Second

const (
	software = "software"
	library  = "libmpi_abi.so.1"
	together = "install all of one release: make install, or the package"
)

// programs are those that print the version of the release; plugins print that of their SDK.
var programs = []string{"impi-server", "impiexec", "impi-bench", "impi-conform", "impi-sim"}

// versions compares what belongs together with this program: the programs, plugins, library and
// shims that are installed with it. shims are further ones, which a job file names.
func (m *machine) versions(shims []string) []Check {
	kernel, err := m.read("sys/kernel/osrelease")
	if err != nil {
		kernel = "unknown"
	}
	found := fmt.Sprintf("impi %s, Linux %s, %s", version.String(), kernel, runtime.GOARCH)
	var wrong []Check
	same := 0
	judge := func(path string, differs func(path string) *Check) {
		if s, err := os.Stat(path); err != nil || !s.Mode().IsRegular() {
			return
		}
		if c := differs(path); c != nil {
			c.Name, c.Found = software, path+": "+c.Found
			wrong = append(wrong, *c)
			return
		}
		same++
	}
	if m.folder != "" {
		for _, name := range programs {
			judge(filepath.Join(m.folder, name), m.program)
		}
		plugins, _ := filepath.Glob(filepath.Join(m.folder, "impi-transport-*"))
		for _, path := range plugins {
			judge(path, m.plugin)
		}
		libraries := filepath.Join(filepath.Dir(m.folder), "lib")
		judge(filepath.Join(libraries, library), libraryOf)
		for _, dir := range []string{m.folder, libraries} {
			beside, _ := filepath.Glob(filepath.Join(dir, "shim*.so"))
			shims = append(shims, beside...)
		}
	}
	for _, dir := range filepath.SplitList(m.libraryPath) { // procs find this one first
		judge(filepath.Join(dir, library), libraryOf)
	}
	slices.Sort(shims)
	for _, path := range slices.Compact(shims) {
		judge(path, shim)
	}
	if same > 0 {
		found += fmt.Sprintf("; %d programs and libraries that belong to it are of the same version", same)
	}
	return append([]Check{ok(software, found)}, wrong...)
}

// says returns the first line that a program prints with -version.
func says(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), versionLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), err
}

func (m *machine) program(path string) *Check {
	line, err := m.says(path)
	if err != nil {
		return &Check{State: Warn, Found: "it does not say its version: " + err.Error(), Remedy: together}
	}
	_, text, _ := strings.Cut(line, " ")
	if own := version.String(); text != own {
		return &Check{State: Warn, Found: fmt.Sprintf("it is %.100q, and this is %s", text, own), Remedy: together}
	}
	return nil
}

var (
	ofPlugin  = regexp.MustCompile(`protocol (\d+), impi-go-sdk/(\S+)\)$`)
	ofLibrary = regexp.MustCompile(`impi (\d+\.\d+\.\d+)`)
)

// plugin compares one of our plugins, whatever protocol it speaks with the node when it runs.
func (m *machine) plugin(path string) *Check {
	line, err := m.says(path)
	if err != nil {
		return &Check{State: Warn, Found: "it does not say its version: " + err.Error(), Remedy: together}
	}
	x := ofPlugin.FindStringSubmatch(line)
	if x == nil {
		return nil // it is made with another SDK, and has versions of its own
	}
	if own := fmt.Sprint(proto.Version); x[1] != own || x[2] != sdk.Version {
		return &Check{State: Warn, Found: fmt.Sprintf("it speaks version %s of the plugins' protocol, by SDK %s, and this is %s, by %s", x[1], x[2], own, sdk.Version), Remedy: together}
	}
	return nil
}

// libraryOf compares a library, in whose file are its release, as MPI_Get_library_version has it,
// and the commit, if it was built from one.
func libraryOf(path string) *Check {
	b, err := os.ReadFile(path)
	if err != nil {
		return &Check{State: Warn, Found: err.Error(), Remedy: together}
	}
	info, err := buildinfo.Read(bytes.NewReader(b))
	if err != nil {
		return &Check{State: Warn, Found: "it is no library of impi: " + err.Error(), Remedy: together + ", and have LD_LIBRARY_PATH name no folder of another MPI"}
	}
	var releases []string
	for _, x := range ofLibrary.FindAllSubmatch(b, -1) {
		releases = append(releases, string(x[1]))
	}
	if !slices.Contains(releases, version.Release) {
		return &Check{State: Fail, Found: fmt.Sprintf("it is of release %s, and this is %s", strings.Join(slices.Compact(releases), " or "), version.Release), Remedy: together}
	}
	if text, own := version.Of(info), version.String(); text != own {
		return &Check{State: Warn, Found: fmt.Sprintf("it is %s, and this is %s", text, own), Remedy: together}
	}
	return nil
}

// shim compares a library for a site's own MPI, which need not be there to be loaded.
func shim(path string) *Check {
	remedy := fmt.Sprintf("build it anew: impi-node native build -o %s", path)
	abi, err := native.ShimABI(path)
	switch {
	case err != nil:
		return &Check{State: Fail, Found: "it is no shim: " + err.Error(), Remedy: remedy}
	case abi != native.ABI():
		return &Check{State: Fail, Found: fmt.Sprintf("it has version %d of the functions of shims, and this wants %d", abi, native.ABI()), Remedy: remedy}
	}
	return nil
}

// shimsHere lists the shims that a job file names for procs on this machine.
func shimsHere(job *config.Job, local func(netip.Addr) bool) (paths []string) {
	for i := range job.Sites {
		s := &job.Sites[i]
		if s.Native != nil && s.Native.Shim != "" && len(s.HostsHere(local)) > 0 {
			paths = append(paths, s.Native.Shim)
		}
	}
	return paths
}
