package transports

// SilenceName is the name of a setting, a number of seconds, that a transport has if it can
// notice a silent peer. The setting gets the value of limits { silence } in the job file,
// unless the transport's own block sets it. A transport without it notices silent peers in
// its own way, or not at all.
const SilenceName = "silence"

// Defaults returns the settings of an empty config block: every setting of the schema that
// has a default, with that value.
func Defaults(schema []Setting) map[string]any {
	settings := make(map[string]any, len(schema))
	for _, s := range schema {
		if s.Default != nil {
			settings[s.Name] = s.Default
		}
	}
	return settings
}
