package links

import (
	"cmp"
	"fmt"
	"io"
)

const fewChannels = 16

func writeChannels(w io.Writer, j *Job, s Style) {
	if len(j.Channels) == 0 {
		return
	}
	if len(j.Channels) > fewChannels && !s.Explain {
		fmt.Fprintf(w, "\n  %d channels between hosts: -explain shows them\n", len(j.Channels))
		return
	}
	estimated := false
	var t table
	t.add("CHANNEL", "TRANSPORT", "DATA PLANE", "HALF TRIP", "BYTES > / <", "UNDER WAY >", "RESUMES", "STATE", "TO")
	for _, c := range j.Channels {
		half := "-"
		if c.RTT > 0 {
			half, estimated = Duration(c.RTT/2)+"*", true
		}
		resumes := "-" // not resumable: a loss would end the job
		if c.Resumable {
			resumes = fmt.Sprint(c.Resumes)
		}
		t.add(c.ends(), cmp.Or(c.Transport, "-"), cmp.Or(c.Plane, "-"), half, both(c.Sent, c.Received, "B"), count(c.UnderWay, "B"), resumes, string(c.State), c.Address)
	}
	fmt.Fprintln(w)
	t.write(w, "  ")
	if estimated {
		fmt.Fprint(w, "\n  * half of the transport's estimate\n")
	}
}

func (c Channel) ends() string { return fmt.Sprintf("host %d > %d", c.From, c.To) }

func writeChannelReasons(w io.Writer, j *Job) {
	for _, c := range j.Channels {
		if c.PlaneReason != "" {
			fmt.Fprintf(w, "  channel of %s: data plane %s: %s\n", c.ends(), c.Plane, c.PlaneReason)
		}
		if c.Lost != "" {
			fmt.Fprintf(w, "  channel of %s was lost: %s\n", c.ends(), c.Lost)
		}
	}
}
