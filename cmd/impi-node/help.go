package main

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/change"
	"github.com/openimpi/impi/internal/doctor"
	"github.com/openimpi/impi/internal/firewall"
	"github.com/openimpi/impi/internal/jobreport"
	"github.com/openimpi/impi/internal/launch/manifest"
	"github.com/openimpi/impi/internal/native/trial"
	"github.com/openimpi/impi/internal/status"
	"github.com/openimpi/impi/internal/ui"
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

var topics = map[string]string{
	"abi":        abiHelp,
	"cert":       certHelp,
	"completion": completionHelp,
	"doctor":     doctor.Help,
	"drain":      change.DrainHelp,
	"links":      linksHelp,
	"manifest":   manifest.Help,
	"native":     trial.Help,
	"plugins":    pluginsHelp,
	"ports":      firewall.Help,
	"report":     jobreport.Help,
	"reload":     change.ReloadHelp,
	"exit":       exitHelp,
	"files":      filesHelp,
	"site":       siteHelp,
	"status":     status.Help,
	"top":        status.TopHelp,
	"ui":         ui.Help,
	"validate":   validateHelp,
}

func printHelp(args []string, out, err io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(out, help)
		return statusOK
	}
	text, ok := topics[args[0]]
	if !ok {
		fmt.Fprintf(err, "impi-node: there is no help on %q; the topics are %s\n", args[0], strings.Join(slices.Sorted(maps.Keys(topics)), ", "))
		return statusUsage
	}
	fmt.Fprint(out, text)
	return statusOK
}

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
