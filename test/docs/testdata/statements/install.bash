#> The program writes the last two, too:
exits 0 bridgecheck man man1
test -s man1/bridgecheck.1
for shell in bash zsh fish powershell; do
	exits 0 bridgecheck completion $shell
	says bridgecheck
done
exits 0 bridgecheck version
says '^bridgecheck '

#> # zsh, fish and powershell too; clauses, areas and capabilities are completed
exits 0 bridgecheck __complete run --only describe/missing
says '^describe/missing-name'
exits 0 bridgecheck __complete run --capabilities naming
says '^naming-'

#> a mock on port 8080 accepts connections, or `/healthz` of a bridge on port 8081 responds.
#> At other ports, give `bridgecheck healthy` their addresses
grep -q 'HEALTHCHECK.*healthy.*127.0.0.1:8080.*127.0.0.1:8081/healthz' <(tr -d '\n' <"$ROOT/packaging/Dockerfile")
serve SITE mock
serve BRIDGE bridge --drupal $SITE
exits 0 bridgecheck healthy ${SITE#http://}
exits 0 bridgecheck healthy $BRIDGE/healthz
exits 1 bridgecheck healthy 127.0.0.1:1

