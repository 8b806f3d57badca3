# An image of impi-node, its plugins, impiexec and impi-server, and of nothing else. Programs are added
# to it, or it is the source of these files for images of programs that need more: docs/clusters.md.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY plugins/sdk/go.mod plugins/sdk/go.sum plugins/sdk/
RUN go mod download
COPY cmd cmd
COPY config config
COPY core core
COPY internal internal
COPY plugins plugins
COPY transports transports
ENV CGO_ENABLED=0
RUN mkdir -p /out/usr/local/bin /out/tmp && chmod 1777 /out/tmp
RUN go build -trimpath -buildvcs=false -ldflags=-s -o /out/usr/local/bin/ ./cmd/impi-node ./cmd/impiexec ./cmd/impi-server ./cmd/impi-transport-quic ./cmd/impi-transport-shm ./cmd/impi-transport-tcp ./cmd/impi-transport-unix

FROM scratch
COPY --from=build /out/ /
ENV PATH=/usr/local/bin TMPDIR=/tmp
USER 65532:65532
ENTRYPOINT ["impi-node"]
