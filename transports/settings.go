package transports

// SilenceName is the name of a setting, a number of seconds, that a transport has if it
// can notice that nothing is heard from a peer any more. It gets what the job file's
// limits { silence } says, unless the transport's own block says something else. A
// transport without it notices in its own way, or not at all.
const SilenceName = "silence"

// Defaults gives every setting of a schema that has a default that value: the
// settings of an empty config block.
func Defaults(schema []Setting) map[string]any {
	settings := make(map[string]any, len(schema))
	for _, s := range schema {
		if s.Default != nil {
			settings[s.Name] = s.Default
		}
	}
	return settings
}
