package conn

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// Awake is how many relays are polled.
func Awake() (n int) {
	list, _ := hubs()
	for _, h := range list {
		n += int(h.load.Load())
	}
	return n
}

// Waits says what wakes a relay that sleeps: "ring" and "connection", if they are in its set, each followed by
// the mask of their events.
func Waits(p *Pump) (what string) {
	near := p.near.(relayedRing)
	raw, err := near.set.SyscallConn()
	if err != nil {
		return err.Error()
	}
	_ = raw.Control(func(fd uintptr) {
		info, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
		for _, found := range regexp.MustCompile(`tfd: +(\d+) events: +([0-9a-f]+)`).FindAllStringSubmatch(string(info), -1) {
			name := "connection "
			if found[1] == strconv.Itoa(near.Handle()) {
				name = "ring "
			}
			what += name + found[2] + " "
		}
	})
	return what
}
