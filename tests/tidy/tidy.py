#!/usr/bin/env python3
"""Checks the source tree against the rules of this project.

    tidy.py ROOT          check the repository at ROOT; exit 1 with one line per finding
    tidy.py --self-test   show on made-up files that each rule finds violations

Rules: includes point one way (config, src/base <- kernels <- rest of src <- actors <- src/main.cpp); each third-party
library is included in its folders only; files have at most 600 lines and end with one newline; no marks of unfinished
work; headers have include guards; the chat page never makes markup of text and contacts only its server; comments,
messages and documents are plain English (wording.py).
"""
import pathlib
import re
import sys

import wording

FOLDERS = ("config", "src", "kernels", "actors", "web", "tests", "bench")
CODE = {".cpp", ".hpp", ".cu", ".cuh"}
HEADERS = {".hpp", ".cuh"}
OTHER_TEXT = {".py", ".txt", ".cmake", ".toml", ".mjs", ".js", ".ts", ".sh", ".html", ".css", ".svg"}
# The page shows text of models and other users: it goes into text nodes, and nothing is loaded from other servers.
PAGE = {".js", ".html", ".css", ".svg"}
PAGE_RULES = (
    (re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"), "text is never markup"),
    (re.compile(r"""(?:src|href|from|import|url)\s*[=(]?\s*["'(](?:https?:)?//"""), "the page may contact only its server"),
    (re.compile(r"""\sstyle=|\son[a-z]+=["']"""), "the Content-Security-Policy of the page forbids this"),
)
SKIPPED = {"node_modules", "build", "__pycache__"}
LINES_MAX = 600

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
MARK = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")

# From the bottom up; a file may include files of its own layer and of those below. The first match counts.
LAYERS = (
    ("src/main.cpp", 4),
    ("config/", 0),
    ("src/base/", 0),
    ("kernels/", 1),
    ("web/", 1),
    ("src/", 2),
    ("actors/", 3),
)

# Library, pattern of its includes, and the files that may include it.
ROOMS = (
    ("Beast", r"boost/beast", ("actors/listener/", "actors/connection/", "src/load/load_run.cpp", "tests/support/http_client.cpp")),
    ("Asio", r"boost/asio", ("actors/", "src/load/load_run.cpp", "tests/actors/", "tests/support/")),
    ("OpenSSL", r"openssl/|boost/asio/ssl", ("actors/listener/",)),
    ("simdjson", r"simdjson", ("src/protocol/", "src/model/", "tests/")),
    ("toml++", r"toml\+\+|toml\.h", ("config/load.cpp",)),
    ("CLI11", r"CLI/", ("src/cli/command_line.cpp",)),
    ("RocksDB", r"rocksdb/", ("src/storage/", "tests/storage/")),
    ("a GPU runtime", r"cuda|hip/|cub/|cublas|nccl|rocprim", ("kernels/gpu/runtime/", "kernels/gpu/gemm/cublas_lt.cpp")),
    ("Boost.Context", r"boost/context", ("kernels/gpu/runtime/emulator/",)),
    ("Highway", r"hwy/", ("kernels/cpu/", "src/model/nonfinite.cpp", "src/sampling/logit_block.cpp", "tests/kernels/",
                           "tests/sampling/")),
)


def layer(path):
    """The layer of a repository path; None for tests and benches, which may see everything."""
    return next((number for prefix, number in LAYERS if path.startswith(prefix)), None)


def resolve(include, files):
    """The repository path of an include, or None for a third-party header."""
    return next((path for path in (include, "src/" + include) if path in files), None)


def include_findings(path, line, include, files):
    target = resolve(include, files)
    if target is not None:
        mine, theirs = layer(path), layer(target)
        if mine is not None and theirs is None:
            yield f"{path}:{line}: includes {target}: the program must not include its tests"
        elif mine is not None and theirs > mine:
            yield f"{path}:{line}: includes {target}: includes must not point upwards"
        return
    for name, pattern, rooms in ROOMS:
        if re.match(pattern, include) and not path.startswith(rooms):
            yield f"{path}:{line}: includes {include}: {name} may be included only in {', '.join(rooms)}"


def code_findings(path, text, files):
    suffix = pathlib.PurePosixPath(path).suffix
    # Highway's -inl headers are included once per target on purpose.
    if suffix in HEADERS and not path.endswith("-inl.hpp") and "#pragma once\n" not in text:
        yield f"{path}:1: has no #pragma once"
    for number, content in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(content)
        if match:
            yield from include_findings(path, number, match[1], files)


def length_findings(path, text):
    lines = text.count("\n")
    if lines > LINES_MAX:
        yield f"{path}:{LINES_MAX}: has {lines} lines; at most {LINES_MAX} are allowed"


def page_findings(path, text):
    for number, content in enumerate(text.split("\n"), 1):
        for rule, why in PAGE_RULES:
            if rule.search(content):
                yield f"{path}:{number}: {why}"


def findings(files):
    """All findings for a repository given as {path: text}."""
    for path, text in sorted(files.items()):
        suffix = pathlib.PurePosixPath(path).suffix
        if suffix in CODE:
            yield from code_findings(path, text, files)
        if suffix in CODE or path.startswith("web/"):
            yield from length_findings(path, text)
        if path.startswith("web/") and suffix in PAGE:
            yield from page_findings(path, text)
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            yield f"{path}:{text.count(chr(10)) + 1}: does not end with exactly one newline"
        for number, content in enumerate(text.split("\n"), 1):
            if MARK.search(content):
                yield f"{path}:{number}: contains a mark of unfinished work"


def read(root):
    files = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and path.suffix in CODE | OTHER_TEXT and not SKIPPED & set(relative.parts):
                files[relative.as_posix()] = path.read_text(encoding="utf-8")
    return files


def self_test():
    """Each row: files, and a part of the one expected finding; None: no finding."""
    pragma = "#pragma once\n"
    header = {name: pragma for name in ("src/base/a.hpp", "config/a.hpp", "kernels/a.hpp", "src/model/a.hpp",
                                        "actors/a.hpp", "tests/support/a.hpp")}
    mark = "TO" + "DO"
    rows = (
        ("arrows that point down", {"src/main.cpp": '#include "actors/a.hpp"\n#include "config/a.hpp"\n',
                                    "actors/b.cpp": '#include "model/a.hpp"\n', "src/model/b.cpp": '#include "base/a.hpp"\n',
                                    "src/cli/b.cpp": '#include "model/a.hpp"\n', "kernels/b.cpp": '#include "base/a.hpp"\n',
                                    "tests/b.cpp": '#include "actors/a.hpp"\n'}, None),
        ("base knows a kernel", {"src/base/b.cpp": '#include "kernels/a.hpp"\n'}, "must not point upwards"),
        ("config knows the model", {"config/b.cpp": '#include "model/a.hpp"\n'}, "must not point upwards"),
        ("a kernel knows the model", {"kernels/b.cpp": '#include "src/model/a.hpp"\n'}, "must not point upwards"),
        ("src knows an actor", {"src/model/b.cpp": '#include "actors/a.hpp"\n'}, "must not point upwards"),
        ("the program knows a test", {"src/model/b.cpp": '#include "tests/support/a.hpp"\n'}, "must not include its tests"),
        ("spaces in the directive", {"src/base/b.cpp": '  #  include <kernels/a.hpp>\n'}, "must not point upwards"),
        ("Beast in src", {"src/cli/b.cpp": "#include <boost/beast.hpp>\n"}, "Beast may be"),
        ("Beast in its room", {"actors/connection/b.cpp": "#include <boost/beast/http.hpp>\n"}, None),
        ("Asio in src", {"src/base/b.cpp": "#include <boost/asio/post.hpp>\n"}, "Asio may be"),
        ("simdjson in actors", {"actors/b.cpp": "#include <simdjson.h>\n"}, "simdjson may be"),
        ("toml++ twice", {"config/b.cpp": "#include <toml++/toml.h>\n"}, "toml++ may be"),
        ("CLI11 twice", {"src/cli/b.cpp": "#include <CLI/CLI.hpp>\n"}, "CLI11 may be"),
        ("RocksDB in actors", {"actors/b.cpp": "#include <rocksdb/db.h>\n"}, "RocksDB may be"),
        ("CUDA in an engine", {"src/engine/b.cpp": "#include <cuda_runtime.h>\n"}, "GPU runtime may be"),
        ("CUDA in a kernel", {"kernels/gpu/b.cu": "#include <cuda_fp16.h>\n"}, "GPU runtime may be"),
        ("HIP in its room", {"kernels/gpu/runtime/b.hpp": pragma + "#include <hip/hip_runtime.h>\n"}, None),
        ("fibers elsewhere", {"src/base/b.cpp": "#include <boost/context/fiber.hpp>\n"}, "Boost.Context may be"),
        ("a kernel above its layer", {"kernels/gpu/b.cu": '#include "model/a.hpp"\n'}, "must not point upwards"),
        ("Highway in the reference", {"kernels/reference/b.cpp": "#include <hwy/highway.h>\n"}, "Highway may be"),
        ("markup of text", {"web/js/a.js": "x.innerHTML = text;\n"}, "never markup"),
        ("a script of others", {"web/index.html": '<script src="https://a.example/b.js"></script>\n'}, "only its server"),
        ("a font of others", {"web/style.css": "@import url(//a.example/b.css);\n"}, "only its server"),
        ("a style in a tag", {"web/index.html": '<p style="color: red">\n'}, "Policy"),
        ("a handler in a tag", {"web/index.html": '<p onclick="go()">\n'}, "Policy"),
        ("a page of its own", {"web/js/a.js": "import { b } from './b.js';\n", "web/style.css": "a { b: url(c.svg); }\n"}, None),
        ("a long script", {"web/js/a.js": "x;\n" * (LINES_MAX + 1)}, "at most"),
        ("a long file", {"src/base/b.cpp": "int x;\n" * (LINES_MAX + 1)}, "at most"),
        ("a file of just the length", {"src/base/b.cpp": "int x;\n" * LINES_MAX}, None),
        ("a mark", {"tests/b.py": f"# {mark}: later\n"}, "unfinished"),
        ("no newline at the end", {"src/base/b.cpp": "int x;"}, "newline"),
        ("empty lines at the end", {"src/base/b.cpp": "int x;\n\n"}, "newline"),
        ("an unguarded header", {"src/base/b.hpp": "int x;\n"}, "#pragma once"),
    )
    wrong = 0
    for name, made_up, expected in rows:
        found = list(findings(header | made_up))
        right = not found if expected is None else len(found) == 1 and expected in found[0]
        if not right:
            print(f"{name}: expected {expected!r}, found {found}")
            wrong += 1
    wrong += wording.self_test()
    print(f"{len(rows)} rows and the wording: {wrong} wrong")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 64
    files = read(pathlib.Path(arguments[0]))
    if not files:
        print(f"no sources below {arguments[0]}", file=sys.stderr)
        return 66
    found = list(findings(files))
    texts = wording.read_prose(pathlib.Path(arguments[0]))
    for path, text in texts.items():
        found += wording.findings(path, text)
    for finding in found:
        print(finding)
    print(f"{len(files.keys() | texts.keys())} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
