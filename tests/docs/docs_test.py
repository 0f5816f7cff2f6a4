#!/usr/bin/env python3
"""Checks the documents: docs_test.py ROOT [SKEIN]

Links between files lead somewhere, with their headline; README and ARCHITECTURE are not longer than they may be;
decisions are numbered without gaps and in the index; files that the how-tos name exist; ARCHITECTURE has the subfolders
that tidy permits; licences of packages have a text. With SKEIN, docs/configuration.md is what the program says.
"""
import pathlib
import re
import subprocess
import sys

BYTES_MAX = {"README.md": 8 * 1024, "ARCHITECTURE.md": 16 * 1024}
NAMED_FILE = re.compile(r"(?:actors|bench|config|docs|kernels|models|packaging|src|systemd|tests|web)/[\w./{},*-]+")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages(root):
    return [p for p in sorted(root.rglob("*.md")) if not {"node_modules", "build", ".git"} & set(p.relative_to(root).parts)]


def prose(path):
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(path):
    """The ids that GitHub gives to the headlines of a page."""
    found = set()
    for line in prose(path).split("\n"):
        if line.startswith("#"):
            title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower().replace("`", ""))
            found.add(title.replace(" ", "-"))
    return found


def link_findings(path, root):
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"{path.relative_to(root)}: {target}: no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{path.relative_to(root)}: {target}: no such headline"


def decision_findings(root):
    folder = root / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    files = sorted(p for p in folder.glob("*.md") if p.name != "README.md")
    for number, path in enumerate(files, 1):
        text = path.read_text(encoding="utf-8")
        if not path.name.startswith(f"{number:04d}-"):
            yield f"{path.name}: number {number} is expected"
        head = re.match(r"# (\d+)\. (.+)\n\nDate: (\d{4}-\d\d-\d\d)\n", text)
        if not head or int(head[1]) != number:
            yield f"{path.name}: the headline is not '# {number}. TITLE' with a date"
        elif f"| {head[3]} | {number} | [{head[2]}]({path.name}) |" not in index:
            yield f"{path.name}: is not in the index"


def file_findings(path, root):
    """Files and folders that a page names from the root, unless it leaves a part of the name open (NAME, rwkvN, *)."""
    for code in re.findall(r"`([^`\n]+)`", prose(path)):
        if not NAMED_FILE.fullmatch(code) or re.search(r"NAME|rwkvN|\*", code):
            continue
        head, braces, tail = re.match(r"([^{]*)(?:\{([^}]*)\})?(.*)", code).groups()
        for part in (braces or "").split(","):
            if not (root / (head + part + tail)).exists():
                yield f"{path.relative_to(root)}: {head + part + tail}: no such file"


def subfolder_findings(root):
    """The rows of ARCHITECTURE for large folders against those of tidy."""
    sys.path.insert(0, str(root / "tests/tidy"))
    from tidy import SUBFOLDERS
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for folder in ("actors/request", "actors/device", "actors/persistence", "actors/connection", "actors/supervisor",
                   "kernels/gpu", "src/protocol", "src/storage", "src/engine", "src/model"):
        row = re.search(rf"^\| `{folder}` \| (?=`)(.*) \|$", text, flags=re.M)
        named = re.findall(r"`([^`]+)`", row[1]) if row else []
        wanted = [name or "." for name in SUBFOLDERS[folder] if "/" not in name]
        if sorted(named) != sorted(wanted):
            yield f"ARCHITECTURE.md: {folder}: has {' '.join(named)}; tidy.py has {' '.join(wanted)}"


def licence_findings(root):
    """Each licence of a package's copyright file has a paragraph with its text."""
    for path in sorted((root / "packaging").glob("*/copyright")):
        text = path.read_text(encoding="utf-8")
        for name in sorted(set(re.findall(r"^License: (\S+)$", text, flags=re.M))):
            if not re.search(rf"^License: {re.escape(name)}\n ", text, flags=re.M):
                yield f"{path.relative_to(root)}: {name}: no text"


def findings(root):
    for path in pages(root):
        yield from link_findings(path, root)
    for path in [*sorted((root / "docs/howto").glob("*.md")), root / "CONTRIBUTING.md", root / "ARCHITECTURE.md"]:
        yield from file_findings(path, root)
    yield from subfolder_findings(root)
    yield from licence_findings(root)
    for name, most in BYTES_MAX.items():
        size = (root / name).stat().st_size
        if size > most:
            yield f"{name}: {size} bytes; at most {most}"
    yield from decision_findings(root)


def main(arguments):
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 64
    root = pathlib.Path(arguments[0]).resolve()
    found = list(findings(root))
    for finding in found:
        print(finding)
    stale = 0
    if len(arguments) == 2:
        stale = subprocess.run([root / "docs/configuration.py", arguments[1], "--check"]).returncode
    print(f"{len(pages(root))} pages, {len(found)} findings")
    return 1 if found or stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
