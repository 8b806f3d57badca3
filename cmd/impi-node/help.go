package main

import (
	_ "embed"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/openimpi/impi/internal/version"
	"github.com/openimpi/impi/internal/wireup"
)

//go:embed help/impi-node.txt
var help string

var (
	//go:embed help/exit.txt
	exitHelp string
	//go:embed help/files.txt
	filesHelp string
	//go:embed help/site.txt
	siteHelp string
)

func showVersion(w io.Writer) int {
	fmt.Fprintf(w, "impi-node %s\n", version.String())
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.Name
	}
	fmt.Fprintf(w, "IMPI 0.0, control protocol %d, transports %s\n", wireup.Version, strings.Join(names, " "))
	fmt.Fprintf(w, "%s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return statusOK
}
