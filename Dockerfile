# syntax=docker/dockerfile:1
# The manager, static, as a non-root user in an image that holds nothing else but public authorities. Built by
# `make docker-build`; the project's CI has no container engine, so this file is not exercised there.
FROM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api/ api/
COPY cmd/ cmd/
COPY internal/ internal/
COPY policy/ policy/
COPY webhook/ webhook/
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w" -o /out/manager ./cmd/manager

# Its ServiceAccount brings the API server's authority. Public ones are for endpoints of notifications alone.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
