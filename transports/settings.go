package transports

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
