#!/bin/sh
# create or destroy a virtual machine of libvirt. MACHINE_IMAGE is the path of a disk image with the platform installed as a service.
set -eu
for program in virsh virt-install cloud-localds; do
  command -v "$program" > /dev/null || { echo "$program is not on PATH" >&2; exit 1; }
done
home="/var/lib/libvirt/images/platform-$MACHINE_NAME"
case "$1" in
  create)
    umask 077
    mkdir -p "$home"
    {
      echo '#cloud-config'
      echo 'write_files:'
      echo '  - { path: /etc/platform/invitation.json, permissions: "0600", encoding: b64, content: '"$(printf '%s' "$MACHINE_JOIN" | base64 -w0)"' }'
      echo '  - { path: /etc/platform/environment, permissions: "0600", encoding: b64, content: '"$(printf '%s\nPLATFORM_CAPTAIN_IP=%s\n' "$MACHINE_ENV" "$MACHINE_IP" | base64 -w0)"' }'
    } > "$home/user-data"
    cloud-localds "$home/seed.img" "$home/user-data"
    rm "$home/user-data"
    cp --reflink=auto "$MACHINE_IMAGE" "$home/disk.qcow2"
    virt-install --name "$MACHINE_NAME" --memory 4096 --vcpus 2 --import --noautoconsole --osinfo detect=on,require=off \
      --disk "$home/disk.qcow2" --disk "$home/seed.img,device=cdrom" > /dev/null
    ;;
  destroy)
    virsh destroy "$MACHINE_NAME" > /dev/null 2>&1 || true
    virsh undefine "$MACHINE_NAME" > /dev/null 2>&1 || true
    rm -rf "$home"
    ;;
esac
