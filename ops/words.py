"""The words and sentences of pages and code, for `make lint`; `python -m ops.words --means` prints the means, too.

Pages are in plain words and short sentences. Code has fewer of the words that we gave up than `CODE_CEILINGS` says;
a ceiling is lowered when the words become fewer, and never raised.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[1]

LONGEST, MEAN = 30, 20
"""The most words of a sentence, and of a page's sentences on average. 15 to 20 read better than 10."""

RETIRED = re.compile(
    r"\b(whoever|nobody|somebody|anybody|everybody|he|his|him|dear|told|stands?|stood)\b"
    r"|\bis\s+no\s+(?!longer|one\b)\w+|\bis\s+none\s+of\b|\bare\s+no\s+(?!longer)\w+",
    re.IGNORECASE,
)
"""Words and turns of phrase that pages do without."""

PLAIN = re.compile(r"\b[Tt]here\s+(is|are)\s+no\b")
"""What looks like one of them and is plain."""

CODE_CEILINGS = {
    r"told|said|stands": 626,
    r"whoever|nobody|somebody|anybody|everybody": 263,
    r"is no|is none of": 129,
    r"he|his|him|dear": 10,
}
"""How often `brainq/` may have these words at most, in names of their own, docstrings and comments."""


def pages() -> list[Path]:
    """Every page that a reader of the repository or the site meets."""
    at_the_top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ops/README.md")]
    return [*at_the_top, *sorted((ROOT / "docs").rglob("*.md"))]


def prose(text: str) -> str:
    """A page without its programs, headings, pictures and the addresses of its links; code in a line is one word,
    and so is a list of codes."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(r"\bcode\*?(?:, code\*?)+", "code", text)
    text = re.sub(r"^(#|!|:::).*$|<[^<>\n]*>", "", text, flags=re.MULTILINE)
    return re.sub(r"\]\([^)\s]*\)", "]", text)


def sentences(text: str) -> list[str]:
    """Those of paragraphs and lists."""
    return _sentences(re.split(r"\n\s*\n|^ *[-*] |^ *\d+\. |^\|.*$", prose(text), flags=re.MULTILINE))


def sentences_of_tables(text: str) -> list[str]:
    """Those of cells."""
    return _sentences([cell for row in re.findall(r"^\|.*$", prose(text), re.MULTILINE) for cell in row.split("|")])


def _sentences(parts: list[str]) -> list[str]:
    """A sentence ends before what may begin another, or with its part; two words are none."""
    found = [
        one for part in parts for one in re.split(r"(?<=[.!?])[)*\"]*\s+(?=[A-Z*\[(\"\d]|(?:code|brainq)\b)", part)
    ]
    return [" ".join(one.split()) for one in found if length(one) > 2]


def length(sentence: str) -> int:
    """How many words it has; dashes and arrows are none."""
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def faults(page: Path) -> list[str]:
    """A line each: what a page's words and sentences should not have."""
    text = page.read_text()
    name = page.relative_to(ROOT)
    retired = [f"{name}: not in use: {found[0]!r}" for found in RETIRED.finditer(PLAIN.sub("", prose(text)))]
    everything = [*sentences(text), *sentences_of_tables(text)]
    long = [(length(one), one) for one in everything if length(one) > LONGEST]
    return retired + [f"{name}: {words} words in a sentence: {one}" for words, one in long]


def code_counts() -> dict[str, int]:
    """How often `brainq/` has the words of each ceiling."""
    sources = [path.read_text() for kind in ("*.py", "*.lua") for path in (ROOT / "brainq").rglob(kind)]
    return {words: sum(len(re.findall(rf"\b(?:{words})\b", text)) for text in sources) for words in CODE_CEILINGS}


def main() -> int:
    """Prints the faults; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", action="store_true", help="words a sentence of each page, and the code's counts")
    shows_means = parser.parse_args().means
    found: list[str] = []
    for page in pages():
        found += faults(page)
        lengths = [length(one) for one in sentences(page.read_text())]
        if shows_means:
            print(f"{mean(lengths):5.1f} a sentence, {max(lengths):3} the longest  {page.relative_to(ROOT)}")
    for words, count in code_counts().items():
        if shows_means:
            print(f"{count:5} of {CODE_CEILINGS[words]} allowed in brainq/: {words}")
        if count > CODE_CEILINGS[words]:
            found.append(
                f"brainq/ has {count} of the words {words}; {CODE_CEILINGS[words]} are allowed, and fewer soon"
            )
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
