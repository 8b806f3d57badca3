package repotest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// example is a small repository and the problems that its rule must find there,
// each as path:line and a part of the text. None means that it is good.
type example struct {
	name  string
	files map[string]string
	want  []string
}

func one(path, text string) map[string]string { return map[string]string{path: text} }

// imp is a Go file that imports packages of ours.
func imp(packages ...string) string {
	text := "package p\n"
	for _, p := range packages {
		text += "import _ \"" + Module + "/" + p + "\"\n"
	}
	return text
}

func allFolders(more ...string) map[string]string {
	files := map[string]string{}
	for _, dir := range append(more, topLevel...) {
		files[dir+"/x"] = "x"
	}
	return files
}

var examples = map[string][]example{
	"top-level-folders": {
		{"good", allFolders(".ci"), nil},
		{"one too many", allFolders("pkg"), []string{"pkg: no folder"}},
		{"one missing", one("cmd/x", ""), []string{
			"config: this", "core: this", "docs: this", "examples: this", "include: this", "internal: this", "plugins: this", "transports: this",
		}},
	},
	"semantics": {
		{"good", map[string]string{
			"core/p/p_test.go":  "package p\nfunc TestA() { run(`a b`) }\n",
			"docs/semantics.md": "| rule | b | c |\n|---|---|---|\n| f | g | `core/p.TestA`, `core/p.TestA/a b` |\n",
		}, nil},
		{"bad", map[string]string{
			"core/p/p_test.go":  "package p\nfunc TestA() {}\n",
			"docs/semantics.md": "| f | g | none |\n| f | g | `core/p.TestB` |\n| f | g | `core/p.TestA/x` |\n| f | `core/p.TestA` |\n",
		}, []string{"docs/semantics.md:1: a row", "docs/semantics.md:2: there is no test TestB", "docs/semantics.md:3: no test file", "docs/semantics.md:4: a row"}},
	},
	"doc-links": {
		{"good", map[string]string{
			"core/p/a.go": "package p\n", "docs/x.md": "[a](../core/p), [b](architecture.md#top-x), [c](#here), [d](https://example.org#x)\n## Here\n",
			"docs/architecture.md": "# Top: `x`\n`core/p/a.go` and `a.go`, `core/p`\n",
		}, nil},
		{"bad", map[string]string{
			"core/p/a.go": "package p\n", "docs/x.md": "`gone.go` [a](../core/q)\n[b](#her) [c](howto/y.md#it)\n",
			"docs/howto/y.md": "`core/q/a.go`\n`b.go`\n",
		}, []string{"docs/howto/y.md:1: there is no file core/q/a.go", "docs/howto/y.md:2: there is no file b.go", "docs/x.md:1: the link to ../core/q", "docs/x.md:2: docs/howto/y.md has no heading for the link to #it", "docs/x.md:2: docs/x.md has no heading for the link to #her"}},
	},
	"doc-width": {
		{"good", one("docs/x.md", strings.Repeat("word ", 19)+"\n| "+strings.Repeat("word ", 30)+"|\n```\n"+strings.Repeat("code ", 30)+"\n```\n* `"+strings.Repeat("code ", 30)+"`\n"), nil},
		{"bad", one("docs/x.md", strings.Repeat("word ", 21)+"\n"), []string{"docs/x.md:1: wrap this"}},
	},
	"words": {
		{"good", map[string]string{
			"docs/glossary.md": "`link`\n\n| **port** | Has a `number`. | port |\n\n## Words of no name\n\nNot `hall` and `guest`.\n\n## More\n\n`port`\n",
			"core/p/a.go":      "package p\ntype Link struct{ hallway, Port int }\nfunc Shallow() { hallway = 1; x.vigil = 2 }\n",
			"core/p/a_test.go": "package p\ntype Hall int\n",
		}, nil},
		{"bad", map[string]string{
			"docs/glossary.md": "| **oath** | A word. | x, `pact` |\n\n## Words of no name\n\nNot `hall` and\n`vigil`.\n",
			"core/p/a.go":      "package p\ntype Halls struct{ ofVigil, pact int }\nfunc (h Halls) HTTPHall() { vigil := 1; _ = vigil }\nfunc f(hall int) { for vigil := range 3 { var x, halls int } }\n",
		}, []string{"core/p/a.go:2: Halls has the word halls", "core/p/a.go:2: ofVigil has", "core/p/a.go:2: pact has", "core/p/a.go:3: HTTPHall has", "core/p/a.go:3: vigil has", "core/p/a.go:4: hall has", "core/p/a.go:4: halls has", "core/p/a.go:4: vigil has"}},
		{"no list", one("docs/glossary.md", "words\n"), []string{"docs/glossary.md:1: it has no list"}},
	},
	"transport-names": {
		{"good", map[string]string{
			"transports/tcp/a.go":       "package tcp\nconst name = \"tcp\"\n",
			"internal/node/a.go":        "package p\nvar x, _ = net.Listen(\"tcp\", \"\")\nvar y = &net.UnixAddr{Net: \"tcp\"}\nvar z = \"tcpdump\"\n",
			"internal/firewall/a.go":    "package p\nvar x = Rule{Proto: \"tcp\"}\nvar y = x.Proto == \"tcp\"\n",
			"internal/node/a_test.go":   "package p\nvar x = \"tcp\"\n",
			"cmd/impi-node/builtin.go":  "package main\nvar x = \"tcp\"\n",
			"cmd/impi-transport-a/a.go": "package main\nvar x = \"tcp\"\n",
			"internal/matrix/a.go":      "package p\nvar x = \"tcp\"\n",
		}, nil},
		{"bad", map[string]string{
			"transports/tcp/a.go":    "package tcp\n",
			"internal/node/a.go":     "package p\nvar x = \"tcp\"\nvar y = `take \"tcp\"`\n",
			"cmd/impi-node/a.go":     "package main\nvar x = \"tcp\"\n",
			"internal/firewall/a.go": "package p\nvar x = Rule{For: \"tcp\"}\nvar y = x.For == \"tcp\"\n",
		}, []string{
			"cmd/impi-node/a.go:2: transport tcp is named", "internal/firewall/a.go:2: transport tcp is named", "internal/firewall/a.go:3: transport tcp is named",
			"internal/node/a.go:2: transport tcp is named", "internal/node/a.go:3: transport tcp is named",
		}},
	},
	"imports": {
		{"good", map[string]string{
			"core/message/a.go":         imp("core/flow", "core/wire"),
			"core/mpi/a.go":             imp("core/message", "internal/engine/proc", "internal/engine/life"),
			"internal/engine/meet/a.go": imp("core/message", "internal/engine/proc", "internal/poll", "internal/wireup", "plugins/sdk/transports/socket"),
			"core/ending/a.go":          imp("core/wire", "plugins/sdk/link"),
			"transports/tcp/a.go":       imp("plugins/sdk/transports", "plugins/sdk/transports/socket", "plugins/sdk/link"),
			"plugins/sdk/go.mod":        "module github.com/openimpi/impi/plugins/sdk",
			"plugins/sdk/a.go":          imp("plugins/sdk/proto", "plugins/sdk/transports"),
			"internal/node/a.go":        imp("core/agent", "config", "plugins/host", "plugins/sdk/transports"),
			"examples/ring/a.go":        imp("core/mpi"),
			"cmd/impi-node/a.go":        imp("internal/node", "transports/tcp"),
			"core/flow/a_test.go":       imp("internal/node"),
			"config/a.go":               "package config\nimport _ \"github.com/hashicorp/hcl/v2/hclsyntax\"",
		}, nil},
		{"core up", one("core/flow/a.go", imp("core/wire", "core/message")), []string{"core/flow/a.go:3: import of github.com/openimpi/impi/core/message: imports inside core"}},
		{"core sideways", one("core/flow/a.go", imp("core/match")), []string{"core/flow/a.go:2"}},
		{"core without a layer", one("core/new/a.go", imp("core/wire")), []string{"no layer"}},
		{"core out", one("core/agent/a.go", imp("plugins/sdk/transports")), []string{"imports go down only"}},
		{"core to others", one("core/wire/a.go", "package wire\nimport \"golang.org/x/sys/unix\""), []string{"not for core"}},
		{"mpi to the machine", one("core/mpi/a.go", imp("internal/poll")), []string{"imports go down only"}},
		{"engine up", one("internal/engine/proc/a.go", imp("internal/engine/meet")), []string{"go to a lower layer only"}},
		{"engine sideways", one("internal/engine/meet/a.go", imp("internal/engine/window")), []string{"go to a lower layer only"}},
		{"engine to its face", one("internal/engine/life/a.go", imp("core/mpi")), []string{"does not know who shows it"}},
		{"engine to a transport", one("internal/engine/proc/a.go", imp("transports/tcp")), []string{"imports go down only"}},
		{"mpi to a transport", one("core/mpi/a.go", imp("transports/tcp")), []string{"imports go down only"}},
		{"contract to an implementation", one("plugins/sdk/transports/a.go", imp("plugins/sdk/transports/socket")), []string{"imports go down only"}},
		{"transport to core", one("transports/tcp/a.go", imp("core/wire")), []string{"imports go down only"}},
		{"transport to another", one("transports/tcp/a.go", imp("transports/unix")), []string{"imports go down only"}},
		{"sdk to host", one("plugins/sdk/a.go", imp("plugins/host")), []string{"imports go down only"}},
		{"sdk to core", map[string]string{"plugins/sdk/go.mod": "module github.com/openimpi/impi/plugins/sdk", "plugins/sdk/link/a.go": imp("core/wire")}, []string{"imports go down only"}},
		{"sdk to the node", one("plugins/sdk/a.go", imp("internal/launch")), []string{"imports go down only"}},
		{"config to ours", one("config/a.go", imp("plugins/sdk/transports")), []string{"imports go down only"}},
		{"config to others", one("config/a.go", "package config\nimport \"google.golang.org/grpc\""), []string{"not for config"}},
		{"node to a transport", one("internal/node/a.go", imp("transports/tcp")), []string{"imports go down only"}},
		{"rooms", map[string]string{
			"internal/node/a.go":         imp("internal/operator/inspect", "internal/spawner", "internal/lifetime"),
			"internal/connmgr/dial/a.go": imp("internal/connmgr/accept", "internal/site", "internal/links"),
			"internal/site/a_test.go":    imp("internal/connmgr/dial"), "cmd/impi-node/a.go": imp("internal/site/client"),
		}, nil},
		{"room to the node", one("internal/connmgr/dial/a.go", imp("internal/node")), []string{"go down only, and internal/repotest does not say that internal/connmgr may import internal/node"}},
		{"room up", one("internal/site/client/a.go", imp("internal/connmgr/dial")), []string{"does not say that internal/site may import internal/connmgr"}},
		{"room sideways", one("internal/spawner/a.go", imp("internal/operator/inspect")), []string{"does not say that internal/spawner may import internal/operator"}},
		{"room to a transport", one("internal/connmgr/dial/a.go", imp("transports/tcp")), []string{"imports go down only"}},
		{"others to the node", one("internal/links/a.go", imp("internal/node")), []string{"internal/node is for the node alone"}},
		{"others to a room", one("internal/links/a.go", imp("internal/lifetime")), []string{"internal/lifetime is for the node alone"}},
		{"example to core", one("examples/ring/a.go", imp("core/wire")), []string{"imports go down only"}},
		{"to a command", one("internal/node/a.go", imp("cmd/impi-node")), []string{"nobody imports a command"}},
		{"command to a command", one("cmd/a/a.go", imp("cmd/b")), []string{"nobody imports a command"}},
		{"nothing is said", one("pkg/a.go", imp("core/wire")), []string{"nothing is said"}},
	},
	"pure-core": {
		{"good", map[string]string{
			"core/flow/a.go":      "package flow\nimport (\n\"time\"\n\"net/netip\"\n)\nfunc f(now time.Time, a netip.Addr) time.Time { return now.Add(time.Second) }",
			"core/flow/a_test.go": "package flow\nimport \"os\"\nfunc f() { go f(); os.Exit(1) }",
			"internal/a/a.go":     "package a\nimport \"net\"\nvar _ net.Conn",
		}, nil},
		{"sockets", one("core/a/a.go", "package a\nimport \"net\"\nvar _ net.Conn"), []string{"core/a/a.go:2: core does not import net"}},
		{"files", one("core/a/a.go", "package a\nimport \"os\""), []string{"import os"}},
		{"signals", one("core/a/a.go", "package a\nimport \"os/signal\""), []string{"import os/signal"}},
		{"logging", one("core/a/a.go", "package a\nimport \"log/slog\""), []string{"import log/slog"}},
		{"randomness", one("core/a/a.go", "package a\nimport (\n\"math/rand/v2\"\n\"crypto/rand\"\n)"), []string{"a.go:3: ", "a.go:4: "}},
		{"clock", one("core/a/a.go", "package a\nimport \"time\"\nvar t = time.Now()"), []string{"a.go:3: core has no clock: time.Now"}},
		{"clock under another name", one("core/a/a.go", "package a\nimport clock \"time\"\nvar t = clock.After(1)"), []string{"time.After"}},
		{"goroutine", one("core/a/a.go", "package a\nfunc f() {\n\tgo f()\n}"), []string{"a.go:3: core starts no goroutine"}},
	},
	"package-comments": {
		{"good", map[string]string{
			"a/doc.go": "// Package a is here.\npackage a", "a/b.go": "package a",
			"t/x_test.go": "package t",
			"g/g.pb.go":   "// Code generated by x. DO NOT EDIT.\n\npackage g",
		}, nil},
		{"none", one("a/b.go", "package a\n// F does.\nfunc F() {}"), []string{"a: the package has no comment"}},
		{"not above package", one("a/b.go", "// License\n\npackage a"), []string{"a: the package has no comment"}},
		{"only in the test", map[string]string{"a/a.go": "package a", "a/a_test.go": "// Package a is here.\npackage a"}, []string{"a: the package"}},
		{"command", one("cmd/a/main.go", "package main"), []string{"cmd/a: the package"}},
	},
	"exported-comments": {
		{"good", map[string]string{
			"a/a.go": "package a\n// F does.\nfunc F() {}\n// A T is.\ntype T[X any] struct{ F int }\n// M does.\nfunc (*T[X]) M() {}\n" +
				"type u int\nfunc (u) M() {}\nfunc g() {}\n// The codes.\nconst (\nA = 1\nB = 2\n)\nconst (\nC = 1 // what C is\n\n// D is.\nD = 2\n)\n// V is.\nvar V, w int\n",
			"a/a_test.go":     "package a\nfunc TestF() {}",
			"cmd/a/main.go":   "package main\nfunc F() {}",
			"a/generated.go":  "// Code generated by x. DO NOT EDIT.\n\npackage a\nfunc G() {}",
			"core/b/alias.go": "package b\ntype (\n// E is.\nE int\n)\n// G is this. H is that.\ntype (\nG int\nH int\n)",
		}, nil},
		{"explained in core/mpi", map[string]string{
			"core/mpi/a.go":               "package mpi\n// Comm is.\ntype Comm proc.Comm\n// Size is.\nfunc (c *Comm) Size() int { return c.in().Size() }\n// Free does.\nfunc Free() { proc.Free() }",
			"internal/engine/proc/a.go":   "package proc\n// Comm is.\ntype Comm int\nfunc (c *Comm) Size() {}\nfunc Free() {}\n",
			"internal/engine/window/a.go": "package window\n// Win is.\ntype Win int\nfunc (w *Win) Size() {}\nfunc Free() {}\n",
		}, []string{"window/a.go:4: Size has no comment", "window/a.go:5: Free has no comment"}},
		{"standard methods", one("a/a.go", "package a\n// T is.\ntype T int\nfunc (T) String() (s string) { return s }\nfunc (T) Error() string { return \"\" }\n"+
			"func (T) Unwrap() error { return nil }\nfunc (*T) Is(target error) bool { return false }\n"+
			"func (T) MarshalText() (b []byte, err error) { return }\nfunc (*T) UnmarshalText(b []byte) error { return nil }\n"+
			"// U is.\ntype U int\nfunc (U) Unwrap() []error { return nil }\n"), nil},
		{"other methods of these names", one("a/a.go", "package a\n// T is.\ntype T int\nfunc (T) String(n int) string { return \"\" }\nfunc (T) Error() (string, bool) { return \"\", false }\n"+
			"func (T) Unwrap() {}\nfunc (T) Is(a, b error) bool { return false }\nfunc (T) MarshalText() []byte { return nil }\nfunc (T) UnmarshalText(string) error { return nil }\nfunc String() string { return \"\" }\n"), []string{
			"a.go:4: String has no comment", "a.go:5: Error has", "a.go:6: Unwrap has", "a.go:7: Is has", "a.go:8: MarshalText has", "a.go:9: UnmarshalText has", "a.go:10: String has",
		}},
		{"function", one("a/a.go", "package a\n\nfunc F() {}"), []string{"a/a.go:3: F has no comment"}},
		{"another's comment", one("a/a.go", "package a\n// Does it.\nfunc F() {}"), []string{"F has no comment"}},
		{"method", one("a/a.go", "package a\n// T is.\ntype T int\nfunc (t *T) M() {}"), []string{"a.go:4: M has"}},
		{"method of a generic type", one("a/a.go", "package a\n// T is.\ntype T[X, Y any] int\nfunc (t *T[X, Y]) M() {}"), []string{"a.go:4: M has"}},
		{"type", one("a/a.go", "package a\ntype T int"), []string{"T has no comment"}},
		{"type in a group", one("a/a.go", "package a\n// Some.\ntype (\nT int\n)"), []string{"T has no comment"}},
		{"constant", one("a/a.go", "package a\nconst C = 1"), []string{"C has no comment"}},
		{"variables", one("a/a.go", "package a\nvar (\nV = 1\n// W is.\nW = 2\n)"), []string{"a.go:3: V has no comment"}},
	},
	"sizes": {
		{"good", map[string]string{
			"a/a.go":      "package a\nfunc f() {" + strings.Repeat("\n", MaxFunction-1) + "}\n" + strings.Repeat("\n", MaxFile-MaxFunction-1),
			"a/a_test.go": "package a" + strings.Repeat("\n", 2*MaxFile),
			"a/g.pb.go":   "// Code generated by x. DO NOT EDIT.\n\npackage a" + strings.Repeat("\n", 2*MaxFile),
		}, nil},
		{"long file", one("a/a.go", "package a"+strings.Repeat("\n", MaxFile+1)), []string{"a/a.go: 551 lines"}},
		{"long function", one("a/a.go", "package a\nfunc f() {"+strings.Repeat("\n", MaxFunction)+"}"), []string{"a/a.go:2: f has 71 lines"}},
	},
	"contract-skips": {
		{"good", map[string]string{
			contractDir + "/a.go":      "package t\nfunc f(e E) { e.Skipf(\"%q is a %s\", 1, 2)\ne.Skipf(\"count: %v\", err)\ne.Fatalf(\"none\") }",
			contractDir + "/a_test.go": "package t\nfunc g(e E) { e.Skipf(\"other\") }",
			skipsFile:                  "# other\nx.TestA/b   \\S+ is a\n",
		}, nil},
		{"not allowed", map[string]string{
			contractDir + "/a.go": "package t\nfunc f(e E) {\ne.Skipf(\"links have %s\", 1)\n}",
			skipsFile:             "# links have\nx.TestA/b  links have no\n",
		}, []string{contractDir + "/a.go:3: .ci/skips does not allow"}},
		{"no file", one(contractDir+"/a.go", "package t\nfunc f(e E) { e.Skipf(\"other\") }"), []string{"a.go:2"}},
	},
	"copies": {
		{"good", map[string]string{
			"a/a.go":            "package a\n" + lines("f", MaxCopied-2) + lines("other", MaxCopied-1),
			"b/b_test.go":       "package b\n" + lines("f", MaxCopied-2) + "func g() {\n" + strings.Repeat("\n// Why.\n\tf()\n", MaxCopied-2) + "}\n",
			"examples/p/a.go":   "package p\n" + lines("f", MaxCopied),
			"examples/q/a.go":   "package q\n" + lines("f", MaxCopied),
			"c/c.go":            "// Code generated by x. DO NOT EDIT.\n\npackage c\n" + lines("f", MaxCopied+1),
			"c/d.go":            "package c\n" + lines("g", MaxCopied+1),
			"c/testdata/d/d.go": "package d\n" + lines("g", MaxCopied+1),
		}, nil},
		{"copied to a test", map[string]string{
			"a/a.go":      "package a\n" + lines("f", MaxCopied-1),
			"b/b_test.go": "package b\nfunc (t T) g(int) {\n// Why.\n\n" + strings.Repeat("\tf() // so\n", MaxCopied-1) + "}\n",
		}, []string{"b/b_test.go:2: g is the function f of a/a.go:2 once more"}},
	},
	"map": {
		{"good", map[string]string{
			"core/a/a.go": "package a", "core/a/b/c/c.go": "package c", "core/a/atest/b.go": "package atest", "internal/site/x/x.go": "package x", "internal/t/t_test.go": "package t",
			"docs/architecture.md": "# A\n\n## The map\n\n| `core/a` | it, with `b` |\n| `internal/site`, `x` | it |\n\n## More\n",
		}, nil},
		{"bad", map[string]string{
			"core/a/a.go": "package a", "internal/c/d/d.go": "package d", "internal/site/x/x.go": "package x",
			"docs/architecture.md": "`c` `x`\n\n## The map\n\n| `internal/site` | a |\n\n## More\n\n`core/a`\n",
		}, []string{"core/a: the map in docs/architecture.md does not say", "internal/c: the map", "internal/c/d: the map", "internal/site/x: the map"}},
		{"no map", one("docs/architecture.md", "# A\n"), []string{"docs/architecture.md: it has no section The map"}},
		{"no page", one("core/a/a.go", "package a"), []string{"docs/architecture.md: this page"}},
	},
	"rooms": {
		{"good", map[string]string{"a/a.go": "package a\n" + methods("*T", MaxMethods), "core/mpi/a.go": "package mpi\n" + methods("*Comm", 2*MaxMethods)}, nil},
		{"many methods", one("a/a.go", "package a\n"+methods("T[K]", MaxMethods)+"func (T) more() {}"), []string{"a.T: 41 methods, at most 40"}},
		{"many files", files("a", MaxFiles+1), []string{"a: 31 files, at most 30"}},
		{"a node that fits", map[string]string{
			"internal/node/a.go": "package a" + strings.Repeat("\n", MaxNode-2), "internal/node/b/b.go": "package b\n\n",
			"internal/node/a_test.go": "package a\n", "internal/node/testdata/a/a.go": "package a\n", "internal/site/a.go": "package a\n",
			"internal/node/g.pb.go": "// Code generated by x. DO NOT EDIT.\n\npackage a\n",
		}, nil},
		{"a large node", map[string]string{
			"internal/node/a.go": "package a" + strings.Repeat("\n", MaxNode-2), "internal/node/b/b.go": "package b\n\n\n",
		}, []string{"internal/node: 5000 lines, at most 4999"}},
	},
	"face": {
		{"good", map[string]string{
			"core/mpi/a.go":       "package mpi\nfunc (c *Comm) F() error { return proc.F(c.in()) }\nfunc G() { st, err := proc.G()\nreturn Status(st), err }",
			"core/mpi/engine.go":  "package mpi\nfunc (c *Comm) in() *proc.Comm { if c == nil { return nil }\nreturn (*proc.Comm)(c) }",
			"core/mpi/a_test.go":  "package mpi\nfunc f() { for {} }",
			"internal/x/other.go": "package x\nfunc f() { for {} }",
		}, nil},
		{"decides", one("core/mpi/a.go", "package mpi\nfunc F(n int) error {\nif n < 0 { return nil }\nreturn proc.F(n) }"), []string{"core/mpi/a.go:2: F does more"}},
		{"has something of its own", one("core/mpi/a.go", "package mpi\nfunc f() { proc.F() }"), []string{"f does more"}},
		{"long", one("core/mpi/a.go", "package mpi\nfunc F() {\nproc.A()\nproc.B()\nproc.C() }"), []string{"F does more"}},
	},
	"test-habits": {
		{"good", map[string]string{
			"a/a.go":      "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }",
			"a/a_test.go": "package a\nimport \"time\"\nfunc f(t T) { t.Skip(\"no compiler\"); _ = time.Second }",
			"a/b_test.go": "package a\nfunc f(time T) { time.Sleep(1) }",
		}, nil},
		{"sleep", one("a/a_test.go", "package a\nimport \"time\"\nfunc f() {\n\ttime.Sleep(1)\n}"), []string{"a/a_test.go:4: a test waits"}},
		{"skip", one("a/a_test.go", "package a\nfunc f(t T) { t.Skip() }"), []string{"say why this"}},
		{"skip of the sdk without a remedy", map[string]string{"plugins/sdk/go.mod": "module m", "plugins/sdk/a_test.go": "package a\nfunc f(t T) { t.Skip(\"NOT RUN: no gcc: install it\"); t.Skip(\"NOT RUN: no gcc\") }"}, []string{"plugins/sdk/a_test.go:2: say what is missing"}},
		{"skip by hand", one("a/a_test.go", "package a\nfunc f(t T) { t.Skipf(\"NOT RUN: no gcc\") }"), []string{"internal/skips"}},
		{"install", one("a/a_test.go", "package a\nfunc f() { exec.CommandContext(ctx, \"apt-get\", \"update\") }"), []string{"installs nothing"}},
		{"skip now", one("a/a_test.go", "package a\nfunc f(t T) { t.SkipNow() }"), []string{"say why: Skip"}},
	},
	"error-classes": {
		{"good", map[string]string{
			"core/flow/a.go":      "package flow\nvar ErrA, errB error\nvar Errand = 1\n",
			"core/mpierr/a.go":    "package mpierr\nvar t = map[error]int{flow.ErrA: 1, flow.Errand: 2}\nvar ErrC error",
			"core/mpi/a.go":       "package mpi\nvar ErrOwn error",
			"core/flow/a_test.go": "package flow\nvar ErrT error",
			"config/a.go":         "package config\nvar ErrD error",
		}, nil},
		{"no row", map[string]string{
			"core/flow/a.go":   "package flow\nvar (\n\tErrA error\n\tErrB error\n)",
			"core/mpierr/a.go": "package mpierr\nvar t = map[error]int{flow.ErrA: 1, other.ErrB: 2}",
		}, []string{"core/flow/a.go:4: flow.ErrB has no class"}},
		{"no table", one("core/flow/a.go", "package flow\nvar ErrA error"), []string{"flow.ErrA has no class"}},
	},
	"citations": {
		{"good", map[string]string{
			"core/flow/a.go":        "package flow\n\n// f as in IMPI ch.3, Packet Protocol: it counts.\n" + strings.Repeat("//\n", 90),
			"core/match/a.go":       "// Package match keeps MPI's order (MPI-4.1,\n// 3.5.1).\npackage match\n",
			"plugins/sdk/link/a.go": "package link\n" + strings.Repeat("//\n", 200),
			"core/flow/a_test.go":   "package flow\n" + strings.Repeat("//\n", 200),
		}, nil},
		{"too few", map[string]string{
			"core/flow/a.go":      "package flow // IMPI ch.3, Packet Protocol\n" + strings.Repeat("\n", 100),
			"core/flow/a_test.go": "package flow // IMPI ch.3, Packet Protocol\n",
		}, []string{"core/flow: 101 lines cite the standard 1 times, at least 2"}},
		{"no such section", one("internal/a/a.go", "package a\n\n// MPI-4.1, 3.12, and MPI-4.1, 20.1\n\n/* IMPI ch. 3,\nReduce */"), []string{
			"internal/a/a.go:3: MPI-4.1, 20.1: the standard has no such", "internal/a/a.go:3: MPI-4.1, 3.12: the",
			"internal/a/a.go:5: IMPI ch. 3, Reduce: the",
		}},
	},
	"machine-paths": {
		{"good", one("a.md", "see /etc/hosts, /tmp, /dev/urandom, docs/work/plan, a/home/x, https://x.org/home/y, $HOME/work"), nil},
		{"a home", one("docs/a.md", "text\nrun `x` in \"/"+"home/ann/impi\""), []string{"docs/a.md:2: a path of somebody's machine"}},
		{"a checkout", one(".ci/run", "cd /"+"work/x"), []string{".ci/run:1"}},
		{"in testdata", one("a/testdata/x.txt", "at /"+"root/x.go:1"), []string{"a/testdata/x.txt:1"}},
	},
}

func TestEachRuleFindsWhatItIsFor(t *testing.T) {
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			good, bad := 0, 0
			for _, e := range examples[rule.Name] {
				if e.want == nil {
					good++
				} else {
					bad++
				}
				t.Run(e.name, func(t *testing.T) { e.check(t, rule) })
			}
			if good == 0 || bad == 0 {
				t.Errorf("%d good and %d bad examples", good, bad)
			}
		})
	}
}

func (e example) check(t *testing.T, rule Rule) {
	var got []string
	for _, p := range Sorted(rule.Check(read(t, e.files))) {
		got = append(got, p.String())
	}
	if !slices.EqualFunc(got, e.want, strings.Contains) {
		t.Errorf("found %q, want %q", got, e.want)
	}
}

// lines is a function of n statements and two braces.
func lines(name string, n int) string {
	return "func " + name + "() {\n" + strings.Repeat("\tf()\n", n) + "}\n"
}

// methods is n methods of a receiver.
func methods(receiver string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "func (x %s) m%d() {}\n", receiver, i)
	}
	return b.String()
}

// files is a package of n files.
func files(dir string, n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("%s/f%d.go", dir, i)] = "package " + dir
	}
	return m
}
