package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/plugins/sdk/proto"
)

type listed struct {
	installed
	About *conformance.Site `json:"about,omitempty"`
}

func pluginsList(o *pluginOptions, std streams) error {
	found := builtinPlugins()
	var more []installed
	var err error
	if o.file != "" {
		more, err = inJob(o.file, std.err)
	} else {
		more, err = inDir(o.dir)
	}
	if err != nil {
		return err
	}
	var list []listed
	bad := false
	for _, p := range append(found, more...) {
		x := listed{installed: p}
		if p.Error == "" {
			if about, err := ask(p); err != nil {
				x.Error = err.Error()
			} else {
				x.About = about
			}
		}
		bad = bad || x.Error != ""
		list = append(list, x)
	}
	if o.json {
		err = cmdline.WriteJSON(std.out, map[string]any{"plugins": list})
	} else {
		err = writeList(std.out, list)
	}
	if err == nil && bad {
		err = errBad
	}
	return err
}

func writeList(w io.Writer, list []listed) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVERSION\tSDK\tPROTOCOL\tDATA PLANES\tREACH\tFEATURES\tMEMORY\tSHA256\tWHERE")
	for _, x := range list {
		where, sum := "built in", "-"
		if !x.Builtin {
			where, sum = x.Path, short(x.SHA256)
		}
		if a := x.About; a != nil {
			protocol := fmt.Sprint(a.Protocol)
			if !a.MTLS {
				protocol += ", no mtls"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f MB\t%s\t%s\n", x.Name, a.Version, a.SDK, protocol, words(a.Planes), a.Reach, words(a.Features), float64(a.Resident)/1e6, sum, where)
		} else {
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t-\t-\t-\t%s\t%s\n", x.Name, sum, where)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, x := range list {
		if x.About != nil {
			writeNotes(w, x.Name, x.About)
		}
		if x.Error != "" {
			fmt.Fprintf(w, "\n%s does not load: %s\n", x.Name, strings.ReplaceAll(x.Error, "\n", "\n  "))
		}
	}
	return nil
}

func writeNotes(w io.Writer, name string, s *conformance.Site) {
	if len(s.Lacks) > 0 {
		fmt.Fprintf(w, "\n%s speaks version %d of the protocol, this node %d; it lacks\n", name, s.Protocol, proto.Version)
	}
	for _, x := range s.Lacks {
		fmt.Fprintf(w, "  %s\n", x)
	}
	if s.Newest > proto.Version {
		fmt.Fprintf(w, "\n%s could speak version %d of the protocol, this node %d: update impi-node to have what that adds\n", name, s.Newest, proto.Version)
	}
	if s.Problem != "" {
		fmt.Fprintf(w, "\n%s is degraded: %s\n", name, s.Problem)
	}
}

// short shortens a checksum so that two files can still be distinguished.
func short(sum string) string {
	if sum == "" {
		return "-"
	}
	return sum[:12]
}

func pluginsInfo(o *pluginOptions, std streams) error {
	p, err := o.find(o.args[0])
	if err != nil {
		return err
	}
	site, err := ask(p)
	if err != nil {
		return err
	}
	if o.json {
		return cmdline.WriteJSON(std.out, site)
	}
	t := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	where := site.Path
	if p.Builtin {
		where = "built in"
	}
	for _, row := range [][2]string{
		{"transport", site.Name}, {"version", site.Version}, {"vendor", site.Vendor}, {"where", where}, {"sha256", site.SHA256},
		{"written with", site.SDK}, {"protocol", fmt.Sprint(site.Protocol)}, {"AutoMTLS", yesNo(site.MTLS)},
		{"data planes", words(site.Planes)}, {"reach", string(site.Reach)}, {"features", words(site.Features)},
		{"starts with", fmt.Sprintf("%.1f MB (%.1f of its own), %d descriptors, %d threads",
			float64(site.Resident)/1e6, float64(site.Own)/1e6, site.Descriptors, site.Threads)},
	} {
		if row[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	writeNotes(std.out, site.Name, site)
	_, err = fmt.Fprintf(std.out, "\nIn a job file, with every setting at its default:\n\n%s", site.Block())
	return err
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no: write auto_mtls = false"
}
