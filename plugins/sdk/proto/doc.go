// Package proto is the protocol between a node and its transport plugins: the gRPC service,
// the constants of the handshake, and the conversion between messages and the types of
// package transports. docs/plugin-protocol.md describes it completely, for plugins in other
// languages.
package proto

//go:generate sh -c "mkdir -p ../../../bin/tools && go build -C ../../.. -o bin/tools google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc && protoc -Iimpi/transport/v1=. --plugin=../../../bin/tools/protoc-gen-go --plugin=../../../bin/tools/protoc-gen-go-grpc --go_out=. --go_opt=module=github.com/openimpi/impi/plugins/sdk/proto --go-grpc_out=. --go-grpc_opt=module=github.com/openimpi/impi/plugins/sdk/proto impi/transport/v1/transport.proto"
