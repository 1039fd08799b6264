# bridgecheck in a container: static, without root, nothing in it but the binary, its licences and the certificates it trusts.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /bridgecheck ./cmd/bridgecheck

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/LICENSE /src/THIRD_PARTY_NOTICES /
COPY --from=build /bridgecheck /bridgecheck
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/bridgecheck"]
