"""Finds phrases that are not plain English, in comments, in string literals and in documents.

PATTERNS lists the phrases with their replacements, EXCEPTIONS the places where one of them is right. String literals
without a space are names or keys, not sentences, and are not checked. Neither are single words in quotation marks.
"""
import pathlib
import re
import subprocess

# Each row: examples for the self test, pattern (a space matches the end of a line too), what to write instead.
PATTERNS = (
    (("nobody",), r"nobody", "the noun with no (no client, no request), or the passive voice"),
    (("somebody",), r"somebody", "the noun: client, caller, request, operator, thread"),
    (("anybody",), r"anybody", "the noun: any client, any user"),
    (("everybody",), r"everybody", "the noun: all clients, all users"),
    (("whoever", "whosoever"), r"who(so)?ever", "the noun with that: the client that, the caller that"),
    (("who asks",), r"who asks", "the caller, the client"),
    (("hangs on", "hang on", "hung on"), r"(hangs?|hung|hanging) on", "depends on"),
    (("goes on with", "go on with", "gone on with"), r"(go|goes|gone|going|went) on with", "continue, resume"),
    (("is gone on", "are gone on"), r"(is|are|was|were|be|been) gone on(?! with\b)", "is continued, is resumed"),
    (("batch mate", "batch mates"), r"batch mates?", "other rows of the batch, batch composition"),
    (("company",), r"company", "batch composition, other sequences in the batch"),
    (("insists", "insist"), r"insists?", "requires"),
    (("that lack", "that lacks", "are lacking"), r"that lacks?|(is|are) lacking", "missing"),
    (("so many", "so much"), r"so (many|much)(?! (that|as)\b)", "this number of, this many, up to N"),
    (("for itself",), r"for itself", "by itself, separately"),
    (("its own words",), r"its own words", "its text, its tokens"),
    (("has got", "have got"), r"(has|have|had) got", "has, has received"),
    (("comes with",), r"comes with", "has, includes, is shipped with"),
    (("for which there is room",), r"for which there is room", "that fits, that fit"),
    (("may pass the ceiling",), r"may pass the ceiling", "may exceed the limit"),
    (("besides.",), r"besides(?=[.,;:)])", "also, in addition"),
    (("anew",), r"anew", "again"),
    (("in vain",), r"in vain", "without success, or what failed"),
    (("retyped", "retypes"), r"retyp(e|es|ed|ing)(?!\(|\.[a-z])", "convert, cast"),
    (("drawn token", "tokens that are drawn"), r"drawn tokens?|tokens? (that )?(is|are|was|were) drawn", "sampled token"),
    (("is no UTF-8", "are no JSON"), r"(?<!there\s)(is|are) no (UTF-8|JSON|TOML|YAML)", "is not UTF-8, is not JSON"),
)

# (path, regular expression of the text around the phrase in lower case), for quotations and recorded data.
EXCEPTIONS = (("tests/container/image_test.py", "nobody"),)  # the user of that name

SLASH_CODE = {".cpp", ".hpp", ".cu", ".cuh", ".js", ".mjs", ".ts", ".css"}
HASH_CODE = {".py", ".cmake", ".sh", ".toml", ".service", ".socket", ".tmpfiles", ".sysusers", ".conf", ".supp"}
HASH_NAMES = {"CMakeLists.txt", "dev", "run", "postinst", "postrm", "prerm", "triggers", ".gitignore", ".clang-format"}
PROSE = {".md", ".html", ".yaml", ".yml", ".in"}
# Third-party text, generated files, recorded data, history, and this list.
SKIPPED = ("web/vendor/", "models/", "docs/decisions/", "bench/results/", "CHANGELOG.md", "docs/configuration.md",
           "src/base/log/message_names.cpp", "tests/tidy/wording.py")

SLASH_TOKEN = re.compile(
    r"""R"(?P<mark>[^(\s"]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<double>(?:\\.|[^"\\\n])*)"|'(?P<single>(?:\\.|[^'\\\n])*)'"""
    r"""|`(?P<back>(?:\\.|[^`\\])*)`|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/""", re.S)
HASH_TOKEN = re.compile(
    r'''"""(?P<triple>.*?)"""|"(?P<double>(?:\\.|[^"\\\n])*)"|'(?P<single>(?:\\.|[^'\\\n])*)'|(?:(?<=\s)|^)\#(?P<line>[^\n]*)''',
    re.S | re.M)
QUOTED = re.compile(r'''`[^`\n]*`|'[^'\s]*'|\\?"[^"\s]*"''')
COMMENTS = ("line", "block", "triple")


def spaced(pattern):
    """The pattern, with spaces that also match the end of a line of a comment."""
    return pattern.replace(" ", r"[\s/#*]+")


# All rules search text in lower case: that is several times as fast as re.I.
RULES = tuple((re.compile(f"(?:{spaced(pattern).lower()})" + r"(?![\w-])"), instead) for _, pattern, instead in PATTERNS)
# Finds more than the rules; most files are done with it.
ANY_RULE = re.compile(r"\b(?:" + "|".join(spaced(pattern).lower() for _, pattern, _ in PATTERNS) + ")")


def token_texts(text, token):
    """(offset, text, is a comment) of each comment and string literal."""
    for match in token.finditer(text):
        for kind, content in match.groupdict().items():
            if content is not None and kind != "mark":
                yield match.start(kind), content, kind in COMMENTS


def prose(path, text):
    """The text of a file with code, names and keys blanked, at the same offsets."""
    name, suffix = pathlib.PurePosixPath(path).name, pathlib.PurePosixPath(path).suffix
    if suffix in PROSE:
        return re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S | re.M)
    if suffix in SLASH_CODE:
        token = SLASH_TOKEN
    elif suffix in HASH_CODE or name in HASH_NAMES:
        token = HASH_TOKEN
    else:
        return ""
    out, at = [], 0
    for offset, content, is_comment in token_texts(text, token):
        # Code separates two texts; spaces, quotation marks and comment marks do not.
        between = text[at:offset]
        joins = not between.strip(" \t\n\r\"'/#*")
        out.append(re.sub(r"[^\n]", " " if joins else "\0", between))
        out.append(content if is_comment or " " in content else re.sub(r"[^\n]", "\0", content))
        at = offset + len(content)
    return "".join(out)


def without_quotations(text):
    return QUOTED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def findings(path, text, exceptions=EXCEPTIONS):
    if path.startswith(SKIPPED):
        return
    lower = text.lower()
    if not ANY_RULE.search(lower) and not ANY_RULE.search(re.sub(r'"\s*"', "", lower)):
        return
    lower = without_quotations(prose(path, text)).lower()
    for rule, instead in RULES:
        for match in rule.finditer(lower):
            begin, end = match.span()
            if re.match(r"[\w-]", lower[begin - 1:begin]):
                continue  # the end of a longer word
            around = lower[max(0, begin - 40):end + 40]
            if any(path == where and re.search(what, around) for where, what in exceptions):
                continue
            found = re.sub(r"[\s/#*]+", " ", match[0])
            yield f'{path}:{lower.count(chr(10), 0, begin) + 1}: "{found}" is not plain English; write instead: {instead}'


def tracked_files(root):
    """Repository paths of the files that git tracks or would add; without git, of all files."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True)
    if listed.returncode == 0:
        return sorted(set(filter(None, listed.stdout.decode().split("\0"))))
    skipped = {"node_modules", "build", "__pycache__", ".git"}
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if not skipped & set(path.parts))


def read_prose(root):
    """{path: text} of the files that findings reads."""
    files = {}
    for name in tracked_files(root):
        path = root / name
        readable = path.suffix in SLASH_CODE | HASH_CODE | PROSE or path.name in HASH_NAMES
        if readable and path.is_file() and not name.startswith(SKIPPED):
            files[name] = path.read_text(encoding="utf-8")
    return files


def self_test():
    """Returns the number of wrong rows. Every pattern needs an example, which must be found in a comment, in a document,
    in a string and across lines, but not in code, in a name or in quotation marks."""
    rows = [("a pattern without an example: " + pattern, "a.md", "", 1) for examples, pattern, _ in PATTERNS if not examples]
    for phrase in (phrase for examples, _, _ in PATTERNS for phrase in examples):
        rows += [
            (phrase, "a.md", f"The text {phrase} ends.\n", 1),
            (phrase, "a.cpp", f"int x;  // The text {phrase}\n", 1),
            (phrase, "a.hpp", "/// The text\n/// " + phrase.replace(" ", "\n/// ") + "\nint x;\n", 1),
            (phrase, "a.cpp", f'log("the text {phrase}");\n', 1),
            (phrase, "a.cpp", 'log("the text "\n    "' + phrase.replace(" ", ' "\n    "') + ' x");\n', 1),
            (phrase, "a.py", f'"""The text {phrase}."""\n', 1),
            (phrase, "a.mjs", f"test(`the text {phrase}`);\n", 1),
            (phrase, "dev", f"run x  # The text {phrase}\n", 1),
            (phrase, "a.cpp", f"int {phrase.replace(' ', '_')} = 1;\n", 0),
        ]
    rows += [
        ("a name in code", "a.cpp", 'ask("nobody");  // the tenant "nobody" of `company`\nint company = nobody(1\'000);\n', 0),
        ("a word in a word", "a.md", "companyless nobodyx so-many\n", 0),
        ("code in a document", "a.md", "```\nnobody\n```\n", 0),
        ("third-party text", "web/vendor/a.js", "// nobody\n", 0),
        ("lines of one comment", "a.cpp", "// it hangs\n// on that\n", 1),
        ("two comments after code", "a.cpp", "f();  // it hangs\ng();  // on that\n", 0),
        ("so much that", "a.cpp", "// so much that it hurts\n", 0),
    ]
    wrong = 0
    for name, path, text, expected in rows:
        found = list(findings(path, text))
        if len(found) != expected or any(not f.startswith(f"{path}:") or "write instead" not in f for f in found):
            print(f"{name}: expected {expected}, found {found} in {text!r}")
            wrong += 1
    line = next(findings("a.cpp", "int x;\n// Nobody\n"), "")
    if not line.startswith('a.cpp:2: "nobody" is not plain English; write instead: the noun with no'):
        print(f"unexpected message: {line}")
        wrong += 1
    if list(findings("a.md", "A song: nobody knows.\n", (("a.md", "song: nobody"),))):
        print("an exception has no effect")
        wrong += 1
    return wrong
