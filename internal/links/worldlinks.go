package links

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// WorldLink is a link of a proc to a proc of another job, which it has met at a port.
type WorldLink struct {
	Local     int       `json:"local"`
	World     string    `json:"world"` // the other proc's world, the World of its job
	Peer      int       `json:"peer"`  // its rank in that world
	State     State     `json:"state"`
	Transport string    `json:"transport,omitempty"`
	Plane     string    `json:"data_plane,omitempty"`
	Dialled   bool      `json:"dialled,omitempty"` // by this end's node
	Since     time.Time `json:"since,omitzero"`
}

func sortWorldLinks(list []WorldLink) {
	slices.SortFunc(list, func(a, b WorldLink) int {
		return cmp.Or(cmp.Compare(a.Local, b.Local), cmp.Compare(a.World, b.World), cmp.Compare(a.Peer, b.Peer))
	})
}

const shortWorld = 8

// ShortWorld is enough of a world's name to tell it from others.
func ShortWorld(name string) string { return name[:min(len(name), shortWorld)] }

func writeWorldLinks(w io.Writer, j *Job, known map[string]string, s Style) {
	if len(j.WorldLinks) == 0 && j.Ports == 0 {
		return
	}
	fmt.Fprintf(w, "  other jobs: this one is world %s, %d open ports\n", ShortWorld(j.World), j.Ports)
	var t table
	for _, a := range j.WorldLinks {
		p := Pair{State: a.State, Plane: a.Plane}
		picture, meaning := p.draw()
		who := "world " + ShortWorld(a.World)
		if name, ok := known[a.World]; ok {
			who += ", job " + name
		}
		age := ""
		if !a.Since.IsZero() {
			age = s.Now.Sub(a.Since).Round(time.Second).String()
		}
		t.add(fmt.Sprintf("%d %s %d", a.Local, picture, a.Peer), who, a.Transport, a.Plane, meaning, age)
	}
	t.write(w, "    ")
	fmt.Fprintln(w)
}

func worldsOf(r *Report) map[string]string {
	known := make(map[string]string)
	for _, j := range r.Jobs {
		if j.World != "" {
			known[j.World] = j.Name
		}
	}
	return known
}
