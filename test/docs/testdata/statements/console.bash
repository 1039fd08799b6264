serve PAGE console
HOST=$(cut -d/ -f1-3 <<<"$PAGE")

#> # the reference bridge over the mock Drupal, to look around
#>
#> It prints an address with a token
#>
#> the callers, and the tools as the one whom you choose sees them; a tool that others see and this one does not is struck out |
#>
#> The mock's accounts have the password NAME`-pass`.
gets 200 "$PAGE"
says '>agent</a>' '>discoverer</a>'
gets 200 "$PAGE?caller=discoverer"
says '<s>' 'access\.fixture'

#> A request needs the token of the address and its host, and what changes something comes from the page
#> itself, so that neither another page in your browser nor a name that points to this machine reaches it.
gets 403 "$HOST/"
gets 403 "$HOST/another-token/"
gets 403 -H 'Host: evil.example' "$PAGE"
for from in https://evil.example null; do
	gets 403 -H "Origin: $from" -d 'kind=status' "${PAGE}site?caller=admin"
done
gets 403 -H 'Sec-Fetch-Site: cross-site' -d 'kind=status' "${PAGE}site?caller=admin"

#> **Faults.** Arm [a fault of the mock](mock.md), such as a status or a delay, for all calls or for those of a method.
curl -s -o said -L -H "Origin: $HOST" --data-urlencode kind=status --data-urlencode 'only=content.*' --data-urlencode 'more={"status": 503}' "${PAGE}site?caller=agent"
gets 200 "$PAGE?caller=agent"
says 'Faults: 1 armed'

#> Credentials stay in the console
not grep -q 'agent-pass' <(curl -s "$PAGE?caller=agent&tool=whoami")
