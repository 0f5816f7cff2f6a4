"""Podman and buildah with a storage of their own in a folder, in namespaces of their own for processes, mounts and, once the
images are built, for the network: no container, image or port of this machine is touched, and none outlives the test."""
import ctypes
import os
import pathlib
import resource
import shutil
import subprocess
import sys

NEW_NETWORK = 0x40000000
INSIDE = "SKEIN_CONTAINER_TEST_INSIDE"
SEPARATE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
TOOLS = ("buildah", "podman", "crun", "debootstrap")


class no_containers(Exception):
    """This machine cannot run containers; the text says why."""


def enter_namespaces():
    """Starts this program again, in them."""
    if os.geteuid() != 0:
        raise no_containers("this must be run as root")
    lacking = [tool for tool in TOOLS if not shutil.which(tool)]
    if lacking:
        raise no_containers(f"there is no {', '.join(lacking)}")
    if INSIDE in os.environ:
        return
    if subprocess.run([*SEPARATE, "true"]).returncode != 0:
        raise no_containers("the kernel refuses namespaces")
    os.environ[INSIDE] = "1"
    # The shell is process 1 there and reaps orphans.
    os.execvp(SEPARATE[0], [*SEPARATE, "sh", "-c", '"$@"; exit $?', "sh", sys.executable, *sys.argv])


def bridge_lacking() -> str:
    """What containers lack to reach each other by name; empty: nothing."""
    for tool in ("netavark", "aardvark-dns"):
        if not pathlib.Path("/usr/lib/podman", tool).exists():
            return tool
    return "" if shutil.which("iptables") else "iptables"


class engine:
    """Podman in a folder that must not exist yet."""

    def __init__(self, folder: pathlib.Path):
        for shared in ("/run/containers", "/run/libpod"):
            os.makedirs(shared, exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", shared], check=True)
        # crun refuses control groups of both versions at once.
        if os.path.ismount("/sys/fs/cgroup/unified"):
            subprocess.run(["umount", "/sys/fs/cgroup/unified"], check=True)
        folder.mkdir()
        self.folder = folder
        self.environment = os.environ | {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "BUILDAH_FORMAT": "docker",
                                         "CONTAINERS_CONF": str(folder / "containers.conf")}

    def configure(self, driver: str, groups: str):
        (self.folder / "storage.conf").write_text(
            f'[storage]\ndriver = "{driver}"\ngraphroot = "{self.folder}/{driver}"\nrunroot = "{self.folder}/run"\n')
        # Podman's defaults are higher than the limits of a process without CAP_SYS_RESOURCE.
        limits = ", ".join(f'"{name}={soft}:{hard}"' for name, (soft, hard) in (
            ("nofile", (1024, min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))), ("nproc", (1024, 1024))))
        (self.folder / "containers.conf").write_text(
            f'[containers]\ndefault_ulimits = [{limits}]\ncgroups = "{groups}"\n[engine]\ncgroup_manager = "cgroupfs"\n'
            f'events_logger = "file"\n[network]\nnetwork_backend = "netavark"\n'
            f'network_config_dir = "{self.folder}/networks"\n')

    def make_base(self):
        """The image localhost/base from debootstrap, and the settings with which a container of it runs here."""
        root = self.folder / "base"
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", root], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["chroot", root, "apt-get", "clean"], check=True)
        archive = self.folder / "base.tar"
        subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
        said = ""
        for driver in ("overlay", "vfs"):
            self.configure(driver, "enabled")
            if self.run("podman", "import", "-q", archive, "localhost/base", check=False).returncode != 0:
                continue
            for groups in ("enabled", "disabled"):
                self.configure(driver, groups)
                tried = self.run("podman", "run", "--rm", "--network", "none", "localhost/base", "true", check=False)
                if tried.returncode == 0:
                    print(f"containers run here for real: storage {driver}, control groups {groups}", flush=True)
                    return
                said = tried.stderr.strip()
        raise no_containers(f"the kernel refuses containers: {said}")

    def run(self, *command, check=True, cwd=None, limit_s=600) -> subprocess.CompletedProcess:
        ended = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=cwd,
                               timeout=limit_s)
        if check and ended.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))} exits with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended

    def build(self, containerfile: pathlib.Path, context: pathlib.Path, tag: str, *arguments):
        self.run("buildah", "bud", "--network", "host", "-f", containerfile, "-t", tag, *arguments, context)

    def leave_network(self):
        """From here on containers publish their ports in a network of this test alone."""
        if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK) != 0:
            raise no_containers(f"the kernel refuses a network namespace: {os.strerror(ctypes.get_errno())}")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    def end(self):
        if (self.folder / "containers.conf").exists():
            self.run("podman", "rm", "--all", "--force", "--time", "0", check=False)
            self.run("podman", "rmi", "--all", "--force", check=False)
