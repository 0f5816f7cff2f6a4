"""A clean Debian in a folder, with systemd as its first process: namespaces of its own for processes, mounts, network and
names, so that what a package does stays in there."""
import os
import pathlib
import shutil
import subprocess
import time

BOOT = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
mkdir "$1/dev/pts" "$1/dev/shm"
for device in null zero full random urandom tty; do
  touch "$1/dev/$device"
  mount --bind "/dev/$device" "$1/dev/$device"
done
ln -s /proc/self/fd "$1/dev/fd"
touch "$1/dev/console"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
mount --make-rshared "$1"  # as every systemd expects it: mounts made for a service reach it
exec chroot "$1" env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=null
"""
APT = ["apt-get", "-q", "-y", "--no-install-recommends"]


def lacking() -> str:
    """What is missing on this machine for a clean root; empty: nothing."""
    if os.geteuid() != 0:
        return "this must be run as root"
    if not shutil.which("debootstrap"):
        return "there is no debootstrap"
    if not any(line.split()[2] == "cgroup2" for line in open("/proc/self/mounts")):
        return "there are no control groups of version 2"
    return "" if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"]).returncode == 0 else "no namespaces"


class clean_root:
    """Between `with` and its end; `names` are packages that are there from the start."""

    def __init__(self, folder: pathlib.Path, names: list):
        self.folder = folder
        subprocess.run(["debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,curl", "bookworm",
                        folder], check=True, stdout=subprocess.DEVNULL)
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in ([*APT, "update"], [*APT, "install", *names]):
            subprocess.run(["chroot", folder, *command], check=True, env=environment, stdout=subprocess.DEVNULL,
                           stdin=subprocess.DEVNULL)

    def __enter__(self):
        # A control group of its own, so that its systemd finds itself at the top of them.
        mounted = next(line.split()[1] for line in open("/proc/self/mounts") if line.split()[2] == "cgroup2")
        self.group = pathlib.Path(mounted) / f"skein-package-test-{os.getpid()}"
        self.group.mkdir()

        def enter_group():
            (self.group / "cgroup.procs").write_text(str(os.getpid()))

        self.outer = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net",
                                       "--cgroup", "sh", "-c", BOOT, "sh", str(self.folder)], preexec_fn=enter_group,
                                      stdin=subprocess.DEVNULL)
        self.first = self._first_process()
        self.wait_for(lambda: self.ask("systemctl", "is-system-running", check=False) in ("running\n", "degraded\n"))
        self.ask("sh", "-c", "ip link set lo up")
        return self

    def __exit__(self, *_):
        self.outer.kill()
        self.outer.wait()
        for _ in range(100):  # until the kernel has cleared it
            try:
                for inner in sorted(self.group.rglob("*/"), reverse=True):
                    inner.rmdir()
                self.group.rmdir()
                return
            except OSError:
                time.sleep(0.1)

    def _first_process(self) -> int:
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        self.wait_for(lambda: children.read_text().split())
        child = int(children.read_text().split()[0])
        self.wait_for(lambda: os.readlink(f"/proc/{child}/exe").endswith("/systemd"))
        return child

    def ask(self, *command, check=True) -> str:
        """Runs a command in there; what it printed."""
        inside = ["nsenter", "--target", str(self.first), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root",
                  "--wd", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
        ended = subprocess.run([*inside, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if check and ended.returncode != 0:
            raise AssertionError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    @staticmethod
    def wait_for(happened, limit_s=120):
        end = time.monotonic() + limit_s
        while not happened():
            if time.monotonic() > end:
                raise AssertionError("timed out")
            time.sleep(0.1)
