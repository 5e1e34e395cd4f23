#!/bin/sh
# create or destroy a container that is one machine. Secrets come in the environment and go into files of mode 0600 below /run, never into arguments.
set -eu
engine="$(command -v podman || command -v docker || true)"
[ -n "$engine" ] || { echo "neither podman nor docker is on PATH" >&2; exit 1; }
home="${XDG_RUNTIME_DIR:-/run}/platform-machines/$MACHINE_NAME"
case "$1" in
  create)
    umask 077
    mkdir -p "$home"
    printf '%s' "$MACHINE_ENV" > "$home/env"
    printf '%s' "$MACHINE_JOIN" > "$home/invitation.json"
    "$engine" run --detach --name "$MACHINE_NAME" --network host --env-file "$home/env" \
      --env "PLATFORM_CAPTAIN_IP=$MACHINE_IP" --env PLATFORM_CAPTAIN_TELEMETRY=cgroup \
      --volume "$home/invitation.json:/run/invitation.json:ro" "$MACHINE_IMAGE" run --join /run/invitation.json > /dev/null
    ;;
  destroy)
    "$engine" rm --force "$MACHINE_NAME" > /dev/null
    rm -rf "$home"
    ;;
esac
