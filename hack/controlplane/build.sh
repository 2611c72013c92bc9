#!/usr/bin/env bash
# Builds the dev control plane (etcd, kube-apiserver, kube-controller-manager, kubectl) from its Go modules
# into the user's cache folder, once per versions and recipe, and points bin/k8s of the repository there.
#
# A KUBEBUILDER_ASSETS that already holds the four binaries is used as it is and nothing is built.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
binaries="etcd kube-apiserver kube-controller-manager kubectl"

complete() { # folder -> does it hold every binary?
  local b
  for b in $binaries; do [ -x "$1/$b" ] || return 1; done
}

point() { # folder -> bin/k8s
  mkdir -p "$root/bin"
  ln -sfn "$1" "$root/bin/k8s"
}

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  if complete "$KUBEBUILDER_ASSETS"; then
    assets=$(cd "$KUBEBUILDER_ASSETS" && pwd -P)
    [ "$assets" = "$(cd "$root/bin/k8s" 2>/dev/null && pwd -P)" ] || point "$assets"
    exit 0
  fi
  echo "controlplane: KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS does not hold all of: $binaries; building them instead" >&2
fi

cd "$here"
export GOFLAGS="-mod=readonly -trimpath" CGO_ENABLED=0 GOWORK=off
k8s=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
etcd=$(go list -m -f '{{.Version}}' go.etcd.io/etcd/server/v3)
recipe=$(cat go.mod go.sum build.sh | git hash-object --stdin | cut -c1-12)
cache=${STEPBEYOND_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stepbeyond}/controlplane
target="$cache/kubernetes-$k8s-etcd-$etcd-$(go env GOOS)-$(go env GOARCH)-$recipe"

if complete "$target"; then
  point "$target"
  exit 0
fi

echo "controlplane: building Kubernetes $k8s and etcd $etcd into $target"
echo "controlplane: this happens once per version; about 7 minutes on two cores with an empty build cache"
mkdir -p "$cache"
work=$(mktemp -d "$cache/.building-XXXXXX")
trap 'rm -rf "$work"' EXIT

minor=${k8s#v1.}; minor=${minor%%.*}
version="-X k8s.io/component-base/version.gitVersion=$k8s -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor"
version="$version -X k8s.io/client-go/pkg/version.gitVersion=$k8s"

build() { # name, package
  local start=$SECONDS
  printf 'controlplane: %-24s' "$1"
  go build -ldflags "-s -w $version" -o "$work/$1" "$2"
  echo "$((SECONDS - start)) s"
}
build etcd go.etcd.io/etcd/server/v3
build kubectl k8s.io/kubernetes/cmd/kubectl
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager

# Two builds at once each make their own folder; the first rename wins and the other build is thrown away.
mv -T "$work" "$target" 2>/dev/null || mv "$work" "$target" 2>/dev/null || complete "$target"
point "$target"
