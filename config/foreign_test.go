package config

import "testing"

// TestDataTo checks which setting decides the representation of user data.
func TestDataTo(t *testing.T) {
	for _, c := range []struct {
		name, site, routes string
		want               Representation
	}{
		{"the standard", ``, ``, External32},
		{"the implementation", `implementation = "lam-7.1"`, ``, NativeX86},
		{"the site's word before its implementation's habit", `implementation = "lam-7.1" representation = "native-be"`, ``, NativeBE},
		{"any route", ``, `route "*" { representation = "native-le" }`, NativeLE},
		{"the implementation before any route", `implementation = "lam-7.1"`, `route "*" { representation = "external32" }`, NativeX86},
		{"the route with its name before all", `implementation = "lam-7.1" representation = "native-be"`, `route "lam" { representation = "external32" }`, External32},
		{"a route with its name that says nothing", `implementation = "lam-7.1"`, `route "lam" { resume = true } route "*" { representation = "native-be" }`, NativeX86},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := `job { embedded_server {}  auth "none" {} }
program { command = ["bin/prog"] }
site "a" { client = 0  host { address = "127.0.0.1"  procs = 1 } }
site "lam" { client = 1  foreign = true ` + c.site + ` }
` + c.routes
			j, diags := loadText(t, text)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			a, _ := j.Site("a")
			lam, _ := j.Site("lam")
			if got := a.DataTo(lam); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestHabits checks in which context each implementation's Reduce communicates.
func TestHabits(t *testing.T) {
	if Standard.ReduceOnPointToPoint() || !LAM71.ReduceOnPointToPoint() {
		t.Error("Reduce of LAM is in the point-to-point context, and of nobody else")
	}
}
