"""The check of words and sentences in pages and code, for `make lint`.

`python -m lab.words --means` also prints the means.

Pages must have plain words and short sentences. `CODE_CEILINGS` limits how often code may use retired words. When they
become fewer, a ceiling is lowered, and it is never raised. `--means` shows which ceilings can be lowered.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[1]

LONGEST, MEAN = 30, 20
"""The maximum number of words of a sentence, and of a page's sentences on average. 15 to 20 read better than 10."""

RETIRED = re.compile(
    r"\b(whoever|nobody|somebody|anybody|everybody|he|his|him|dear|told|stands?|stood)\b"
    r"|\bis\s+no\s+(?!longer|one\b)\w+|\bis\s+none\s+of\b|\bare\s+no\s+(?!longer)\w+",
    re.IGNORECASE,
)
"""The words and phrases that pages do not use."""

PLAIN = re.compile(r"\b[Tt]here\s+(is|are)\s+no\b")
"""A phrase that looks like a retired one but is plain."""

CODE_CEILINGS = {
    r"told|said|stands": 66,
    r"whoever|nobody|somebody|anybody|everybody": 149,
    r"is no|is none|are none": 178,
    r"he|his|him|dear": 9,
    r"says": 149,
    r"asked": 287,
    r"away": 190,
    r"go on|goes on": 85,
    r"of its own|of their own": 92,
    r"theirs": 91,
    r"so many": 21,
    r"untold": 6,
}
"""The maximum number of uses of these words in names, docstrings and comments of `brainq/`."""

OPENING = re.compile(r"(What|Whether|Who|Whose|Which|Where|How|That|Those|None|Nothing|The same|It|They|Its)\b")
OPENING_CEILING = 206
"""The maximum number of docstrings of `brainq/` that begin with one of these words instead of a verb or an article."""

STYLE_CEILINGS = {"D205": 612, "D401": 213, "D404": 4, "D202": 2, "D210": 1, "D300": 0, "D400": 2, "D402": 0, "D403": 1}
"""The maximum number of violations of these pydocstyle rules in `brainq/`: a summary of one line, in the imperative."""


def pages() -> list[Path]:
    """Return every page that a reader of the repository or the site sees."""
    at_the_top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ops/README.md")]
    return [*at_the_top, *sorted((ROOT / "docs").rglob("*.md"))]


def prose(text: str) -> str:
    """Return a page without code blocks, headings, pictures and addresses of links.

    Inline code counts as one word, and so does a list of codes.
    """
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(r"\bcode\*?(?:, code\*?)+", "code", text)
    text = re.sub(r"^(#|!|:::).*$|<[^<>\n]*>", "", text, flags=re.MULTILINE)
    return re.sub(r"\]\([^)\s]*\)", "]", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of paragraphs and lists."""
    return _sentences(re.split(r"\n\s*\n|^ *[-*] |^ *\d+\. |^\|.*$", prose(text), flags=re.MULTILINE))


def sentences_of_tables(text: str) -> list[str]:
    """Return the sentences of table cells."""
    return _sentences([cell for row in re.findall(r"^\|.*$", prose(text), re.MULTILINE) for cell in row.split("|")])


def _sentences(parts: list[str]) -> list[str]:
    """Split texts into sentences.

    A sentence ends before what may begin another, or at the end of its text. Two words are not a sentence.
    """
    found = [
        one for part in parts for one in re.split(r"(?<=[.!?])[)*\"]*\s+(?=[A-Z*\[(\"\d]|(?:code|brainq)\b)", part)
    ]
    return [" ".join(one.split()) for one in found if length(one) > 2]


def length(sentence: str) -> int:
    """Return the number of words of a sentence, not counting dashes and arrows."""
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def faults(page: Path) -> list[str]:
    """Return a line for each fault in a page's words and sentences."""
    text = page.read_text()
    name = page.relative_to(ROOT)
    retired = [f"{name}: not in use: {found[0]!r}" for found in RETIRED.finditer(PLAIN.sub("", prose(text)))]
    everything = [*sentences(text), *sentences_of_tables(text)]
    long = [(length(one), one) for one in everything if length(one) > LONGEST]
    average = mean([length(one) for one in everything] or [0])
    if len(everything) > 1 and average > MEAN:
        retired.append(f"{name}: {average:.1f} words a sentence on average")
    return retired + [f"{name}: {words} words in a sentence: {one}" for words, one in long]


def code_counts() -> dict[str, int]:
    """Return how often `brainq/` has the words of each ceiling."""
    sources = [path.read_text() for kind in ("*.py", "*.lua") for path in (ROOT / "brainq").rglob(kind)]
    return {words: sum(len(re.findall(rf"\b(?:{words})\b", text)) for text in sources) for words in CODE_CEILINGS}


def openings() -> int:
    """Return how many docstrings of `brainq/` begin with a word of `OPENING`."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    trees = [ast.parse(path.read_text()) for path in (ROOT / "brainq").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, documented)]
    return sum(bool(OPENING.match(ast.get_docstring(node) or "")) for node in nodes)


def style_counts() -> dict[str, int]:
    """Return how often ruff finds each rule of `STYLE_CEILINGS` broken in `brainq/`."""
    command = [sys.executable, "-m", "ruff", "check", "brainq", "--exit-zero", "--output-format", "concise"]
    google = ["--config", 'lint.pydocstyle.convention="google"']
    ran = subprocess.run(
        [*command, "--select", ",".join(STYLE_CEILINGS), *google], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {rule: ran.stdout.count(f": {rule} ") for rule in STYLE_CEILINGS}


def ceilings() -> list[tuple[str, int, int]]:
    """Return each ceiling of the code: what is counted, how often it is there, and how often it may be."""
    styles = style_counts()
    return [
        *((f"the words {words}", count, CODE_CEILINGS[words]) for words, count in code_counts().items()),
        ("docstrings without a verb or an article first", openings(), OPENING_CEILING),
        *((f"docstrings against {rule}", styles[rule], most) for rule, most in STYLE_CEILINGS.items()),
    ]


def main() -> int:
    """Print the faults, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", action="store_true", help="words a sentence of each page, and the code's counts")
    shows_means = parser.parse_args().means
    found: list[str] = []
    for page in pages():
        found += faults(page)
        lengths = [length(one) for one in sentences(page.read_text())]
        if shows_means and lengths:
            print(f"{mean(lengths):5.1f} a sentence, {max(lengths):3} the longest  {page.relative_to(ROOT)}")
    for counted, count, most in ceilings():
        if shows_means:
            advice = f"; write {count} as its ceiling in lab/words.py" if count < most else ""
            print(f"{count:5} of {most} allowed in brainq/: {counted}{advice}")
        if count > most:
            found.append(f"brainq/ has {count} of {counted}; {most} are allowed: reword one, see `--means`")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
