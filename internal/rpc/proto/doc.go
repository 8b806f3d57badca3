// Package proto has the gRPC messages between our own processes: nodes and the name
// service, operators' commands and nodes. The service's name contains the version, so
// another version is refused as an unknown service.
package proto

//go:generate sh -c "mkdir -p ../../../bin/tools && go build -o ../../../bin/tools google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc && protoc -I. --plugin=../../../bin/tools/protoc-gen-go --plugin=../../../bin/tools/protoc-gen-go-grpc --go_out=. --go_opt=module=github.com/openimpi/impi/internal/rpc/proto --go-grpc_out=. --go-grpc_opt=module=github.com/openimpi/impi/internal/rpc/proto names.proto control.proto cluster.proto job.proto"
