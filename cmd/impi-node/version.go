package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/openimpi/impi/internal/wireup"
)

// release is the version of this program.
const release = "0.1.0"

func version(w io.Writer) int {
	fmt.Fprintf(w, "impi-node %s%s\n", release, revision())
	fmt.Fprintf(w, "IMPI 0.0, control protocol %d, transports %s\n", wireup.Version, strings.Join(append(names(builtins), names(optional)...), " "))
	fmt.Fprintf(w, "%s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return statusOK
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return " (" + s.Value[:min(12, len(s.Value))] + ")"
		}
	}
	return ""
}
