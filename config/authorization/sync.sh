#!/bin/sh
# Writes the files of the Secret stepbeyond-control-plane into a directory of this host: sync.sh DIRECTORY
#
# Run it on every host of the control plane, from a timer, with a kubeconfig that may get this one Secret (role.yaml).
# Each file is written whole or not at all, the configuration last, because it names the kubeconfig. Files stay when the
# API server cannot be asked.
set -eu
umask 077
directory=$1
mkdir -p "$directory/static-manifests"
staged=$(mktemp -d "$directory/.sync.XXXXXX")
trap 'rm -rf "$staged"' EXIT

kubectl -n stepbeyond-system get secret stepbeyond-control-plane \
	-o 'go-template={{range $name, $text := .data}}{{$name}} {{$text}}{{"\n"}}{{end}}' >"$staged/secret"

place() { # NAME TARGET
	text=$(sed -n "s/^$1 //p" "$staged/secret")
	[ -n "$text" ] || return 0
	printf %s "$text" | base64 -d >"$staged/file"
	cmp -s "$staged/file" "$2" || mv "$staged/file" "$2"
}

for name in $(sed -n 's/^\(webhook-[0-9a-f]*\.kubeconfig\) .*/\1/p' "$staged/secret"); do
	place "$name" "$directory/$name"
done
place static-manifests.yaml "$directory/static-manifests/static-manifests.yaml"
place authorization-configuration.yaml "$directory/authorization-configuration.yaml"

# A kubeconfig that is not named any more holds a path that is not served any more. One hour lets the API server reload.
for old in $(find "$directory" -maxdepth 1 -name 'webhook-*.kubeconfig' -mmin +60); do
	grep -q "^$(basename "$old") " "$staged/secret" || rm -f "$old"
done
