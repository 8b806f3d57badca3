package host

import (
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"GODEBUG", "GOTRACEBACK", "GOMAXPROCS", "GOMEMLIMIT", "GOCOVERDIR", "GORACE",
}

// environment returns the plugin's environment, except for the variables that go-plugin
// adds. Later entries win, so cfg.Env overrides the host's.
func environment(cfg *Config) []string {
	var env []string
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, cfg.Env...)
	if cfg.Builtin {
		env = append(env, proto.EnvBuiltin+"="+cfg.Name)
	}
	if cfg.sharesSecret() {
		env = append(env, proto.EnvControl+"=1")
	}
	return append(env, proto.EnvLogLevel+"="+levelName(cfg.Logger))
}

func levelName(l hclog.Logger) string {
	for _, level := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error} {
		if l.GetLevel() <= level {
			return level.String()
		}
	}
	return hclog.Off.String()
}
