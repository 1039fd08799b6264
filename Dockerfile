# bridgecheck in containers. The first is for mock, bridge and run --url: static, without root, nothing in it but the
# binary, its licences and the certificates it trusts. The second has Node and PHP beside it, for run --exec.
#   docker build -t bridgecheck .
#   docker build -t bridgecheck-tester --target tester .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /bridgecheck ./cmd/bridgecheck

FROM debian:trixie-slim AS tester
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates nodejs php-cli php-curl \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/LICENSE /src/THIRD_PARTY_NOTICES /
COPY --from=build /bridgecheck /usr/local/bin/bridgecheck
USER 65532:65532
WORKDIR /work
HEALTHCHECK NONE
ENTRYPOINT ["bridgecheck"]

FROM scratch AS runtime
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/LICENSE /src/THIRD_PARTY_NOTICES /
COPY --from=build /bridgecheck /bridgecheck
USER 65532:65532
WORKDIR /work
# A mock on its port, or a bridge on its own: one of them is enough.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/bridgecheck", "healthy", "127.0.0.1:8080", "http://127.0.0.1:8081/healthz"]
ENTRYPOINT ["/bridgecheck"]
