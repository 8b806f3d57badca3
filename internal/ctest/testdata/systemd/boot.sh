#!/bin/bash
# Starts systemd as the first process of a machine of its own, without a network: boot.sh DIR, by
# unshare with namespaces of mounts, processes, hosts' names, networks, IPC and control groups. It sees
# this machine's files, and what it writes is gone at its end. It runs DIR/operate.sh as a service,
# with DIR as /trial. Status 77 means that this cannot be done here.
trap 'exit 77' ERR
set -E
dir=$1 root=/run/impi-trial-root memory=/run/impi-trial-memory
mount --make-rprivate /
mkdir -p $root $memory
mount -t tmpfs tmpfs $memory
mkdir $memory/upper $memory/work
mount -t overlay -o lowerdir=/,upperdir=$memory/upper,workdir=$memory/work overlay $root

mount -t proc proc $root/proc
mount --bind $root/proc/sys $root/proc/sys
mount -o remount,bind,ro $root/proc/sys
mount -t sysfs -o ro sysfs $root/sys
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
else
  mount -t tmpfs tmpfs $root/sys/fs/cgroup
  mkdir $root/sys/fs/cgroup/systemd $root/sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup $root/sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 $root/sys/fs/cgroup/unified
fi
mount -t tmpfs -o mode=755 tmpfs $root/dev
mkdir $root/dev/{pts,shm,mqueue,hugepages}
for name in null zero full random urandom tty; do
  touch $root/dev/$name
  mount --bind /dev/$name $root/dev/$name
done
ln -s pts/ptmx $root/dev/ptmx
ln -s /proc/self/fd $root/dev/fd
mount -t devpts -o newinstance,ptmxmode=0666 devpts $root/dev/pts
mount -t tmpfs -o mode=1777 tmpfs $root/dev/shm
for name in run tmp; do mount -t tmpfs -o mode=1777 tmpfs $root/$name; done
chmod 755 $root/run
ip link set lo up

# Of this machine's units none starts but those that write the journal and make /run.
units=$root/etc/systemd/system
mount -t tmpfs -o mode=755 tmpfs $units
mount -t tmpfs tmpfs $root/usr/lib/systemd/system-generators
: >$root/etc/fstab
for path in $root/usr/lib/systemd/system/*.target.wants/*; do
  case ${path##*/} in
  systemd-journald* | systemd-tmpfiles-setup.service) ;;
  *) ln -sf /dev/null $units/${path##*/} ;;
  esac
done
cat >$units/trial.service <<UNIT
[Unit]
Requires=basic.target
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash -c 'bash /trial/operate.sh >/trial/out 2>&1; systemctl poweroff --force --force'
UNIT
mkdir $root/trial
mount --bind "$dir" $root/trial

cd $root
mkdir old
pivot_root . old
exec chroot . /bin/bash -c 'umount -l /old && mount --make-rshared / &&
  exec env -i container=docker PATH=/usr/sbin:/usr/bin:/sbin:/bin /usr/lib/systemd/systemd --system --unit=trial.service --log-target=console --show-status=0'
