#!/usr/bin/env python3
"""Writes what is generated from the program's table of keys: docs/configuration.md, from `skein manual skein.toml.5`,
and config/skein.toml, which is `skein manual skein.toml`.

    docs/configuration.py SKEIN           print the page
    docs/configuration.py SKEIN --write   replace both files
    docs/configuration.py SKEIN --check   exit 1 if a file differs from what is generated
"""
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).with_name("configuration.md")
SHIPPED = PAGE.parent.parent / "config/skein.toml"
HEAD = """# Configuration

<!-- Written by docs/configuration.py from the table of keys (`config/keys.cpp`, `config/model_keys.cpp`); do not edit. -->

`config/skein.toml` lists every setting with its meaning, default and legal values. A flag overrides an environment variable
(`SKEIN_SERVER_PORT` for `server.port`), which overrides the file given by `--config` or `$SKEIN_CONFIG` and the files
`conf.d/*.toml` beside it. Any setting can be given as `--set KEY=VALUE`; lists as `a,b` or `["a", "b"]`.

```
skein check-config --config FILE         # lists all errors, each with file, line and key
skein serve --config FILE --dump-config  # prints the merged result and the origin of each value
```

`check-config` refuses what `skein serve` would refuse with the same settings on this machine: beside wrong values also
files that are missing or do not fit each other, devices that do not exist, and formats that a device cannot run. It reads
no weights and takes no port, device memory or state directory, so it can run beside a server.

Live keys change without a restart: `SIGHUP` (`systemctl reload skein`) reads all files again. If a file has an error, no
setting changes and the error is logged.
"""


def plain(roff):
    """A line of roff without font changes and escapes."""
    roff = re.sub(r"\\f[A-Z]", "", roff)
    return roff.replace(r"\&", "").replace(r"\-", "-").replace(r"\e", "\\")


def cell(text):
    return text.replace("|", r"\|").replace("<", "&lt;")


def row(key, default, text):
    live = "live" if re.search(r"(^| )Live\.", text) else ""
    flag = re.search(r" Flag: (\S+)\.$", text)
    text = re.sub(r" Flag: \S+\.$", "", text)
    text = re.sub(r" ?\bLive\.$", "", text)
    legal = re.search(r" Accepted: (.*)\.$", text)
    text = re.sub(r" Accepted: .*\.$", "", text)
    cells = [f"`{key}`", f"`{default}`", f"`{legal[1]}`" if legal else "", f"`{flag[1]}`" if flag else "", live]
    return "| " + " | ".join(cells + [cell(text)]) + " |"


def page(roff):
    lines = roff.split("\n")
    out = [HEAD]
    at = lines.index(".SH SETTINGS")
    while not (lines[at].startswith(".SH") and lines[at] != ".SH SETTINGS"):
        line = lines[at]
        if line.startswith(".SS"):
            name = plain(line[4:]).strip('"')
            out.append(f"## {name}\n")
            if lines[at + 1] == ".PP":
                out.append(plain(lines[at + 2]) + "\n")
            out += ["| key | default | legal | flag | | meaning |", "|---|---|---|---|---|---|"]
        elif line == ".TP":
            key, _, default = plain(lines[at + 1]).partition(" = ")
            out.append(row(key, default, plain(lines[at + 2])))
            if lines[at + 3].startswith((".SS", ".SH")):
                out.append("")
        at += 1
    return "\n".join(out).rstrip("\n") + "\n"


def manual(program, name):
    return subprocess.run([program, "manual", name], check=True, capture_output=True, text=True).stdout


def main(arguments):
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 64
    texts = {PAGE: page(manual(arguments[0], "skein.toml.5")), SHIPPED: manual(arguments[0], "skein.toml")}
    how = arguments[1] if len(arguments) == 2 else ""
    if how == "--write":
        for file, text in texts.items():
            file.write_text(text, encoding="utf-8")
    elif how == "--check":
        stale = [file for file, text in texts.items() if file.read_text(encoding="utf-8") != text]
        for file in stale:
            print(f"{file} does not match the table of keys: run docs/configuration.py SKEIN --write", file=sys.stderr)
        return 1 if stale else 0
    else:
        print(texts[PAGE], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
