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

// WeightOf is the least of what a look counts in some rounds. What it takes is done by look.
func WeightOf(look func()) int {
	h := &hub{weight: 1}
	least := 0
	for i := range 100 {
		h.weigh(func() bool { look(); return false })
		if i > 10 && (least == 0 || h.weight < least) {
			least = h.weight
		}
	}
	return least
}

// Waits says what wakes a relay that sleeps: "ring" and "connection", if they are in its set, each
// followed by the mask of their events.
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
