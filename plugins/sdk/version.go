package sdk

// Version is the version of the packages that plugins are written with, by the rules of semver.org:
// what may change in which version is in docs/plugin-howto.md, and what did in CHANGELOG.md.
const Version = "1.2.0"

// sdkName identifies this library to the node.
const sdkName = "impi-go-sdk/" + Version
