#!/usr/bin/env python3
"""Shows the life of the packages on a clean Debian with a systemd of its own: installed, the service runs as its user in its
sandbox and answers; a wrong setting ends it with its name in the log; a session and a changed setting outlive an upgrade,
over which clients of skein.socket wait; removing leaves settings and sessions, purging nothing.

    life_test.py CPACK BUILD        ends with 77 where this machine cannot have such a root
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import packages
from clean_root import clean_root, lacking

URL = "http://127.0.0.1:8000"


def expect(truth: bool, what: str):
    if not truth:
        raise AssertionError(what)


def say(root, text: str, session: str) -> dict:
    body = json.dumps({"session_id": session, "max_tokens": 8, "messages": [{"role": "user", "content": text}]})
    return json.loads(root.ask("curl", "-sS", "--max-time", "120", f"{URL}/v1/chat/completions", "-d", body))


def state(root, unit="skein.service") -> str:
    return root.ask("systemctl", "is-active", unit, check=False).strip()


def main_process(root) -> str:
    return root.ask("systemctl", "show", "skein.service", "-p", "MainPID").strip()


def install(root, package: pathlib.Path):
    shutil.copy(package, root.folder / "root")
    root.ask("dpkg", "--force-confold", "-i", f"/root/{package.name}")


def is_installed_and_serves(root, package):
    install(root, package)
    root.wait_for(lambda: state(root) == "active")
    expect(root.ask("systemctl", "is-enabled", "skein.service") == "enabled\n", "the service is not enabled")
    user = root.ask("sh", "-c", "ps -o user= -p $(systemctl show skein -P MainPID)" if (root.folder / "bin/ps").exists()
                    else "stat -c %U /proc/$(systemctl show skein -P MainPID)").strip()
    expect(user == "skein", f"the service runs as {user}")
    rights = root.ask("stat", "-c", "%a %U %G", "/etc/skein", "/var/lib/skein").split("\n")
    expect(rights[:2] == ["750 root skein", "700 skein skein"], f"rights are {rights}")
    exposure = root.ask("systemd-analyze", "security", "--no-pager", "skein.service")
    expect(float(re.search(r"exposure level.*: ([\d.]+)", exposure)[1]) <= 2.0, exposure)
    answer = say(root, "I am Anna.", "anna")
    expect(answer["session"]["version"] == 1 and answer["session"]["durable"] == "process", f"{answer}")


def takes_keys_and_settings(root):
    """As docs/install.md has it: a key is made, a setting changed, and both count after a reload."""
    root.ask("sh", "-c", "umask 077; skein keys new alice --keys-file /etc/skein/api-keys > /root/secret")
    root.ask("sed", "-i", "s/^n_max = .*/n_max = 3/", "/etc/skein/skein.toml")
    root.ask("systemctl", "restart", "skein.service")
    refused = root.ask("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"{URL}/v1/models")
    expect(refused == "401", f"without a key the answer is {refused}")
    with_key = root.ask("sh", "-c", f"curl -sS {URL}/v1/models -H \"Authorization: Bearer $(cat /root/secret)\"")
    expect("skein-demo" in with_key, with_key)
    root.ask("rm", "/etc/skein/api-keys")
    root.ask("systemctl", "restart", "skein.service")


def a_wrong_setting_ends_it_once(root):
    """No restart, which would fail again and use up the start limit; it starts when the setting is right."""
    root.ask("sh", "-c", "mkdir -p /etc/skein/conf.d && printf '[model]\\npath = \"/srv/none.pth\"\\n'"
             " > /etc/skein/conf.d/local.toml")
    root.ask("systemctl", "restart", "skein.service", check=False)
    expect(state(root) == "failed", f"with a wrong setting the service is {state(root)}")
    log = root.ask("journalctl", "-u", "skein.service", "-p", "err", "-o", "cat", "-n", "1")
    expect("conf.d/local.toml:2: model.path: /srv/none.pth: cannot open" in log, f"the log does not name the setting: {log}")
    root.ask("rm", "-r", "/etc/skein/conf.d")
    root.ask("systemctl", "start", "skein.service")


def is_upgraded_under_clients(root, package):
    """The socket stays over the upgrade; the session goes on; the changed setting is not overwritten."""
    root.ask("systemctl", "stop", "skein.service")
    root.ask("systemctl", "enable", "--now", "skein.socket")
    root.ask("systemctl", "start", "skein.service")
    before = main_process(root)
    install(root, package)
    answer = say(root, "Who am I?", "anna")
    expect(answer["session"]["version"] == 2, f"the session did not go on: {answer}")
    expect(main_process(root) != before, "the service did not start again")
    expect(state(root, "skein.socket") == "active", "the socket did not outlive the upgrade")
    expect("n_max = 3" in root.ask("cat", "/etc/skein/skein.toml"), "the changed setting was overwritten")


def a_back_end_starts_it_again(root):
    """What lies in /usr/lib/skein is looked for at start."""
    before = main_process(root)
    root.ask("sh", "-c", "mkdir -p /root/fake/DEBIAN /root/fake/usr/lib/skein && touch /root/fake/usr/lib/skein/nothing &&"
             " printf 'Package: fake\\nVersion: 1\\nArchitecture: all\\nMaintainer: x\\nDescription: x\\n'"
             " > /root/fake/DEBIAN/control && dpkg-deb -b /root/fake /root/fake.deb && dpkg -i /root/fake.deb")
    with_it = main_process(root)
    expect(with_it != before, "a new back end went unnoticed")
    root.wait_for(lambda: state(root) == "active")
    root.ask("dpkg", "--purge", "fake")
    expect(main_process(root) != with_it, "it went unnoticed that a back end is gone")
    root.wait_for(lambda: state(root) == "active")


def is_removed_and_purged(root):
    root.ask("dpkg", "--remove", "skein")
    expect(state(root) == "inactive" and state(root, "skein.socket") == "inactive", "it still runs")
    expect(root.ask("ls", "/etc/skein", "/var/lib/skein").count("s") > 2, "settings and sessions went with it")
    root.ask("sh", "-c", "echo '# a key' > /etc/skein/api-keys")
    root.ask("dpkg", "--purge", "skein")
    left = root.ask("sh", "-c", "find / -xdev -path /proc -prune -o -name '*skein*' ! -path '/root/*' -print")
    expect(not left, f"purging leaves {left}")


def main(arguments: list) -> int:
    if why := lacking():
        print(f"skipped: {why}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        first = packages.make(*arguments, folder / "first")["skein"]
        second = packages.make(*arguments, folder / "second", packages.field(first, "Version") + "+next")["skein"]
        needed = [each.split()[0] for each in packages.field(first, "Depends").split(", ")]
        with clean_root(folder / "root", [*needed, "iproute2"]) as root:
            is_installed_and_serves(root, first)
            takes_keys_and_settings(root)
            a_wrong_setting_ends_it_once(root)
            is_upgraded_under_clients(root, second)
            a_back_end_starts_it_again(root)
            is_removed_and_purged(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
