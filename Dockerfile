# docker build .                    the server
# docker build --target traffic .   the traffic generator of docker-compose.yml
FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ENV CGO_ENABLED=0
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -ldflags="-s -w" -o /out/ ./cmd/oauth-server
# The directory of the embedded store, writable for the user below.
RUN install -d -o 65532 -g 65532 /out/data

FROM build AS build-traffic
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go -C lab build -trimpath -ldflags="-s -w" -o /out/ ./cmd/oauth-traffic

# The traffic generator of docker-compose.yml; not for production.
FROM scratch AS traffic
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build-traffic /out/oauth-traffic /oauth-traffic
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENTRYPOINT ["/oauth-traffic"]

# The server: one static binary, the CA certificates, and an unprivileged user.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/oauth-server /oauth-server
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
# Clients use 9096. The admin listener, 9097, is for the internal network only.
EXPOSE 9096
# Without a MongoDB, the embedded store is in the working directory.
WORKDIR /data
VOLUME /data
ENV OAUTH_LISTEN=0.0.0.0:9096 OAUTH_LOG_FORMAT=json
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["/oauth-server", "health"]
ENTRYPOINT ["/oauth-server"]
CMD ["serve"]
