#!/usr/bin/env bash
# Makes the images of docker/ without a container engine and without a registry of images: the base comes from Debian's
# packages (debootstrap), and buildah, which needs no daemon, builds the rest. Needs root, `apt-get install buildah
# debootstrap`, and 25 GB of disk for all three, since every layer is a copy.
#     scripts/build_images.sh [--store FOLDER] [--wheels FOLDER] [cpu] [cuda] [label-studio]
# --store   where the images are kept (default: local/images); remove the folder when they are of no more use.
# --wheels  a folder with PyTorch's CPU build of the version in requirements.txt, where no package index offers it; or
#           set TORCH_INDEX_URL. The cpu image needs one of the two.
# The machine's own settings of pip (/etc/pip.conf) and its certificates hold inside of the build, and do not stay.
set -euo pipefail
cd "$(dirname "$0")/.."

SUITE=bookworm
BASE=docker.io/library/python:3.11-slim-$SUITE  # the name that the Dockerfiles ask for
CERTIFICATES=/etc/ssl/certs/ca-certificates.crt
store=local/images wheels="" images=()

stop() { echo "$1" >&2; exit "${2:-1}"; }

while [ $# -gt 0 ]; do
    case "$1" in
        --store | --wheels)
            [ $# -gt 1 ] || stop "$1 takes a folder." 2
            if [ "$1" = --store ]; then store=$2; else wheels=$(realpath -e "$2"); fi
            shift 2 ;;
        cpu | cuda | label-studio) images+=("$1"); shift ;;
        *) stop "usage: scripts/build_images.sh [--store FOLDER] [--wheels FOLDER] [cpu] [cuda] [label-studio]" 2 ;;
    esac
done
[ ${#images[@]} -gt 0 ] || images=(cpu cuda label-studio)
[ "$(id -u)" -eq 0 ] || stop "This needs root: debootstrap makes a file system, and buildah changes into it."
for program in buildah debootstrap; do
    command -v "$program" >/dev/null || stop "$program is missing: apt-get install buildah debootstrap"
done
mkdir -p "$store"
store=$(realpath "$store")

pot() { buildah --storage-driver vfs --root "$store/containers" --runroot "$store/run" "$@"; }

base() {
    pot inspect --type image "$BASE" >/dev/null 2>&1 && return
    local root=$store/root mirror container
    mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/*.sources 2>/dev/null)
    rm -rf "$root"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$SUITE" "$root" \
        ${mirror:+"$mirror"} >"$store/debootstrap.log" || stop "debootstrap failed: see $store/debootstrap.log"
    ln -s python3 "$root/usr/bin/python"
    # What a slim base leaves out: package lists, downloads, manuals, translations.
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb \
        "$root"/usr/share/{doc,man,info,locale}/* "$root"/var/log/*.log
    container=$(pot from scratch)
    pot add --quiet "$container" "$root" / >/dev/null
    pot commit --quiet "$container" "$BASE" >/dev/null
    pot rm "$container" >/dev/null
    rm -rf "$root"
}

build() {  # name of the image, Dockerfile, further arguments of buildah
    local name=$1 file=$2 settings=()
    shift 2
    [ ! -f /etc/pip.conf ] || settings+=(--volume /etc/pip.conf:/etc/pip.conf:ro)
    [ ! -f "$CERTIFICATES" ] || settings+=(--volume "$CERTIFICATES:$CERTIFICATES:ro")
    echo "Building $name"
    pot bud --quiet --isolation chroot --network host --pull-never --format docker "${settings[@]}" "$@" \
        -f "$file" -t "$name" . >/dev/null || stop "$name could not be built."
    pot images --format '{{.Name}} {{.Size}}' | sed -n "s#^localhost/$name #  $name: #p"
}

base
for image in "${images[@]}"; do
    case "$image" in
        cpu)
            build polyvox-cpu docker/Dockerfile --build-arg DEVICE=cpu --build-arg "TORCH_INDEX_URL=${TORCH_INDEX_URL:-}" \
                ${wheels:+--volume "$wheels:/wheels:ro" --build-arg PIP_FIND_LINKS=/wheels} ;;
        cuda) build polyvox-cuda docker/Dockerfile --build-arg DEVICE=cuda ;;
        label-studio) build polyvox-label-studio docker/label-studio.Dockerfile ;;
    esac
done
