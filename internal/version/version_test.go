package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	setting := func(pairs ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{}
		for i := 0; i < len(pairs); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return info
	}
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for want, info := range map[string]*debug.BuildInfo{
		Release:                            nil,
		Release + " (commit 0123456789ab)": setting("vcs.revision", commit),
		Release + " (commit 012)":          setting("vcs.revision", "012"),
		Release + " (commit 0123456789ab of 2026-11-23)":               setting("vcs.revision", commit, "vcs.time", "2026-11-23T14:00:00Z", "vcs.modified", "false"),
		Release + " (commit 0123456789ab of 2026-11-23, with changes)": setting("vcs.revision", commit, "vcs.time", "2026-11-23T14:00:00Z", "vcs.modified", "true"),
	} {
		if got := Of(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Of(setting("GOOS", "linux")); got != Release {
		t.Errorf("without a commit: %q", got)
	}
}
