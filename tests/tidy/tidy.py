#!/usr/bin/env python3
"""Checks the source tree against the rules of this project.

    tidy.py ROOT          check the repository at ROOT; exit 1 with one line per finding
    tidy.py --self-test   show on made-up files that each rule finds violations

Rules: includes point one way (config, src/base <- kernels <- rest of src <- actors <- src/main.cpp), also between the
subfolders of a folder; each third-party library is included in its folders only; folders have at most 25 files; files
have at most 600 lines and end with one newline; classes have at most 400 lines, over all files of their folder
(class_sizes.py); no marks of unfinished work; headers have include guards; the chat page never makes markup of text and
contacts only its server; comments, messages and documents are plain English (wording.py).
"""
import collections
import pathlib
import re
import sys

import class_sizes
import wording

FOLDERS = ("config", "src", "kernels", "actors", "web", "tests", "bench")
CODE = {".cpp", ".hpp", ".cu", ".cuh"}
HEADERS = {".hpp", ".cuh"}
OTHER_TEXT = {".py", ".txt", ".cmake", ".toml", ".mjs", ".js", ".ts", ".sh", ".html", ".css", ".svg"}
# The page shows text of models and other users: it goes into text nodes, and nothing is loaded from other servers.
PAGE = {".js", ".html", ".css", ".svg"}
CARD_TESTS = re.compile(r"tests/kernels/gpu/\w+_test\.cpp")
TEST_OR_SUITE = re.compile(r"^BOOST_(?:AUTO_TEST_SUITE\((\w+)|(AUTO_TEST_SUITE_END)|\w+_TEST_CASE\((\w+))", re.M)
PAGE_RULES = (
    (re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"), "text is never markup"),
    (re.compile(r"""(?:src|href|from|import|url)\s*[=(]?\s*["'(](?:https?:)?//"""), "the page may contact only its server"),
    (re.compile(r"""\sstyle=|\son[a-z]+=["']"""), "the Content-Security-Policy of the page forbids this"),
)
SKIPPED = {"node_modules", "build", "__pycache__"}
LINES_MAX = 600
FILES_MAX = 25  # C++ and CUDA files in one folder
FILES_MAX_IN = ("config/", "src/", "kernels/", "actors/")
HEADER_BESIDE = ("actors/device/", "actors/persistence/")  # folders whose sources have a header of their name

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

# Folders with subfolders: each subfolder, from the bottom up, and those that it may include. "" is the folder itself.
SUBFOLDERS = {
    "src": {
        "base": "",
        "access": "base",
        "tokenizer": "base",
        "sampling": "base",
        "grammar": "base tokenizer sampling",
        "model": "base",
        "engine": "base sampling model",
        "storage": "base model",
        "protocol": "base sampling",
        "load": "base protocol",
        "app": "base tokenizer model engine storage protocol",
        "cli": "base access tokenizer grammar sampling model engine storage protocol load app",
        "": "cli",
    },
    "src/base": {
        "": "",
        "metrics": "",
        "threads": ".",
        "log": ". threads",
    },
    "src/grammar": {
        "automata": "",
        "machine": "automata",
        "text": "automata machine",
        "schema": "automata machine text",
        "": "automata machine text schema",
    },
    "src/model": {
        "templates": "",
        "mapping": "",
        "files": "templates mapping",
        "repository": "files templates mapping",
        "forms": "files",
        "adapters": "files mapping",
        "": "templates mapping files repository forms adapters",
    },
    "src/engine": {
        "": "",
        "gpu": ".",
        "stages": ".",
        "fake": ". stages",
    },
    "src/storage": {
        "files": "",
        "records": "",
        "database": "files records",
        "states": "records database",
        "sessions": "records database states",
        "repair": "files records database states sessions",
    },
    "src/protocol": {
        "json": "",
        "responses": "json",
        "requests": "json responses",
        "chat": "json responses requests",
        "dialects": "json responses requests chat",
        "server": "json requests chat",
        "responses_api": "json responses requests chat dialects",
    },
    "src/cli": {
        "help": "",
        "output": "",
        "": "help output",
        "bench": ".",
        "convert": ". output",
        "tune": ". bench",
    },
    "kernels": {
        "weights": "",
        "": "weights",
        "reference": ". weights",
        "cpu": ". weights",
        "cpu/wkv": ". cpu",
        "cpu/model": ". weights cpu cpu/wkv",
        "gpu": ". weights",
    },
    "kernels/gpu": {
        "types": "",
        "runtime/emulator": "",
        "runtime": "types runtime/emulator",
        "device": "types runtime/emulator runtime",
        "gemm": "types runtime/emulator runtime device",
        "ops": "types runtime device",
        "time_mix": "types runtime device",
        "fused": "types runtime device gemm ops time_mix",
        "sampling": "types runtime device",
        "model": "types runtime device gemm ops time_mix fused sampling",
        "tick": "types runtime device ops sampling model",
        "": "types runtime gemm tick",
    },
    "actors": {
        "": "",
        "connection": ".",
        "listener": "connection",
        "device": ".",
        "persistence": ".",
        "request": ". connection device persistence",
        "supervisor": "connection listener device persistence request",
    },
    "actors/connection": {
        "http": "",
        "websocket": "http",
        "link": "http",
        "": "http websocket link",
    },
    "actors/device": {
        "slots": "",
        "": "slots",
    },
    "actors/persistence": {
        "shared": "",
        "sessions": "shared",
        "prefixes": "shared",
        "states": "shared sessions",
        "open": "shared sessions states",
        "turns": "shared sessions states open",
        "keeper": "shared sessions prefixes states open turns",
        "": "shared states keeper",
    },
    "actors/request": {
        "devices": "",
        "shared": "devices",
        "call": "devices shared",
        "models": "devices shared call",
        "status": "devices shared call",
        "sessions": "devices shared call",
        "answer": "devices shared call",
        "generation": "devices shared call answer",
        "responses": "devices shared call sessions generation",
        "service": "devices shared call models status sessions generation responses",
    },
    "actors/supervisor": {
        "process": "",
        "settings": "",
        "models": "settings",
        "": "process settings models",
    },
}

# Library, pattern of its includes, and the files that may include it.
ROOMS = (
    ("Beast", r"boost/beast", ("actors/listener/", "actors/connection/", "src/load/load_run.cpp", "tests/support/http_client.cpp")),
    ("Asio", r"boost/asio", ("actors/", "src/load/load_run.cpp", "tests/actors/", "tests/support/")),
    ("OpenSSL", r"openssl/|boost/asio/ssl", ("actors/listener/", "tests/actors/tls_relay_test.cpp")),
    ("simdjson", r"simdjson", ("src/protocol/", "src/model/", "tests/")),
    ("toml++", r"toml\+\+|toml\.h", ("config/load.cpp",)),
    ("CLI11", r"CLI/", ("src/cli/command_line.cpp", "src/cli/command_line_words.cpp")),
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


def subfolder(path, folder):
    """The row of SUBFOLDERS[folder] that a path below the folder belongs to; None if it has none."""
    below = path[len(folder) + 1:].split("/")[:-1]
    return next(("/".join(below[:n]) for n in range(len(below), 0, -1) if "/".join(below[:n]) in SUBFOLDERS[folder]),
                None if below else "")


def subfolder_findings(path, line, target):
    for folder, rows in SUBFOLDERS.items():
        if not (path.startswith(folder + "/") and target.startswith(folder + "/")):
            continue
        mine, theirs = subfolder(path, folder), subfolder(target, folder)
        if mine is None or theirs is None or mine == theirs:
            continue
        if (theirs or ".") not in rows[mine].split():
            yield f"{path}:{line}: includes {target}: {folder}/{mine} may include {rows[mine] or 'none'} of {folder}"


def folder_findings(files):
    """Folders with too many files, and subfolders that have no row."""
    counts = collections.Counter()
    for path in files:
        folder, _, _ = path.rpartition("/")
        if path.startswith(FILES_MAX_IN) and pathlib.PurePosixPath(path).suffix in CODE:
            counts[folder] += 1
    for folder, count in sorted(counts.items()):
        if count > FILES_MAX:
            yield f"{folder}:1: has {count} files; at most {FILES_MAX} are allowed"
        for parent in SUBFOLDERS:
            if folder.startswith(parent + "/") and subfolder(folder + "/", parent) is None:
                yield f"{folder}:1: is not in SUBFOLDERS of tidy.py"


def header_findings(files):
    """Sources without a header of their name: a class over several files hides its size."""
    for path in sorted(files):
        if path.startswith(HEADER_BESIDE) and path.endswith(".cpp") and path[:-4] + ".hpp" not in files:
            yield f"{path}:1: has no header of its name"


def include_findings(path, line, include, files):
    target = resolve(include, files)
    if target is not None:
        mine, theirs = layer(path), layer(target)
        if mine is not None and theirs is None:
            yield f"{path}:{line}: includes {target}: the program must not include its tests"
        elif mine is not None and theirs > mine:
            yield f"{path}:{line}: includes {target}: includes must not point upwards"
        else:
            yield from subfolder_findings(path, line, target)
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


def card_findings(files):
    """The kernel tests become one program for a card, so two of a suite may not have the same name."""
    seen = {}
    for path, text in sorted(files.items()):
        if not CARD_TESTS.fullmatch(path):
            continue
        suite, names = "", set()
        for opened, ended, name in TEST_OR_SUITE.findall(text):
            suite = opened if opened else "" if ended else suite
            names.add((suite, name))
        for key in names:
            if key[1] and key in seen:
                yield f"{path}:1: has a test {key[1]} like {seen[key]}; one of them needs a test suite"
            seen[key] = path


def page_findings(path, text):
    for number, content in enumerate(text.split("\n"), 1):
        for rule, why in PAGE_RULES:
            if rule.search(content):
                yield f"{path}:{number}: {why}"


def findings(files):
    """All findings for a repository given as {path: text}."""
    yield from folder_findings(files)
    yield from header_findings(files)
    yield from card_findings(files)
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
                                        "actors/a.hpp", "tests/support/a.hpp", "src/cli/a.hpp",
                                        "actors/request/shared/a.hpp", "actors/request/service/a.hpp",
                                        "src/storage/records/a.hpp", "src/storage/sessions/a.hpp", "src/engine/a.hpp",
                                        "kernels/gpu/gemm/a.hpp", "kernels/gpu/runtime/emulator/a.hpp")}
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
        ("subfolders that point down", {"actors/request/call/b.cpp": '#include "actors/request/shared/a.hpp"\n',
                                        "src/storage/repair/b.cpp": '#include "storage/sessions/a.hpp"\n',
                                        "src/engine/fake/b.cpp": '#include "engine/a.hpp"\n',
                                        "kernels/gpu/runtime/b.cpp": '#include "kernels/gpu/runtime/emulator/a.hpp"\n',
                                        "kernels/gpu/gemm/b.cpp": '#include "kernels/gpu/gemm/a.hpp"\n'}, None),
        ("shared knows the service", {"actors/request/shared/b.cpp": '#include "actors/request/service/a.hpp"\n'},
         "actors/request/shared may include devices"),
        ("the database knows sessions", {"src/storage/database/b.cpp": '#include "storage/sessions/a.hpp"\n'},
         "src/storage/database may include files records"),
        ("a kernel knows GEMMs", {"kernels/gpu/sampling/b.cu": '#include "kernels/gpu/gemm/a.hpp"\n'}, "may include types"),
        ("the emulator knows its user", {"kernels/gpu/runtime/emulator/b.cpp": '#include "kernels/gpu/gemm/a.hpp"\n'},
         "runtime/emulator may include none"),
        ("a folder knows its subfolder", {"src/engine/fake/c.hpp": pragma,
                                          "src/engine/b.cpp": '#include "engine/fake/c.hpp"\n'}, "may include none"),
        ("shared code knows the commands", {"src/app/b.cpp": '#include "cli/a.hpp"\n'}, "src/app may include"),
        ("a neighbour in src", {"src/model/b.cpp": '#include "storage/records/a.hpp"\n'}, "src/model may include base"),
        ("an actor knows requests", {"actors/device/b.hpp": pragma + '#include "actors/request/shared/a.hpp"\n'},
         "actors/device may include"),
        ("a subfolder without a row", {"src/storage/attic/b.cpp": "int x;\n"}, "is not in SUBFOLDERS"),
        ("a full folder", {f"config/b{i}.cpp": "int x;\n" for i in range(FILES_MAX - 1)}, None),
        ("a folder above the limit", {f"config/b{i}.cpp": "int x;\n" for i in range(FILES_MAX)}, "has 26 files"),
        ("a source beside its header", {"actors/device/b.cpp": "int x;\n", "actors/device/b.hpp": pragma}, None),
        ("a class over two files", {"actors/device/b_more.cpp": "int x;\n", "actors/device/b.hpp": pragma},
         "has no header of its name"),
        ("a folder of tests", {f"tests/b{i}.cpp": "int x;\n" for i in range(FILES_MAX + 1)}, None),
        ("two kernel tests of one name", {f"tests/kernels/gpu/{x}_test.cpp": "BOOST_AUTO_TEST_CASE(same) {}\n" for x in "ab"},
         "has a test same"),
        ("two suites of kernel tests", {f"tests/kernels/gpu/{x}_test.cpp":
                                        f"BOOST_AUTO_TEST_SUITE({x})\nBOOST_AUTO_TEST_CASE(same) {{}}\n" for x in "ab"}, None),
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
    for folder, parts in SUBFOLDERS.items():  # the rows are in order: no row names a later one
        below = set()
        for name, may_include in parts.items():
            if not set(may_include.split()) <= below:
                print(f"{folder}/{name}: {may_include} are not all above it in the list")
                wrong += 1
            below.add(name or ".")
    wrong += class_sizes.self_test() + wording.self_test()
    print(f"{len(rows)} rows, class sizes and the wording: {wrong} wrong")
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
    found = list(findings(files)) + list(class_sizes.findings(files))
    texts = wording.read_prose(pathlib.Path(arguments[0]))
    for path, text in texts.items():
        found += wording.findings(path, text)
    for finding in found:
        print(finding)
    print(f"{len(files.keys() | texts.keys())} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
