// Package proto has what a node and its transport plugins say to each other: the
// gRPC service, the constants of the handshake, and the way between the wire's
// messages and the types of package transports. docs/plugin-protocol.md describes
// the whole for those who write a plugin in another language.
package proto

//go:generate sh -c "mkdir -p ../../bin/tools && go build -o ../../bin/tools google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc && protoc -Iimpi/transport/v1=. --plugin=../../bin/tools/protoc-gen-go --plugin=../../bin/tools/protoc-gen-go-grpc --go_out=. --go_opt=module=github.com/openimpi/impi/plugins/proto --go-grpc_out=. --go-grpc_opt=module=github.com/openimpi/impi/plugins/proto impi/transport/v1/transport.proto"
