package sdk

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// byHand prints an explanation for somebody who has started the plugin by hand, and returns
// the exit status.
func byHand(o Options, args []string, out, errs io.Writer) int {
	i := o.Transport.Info()
	asked := ""
	if len(args) > 1 {
		asked = args[1]
	}
	switch asked {
	case "help", "-h", "-help", "--help":
		fmt.Fprintf(out, `%[1]s is the transport %[2]q as a plugin of impi: impi-node starts it when a
job's file says so.

Example:
  transport %[2]q {
    plugin = %[1]q
  }
  route "*" { prefer = [%[2]q, "tcp"] }

Its settings:              impi-node plugins info ./%[1]s
Does it keep the contract? impi-conform transport -quick ./%[1]s
`, filepath.Base(args[0]), i.Name)
	case "version", "-version", "--version":
		fmt.Fprintf(out, "%s %s (transport %q of %s, protocol %d, %s)\n", filepath.Base(args[0]), i.Version, i.Name, i.Vendor, proto.Version, sdkName)
	default:
		fmt.Fprintf(errs, "%s is a transport plugin of impi: impi-node starts it when a job's config says so. More: %[1]s -help\n", args[0])
		return 1
	}
	return 0
}
