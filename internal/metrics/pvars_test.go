package metrics

import (
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/engine/tool"
)

// inProc says by which performance variable of MPI_T a proc sees a metric of procs for itself;
// behind - is why there is none. Those that end in _ have the value of a label behind it.
var inProc = map[string]string{
	"impi_proc_silent":                       "- a proc that reads a variable is not stopped",
	"impi_proc_blocked_seconds":              "- a proc that reads a variable is not blocked",
	"impi_proc_sleeps_total":                 "impi_sleeps",
	"impi_proc_sleep_seconds_total":          "impi_sleep_time",
	"impi_proc_sent_messages_total":          "impi_messages_sent",
	"impi_proc_sent_data_bytes_total":        "impi_data_bytes_sent",
	"impi_proc_sent_bytes_total":             "impi_bytes_sent",
	"impi_proc_received_bytes_total":         "impi_bytes_received",
	"impi_proc_unexpected_messages":          "impi_unexpected_messages",
	"impi_proc_unexpected_bytes":             "impi_unexpected_bytes",
	"impi_proc_calls_total":                  "impi_calls_",
	"impi_proc_call_seconds_total":           "impi_call_time_",
	"impi_proc_wait_seconds_total":           "impi_wait_time_",
	"impi_link_retransmits_total":            "impi_retransmits",
	"impi_lost_procs":                        "- of the node; MPIX_Comm_get_failed gives them",
	"impi_spare_sites":                       "- of the node",
	"impi_spare_procs":                       "- of the node",
	"impi_host_sent_messages_total":          "- of the node",
	"impi_host_sent_data_bytes_total":        "- of the node",
	"impi_host_latency_seconds":              "- of the node",
	"impi_host_packed_sent_bytes_total":      "- of the node",
	"impi_host_packed_travelled_bytes_total": "- of the node",
	"impi_node_info":                         "- of the node",
	"impi_job_phase":                         "- of the node",
	"impi_procs":                             "- of the node",
	"impi_pairs":                             "- of the node; impi_links counts a proc's links",
	"impi_pair_resumes_total":                "- of the node",
	"impi_channels":                          "- of the node",
	"impi_channel_resumes_total":             "- of the node",
	"impi_plugin_healthy":                    "- of the node",
	"impi_plugin_starts_total":               "- of the node",
	"impi_plugin_failures":                   "- of the node",
	"impi_plugin_links_total":                "- of the node",
	"impi_plugin_resident_bytes":             "- of the node",
	"impi_plugin_cpu_seconds_total":          "- of the node",
}

// TestPerformanceVariables: what metrics show and a proc can know is a variable of MPI_T as well.
func TestPerformanceVariables(t *testing.T) {
	for i := range table {
		name := table[i].name
		v, said := inProc[name]
		switch {
		case !said:
			t.Errorf("%s: which performance variable of internal/engine/tool has it, or why has none?", name)
		case strings.HasPrefix(v, "- "):
		case !slices.ContainsFunc(tool.PerformanceVariables, func(m tool.PerformanceVariable) bool {
			return m.Name == v || strings.HasSuffix(v, "_") && strings.HasPrefix(m.Name, v)
		}):
			t.Errorf("%s: internal/engine/tool has no performance variable %s", name, v)
		}
		delete(inProc, name)
	}
	for name := range inProc {
		t.Errorf("%s is no metric", name)
	}
	for i := range tool.PerformanceVariables {
		m := &tool.PerformanceVariables[i]
		if m.Read() != 0 || m.Description == "" {
			t.Errorf("%s: %d before Init, %q", m.Name, m.Read(), m.Description)
		}
	}
}
