package host

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

func TestAbout(t *testing.T) {
	a := builtin("tcp", "").start(t).About()
	switch {
	case a.Name != "tcp" || a.Protocol != proto.Version || a.MTLS:
		t.Errorf("%+v", a)
	case !strings.Contains(a.SDK, "impi"):
		t.Errorf("the sdk is %q", a.SDK)
	case len(a.Schema) == 0 || len(a.Capabilities.DataPlanes) == 0:
		t.Errorf("no schema or capabilities: %+v", a)
	}
}
